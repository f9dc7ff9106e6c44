"""
A grid search and what it skips
===============================

``mercer.tune`` computes kernel values once for all folds and all C, and skips fits that can no longer change the
choice.
"""

import numpy as np
from sklearn.datasets import make_moons

import mercer

X, y = make_moons(300, noise=0.25, random_state=0)
grid = {"C": np.logspace(-2, 3, 6), "gamma": np.logspace(-2, 2, 5)}
found = mercer.tune(mercer.SVC(), X, y, grid=grid)
found.plot()
print(f"best {found.best_score_:.3f} at {found.best_params_}")

# %%
# Crosses are cells that had lost before all folds were fitted, each with a reason.

for params, why in zip(found.cv_results_["params"], found.cv_results_["why"], strict=True):
    if why:
        print(f"C = {params['C']:g}, gamma = {params['gamma']:g}: {why}")
        break

# %%
# Along C with one kernel: the smallest C within one standard error of the best is often as good and simpler.

path = mercer.tune(mercer.SVC(gamma=1.0), X, y, grid={"C": np.logspace(-2, 3, 11)}, skip=False, one_standard_error=True)
path.plot()
print(f"within one standard error of the best: C = {path.best_params_['C']:g}")
