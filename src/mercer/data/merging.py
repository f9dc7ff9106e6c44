"""Identical samples are one sample with a larger weight; what is left is put into an order that only the data decide.

That makes an integer weight the same as a repetition and a zero weight the same as a removal, to the last bit, and fits
independent of the order of the rows. It also saves work: real data have duplicates.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.arrays import Flags, Floats, Indices, is_sparse, n_samples, sums_by, take


@dataclass(frozen=True, eq=False)
class Merged:
    """Distinct samples in canonical order, and which of the caller's rows each one stands for."""

    X: Any  # the samples, or where they were not to be taken out the caller's own
    y: Indices
    weight: Floats
    rows: Indices  # the caller's rows that have positive weight, in their order
    member: Indices  # for each of them, the merged sample it belongs to
    own_weight: Floats  # and its own weight
    first: Indices  # the first of the caller's rows that each sample stands for

    @property
    def share(self) -> Floats:
        """Each kept row's part of its merged sample's weight."""
        return self.own_weight / self.weight[self.member]


def merge(X: Any, y: Indices, weight: Floats, *, identical: bool, n_threads: int, copy_rows: bool = True) -> Merged:
    """Drop rows of weight zero and, where `identical` rows may be joined, join equal (x, y).

    With `copy_rows` false the samples stay where they are, and `first` says where that is.
    """
    rows = np.flatnonzero(weight > 0)
    if not identical:
        return Merged(_part(X, rows), y[rows], weight[rows], rows, np.arange(len(rows)), weight[rows], rows)
    order, fresh = _canonical(X, y, rows, n_threads)
    group = np.cumsum(fresh) - 1
    first = rows[order[fresh]]
    member = np.empty(len(rows), dtype=np.intp)
    member[order] = group
    total = sums_by(member, weight[rows], len(first))
    return Merged(_part(X, first) if copy_rows else X, y[first], total, rows, member, weight[rows], first)


def unmerged(X: Any, y: Indices, weight: Floats) -> Merged:
    """Every row by itself, those of weight zero too: nothing is copied."""
    rows = np.arange(len(weight))
    return Merged(X, y, weight, rows, rows, weight, rows)


def clashes(X: Any, y: Indices, n_threads: int) -> list[Indices]:
    """Groups of rows that hold the same sample under different codes."""
    order, fresh = _canonical(X, np.zeros_like(y), np.arange(len(y)), n_threads)
    starts = np.flatnonzero(fresh)
    mixed = np.minimum.reduceat(y[order], starts) != np.maximum.reduceat(y[order], starts)
    ends = np.append(starts[1:], len(order))
    return [np.sort(order[starts[k] : ends[k]]) for k in np.flatnonzero(mixed)]


def hash_samples(X: Any, n_threads: int) -> NDArray[np.uint64]:
    """A 64-bit hash of each sample's non-zero entries, the same for an array and a CSR matrix."""
    if is_sparse(X):
        return _core.hash_rows_csr(X.data, X.indices, X.indptr, n_threads)
    return _core.hash_rows(X, n_threads)


def _part(X: Any, rows: Indices) -> Any:
    """X itself when all of its rows are asked for in order, a copy of the rows otherwise."""
    return X if len(rows) == n_samples(X) and (np.diff(rows) == 1).all() else take(X, rows)


def _canonical(X: Any, y: Indices, rows: Indices, n_threads: int) -> tuple[Indices, Flags]:
    """Positions into `rows` sorted by sample and label, and a mark at the first of each run of equals."""
    if not hasattr(X, "shape"):
        order = np.array(sorted(range(len(rows)), key=lambda k: (X[rows[k]], y[rows[k]])), dtype=np.intp)
        same = [X[rows[a]] == X[rows[b]] and y[rows[a]] == y[rows[b]] for a, b in pairwise(order)]
        return order, np.array([True, *np.logical_not(same)], dtype=bool)[: len(order)]
    keys = hash_samples(X, n_threads)[rows]
    order = _core.order_by(keys, np.ascontiguousarray(y[rows], dtype=np.int64))
    near = np.flatnonzero(keys[order[:-1]] == keys[order[1:]])
    left, right = rows[order[near]], rows[order[near + 1]]
    equal = _equal(X, left, right)
    if not equal.all():
        order = _break_ties(X, y, rows, keys, order)
        left, right = rows[order[near]], rows[order[near + 1]]
        equal = _equal(X, left, right)
    fresh = np.ones(len(order), dtype=bool)
    fresh[near + 1] = ~(equal & (y[left] == y[right]))
    return order, fresh


def unit_weight(weight: Floats) -> float:
    """What counts as one sample where only the proportions of the weights matter: 1, or the weight nearest to it.

    The ν-machines' coefficients, and with them their violations, grow with the weights.
    """
    return float(np.clip(1.0, weight.min(), weight.max()))


def _equal(X: Any, left: Indices, right: Indices) -> Flags:
    if is_sparse(X):
        equal = _core.equal_rows_csr(X.data, X.indices, X.indptr, left, right).astype(bool)
        # Stored zeros and unsorted columns: rare enough for scipy.
        k = np.flatnonzero(~equal)
        equal[k] = np.asarray((X[left[k]] != X[right[k]]).sum(axis=1)).ravel() == 0
        return equal
    return np.asarray((X[left] == X[right]).all(axis=1))


def _break_ties(X: Any, y: Indices, rows: Indices, keys: Any, order: Indices) -> Indices:
    """Sort runs of equal hash by value: two different samples share a hash about once in 2^64 pairs."""
    starts = np.flatnonzero(np.r_[True, np.diff(keys[order]) != 0, True])
    for begin, end in pairwise(starts):
        if end - begin > 1:
            run = order[begin:end]
            order[begin:end] = sorted(run, key=lambda k: (tuple(_dense_row(X, rows[k])), y[rows[k]]))
    return order


def _dense_row(X: Any, row: Any) -> Floats:
    return np.asarray(X[[row]].toarray() if is_sparse(X) else X[row], dtype=np.float64).ravel() + 0.0
