"""K of all samples, stored once for many problems with a bound on what each value is off by, and solves on it.

A `StoredField` solves one problem after another, each from where the last one ended. From a price C to rC the solution
is scaled by r: sums stay zero, bounded coefficients stay bounded, and u = Kβ is scaled with it, so that the start costs
no kernel values. It is kept as it is where that has the larger dual value, as it has once C bounds nothing any more.

u is known to within e: what the stored values are off by, and the sums. Where that is not enough for the certificate,
rows of u are recomputed in float64, as in every other fit, and the solver goes on from there.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer import _core
from mercer.places.ball import Ball
from mercer.places.gram import Gram, Rounded, Variables
from mercer.places.rounding import DOUBLE, SINGLE
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, Precision, Values, row_blocks

# Rows of a square block of kernel values that is computed at a time: 2 MB.
_BLOCK_ROWS = 512
# Larger values could overflow in float32 together with their coefficients.
_LARGEST_VALUE = 1e30
# A coefficient this close to its bound, as a share of the largest one, was there before it was scaled.
_SNAP_SHARE = 1e-15
# What that may change in all, in the same unit: u is not computed anew for it, but its errors grow.
_SNAPPED_SHARE = 1e-10
# A change of at most this share of all coefficients goes into u by its rows; a pass over all of K costs as much.
_FEW_SHARE = 0.2
# The name of the level of precision that the stored values have.
_STORED = "float32 values that are stored, with float64 sums"
# Float32 has steps of this size below its normal numbers, where its rounding is no share of the value any more.
_UNDERFLOW = float(np.finfo(np.float32).smallest_subnormal)
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class HostRounded:
    """`Rounded` in this machine's memory; float64 values will do as well."""

    values: Values

    @property
    def largest(self) -> float:
        n = len(self.values)
        found = [np.abs(self.values[some]).max(initial=0.0) for some in row_blocks(n, 4 * n)]
        return float(np.max(found, initial=0.0))  # NaN if there is one

    def product(self, coefficients: Floats) -> Floats:
        n, out, used = len(self.values), np.zeros(len(self.values)), np.flatnonzero(coefficients)
        if len(used) > _FEW_SHARE * n:
            _core.add_table(out, self.values, np.ascontiguousarray(coefficients), 1)
            return out
        for some in row_blocks(len(used), 8 * n):
            rows = self.values[used[some]].astype(np.float64)
            out += np.einsum("i,ij->j", coefficients[used[some]], rows)  # without the threads that BLAS starts
        return out

    def steps(self, box: Variables, beta: Floats, u: Floats, tol: float, most: int, seconds: float) -> tuple[int, str]:
        n, q = len(u), len(beta)
        table, both = (self.values, u) if q == n else (self._doubled, np.tile(u, 2))
        which, limits = np.arange(q) % n, (tol, most, seconds)
        taken, _, reason = _core.solve_stored(table, which, box.p, beta, both, *box[1:], *limits)
        u[:] = both[:n]
        return taken, reason

    @cached_property
    def _doubled(self) -> Values:
        """K beside itself: a column for each of the two variables of a sample."""
        return np.concatenate([self.values, self.values], axis=1)


@dataclass(frozen=True, eq=False)
class StoredGram:
    """K in float32 or float64, and the Gram that knows its values better."""

    table: Rounded
    gram: Gram
    level: Precision  # the precision in which the Gram computed the values
    unit: float  # by how much rounding changed them since: |δk_ij| ≤ unit · size_i · size_j
    sizes: Floats  # `reach` of the Gram that proves

    @classmethod
    def plain(cls, gram: Gram) -> StoredGram:
        """K as the Gram computes it fastest."""
        level = gram.precisions[0]
        return cls(HostRounded(gram.full(level)), gram, level, 0.0, gram.proof.reach)

    @classmethod
    def of(cls, gram: Gram) -> StoredGram:
        """K of a Gram in float64, rounded to float32."""
        table = gram.rounded()
        if not table.largest < _LARGEST_VALUE:
            raise FloatingPointError(f"float32 does not hold the values of {gram.kernel!r}; scale the features")
        return cls(table, gram, np.float64, 1.01 * SINGLE, gram.proof.reach)

    @property
    def n(self) -> int:
        return len(self.sizes)

    def errors(self, coefficients: Floats) -> Floats:
        """How far each row's product with these coefficients can be from the true one, if it is summed in float64.

        Of values whose Gram leaves proofs to another one nothing is known.
        """
        used = np.flatnonzero(coefficients)
        if self.gram.proof is not self.gram:
            return np.full(self.n, np.inf if len(used) else 0.0)
        mass = float(np.abs(coefficients[used]) @ self.sizes[used])
        stored = (self.unit + (len(used) + 4) * DOUBLE) * 1.01 * mass * self.sizes
        stored += _UNDERFLOW * float(np.abs(coefficients[used]).sum())
        return stored + self.gram.errors(coefficients, level=self.level)


