"""What the states of all solves share: β, u = Kβ of the active variables, the last working set and its block of K.

u is up to date only in the rows of active variables; `unshrink` brings the dropped rows up to date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.arrays import Flags, Floats, Indices

if TYPE_CHECKING:
    from mercer.gram.gram import Gram


class ActiveSet:
    """β and u over everything, of which the active part is current; `n` variables or samples can be active."""

    problem: Any

    def __init__(self, gram: Gram, beta: Floats, u: Floats, n: int) -> None:
        self.gram = gram
        self.beta = beta.copy()
        self.u = u.copy()
        self.active: Indices = np.arange(n)
        self._n = n
        self._dropped: list[tuple[Indices, Floats]] = []  # rows, and β at the moment they were dropped
        self._previous: Indices = np.empty(0, dtype=np.intp)
        self._block: Any = np.empty((0, 0))
        self._block_rows: Indices = np.empty(0, dtype=np.intp)

    @property
    def shrunk(self) -> bool:
        return bool(self._dropped)

    def violators(self, q: int, keep: float) -> Indices:
        """At most q active ones: up to q·keep of the previous set, free ones first, then the worst violators."""
        if q >= len(self.active):
            return self.active
        old = self._previous
        kept = old[np.argsort(~self._free(old), kind="stable")][: int(q * keep)]
        self._previous = np.concatenate([self._worst(kept, q - len(kept)), kept])
        return self._previous

    def _activate(self, which: Indices) -> None:
        """Only these are active from now on."""
        self.active = which
        self._previous = self._previous[np.isin(self._previous, which)]

    def block(self, J: Indices) -> Any:
        """K between the rows of J, in the precision of the solve; the next block may overwrite it."""
        rows = self._rows_of(J)
        if not np.array_equal(rows, self._block_rows):
            self._block_rows = rows
            self._block = self._square_of(rows)
        return self._block

    def unshrink(self) -> None:
        """Make everything active again: each dropped row is updated by what β changed since."""
        for rows, then in self._dropped:
            self._catch_up(rows, self.beta - then)
        self._dropped = []
        self.active = np.arange(self._n)

    def _free(self, J: Indices) -> Flags:
        """Which of J can move in both directions."""
        raise NotImplementedError

    def _worst(self, kept: Indices, size: int) -> Indices:
        """The worst violators that are active and not kept."""
        raise NotImplementedError

    def _rows_of(self, J: Indices) -> Indices:
        """The Gram rows of J."""
        raise NotImplementedError

    def _square_of(self, rows: Indices) -> Any:
        """K[rows, rows]."""
        raise NotImplementedError

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        """u[rows] += K[rows] times the change of β."""
        raise NotImplementedError
