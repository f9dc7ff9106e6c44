"""What an engine's samples must answer, wherever they live: the same as NumPy of the same samples in this memory."""

from __future__ import annotations

import numpy as np

from mercer.kernels import Gaussian, Linear
from mercer.samples.engine import EngineSamples, engine_of


def check_samples_contract(samples, X):
    """`samples` are the rows of the array X, a few dozen of them, on another engine."""
    _check_facts(samples, X)
    n = len(X)
    rows = np.array([3, 0, 3, n - 1, 1])
    _check_facts(samples.take(rows), X[rows])
    _check_facts(samples.joined(samples.take(rows)), np.concatenate([X, X[rows]]))
    assert samples.take(rows[:0]).shape == (0, X.shape[1])
    _check_copies(samples, X)
    _check_rows_that_are_equal(samples, X)
    _check_kernel_values(samples, X)
    _check_kernel_matrix(samples, X)


def _check_facts(samples, X):
    assert isinstance(samples, EngineSamples)
    assert engine_of(samples) is samples.engine
    assert samples.shape == X.shape
    assert samples.dtype == X.dtype
    assert samples.n_entries <= X.size if samples.sparse else samples.n_entries == X.size
    assert samples.nbytes > 0
    assert samples.first_not_finite() is None
    exact, weight = X.astype(np.float64), 1 + np.arange(len(X)) % 3 * 0.5
    for found, true in zip(samples.moments(), (exact.mean(axis=0), exact.std(axis=0)), strict=True):
        np.testing.assert_allclose(found, true, rtol=1e-12, atol=1e-12)
    for centre in (0.0, 0.7):
        less = exact - centre
        sums = weight @ less.sum(axis=1), weight @ (less**2).sum(axis=1)
        np.testing.assert_allclose(samples.sums_about(centre, weight), sums, rtol=1e-10, atol=1e-10)
    assert samples.extremes() == (X.min(), X.max())
    np.testing.assert_allclose(samples.squared_lengths(), (exact**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(_dense(samples.host()), X)


def _check_copies(samples, X):
    """What comes to this machine is the caller's: nothing else changes with it."""
    rows = np.array([2, 0, 2])
    some = samples.host(rows)
    np.testing.assert_array_equal(_dense(some), X[rows])
    assert type(some) is type(samples.engine.samples(some).host())
    for copy in (some, samples.host()):
        (copy.data if samples.sparse else copy)[:] = 7.0
    np.testing.assert_array_equal(_dense(samples.host()), X)


def _check_rows_that_are_equal(samples, X):
    place = samples.engine.samples
    pattern = np.array([[1.0, 0.0], [1.0, -0.0], [0.0, 1.0], [1.0, 2.0], [1.0, 0.0]], dtype=X.dtype)
    few = place(type(samples.host())(pattern) if samples.sparse else pattern)
    left, right = np.array([0, 0, 0, 2, 4]), np.array([1, 4, 2, 3, 1])
    np.testing.assert_array_equal(few.equal(left, right), [True, True, False, False, True])
    keys = few.hash()
    assert keys.dtype == np.uint64
    np.testing.assert_array_equal(keys[left] == keys[right], [True, True, False, False, True])
    everything = np.concatenate([X, X[::-1]])
    again = samples.joined(samples.take(np.arange(len(X))[::-1])).hash()
    _, same = np.unique(again, return_inverse=True)
    _, true = np.unique(everything + 0.0, axis=0, return_inverse=True)
    assert len(np.unique(same)) == len(np.unique(true))
    np.testing.assert_array_equal(again[: len(X)], again[len(X) :][::-1])


def _check_kernel_values(samples, X):
    exact = X.astype(np.float64)
    few = samples.take(np.arange(4))
    for kernel in (Linear(), Gaussian(0.3), 2 * Linear() + Gaussian(0.1)):
        K = kernel(exact)
        np.testing.assert_allclose(samples.values(kernel), K, rtol=1e-6, atol=1e-6 * np.abs(K).max())
        np.testing.assert_array_equal(samples.values(kernel), samples.values(kernel).T)
        np.testing.assert_allclose(samples.values(kernel, few), K[:, :4], rtol=1e-6, atol=1e-6 * np.abs(K).max())
        np.testing.assert_allclose(samples.diagonal(kernel), np.diag(K), rtol=1e-6)
        assert samples.values(kernel).dtype == samples.diagonal(kernel).dtype == np.float64


def _check_kernel_matrix(samples, X):
    if samples.sparse:
        return
    rows, columns = np.array([0, 3, 1]), np.array([1, 0, 1])
    np.testing.assert_array_equal(samples.entries(rows, columns), X[rows, columns].astype(np.float64))
    np.testing.assert_array_equal(samples.columns(columns).host(), X[:, columns])
    K = (X @ X.T).astype(X.dtype)
    K[2, 1] += 3.0
    assert samples.engine.samples(K).asymmetry() == np.abs(K - K.T).max()


def check_that_bad_entries_are_found(samples_of, X):
    """`samples_of` places an array: the first entry that is not finite, row by row, and how many there are."""
    broken = X.copy()
    broken[4, 1], broken[5, 0], broken[2, 2] = np.nan, -np.inf, np.inf
    assert samples_of(broken).first_not_finite() == (2, 2, np.inf, 3)


def _dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else rows
