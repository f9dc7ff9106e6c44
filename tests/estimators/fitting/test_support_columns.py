"""A machine on a precomputed kernel predicts from the support vectors' columns alone."""

import numpy as np
import pytest

import mercer
from mercer import SVC, SVR, OneClassSVM
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X, new = rng.normal(size=(60, 2)), rng.normal(size=(9, 2))
kernel = Gaussian(gamma=0.5)
K, cross = kernel(X), kernel(new, X)


@pytest.mark.parametrize(
    ("machine", "y"),
    [
        (SVC(kernel="precomputed"), X[:, 0] > 0),
        (SVC(kernel="precomputed"), np.digitize(X[:, 0], [-0.5, 0.5])),
        (SVC(kernel="precomputed", C=1e-3), np.arange(60) % 2),  # all are support vectors, grouped by class
        (SVR(kernel="precomputed", epsilon=0.3), X[:, 1]),
        (OneClassSVM(kernel="precomputed", nu=0.2), None),
    ],
    ids=repr,
)
def test_the_same_decisions(machine, y, tmp_path):
    model = machine.fit(K, y)
    short = model.for_support_vectors()
    values = "predict" if isinstance(machine, SVR) else "decision_function"
    expected = getattr(model, values)(cross)
    np.testing.assert_array_equal(getattr(short, values)(cross[:, model.support_]), expected)
    np.testing.assert_array_equal(getattr(model, values)(cross), expected)  # which stays as it was
    with pytest.raises(ValueError, match="features"):
        short.predict(np.zeros((1, 61)))
    mercer.save(short, tmp_path / "short.mercer")
    loaded = mercer.load(tmp_path / "short.mercer")
    np.testing.assert_array_equal(getattr(loaded, values)(cross[:, model.support_]), expected)


def test_only_of_a_matrix():
    with pytest.raises(ValueError, match="is not precomputed: predict takes samples"):
        SVC().fit(X, X[:, 0] > 0).for_support_vectors()
