"""
Two variables in their box
==========================

The pair algorithm (Igel 4.8, Li 7) changes two α at a time. The equality constraint keeps them on a line, and the
box [0, C]² limits the line. Along the line the dual value is a parabola, whose maximum is known in closed form; if it
lies outside the box, the step ends at the edge.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import datasets, steps
from mercer.kernels import Gaussian

plt.rcParams["figure.constrained_layout.use"] = True

C = 1.0
X, y = datasets.location(30, distance=1.5, random_state=2)
run = steps(X, y, kernel=Gaussian(gamma=0.5), C=C, rule="most violating")
print(str(run).partition("\n   11")[0])


def top_of(before, step):
    """Where the dual value is largest on the line of a step, and how far that is beyond the step's end."""
    i, j = step.chosen
    g, K = run.problem.gradient(before), run.problem.K
    full = (y[i] * g[i] - y[j] * g[j]) / (K[i, i] + K[j, j] - 2 * K[i, j])
    return before[[i, j]] + full * np.array([y[i], -y[j]]), full - step.size


def step_with(same, clipped):
    """Of the steps whose labels agree or differ, and which the box cut short or not, the one that shows most."""
    before, found = np.zeros(len(y)), []
    for step in run:
        i, j = step.chosen
        top, beyond = top_of(before, step)
        if (y[i] == y[j]) == same and step.clipped == clipped and top.min() > -0.3 and top.max() < 1.3:
            found.append((beyond if clipped else step.size, before, step))
        before = step.alpha
    return max(found, key=lambda one: one[0])[1:]


def draw(ax, before, step):
    i, j = step.chosen
    sign = -1 if y[i] == y[j] else 1  # α_j moves with α_i if the labels differ, against it if they agree
    start, end = before[[i, j]], step.alpha[[i, j]]
    grid = np.linspace(-0.35, 1.35, 120)
    values = np.empty((120, 120))
    for k, a_j in enumerate(grid):
        for m, a_i in enumerate(grid):
            alpha = before.copy()
            alpha[[i, j]] = a_i, a_j
            values[k, m] = run.problem.dual(alpha)
    ax.contour(grid, grid, values, levels=14, colors="0.8", linewidths=0.8)
    ax.add_patch(plt.Rectangle((0, 0), C, C, fill=False, linewidth=1.6))
    t = np.array([-2.0, 2.0])
    ax.plot(start[0] + t, start[1] + sign * t, color="0.5", linestyle=":", linewidth=1.2)
    below, above = (start[1], C - start[1]) if sign > 0 else (C - start[1], start[1])
    low, high = max(0, start[0] - below), min(C, start[0] + above)  # L and H of Li
    ax.plot([low, high], start[1] + sign * (np.array([low, high]) - start[0]), color="C0", linewidth=2.5)
    ax.plot(*top_of(before, step)[0], "*", color="C1", markersize=17, label="best on the line")
    arrow = {"arrowstyle": "-|>", "color": "black", "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=arrow)
    ax.plot(*start, "o", color="black", markersize=6, label="before")
    ax.plot(*end, "s", color="C2", markersize=6, label="after")
    ax.set(xlim=(-0.35, 1.35), ylim=(-0.35, 1.35), aspect="equal", xticks=[0, C], yticks=[0, C])
    ax.set(xticklabels=["0", "C"], yticklabels=["0", "C"], xlabel=r"$\alpha_i$", ylabel=r"$\alpha_j$")


figure, axes = plt.subplots(2, 2, figsize=(6, 6.4))
for row, same in zip(axes, (False, True), strict=True):
    for ax, clipped in zip(row, (False, True), strict=True):
        before, step = step_with(same, clipped)
        draw(ax, before, step)
        ax.set_title(f"labels {'agree' if same else 'differ'}, {'cut short' if clipped else 'free'}")
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

# %%
# The blue part of the line lies inside the box: Li's L and H are its ends. The dual value grows with every step, until
# no pair violates the conditions. The number of steps depends on the choice of the pair.

figure, ax = plt.subplots(figsize=(6, 3.8))
styles = {"most violating": "C0", "second order": "C1", "maximum gain": "C2"}
for rule, colour in styles.items():
    found = steps(X, y, kernel=Gaussian(gamma=0.5), C=C, rule=rule, tol=1e-8)
    behind = found.dual - np.array([step.dual for step in found][:-1])
    name = f"{rule}, {len(found)} steps"
    ax.semilogy(np.arange(1, len(behind) + 1), np.maximum(behind, 1e-16), color=colour, linewidth=2, label=name)
ax.set(xlabel="step", ylabel="distance from the optimum", ylim=(1e-10, None), xlim=(0, 60))
ax.legend()
