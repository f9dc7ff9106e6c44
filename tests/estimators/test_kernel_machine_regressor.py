"""KernelMachineRegressor: scipy's minimum of the written-out objective, and what a free intercept implies.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Losses, Fenchel duals and outliers: tests/estimators/test_kernel_machine.py. Own losses and inputs:
tests/estimators/test_kernel_machine_inputs.py. Penalties: tests/estimators/test_kernel_machine_penalties.py.
Numbers near the ends of float64: tests/bad_inputs/test_extremes.py. Time limit: tests/behaviour/test_max_time.py.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer import KernelMachineRegressor
from reference.problems import gram_matrix

rng = np.random.default_rng(13)
X = rng.normal(size=(60, 2))
Y = X[:, 0] - 2 * X[:, 1] + 1.0 + 0.3 * rng.standard_t(2, size=60)


def huber(r, delta):
    return np.where(np.abs(r) <= delta, 0.5 * r**2, delta * (np.abs(r) - 0.5 * delta))


@pytest.mark.parametrize("delta", [0.2, 1.0])
def test_a_linear_kernel_reaches_scipys_minimum(delta):
    """Σ ℓ(y − f(x)) + λ‖w‖² over w and b."""

    def objective(v):
        return huber(Y - X @ v[:2] - v[2], delta).sum() + 0.7 * v[:2] @ v[:2]

    best = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
    model = KernelMachineRegressor("huber", 0.7, delta=delta, kernel="linear", tol=1e-12).fit(X, Y)
    assert model.certificate_.primal == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(model.predict(X), X @ best.x[:2] + best.x[2], atol=1e-4)


def test_residuals_cut_off_at_delta_balance():
    """The slope in b is −Σ clip(y − f, −δ, δ)."""
    residual = Y - KernelMachineRegressor("huber", 0.1, delta=0.2, gamma=0.5, tol=1e-12).fit(X, Y).predict(X)
    assert np.abs(residual).max() > 0.2
    assert np.clip(residual, -0.2, 0.2).sum() == pytest.approx(0.0, abs=1e-5)


def test_huber_with_a_threshold_beyond_all_errors_is_least_squares():
    """½Σr² + λ‖f‖²: (K + 2λI)c = y."""
    model = KernelMachineRegressor("huber", 0.3, delta=1e3, gamma=0.5, bias=False, tol=1e-13).fit(X, Y)
    K = gram_matrix("rbf", X, gamma=0.5)
    np.testing.assert_allclose(model.predict(X), K @ np.linalg.solve(K + 0.6 * np.eye(60), Y), atol=1e-6)