def rounded_of(gram: Gram) -> HostRounded:
    """`Gram.rounded` on this machine, block by block above the diagonal."""
    n, everything, values = gram.n, np.arange(gram.n), np.empty((gram.n, gram.n), np.float32)
    with np.errstate(over="ignore"):
        for left in range(0, n, _BLOCK_ROWS):
            own = slice(left, min(n, left + _BLOCK_ROWS))
            for top in range(0, left + 1, _BLOCK_ROWS):
                other = slice(top, min(n, top + _BLOCK_ROWS))
                _core.check_stop()
                values[other, own] = gram.block(everything[other], everything[own])
                values[own, other] = values[other, own].T
        values[everything, everything] = gram.diagonal
    return HostRounded(values)


class StoredField:
    """β on some rows of a stored K; u = Kβ and a bound e on its errors on all rows, also those that are left out.

    A certificate takes it for the Gram of its rows. It is answered from u and e, and in float64 where they do not
    decide. Without `proven` nobody asks for e, which is then infinite.
    """

    def __init__(self, stored: StoredGram, rows: Indices, *, twins: bool = False, proven: bool = True) -> None:
        self.stored, self.rows, self._proven = stored, rows, proven
        self.gram = stored.gram.view(rows)
        self._beta = np.zeros(2 * stored.n if twins else stored.n)
        self.u, self.e = np.zeros(stored.n), np.full(stored.n, 0.0 if proven else np.inf)
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
        return self.gram.proof.reach

    def errors(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Floats:
        return self.gram.proof.errors(coefficients, rows, level)

    @property
    def levels(self) -> tuple[Precision, ...]:
        return (_STORED, *(level for level in self.gram.proof.levels if level != np.float32))

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Ball:
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
        scaled = np.clip(scale * beta, problem.lower, problem.upper)
        for bound in (problem.lower, problem.upper):  # exactly on a bound that rounding has moved it away from
            scaled = np.where(np.abs(scaled - bound) <= _SNAP_SHARE * largest, bound, scaled)
        scaled = problem.nearest_feasible(scaled)
        snapped = float(np.abs(scaled - scale * beta) @ sizes[rows])
        if not snapped <= _SNAPPED_SHARE * largest * float(sizes.max(initial=0.0)):
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
            self.u += self.stored.table.product(change)
            if self._proven:
                self.e += self.stored.errors(change) + 2 * _EPS * np.abs(self.u)
        else:
            self.u[:] = self.stored.table.product(after)
            self.e = self.stored.errors(after) if self._proven else self.e

    def sharpen(self, rows: Indices) -> None:
        """Recompute u on some rows of the stored K in float64."""
        self.u[rows], self.e[rows] = self.stored.gram.proof.product_bound(self._coefficients, rows, np.float64)

    # --- steps -------------------------------------------------------------------------------------------------------

    def pair_steps(self, problem: DualProblem, tol: float, most: int, seconds: float) -> tuple[Floats, int, str]:
        """β after at most `most` steps from here, how many there were, and why they ended; u and e go with it.

        Where a number is no longer finite, everything stays as it was.
        """
        variables, q, n = self._variables(problem), len(self._beta), self.stored.n
        p, lower, upper, d = np.zeros((4, q))
        box = Variables(p, lower, upper, d, np.full(q, problem.group[0], np.int32))
        for part in Variables._fields:
            getattr(box, part)[variables] = getattr(problem, part)
        beta, u = self._beta.copy(), self.u.copy()
        steps, reason = self.stored.table.steps(box, beta, u, tol, most, seconds)
        if reason not in ("nonfinite", "unbounded"):
            before, ends = self._coefficients, np.abs(self._beta) + np.abs(beta)
            self._beta, self.u = beta, u
            if self._proven:
                # K's change is added to u in one sum of q terms at most, each with a difference that is rounded.
                sizes = self.stored.sizes
                summed = _EPS * q * float(ends @ np.tile(sizes, q // n)) * sizes
                self.e += self.stored.errors(self._coefficients - before) + summed + 2 * _EPS * np.abs(self.u)
        if not problem.keeps_sums(self._beta[variables]):
            self.move(problem, problem.nearest_feasible(self._beta[variables]))
        return self._beta[variables], steps, reason

    @property
    def _coefficients(self) -> Floats:
        n = self.stored.n
        return self._beta.copy() if len(self._beta) == n else self._beta[:n] + self._beta[n:]

    def _variables(self, problem: DualProblem) -> Indices:
        """Which columns of the table the variables are: the second ones of their rows are in its second half."""
        second = np.arange(problem.n_variables) >= len(self.rows)
        return np.asarray(self.rows[problem.row] + second * self.stored.n)
