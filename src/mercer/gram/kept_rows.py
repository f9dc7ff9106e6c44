"""Rows of K over the active samples, kept because computing them again costs more than reading them.

A batch is a table with one row per active sample and one column per source. Reading a table is one pass over its
memory, however many of its sources a step has moved. After a shrink the rows that are still active are read where they
are; they are copied when that frees half of a table and memory is short.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Flags, Floats, Indices

# Reading a kept value takes about this share of the time that computing it takes (measured on mnist and usps).
_READ_SHARE = 1 / 16


class KeptRows:
    """Batches of rows of K by their source, in at most `budget` bytes; the least recently used batch is dropped."""

    def __init__(self, n: int, budget: int, n_threads: int) -> None:
        self._budget = budget
        self._n_threads = n_threads
        self._tables: dict[int, Any] = {}  # by batch, the least recently used first
        self._rows: dict[int, Indices | None] = {}  # of each table, where the active samples are if not everywhere
        self._batch = np.full(n, -1, dtype=np.intp)  # of each source
        self._slot = np.zeros(n, dtype=np.intp)
        self._next = 0

    @property
    def nbytes(self) -> int:
        """The memory of all batches."""
        return sum(table.nbytes for table in self._tables.values())

    def fits(self, rows: int, sources: int, itemsize: int) -> bool:
        return rows * sources * itemsize <= self._budget // 2

    def add(self, total: Floats, sources: Indices, coefficients: Floats) -> Flags:
        """total += K[active, sources] @ coefficients for the sources worth reading; returns which ones remain."""
        batch = self._batch[sources]
        left = np.ones(len(sources), dtype=bool)
        for key in np.unique(batch[batch >= 0]).tolist():
            here = batch == key
            table = self._tables.pop(key)
            self._tables[key] = table
            if here.sum() < _READ_SHARE * table.shape[1]:
                continue
            weights = np.zeros(table.shape[1])
            weights[self._slot[sources[here]]] = coefficients[here]
            _core.add_table(total, table, weights, self._n_threads, self._rows[key])
            left &= ~here
        return left

    def holds(self, sources: Indices) -> Flags:
        return np.asarray(self._batch[sources] >= 0)

    def copy(self, positions: Indices, sources: Indices, out: Any) -> None:
        """out = K[some of the active samples, sources]; all sources must be held."""
        batch = self._batch[sources]
        for key in np.unique(batch).tolist():
            columns = np.flatnonzero(batch == key)
            slots, rows = self._slot[sources[columns]], self._rows[key]
            at = positions if rows is None else rows[positions]
            _core.copy_entries(self._tables[key], at, slots, out, columns, self._n_threads)

    def put(self, sources: Indices, table: Any, rows: Indices | None = None) -> None:
        """Keep K[active, sources], whose rows are those of the table, in its order or where `rows` says."""
        while self._tables and self.nbytes + table.nbytes > self._budget:
            self._make_room()
        self._tables[self._next], self._rows[self._next] = table, rows
        self._batch[sources], self._slot[sources] = self._next, np.arange(len(sources))
        self._next += 1

    def _make_room(self) -> None:
        """Forget the inactive rows of a table where they are half of it, else the least recently used batch."""
        for key, rows in self._rows.items():
            if rows is not None and 2 * len(rows) <= len(self._tables[key]):
                self._tables[key], self._rows[key] = self._tables[key][rows], None
                return
        oldest = next(iter(self._tables))
        del self._tables[oldest], self._rows[oldest]
        self._batch[self._batch == oldest] = -1

    def keep(self, positions: Indices) -> None:
        """Follow a shrink: only these active samples remain."""
        for key, rows in self._rows.items():
            self._rows[key] = positions if rows is None else rows[positions]

    def clear(self) -> None:
        self._tables.clear()
        self._rows.clear()
        self._batch[:] = -1
