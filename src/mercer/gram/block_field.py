"""The state of a solve on a block of K that is stored: the inner problem of nested working sets.

u counts only what β changed since the start, so that no product is needed to begin with: the problem's p is the
gradient there, with dβ added. Nothing is computed but sums of stored values, and every row of u stays current.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, Values
from mercer.gram.host_field import HostField

if TYPE_CHECKING:
    from mercer.gram.gram import Gram
    from mercer.problems.dual_problem import DualProblem


class BlockField(HostField):
    """A Field on K between its rows, one for each variable; `gram` knows their diagonal."""

    def __init__(self, gram: Gram, problem: DualProblem, beta: Floats, K: Values, n_threads: int) -> None:
        super().__init__(gram, problem, beta, np.zeros(problem.n_variables), n_threads)
        self._values, self._n_threads = K, n_threads

    def move(self, J: Indices, beta: Floats) -> None:
        delta = beta - self.beta[J]
        changed = np.flatnonzero(delta)
        self.beta[J], self._ends = beta, None
        _core.add_rows(self.u, self._values, J[changed], delta[changed], self._n_threads)

    def _square_of(self, rows: Indices) -> Values:
        square: Values = np.empty((len(rows), len(rows)), self._values.dtype)
        _core.copy_entries(self._values, rows, rows, square, np.arange(len(rows)), self._n_threads)
        return square

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        """No row of u was left behind."""
