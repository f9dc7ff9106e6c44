"""Where the steps have been: visits and violations of every row, of which a dual point is made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Floats, Indices

Counts = NDArray[np.int64]


class Trail:
    """How often each row was visited and how often it violated its margin, in the later part of the steps."""

    def __init__(self, machines: int, n: int) -> None:
        self.counts = np.zeros((machines, n), dtype=np.int64)  # of violations, which the steps keep up to date
        self._visits = np.zeros(n, dtype=np.int64)
        self._marks: list[tuple[int, Counts, Counts]] = [(0, self.counts.copy(), self._visits.copy())]

    def visit(self, draws: Indices, t: int) -> None:
        """Some epochs are over, after step t; the first end of one past a power of two is kept as a mark."""
        self._visits += np.bincount(draws, minlength=len(self._visits))
        if t.bit_length() > self._marks[-1][0].bit_length():
            self._marks.append((t, self.counts.copy(), self._visits.copy()))
        while len(self._marks) > 1 and 2 * self._marks[1][0] <= t:
            self._marks.pop(0)

    def shares(self, otherwise: NDArray[np.bool_]) -> Floats:
        """Of its visits, the share at which a row violated; `otherwise` for rows without a visit.

        In the mean of many steps a row pulls with this share of its weight, so near the optimum it is that of C_i which
        α_i is.
        """
        _, counts, visits = self._marks[0]
        visited = self._visits - visits
        return np.where(visited > 0, (self.counts - counts) / np.maximum(visited, 1), otherwise)
