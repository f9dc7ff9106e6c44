"""Nystrom: inner products of features of new samples, and scikit-learn's map on the same landmarks.

scikit-learn's checks, errors and sparse samples: tests/inspection/features/test_features.py. Tools: tests/tools.
Files: tests/files/mercer_file/test_feature_maps.py. Ctrl-C: tests/runtime/test_long_calls.py.
Steps that learn from all samples, in folds: tests/calibration/test_symmetry.py.
Refusals: tests/behaviour/test_clear_refusals.py.
"""

import numpy as np
from sklearn.kernel_approximation import Nystroem

from mercer.inspection.features import Nystrom
from mercer.kernels import Gaussian
from reference.problems import gram_matrix

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(40, 3)), rng.normal(size=(15, 3))


def test_features_of_new_samples_are_projections_on_the_landmarks():
    """Inner products are k(x, Z) K_ZZ⁻¹ k(Z, x')."""
    model = Nystrom(Gaussian(gamma=0.5), 8).fit(X)
    Z = X[model.indices_]
    A, B = gram_matrix("rbf", NEW, Z, gamma=0.5), gram_matrix("rbf", X, Z, gamma=0.5)
    expected = A @ np.linalg.solve(gram_matrix("rbf", Z, gamma=0.5), B.T)
    np.testing.assert_allclose(model.transform(NEW) @ model.transform(X).T, expected, atol=1e-9)


def test_with_every_sample_as_a_landmark_it_is_scikit_learns():
    model = Nystrom(Gaussian(gamma=0.5), 40).fit(X)
    peer = Nystroem(kernel="rbf", gamma=0.5, n_components=40, random_state=0).fit(X)
    ours, theirs = model.transform(NEW), peer.transform(NEW)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-6)
    np.testing.assert_allclose(model.transform(X) @ model.transform(X).T, gram_matrix("rbf", X, gamma=0.5), atol=1e-6)
