"""Coefficients of many samples for many outputs, most of them zero: the entries of each row, one row after another.

The arrays are those of a CSR matrix. scipy's class checks them at every step, which took a fifth of a small fit.
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
class Table:
    """A row per sample and a column per output."""

    data: Floats  # of the entries
    indices: Indices  # the column of each entry; they ascend within a row
    indptr: Indices  # where the entries of each row begin, and the end
    n_columns: int

    @classmethod
    def of_columns(cls, data: Floats, rows: Indices, ends: Indices, n_rows: int) -> Table:
        """From one column after another, column k before ends[k + 1]; those of the same cell are added up."""
        return cls(*_core.by_rows(data, rows, ends, n_rows), len(ends) - 1)

    @classmethod
    def of_array(cls, values: Floats) -> Table:
        """The entries of an array that are not zero."""
        n_rows, n_columns = values.shape
        rows, ends = np.tile(np.arange(n_rows), n_columns), n_rows * np.arange(n_columns + 1)
        return cls.of_columns(np.ascontiguousarray(values.T).ravel(), rows, ends, n_rows)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.n_columns

    @property
    def lengths(self) -> Indices:
        """How many entries each row has."""
        return self.indptr[1:] - self.indptr[:-1]

    @cached_property
    def rows(self) -> Indices:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.indptr) - 1), self.lengths)

    def with_data(self, data: Floats) -> Table:
        """Other entries at the same places."""
        return Table(data, self.indices, self.indptr, self.n_columns)

    def take(self, rows: Indices) -> Table:
        """Some of the rows, in this order."""
        indptr, entry, row = _core.take_rows(self.indptr, rows)
        taken = Table(self.data[entry], self.indices[entry], indptr, self.n_columns)
        taken.rows = row
        return taken

    def toarray(self) -> Floats:
        out = np.zeros(self.shape)
        out[self.rows, self.indices] = self.data
        return out

    def matrix(self) -> Any:
        """For whoever keeps it: an array if it has few columns, else as scipy has it."""
        # Up to three columns all cells are not more memory than two entries per row, and are made in a fraction of the
        # time.
        if self.n_columns <= 3:
            return self.toarray()
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)
