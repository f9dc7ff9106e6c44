"""
Kernels add and multiply
========================

A kernel is an object. Sums, products, powers and exponentials of kernels are kernels again, and every machine accepts
them. Here the data have a trend and a season: a sum of two kernels learns both, and extrapolates both.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RLSRegressor, check_kernel
from mercer.kernels import Gaussian, Linear

rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 8, 90))[:, None]
y = 0.4 * t[:, 0] + np.sin(2 * np.pi * t[:, 0] / 1.7) + 0.15 * rng.normal(size=90)


def on_a_circle(t):
    """A period of 1.7 becomes one turn, so that samples a period apart are neighbours."""
    angle = 2 * np.pi * np.asarray(t) / 1.7
    return np.hstack([np.cos(angle), np.sin(angle)])


season = Gaussian(gamma=1.0).of(on_a_circle)
kernels = {
    "Gaussian": Gaussian(gamma=2.0),
    "season": season,
    "season + 0.1·linear": season + 0.1 * Linear(),
}

grid = np.linspace(0, 14, 500)[:, None]
figure, axes = plt.subplots(3, 1, figsize=(6, 6.4), sharex=True, sharey=True, layout="constrained")
for ax, (name, kernel) in zip(axes, kernels.items(), strict=True):
    model = RLSRegressor(lam=0.1, kernel=kernel).fit(t, y)
    ax.plot(grid[:, 0], model.predict(grid))
    ax.scatter(t[:, 0], y, s=8, color="0.4")
    ax.axvspan(8, 14, alpha=0.08)
    ax.set_title(name)

# %%
# A kernel states what is known about it, and ``check_kernel`` looks for a counterexample. A difference of kernels is in
# general not a kernel, so there is no ``-``. Written as a plain function, this difference is refuted by the samples.

print(kernels["season + 0.1·linear"].positive_definite)
print(check_kernel(t, kernel=kernels["season + 0.1·linear"]))
print(check_kernel(t, kernel=lambda a, b: Gaussian(2.0)(a, b) - 0.5 * Gaussian(8.0)(a, b)))
