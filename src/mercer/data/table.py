"""Coefficients of many samples for many outputs, most of them zero: the entries of each row, one row after another.

The arrays are those of a CSR matrix. scipy's class checks them at every step, which took a fifth of a small fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Indices


@dataclass(frozen=True, eq=False)
class Table:
    """A row per sample and a column per output."""

    data: np.ndarray  # of the entries
    indices: Indices  # the column of each entry; they ascend within a row
    indptr: Indices  # where the entries of each row begin, and the end
    n_columns: int

    @classmethod
    def of(cls, data: np.ndarray, rows: Indices, columns: Indices, shape: tuple[int, int]) -> Table:
        """From entries in any order; those of the same cell are added up."""
        cell = rows.astype(np.int64, copy=False) * shape[1] + columns
        step = np.diff(cell)
        if not (step > 0).all():
            order = np.argsort(cell, kind="stable")
            data, rows, columns = data[order], rows[order], columns[order]
            first = np.flatnonzero(np.diff(cell[order], prepend=-1))
            if len(first) < len(cell):
                data, rows, columns = np.add.reduceat(data, first), rows[first], columns[first]
        return cls(data, columns, _ends(np.bincount(rows, minlength=shape[0])), shape[1])

    @classmethod
    def of_array(cls, values: np.ndarray) -> Table:
        """The entries of an array that are not zero."""
        rows, columns = np.nonzero(values)
        return cls.of(values[rows, columns], rows, columns, (values.shape[0], values.shape[1]))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.n_columns

    @property
    def lengths(self) -> Indices:
        """How many entries each row has."""
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def rows(self) -> Indices:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.indptr) - 1), self.lengths)

    def with_data(self, data: np.ndarray) -> Table:
        """Other entries at the same places."""
        return Table(data, self.indices, self.indptr, self.n_columns)

    def take(self, rows: Indices) -> Table:
        """Some of the rows, in this order."""
        lengths = self.lengths[rows]
        indptr = _ends(lengths)
        entry = np.repeat(self.indptr[rows] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return Table(self.data[entry], self.indices[entry], indptr, self.n_columns)

    def toarray(self) -> np.ndarray:
        out = np.zeros(self.shape, self.data.dtype)
        out[self.rows, self.indices] = self.data
        return out

    def csr(self) -> Any:
        """As scipy has it, for whoever keeps it."""
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)


def _ends(lengths: Indices) -> Indices:
    """0, and where each of these many entries end."""
    ends = np.zeros(len(lengths) + 1, dtype=np.intp)
    lengths.cumsum(out=ends[1:])
    return ends
