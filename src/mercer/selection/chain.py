"""The problems of one fold along C on a stored K: each starts where the last one ended, and each has its certificate.

From C to rC the solution is scaled by r: sums stay zero, bounded coefficients stay bounded, and u = Kβ is scaled with
it, so that the start costs no kernel values. It is kept as it is where that has the larger dual value, as it has once C
bounds nothing any more.

u is known to within e: what the stored values are off by, and the sums. Where that is not enough for the certificate,
rows of u are recomputed in float64, as in every other fit, and the solver goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify
from mercer.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.selection.stored_kernel import StoredKernel
from mercer.solution import Solution, Stop
from mercer.solvers.dual.decomposition import rounding_floor
from mercer.solvers.refine import Refinement
from mercer.solvers.solver import Solver

# After this many steps per variable the general solver and its Newton steps take over (INNER_STEPS of block_steps.py).
_STEPS_PER_VARIABLE = 20
# The share of tol that pair steps leave: what is left of it covers the rounding errors that the certificate adds.
_SOLVED_SHARE = 0.85
# A coefficient this close to its bound, as a share of the largest one, was there before it was scaled.
_SNAP_SHARE = 1e-15
# What that may change in all, in the same unit: u is not computed anew for it, but its errors grow.
_SNAPPED_SHARE = 1e-10
# The name of the level of precision that the stored values have.
_STORED = "float32 values that are stored, with float64 sums"


@dataclass(frozen=True, eq=False)
class Place:
    """Where a fold's problem lies: on these rows of a stored K, which has a column for each of the variables."""

    kernel: StoredKernel
    rows: Indices  # of K, for each row of the fold's problem
    table: Any  # K, or K beside itself where samples have two variables

    @cached_property
    def gram(self) -> Gram:
        """K of the fold's rows, for values that are more precise than the stored ones."""
        return self.kernel.gram.view(self.rows)

    @cached_property
    def which(self) -> Indices:
        """The row of each column of the table."""
        return np.arange(self.table.shape[1]) % self.kernel.n


