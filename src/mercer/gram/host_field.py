"""The state of a solve in this machine's memory, on whatever Gram: β, u = Kβ, the active set, and the working set.

`ActiveSet` is what the states of all solves share. `HostField` is the plain `Field`: an engine that computes blocks and
products has a fast chooser of working sets with it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.arrays import Flags, Floats, Indices, sums_by

if TYPE_CHECKING:
    from mercer.gram.gram import Gram
    from mercer.problems.dual_problem import DualProblem

# A shrink must remove at least this share of the active variables to be worth the copying.
_SHRINK_SHARE = 0.2
# A variable is dropped if its gradient is outside the ends of its group by this share of the violation. With no margin
# some must come back, which costs another pass of the certificate (w8a); with 0.3, mnist keeps 8 % more rows in vain.
_SHRINK_MARGIN_SHARE = 0.1


class ActiveSet:
    """β and u over everything, of which the active part is current; `n` variables or samples can be active.

    Only the rows of u that belong to them are up to date; `unshrink` brings the others up to date.
    """

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


class HostField(ActiveSet):
    """A `Field` in this machine's memory on any Gram: β over all variables and u over all rows.

    The core chooses working sets; products and blocks come from the Gram, and rows of a slow kernel are cached.
    """

    def __init__(
        self, gram: Gram, problem: DualProblem, beta: Floats, u: Floats | None = None, n_threads: int = 1
    ) -> None:
        u = gram.product(problem.row_coefficients(beta, gram.n)) if u is None else u
        super().__init__(gram, beta, u, problem.n_variables)
        self.problem = problem
        self.rows: Indices = np.arange(gram.n)
        self._cache = _ColumnCache(gram.budget // 2)
        self._chooser = problem.chooser(self.beta, self.u, n_threads)
        self._chooser.choose(self.active)
        self._ends: tuple[float, Floats, Floats] | None = None  # at the current β

    def gradient(self, J: Indices) -> Floats:
        """h on the variables J, which must be active."""
        problem = self.problem
        return problem.p[J] - self.u[problem.row[J]] - problem.d[J] * self.beta[J]

    def violation(self) -> tuple[float, Floats, Floats]:
        """Over the active variables: the largest violation, and each group's two ends."""
        if self._ends is None:
            self._ends = self._chooser.ends()
        return self._ends

    def move(self, J: Indices, beta: Floats) -> None:
        """Set β on J, the variables whose block was asked for last, and bring u of the active rows up to date."""
        delta = beta - self.beta[J]
        changed = np.flatnonzero(delta)
        self.beta[J], self._ends = beta, None
        rows = self.problem.row[J]
        inside, first = np.unique(rows, return_index=True)
        self.u[inside] += self._block[np.ix_(first, changed)] @ delta[changed]
        outside = np.setdiff1d(self.rows, inside, assume_unique=True)
        if len(outside) and len(changed):
            sources, which = np.unique(rows[changed], return_inverse=True)
            self._spread(sources, sums_by(which, delta[changed], len(sources)), outside)

    def shrink(self) -> bool:
        """Drop bounded variables that no pair would choose, if there are enough of them; whether any were dropped."""
        stay = self._survivors()
        if len(stay) > (1 - _SHRINK_SHARE) * len(self.active):
            return False
        self._activate(stay)
        rows = np.unique(self.problem.row[stay]) if self.problem.twins else stay
        positions = np.searchsorted(self.rows, rows)
        self._dropped.append((np.delete(self.rows, positions), self.beta.copy()))
        self._cache.keep(positions)
        self.rows = rows
        self._chooser.choose(self.active)
        return True

    def _survivors(self) -> Indices:
        """The active variables that are free or could still be chosen."""
        violation, tops, bottoms = self.violation()
        margin = _SHRINK_MARGIN_SHARE * violation
        return self._chooser.survivors(tops + margin, bottoms - margin)

    def unshrink(self) -> None:
        super().unshrink()
        self._cache.clear()
        self.rows, self._ends = np.arange(self.gram.n), None
        self._chooser.choose(self.active)

    def _free(self, J: Indices) -> Flags:
        beta = self.beta[J]
        return np.asarray((beta > self.problem.lower[J]) & (beta < self.problem.upper[J]))

    def _rows_of(self, J: Indices) -> Indices:
        return self.problem.row[J]

    def _square_of(self, rows: Indices) -> Any:
        if all(r in self._cache for r in rows.tolist()):
            at = np.searchsorted(self.rows, rows)
            return np.stack([self._cache.get(r)[at] for r in rows.tolist()])
        return self.gram.block(rows, rows)

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        self.u[rows] += self.gram.product(self.problem.row_coefficients(change, self.gram.n), rows)

    def _worst(self, kept: Indices, size: int) -> Indices:
        return self._chooser.working_set(*self.violation()[1:], kept, size)

    def _spread(self, sources: Indices, coefficients: Floats, targets: Indices) -> None:
        """u[targets] += K[targets, sources] @ coefficients, through the cache if its budget holds the rows."""
        if self.gram.recomputes_cheaply or 16 * len(self.rows) * len(sources) > self.gram.budget:
            full = np.zeros(self.gram.n)
            full[sources] = coefficients
            self.u[targets] += self.gram.product(full, targets)
            return
        missing = np.array([r for r in sources.tolist() if not self._cache.touch(r)], dtype=np.intp)
        for r, column in zip(missing.tolist(), self.gram.block(missing, self.rows), strict=True):
            self._cache.put(r, column)
        total = np.zeros(len(self.rows))
        for r, coefficient in zip(sources.tolist(), coefficients, strict=True):
            total += coefficient * self._cache.get(r)
        self.u[targets] += total[np.searchsorted(self.rows, targets)]


class _ColumnCache:
    """Recently used rows of K over the active columns by their index, in at most `budget` bytes."""

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
