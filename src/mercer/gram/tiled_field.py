"""The state of a solve whose kernel values come from the fused core: rows of K are summed into u and never kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, sums_by
from mercer.gram.field import Field

if TYPE_CHECKING:
    from mercer.gram.gram import Gram
    from mercer.problems.dual_problem import DualProblem


class TiledField(Field):
    """A Field on prepared samples, of which `origin` are this problem's rows."""

    def __init__(
        self,
        gram: Gram,
        problem: DualProblem,
        beta: Floats,
        u: Floats | None,
        samples: _core.Samples,
        origin: Indices,
    ) -> None:
        self.samples = samples
        self.origin = origin
        self._columns: _core.Columns | None = None
        super().__init__(gram, problem, beta, u)

    def violation(self) -> tuple[float, Floats, Floats]:
        return _core.ends_of(*self._state())

    def _worst(self, kept: Indices, size: int) -> Indices:
        arguments: Any = (*self._state(), kept, size)
        return _core.working_set(*arguments)

    def _survivors(self) -> Indices:
        return _core.survivors(*self._state())

    def _state(self) -> tuple[Any, ...]:
        problem = self.problem
        fixed = (problem.p, problem.lower, problem.upper, problem.d, problem.row, problem.group, len(problem.totals))
        return (*fixed, self.beta, self.u, self.active)

    def block(self, J: Indices) -> Any:
        """K between the rows of the variables J, in the samples' precision."""
        rows = self.problem.row[J]
        if not np.array_equal(rows, self._block_rows):
            self._block_rows = rows
            self._block = self.samples.square(self.origin[rows])
            self._block[np.arange(len(J)), np.arange(len(J))] = self.gram.diagonal[rows]
            self.gram.evaluations += len(J) ** 2
        return self._block

    def move(self, J: Indices, beta: Floats) -> None:
        """Set β on J and bring u of the active rows up to date."""
        delta = beta - self.beta[J]
        changed = np.flatnonzero(delta)
        self.beta[J] = beta
        if len(changed) == 0:
            return
        if self._columns is None:
            self._columns = self.samples.columns(self.origin[self.rows])
        sources, change = self.problem.row[J[changed]], delta[changed]
        if self.problem.twins:
            sources, which = np.unique(sources, return_inverse=True)
            change = sums_by(which, change, len(sources))
        total = self.u[self.rows]
        self.samples.add(total, self._columns, self.origin[sources], change)
        self.u[self.rows] = total
        self.gram.evaluations += len(sources) * len(self.rows)

    def shrink(self) -> bool:
        if not super().shrink():
            return False
        self._columns = None
        return True

    def unshrink(self) -> None:
        for rows, then in self._dropped:
            change = self.problem.row_coefficients(self.beta - then, self.gram.n)
            sources = np.flatnonzero(change)
            total = self.u[rows]
            self.samples.add(total, self.samples.columns(self.origin[rows]), self.origin[sources], change[sources])
            self.u[rows] = total
            self.gram.evaluations += len(sources) * len(rows)
        self._dropped = []
        self._columns = None
        super().unshrink()