class Chain:
    """β, u = Kβ and a bound e on its errors, over all rows of the stored K, also those that the fold leaves out."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._beta = np.zeros(place.table.shape[1])
        self._u = np.zeros(place.kernel.n)
        self._e = np.zeros(place.kernel.n)
        self._upper: float | None = None

    def solve(self, problem: DualProblem, stop: Stop, finish: Solver | None) -> tuple[Solution, Certificate]:
        """A solution of the fold's problem and its proof, from the last one's on.

        `finish` takes over where pair steps make too little progress.
        """
        variables = self._variables(problem)
        self._start(problem, variables)
        products = _Products(self)
        ask = Refinement(stop, (np.float32,), False, lambda beta: rounding_floor(self.place.gram, problem, beta))
        while True:
            taken, reason = self._step(problem, variables, ask.asked)
            if reason in ("nonfinite", "unbounded"):  # in the stored values; those of float64 may be bounded
                if finish is None:
                    raise FloatingPointError(
                        "kernel values and coefficients overflow together, so that no step is finite; scale the "
                        "features or lower C"
                    )
                return self._finish(problem, variables, stop.after(ask.steps), finish, ask.steps)
            beta = self._beta[variables]
            certificate, u = certify(problem, products, beta, ask.asked.tol)  # type: ignore[arg-type]  # all it asks
            solution = Solution(beta, taken, "converged" if reason == "converged" else "stalled", u=u)
            if reason == "max_seconds":
                solution = replace(solution, stop_reason="max_time")
            limit = stop.limit(ask.steps + taken)
            end = ask.judge(solution, certificate) or (None if stop.met(certificate) else limit)
            if (
                end in (None, "stalled", "rounding floor")
                and reason == "max_steps"
                and finish is not None
                and limit is None
            ):
                return self._finish(problem, variables, stop.after(ask.steps), finish, ask.steps)
            if end is not None:
                return replace(solution, steps=ask.steps, stop_reason=end), certificate

    @property
    def values(self) -> tuple[Floats, Floats]:
        """u of every row of the stored K, and how far each can be from the true one."""
        return self._u, self._e

    def sharpen(self, rows: Indices) -> None:
        """Recompute u on some rows of the stored K in float64."""
        coefficients = self._coefficients
        self._u[rows], self._e[rows] = self.place.kernel.gram.product_bound(coefficients, rows, np.float64)

    @property
    def _coefficients(self) -> Floats:
        n = self.place.kernel.n
        return self._beta if len(self._beta) == n else self._beta[:n] + self._beta[n:]

    def _variables(self, problem: DualProblem) -> Indices:
        """Which columns of the table the variables are: the second ones of their rows are in its second half."""
        columns = self.place.rows[problem.row]
        second = np.arange(problem.n_variables) >= len(self.place.rows)
        return np.asarray(columns + second * self.place.kernel.n)

    def _start(self, problem: DualProblem, variables: Indices) -> None:
        beta, largest = self._beta[variables], float(problem.upper.max(initial=0.0))
        before, self._upper = self._upper, largest
        if problem.totals.any() or before is None or not np.isfinite(largest):
            wish = problem.nearest_feasible(beta) if beta.any() else problem.feasible_start()
            if not np.array_equal(wish, beta):
                self._move(variables, wish)
            return
        u = self._u[self.place.rows[problem.row]]
        energy, linear, ratio = float(beta @ (u + problem.d * beta)), float(problem.p @ beta), largest / before
        scale = ratio if ratio <= 1 or ratio * linear - 0.5 * ratio**2 * energy > linear - 0.5 * energy else 1.0
        scaled = _onto_bounds(scale * beta, problem)
        sizes = self.place.kernel.sizes
        snapped = float(np.abs(scaled - scale * beta) @ sizes[self.place.rows[problem.row]])
        if not snapped <= _SNAPPED_SHARE * largest * float(sizes.max(initial=0.0)):
            self._move(variables, problem.nearest_feasible(scaled))
            return
        self._beta[variables] = scaled
        self._u *= scale
        self._e = self._e * scale + 4 * np.finfo(float).eps * np.abs(self._u) + snapped * sizes

    def _move(self, variables: Indices, beta: Floats) -> None:
        """Set β, and u from scratch."""
        self._beta[:] = 0.0
        self._beta[variables] = beta
        coefficients = self._coefficients
        self._u[:] = 0.0
        _core.add_table(self._u, self.place.kernel.values, np.ascontiguousarray(coefficients), 1)
        self._e = self.place.kernel.errors(coefficients)

    def _step(self, problem: DualProblem, variables: Indices, stop: Stop) -> tuple[int, str]:
        q = len(self._beta)
        p, lower, upper, d = np.zeros(q), np.zeros(q), np.zeros(q), np.zeros(q)
        p[variables], lower[variables], upper[variables] = problem.p, problem.lower, problem.upper
        d[variables] = problem.d
        group = np.full(q, problem.group[0], np.int32)
        group[variables] = problem.group
        before = self._beta.copy()
        u = self._u if q == len(self._u) else np.tile(self._u, 2)
        steps, _, reason = _core.solve_stored(
            self.place.table,
            self.place.which,
            p,
            self._beta,
            u,
            lower,
            upper,
            d,
            group,
            _SOLVED_SHARE * stop.tol,
            min(_STEPS_PER_VARIABLE * len(variables), stop.max_iter),
            stop.seconds,
        )
        if reason in ("nonfinite", "unbounded"):
            self._beta[:] = before
            return steps, reason
        change = self._beta - before
        self._u = u[: len(self._u)]
        moved = change if q == len(self._u) else change[: len(self._u)] + change[len(self._u) :]
        self._e += self.place.kernel.errors(moved) + 2 * np.finfo(float).eps * np.abs(self._u)
        return steps, reason

    def _finish(
        self, problem: DualProblem, variables: Indices, stop: Stop, finish: Solver, steps: int
    ) -> tuple[Solution, Certificate]:
        solution, certificate = finish(problem, self.place.gram, stop, self._beta[variables])
        self._move(variables, solution.beta)
        return replace(solution, steps=solution.steps + steps), certificate


class _Products:
    """What a certificate asks of K, answered from the chain's u, and in float64 where that does not decide."""

    precisions = (np.float64,)

    def __init__(self, chain: Chain) -> None:
        self._chain, self._place = chain, chain.place
        self.n = len(self._place.rows)

    @property
    def positive_definite(self) -> str:
        return self._place.kernel.gram.positive_definite

    @property
    def levels(self) -> tuple[Any, ...]:
        return (_STORED, *(level for level in self._place.kernel.gram.levels if level != np.float32))

    def product_bound(self, coefficients: Floats, rows: Indices | None, level: Any) -> tuple[Floats, Floats]:
        u, e = self._chain.values
        rows = np.arange(self.n) if rows is None else rows
        at = self._place.rows[rows]
        if level != _STORED:
            u[at], e[at] = self._place.gram.product_bound(coefficients, rows, level)
        return u[at], e[at]


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
