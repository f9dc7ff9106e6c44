"""K of all samples, stored once for many problems with bounds on the errors of its values, and solves on it.

A `StoredField` solves one problem after another, each started from the last solution. If C changes to rC, the solution
is scaled by r: sums stay zero, bounded coefficients stay bounded, and u = Kβ is scaled with it, so that the start costs
no kernel values. It is not scaled if that gives a larger dual value, as it does once no coefficient is bounded.

The error of u is at most e, which covers the stored values and the sums. If that is too large for the certificate, rows
of u are recomputed in float64, as in every other fit, and the solver continues from there.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer import _core
from mercer.places.ball import Ball
from mercer.places.gram import BoxVariables, Float32Matrix, Gram
from mercer.places.rounding import DOUBLE, SINGLE
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, Precision, Values, row_blocks

# Rows of a square block of kernel values that is computed at a time: 2 MB.
_BLOCK_ROWS = 512
# Larger values could overflow in float32 together with their coefficients.
_LARGEST_VALUE = 1e30
# A scaled coefficient this close to a bound, relative to the largest bound, was on the bound before it was scaled.
_SNAP_DISTANCE = 1e-15
# Largest total change, in the same unit, from moving coefficients onto bounds for which u is not recomputed: the error
# bounds of u grow instead.
_LARGEST_SNAP = 1e-10
# If at most this fraction of the coefficients changed, u is updated by their rows; otherwise it is recomputed from K.
_FEW_SHARE = 0.2
# Name of the precision level of the stored values.
_STORED_LEVEL = "float32 values that are stored, with float64 sums"
# Spacing of float32 numbers below its normal range, where rounding errors are absolute.
_UNDERFLOW = float(np.finfo(np.float32).smallest_subnormal)
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class HostFloat32Matrix:
    """A `Float32Matrix` on the host; its values may also be float64."""

    values: Values

    @property
    def largest(self) -> float:
        """Largest |value|; NaN if one of the values is."""
        n = len(self.values)
        maxima = [np.abs(self.values[block]).max(initial=0.0) for block in row_blocks(n, 4 * n)]
        return float(np.max(maxima, initial=0.0))  # NaN if one of the values is

    def product(self, coefficients: Floats) -> Floats:
        """Return K @ coefficients, summed in float64; if few coefficients are not 0, only their rows are read."""
        n, out, used = len(self.values), np.zeros(len(self.values)), np.flatnonzero(coefficients)
        if len(used) > _FEW_SHARE * n:
            _core.add_table(out, self.values, np.ascontiguousarray(coefficients), 1)
            return out
        for block in row_blocks(len(used), 8 * n):
            rows = self.values[used[block]].astype(np.float64)
            out += np.einsum("i,ij->j", coefficients[used[block]], rows)  # without the threads that BLAS starts
        return out

    def steps(
        self, box: BoxVariables, beta: Floats, u: Floats, tol: float, max_steps: int, max_seconds: float
    ) -> tuple[int, str]:
        """Take pair steps from β with u = Kβ, both changed in place; return their number and why they ended."""
        n, q = len(u), len(beta)
        table, u_of_variables = (self.values, u) if q == n else (self._doubled, np.tile(u, 2))
        row, limits = np.arange(q) % n, (tol, max_steps, max_seconds)
        n_steps, _, reason = _core.solve_stored(table, row, box.p, beta, u_of_variables, *box[1:], *limits)
        u[:] = u_of_variables[:n]
        return n_steps, reason

    @cached_property
    def _doubled(self) -> Values:
        """[K, K]: a column for each of the two variables of a sample."""
        return np.concatenate([self.values, self.values], axis=1)


@dataclass(frozen=True, eq=False)
class StoredGram:
    """All of K in float32 or float64, and the Gram that can compute more accurate values."""

    table: Float32Matrix
    gram: Gram
    level: Precision  # precision in which the Gram computed the values
    rounding: float  # bound on the rounding of the values after that: |δk_ij| ≤ rounding · size_i · size_j
    sizes: Floats  # `entry_bounds` of the Gram's `proof`

    @classmethod
    def plain(cls, gram: Gram) -> StoredGram:
        """Store K in the Gram's fastest precision."""
        level = gram.precisions[0]
        return cls(HostFloat32Matrix(gram.full(level)), gram, level, 0.0, gram.proof.entry_bounds)

    @classmethod
    def of(cls, gram: Gram) -> StoredGram:
        """Store K computed in float64 and rounded to float32."""
        table = gram.float32_matrix()
        if not table.largest < _LARGEST_VALUE:
            raise FloatingPointError(f"the values of {gram.kernel!r} are too large for float32; scale the features")
        return cls(table, gram, np.float64, 1.01 * SINGLE, gram.proof.entry_bounds)

    @property
    def n(self) -> int:
        return len(self.sizes)

    def errors(self, coefficients: Floats) -> Floats:
        """Return a bound on the error of each row's product with these coefficients, summed in float64.

        The bounds are infinite if certificates use another Gram matrix, `gram.proof`, instead of this one.
        """
        support = np.flatnonzero(coefficients)
        if self.gram.proof is not self.gram:
            return np.full(self.n, np.inf if len(support) else 0.0)
        mass = float(np.abs(coefficients[support]) @ self.sizes[support])
        rounding_errors = (self.rounding + (len(support) + 4) * DOUBLE) * 1.01 * mass * self.sizes
        rounding_errors += _UNDERFLOW * float(np.abs(coefficients[support]).sum())
        return rounding_errors + self.gram.errors(coefficients, level=self.level)


