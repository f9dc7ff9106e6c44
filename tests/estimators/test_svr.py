"""SVR by a closed form, the tube and duality.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Agreement with scikit-learn, and weights: tests/estimators/test_machines_agree.py.
Several outputs: tests/estimators/test_several_outputs.py. Losses: tests/estimators/test_regularisation.py.
Units and a C that does not suit y: tests/estimators/fitting/test_units.py,
tests/estimators/fitting/test_price_and_scale.py. Warm start: tests/estimators/fitting/test_warm_start.py.
Leave-one-out: tests/model_selection/paths/test_leave_one_out.py. Files: tests/files.
"""

import numpy as np
import pytest

from mercer import SVR
from reference.problems import gram_matrix

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=80)


@pytest.mark.parametrize("epsilon", [0.0, 0.25])
@pytest.mark.parametrize("C", [0.2, 0.7, 5.0])
def test_the_flattest_line_in_a_tube(C, epsilon):
    """For (−1, −2), (0, 0), (1, 2) the slope is 2 − ε, unless C allows less: 2C."""
    model = SVR(C=C, epsilon=epsilon, kernel="linear", tol=1e-12).fit([[-1.0], [0.0], [1.0]], [-2.0, 0.0, 2.0])
    assert model.coef_[0, 0] == pytest.approx(min(2 - epsilon, 2 * C), rel=1e-9)


def test_coefficients_say_where_a_sample_is():
    """No coefficient inside the tube, C beyond it, and the sign is that of the residual."""
    model = SVR(C=2.0, epsilon=0.15, gamma=0.5, tol=1e-9).fit(X, Y)
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    residual = Y - model.predict(X)
    size, outside = np.abs(residual), np.abs(residual) > 0.15 + 1e-7
    assert outside.any()
    np.testing.assert_array_equal(beta[outside], 2.0 * np.sign(residual[outside]))
    np.testing.assert_array_equal(beta[size < 0.15 - 1e-7], 0.0)
    free = (beta != 0) & (np.abs(beta) < 2.0)
    assert free.any()
    np.testing.assert_allclose(residual[free], 0.15 * np.sign(beta[free]), atol=1e-7)


def test_the_primal_and_the_dual_written_out_are_equal():
    model = SVR(C=2.0, epsilon=0.15, gamma=0.5, tol=1e-9).fit(X, Y)
    beta, K = model.dual_coef_[0], gram_matrix("rbf", X, gamma=0.5)[:, model.support_]
    square = beta @ K[model.support_] @ beta
    errors = np.maximum(0.0, np.abs(Y - K @ beta - model.intercept_[0]) - 0.15)
    dual = Y[model.support_] @ beta - 0.15 * np.abs(beta).sum() - 0.5 * square
    assert 0.5 * square + 2.0 * errors.sum() == pytest.approx(dual, rel=1e-8)
