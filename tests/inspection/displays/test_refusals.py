"""Pictures of models that have nothing to draw: an error that names the picture and the model."""

import numpy as np
import pytest

import mercer
from mercer import displays
from mercer.inspection.features import Nystrom

pytest.importorskip("matplotlib")
X = np.random.default_rng(0).normal(size=(30, 3))
y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("draw", "picture", "model"),
    [
        (lambda: displays.PathDisplay.from_ridge_path(mercer.SVC().fit(X, y)), "PathDisplay", "SVC"),
        (
            lambda: displays.IntervalDisplay.from_estimator(
                mercer.CalibratedClassifier(mercer.SVC(), cv=3).fit(X, y), X
            ),
            "IntervalDisplay",
            "CalibratedClassifier",
        ),
        (
            lambda: displays.DecisionDisplay.from_estimator(mercer.KernelPCA(2).fit(X), X),
            "DecisionDisplay",
            "KernelPCA",
        ),
        (lambda: displays.DecisionDisplay.from_estimator(Nystrom().fit(X), X), "DecisionDisplay", "Nystrom"),
        (lambda: displays.ConvergenceDisplay.from_estimator(Nystrom(), X, y), "ConvergenceDisplay", "Nystrom"),
    ],
)
def test_refused_by_name(draw, picture, model):
    with pytest.raises(TypeError, match=rf"{picture}.*{model}|{model}.*{picture}"):
        draw()