def float32_matrix_of(gram: Gram) -> HostFloat32Matrix:
    """Compute `Gram.float32_matrix` on the host, block by block above the diagonal."""
    n, all_rows, values = gram.n, np.arange(gram.n), np.empty((gram.n, gram.n), np.float32)
    with np.errstate(over="ignore"):
        for left in range(0, n, _BLOCK_ROWS):
            columns = slice(left, min(n, left + _BLOCK_ROWS))
            for top in range(0, left + 1, _BLOCK_ROWS):
                rows = slice(top, min(n, top + _BLOCK_ROWS))
                _core.check_stop()
                values[rows, columns] = gram.block(all_rows[rows], all_rows[columns])
                values[columns, rows] = values[rows, columns].T
        values[all_rows, all_rows] = gram.diagonal
    return HostFloat32Matrix(values)


class StoredField:
    """State of solves on a subset of the rows of a stored K: β, and u = Kβ with error bounds e on all rows.

    It implements `BoundedProducts` for its rows: a certificate gets u and e, and float64 products if these are too
    coarse. With `twins`, each row has two variables. With `proven=False` the bounds e are not computed, but infinite.
    """

    def __init__(self, stored: StoredGram, rows: Indices, *, twins: bool = False, proven: bool = True) -> None:
        self.stored, self.rows, self._has_bounds = stored, rows, proven
        self.gram = stored.gram.view(rows)
        self._beta = np.zeros(2 * stored.n if twins else stored.n)
        self.u, self.e = np.zeros(stored.n), np.full(stored.n, 0.0 if proven else np.inf)
        self._largest: float | None = None  # largest upper bound of the last problem

    def copy(self) -> StoredField:
        """Return an independent state that starts from this one."""
        other = copy(self)
        other._beta, other.u, other.e = self._beta.copy(), self.u.copy(), self.e.copy()
        return other

    # --- BoundedProducts, for certificates ---------------------------------------------------------------------------

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
    def entry_bounds(self) -> Floats:
        return self.gram.proof.entry_bounds

    def errors(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Floats:
        return self.gram.proof.errors(coefficients, rows, level)

    @property
    def levels(self) -> tuple[Precision, ...]:
        return (_STORED_LEVEL, *(level for level in self.gram.proof.levels if level != np.float32))

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Ball:
        """Return u and e, which better levels update first; `coefficients` must be those of the field's β."""
        rows = np.arange(self.n) if rows is None else rows
        positions = self.rows[rows]
        if level != _STORED_LEVEL:
            self.u[positions], self.e[positions] = self.gram.proof.product_bound(coefficients, rows, level)
        return Ball(self.u[positions], self.e[positions])

    # --- start of a solve --------------------------------------------------------------------------------------------

    def start(self, problem: DualProblem) -> Floats:
        """Set β to a feasible point near the last solution, bring u up to date, and return β."""
        variables = self._variables(problem)
        beta, largest = self._beta[variables], float(problem.upper.max(initial=0.0))
        previous_largest, self._largest = self._largest, largest
        if problem.totals.any() or previous_largest is None or not np.isfinite(largest):
            start = problem.nearest_feasible(beta) if beta.any() else problem.feasible_start()
            if not np.array_equal(start, beta):
                self.move(problem, start)
            return start
        rows, sizes = self.rows[problem.row], self.stored.sizes
        energy, linear = float(beta @ (self.u[rows] + problem.d * beta)), float(problem.p @ beta)
        ratio = largest / previous_largest
        scale = ratio if ratio <= 1 or ratio * linear - 0.5 * ratio**2 * energy > linear - 0.5 * energy else 1.0
        scaled = np.clip(scale * beta, problem.lower, problem.upper)
        for bound in (problem.lower, problem.upper):  # restore bounds that rounding has moved β away from
            scaled = np.where(np.abs(scaled - bound) <= _SNAP_DISTANCE * largest, bound, scaled)
        scaled = problem.nearest_feasible(scaled)
        snap_error = float(np.abs(scaled - scale * beta) @ sizes[rows])
        if not snap_error <= _LARGEST_SNAP * largest * float(sizes.max(initial=0.0)):
            self.move(problem, scaled)
            return scaled
        self._beta[variables] = scaled
        self.u *= scale
        self.e = self.e * scale + 4 * _EPS * np.abs(self.u) + snap_error * sizes
        return scaled

    def place(self, problem: DualProblem, beta: Floats, u: Floats) -> None:
        """Set β and u = Kβ of all rows, whose errors are not known."""
        self._beta[:], self.u[:], self.e[:] = 0.0, u, np.inf
        self._beta[self._variables(problem)] = beta

    def move(self, problem: DualProblem, beta: Floats) -> None:
        """Set β, and update u by the rows of changed coefficients, or recompute it if many have changed."""
        old_coefficients = self._coefficients
        self._beta[:] = 0.0
        self._beta[self._variables(problem)] = beta
        new_coefficients = self._coefficients
        changed_rows = np.flatnonzero(new_coefficients != old_coefficients)
        if len(changed_rows) <= _FEW_SHARE * self.stored.n:
            change = np.zeros(self.stored.n)
            change[changed_rows] = new_coefficients[changed_rows] - old_coefficients[changed_rows]
            self.u += self.stored.table.product(change)
            if self._has_bounds:
                self.e += self.stored.errors(change) + 2 * _EPS * np.abs(self.u)
        else:
            self.u[:] = self.stored.table.product(new_coefficients)
            self.e = self.stored.errors(new_coefficients) if self._has_bounds else self.e

    def sharpen(self, rows: Indices) -> None:
        """Recompute u on the given rows of the stored K in float64."""
        self.u[rows], self.e[rows] = self.stored.gram.proof.product_bound(self._coefficients, rows, np.float64)

    # --- steps -------------------------------------------------------------------------------------------------------

    def pair_steps(
        self, problem: DualProblem, tol: float, max_steps: int, max_seconds: float
    ) -> tuple[Floats, int, str]:
        """Take at most `max_steps` pair steps, update u and e, and return β, the number of steps and why they ended.

        If a number becomes infinite or NaN, nothing changes.
        """
        variables, q, n = self._variables(problem), len(self._beta), self.stored.n
        p, lower, upper, d = np.zeros((4, q))
        box = BoxVariables(p, lower, upper, d, np.full(q, problem.group[0], np.int32))
        for name in BoxVariables._fields:
            getattr(box, name)[variables] = getattr(problem, name)
        beta, u = self._beta.copy(), self.u.copy()
        steps, reason = self.stored.table.steps(box, beta, u, tol, max_steps, max_seconds)
        if reason not in ("nonfinite", "unbounded"):
            old_coefficients, sizes_of_beta = self._coefficients, np.abs(self._beta) + np.abs(beta)
            self._beta, self.u = beta, u
            if self._has_bounds:
                # K times the change of β is one sum of at most q terms, each with a rounded difference.
                sizes = self.stored.sizes
                sum_errors = _EPS * q * float(sizes_of_beta @ np.tile(sizes, q // n)) * sizes
                self.e += (
                    self.stored.errors(self._coefficients - old_coefficients) + sum_errors + 2 * _EPS * np.abs(self.u)
                )
        if not problem.keeps_sums(self._beta[variables]):
            self.move(problem, problem.nearest_feasible(self._beta[variables]))
        return self._beta[variables], steps, reason

    @property
    def _coefficients(self) -> Floats:
        """One coefficient per row: β, or the sum of the row's two variables."""
        n = self.stored.n
        return self._beta.copy() if len(self._beta) == n else self._beta[:n] + self._beta[n:]

    def _variables(self, problem: DualProblem) -> Indices:
        """Return the position of each variable in `_beta`, whose second half holds the second variables of rows."""
        is_second = np.arange(problem.n_variables) >= len(self.rows)
        return np.asarray(self.rows[problem.row] + is_second * self.stored.n)
