"""OneClassSVM: what ν bounds, and the plane between the samples and the origin.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Agreement with scikit-learn, and weights: tests/estimators/test_machines_agree.py.
ν for random problems: tests/claims/test_machine_properties.py. Solver: tests/solvers/dual/test_one_class.py.
Probabilities: tests/calibration/test_novelty.py. Search for ν: tests/model_selection/test_tuned_one_class_svm.py.
Units: tests/estimators/fitting/test_units.py. Pictures: tests/inspection/displays/test_decision.py.
"""

import numpy as np
import pytest

from mercer import OneClassSVM
from reference.problems import gram_matrix

rng = np.random.default_rng(3)
X = rng.normal(size=(75, 2))


@pytest.mark.parametrize("nu", [0.05, 0.31, 0.8])
def test_nu_bounds_outliers_and_support_vectors(nu):
    model = OneClassSVM(nu, gamma=0.5, tol=1e-9).fit(X)
    assert (model.decision_function(X) < -1e-7).sum() <= nu * len(X) <= model.n_support_[0]


def test_coefficients_sum_to_nu_n_and_make_the_function():
    model = OneClassSVM(0.31, gamma=0.5, tol=1e-9).fit(X)
    alpha = model.dual_coef_[0]
    assert alpha.sum() == pytest.approx(0.31 * len(X), rel=1e-9)
    assert alpha.min() > 0
    assert alpha.max() <= 1
    f = gram_matrix("rbf", X, gamma=0.5)[:, model.support_] @ alpha - model.offset_
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-9)


def test_the_plane_is_orthogonal_to_the_point_of_the_hull_nearest_to_the_origin():
    """In the plane that point lies on a segment between two samples."""
    Z = X + np.array([4.0, 3.0])
    steps = Z - Z[:, None]
    squares = (steps**2).sum(axis=2)
    shares = np.clip(-(Z[:, None] * steps).sum(axis=2) / np.where(squares > 0, squares, 1.0), 0.0, 1.0)
    points = (Z[:, None] + shares[:, :, None] * steps).reshape(-1, 2)
    nearest = points[np.argmin((points**2).sum(axis=1))]
    model = OneClassSVM(0.5 / len(Z), kernel="linear", tol=1e-10).fit(Z)
    w = model.coef_[0]
    np.testing.assert_allclose(w / np.linalg.norm(w), nearest / np.linalg.norm(nearest), atol=1e-6)
    assert model.offset_ / np.linalg.norm(w) == pytest.approx(np.linalg.norm(nearest), rel=1e-6)
