"""
Overfitting and early stopping
==============================

Igel's figure 2.1 with kernels: gradient descent on the squared loss fits the training samples better with every step.
On held-out samples the error falls, then rises. Stopping where it is least regularises, much as a penalty does.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RLSRegressor
from mercer.kernels import Gaussian
from mercer.rkhs import Function

plt.rcParams.update({"font.size": 11, "axes.titlesize": 11, "figure.constrained_layout.use": True})
BLUE, ORANGE, GREEN = "#3b6fb6", "#d1603d", "#4f9d69"

rng = np.random.default_rng(1)
X = np.sort(rng.uniform(-3, 3, size=(80, 1)), axis=0)
y = np.sin(1.5 * X[:, 0]) + 0.35 * rng.normal(size=80)
train, held_out = np.arange(0, 80, 3), np.flatnonzero(np.arange(80) % 3)
kernel = Gaussian(gamma=3.0)
K, across = kernel(X[train]), kernel(X[held_out], X[train])

rate = 0.1 / np.linalg.eigvalsh(K)[-1]
coefficients = np.zeros((20_001, len(train)))
for t in range(20_000):
    coefficients[t + 1] = coefficients[t] + rate * (y[train] - K @ coefficients[t])
training = np.mean((y[train] - coefficients @ K) ** 2, axis=1)
validation = np.mean((y[held_out] - coefficients @ across.T) ** 2, axis=1)
best = int(validation.argmin())

figure, ax = plt.subplots(figsize=(6, 3.8))
steps = np.arange(1, 20_001)
ax.semilogx(steps, training[1:], color=BLUE, linewidth=2, label="training samples")
ax.semilogx(steps, validation[1:], color=ORANGE, linewidth=2, label="held-out samples")
ax.axvline(best, color=GREEN, linestyle="--", linewidth=1.5, label=f"stop after {best} steps")
ax.set(xlabel="steps of gradient descent", ylabel="mean squared error", ylim=(0, None))
ax.legend()

# %%
# The same two functions. The last one follows the noise of its samples.

grid = np.linspace(-3, 3, 400)[:, None]
figure, ax = plt.subplots(figsize=(6, 4.4))
ax.scatter(X[train, 0], y[train], s=28, color=BLUE, zorder=3, label="training samples")
ax.scatter(X[held_out, 0], y[held_out], s=16, color="0.7", label="held-out samples")
ax.plot(grid, Function(kernel, X[train], coefficients[-1])(grid), color=ORANGE, linewidth=1.6, label="20,000 steps")
ax.plot(grid, Function(kernel, X[train], coefficients[best])(grid), color=GREEN, linewidth=2.2, label=f"{best} steps")
ax.plot(grid, np.sin(1.5 * grid), color="black", linestyle=":", linewidth=1.4, label="the truth")
ax.set(xlabel="x", ylabel="y", ylim=(-3.4, 2.2))
ax.legend(loc="lower center", ncols=2, fontsize=10)

# %%
# A penalty λ‖f‖² does much the same: a small λ is many steps. At its best λ the error on the held-out samples is about
# that of the best number of steps.

lams = np.logspace(-5, 2, 60)
machines = [RLSRegressor(kernel=kernel, lam=lam, bias=False).fit(X[train], y[train]) for lam in lams]
errors = [np.mean((y[held_out] - machine.predict(X[held_out])) ** 2) for machine in machines]
figure, ax = plt.subplots(figsize=(6, 3.4))
ax.semilogx(lams, errors, color=ORANGE, linewidth=2, label="least squares with λ, held-out samples")
ax.axhline(validation[best], color=GREEN, linestyle="--", linewidth=1.5, label="early stopping")
ax.set(xlabel="λ", ylabel="mean squared error", ylim=(0, None))
ax.legend()
print(f"least error: {validation[best]:.4f} by stopping, {min(errors):.4f} by λ = {lams[int(np.argmin(errors))]:.3g}")
