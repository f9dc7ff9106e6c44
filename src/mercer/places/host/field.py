"""The state of a solve on the host, for any Gram: β, u = Kβ, the active set, and the working set.

`ActiveSet` is the common base of the states of all solves. `HostField` is the plain `Field`, whose docstrings describe
the methods of both: it gives an engine that computes blocks and products the core's fast working-set selection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mercer.samples.arrays import Flags, Floats, Indices, Values, sums_by

if TYPE_CHECKING:
    from mercer.places.gram import Field, Gram
    from mercer.places.host.blocks import RoundsResult
    from mercer.problems.dual_problem import DualProblem

# A shrink must remove at least this fraction of the active variables to be worth the copying.
SHRINK_SHARE = 0.2
# A variable is dropped if its gradient is outside the ends of its group by this fraction of the violation. Without a
# margin some variables must become active again, which costs another pass of the certificate (w8a); with 0.3, mnist
# keeps 8 % more rows in vain.
SHRINK_MARGIN_SHARE = 0.1


class ActiveSet:
    """β and u of all variables or samples, of which some are active; `n` is their number.

    Only the rows of u that belong to active variables are up to date; `unshrink` brings the others up to date.
    """

    _free: Callable[[Indices], Flags]  # mask of the variables that can move in both directions
    _worst: Callable[[Indices, int], Indices]  # this number of worst violators, active and not among those kept
    _rows_of: Callable[[Indices], Indices]  # rows of the Gram that belong to variables
    _square_of: Callable[[Indices], Values]  # K[rows, rows]
    _catch_up: Callable[[Indices, Floats], None]  # u[rows] += K[rows] times a change of β

    def __init__(self, gram: Gram, beta: Floats, u: Floats, n: int) -> None:
        self.gram = gram
        self.beta = beta.copy()
        self.u = u.copy()
        self.active: Indices = np.arange(n)
        self._n = n
        self._dropped_rows: list[tuple[Indices, Floats]] = []  # rows, and β at the moment they were dropped
        self._last_set: Indices = np.empty(0, dtype=np.intp)
        self._block: Values = np.empty((0, 0))
        self._block_rows: Indices = np.empty(0, dtype=np.intp)

    @property
    def shrunk(self) -> bool:
        return bool(self._dropped_rows)

    def violators(self, q: int, keep: float) -> Indices:
        """Return up to q variables: up to q·keep of the last set, free ones first, and the worst violators."""
        if q >= len(self.active):
            return self.active
        previous = self._last_set
        from_last_set = previous[np.argsort(~self._free(previous), kind="stable")][: int(q * keep)]
        self._last_set = np.concatenate([self._worst(from_last_set, q - len(from_last_set)), from_last_set])
        return self._last_set

    def _activate(self, active: Indices) -> None:
        """Make these variables the active ones."""
        self.active = active
        self._last_set = self._last_set[np.isin(self._last_set, active)]

    def block(self, J: Indices) -> Values:
        """Return K between the rows of J; the last block is returned again if it has the same rows."""
        rows = self._rows_of(J)
        if not np.array_equal(rows, self._block_rows):
            self._block_rows = rows
            self._block = self._square_of(rows)
        return self._block

    def unshrink(self) -> None:
        """Make all variables active again; each dropped row is updated by the change of β since it was dropped."""
        for rows, old_beta in self._dropped_rows:
            self._catch_up(rows, self.beta - old_beta)
        self._dropped_rows = []
        self.active = np.arange(self._n)


class HostField(ActiveSet):
    """A `Field` on the host for any Gram: β of all variables and u of all rows.

    The core chooses working sets; products and blocks come from the Gram, and rows of a slow kernel are cached.
    """

    def __init__(
        self, gram: Gram, problem: DualProblem, beta: Floats, u: Floats | None = None, n_threads: int = 1
    ) -> None:
        u = gram.product(problem.row_coefficients(beta, gram.n)) if u is None else u
        super().__init__(gram, beta, u, problem.n_variables)
        self.problem = problem
        self.rows: Indices = np.arange(gram.n)
        self._cache: dict[int, Floats] = {}  # rows of a slow kernel over the active columns
        self._selector = problem.working_set_selector(self.beta, self.u, n_threads)
        self._selector.choose(self.active)
        self._ends: tuple[float, Floats, Floats] | None = None  # result of `violation` at the current β

    def run_rounds(self, count: int, size: int, share: float, min_tol: float, max_steps: int) -> RoundsResult | None:
        return None

    def copy_to_host(self) -> None:
        """Do nothing: β and u are always on the host."""

    def gradient(self, J: Indices) -> Floats:
        """Return the gradient h of the variables J."""
        problem = self.problem
        return problem.p[J] - self.u[problem.row[J]] - problem.d[J] * self.beta[J]

    def violation(self) -> tuple[float, Floats, Floats]:
        """Return the largest violation, and for each group the largest and the smallest h behind it."""
        if self._ends is None:
            self._ends = self._selector.ends()
        return self._ends

    def move(self, J: Indices, beta: Floats) -> None:
        """Set β on J, and bring u of the active rows up to date."""
        delta = beta - self.beta[J]
        changed_positions = np.flatnonzero(delta)
        self.beta[J], self._ends = beta, None
        rows = self.problem.row[J]
        other_rows = self.rows
        if np.array_equal(rows, self._block_rows):
            block_rows, positions = np.unique(rows, return_index=True)
            self.u[block_rows] += self._block[np.ix_(positions, changed_positions)] @ delta[changed_positions]
            other_rows = np.setdiff1d(self.rows, block_rows, assume_unique=True)
        if len(other_rows) and len(changed_positions):
            sources, position = np.unique(rows[changed_positions], return_inverse=True)
            self._spread(sources, sums_by(position, delta[changed_positions], len(sources)), other_rows)

    def inner_field(self, J: Indices) -> Field:
        """Return the state of the problem on J, with all other variables held fixed."""
        rows, part = self._inner_problem(J)
        return self.gram.view(rows).field(part, self.beta[J], np.zeros(len(rows)))

    def _inner_problem(self, J: Indices) -> tuple[Indices, DualProblem]:
        """Return the rows of J, and the problem on J; its p contains the present u, so that its own u starts at 0."""
        rows = self.problem.row[J]
        rows = rows if (np.diff(rows) > 0).all() else np.unique(rows)
        return rows, self.problem.restricted(J, rows, self.beta, self.u[rows])

    def shrink(self) -> bool:
        """Drop variables at a bound that no pair would choose, if there are enough of them; return whether it did."""
        survivors = self._survivors()
        if len(survivors) > (1 - SHRINK_SHARE) * len(self.active):
            return False
        self._activate(survivors)
        rows = np.unique(self.problem.row[survivors]) if self.problem.twins else survivors
        positions = np.searchsorted(self.rows, rows)
        self._dropped_rows.append((np.delete(self.rows, positions), self.beta.copy()))
        self._cache = {r: column[positions] for r, column in self._cache.items()}
        self.rows = rows
        self._selector.choose(self.active)
        return True

    def _survivors(self) -> Indices:
        """Return the active variables that are free or could still be chosen."""
        violation, tops, bottoms = self.violation()
        margin = SHRINK_MARGIN_SHARE * violation
        return self._selector.survivors(tops + margin, bottoms - margin)

    def unshrink(self) -> None:
        """Make all variables active again, and bring u of all rows up to date."""
        super().unshrink()
        self._cache = {}
        self.rows, self._ends = np.arange(self.gram.n), None
        self._selector.choose(self.active)

    def _free(self, J: Indices) -> Flags:
        """Return which of the variables J lie strictly between their bounds."""
        beta = self.beta[J]
        return np.asarray((beta > self.problem.lower[J]) & (beta < self.problem.upper[J]))

    def _rows_of(self, J: Indices) -> Indices:
        return self.problem.row[J]

    def _square_of(self, rows: Indices) -> Values:
        """Return K[rows, rows], from the cache if that holds all these rows."""
        if all(r in self._cache for r in rows.tolist()):
            positions = np.searchsorted(self.rows, rows)
            return np.stack([self._cache[r][positions] for r in rows.tolist()])
        return self.gram.block(rows, rows)

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        """Add K[rows] times a change of β to u[rows]."""
        self.u[rows] += self.gram.product(self.problem.row_coefficients(change, self.gram.n), rows)

    def _worst(self, kept: Indices, size: int) -> Indices:
        return self._selector.working_set(*self.violation()[1:], kept, size)

    def _spread(self, sources: Indices, coefficients: Floats, targets: Indices) -> None:
        """Add K[targets, sources] @ coefficients to u[targets], through the cache if its budget holds the rows."""
        if self.gram.recomputes_cheaply or 16 * len(self.rows) * len(sources) > self.gram.budget:
            all_coefficients = np.zeros(self.gram.n)
            all_coefficients[sources] = coefficients
            self.u[targets] += self.gram.product(all_coefficients, targets)
            return
        needed = sources.tolist()
        missing = np.array([r for r in needed if r not in self._cache], dtype=np.intp)
        if 16 * len(self.rows) * (len(self._cache) + len(missing)) > self.gram.budget:  # keep only the needed rows
            self._cache = {r: self._cache[r] for r in needed if r in self._cache}
        self._cache.update(zip(missing.tolist(), self.gram.block(missing, self.rows), strict=True))
        total = np.zeros(len(self.rows))
        for r, coefficient in zip(needed, coefficients, strict=True):
            total += coefficient * self._cache[r]
        self.u[targets] += total[np.searchsorted(self.rows, targets)]
