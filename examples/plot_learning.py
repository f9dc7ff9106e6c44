"""
Learning the kernel, and how sure a prediction is
=================================================

A Gaussian process finds its kernel's parameters and its noise by the marginal likelihood. Far from the samples,
its standard deviation is large.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import GaussianProcessRegressor, MKLRegressor
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = np.concatenate([rng.uniform(0, 4, 40), rng.uniform(7, 10, 30)])[:, None]
y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=70)
grid = np.linspace(-1, 11, 400)[:, None]

process = GaussianProcessRegressor().fit(X, y)
mean, deviation = process.predict(grid, return_std=True)
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.fill_between(grid[:, 0], mean - 2 * deviation, mean + 2 * deviation, alpha=0.2, label="two deviations of f")
ax.plot(grid[:, 0], process.sample_y(grid, 3, random_state=1), color="0.6", linewidth=0.8)
ax.plot(grid[:, 0], mean, label="mean")
ax.scatter(X[:, 0], y, s=10, color="black")
ax.legend()
print(f"noise of variance {process.lam_:.2f} (0.04 is true), {process.kernel_}")

# %%
# Multiple kernel learning finds the weights in a sum of seven Gaussians. The norm 1 selects few of them, larger norms
# more. The gap bounds how much other weights could improve the objective.

gammas = 10.0 ** np.arange(-3, 4)
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for k, norm in enumerate((1.0, 4 / 3, 4.0)):
    model = MKLRegressor(C=10, kernel=[Gaussian(gamma=gamma) for gamma in gammas], norm=norm, gap_tol=1e-6).fit(X, y)
    ax.bar(np.arange(7) + 0.25 * (k - 1), model.weights_ * model.scales_, width=0.25, label=f"norm {norm:.3g}")
    print(f"norm {norm:.3g}: a relative gap of {model.certificate_.relative_gap:.0e} after {model.n_rounds_} rounds")
ax.set_xticks(range(7), [f"{gamma:g}" for gamma in gammas])
ax.set_xlabel("γ")
ax.set_ylabel("weight, in units of the kernel's variance")
ax.legend()
