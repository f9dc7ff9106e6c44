"""LinearSVR against the normal equations, and against scikit-learn's SVR with a linear kernel.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
LIBLINEAR, solvers, units and files: tests/estimators/test_linear.py, tests/files/test_liblinear_estimator.py.
Solvers: tests/solvers/linear. Empty columns: tests/estimators/test_empty_columns.py.
Terms of the certificate: tests/certificates/test_linear_values.py.
Interruption: tests/behaviour/test_interrupt_linear.py.
A C that does not suit y: tests/estimators/fitting/test_price_and_scale.py.
"""

import numpy as np
import pytest
from sklearn import svm

from mercer import LinearSVR

rng = np.random.default_rng(5)
X = rng.normal(size=(90, 4)) + 1.0
Y = X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + 0.4 * rng.normal(size=90)


@pytest.mark.parametrize("C", [0.01, 2.0])
def test_squared_errors_without_a_tube_are_ridge_regression(C):
    """½‖w‖² + CΣ(y − w'x − b)²: (X'X + I/2C)w = X'y for centred X and y."""
    model = LinearSVR(C=C, epsilon=0.0, loss="squared_epsilon_insensitive", tol=1e-12).fit(X, Y)
    Z, t = X - X.mean(axis=0), Y - Y.mean()
    w = np.linalg.solve(Z.T @ Z + np.eye(4) / (2 * C), Z.T @ t)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, Y.mean() - X.mean(axis=0) @ w, rtol=1e-7)


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_the_tube_is_scikit_learns_svr_with_a_linear_kernel(epsilon):
    model = LinearSVR(C=0.3, epsilon=epsilon, tol=1e-10).fit(X, Y)
    peer = svm.SVR(C=0.3, epsilon=epsilon, kernel="linear", tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-5)


@pytest.mark.parametrize("options", [{"solver": "dual"}, {"gap_tol": 1e-9}], ids=str)
def test_without_features_it_is_the_median(options):
    y = rng.normal(size=31)
    model = LinearSVR(tol=1e-10, **options).fit(np.zeros((31, 1)), y)
    assert model.predict([[0.0]])[0] == pytest.approx(np.median(y), abs=1e-8)


@pytest.mark.parametrize(("solver", "scale"), [("newton", 0.01), ("newton", 1.0), ("dual", 1.0)])
@pytest.mark.parametrize("seed", range(5))
def test_a_fit_that_converged_to_a_small_tol_has_the_optimal_intercept(seed, solver, scale):
    """The sum of absolute errors at the weights of the fit is least at the median of y − w'x."""
    draws = np.random.default_rng(seed)
    A = scale * draws.normal(size=(31, 2))
    y = A[:, 0] / scale + draws.normal(size=31)
    model = LinearSVR(C=0.1, tol=1e-10, solver=solver).fit(A, y)
    assert model.converged_
    assert model.certificate_.relative_gap < 1e-9
    assert model.intercept_[0] == pytest.approx(np.median(y - A @ model.coef_), abs=1e-8)
