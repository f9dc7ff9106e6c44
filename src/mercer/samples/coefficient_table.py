"""Sparse coefficients of many samples for many outputs, stored row by row.

The arrays are those of a CSR matrix. scipy's class validates them at every step, which took a fifth of a small fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer.samples.arrays import Floats, Indices


@dataclass(eq=False)
class CoefficientTable:
    """Sparse matrix with a row per sample and a column per output."""

    data: Floats  # values of the entries
    indices: Indices  # CSR column indices, ascending within a row
    indptr: Indices  # CSR row pointers
    n_columns: int
    source: Indices | None = None  # for a table made by `take`, the position of each entry in the original table

    @classmethod
    def of_columns(cls, data: Floats, rows: Indices, ends: Indices, n_rows: int) -> CoefficientTable:
        """Build a table from entries sorted by column: column k ends before ends[k + 1]; duplicates are added up."""
        return cls(*_core.by_rows(data, rows, ends, n_rows), len(ends) - 1)

    @classmethod
    def of_array(cls, values: Floats) -> CoefficientTable:
        """Build a table from the non-zero entries of an array."""
        n_rows, n_columns = values.shape
        rows, ends = np.tile(np.arange(n_rows), n_columns), n_rows * np.arange(n_columns + 1)
        return cls.of_columns(np.ascontiguousarray(values.T).ravel(), rows, ends, n_rows)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.n_columns

    @property
    def lengths(self) -> Indices:
        """Number of entries of each row."""
        return self.indptr[1:] - self.indptr[:-1]

    @cached_property
    def rows(self) -> Indices:
        """Row index of each entry."""
        return np.arange(len(self.indptr) - 1).repeat(self.lengths)

    def with_data(self, data: Floats) -> CoefficientTable:
        """Return a table with the same pattern and other values."""
        return CoefficientTable(data, self.indices, self.indptr, self.n_columns, self.source)

    def take(self, rows: Indices) -> CoefficientTable:
        """Return the table of these rows, in this order."""
        indptr, entry, row = _core.take_rows(self.indptr, rows)
        table = CoefficientTable(self.data[entry], self.indices[entry], indptr, self.n_columns, entry)
        table.rows = row
        return table

    def toarray(self) -> Floats:
        """Return the table as an array, with a row per sample and a column per output."""
        out = np.zeros(self.shape)
        out[self.rows, self.indices] = self.data
        return out

    def matrix(self) -> Any:
        """Return an array if there are few columns, else a CSR matrix of scipy."""
        # With up to three columns a dense array takes no more memory than two stored entries per row, and a fraction of
        # the time.
        if self.n_columns <= 3:
            return self.toarray()
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)
