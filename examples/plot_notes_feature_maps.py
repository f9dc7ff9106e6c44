"""
Feature maps: the interval, the circle, the paraboloid, and k(·, x)
===================================================================

Samples that no line separates can be separated after a map into more dimensions. The kernel computes the inner products
there, and the map need not be known.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, datasets
from mercer.inspection.features import Monomials
from mercer.inspection.rkhs import Function, canonical
from mercer.kernels import Gaussian, Polynomial

plt.rcParams["figure.constrained_layout.use"] = True
BLUE, ORANGE, GREEN = "C0", "C1", "C2"


def scatter(ax, X, y, **style):
    for label, colour, marker in ((-1, BLUE, "o"), (1, ORANGE, "s")):
        ax.scatter(*X[y == label].T, color=colour, marker=marker, s=30, **style)


# %%
# **x → (x, x²)** (Shalev-Shwartz, Li 4). The middle class has the other on both sides; in (x, x²) a line separates
# them, with margin 1.5.

x, y = datasets.interval()
mapped = datasets.with_square(x)
model = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(mapped, y)
print(f"margin {1 / model.rkhs_norm_:.4f}")

figure, (low, high) = plt.subplots(2, 1, figsize=(6, 4.8), height_ratios=[1, 4], sharex=True)
scatter(low, np.column_stack([x, np.zeros(len(x))]), y, zorder=3)
low.axhline(0, color="0.7", linewidth=1)
low.set(yticks=[], ylim=(-1, 1), title="one feature: no threshold separates the classes")
curve = np.linspace(-3.3, 3.3, 100)
high.plot(curve, curve**2, color="0.7", linewidth=1)
scatter(high, mapped, y, zorder=3)
slope, level = model.coef_[0], model.intercept_[0]
for height, style in ((-1, "--"), (0, "-"), (1, "--")):
    high.plot(curve, (height - level - slope[0] * curve) / slope[1], "k", linestyle=style, linewidth=1.2)
high.set(xlabel="x", ylabel="x²", title="two features: x² = 2.5 does")

# %%
# **The circle** (Igel 4.4, Li 5). (x₁, x₂) → (x₁², √2 x₁x₂, x₂²) is the map of the kernel ⟨x, z⟩². It maps
# every conic around the origin to a plane, so that a plane separates circles.

X, y = datasets.rings(80, random_state=0)
kernel = Polynomial(degree=2, gamma=1.0, coef0=0.0)
features = Monomials(kernel).fit_transform(X)
circle = SVC(C=np.inf, kernel=kernel, tol=1e-8).fit(X, y)
print(f"margin {1 / circle.rkhs_norm_:.4f}, 1.5/√2 = {1.5 / np.sqrt(2):.4f}")

figure, (plane, squares) = plt.subplots(1, 2, figsize=(6, 3.1))
scatter(plane, X, y)
grid = np.linspace(-2.3, 2.3, 121)
xx, zz = np.meshgrid(grid, grid)
f = circle.decision_function(np.column_stack([xx.ravel(), zz.ravel()])).reshape(xx.shape)
plane.contour(xx, zz, f, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"], linewidths=1.2)
plane.set(aspect="equal", xlabel="x₁", ylabel="x₂", title="f = 0 is a circle …")
scatter(squares, features[:, [0, 2]], y)
for level, style in ((1, "--"), (2.5, "-"), (4, "--")):
    squares.plot([0, level], [level, 0], "k", linestyle=style, linewidth=1.2)
squares.set(aspect="equal", xlabel="x₁²", ylabel="x₂²", title="… and a line in the squares")

figure = plt.figure(figsize=(6, 4.6), layout="none")
space = figure.add_subplot(projection="3d")
scatter(space, features, y, depthshade=False)
aa, bb = np.meshgrid([0.0, 2.5], [-3.0, 3.0])  # the plane x₁² + x₂² = 2.5
space.plot_surface(aa, bb, 2.5 - aa, color="0.6", alpha=0.35)
space.set(xlabel="x₁²", ylabel="√2 x₁x₂", zlabel="x₂²", xticks=[0, 2, 4], zticks=[0, 2, 4], yticks=[-2, 0, 2])
space.view_init(elev=20, azim=-62)
space.set_box_aspect((1, 1, 0.8), zoom=0.95)
figure.subplots_adjust(left=0.0, right=0.95, bottom=0.04, top=1.0)

# %%
# **The paraboloid** (Mozharovskyi). (x₁, x₂) → (x₁, x₂, x₁² + x₂²) lifts the outer ring above the inner one; the margin
# is 1.5, half of the difference in height.

lifted = datasets.with_paraboloid(X)
flat = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(lifted, y)
print(f"margin {1 / flat.rkhs_norm_:.4f}")

figure = plt.figure(figsize=(6, 4.4), layout="none")
ax = figure.add_subplot(projection="3d")
radius, angle = np.meshgrid(np.linspace(0, 2.1, 12), np.linspace(0, 2 * np.pi, 40))
bowl = radius * np.cos(angle), radius * np.sin(angle), radius**2
ax.plot_wireframe(*bowl, rcount=10, ccount=6, color="0.8", linewidth=0.6)
scatter(ax, lifted, y, depthshade=False)
aa, bb = np.meshgrid([-2.2, 2.2], [-2.2, 2.2])
normal, offset = flat.coef_[0], flat.intercept_[0]
ax.plot_surface(aa, bb, -(normal[0] * aa + normal[1] * bb + offset) / normal[2], color="0.5", alpha=0.35)
ax.set(xlabel="x₁", ylabel="x₂", zlabel="x₁² + x₂²")
ax.view_init(elev=14, azim=-55)
ax.set_box_aspect((1, 1, 0.8), zoom=0.95)
figure.subplots_adjust(left=0.0, right=0.95, bottom=0.04, top=1.0)

# %%
# **The canonical feature map** (Igel 4.5). Every kernel has one: a sample becomes the function k(·, x). A trained
# machine is a sum of such functions, f = Σ β_i k(·, x_i), and its value at x is the inner product with k(·, x).

gauss = Gaussian(gamma=1.0)
centres, weights = np.array([[-1.5], [0.2], [1.4]]), np.array([1.0, -0.8, 1.2])
line = np.linspace(-4, 4, 400)[:, None]
whole = Function(centres, weights, kernel=gauss)

figure, (above, below) = plt.subplots(2, 1, figsize=(6, 5), sharex=True)
for phi, centre, colour in zip(canonical(centres, kernel=gauss), centres[:, 0], (BLUE, ORANGE, GREEN), strict=True):
    above.plot(line[:, 0], phi(line), color=colour, linewidth=2)
    above.plot([centre], [0], "o", color=colour, clip_on=False, zorder=4)
above.set(ylabel="k(·, x)", ylim=(0, 1.15), title="three samples, and what they become")
for weight, centre, colour in zip(weights, centres, (BLUE, ORANGE, GREEN), strict=True):
    below.plot(
        line[:, 0], Function([centre], [weight], kernel=gauss)(line), color=colour, linestyle="--", linewidth=1.2
    )
below.plot(line[:, 0], whole(line), color="black", linewidth=2)
below.axhline(0, color="0.7", linewidth=1)
below.set(xlabel="x", ylabel="f(x)", title=f"their sum f with weights 1, −0.8 and 1.2: ‖f‖ = {whole.norm:.3f}")
here = canonical([[0.5]], kernel=gauss)[0]
print(f"⟨f, k(·, 0.5)⟩ = {whole.inner(here):.6f}, f(0.5) = {whole([[0.5]])[0]:.6f}")
