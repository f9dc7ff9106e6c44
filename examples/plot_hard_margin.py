"""
The hard margin, and what happens without one
=============================================

``SVC(C=inf)`` allows no errors. It finds the nearest points of the two classes' convex hulls; the plane lies halfway
between them. If the hulls meet there is no such plane, and the fit raises an error with a proof.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC
from mercer.inspection.displays import DecisionDisplay
from mercer.runtime.errors import NotSeparableError

rng = np.random.default_rng(3)
X = np.vstack([rng.normal([-2, 0], 0.7, (25, 2)), rng.normal([2, 0.5], 0.7, (25, 2))])
y = np.repeat(["left", "right"], 25)

model = SVC(C=np.inf, kernel="linear").fit(X, y)
display = DecisionDisplay.from_estimator(model, X, y)
hulls = model.nearest_points()
display.ax_.plot(*hulls.points.T, "k:", marker="x", label="nearest points of the hulls")
display.ax_.set(title=f"margin 1/‖w‖ = {1 / model.rkhs_norm_:.3f}", aspect="equal")
display.ax_.legend(loc="lower right", fontsize="small")
print(f"distance of the hulls {hulls.distance:.4f}, twice the margin {2 / model.rkhs_norm_:.4f}")

# %%
# If the classes are closer together, no hard margin exists. The exception contains a convex combination of each class.
# Both combinations are the same point, which cannot lie on both sides of a plane.

overlapping = np.where(y[:, None] == "left", X + np.array([2.5, 0]), X)
try:
    SVC(C=np.inf, kernel="linear").fit(overlapping, y)
except NotSeparableError as error:
    proof = error
    print(textwrap.fill(str(error), 100))

points = [weights @ overlapping[rows] for rows, weights in proof.combinations]
print("the two combinations:", *(np.round(point, 4) for point in points))

figure, ax = plt.subplots(layout="constrained")
colours = {"left": "#3b6fb6", "right": "#d1603d"}
for label, colour in colours.items():
    ax.scatter(*overlapping[y == label].T, s=16, color=colour, label=label)
for rows, _ in proof.combinations:
    for row in rows:
        ax.plot(*np.vstack([overlapping[row], points[0]]).T, color=colours[y[row]], linewidth=1)
ax.plot(*points[0], "k*", markersize=12, label="a point of both hulls")
ax.set(title="not separable", aspect="equal")
ax.legend(fontsize="small")

# %%
# A kernel with a richer feature space separates them again; whether that generalises is another question.

rich = SVC(C=np.inf, kernel="rbf", gamma=2.0).fit(overlapping, y)
proven = (2 * rich.certificate_.primal) ** -0.5
print(f"Gaussian: separable, margin {1 / rich.rkhs_norm_:.4f}, proven to be at least {proven:.4f}")
