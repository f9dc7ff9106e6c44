"""The state of solves on a stored K, one after another: each problem starts where the last one ended.

From a price C to rC the solution is scaled by r: sums stay zero, bounded coefficients stay bounded, and u = Kβ is
scaled with it, so that the start costs no kernel values. It is kept as it is where that has the larger dual value, as
it has once C bounds nothing any more.

u is known to within e: what the stored values are off by, and the sums. Where that is not enough for the certificate,
rows of u are recomputed in float64, as in every other fit, and the solver goes on from there.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, row_blocks
from mercer.gram.ball import Ball
from mercer.gram.stored_gram import StoredGram
from mercer.problems.dual_problem import DualProblem

# A coefficient this close to its bound, as a share of the largest one, was there before it was scaled.
_SNAP_SHARE = 1e-15
# What that may change in all, in the same unit: u is not computed anew for it, but its errors grow.
_SNAPPED_SHARE = 1e-10
# A change of at most this share of all coefficients goes into u by its rows; a pass over all of K costs as much.
_FEW_SHARE = 0.2
# The name of the level of precision that the stored values have.
_STORED = "float32 values that are stored, with float64 sums"
_EPS = float(np.finfo(float).eps)


class StoredField:
    """β on some rows of a stored K; u = Kβ and a bound e on its errors on all rows, also those that are left out.

    A certificate takes it for the Gram of its rows. It is answered from u and e, and in float64 where they do not
    decide.
    """

    def __init__(self, stored: StoredGram, rows: Indices, *, twins: bool = False) -> None:
        self.stored, self.rows = stored, rows
        self.gram = stored.gram.view(rows)
        self._table = stored.doubled if twins else stored.values
        self._beta = np.zeros(self._table.shape[1])
        self.u, self.e = np.zeros(stored.n), np.zeros(stored.n)
        self._largest: float | None = None  # the upper bound of the last problem

    def copy(self) -> StoredField:
        """Another solve that begins here."""
        other = copy(self)
        other._beta, other.u, other.e = self._beta.copy(), self.u.copy(), self.e.copy()
        return other

    # --- what a certificate asks of K --------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def positive_definite(self) -> str:
        return self.gram.positive_definite

    @property
    def diagonal(self) -> Floats:
        return self.gram.diagonal

    @property
    def reach(self) -> Floats:
        return self.gram.reach

    def errors(self, coefficients: Floats, rows: Indices | None = None, level: Any = np.float64) -> Floats:
        return self.gram.errors(coefficients, rows, level)

    @property
    def levels(self) -> tuple[Any, ...]:
        return (_STORED, *(level for level in self.gram.levels if level != np.float32))

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Any = np.float64) -> Ball:
        """u and e of the field's own β, which these must be the coefficients of; a better level is remembered."""
        rows = np.arange(self.n) if rows is None else rows
        at = self.rows[rows]
        if level != _STORED:
            self.u[at], self.e[at] = self.gram.proof.product_bound(coefficients, rows, level)
        return Ball(self.u[at], self.e[at])

    # --- where a solve starts ----------------------------------------------------------------------------------------

    def start(self, problem: DualProblem) -> Floats:
        """A feasible β near the last one, with its u."""
        variables = self._variables(problem)
        beta, largest = self._beta[variables], float(problem.upper.max(initial=0.0))
        before, self._largest = self._largest, largest
        if problem.totals.any() or before is None or not np.isfinite(largest):
            wish = problem.nearest_feasible(beta) if beta.any() else problem.feasible_start()
            if not np.array_equal(wish, beta):
                self.move(problem, wish)
            return wish
        rows, sizes = self.rows[problem.row], self.stored.sizes
        energy, linear = float(beta @ (self.u[rows] + problem.d * beta)), float(problem.p @ beta)
        ratio = largest / before
        scale = ratio if ratio <= 1 or ratio * linear - 0.5 * ratio**2 * energy > linear - 0.5 * energy else 1.0
        scaled = _onto_bounds(scale * beta, problem)
        snapped = float(np.abs(scaled - scale * beta) @ sizes[rows])
        if not snapped <= _SNAPPED_SHARE * largest * float(sizes.max(initial=0.0)):
            scaled = problem.nearest_feasible(scaled)
            self.move(problem, scaled)
            return scaled
        self._beta[variables] = scaled
        self.u *= scale
        self.e = self.e * scale + 4 * _EPS * np.abs(self.u) + snapped * sizes
        return scaled

    def move(self, problem: DualProblem, beta: Floats) -> None:
        """Set β, and u: by the rows of the coefficients that changed, or from scratch where they are many."""
        before = self._coefficients
        self._beta[:] = 0.0
        self._beta[self._variables(problem)] = beta
        after = self._coefficients
        changed = np.flatnonzero(after != before)
        if len(changed) <= _FEW_SHARE * self.stored.n:
            change = np.zeros(self.stored.n)
            change[changed] = after[changed] - before[changed]
            for some in row_blocks(len(changed), 8 * self.stored.n):
                rows = self.stored.values[changed[some]].astype(np.float64)
                self.u += np.einsum("i,ij->j", change[changed[some]], rows)  # without the threads that BLAS starts
            self.e += self.stored.errors(change) + 2 * _EPS * np.abs(self.u)
        else:
            self.u[:] = 0.0
            _core.add_table(self.u, self.stored.values, np.ascontiguousarray(after), 1)
            self.e = self.stored.errors(after)

    def sharpen(self, rows: Indices) -> None:
        """Recompute u on some rows of the stored K in float64."""
        self.u[rows], self.e[rows] = self.stored.gram.product_bound(self._coefficients, rows, np.float64)

    # --- steps -------------------------------------------------------------------------------------------------------

    def pair_steps(self, problem: DualProblem, tol: float, most: int, seconds: float) -> tuple[Floats, int, str]:
        """β after at most `most` steps from here, how many there were, and why they ended; u and e go with it.

        Where a number is no longer finite, everything stays as it was.
        """
        variables, q, n = self._variables(problem), len(self._beta), self.stored.n
        p, lower, upper, d = np.zeros(q), np.zeros(q), np.zeros(q), np.zeros(q)
        p[variables], lower[variables], upper[variables] = problem.p, problem.lower, problem.upper
        d[variables] = problem.d
        group = np.full(q, problem.group[0], np.int32)
        group[variables] = problem.group
        beta, u = self._beta.copy(), self.u.copy() if q == n else np.tile(self.u, 2)
        bounds = (lower, upper, d, group)
        steps, _, reason = _core.solve_stored(self._table, np.arange(q) % n, p, beta, u, *bounds, tol, most, seconds)
        if reason not in ("nonfinite", "unbounded"):
            # The core adds K's change to u in one sum of q terms at most, each with a difference that is rounded.
            sizes, lengths = self.stored.sizes, np.abs(self._beta) + np.abs(beta)
            summed = _EPS * q * float(lengths @ np.tile(sizes, q // n)) * sizes
            before = self._coefficients
            self._beta, self.u = beta, u[:n]
            self.e += self.stored.errors(self._coefficients - before) + summed + 2 * _EPS * np.abs(self.u)
        return self._beta[variables], steps, reason

    @property
    def _coefficients(self) -> Floats:
        n = self.stored.n
        return self._beta.copy() if len(self._beta) == n else self._beta[:n] + self._beta[n:]

    def _variables(self, problem: DualProblem) -> Indices:
        """Which columns of the table the variables are: the second ones of their rows are in its second half."""
        second = np.arange(problem.n_variables) >= len(self.rows)
        return np.asarray(self.rows[problem.row] + second * self.stored.n)


def _onto_bounds(beta: Floats, problem: DualProblem) -> Floats:
    """β inside the box, exactly on a bound that rounding had moved it away from, and with the sums that it should have.

    What is missing in a sum is less than a rounding error of each term, and one free variable takes it.
    """
    near = _SNAP_SHARE * float(problem.upper.max(initial=0.0))
    beta = np.clip(beta, problem.lower, problem.upper)
    for bound in (problem.lower, problem.upper):
        beta = np.where(np.abs(beta - bound) <= near, bound, beta)
    for g, total in enumerate(problem.totals):
        members = np.flatnonzero(problem.group == g)
        missing = total - float(beta[members].sum())
        rooms = np.minimum(beta[members] - problem.lower[members], problem.upper[members] - beta[members])
        widest = int(np.argmax(rooms))
        if rooms[widest] > abs(missing):
            beta[members[widest]] += missing
    return beta
