"""
Location and location–scale alternatives, and the Bayes risk
============================================================

Mozharovskyi's two examples: normal classes that differ in location, and in location and scale. Their Bayes rules are a
line and a circle. You can compare a trained machine with these rules, and its error with the smallest possible one.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, C_from, datasets
from mercer.inspection.displays import DecisionDisplay
from mercer.kernels import Gaussian

plt.rcParams["figure.constrained_layout.use"] = True

examples = {
    "location": datasets.location(120, distance=2.0, random_state=1),
    "location–scale": datasets.location_scale(120, distance=2.0, scale=2.0, random_state=1),
}
figure, axes = plt.subplots(2, 2, figsize=(6, 6.6))
for column, (name, example) in zip(axes.T, examples.items(), strict=True):
    for ax, machine in zip(column, (SVC(kernel="linear"), SVC(gamma=0.2)), strict=True):
        machine.fit(example.X, example.y.astype(int))
        DecisionDisplay.from_estimator(machine, example.X, example.y.astype(int), ax=ax)
        ax.get_legend().remove()
        xx, zz = np.meshgrid(*(np.linspace(*ends, 800) for ends in (ax.get_xlim(), ax.get_ylim())))
        rule = example.bayes_rule(np.column_stack([xx.ravel(), zz.ravel()])).reshape(xx.shape)
        ax.contour(xx, zz, rule, levels=[0], colors="C2", linewidths=2.5)
        test = (datasets.location if name == "location" else datasets.location_scale)(
            20_000, distance=2.0, random_state=9
        )
        wrong = np.mean(machine.predict(test.X) != test.y)
        kind = "linear" if machine.kernel == "linear" else "Gaussian"
        title = f"{name}, {kind}\nerror {wrong:.1%}, Bayes {example.bayes_risk:.1%}"
        ax.set(title=title, xlabel="", ylabel="", aspect="equal")
axes[0, 0].plot([], [], color="C2", linewidth=2.5, label="Bayes rule")
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=10)

# %%
# The green line is the Bayes rule. If the scales differ, no straight line approximates it, and the Gaussian kernel
# finds the circle. How close is the error to the Bayes risk as the number of samples grows? The kernel is universal;
# with the schedule C = C₀(n₀/n)^(3/4) the conditions of Steinwart's theorem hold, and the error tends to the Bayes
# risk.

test = datasets.location_scale(20_000, distance=2.0, scale=2.0, random_state=99)
sizes = np.array([25, 50, 100, 200, 400, 800, 1600, 3200])
errors = np.empty((len(sizes), 5))
for k, n in enumerate(sizes.tolist()):
    for seed in range(5):
        X, y = datasets.location_scale(n, distance=2.0, scale=2.0, random_state=seed)
        machine = SVC(C=C_from(C0=3.0, n0=50, n=n), kernel=Gaussian(gamma=0.5)).fit(X, y)
        errors[k, seed] = np.mean(machine.predict(test.X) != test.y)

figure, ax = plt.subplots(figsize=(6, 4))
ax.semilogx(sizes, errors, "o", color="C0", alpha=0.35, markersize=5)
ax.semilogx(sizes, errors.mean(axis=1), color="C0", linewidth=2, label="test error, mean of 5 draws")
ax.axhline(test.bayes_risk, color="C2", linewidth=2.5, label=f"Bayes risk {test.bayes_risk:.4f}")
ax.set(xlabel="training samples", ylabel="error", xticks=sizes, xticklabels=sizes)
ax.minorticks_off()
ax.legend()
for n, mean in zip(sizes, errors.mean(axis=1), strict=True):
    print(f"{n:5} samples: {mean:.4f}, {mean - test.bayes_risk:.4f} above the Bayes risk")
