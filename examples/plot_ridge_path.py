"""
Every λ at once, with exact leave-one-out
=========================================

``RLSRegressorCV`` decomposes the kernel matrix once. For every λ, this gives the exact errors of n refits with one
sample left out.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RLSRegressor, RLSRegressorCV

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-3, 3, 120))[:, None]
y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=120)

model = RLSRegressorCV(lams=np.logspace(-6, 3, 60), gamma=1.0).fit(X, y)
figure, axes = plt.subplots(3, 1, figsize=(6, 7), layout="constrained")
model.path_.plot(axes)
print(f"leave-one-out chooses λ = {model.lam_:.3g}")

# %%
# To check this, leave out the first three samples, one at a time, and compare.

for i in range(3):
    others = np.delete(np.arange(120), i)
    refit = RLSRegressor(lam=model.lam_, gamma=1.0).fit(X[others], y[others])
    print(f"sample {i}: refit {y[i] - refit.predict(X[[i]])[0]:+.10f}, path {model.loo_residuals_[i]:+.10f}")

# %%
# Three fits: with too little regularisation, with the chosen λ, and with too much.

grid = np.linspace(-3, 3, 400)[:, None]
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.scatter(X[:, 0], y, s=10, color="0.5")
for lam in (1e-6, model.lam_, 100.0):
    ax.plot(grid[:, 0], RLSRegressor(lam=lam, gamma=1.0).fit(X, y).predict(grid), label=f"λ = {lam:.3g}")
ax.set_ylim(-2, 2)
ax.legend()
