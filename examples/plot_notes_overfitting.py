"""
Overfitting and early stopping
==============================

Igel's figure 2.1 with kernels: gradient descent on the squared loss fits the training samples better with every step.
On held-out samples the error falls, then rises. Stopping at its minimum regularises, much as a penalty does.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RLSRegressor
from mercer.kernels import Gaussian
from mercer.notes.theory import iteration_path, stopping_step

plt.rcParams["figure.constrained_layout.use"] = True
BLUE, ORANGE, GREEN = "C0", "C1", "C2"

rng = np.random.default_rng(1)
X = np.sort(rng.uniform(-3, 3, size=(80, 1)), axis=0)
y = np.sin(1.5 * X[:, 0]) + 0.35 * rng.normal(size=80)
train, held_out = np.arange(0, 80, 3), np.flatnonzero(np.arange(80) % 3)
kernel = Gaussian(gamma=3.0)
rate = 0.1 / np.linalg.eigvalsh(kernel(X[train]))[-1]
path = iteration_path(X[train], y[train], kernel=kernel, max_iter=5000, step_size=rate, bias=False)
training, validation = path.errors[:, 0], path.errors_on(X[held_out], y[held_out])
best, known = stopping_step(validation, window=5, rise=0.05)
print(f"the function of step {best} is kept; early stopping recognises it as the best after {known} steps")

figure, ax = plt.subplots(figsize=(6, 3.8))
ax.semilogx(path.steps[1:], training[1:], color=BLUE, linewidth=2, label="training samples")
ax.semilogx(path.steps[1:], validation[1:], color=ORANGE, linewidth=2, label="held-out samples")
ax.axvline(best, color=GREEN, linewidth=1.5, label=f"step {best}, which is kept")
ax.axvline(known, color=GREEN, linestyle="--", linewidth=1.5, label=f"step {known}: 5 % above it, stop")
ax.set(xlabel="steps of gradient descent", ylabel="mean squared error", ylim=(0, None))
ax.legend(loc="upper right", fontsize=10)

# %%
# The function at the best step, and the last one, which follows the noise of its samples.

grid = np.linspace(-3, 3, 400)[:, None]
figure, ax = plt.subplots(figsize=(6, 4.4))
ax.scatter(X[train, 0], y[train], s=28, color=BLUE, zorder=3, label="training samples")
ax.scatter(X[held_out, 0], y[held_out], s=16, color="0.7", label="held-out samples")
ax.plot(grid, path.at(5000)(grid), color=ORANGE, linewidth=1.6, label="5,000 steps")
ax.plot(grid, path.at(best)(grid), color=GREEN, linewidth=2.2, label=f"{best} steps")
ax.plot(grid, np.sin(1.5 * grid), color="black", linestyle=":", linewidth=1.4, label="the truth")
ax.set(xlabel="x", ylabel="y", ylim=(-3.4, 2.2))
ax.legend(loc="lower center", ncols=2, fontsize=10)

# %%
# A penalty λ‖f‖² has a similar effect: t steps of size η correspond to λ = 1/(ηt). At the best λ, the error on the
# held-out samples is about that at the best number of steps.

lams = np.logspace(-5, 2, 60)
machines = [RLSRegressor(kernel=kernel, lam=lam, bias=False).fit(X[train], y[train]) for lam in lams]
errors = [np.mean((y[held_out] - machine.predict(X[held_out])) ** 2) for machine in machines]
figure, ax = plt.subplots(figsize=(6, 3.4))
ax.semilogx(lams, errors, color=ORANGE, linewidth=2, label="least squares with λ, held-out samples")
ax.axhline(validation[best], color=GREEN, linestyle="--", linewidth=1.5, label="early stopping")
ax.axvline(path.ridge(best), color="0.5", linestyle=":", linewidth=1.5, label=f"1/(ηt) = {path.ridge(best):.2g}")
ax.set(xlabel="λ", ylabel="mean squared error", ylim=(0, None))
ax.legend()
print(f"best error: {validation[best]:.4f} by stopping, {min(errors):.4f} by λ = {lams[int(np.argmin(errors))]:.3g}")
