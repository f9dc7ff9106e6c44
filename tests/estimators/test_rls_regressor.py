"""RLSRegressor: its linear system solved by NumPy.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Precision, solvers, limits, linear form and files: tests/estimators/test_rls.py, tests/solvers/least_squares.
Every kernel and kind of data: tests/estimators/test_rls_matrix.py. Streams: tests/estimators/test_rls_updates.py.
Proofs and weights: tests/estimators/test_least_squares_proofs.py. Units: tests/estimators/test_least_squares_units.py.
Laplacian regularisation: tests/estimators/test_semi_supervised.py. Intervals: tests/calibration.
"""

import numpy as np
import pytest

from mercer import RLSRegressor
from reference.problems import gram_matrix

rng = np.random.default_rng(8)
X, NEW = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
Y = np.sin(X[:, 0]) + 2.0 + 0.1 * rng.normal(size=50)
K, CROSS = gram_matrix("rbf", X, gamma=0.4), gram_matrix("rbf", NEW, X, gamma=0.4)


@pytest.mark.parametrize("lam", [1e-3, 0.5, 100.0])
def test_without_bias_it_solves_K_plus_lambda(lam):
    model = RLSRegressor(lam, gamma=0.4, bias=False).fit(X, Y)
    c = np.linalg.solve(K + lam * np.eye(50), Y)
    np.testing.assert_allclose(model.dual_coef_, c, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.predict(NEW), CROSS @ c, rtol=1e-8, atol=1e-9)


def test_a_bias_makes_the_coefficients_sum_to_zero():
    """The bordered system (K + λI)c + 1b = y, 1'c = 0."""
    model = RLSRegressor(0.5, gamma=0.4).fit(X, Y)
    border = np.block([[K + 0.5 * np.eye(50), np.ones((50, 1))], [np.ones((1, 50)), np.zeros((1, 1))]])
    *c, b = np.linalg.solve(border, np.r_[Y, 0.0])
    np.testing.assert_allclose(model.dual_coef_, c, rtol=1e-7, atol=1e-9)
    assert model.intercept_[0] == pytest.approx(b, rel=1e-9)


def test_weights_divide_lambda():
    weight = rng.uniform(0.2, 5.0, size=50)
    model = RLSRegressor(0.5, gamma=0.4, bias=False).fit(X, Y, sample_weight=weight)
    c = np.linalg.solve(K + 0.5 * np.diag(1 / weight), Y)
    np.testing.assert_allclose(model.dual_coef_, c, rtol=1e-7, atol=1e-9)


def test_several_outputs_are_several_right_hand_sides():
    targets = np.column_stack([Y, X[:, 1] ** 2])
    model = RLSRegressor(0.5, gamma=0.4, bias=False).fit(X, targets)
    np.testing.assert_allclose(model.predict(NEW), CROSS @ np.linalg.solve(K + 0.5 * np.eye(50), targets), rtol=1e-8)
