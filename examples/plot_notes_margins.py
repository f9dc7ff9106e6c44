"""
Planes, distances and margins
=============================

The figures of the lecture notes about planes: signed distances, large and small margins, the ball around the samples,
one plane with two functional margins, hard and soft margins, and the nearest points of two convex hulls.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import ConvexHull

from mercer import SVC
from mercer.inspection.displays import DecisionDisplay
from mercer.notes.theory import enclosing_ball

plt.rcParams["figure.constrained_layout.use"] = True
BLUE, ORANGE, GREEN = "C0", "C1", "C2"

rng = np.random.default_rng(4)
X = np.vstack([rng.normal([-1.6, -0.6], 0.6, (14, 2)), rng.normal([1.5, 0.9], 0.6, (14, 2))])
y = np.repeat([-1, 1], 14)
model = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(X, y)


def scatter(ax, X, y):
    for label, colour, marker in ((-1, BLUE, "o"), (1, ORANGE, "s")):
        ax.scatter(*X[y == label].T, s=28, color=colour, marker=marker, linewidths=0, zorder=3)


def line(ax, w, b, level, span=(-6, 6), **style):
    """The line ⟨w, x⟩ + b = level."""
    foot = w * (level - b) / (w @ w)
    along = np.array([-w[1], w[0]]) / np.linalg.norm(w)
    ax.plot(*np.array([foot + t * along for t in span]).T, **{"color": "black", "linewidth": 1.2, **style})


def frame(ax, title, x=(-4, 4), z=(-3, 3)):
    ax.set(title=title, xlim=x, ylim=z, aspect="equal", xticks=[], yticks=[])


# %%
# **Signed distances** (Igel 4.1, Li 1). f(x)/‖w‖ is the distance of a point from the plane, with the sign of its side.

w, b = model.coef_[0], model.intercept_[0]
points = np.array([[2.2, 1.9], [0.4, 2.3], [-2.9, -1.2], [0.2, -2.3]])
distances = model.signed_distance(points)

figure, ax = plt.subplots(figsize=(6, 4.4))
line(ax, w, b, 0.0)
for point, distance in zip(points, distances, strict=True):
    foot = point - distance * w / np.linalg.norm(w)
    colour = ORANGE if distance > 0 else BLUE
    ax.plot(*np.array([point, foot]).T, color=colour, linestyle="--", linewidth=1.2)
    ax.plot(*point, "o", color=colour)
    beside = (7, 5) if distance > 0 else (-10, -17)  # on the side away from the plane
    ax.annotate(f"{distance:+.2f}", point, xytext=beside, textcoords="offset points", color=colour)
start = -b * w / (w @ w) + 1.4 * np.array([w[1], -w[0]]) / np.linalg.norm(w)
ax.annotate("", start + w / np.linalg.norm(w), start, arrowprops={"arrowstyle": "->", "linewidth": 1.4})
ax.annotate("w", start + w / np.linalg.norm(w), xytext=(5, -2), textcoords="offset points", fontstyle="italic")
ax.annotate("f(x) = 0", (-1.55, 2.6), ha="right")
frame(ax, "signed distances from the plane")

# %%
# **Large and small margins, and the ball** (Igel 4.2, Rosasco). Both lines separate the samples. The left one has the
# largest margin ρ; R is the radius of the smallest ball around the samples, and many bounds contain (R/ρ)².

ball = enclosing_ball(X, kernel="linear")
centre = ball.coefficients @ X[ball.rows]
tilted = np.array([1.0, -0.32])  # another direction, its plane halfway between the nearest samples
values = X @ tilted
other = tilted, -0.5 * (values[y > 0].min() + values[y < 0].max())

figure, axes = plt.subplots(1, 2, figsize=(6, 3.4))
for ax, (normal, bias), name in zip(axes, ((w, b), other), ("large margin", "small margin"), strict=True):
    margins = y * (X @ normal + bias) / np.linalg.norm(normal)
    rho = margins.min()
    scatter(ax, X, y)
    for side in (-1, 0, 1):
        line(ax, normal, bias, side * rho * np.linalg.norm(normal), linestyle="--" if side else "-")
    ax.add_patch(plt.Circle(centre, ball.radius, fill=False, color="0.5", linewidth=1.2))
    edge = centre + ball.radius * np.array([0.0, 1.0])
    ax.annotate("", edge, centre, arrowprops={"arrowstyle": "->", "color": "0.5"})
    ax.annotate("R", 0.3 * centre + 0.7 * edge, xytext=(-15, 0), textcoords="offset points", color="0.4")
    unit = normal / np.linalg.norm(normal)
    foot = -bias * unit / np.linalg.norm(normal) + (-1.6 if normal is w else -2.9) * np.array([-unit[1], unit[0]])
    if normal is w:
        ax.annotate("", foot + rho * unit, foot, arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0})
        ax.annotate("ρ", foot + 0.5 * rho * unit, xytext=(-2, 7), textcoords="offset points")
    else:
        there = {"arrowstyle": "->", "shrinkA": 0, "shrinkB": 0}
        ax.annotate("ρ", foot + 0.5 * rho * unit, xytext=(30, -4), textcoords="offset points", arrowprops=there)
    frame(ax, f"{name}: ρ = {rho:.2f}\nR = {ball.radius:.2f}, (R/ρ)² = {(ball.radius / rho) ** 2:.1f}", z=(-3.6, 3.8))

# %%
# **One plane, two functional margins** (Igel 4.3). (w, b) and (2w, 2b) are the same plane. The functional margins
# y f(x) double, the lines f = ±1 move in, and the geometric margin stays as it is.

figure, axes = plt.subplots(1, 2, figsize=(6, 3.2))
for ax, factor in zip(axes, (1, 2), strict=True):
    scatter(ax, X, y)
    for level in (-1, 0, 1):
        line(ax, factor * w, factor * b, level, linestyle="--" if level else "-")
    functional = (y * factor * (X @ w + b)).min()
    name = "(w, b)" if factor == 1 else "(2w, 2b)"
    frame(ax, f"{name}\nfunctional margin {functional:.0f}\ngeometric margin {1 / np.linalg.norm(w):.2f}")

# %%
# **Hard and soft margins** (Igel 4.6, Li 2 and 6, Rosasco). One sample has strayed. The hard margin has become narrow
# to keep it on its side. The soft margin allows it a slack ξ, drawn as a line to its margin, for a penalty Cξ. α is 0
# beyond the margin, between 0 and C on it (full rings), and C within it or on the wrong side (dotted rings).

strayed = np.vstack([X, [[-0.55, 0.15]]])
labels = np.append(y, 1)
figure, axes = plt.subplots(1, 2, figsize=(6, 3.2))
for ax, C in zip(axes, (np.inf, 0.5), strict=True):
    machine = SVC(C=C, kernel="linear", tol=1e-8).fit(strayed, labels)
    DecisionDisplay.from_estimator(machine, strayed, labels, ax=ax, margin=0.2)
    ax.get_legend().remove()
    found = machine.margins(strayed, labels)
    normal = machine.coef_[0]
    for i in np.flatnonzero(found.slacks > 1e-6):
        foot = strayed[i] + labels[i] * found.slacks[i] * normal / (normal @ normal)
        ax.plot(*np.array([strayed[i], foot]).T, color="black", linewidth=1, zorder=2)
    name = "hard" if np.inf == C else f"soft, C = {C}"
    ax.set(title=f"{name}\nρ = {found.rho:.2f}, Σξ = {found.slacks.sum():.2f}", aspect="equal", xticks=[], yticks=[])
    ax.set(xlabel="", ylabel="")
figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=10)

# %%
# **Nearest points of the hulls** (Rosasco's method of portraits). The plane is the perpendicular bisector of the
# shortest line between the convex hulls, and half of that line is the margin.

hulls = model.nearest_points()
figure, ax = plt.subplots(figsize=(6, 4.4))
scatter(ax, X, y)
for label, colour in ((-1, BLUE), (1, ORANGE)):
    corners = X[y == label][ConvexHull(X[y == label]).vertices]
    ax.fill(*corners.T, facecolor=colour, alpha=0.15, edgecolor=colour, linewidth=1.2)
line(ax, w, b, 0.0)
ax.plot(*hulls.points.T, color="black", linestyle=":", linewidth=1.6, marker="x", markersize=8, zorder=4)
frame(ax, f"distance of the hulls {hulls.distance:.3f} = 2ρ = {2 / model.rkhs_norm_:.3f}")
