"""
Regions, margins and support vectors
====================================

A machine is held up by few of its samples. Those on the dashed lines f = ±1 are free support vectors (full rings);
those inside or on the wrong side are at their bound C (dotted rings). All others could be left out.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from mercer import SVC
from mercer.displays import DecisionDisplay

X, y = make_moons(120, noise=0.2, random_state=0)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, C in zip(axes, (0.3, 30.0), strict=True):
    model = SVC(C=C).fit(X, y)
    DecisionDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(f"C = {C:g}: {len(model.support_)} support vectors, 1/‖w‖ = {1 / model.rkhs_norm_:.3f}")

# %%
# A small C buys a wide margin with slack; a large one bends the boundary around single samples. What the last machine
# (C = 30) says about its training samples, in numbers:

print(model.margins(X, y))

# %%
# And the proof that this is the optimum, computed by a function that is not the solver:

print(model.certificate_)
