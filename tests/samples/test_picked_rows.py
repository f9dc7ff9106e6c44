"""Large arrays are not copied into canonical order, but read through it: to the same bits as a copy."""

import numpy as np
import pytest

import mercer.samples.arrays
from contracts.same_fit import assert_identical
from mercer import SVC, SVR, KernelPCA, LinearSVC, LinearSVR, NuSVC, OneClassSVM, RLSClassifier, RLSRegressor
from mercer.kernels import Gaussian, Laplacian
from mercer.samples.arrays import PickedRows, copy_short_rows, moments, pick, take


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300) > 0).astype(int)


@pytest.fixture
def always_picked(monkeypatch):
    monkeypatch.setattr(mercer.samples.arrays, "PICKED_BYTES", 0)
    monkeypatch.setattr(mercer.samples.arrays, "_LONG_ROW_BYTES", 0)


def test_they_read_like_a_copy(data):
    X, _ = data
    which = np.random.default_rng(1).permutation(len(X))[:200]
    for dtype in (np.float64, np.float32):
        picked, copied = PickedRows(X.astype(dtype), which, 2), X.astype(dtype)[which]
        assert (picked.shape, picked.dtype, len(picked), picked.nbytes) == (copied.shape, dtype, 200, copied.nbytes)
        np.testing.assert_array_equal(picked[5:70:3], copied[5:70:3])
        np.testing.assert_array_equal(take(picked, np.array([7, 3, 3])), copied[[7, 3, 3]])
        np.testing.assert_array_equal(np.asarray(picked), copied)
        for found, truth in zip(moments(picked), moments(copied), strict=True):
            np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-15)
        with pytest.raises(TypeError, match="index blocks"):
            list(picked)


def test_small_arrays_and_what_is_none_are_copied(data):
    X, _ = data
    rows = np.arange(len(X))[::-1]
    assert isinstance(pick(X, rows, 1), np.ndarray)
    assert pick(["a", "b"], np.array([1, 0]), 1) == ["b", "a"]
    large = np.zeros((mercer.samples.arrays.PICKED_BYTES // 8000, 1001))
    assert isinstance(pick(large, np.arange(len(large)), 1), PickedRows)
    assert isinstance(pick(large, np.arange(9), 1), np.ndarray)


def test_short_rows_are_copied_for_many_passes(data):
    X, _ = data
    picked = PickedRows(X, np.arange(len(X))[::-1], 1)
    np.testing.assert_array_equal(copy_short_rows(picked), X[::-1])
    assert isinstance(copy_short_rows(picked), np.ndarray)
    wide = PickedRows(np.zeros((3, 1000)), np.array([2, 0]), 1)
    assert copy_short_rows(wide) is wide


MACHINES = {
    "SVC": lambda: SVC(C=3.0),
    "SVC, linear": lambda: SVC(kernel="linear"),
    "SVC, polynomial": lambda: SVC(kernel="poly", degree=2),
    "SVC, Laplacian": lambda: SVC(kernel=Laplacian("median")),
    "SVC, no recipe": lambda: SVC(kernel=Gaussian(0.5) ** 2 + Laplacian(0.1) * Gaussian(1.0)),
    "SVC, hard margin": lambda: SVC(C=np.inf, gamma=5.0),
    "NuSVC": lambda: NuSVC(nu=0.3),
    "OneClassSVM": lambda: OneClassSVM(nu=0.2),
    "SVR": lambda: SVR(epsilon=0.1),
    "LinearSVC": lambda: LinearSVC(),
    "LinearSVR": lambda: LinearSVR(),
    "RLSRegressor": lambda: RLSRegressor(lam=0.1),
    "RLSRegressor, linear": lambda: RLSRegressor(lam=0.1, kernel="linear"),
    "RLSRegressor, LSQR": lambda: RLSRegressor(lam=0.1, kernel="linear", solver="lsqr"),
    "RLSClassifier": lambda: RLSClassifier(lam=0.1),
    "KernelPCA": lambda: KernelPCA(n_components=3),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neither_order_nor_threads_matter_to_the_last_bit(data, always_picked, name, dtype):
    X, y = data
    X, y = np.concatenate([X, X[:40]]).astype(dtype), np.concatenate([y, y[:40]])
    order = np.random.default_rng(2).permutation(len(X))
    values = [
        _values(MACHINES[name]().set_params(**({"n_jobs": n} if name != "KernelPCA" else {})).fit(X[some], y[some]), X)
        for n, some in ((1, slice(None)), (2, order), (5, order[::-1]))
    ]
    for other in values[1:]:
        np.testing.assert_array_equal(other, values[0])


def test_the_same_as_with_a_copy_where_no_sum_is_taken(data, monkeypatch):
    """With a number for gamma and a kernel of inner products nothing is summed over the rows in another way."""
    X, y = data
    models = []
    for size in (0, mercer.samples.arrays.PICKED_BYTES):
        monkeypatch.setattr(mercer.samples.arrays, "PICKED_BYTES", size)
        models.append(SVC(kernel="poly", gamma=0.3).fit(X, y))
    assert_identical(*models, X)


def _values(model, X):
    names = (name for name in ("decision_function", "predict", "transform") if hasattr(model, name))
    return getattr(model, next(names))(X)
