"""Bad and odd inputs of the linear machines: refused with a reason, or handled like their plain equivalent."""

import numpy as np
import pytest
from scipy import sparse

from mercer import LinearSVC, LinearSVR

rng = np.random.default_rng(0)
Y = np.repeat([0, 1], 20)
X = rng.normal(size=(40, 3)) + Y[:, None]


def csr(data, indices, indptr, shape):
    """A CSR matrix without scipy's checks."""
    matrix = sparse.csr_array(shape)
    matrix.data, matrix.indices, matrix.indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    return matrix


REFUSED = {
    "column out of range": (lambda: LinearSVC().fit(csr([1.0, 2.0], [0, 1000], [0, 1, 2], (2, 3)), [0, 1]), "1000"),
    "negative column": (lambda: LinearSVC().fit(csr([1.0, 2.0], [0, -1], [0, 1, 2], (2, 3)), [0, 1]), "-1"),
    "falling indptr": (lambda: LinearSVC().fit(csr([1.0, 2.0], [0, 1], [0, 2, 1], (2, 3)), [0, 1]), "indptr"),
    "NaN": (lambda: LinearSVC().fit(np.where(np.eye(40, 3) > 0, np.nan, X), Y), r"NaN.*X\[0, 0\]"),
    "NaN in CSR": (lambda: LinearSVC().fit(sparse.csr_array(np.where(np.eye(40, 3) > 0, np.nan, X)), Y), "NaN"),
    "NaN in y": (lambda: LinearSVR().fit(X, np.where(Y > 0, np.nan, 1.0)), r"y\[20\]"),
    "one class": (lambda: LinearSVC().fit(X, np.zeros(40)), "1 class"),
    "negative C": (lambda: LinearSVC(C=-1).fit(X, Y), "C=-1"),
    "unknown loss": (lambda: LinearSVC(loss="l2").fit(X, Y), "'squared_hinge', 'hinge'"),
    "unknown bias": (lambda: LinearSVC(bias="free").fit(X, Y), "regularized"),
    "unknown solver": (lambda: LinearSVC(solver="sgd").fit(X, Y), "newton"),
    "nothing to stop at": (lambda: LinearSVC(tol=None).fit(X, Y), "gap_tol"),
    "negative tube": (lambda: LinearSVR(epsilon=-0.1).fit(X, Y), "epsilon=-0.1"),
    "negative weight": (lambda: LinearSVC().fit(X, Y, sample_weight=np.full(40, -1.0)), r"sample_weight\[0\]"),
    "no weight": (lambda: LinearSVR().fit(X, Y, sample_weight=np.zeros(40)), "zero"),
    "other columns": (lambda: LinearSVC().fit(X, Y).predict(X[:, :2]), "2 features"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name):
    act, text = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=text):
        act()


@pytest.mark.parametrize("solver", ["newton", "dual"])
def test_unsorted_and_repeated_indices_mean_their_sum(solver):
    given = csr([1.0, 2.0, 0.5, 3.0, 1.0], [2, 0, 0, 1, 2], [0, 3, 3, 5], (3, 3))
    before = given.indices.copy()
    plain = np.array([[2.5, 0, 1.0], [0, 0, 0], [0, 3.0, 1.0]])
    options = {"solver": solver, "tol": 1e-8}
    a, b = (LinearSVC(**options).fit(data, [0, 1, 1]) for data in (given, plain))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    np.testing.assert_array_equal(given.indices, before)


@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize("bias", [True, False, "regularized"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_of_zeros_only(solver, bias, loss):
    model = LinearSVC(solver=solver, bias=bias, loss=loss).fit(sparse.csr_array((6, 4)), [0, 1, 1, 1, 0, 1])
    assert model.converged_
    np.testing.assert_array_equal(model.coef_, 0.0)


def test_wide_indices_beyond_32_bits_stay_whole():
    # Two stored rows of int64 indices: the core must not squeeze them into 32 bits on the way.
    indices = np.array([5, 70_000, 17, 3], dtype=np.int64)
    wide = sparse.csr_array((np.ones(4), indices, np.arange(5, dtype=np.int64)), shape=(4, 70_001))
    model = LinearSVC(tol=1e-8).fit(wide, [0, 1, 0, 1])
    narrow = LinearSVC(tol=1e-8).fit(wide[:, [5, 70_000, 17, 3]], [0, 1, 0, 1])
    np.testing.assert_allclose(model.coef_[0, [5, 70_000, 17, 3]], narrow.coef_[0], atol=1e-6)
    assert np.count_nonzero(model.coef_) == 4


def _columns_beyond_31_bits():
    return sparse.csr_array(
        (np.ones(4), np.array([5, 2**31 + 7, 17, 2**40], dtype=np.int64), np.arange(5, dtype=np.int64)),
        shape=(4, 2**40 + 1),
    )


@pytest.mark.parametrize("estimator", [LinearSVC(), LinearSVC(solver="dual"), LinearSVR()])
def test_more_columns_than_memory_are_refused_before_anything_is_allocated(estimator):
    # Eight terabytes of weights: an error that says so, not a crash, a hang or an index cut to 32 bits.
    with pytest.raises((ValueError, MemoryError), match=r"1099511627777|8\.00 TiB"):
        estimator.fit(_columns_beyond_31_bits(), [0, 1, 0, 1])
