"""SVDD: distances from the centre, what ν bounds, and the one-class machine for a Gaussian kernel.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Closed form, precomputed kernels, and weights: tests/estimators/test_machines_agree.py.
Random problems: tests/claims/test_machine_properties.py. Solver: tests/solvers/dual/test_one_class.py.
Units: tests/estimators/fitting/test_units.py. Probabilities: tests/calibration/test_novelty.py.
Explanations: tests/inspection/explain/test_shapley.py. Files: tests/files/export/test_onnx_machines.py.
"""

import numpy as np
import pytest
from sklearn import svm

from mercer import SVDD
from reference.problems import gram_matrix

rng = np.random.default_rng(4)
X = rng.normal(size=(75, 3))


@pytest.mark.parametrize(("kernel", "options"), [("linear", {}), ("poly", {"gamma": 0.3, "degree": 2, "coef0": 1.0})])
def test_scores_are_distances_from_the_centre_and_samples_with_free_coefficients_lie_on_the_sphere(kernel, options):
    """‖φ(x) − a‖² = k(x, x) − 2Σα_jk(x_j, x) + α'Kα."""
    model = SVDD(0.2, kernel=kernel, tol=1e-10, **options).fit(X)
    alpha, K = np.zeros(len(X)), gram_matrix(kernel, X, **options)
    alpha[model.support_] = model.dual_coef_[0]
    assert alpha.sum() == pytest.approx(1.0, rel=1e-9)
    squares = np.diag(K) - 2 * K @ alpha + alpha @ K @ alpha
    np.testing.assert_allclose(-model.score_samples(X), squares, rtol=1e-8, atol=1e-8)
    bound = 1 / (0.2 * len(X))
    free = (alpha > 0) & (alpha < bound * (1 - 1e-9))
    np.testing.assert_allclose(squares[free], model.radius_**2, rtol=1e-6)
    assert (squares[alpha == 0] <= model.radius_**2 * (1 + 1e-6)).all()


@pytest.mark.parametrize("nu", [0.05, 0.31, 0.8])
def test_nu_bounds_outliers_and_support_vectors(nu):
    model = SVDD(nu, kernel="linear", tol=1e-10).fit(X)
    assert (model.decision_function(X) < -1e-6).sum() <= nu * len(X) <= model.n_support_[0]


def test_with_a_gaussian_kernel_it_decides_as_scikit_learns_one_class_machine():
    model, peer = (kind(nu=0.31, gamma=0.4, tol=1e-9).fit(X) for kind in (SVDD, svm.OneClassSVM))
    new = rng.normal(size=(300, 3))
    far = np.abs(peer.decision_function(new)) > 1e-6
    np.testing.assert_array_equal(model.predict(new)[far], peer.predict(new)[far])
