"""
Maps: a regression, and several classes
=======================================

``DecisionDisplay`` draws the predictions of a machine over two features. For a regression it is a map of f. Each sample
has the colour of its y, so that a sample that differs from its surroundings has a large error.
"""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR
from mercer.inspection.displays import DecisionDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(150, 2))
y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=150)
y[:3] += 2  # three samples that are wrong

model = SVR(C=1, epsilon=0.2).fit(X, y)
display = DecisionDisplay.from_estimator(model, X, y)
display.ax_.set_title(f"SVR: {len(model.support_)} of 150 samples are support vectors")
print(f"the three wrong samples are bounded support vectors: {set(range(3)) <= set(display.bounded.tolist())}")

# %%
# With several classes, lines separate their regions. The axes are named after the columns of the frame, and you can
# choose features by these names. The model was trained on four features, and two of them vary here; a line below the
# picture gives the values of the other two.

iris = load_iris(as_frame=True)
species = iris.target_names[iris.target]
model = make_pipeline(StandardScaler(), SVC(C=10)).fit(iris.data, species)
display = DecisionDisplay.from_estimator(model, iris.data, species, features=("petal length (cm)", "petal width (cm)"))
display.ax_.set_title(f"{model.score(iris.data, species):.1%} of the samples are right")
