"""Merging of identical samples into one sample with a larger weight, in an order that depends only on the data.

Merging makes an integer weight equivalent to repeating the sample, a weight of zero to dropping it, and the order of
the rows irrelevant, to the last bit. It also saves work, since real data contain duplicates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.samples.arrays import (
    Flags,
    Floats,
    Indices,
    PickedRows,
    are_strings,
    host,
    is_sparse,
    n_samples,
    pick,
    rounded_sums_by,
)
from mercer.samples.engine import EngineSamples


@dataclass(frozen=True, eq=False)
class Merged:
    """Distinct samples in canonical order, with the indices of the input rows that each was merged from."""

    samples: Any  # rows of an array as `PickedRows` if it is large; all input rows if `copy_rows` was False
    y: Indices
    weight: Floats
    rows: Indices  # input rows of positive weight, in input order
    member: Indices  # index of the merged sample of each of these rows
    input_weight: Floats  # weight of each of these rows
    first: Indices  # first input row of each merged sample

    @cached_property
    def X(self) -> Any:
        """Samples in contiguous memory; the caller's array if all rows are used in their order."""
        return self.samples[:] if isinstance(self.samples, PickedRows) else self.samples

    @property
    def unique(self) -> bool:
        """True if no two rows were merged."""
        return len(self.weight) == len(self.rows)

    @property
    def share(self) -> Floats:
        """Share of each row in the weight of its merged sample."""
        return self.input_weight / self.weight[self.member]


def merge(X: Any, y: Indices, weight: Floats, *, identical: bool, n_threads: int, copy_rows: bool = True) -> Merged:
    """Drop rows of weight zero and, if `identical` rows may be merged, merge equal (x, y).

    Without `copy_rows` the result keeps all rows of X, and `first` has the indices of the rows that count.
    """
    rows = (weight > 0).nonzero()[0]
    row_weight = weight if len(rows) == len(weight) else weight[rows]
    if not identical:
        samples = X if len(rows) == n_samples(X) else pick(X, rows, n_threads)
        return Merged(samples, y[rows], row_weight, rows, np.arange(len(rows)), row_weight, rows)
    positions, member = _groups(X, y, rows, n_threads)
    first = rows[positions]
    is_unique = len(first) == len(rows)
    total = row_weight[positions] if is_unique else rounded_sums_by(member, row_weight, len(first))
    return Merged(pick(X, first, n_threads) if copy_rows else X, y[first], total, rows, member, row_weight, first)


def keep_unmerged(X: Any, y: Indices, weight: Floats) -> Merged:
    """Return all rows unmerged and uncopied, including those of weight zero."""
    rows = np.arange(len(weight))
    return Merged(X, y, weight, rows, rows, weight, rows)


def conflicting_rows(X: Any, y: Indices, n_threads: int) -> list[Indices]:
    """Return groups of rows that hold the same sample with different codes."""
    order, is_first = _canonical_order(X, np.zeros_like(y), np.arange(len(y)), n_threads)
    if is_first is None:
        return []
    starts = np.flatnonzero(is_first)
    has_several_codes = np.minimum.reduceat(y[order], starts) != np.maximum.reduceat(y[order], starts)
    ends = np.append(starts[1:], len(order))
    return [np.sort(order[starts[k] : ends[k]]) for k in np.flatnonzero(has_several_codes)]


def hash_samples(X: Any, n_threads: int) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each sample's non-zero entries, equal for an array and a CSR matrix."""
    if isinstance(X, EngineSamples):
        return X.hash()
    if is_sparse(X):
        return _core.hash_rows_csr(X.data, X.indices, X.indptr, n_threads)
    if isinstance(X, PickedRows):
        return _core.hash_rows(X.X, n_threads)[X.rows]
    return _core.hash_rows(X, n_threads)


def _groups(X: Any, y: Indices, rows: Indices, n_threads: int) -> tuple[Indices, Indices]:
    """Group equal samples with equal labels: the position in `rows` of the first of each, and the group of each row."""
    if type(X) is np.ndarray and X.flags.c_contiguous:
        which, codes = None if len(rows) == len(y) else rows, np.ascontiguousarray(y, dtype=np.int64)
        groups = _core.group_rows(X, which, codes, n_threads)
        if groups is not None:  # else different rows have the same hash
            return groups
    order, is_first = _canonical_order(X, y, rows, n_threads)
    member = np.empty(len(rows), dtype=np.intp)
    member[order] = np.arange(len(order)) if is_first is None else is_first.cumsum() - 1
    return order if is_first is None else order[is_first], member


def _canonical_order(X: Any, y: Indices, rows: Indices, n_threads: int) -> tuple[Indices, Flags | None]:
    """Sort positions in `rows` by sample and label, and flag the first of each run of equal samples and labels.

    The flags are None if all of them are True.
    """
    if are_strings(X):
        X = host(X)
        order = np.array(sorted(range(len(rows)), key=lambda k: (X[rows[k]], y[rows[k]])), dtype=np.intp)
        is_equal = [X[rows[a]] == X[rows[b]] and y[rows[a]] == y[rows[b]] for a, b in pairwise(order)]
        return order, np.array([True, *np.logical_not(is_equal)], dtype=bool)[: len(order)]
    keys, codes = hash_samples(X, n_threads), np.ascontiguousarray(y, dtype=np.int64)
    if len(rows) < len(keys):
        keys, codes = keys[rows], codes[rows]
    order, same_hash = _core.order_by(keys, codes)  # `same_hash` has the places whose successor has the same hash
    if len(same_hash) == 0:
        return order, None
    left, right = rows[order[same_hash]], rows[order[same_hash + 1]]
    are_equal = _equal_rows(X, left, right, n_threads)
    if not are_equal.all():
        order = _break_ties(X, y, rows, keys, order)
        left, right = rows[order[same_hash]], rows[order[same_hash + 1]]
        are_equal = _equal_rows(X, left, right, n_threads)
    is_first = np.ones(len(order), dtype=bool)
    is_first[same_hash + 1] = ~(are_equal & (y[left] == y[right]))
    return order, is_first


def _equal_rows(X: Any, left: Indices, right: Indices, n_threads: int) -> Flags:
    """Return for each k whether row left[k] equals row right[k]."""
    if isinstance(X, EngineSamples):
        return X.equal(left, right)
    if is_sparse(X):
        is_equal = _core.equal_rows_csr(X.data, X.indices, X.indptr, left, right).astype(bool)
        # Rows that differ only in stored zeros or in the order of columns are rare: scipy compares them, slowly.
        k = np.flatnonzero(~is_equal)
        if len(k):
            is_equal[k] = np.asarray((X[left[k]] != X[right[k]]).sum(axis=1)).ravel() == 0
        return is_equal
    if isinstance(X, PickedRows):
        X, left, right = X.X, X.rows[left], X.rows[right]
    return _core.equal_rows(X, left, right, n_threads).astype(bool)


def _break_ties(X: Any, y: Indices, rows: Indices, keys: Any, order: Indices) -> Indices:
    """Sort runs of equal hashes by the values of the rows; different samples collide about once in 2^64 pairs."""
    starts = np.flatnonzero(np.r_[True, np.diff(keys[order]) != 0, True])
    for begin, end in pairwise(starts):
        if end - begin > 1:
            run = order[begin:end]
            order[begin:end] = sorted(run, key=lambda k: (tuple(_dense_row(X, rows[k])), y[rows[k]]))
    return order


def _dense_row(X: Any, row: Any) -> Floats:
    """Return one row as a dense float64 array, with −0.0 replaced by 0.0."""
    values = host(X, np.array([row]))
    return np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64).ravel() + 0.0
