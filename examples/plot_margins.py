"""
Regions, margins and support vectors
====================================

A few of the samples determine the machine. Those on the dashed lines f = ±1 are free support vectors (full rings).
Those between the lines or on the wrong side are at their bound C (dotted rings). All others could be left out.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from mercer import SVC
from mercer.inspection.displays import DecisionDisplay

X, y = make_moons(120, noise=0.2, random_state=0)

figure, axes = plt.subplots(2, 1, figsize=(6, 7.6), layout="constrained")
for ax, C in zip(axes, (0.3, 30.0), strict=True):
    model = SVC(C=C).fit(X, y)
    DecisionDisplay.from_estimator(model, X, y, ax=ax)
    ax.get_legend().remove()
    ax.set_title(f"C = {C:g}: {len(model.support_)} support vectors, 1/‖w‖ = {1 / model.rkhs_norm_:.3f}")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)

# %%
# A small C gives a wide margin and more slack; a large one bends the boundary around single samples. These are the
# numbers for the last machine (C = 30) and its training samples:

print(model.margins(X, y))

# %%
# The certificate proves that this is the optimum; it is not computed by the solver:

print(model.certificate_)
