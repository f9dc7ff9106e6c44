"""KernelMachineClassifier: scipy's minimum of the written-out objective, and what a free intercept implies.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Losses, Fenchel duals, several classes and probabilities: tests/estimators/test_kernel_machine.py.
Penalties and early stopping: tests/estimators/test_kernel_machine_penalties.py.
Calibration: tests/calibration/test_calibrated_classifier.py.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer import KernelMachineClassifier

rng = np.random.default_rng(12)
X = rng.normal(size=(80, 2))
Y = (X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=80) > 0.4).astype(int)
SIGNS = np.where(Y == 1, 1.0, -1.0)
LOSSES = {
    "logistic": lambda margin: np.logaddexp(0.0, -margin),
    "squared_hinge": lambda margin: np.maximum(0.0, 1 - margin) ** 2,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_linear_kernel_reaches_scipys_minimum(loss):
    """Σ ℓ(y f(x)) + λ‖w‖² over w and b."""

    def objective(v):
        return LOSSES[loss](SIGNS * (X @ v[:2] + v[2])).sum() + 0.7 * v[:2] @ v[:2]

    best = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
    model = KernelMachineClassifier(loss, 0.7, kernel="linear", tol=1e-12).fit(X, Y)
    assert model.certificate_.primal == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(model.decision_function(X), X @ best.x[:2] + best.x[2], atol=1e-4)


def test_probabilities_are_right_on_average():
    """The intercept has no penalty, so that Σ (P(y_i = 1) − y_i) = 0 for the logistic loss."""
    model = KernelMachineClassifier("logistic", 0.1, gamma=0.5, tol=1e-12).fit(X, Y)
    p = model.predict_proba(X)[:, 1]
    assert p.mean() == pytest.approx(Y.mean(), abs=1e-6)
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-model.decision_function(X))), rtol=1e-12)
