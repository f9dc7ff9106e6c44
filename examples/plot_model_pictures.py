"""
Pictures of a model
===================

Every picture is made from a fitted model and samples, and ``display.to_frame()`` returns its numbers as a table. The
first picture shows a classifier trained on each pair of columns, with its share of errors above the regions.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, RLSRegressor
from mercer.inspection.displays import (
    ConvergenceDisplay,
    DecisionDisplay,
    GramDisplay,
    IntervalDisplay,
    MarginDisplay,
    ReliabilityDisplay,
)

iris = load_iris(as_frame=True)
species = iris.target_names[iris.target]
model = make_pipeline(StandardScaler(), SVC(C=10))
figure, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained")
for ax, pair in zip(axes.flat, combinations(iris.data.columns, 2), strict=True):
    part = iris.data[list(pair)]
    DecisionDisplay.from_estimator(model.fit(part, species), part, species, resolution=80, ax=ax)
    ax.set_title(f"{1 - model.score(part, species):.1%} errors")
    ax.get_legend().remove()

# %%
# A model with four columns, drawn over two of them. The others are fixed at their means, or at the values of ``at``.
# With a wider sepal the borders move.

model.fit(iris.data, species)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, width in zip(axes, (2.5, 3.5), strict=True):
    DecisionDisplay.from_estimator(
        model,
        iris.data,
        species,
        features=("petal length (cm)", "petal width (cm)"),
        at={"sepal width (cm)": width},
        ax=ax,
    )

# %%
# Left, the functional margin of every sample against its α. At the optimum all points lie on three lines: α = 0 right
# of the margin 1, any α on it, and α = C left of it. Right, the slacks of those inside the margin.

X, y = make_moons(400, noise=0.3, random_state=0)
svc = SVC(C=5).fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
MarginDisplay.from_estimator(svc, X, y, ax=axes[0])
slacks = svc.margins(X, y).slacks
axes[1].hist([slacks[(y == label) & (slacks > 0)] for label in (0, 1)], bins=30, stacked=True, label=["0", "1"])
axes[1].axvline(1.0, color="black", linewidth=0.8, linestyle="--", label="beyond: errors")
axes[1].set(xlabel="slack", ylabel="samples")
axes[1].legend()

# %%
# The kernel matrix, ordered by class. With a γ that is too large every sample resembles only itself; with one that is
# too small, all resemble one another.

data = StandardScaler().fit_transform(iris.data)
figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
for ax, gamma in zip(axes, (0.02, 0.3, 5.0), strict=True):
    GramDisplay.from_estimator(SVC(gamma=gamma).fit(data, species), data, species, ax=ax)
    ax.set_title(f"γ = {gamma}")
    ax.tick_params(axis="y", rotation=90)

# %%
# How a fit converges. The gap and the violation are recorded before every outer step, and at the end by the
# certificate. They rise when the solver takes up samples again that shrinking had dropped.

X, y = make_moons(6000, noise=0.3, random_state=0)
convergence = ConvergenceDisplay.from_estimator(SVC(C=10), X, y)
print(convergence.to_frame().round(4).to_string(index=False))

# %%
# Are the probabilities of a calibrated machine correct? Among samples that it was not trained on, the share of each
# class should equal the predicted probability, up to the error bars.

X, y = make_moons(4000, noise=0.5, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
calibrated = SVC().fit(X_train, y_train).calibrate(X_train, y_train)
ReliabilityDisplay.from_estimator(calibrated, X_test, y_test)

# %%
# Intervals that should contain nine of ten new targets.

rng = np.random.default_rng(0)
x = rng.uniform(0, 10, size=(400, 1))
y = np.sin(x[:, 0]) + 0.3 * rng.normal(size=400)
machine = RLSRegressor(lam=0.5).fit(x[:200], y[:200]).calibrate(x[:200], y[:200], cv="leave-one-out")
intervals = IntervalDisplay.from_estimator(machine, x[200:], y[200:], alpha=0.1)
