"""NystromRLSClassifier: the normal equations over the landmarks, solved by NumPy.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Landmarks, streams, limits, inputs and files: tests/estimators/test_nystrom_rls.py, tests/files/test_stored_rows.py.
Proofs and weights: tests/estimators/test_least_squares_proofs.py. Folds: tests/calibration/test_learnt_again.py.
Engines: tests/places/engines/test_torch_sparse.py.
"""

import numpy as np

from mercer import NystromRLSClassifier
from reference.problems import gram_matrix

rng = np.random.default_rng(11)
X, NEW = rng.normal(size=(120, 2)), rng.normal(size=(40, 2))
SIGNAL = X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=120)
Z = X[:12]


def solved(signs, Z, lam):
    """f at NEW from (K_nm'K_nm + λK_mm)c = K_nm'(±1)."""
    B, M = gram_matrix("rbf", X, Z, gamma=0.7), gram_matrix("rbf", Z, gamma=0.7)
    return gram_matrix("rbf", NEW, Z, gamma=0.7) @ np.linalg.solve(B.T @ B + lam * M, B.T @ signs)


def test_two_classes_by_the_normal_equations():
    y = np.where(SIGNAL > 0, "yes", "no")
    model = NystromRLSClassifier(0.4, landmarks=Z, gamma=0.7, bias=False, tol=1e-12).fit(X, y)
    f = solved(np.where(SIGNAL > 0, 1.0, -1.0), Z, 0.4)
    np.testing.assert_allclose(model.decision_function(NEW), f, atol=1e-7)
    np.testing.assert_array_equal(model.predict(NEW), np.where(f > 0, "yes", "no"))


def test_each_of_three_classes_is_set_against_the_rest():
    y = np.digitize(SIGNAL, [-0.4, 0.4])
    model = NystromRLSClassifier(0.4, landmarks=Z, gamma=0.7, bias=False, tol=1e-12).fit(X, y)
    f = solved(np.where(y[:, None] == np.arange(3), 1.0, -1.0), Z, 0.4)
    np.testing.assert_allclose(model.decision_function(NEW), f, atol=1e-7)
    np.testing.assert_array_equal(model.predict(NEW), f.argmax(axis=1))


def test_all_samples_as_landmarks_are_kernel_ridge_regression():
    signs = np.where(SIGNAL > 0, 1.0, -1.0)
    model = NystromRLSClassifier(0.4, n_landmarks=120, gamma=0.7, bias=False, tol=1e-13, random_state=0).fit(X, signs)
    c = np.linalg.solve(gram_matrix("rbf", X, gamma=0.7) + 0.4 * np.eye(120), signs)
    np.testing.assert_allclose(model.decision_function(NEW), gram_matrix("rbf", NEW, X, gamma=0.7) @ c, atol=1e-5)
