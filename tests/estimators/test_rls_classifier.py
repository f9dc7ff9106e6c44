"""RLSClassifier: least squares with targets ±1, solved by NumPy.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Precision, solvers, class weights and files: tests/estimators/test_rls.py, tests/solvers/least_squares.
Every kernel and kind of data: tests/estimators/test_rls_matrix.py. Streams: tests/estimators/test_rls_updates.py.
Proofs and weights: tests/estimators/test_least_squares_proofs.py. Calibration: tests/calibration/test_weights.py.
"""

import numpy as np

from mercer import RLSClassifier
from reference.problems import gram_matrix


def solved(X, signs, lam, gamma):
    """f for each column of signs, from (K + λI)c + 1b = ±1 and 1'c = 0."""
    n, K = len(X), gram_matrix("rbf", X, gamma=gamma)
    border = np.block([[K + lam * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(border, np.r_[signs, np.zeros((1, signs.shape[1]))])
    return K @ solution[:-1] + solution[-1]


def test_two_classes_are_targets_of_plus_and_minus_one(two):
    X, y = two[0][::3], two[1][::3]
    model = RLSClassifier(0.5, gamma=0.02).fit(X, y)
    f = solved(X, np.where(y == 1, 1.0, -1.0)[:, None], 0.5, 0.02)[:, 0]
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), (f > 0).astype(int))


def test_each_of_several_classes_is_set_against_the_rest(three):
    X, y = three
    X, y = np.unique(X, axis=0, return_index=True)[0], y[np.unique(X, axis=0, return_index=True)[1]]
    model = RLSClassifier(0.3, gamma=0.2).fit(X, y)
    f = solved(X, np.where(y[:, None] == np.arange(3), 1.0, -1.0), 0.3, 0.2)
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), f.argmax(axis=1))
    np.testing.assert_allclose(f.sum(axis=1), -1.0, atol=1e-8)  # as the targets of each sample do
