"""LinearSVC by its optimality conditions, and against scikit-learn's SVC with a linear kernel.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
LIBLINEAR, solvers, paths, columns and files: tests/estimators/test_linear.py, tests/files/test_liblinear_estimator.py.
Solvers: tests/solvers/linear. Empty columns: tests/estimators/test_empty_columns.py.
Bias and C: tests/estimators/test_regularisation.py. Margins: tests/estimators/test_margins_of_machines.py.
Interruption: tests/behaviour/test_interrupt_linear.py.
Printed lines: tests/estimators/fitting/test_reporting_linear.py.
"""

import numpy as np
import pytest
from sklearn import svm

from mercer import LinearSVC


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_squared_hinge_has_no_slope_at_its_minimum(two, C):
    """w = 2CΣ y_iξ_ix_i and Σ y_iξ_i = 0, with ξ_i = max(0, 1 − y_if(x_i))."""
    X, y = two
    model = LinearSVC(C, tol=1e-10).fit(X, y)
    sign, w = np.where(y == 1, 1.0, -1.0), model.coef_[0]
    pull = 2 * C * sign * np.maximum(0.0, 1 - sign * (X @ w + model.intercept_[0]))
    np.testing.assert_allclose(pull @ X, w, atol=1e-6 * np.abs(w).max())
    assert pull.sum() == pytest.approx(0.0, abs=1e-6 * np.abs(pull).sum())


def test_the_hinge_is_scikit_learns_svc_with_a_linear_kernel(two):
    X, y = two
    model = LinearSVC(0.05, loss="hinge", tol=1e-9).fit(X, y)
    peer = svm.SVC(C=0.05, kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-5)


def test_classes_are_separate_problems(three):
    X, y = three
    model = LinearSVC(0.5, loss="hinge", tol=1e-9).fit(X, y)
    for k in range(3):
        peer = svm.SVC(C=0.5, kernel="linear", tol=1e-8).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], peer.coef_[0], atol=1e-4)
