"""MKLClassifier: scikit-learn's SVC with the weighted sum, and no better weights on a fine grid.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
A cone solver's optimum, several classes, given matrices, and the certificate in a hundred digits:
tests/estimators/test_mkl.py.
Certificate of the weights: tests/certificates/test_kernel_weights.py, tests/reference/kernel_weights.py.
Folds: tests/calibration/test_learnt_again.py. Files: tests/files/mercer_file/test_model_file.py.
"""

import numpy as np
import pytest
from sklearn import svm

from mercer import MKLClassifier
from reference.problems import gram_matrix

rng = np.random.default_rng(6)
X = rng.normal(size=(60, 2))
Y = (X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=60) > 0).astype(int)
LINEAR, GAUSSIAN = gram_matrix("linear", X), gram_matrix("rbf", X, gamma=1.0)


def optimum(K):
    peer = svm.SVC(C=1.5, kernel="precomputed", tol=1e-8).fit(K, Y)
    beta = peer.dual_coef_[0]
    return peer, np.abs(beta).sum() - 0.5 * beta @ K[np.ix_(peer.support_, peer.support_)] @ beta


@pytest.fixture(scope="module")
def model():
    return MKLClassifier(1.5, kernel=("linear", "rbf"), gamma=1.0, normalise=False, tol=1e-6).fit(X, Y)


def test_it_is_scikit_learns_svc_with_the_weighted_sum(model):
    K = model.weights_[0] * LINEAR + model.weights_[1] * GAUSSIAN
    np.testing.assert_allclose(model.decision_function(X), optimum(K)[0].decision_function(K), atol=1e-3)


def test_no_weights_on_a_grid_are_better(model):
    """min over θ ≥ 0, θ₁ + θ₂ = 1 of the optimum that scikit-learn finds with θ₁K₁ + θ₂K₂."""
    assert model.weights_.min() > 0.01
    assert model.weights_.sum() == pytest.approx(1.0, rel=1e-9)
    shares = np.linspace(0, 1, 41)
    values = [optimum(share * LINEAR + (1 - share) * GAUSSIAN)[1] for share in shares]
    assert model.certificate_.dual <= min(values) * (1 + 1e-7)
    assert model.certificate_.primal == pytest.approx(min(values), rel=1e-3)
    assert abs(shares[np.argmin(values)] - model.weights_[0]) <= 0.05
