"""Recently used rows of K over the active columns; the least recently used are dropped first."""

from __future__ import annotations

from collections import OrderedDict

from mercer.arrays import Floats, Indices


class ColumnCache:
    """Rows of K by their index, in at most `budget` bytes."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._bytes = 0
        self._columns: OrderedDict[int, Floats] = OrderedDict()

    def __contains__(self, row: int) -> bool:
        return row in self._columns

    def touch(self, row: int) -> bool:
        """Mark a row as just used, and say whether it is cached."""
        if row not in self._columns:
            return False
        self._columns.move_to_end(row)
        return True

    def get(self, row: int) -> Floats:
        return self._columns[row]

    def put(self, row: int, column: Floats) -> None:
        self._columns[row] = column
        self._bytes += column.nbytes
        while self._bytes > self._budget:
            self._bytes -= self._columns.popitem(last=False)[1].nbytes

    def keep(self, positions: Indices) -> None:
        """Follow a shrink: only these positions of every column remain."""
        for row, column in self._columns.items():
            self._columns[row] = column[positions]
        self._bytes = sum(column.nbytes for column in self._columns.values())

    def clear(self) -> None:
        self._columns.clear()
        self._bytes = 0
