"""SVC against scikit-learn, closed forms and duality.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Laws of the problem: tests/claims/test_properties.py. Solvers: tests/solvers/dual. Files: tests/files.
Hard margin: tests/estimators/test_hard_margin.py. Slack, bias and theta: tests/estimators/test_regularisation.py.
Several classes: tests/estimators/test_joint_machines.py, tests/estimators/test_many_classes.py.
Margins: tests/estimators/test_margins_of_machines.py. Warm start: tests/estimators/fitting/test_warm_start.py.
Path in C and leave-one-out: tests/model_selection/paths. Weights: tests/estimators/test_machines_agree.py.
"""

import numpy as np
import pytest
from sklearn import svm

from mercer import SVC
from reference.problems import gram_matrix


def test_breast_cancer_as_scikit_learn_has_it(two):
    X, y = two
    model, peer = (kind(C=10.0, gamma=0.03, tol=1e-6).fit(X, y) for kind in (SVC, svm.SVC))
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


@pytest.mark.parametrize("C", [0.1, 0.3, 0.5, 2.0])
def test_two_points_on_a_line(C):
    """α = min(C, ½) for x = ±1, so that f(x) = min(2C, 1)·x."""
    model = SVC(C=C, kernel="linear", tol=1e-12).fit([[-1.0], [1.0]], [0, 1])
    assert model.coef_[0, 0] == pytest.approx(min(2 * C, 1.0), rel=1e-9)
    np.testing.assert_allclose(model.dual_coef_, [[-min(C, 0.5), min(C, 0.5)]], rtol=1e-9)


def test_the_primal_and_the_dual_written_out_are_equal(two):
    X, y = two
    model = SVC(C=3.0, gamma=0.05, tol=1e-8).fit(X, y)
    beta = model.dual_coef_[0]
    K = gram_matrix("rbf", X, gamma=0.05)[:, model.support_]
    square, sign = beta @ K[model.support_] @ beta, np.where(y == 1, 1.0, -1.0)
    f = K @ beta + model.intercept_[0]
    primal = 0.5 * square + 3.0 * np.maximum(0.0, 1.0 - sign * f).sum()
    assert abs(beta.sum()) <= 1e-9
    assert primal == pytest.approx(np.abs(beta).sum() - 0.5 * square, rel=1e-7)
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-9)
