"""SVR with several columns of y: one kernel matrix, and each column as if it were alone."""

from functools import partial

import numpy as np
import pytest

import mercer
from mercer import SVR
from mercer.files.libsvm_estimator import libsvm_from_estimator
from mercer.kernels import FromFunction, Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2, 2 * X[:, 2]])


@pytest.mark.parametrize("options", [{}, {"kernel": "linear"}, {"bias": False}, {"loss": "huber"}])
def test_each_column_is_learnt_as_if_alone(options):
    weight = np.arange(50) % 3 * 0.5
    both = SVR(C=3.0, tol=1e-8, **options).fit(X, Y, sample_weight=weight)
    assert both.predict(X).shape == (50, 3)
    for k in range(3):
        alone = SVR(C=3.0, tol=1e-8, **options).fit(X, Y[:, k], sample_weight=weight)
        np.testing.assert_allclose(both.predict(X)[:, k], alone.predict(X), atol=1e-5)
        assert both.certificate_.parts[k].gap == pytest.approx(alone.certificate_.gap, rel=0.5, abs=1e-6)


def test_kernel_values_are_computed_once():
    calls = []

    def counted(A, B):
        calls.append(len(A) * len(B))
        return Gaussian(gamma=0.3)(A, B)

    SVR(kernel=FromFunction(counted)).fit(X, Y[:, 0])
    alone = sum(calls)
    calls.clear()
    SVR(kernel=FromFunction(counted)).fit(X, Y)
    assert sum(calls) < 2.5 * alone


def test_copies_share_and_files_hold_them(tmp_path):
    X2, Y2 = np.vstack([X, X[:5]]), np.vstack([Y, Y[:5]])
    model = SVR().fit(X2, Y2)
    assert model.dual_coef_.shape[0] == 3
    mercer.save(model, tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(X), model.predict(X))
    warm = SVR(warm_start=True).fit(X, Y).fit(X, Y)
    np.testing.assert_allclose(warm.predict(X), SVR().fit(X, Y).predict(X), atol=0.2)


def test_what_is_for_one_output_says_so():
    model = SVR().fit(X, Y)
    with pytest.raises(ValueError, match="output"):
        libsvm_from_estimator(model)
    for one in (model.calibrate, partial(mercer.leave_one_out, model), SVR().partial_fit(X[:20], Y[:20]).partial_fit):
        with pytest.raises(ValueError, match=r"1d array|one output|of one target|takes one target"):
            one(X, Y)
