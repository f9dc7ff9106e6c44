"""RLSRegressorCV: leave-one-out and generalised cross-validation written out with NumPy.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
RidgeCV, refits, and grids of kernels: tests/estimators/test_rls_cv.py. Machine at any λ:
tests/estimators/test_ridge_path_at.py. Eigenvalues: tests/solvers/least_squares/test_eigen.py.
Every kernel and kind of data: tests/estimators/test_rls_matrix.py. Units: tests/estimators/test_least_squares_units.py.
Pictures: tests/inspection/displays/test_model_pictures.py.
"""

import numpy as np
import pytest

from mercer import RLSRegressorCV
from reference.problems import gram_matrix

rng = np.random.default_rng(9)
X = rng.uniform(-2, 2, size=(40, 1))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=40)
K, LAMS = gram_matrix("rbf", X, gamma=2.0), np.geomspace(1e-4, 1e2, 13)


def errors_without_each_sample(lam):
    errors = np.empty(40)
    for i in range(40):
        rest = np.arange(40) != i
        c = np.linalg.solve(K[np.ix_(rest, rest)] + lam * np.eye(39), Y[rest])
        errors[i] = Y[i] - K[i, rest] @ c
    return errors


def test_the_chosen_lambda_has_the_smallest_error_of_fits_without_each_sample():
    model = RLSRegressorCV(LAMS, gamma=2.0, bias=False).fit(X, Y)
    errors = np.array([errors_without_each_sample(lam) for lam in LAMS])
    best = np.argmin((errors**2).sum(axis=1))
    assert 0 < best < len(LAMS) - 1, "an end of the range shows nothing"
    assert model.lam_ == LAMS[best]
    np.testing.assert_allclose(np.abs(model.loo_residuals_), np.abs(errors[best]), atol=1e-8)


def test_gcv_is_craven_and_wahbas():
    """n‖(I − H)y‖²/tr(I − H)² with H = K(K + λI)⁻¹."""
    scores = []
    for lam in LAMS:
        rest = np.eye(40) - K @ np.linalg.inv(K + lam * np.eye(40))
        scores.append(40 * ((rest @ Y) ** 2).sum() / np.trace(rest) ** 2)
    model = RLSRegressorCV(LAMS, gamma=2.0, bias=False, criterion="gcv").fit(X, Y)
    assert model.lam_ == LAMS[np.argmin(scores)]


def test_the_machine_is_that_of_the_chosen_lambda():
    model = RLSRegressorCV(LAMS, gamma=2.0, bias=False).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), K @ np.linalg.solve(K + model.lam_ * np.eye(40), Y), atol=1e-8)
    assert model.certificate_.relative_gap == pytest.approx(0.0, abs=1e-8)
