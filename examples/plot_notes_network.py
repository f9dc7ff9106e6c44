"""
The machine as a network
========================

Igel's figure 4.7 with the numbers of a trained machine: a sample x is compared with every support vector, the kernel
values are weighted by y_iα_i, summed, and shifted by b. The sign decides.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC
from mercer.kernels import Gaussian

plt.rcParams["figure.constrained_layout.use"] = True
BLUE, ORANGE = "C0", "C1"

X = np.array([[0.0, 0.0], [0.8, 0.6], [1.0, -0.5], [2.2, 1.4], [2.6, -0.2], [-0.9, 0.7], [3.1, 0.8]])
y = np.array([-1, -1, -1, 1, 1, -1, 1])
model = SVC(C=5.0, kernel=Gaussian(gamma=0.4), tol=1e-8).fit(X, y)
x = np.array([[1.9, 0.5]])
vectors, beta = model.support_vectors_, model.dual_coef_[0]
values = model.kernel_(x, vectors)[0]
total = float(model.decision_function(x)[0])
terms = " ".join(f"{weight:+.2f}·{k:.2f}" for weight, k in zip(beta, values, strict=True))
print(f"f(x) = {terms} {model.intercept_[0]:+.2f} = {total:+.3f}")

figure, ax = plt.subplots(figsize=(6, 5.6))
places = np.linspace(0.5, 9.5, len(beta))
box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "black", "linewidth": 1.2}


def unit(where, height, text, **style):
    ax.text(where, height, text, ha="center", va="center", bbox={**box, **style}, zorder=3)


for place, vector, k, weight in zip(places, vectors, values, beta, strict=True):
    colour = ORANGE if weight > 0 else BLUE
    ax.plot([5, place], [0.0, 3.4], color="0.7", linewidth=1)
    ax.plot([place, 5], [3.4, 7.0], color=colour, linewidth=0.6 + 4 * abs(weight) / np.abs(beta).max())
    unit(place, 3.4, f"({vector[0]:g}, {vector[1]:g})\nk = {k:.2f}", edgecolor=colour)
    white = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    middle = place + 0.4 * (5 - place), 3.4 + 0.4 * 3.6
    ax.text(*middle, f"{weight:+.2f}", ha="center", va="center", bbox=white, color=colour, zorder=3)
unit(5, 0.0, f"x = ({x[0, 0]:g}, {x[0, 1]:g})")
unit(5, 7.0, f"Σ + b = {total:+.3f}\nb = {model.intercept_[0]:+.2f}")
ax.annotate("", (5, 9.0), (5, 7.7), arrowprops={"arrowstyle": "-|>", "linewidth": 1.4})
unit(5, 9.4, f"sign: class {model.predict(x)[0]:+d}", edgecolor=ORANGE if total > 0 else BLUE)
for height, text in ((0.0, "the sample"), (3.4, "support vectors,\nkernel values"), (5.2, "weights\nβ = yα")):
    ax.text(10.9, height, text, va="center", fontsize=10, color="0.3")
ax.set(xlim=(-0.7, 14.0), ylim=(-0.7, 10.1))
ax.axis("off")
