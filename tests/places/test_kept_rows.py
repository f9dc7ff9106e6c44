"""Rows of K that a field keeps: sums over them, eviction, and what a shrink leaves."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mercer import _core
from mercer.places.host.tiled_field import RowCache


@pytest.fixture
def K() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(50, 50)).astype(np.float32)


def table(K: np.ndarray, rows: np.ndarray, sources: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(K[np.ix_(rows, sources)])


def test_sums_over_several_batches_and_says_what_is_missing(K: np.ndarray) -> None:
    rows = np.arange(50)
    kept = RowCache(50, 10**6, 2)
    kept.put(np.arange(0, 10), table(K, rows, np.arange(0, 10)))
    kept.put(np.arange(10, 20), table(K, rows, np.arange(10, 20)))
    sources, coefficients = np.array([3, 15, 4, 30, 12]), np.array([1.0, -2.0, 0.5, 7.0, 3.0])
    total = np.ones(50)
    left = kept.add(total, sources, coefficients)
    assert left.tolist() == [False, False, False, True, False]
    there = ~left
    np.testing.assert_allclose(total, 1 + K[:, sources[there]].astype(float) @ coefficients[there], rtol=1e-12)


def test_a_shrink_keeps_the_rows_that_remain(K: np.ndarray) -> None:
    kept = RowCache(50, 10**6, 1)
    kept.put(np.arange(10), table(K, np.arange(50), np.arange(10)))
    kept.keep(np.arange(0, 50, 3))
    kept.keep(np.arange(5, 17))
    rows = np.arange(0, 50, 3)[5:17]
    total = np.zeros(len(rows))
    assert not kept.add(total, np.arange(10), np.arange(10.0)).any()
    np.testing.assert_allclose(total, K[rows][:, :10].astype(float) @ np.arange(10.0), rtol=1e-12)


def test_the_longest_unused_batch_goes_first(K: np.ndarray) -> None:
    one = 50 * 10 * 4
    kept, rows, total = RowCache(50, 2 * one, 1), np.arange(50), np.zeros(50)
    batches = [np.arange(10 * b, 10 * b + 10) for b in range(3)]
    kept.put(batches[0], table(K, rows, batches[0]))
    kept.put(batches[1], table(K, rows, batches[1]))
    kept.add(total, batches[0], np.ones(10))
    kept.put(batches[2], table(K, rows, batches[2]))
    missing = [bool(kept.add(total, batch, np.ones(10)).all()) for batch in batches]
    assert missing == [False, True, False]
    assert not kept.fits(50, 20, 4)


@pytest.mark.parametrize("share", [0.4, 0.6])
def test_what_shrinks_leave_behind_counts_as_memory(share: float) -> None:
    n, one, left = 10_000, 10_000 * 10 * 4, int(share * 10_000)
    tracemalloc.start()
    try:
        kept = RowCache(n, 2 * one, 1)
        before = tracemalloc.get_traced_memory()[0]
        kept.put(np.arange(10), np.ones((n, 10), np.float32))
        kept.put(np.arange(10, 20), np.ones((n, 10), np.float32))
        kept.keep(np.arange(left))
        for start in range(20, 60, 10):
            kept.put(np.arange(start, start + 10), np.ones((left, 10), np.float32))
        assert 0 < tracemalloc.get_traced_memory()[0] - before <= 2 * one + 20_000
    finally:
        tracemalloc.stop()


def test_a_batch_of_which_next_to_nothing_is_asked_is_not_read(K: np.ndarray) -> None:
    kept, total = RowCache(50, 10**6, 1), np.zeros(50)
    kept.put(np.arange(40), table(K, np.arange(50), np.arange(40)))
    assert kept.add(total, np.array([7]), np.ones(1)).all()
    assert not total.any()


@pytest.mark.parametrize("which", [[0, 50], [-1]])
def test_what_is_summed_is_checked(K: np.ndarray, which: list[int]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        _core.add_table(np.zeros(len(which)), K, np.zeros(50), 1, np.array(which, dtype=np.int64))
    with pytest.raises(ValueError, match="elements"):
        _core.add_table(np.zeros(50), K, np.zeros(3), 1)
    with pytest.raises(ValueError, match="contiguous rows"):
        _core.add_table(np.zeros(50), K.T, np.zeros(50), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_entries_from_several_batches(K: np.ndarray, dtype: type) -> None:
    K = K.astype(dtype)
    kept, rows = RowCache(50, 10**6, 2), np.arange(0, 50, 2)
    kept.put(np.arange(0, 10), table(K, rows, np.arange(0, 10)))
    kept.put(np.arange(20, 35), table(K, rows, np.arange(20, 35)))
    assert kept.holds(np.array([3, 12, 20, 40])).tolist() == [True, False, True, False]
    at, sources = np.array([7, 0, 24, 3]), np.array([33, 2, 21, 9, 0])
    out = np.full((4, 8), np.nan, dtype)[:, :5]
    kept.copy(at, sources, out)
    np.testing.assert_array_equal(out, K[np.ix_(rows[at], sources)])


def test_entries_to_copy_are_checked(K: np.ndarray) -> None:
    one, out = np.array([0]), np.zeros((1, 1), np.float32)
    for wrong, message in (((np.array([50]), one, out, one), "rows"), ((one, np.array([-1]), out, one), "sources")):
        with pytest.raises(ValueError, match=f"{message}.*out of range"):
            _core.copy_entries(K, *wrong, 1)
    with pytest.raises(ValueError, match=r"columns.*out of range"):
        _core.copy_entries(K, one, one, out, np.array([1]), 1)
    with pytest.raises(ValueError, match="out must be a two-dimensional float32"):
        _core.copy_entries(K, one, one, out.astype(float), one, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_block_is_transposed(dtype: type) -> None:
    values = np.random.default_rng(1).normal(size=(200, 150)).astype(dtype)
    out = np.full((170, 220), np.nan, dtype)
    _core.transpose(values[:131, 3:77], out[5:79, 10:141], 2)
    np.testing.assert_array_equal(out[5:79, 10:141], values[:131, 3:77].T)
    out[5:79, 10:141] = np.nan
    assert np.isnan(out).all()  # nothing beside it
    with pytest.raises(ValueError, match="shape"):
        _core.transpose(values, out, 1)
