"""Passes of the core over rows: against NumPy, to the same bits for any number of threads, bad arguments refused."""

import numpy as np
import pytest

from mercer import _core

THREADS = (1, 2, 5)


@pytest.fixture(params=[np.float32, np.float64])
def given(request):
    """An array of several chunks, and some of its rows in disorder, one of them twice."""
    rng = np.random.default_rng(0)
    X = (3.0 + rng.normal(size=(40_003, 29))).astype(request.param)
    return X, np.append(rng.permutation(len(X))[:35_001], 7)


def same_for_all(call):
    """What a call returns, once it was seen to have the same bits for any number of threads."""
    first, *others = (call(n_threads) for n_threads in THREADS)
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)
    return first


def test_copies_are_those_of_numpy(given):
    X, which = given
    for n_threads in THREADS:
        out = np.empty((len(which), X.shape[1]), X.dtype)
        _core.copy_rows(X, which, out, n_threads)
        np.testing.assert_array_equal(out, X[which])


def test_moments_of_columns_and_rows(given):
    X, which = given
    centre = np.linspace(2.9, 3.1, X.shape[1])
    for some in (which, None):
        wide = (X if some is None else X[some]).astype(np.float64)
        sums, squares = same_for_all(lambda n, some=some: _core.column_moments(X, some, centre, n))
        np.testing.assert_allclose(sums, (wide - centre).sum(axis=0), rtol=1e-12, atol=1e-8)
        np.testing.assert_allclose(squares, ((wide - centre) ** 2).sum(axis=0), rtol=1e-12)
        sums, squares = same_for_all(lambda n, some=some: _core.row_moments(X, some, 2.75, n))
        np.testing.assert_allclose(sums, (wide - 2.75).sum(axis=1), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(squares, ((wide - 2.75) ** 2).sum(axis=1), rtol=1e-12)


def test_one_entry_that_is_not_finite_is_found(given):
    X, _ = given
    X[0, 0] = np.finfo(X.dtype).max
    for n_threads in THREADS:
        assert _core.all_finite(X, n_threads)
        for place in ((0, 0), (len(X) // 2, 3), (len(X) - 1, X.shape[1] - 1)):
            for bad in (np.nan, np.inf, -np.inf):
                other = X.copy()
                other[place] = bad
                assert not _core.all_finite(other, n_threads)


def test_equal_rows(given):
    X, _ = given
    X[:, 1:], X[::2, 0], X[1::2, 0] = 1.0, 0.0, -0.0
    X[5, 28] = 2.0
    left, right = np.array([0, 0, 5, 5, 4]), np.array([1, 2, 5, 6, 5])
    for n_threads in THREADS:
        assert _core.equal_rows(X, left, right, n_threads).tolist() == [1, 1, 1, 0, 0]


def test_prepared_rows_are_those_of_a_copy(given):
    X, which = given
    centre, made = np.linspace(0.0, 3.0, X.shape[1]), []
    for source, some in ((X[which], None), (X, which)):
        rows, norms = np.empty((len(which), X.shape[1]), np.float32), np.empty(len(which), np.float32)
        _core.prepare(source, centre, 0.7, rows, norms, 2, some)
        made.append((rows, norms, *_core.prepare_sparse(source, centre, 0.7, False, False, 2, some)))
    for copied, picked in zip(*made, strict=True):
        np.testing.assert_array_equal(picked, copied)


def test_linear_rows_are_those_of_a_copy(given):
    X, which = given
    rng = np.random.default_rng(1)
    w, c, made = rng.normal(size=X.shape[1]), rng.normal(size=len(which)), []
    for source, some in ((X[which], None), (X, which)):
        rows = _core.dense_rows(source, 2, some)
        product, transposed = np.empty(len(which)), np.empty(X.shape[1])
        rows.product(w, 0.5, product)
        rows.transposed(c, transposed)
        made.append((product, transposed))
    for copied, picked in zip(*made, strict=True):
        np.testing.assert_array_equal(picked, copied)


def test_bad_arguments_are_refused_by_name(given):
    X, which = given
    out = np.empty((len(which), X.shape[1]), X.dtype)
    for words, call in {
        "which": lambda: _core.copy_rows(X, which + 10_000, out, 1),
        "out": lambda: _core.copy_rows(X, which, out[:-1], 1),
        "X": lambda: _core.copy_rows(X[:, ::2], which, out, 1),
        "centre": lambda: _core.column_moments(X, which, np.zeros(3), 1),
        "left": lambda: _core.equal_rows(X, np.array([-1]), np.array([0]), 1),
        "n_threads": lambda: _core.all_finite(X, 0),
    }.items():
        with pytest.raises(ValueError, match=words):
            call()
