"""The state of a solve whose kernel values the fused core computes: rows of K are added to u as they are computed.

Rows are kept only if computing them again would cost more than reading them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, sums_by
from mercer.gram.block_buffer import BlockBuffer
from mercer.gram.field import Field
from mercer.gram.kept_rows import KeptRows

if TYPE_CHECKING:
    from mercer.gram.gram import Gram
    from mercer.problems.dual_problem import DualProblem


# Where the block has at least this share of the active rows, what they change by is summed from it: that saves more
# than it costs to lay out the other rows anew.
_BLOCK_SHARE = 1 / 8


class TiledField(Field):
    """A Field on prepared samples; `origin` holds the places of this problem's rows in them."""

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
        self._kept = KeptRows(gram.n, gram.budget // 2, gram.n_threads) if samples.dear else None
        self._square = BlockBuffer(samples)
        super().__init__(gram, problem, beta, u)
        fixed = (problem.p, problem.lower, problem.upper, problem.d, problem.row, problem.group, len(problem.totals))
        self._chooser = _core.Active(*fixed, self.beta, self.u, gram.n_threads)
        self._chooser.choose(self.active)
        self._ends: tuple[float, Floats, Floats] | None = None  # at the current β

    def violation(self) -> tuple[float, Floats, Floats]:
        if self._ends is None:
            self._ends = self._chooser.ends()
        return self._ends

    def violators(self, q: int, keep: float) -> Indices:
        J = super().violators(q, keep)
        if self._kept is None or len(J) == self.problem.n_variables:
            return J
        return J[np.argsort(self._kept.holds(self.problem.row[J]), kind="stable")]  # what is kept comes last

    def _worst(self, kept: Indices, size: int) -> Indices:
        return self._chooser.working_set(*self.violation()[1:], kept, size)

    def _survivors(self) -> Indices:
        return self._chooser.survivors(*self._shrinking_ends())

    def _square_of(self, rows: Indices) -> Any:
        """K[rows, rows]: kept values are copied, the rest is computed."""
        kept, diagonal = self._kept, self.gram.diagonal[rows]
        new = len(rows) if kept is None else int((~kept.holds(rows)).sum())
        self.gram.evaluations += new**2
        if kept is None or new == len(rows) or kept.holds(rows[:new]).any():
            return self._square(self.origin[rows], diagonal)
        at = np.searchsorted(self.rows, rows)
        return self._square(
            self.origin[rows[:new]], diagonal, lambda out: kept.copy(at, rows[new:], out), self.gram.n_threads
        )

    def move(self, J: Indices, beta: Floats) -> None:
        delta = beta - self.beta[J]
        changed = np.flatnonzero(delta)
        self.beta[J] = beta
        self._ends = None
        if len(changed) == 0:
            return
        rows, everywhere = self.problem.row[J], len(self.rows) == self.gram.n
        total = self.u if everywhere else self.u[self.rows]
        if self.problem.twins:
            sources, which = np.unique(rows[changed], return_inverse=True)
            self._add(total, sources, sums_by(which, delta[changed], len(sources)), None)
        else:
            self._add(total, rows[changed], delta[changed], changed if np.array_equal(rows, self._block_rows) else None)
        if not everywhere:
            self.u[self.rows] = total

    def _add(self, total: Floats, sources: Indices, change: Floats, at: Indices | None) -> None:
        """total += K[active, sources] @ change; `at` says where the sources are in the last block, if they are."""
        kept = self._kept
        if kept is not None:
            left = kept.add(total, sources, change)
            sources, change, at = sources[left], change[left], None if at is None else at[left]
        if len(sources) == 0:
            return
        keeps = kept is not None and kept.fits(len(self.rows), len(sources), self.samples.dtype.itemsize)
        known: Indices = np.empty(0, dtype=np.intp)  # the active rows that the block has
        if at is not None and (keeps or len(self._block_rows) >= _BLOCK_SHARE * len(self.rows)):
            known = np.searchsorted(self.rows, self._block_rows)
        others = np.delete(np.arange(len(self.rows)), known)
        self.gram.evaluations += len(sources) * len(others)
        if kept is not None and keeps:
            self._add_and_keep(kept, total, sources, change, at, known, others)
        elif at is not None and len(known):
            self._add_with_block(total, sources, change, at, known, others)
        else:
            if self._columns is None:
                self._columns = self.samples.columns(self.origin[self.rows])
            self.samples.add(total, self._columns, self.origin[sources], change)

    def _add_and_keep(
        self, kept: KeptRows, total: Floats, sources: Indices, change: Floats, at: Any, known: Indices, others: Indices
    ) -> None:
        """Add the change by a table of kernel values that is kept; its last rows are copied from the block."""
        table = self.samples.table(self.origin[self.rows[others]], self.origin[sources], len(known))
        place = None
        if len(known):
            rows, columns = np.arange(len(known)), np.arange(len(sources))
            _core.copy_entries(self._block, rows, at, table[len(others) :], columns, self.gram.n_threads)
            place = np.empty(len(self.rows), dtype=np.intp)  # of each active row in the table
            place[others], place[known] = np.arange(len(others)), len(others) + rows
        _core.add_table(total, table, change, self.gram.n_threads, place)
        kept.put(sources, table, place)

    def _add_with_block(
        self, total: Floats, sources: Indices, change: Floats, at: Indices, known: Indices, others: Indices
    ) -> None:
        """Add the change where the block serves the rows it has, and the others are laid out for this once."""
        step, sums = np.zeros(len(known)), np.zeros(len(known))
        step[at] = change
        _core.add_table(sums, self._block, step, self.gram.n_threads)
        total[known] += sums
        part = total[others]
        self.samples.add(part, self.samples.columns(self.origin[self.rows[others]]), self.origin[sources], change)
        total[others] = part

    def shrink(self) -> bool:
        before = self.rows
        if not super().shrink():
            return False
        self._columns = None
        self._chooser.choose(self.active)
        if self._kept is not None:
            self._kept.keep(np.searchsorted(before, self.rows))
        return True

    def unshrink(self) -> None:
        super().unshrink()
        self._columns = None
        if self._kept is not None:
            self._kept.clear()
        self._chooser.choose(self.active)
        self._ends = None

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        coefficients = self.problem.row_coefficients(change, self.gram.n)
        sources, total = np.flatnonzero(coefficients), self.u[rows]
        self.samples.add(total, self.samples.columns(self.origin[rows]), self.origin[sources], coefficients[sources])
        self.u[rows] = total
        self.gram.evaluations += len(sources) * len(rows)
