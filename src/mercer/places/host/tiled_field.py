"""The state of a solve whose kernel values the fused core computes: rows of K are added to u as they are computed.

Rows are cached only if computing them again would cost more than reading them. K on a working set is computed into a
buffer that is reused: allocating new memory would take as much time as computing the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mercer import _core
from mercer.places.host.field import HostField
from mercer.samples.arrays import Flags, Floats, Indices, Values, sums_by

if TYPE_CHECKING:
    from mercer.places.host.kernel_matrix import KernelMatrix
    from mercer.problems.dual_problem import DualProblem

# If the block has at least this fraction of the active rows, their changes are summed from it: that saves more time
# than laying out the other rows again costs.
_BLOCK_SHARE = 1 / 8

# The size of a block is rounded up to a multiple of every instruction set's tile.
_TILE_MULTIPLE = 192
# Extra entries per row: rows that are a power of two bytes apart would compete for the same few cache sets.
_PADDING_ENTRIES = 16
# Time of reading a cached value relative to computing it (measured on mnist and usps).
_READ_SHARE = 1 / 16


class TiledField(HostField):
    """A `Field` on prepared samples; `origin` holds the positions of this problem's rows in them."""

    def __init__(
        self, gram: KernelMatrix, problem: DualProblem, beta: Floats, u: Floats, samples: _core.Samples, origin: Indices
    ) -> None:
        super().__init__(gram, problem, beta, u, gram.n_threads)
        self._matrix, self.samples, self.origin = gram, samples, origin
        self._columns: _core.Columns | None = None
        self._row_cache = RowCache(gram.n, gram.budget // 2, gram.n_threads) if samples.expensive else None
        self._square = BlockBuffer(samples)

    def violators(self, q: int, keep: float) -> Indices:
        """Return up to q variables as every field does, with those whose rows are cached last."""
        J = super().violators(q, keep)
        if self._row_cache is None or len(J) == self.problem.n_variables:
            return J
        return J[np.argsort(self._row_cache.holds(self.problem.row[J]), kind="stable")]  # cached rows come last

    def inner_field(self, J: Indices) -> TiledField:
        """Return the state of the problem on J, with all other variables held fixed."""
        rows, part = self._inner_problem(J)
        view, origin = self._matrix.view(rows), self.origin[rows]
        field = TiledField(view, part, self.beta[J], np.zeros(len(rows)), self.samples, origin)
        field._matrix = self._matrix  # the Gram that counts kernel evaluations
        return field

    def _square_of(self, rows: Indices) -> Values:
        """Return K[rows, rows]: cached values are copied, the others are computed."""
        cache, diagonal = self._row_cache, self.gram.diagonal[rows]
        new = len(rows) if cache is None else int((~cache.holds(rows)).sum())
        self._matrix.evaluations += new**2
        if cache is None or new == len(rows) or cache.holds(rows[:new]).any():
            return self._square(self.origin[rows], diagonal)
        positions = np.searchsorted(self.rows, rows)
        return self._square(
            self.origin[rows[:new]],
            diagonal,
            lambda out: cache.copy(positions, rows[new:], out),
            self._matrix.n_threads,
        )

    def move(self, J: Indices, beta: Floats) -> None:
        """Set β on J, and bring u of the active rows up to date."""
        delta = beta - self.beta[J]
        changed_positions = np.flatnonzero(delta)
        self.beta[J] = beta
        self._ends = None
        if len(changed_positions) == 0:
            return
        rows, all_active = self.problem.row[J], len(self.rows) == self.gram.n
        total = self.u if all_active else self.u[self.rows]
        if self.problem.twins:
            sources, position = np.unique(rows[changed_positions], return_inverse=True)
            self._add(total, sources, sums_by(position, delta[changed_positions], len(sources)), None)
        else:
            self._add(
                total,
                rows[changed_positions],
                delta[changed_positions],
                changed_positions if np.array_equal(rows, self._block_rows) else None,
            )
        if not all_active:
            self.u[self.rows] = total

    def _add(self, total: Floats, sources: Indices, change: Floats, block_columns: Indices | None) -> None:
        """Add K[active, sources] @ change to `total`.

        `block_columns` holds the sources' columns in the last block; it is None if they are not in it.
        """
        cache = self._row_cache
        if cache is not None:
            missing = cache.add(total, sources, change)
            sources, change = sources[missing], change[missing]
            block_columns = None if block_columns is None else block_columns[missing]
        if len(sources) == 0:
            return
        cacheable = cache is not None and cache.fits(len(self.rows), len(sources), self.samples.dtype.itemsize)
        block_positions: Indices = np.empty(0, dtype=np.intp)  # positions of the block's rows among the active rows
        if block_columns is not None and (cacheable or len(self._block_rows) >= _BLOCK_SHARE * len(self.rows)):
            block_positions = np.searchsorted(self.rows, self._block_rows)
        others = np.delete(np.arange(len(self.rows)), block_positions)
        self._matrix.evaluations += len(sources) * len(others)
        if cache is not None and cacheable:
            self._add_and_cache(cache, total, sources, change, block_columns, block_positions, others)
        elif block_columns is not None and len(block_positions):
            self._add_with_block(total, sources, change, block_columns, block_positions, others)
        else:
            if self._columns is None:
                self._columns = self.samples.columns(self.origin[self.rows])
            self.samples.add(total, self._columns, self.origin[sources], change)

    def _add_and_cache(
        self,
        cache: RowCache,
        total: Floats,
        sources: Indices,
        change: Floats,
        block_columns: Indices | None,
        block_positions: Indices,
        others: Indices,
    ) -> None:
        """Add K[rows, sources] @ change to `total` and cache the values, copied from the block if it has them."""
        table = self.samples.table(self.origin[self.rows[others]], self.origin[sources], len(block_positions))
        table_rows = None
        if block_columns is not None and len(block_positions):
            rows, columns = np.arange(len(block_positions)), np.arange(len(sources))
            _core.copy_entries(self._block, rows, block_columns, table[len(others) :], columns, self._matrix.n_threads)
            table_rows = np.empty(len(self.rows), dtype=np.intp)  # row of the table for each active row
            table_rows[others], table_rows[block_positions] = np.arange(len(others)), len(others) + rows
        _core.add_table(total, table, change, self._matrix.n_threads, table_rows)
        cache.put(sources, table, table_rows)

    def _add_with_block(
        self,
        total: Floats,
        sources: Indices,
        change: Floats,
        block_columns: Indices,
        block_positions: Indices,
        others: Indices,
    ) -> None:
        """Add K[rows, sources] @ change to `total`, with the block for its rows and computed values for the others."""
        weights, sums = np.zeros(len(block_positions)), np.zeros(len(block_positions))
        weights[block_columns] = change
        _core.add_table(sums, self._block, weights, self._matrix.n_threads)
        total[block_positions] += sums
        part = total[others]
        self.samples.add(part, self.samples.columns(self.origin[self.rows[others]]), self.origin[sources], change)
        total[others] = part

    def shrink(self) -> bool:
        """Drop variables at a bound that no pair would choose; drop their rows of the cache, too."""
        old_rows = self.rows
        if not super().shrink():
            return False
        self._columns = None
        if self._row_cache is not None:
            self._row_cache.keep(np.searchsorted(old_rows, self.rows))
        return True

    def unshrink(self) -> None:
        """Make all variables active again, and clear the cache, whose rows lack the dropped samples."""
        super().unshrink()
        self._columns = None
        if self._row_cache is not None:
            self._row_cache.clear()

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        """Add K[rows] times a change of β to u[rows]."""
        coefficients = self.problem.row_coefficients(change, self.gram.n)
        sources, total = np.flatnonzero(coefficients), self.u[rows]
        self.samples.add(total, self.samples.columns(self.origin[rows]), self.origin[sources], coefficients[sources])
        self.u[rows] = total
        self._matrix.evaluations += len(sources) * len(rows)


class BlockBuffer:
    """A reusable buffer for K[J, J]; the next call overwrites the result."""

    def __init__(self, samples: _core.Samples) -> None:
        self._samples = samples
        self._buffer: Values = np.empty((0, 0))

    def __call__(
        self, rows: Indices, diagonal: Floats, fill: Callable[[Values], None] | None = None, n_threads: int = 1
    ) -> Values:
        """Return K between the given samples, in their precision and with the given diagonal.

        If the diagonal is longer than `rows`, `fill` is called with the remaining columns, which it fills.
        """
        n, new = len(diagonal), len(rows)
        size = -(-n // _TILE_MULTIPLE) * _TILE_MULTIPLE
        if len(self._buffer) < size:
            self._buffer = np.empty((size, size + _PADDING_ENTRIES), self._samples.dtype)
        if new:
            self._samples.square(rows, self._buffer)
        K = self._buffer[:n, :n]
        if fill is not None:
            fill(K[:, new:])
            _core.transpose(K[:new, new:], K[new:, :new], n_threads)
        step = self._buffer.shape[1] + 1
        self._buffer.ravel()[: n * step : step] = diagonal
        return K


class RowCache:
    """Cache of rows of K over the active samples, in batches; the least recently used is dropped beyond `budget` bytes.

    A batch is a table with one row per active sample and one column per source. Reading a table is one pass over its
    memory, however many of its sources a step has moved. After a shrink, the rows that are still active are read in
    place; they are copied if that frees half of a table and memory is short.
    """

    def __init__(self, n: int, budget: int, n_threads: int) -> None:
        self._budget = budget
        self._n_threads = n_threads
        self._tables: dict[int, Values] = {}  # table of each batch, the least recently used first
        self._rows: dict[int, Indices | None] = {}  # rows of the active samples in each table; None if all, in order
        self._batch = np.full(n, -1, dtype=np.intp)  # batch of each source, −1 if it is not cached
        self._slot = np.zeros(n, dtype=np.intp)  # column of each source in its table
        self._next_key = 0

    @property
    def nbytes(self) -> int:
        """Memory of all batches in bytes."""
        return sum(table.nbytes for table in self._tables.values())

    def fits(self, n_rows: int, n_sources: int, itemsize: int) -> bool:
        """Return whether a batch of this shape takes at most half of the budget."""
        return n_rows * n_sources * itemsize <= self._budget // 2

    def add(self, total: Floats, sources: Indices, coefficients: Floats) -> Flags:
        """Add K[active, sources] @ coefficients to `total` if reading a source pays; return a mask of others."""
        batch = self._batch[sources]
        is_unread = np.ones(len(sources), dtype=bool)
        for key in np.unique(batch[batch >= 0]).tolist():
            in_batch = batch == key
            table = self._tables.pop(key)
            self._tables[key] = table
            if in_batch.sum() < _READ_SHARE * table.shape[1]:
                continue
            weights = np.zeros(table.shape[1])
            weights[self._slot[sources[in_batch]]] = coefficients[in_batch]
            _core.add_table(total, table, weights, self._n_threads, self._rows[key])
            is_unread &= ~in_batch
        return is_unread

    def holds(self, sources: Indices) -> Flags:
        """Return a mask of the sources that are cached."""
        return np.asarray(self._batch[sources] >= 0)

    def copy(self, positions: Indices, sources: Indices, out: Values) -> None:
        """Copy K[positions, sources] to `out` for positions among the active samples; all sources must be cached."""
        batch = self._batch[sources]
        for key in np.unique(batch).tolist():
            columns = np.flatnonzero(batch == key)
            slots, rows = self._slot[sources[columns]], self._rows[key]
            table_rows = positions if rows is None else rows[positions]
            _core.copy_entries(self._tables[key], table_rows, slots, out, columns, self._n_threads)

    def put(self, sources: Indices, table: Values, rows: Indices | None = None) -> None:
        """Cache K[active, sources]; `rows[k]` is the row of active sample k in `table`, None if that is row k."""
        while self._tables and self.nbytes + table.nbytes > self._budget:
            self._evict()
        self._tables[self._next_key], self._rows[self._next_key] = table, rows
        self._batch[sources], self._slot[sources] = self._next_key, np.arange(len(sources))
        self._next_key += 1

    def _evict(self) -> None:
        """Drop the inactive rows of a table if they are half of it, otherwise the least recently used batch."""
        for key, rows in self._rows.items():
            if rows is not None and 2 * len(rows) <= len(self._tables[key]):
                self._tables[key], self._rows[key] = self._tables[key][rows], None
                return
        oldest_key = next(iter(self._tables))
        del self._tables[oldest_key], self._rows[oldest_key]
        self._batch[self._batch == oldest_key] = -1

    def keep(self, positions: Indices) -> None:
        """Adapt to a shrink, after which only these active samples remain."""
        for key, rows in self._rows.items():
            self._rows[key] = positions if rows is None else rows[positions]

    def clear(self) -> None:
        """Drop all cached rows."""
        self._tables.clear()
        self._rows.clear()
        self._batch[:] = -1
