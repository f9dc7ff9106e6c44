"""Draws decision.png, the picture of README.md and of the site's first page: python docs/pictures/decision.py."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, SVR
from mercer.inspection.displays import DecisionDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")

X, y = make_moons(200, noise=0.2, random_state=1)
model = SVC(C=3).fit(X, np.array(["upper", "lower"])[y])
DecisionDisplay.from_estimator(model, X, np.array(["upper", "lower"])[y], ax=left)
left.set_title("SVC: regions, margins, support vectors")

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(120, 2))
y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=120)
DecisionDisplay.from_estimator(SVR(epsilon=0.2).fit(X, y), X, y, ax=right)
right.set_title("SVR: a map of f, samples in the colour of their y")

figure.savefig(Path(__file__).with_suffix(".png"), dpi=120)
