"""The state of a solve: β, u = Kβ and the active set, in plain NumPy, for kernels that the core does not compute.

The decomposition loop asks it for the worst violators and for K on the working set, and tells it to move and to shrink.
The field does not know which machine is solved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.arrays import Flags, Floats, Indices, sums_by
from mercer.gram.active_set import ActiveSet
from mercer.gram.column_cache import ColumnCache
from mercer.problems.working_set import violation, working_set

if TYPE_CHECKING:
    from mercer.gram.gram import Gram
    from mercer.problems.dual_problem import DualProblem

# A shrink must remove at least this share of the active variables to be worth the copying.
_SHRINK_SHARE = 0.2
# A variable is dropped if its gradient is outside the ends of its group by this share of the violation. With no margin
# some must come back, which costs another pass of the certificate (w8a); with 0.3, mnist keeps 8 % more rows in vain.
_SHRINK_MARGIN_SHARE = 0.1


class Field(ActiveSet):
    """β over all variables and u over all rows; only the active rows of u are current."""

    problem: DualProblem

    def __init__(self, gram: Gram, problem: DualProblem, beta: Floats, u: Floats | None) -> None:
        u = gram.product(problem.row_coefficients(beta, gram.n)) if u is None else u
        super().__init__(gram, beta, u, problem.n_variables)
        self.problem = problem
        self.rows: Indices = np.arange(gram.n)
        self._cache = ColumnCache(gram.budget // 2)

    def gradient(self, J: Indices) -> Floats:
        """h on the variables J, which must be active."""
        problem = self.problem
        return problem.p[J] - self.u[problem.row[J]] - problem.d[J] * self.beta[J]

    def violation(self) -> tuple[float, Floats, Floats]:
        """Over the active variables: the largest violation, and each group's two ends."""
        return violation(*self._view(self.active))

    def move(self, J: Indices, beta: Floats) -> None:
        """Set β on J, the variables whose block was asked for last, and bring u of the active rows up to date."""
        delta = beta - self.beta[J]
        changed = np.flatnonzero(delta)
        self.beta[J] = beta
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
        return True

    def unshrink(self) -> None:
        super().unshrink()
        self._cache.clear()
        self.rows = np.arange(self.gram.n)

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
        others = np.setdiff1d(self.active, kept, assume_unique=True)
        return others[working_set(*self._view(others), size)]

    def _survivors(self) -> Indices:
        """The active variables that are free or could still be chosen."""
        tops, bottoms = self._shrinking_ends()
        h, up, low, group, n_groups = self._view(self.active)
        g = group if n_groups else np.zeros(len(group), dtype=np.intp)
        stay = (up & low) | (up & (h >= bottoms[g])) | (low & (h <= tops[g]))
        return np.asarray(self.active[stay])

    def _shrinking_ends(self) -> tuple[Floats, Floats]:
        """Each group's two ends, moved apart by the margin for dropping variables."""
        violation, tops, bottoms = self.violation()
        margin = _SHRINK_MARGIN_SHARE * violation
        return tops + margin, bottoms - margin

    def _view(self, J: Indices) -> tuple[Floats, np.ndarray, np.ndarray, np.ndarray, int]:
        """What the working-set rule needs of the variables J: h, may grow, may shrink, group, number of groups."""
        problem, beta = self.problem, self.beta[J]
        up, low = beta < problem.upper[J], beta > problem.lower[J]
        return self.gradient(J), up, low, problem.group[J], len(problem.totals)

    def _spread(self, sources: Indices, coefficients: Floats, targets: Indices) -> None:
        """u[targets] += K[targets, sources] @ coefficients, through the cache if its budget holds the rows."""
        if self.gram.stored or 16 * len(self.rows) * len(sources) > self.gram.budget:
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
