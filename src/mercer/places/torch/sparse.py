"""CSR rows on a device: at most a tile of one operand of a product is laid out as dense rows.

Products use torch's embedding_bag, which adds one number after another to a row and so gives the same bits every time.
cuSPARSE does not guarantee that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.places.torch.numbers import TILE_BYTES, matmul, to_host, torch

# Number of columns from which on a tile is laid out over the columns that it uses, which are fewer.
_MANY_COLUMNS = 2048


class SparseRows:
    """CSR rows with their non-zero entries in the order of columns, and the methods of a tensor that callers need."""

    def __init__(self, values: Any, columns: Any, starts: Any, width: int) -> None:
        self.values, self.columns, self.starts = values, columns, starts
        self.shape, self.dtype, self.device = (len(starts) - 1, width), values.dtype, values.device

    @classmethod
    def of(cls, source: Any, device: Any) -> SparseRows:
        """Build rows from a SciPy sparse matrix or a sparse tensor of two dimensions."""
        if isinstance(source, torch.Tensor):
            matrix = source.detach().to(device)
            if matrix.layout is torch.sparse_csr:
                starts, columns, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
                rows = torch.repeat_interleave(torch.arange(len(starts) - 1, device=device), starts.diff())
                indices = torch.stack([rows, columns.long()])
                matrix = torch.sparse_coo_tensor(indices, values, matrix.shape, check_invariants=False)
            matrix = (matrix if matrix.layout is torch.sparse_coo else matrix.to_sparse_coo()).coalesce()
            (rows, columns), values = matrix.indices(), matrix.values()
        else:
            matrix = source.tocsr()
            if not matrix.has_canonical_format:
                matrix = matrix.copy()
                matrix.sum_duplicates()
            matrix = matrix.tocoo()
            rows, columns = (torch.as_tensor(at.astype(np.int64), device=device) for at in (matrix.row, matrix.col))
            values = torch.as_tensor(matrix.data.copy(), device=device)
        return cls.of_entries(rows, columns, values, tuple(matrix.shape))

    @classmethod
    def of_entries(cls, rows: Any, columns: Any, values: Any, shape: tuple[int, int]) -> SparseRows:
        """Build rows from entries in the order of rows and columns, of which zeros are dropped."""
        is_nonzero = values != 0  # true for NaN
        rows, columns, values = rows[is_nonzero], columns[is_nonzero], values[is_nonzero]
        counts = torch.bincount(rows, minlength=shape[0])
        return cls(values, columns, _starts(counts), shape[1])

    @classmethod
    def of_dense(cls, X: Any) -> SparseRows:
        rows, columns = torch.nonzero(X, as_tuple=True)
        return cls.of_entries(rows, columns, X[rows, columns], tuple(X.shape))

    # --- methods of a tensor -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> SparseRows:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            starts = self.starts[start : max(start, stop) + 1]
            first, last = (int(starts[k]) for k in (0, -1))
            return self._with_entries(self.values[first:last], self.columns[first:last], starts - first)
        counts = self.counts[index]
        starts = _starts(counts)
        shift = torch.repeat_interleave(self.starts[:-1][index] - starts[:-1], counts)
        entries = torch.arange(len(shift), device=self.device) + shift
        return self._with_entries(self.values[entries], self.columns[entries], starts)

    def _with_entries(self, values: Any, columns: Any, starts: Any) -> SparseRows:
        return SparseRows(values, columns, starts, self.shape[1])

    def to(self, *where: Any) -> SparseRows:
        """Return the rows in another precision, or on another device."""
        values = self.values.to(*where)
        return self._with_entries(values, self.columns.to(values.device), self.starts.to(values.device))

    def double(self) -> SparseRows:
        return self.to(torch.float64)

    def contiguous(self) -> SparseRows:
        return self

    def abs(self) -> SparseRows:
        return self._with_entries(self.values.abs(), self.columns, self.starts)

    def __mul__(self, factor: float) -> SparseRows:
        return self._with_entries(self.values * factor, self.columns, self.starts)

    def __truediv__(self, divisors: Any) -> SparseRows:
        """Divide each row by its number in a column of divisors."""
        entry_divisors = torch.repeat_interleave(divisors.ravel(), self.counts)
        return self._with_entries(self.values / entry_divisors, self.columns, self.starts)

    def select_columns(self, used: Any) -> SparseRows:
        """Return the given columns, in this order."""
        position = torch.full((self.shape[1],), -1, dtype=torch.int64, device=self.device)
        position[used] = torch.arange(len(used), device=self.device)
        new_columns, rows = position[self.columns], self.row_of_entry
        entries = torch.nonzero(new_columns >= 0).ravel()
        entries = entries[torch.argsort(rows[entries] * len(used) + new_columns[entries])]
        return SparseRows.of_entries(rows[entries], new_columns[entries], self.values[entries], (len(self), len(used)))

    # --- over rows and columns -----------------------------------------------------------------------------------

    @property
    def counts(self) -> Any:
        """Number of entries of each row."""
        return self.starts.diff()

    @property
    def longest(self) -> int:
        return int(self.counts.max()) if len(self) else 0

    @property
    def row_of_entry(self) -> Any:
        return torch.repeat_interleave(torch.arange(len(self), device=self.device), self.counts)

    def reduce_rows(self, values: Any, reduction: str = "sum") -> Any:
        """Sum, or reduce otherwise, one number per entry over each row; 0 for a row without entries."""
        if not len(values):
            return torch.zeros(len(self), dtype=values.dtype, device=self.device)
        return torch.segment_reduce(values, reduction, lengths=self.counts, unsafe=True, initial=0)

    def row_sums(self) -> Any:
        return self.reduce_rows(self.values)

    def over_columns(self, values: Any) -> Any:
        """Sum one number per entry over each column, one entry after another."""
        return self._with_entries(values, self.columns, self.starts).transposed.row_sums()

    @cached_property
    def transposed(self) -> SparseRows:
        """The transposed matrix as CSR rows."""
        order = torch.argsort(self.columns, stable=True)
        counts = torch.bincount(self.columns, minlength=self.shape[1])
        return SparseRows(self.values[order], self.row_of_entry[order], _starts(counts), len(self))

    def dense(self, used: Any = None) -> Any:
        """Return dense rows with all columns, or with the `used` ones, which are in ascending order."""
        width = self.shape[1] if used is None else len(used)
        out = torch.zeros((len(self), width), dtype=self.dtype, device=self.device)
        rows, columns, values = self.row_of_entry, self.columns, self.values
        if used is not None:
            columns, is_used = _positions_among(used, columns)
            rows, columns, values = rows[is_used], columns[is_used], values[is_used]
        out[rows, columns] = values
        return out

    def times(self, B: Any, used: Any = None) -> Any:
        """Return the product with a dense matrix B that has a row for each column, or for each `used` column."""
        columns, values = self.columns, self.values
        if used is not None:
            columns, is_used = _positions_among(used, columns)
            values = torch.where(is_used, values, 0.0)
        if not len(values) or not B.numel():
            return torch.zeros((len(self), B.shape[1]), dtype=self.dtype, device=self.device)
        return torch.nn.functional.embedding_bag(
            columns, B.contiguous(), self.starts, mode="sum", per_sample_weights=values, include_last_offset=True
        )

    def host(self) -> Any:
        """Return the rows as a SciPy CSR matrix on the host."""
        parts = (np.array(to_host(part)) for part in (self.values, self.columns, self.starts))
        matrix = sp.csr_array(tuple(parts), shape=self.shape)
        matrix.has_canonical_format = True
        return matrix


def _starts(counts: Any) -> Any:
    return torch.nn.functional.pad(torch.cumsum(counts, 0), (1, 0))


def _positions_among(used: Any, columns: Any) -> tuple[Any, Any]:
    """Return the position of each column among the used ones, and whether it is used; others get any position."""
    if not len(used):
        return torch.zeros_like(columns), torch.zeros_like(columns, dtype=torch.bool)
    position = torch.searchsorted(used, columns).clamp_(max=len(used) - 1)
    return position, used[position] == columns


# --- dense or sparse rows -------------------------------------------------------------------------------------------


def squared_lengths(rows: Any) -> Any:
    """Return ‖x_i‖² in float64."""
    if isinstance(rows, SparseRows):
        return rows.reduce_rows(rows.values.double().square())
    return rows.double().square().sum(dim=1)


def largest_entries(rows: Any) -> Any:
    """Return the largest |entry| of each row, as a column."""
    if isinstance(rows, SparseRows):
        return rows.reduce_rows(rows.values.abs(), "max")[:, None]
    return rows.abs().amax(dim=1, keepdim=True)


def times(rows: Any, B: Any) -> Any:
    """Return rows times a dense matrix, in the precision of both."""
    return rows.times(B) if isinstance(rows, SparseRows) else matmul(rows, B)


def products(x: Any, z: Any) -> Any:
    """Return ⟨x_i, z_j⟩, in the precision of both."""
    if not isinstance(z, SparseRows):
        return times(x, z.T)
    if not isinstance(x, SparseRows):
        return z.times(x.T).T.contiguous()
    out = torch.empty((len(x), len(z)), dtype=x.dtype, device=x.device)
    for block, part, used in _tiles(z):
        out[:, block] = x.times(part.dense(used).T, used)
    return out


def distances(x: Any, z: Any, p: float) -> Any:
    """Return ‖x_i − z_j‖_p from differences, in the precision of both."""
    if not isinstance(x, SparseRows) and not isinstance(z, SparseRows):
        return torch.cdist(x, z, p=p, compute_mode="donot_use_mm_for_euclid_dist")
    out = torch.empty((len(x), len(z)), dtype=x.dtype, device=x.device)
    for left_rows, left, _ in _tiles(x):
        for right_rows, right, _ in _tiles(z):
            columns = None
            if isinstance(left, SparseRows) and isinstance(right, SparseRows):
                columns = torch.unique(torch.cat([left.columns, right.columns]))
            left_, right_ = (part.dense(columns) if isinstance(part, SparseRows) else part for part in (left, right))
            out[left_rows, right_rows] = torch.cdist(left_, right_, p=p, compute_mode="donot_use_mm_for_euclid_dist")
    return out


def _tiles(z: Any) -> Iterator[tuple[slice, Any, Any]]:
    """Yield blocks of rows whose dense form fits a tile, and the columns that they use, or None for all columns."""
    width = max(1, z.shape[1])
    step = max(1, TILE_BYTES // (8 * width))
    is_narrowed = isinstance(z, SparseRows) and (width > _MANY_COLUMNS or step < len(z))
    if is_narrowed:  # a tile of k rows uses no more than k times the longest row's columns
        step = max(step, math.isqrt(TILE_BYTES // (8 * max(1, z.longest))))
    for start in range(0, len(z), step):
        block = slice(start, min(len(z), start + step))
        part = z[block]
        yield block, part, torch.unique(part.columns) if is_narrowed else None
