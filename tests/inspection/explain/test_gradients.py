"""Gradient importance against differences of the machine's own values."""

import numpy as np
import pytest

from mercer import SVC, SVDD, SVR, LinearSVC
from mercer.kernels import Gaussian, RationalQuadratic
from mercer.runtime.errors import NotDifferentiableError

RNG = np.random.default_rng(6)
X = RNG.normal(size=(40, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = np.digitize(Y, [-0.5, 0.5])
AT = RNG.normal(size=(9, 3))
STEP = 1e-5


def by_differences(f, weight):
    out = []
    for j in range(3):
        shift = STEP * np.eye(3)[j]
        slopes = np.abs(f(AT + shift) - f(AT - shift)) / (2 * STEP)
        out.append(np.tensordot(weight / weight.sum(), slopes, axes=1))
    return np.array(out)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (SVR(kernel=Gaussian(gamma=0.5), C=5.0), Y),
        (SVR(kernel=RationalQuadratic(), C=5.0), Y),
        (SVC(C=5.0, decision_function_shape="ovo"), LABELS),
        (SVDD(), None),
        (LinearSVC(), LABELS),
    ],
    ids=["Gaussian", "no product", "pairs", "ball", "linear"],
)
def test_equals_differences(model, target):
    model.fit(X, target)
    f = model.decision_function if hasattr(model, "decision_function") else model.predict
    weight = np.arange(1.0, 10.0)
    np.testing.assert_allclose(model.gradient_importance(AT), by_differences(f, np.ones(9)), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        model.gradient_importance(AT, sample_weight=weight), by_differences(f, weight), rtol=1e-6, atol=1e-9
    )


def test_a_kernel_without_derivative_says_where():
    model = SVR(kernel="laplacian").fit(X, Y)
    with pytest.raises(NotDifferentiableError, match="agree in a feature"):
        model.gradient_importance(X)
    assert (model.gradient_importance(AT) > 0).all()
