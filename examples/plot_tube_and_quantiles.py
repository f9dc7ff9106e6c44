"""
A tube, and quantiles
=====================

``SVR`` has a tube of half-width ε around f: samples inside it cost nothing and are not support vectors.
``QuantileSVR`` estimates the quantiles of y given x instead, here those that leave a tenth below and a tenth above.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVR, QuantileSVR

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, 150))[:, None]
y = np.sin(X[:, 0]) + (0.05 + 0.06 * X[:, 0]) * rng.normal(size=150)  # the noise grows with x

tube = SVR(C=10, epsilon=0.2, gamma=0.5).fit(X, y)
bands = QuantileSVR([0.1, 0.5, 0.9], C=10, gamma=0.5, tol=1e-6).fit(X, y)

# %%
# The tube has one width everywhere. The quantiles follow the noise.

grid = np.linspace(0, 6, 300)[:, None]
figure, axes = plt.subplots(2, 1, figsize=(6, 6.4), sharex=True, sharey=True, layout="constrained")

f = tube.predict(grid)
axes[0].fill_between(grid[:, 0], f - 0.2, f + 0.2, alpha=0.2, label="tube, ε = 0.2")
axes[0].plot(grid[:, 0], f)
inside = np.setdiff1d(np.arange(150), tube.support_)
axes[0].scatter(X[inside, 0], y[inside], s=10, color="0.6", label="inside")
axes[0].scatter(X[tube.support_, 0], y[tube.support_], s=14, color="black", label="support vectors")
axes[0].set_title("SVR")

low, middle, high = bands.predict(grid).T
axes[1].fill_between(grid[:, 0], low, high, alpha=0.2, label="quantiles 0.1 to 0.9")
axes[1].plot(grid[:, 0], middle, label="median")
axes[1].scatter(X[:, 0], y, s=10, color="0.4")
axes[1].set_title("QuantileSVR")
for ax in axes:
    ax.legend()

# %%
# Quantiles never cross, and the share of samples below each is as requested: at most τ below it, at least τ below or on
# it. A few samples lie on the curve itself, up to the tolerance.

for tau, f in zip(bands.quantiles_, bands.predict(X).T, strict=True):
    below, on = np.mean(y < f - 1e-5), np.mean(np.abs(y - f) <= 1e-5)
    print(f"τ = {tau:g}: {below:.3f} of the samples lie below, {on:.3f} on it")
