"""Merges identical samples into one with a larger weight, in an order that depends only on the data.

So an integer weight is the same as a repetition, a zero weight the same as a removal, and the order of the rows has no
effect, to the last bit. It also saves work: real data have duplicates.
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
from mercer.samples.engine import PlacedSamples


@dataclass(frozen=True, eq=False)
class Merged:
    """Distinct samples in canonical order, and the caller's rows that each one was merged from."""

    samples: (
        Any  # rows of arrays are only picked; all of the caller's rows of a CSR matrix, if these were not to be copied
    )
    y: Indices
    weight: Floats
    rows: Indices  # the caller's rows that have positive weight, in their order
    member: Indices  # for each of them, the merged sample it belongs to
    own_weight: Floats  # and its own weight
    first: Indices  # the first of the caller's rows that each sample was merged from

    @cached_property
    def X(self) -> Any:
        """The samples in memory of their own, or the caller's if these are all, in their order."""
        return self.samples[:] if isinstance(self.samples, PickedRows) else self.samples

    @property
    def unique(self) -> bool:
        """Whether no two rows were merged."""
        return len(self.weight) == len(self.rows)

    @property
    def share(self) -> Floats:
        """Each kept row's part of its merged sample's weight."""
        return self.own_weight / self.weight[self.member]


def merge(X: Any, y: Indices, weight: Floats, *, identical: bool, n_threads: int, copy_rows: bool = True) -> Merged:
    """Drop rows of weight zero and, if `identical` rows may be merged, merge equal (x, y).

    Without `copy_rows` the result has all samples of X, and `first` says which rows count.
    """
    rows = (weight > 0).nonzero()[0]
    own = weight if len(rows) == len(weight) else weight[rows]
    if not identical:
        kept = X if len(rows) == n_samples(X) else pick(X, rows, n_threads)
        return Merged(kept, y[rows], own, rows, np.arange(len(rows)), own, rows)
    order, fresh = _canonical(X, y, rows, n_threads)
    member = np.empty(len(rows), dtype=np.intp)
    if fresh is None:
        first, total = rows[order], own[order]
        member[order] = np.arange(len(order))
    else:
        first = rows[order[fresh]]
        member[order] = np.cumsum(fresh) - 1
        total = rounded_sums_by(member, own, len(first))
    return Merged(pick(X, first, n_threads) if copy_rows else X, y[first], total, rows, member, own, first)


def unmerged(X: Any, y: Indices, weight: Floats) -> Merged:
    """Every row by itself, those of weight zero too: nothing is copied."""
    rows = np.arange(len(weight))
    return Merged(X, y, weight, rows, rows, weight, rows)


def clashes(X: Any, y: Indices, n_threads: int) -> list[Indices]:
    """Groups of rows that hold the same sample with different codes."""
    order, fresh = _canonical(X, np.zeros_like(y), np.arange(len(y)), n_threads)
    if fresh is None:
        return []
    starts = np.flatnonzero(fresh)
    mixed = np.minimum.reduceat(y[order], starts) != np.maximum.reduceat(y[order], starts)
    ends = np.append(starts[1:], len(order))
    return [np.sort(order[starts[k] : ends[k]]) for k in np.flatnonzero(mixed)]


def hash_samples(X: Any, n_threads: int) -> NDArray[np.uint64]:
    """A 64-bit hash of each sample's non-zero entries, the same for an array and a CSR matrix."""
    if isinstance(X, PlacedSamples):
        return X.hash()
    if is_sparse(X):
        return _core.hash_rows_csr(X.data, X.indices, X.indptr, n_threads)
    if isinstance(X, PickedRows):
        return _core.hash_rows(X.X, n_threads)[X.which]
    return _core.hash_rows(X, n_threads)


def _canonical(X: Any, y: Indices, rows: Indices, n_threads: int) -> tuple[Indices, Flags | None]:
    """Positions in `rows` sorted by sample and label, and a flag for the first of each run of equal ones.

    None stands for flags that are all true.
    """
    if are_strings(X):
        X = host(X)
        order = np.array(sorted(range(len(rows)), key=lambda k: (X[rows[k]], y[rows[k]])), dtype=np.intp)
        same = [X[rows[a]] == X[rows[b]] and y[rows[a]] == y[rows[b]] for a, b in pairwise(order)]
        return order, np.array([True, *np.logical_not(same)], dtype=bool)[: len(order)]
    keys, codes = hash_samples(X, n_threads), np.ascontiguousarray(y, dtype=np.int64)
    if len(rows) < len(keys):
        keys, codes = keys[rows], codes[rows]
    order = _core.order_by(keys, codes)
    ordered = keys[order]
    near = (ordered[:-1] == ordered[1:]).nonzero()[0]
    if len(near) == 0:
        return order, None
    left, right = rows[order[near]], rows[order[near + 1]]
    equal = _equal(X, left, right, n_threads)
    if not equal.all():
        order = _break_ties(X, y, rows, keys, order)
        left, right = rows[order[near]], rows[order[near + 1]]
        equal = _equal(X, left, right, n_threads)
    fresh = np.ones(len(order), dtype=bool)
    fresh[near + 1] = ~(equal & (y[left] == y[right]))
    return order, fresh


def _equal(X: Any, left: Indices, right: Indices, n_threads: int) -> Flags:
    if isinstance(X, PlacedSamples):
        return X.equal(left, right)
    if is_sparse(X):
        equal = _core.equal_rows_csr(X.data, X.indices, X.indptr, left, right).astype(bool)
        # Rows that differ only in stored zeros or in the order of columns are rare, so that scipy may compare them.
        k = np.flatnonzero(~equal)
        equal[k] = np.asarray((X[left[k]] != X[right[k]]).sum(axis=1)).ravel() == 0
        return equal
    if isinstance(X, PickedRows):
        X, left, right = X.X, X.which[left], X.which[right]
    return _core.equal_rows(X, left, right, n_threads).astype(bool)


def _break_ties(X: Any, y: Indices, rows: Indices, keys: Any, order: Indices) -> Indices:
    """Sort runs of equal hashes by value: two different samples have the same hash about once in 2^64 pairs."""
    starts = np.flatnonzero(np.r_[True, np.diff(keys[order]) != 0, True])
    for begin, end in pairwise(starts):
        if end - begin > 1:
            run = order[begin:end]
            order[begin:end] = sorted(run, key=lambda k: (tuple(_dense_row(X, rows[k])), y[rows[k]]))
    return order


def _dense_row(X: Any, row: Any) -> Floats:
    own = host(X, np.array([row]))
    return np.asarray(own.toarray() if is_sparse(own) else own, dtype=np.float64).ravel() + 0.0
