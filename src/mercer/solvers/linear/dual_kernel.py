"""The linear kernel's machines solved on the rows themselves, for whoever expects the solution of a kernel machine.

K = XX' makes a DualProblem with one variable per sample, or two twins of a tube, and at most one equality, Σβ = 0, the
dual of a LinearProblem whose bias is free, or absent. So β is the same, and its certificate too: u = X(X'β) costs two
products with X instead of a pass over K.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certificate_of
from mercer.gram.gram import Gram
from mercer.gram.linear_rows import LinearRows
from mercer.problems.dual_problem import DualProblem
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.linear.choose import solve_linear
from mercer.solvers.linear.outcome import LinearSolution

# Newton's w is not quite X'β: the gap, which holds ½‖w − X'β‖², must be small enough for the certificate of β alone,
# once β has been corrected so often. The gap is asked for this share of the dual value, and so much less, so often.
_CORRECTIONS = 3
_GAP, _LOWER, _ROUNDS = 1e-4, 1e-2, 6
# Below this many rows decomposition comes first: where it is quick, its β has fewer elements that are not zero. It may
# take so many pair steps per row; problems that need more (large C, columns of rare marks) would need a hundred times
# as many.
_MANY_ROWS, _PAIR_STEPS = 2000, 10


def linear_problem(problem: DualProblem) -> LinearProblem | None:
    """The linear machine's problem that this one is if K = XX', or None."""
    n, free = len(problem.p), len(problem.totals) == 1
    if len(problem.totals) > 1 or problem.totals.any():
        return None
    bias = np.inf if free else 0.0
    if np.array_equal(problem.row, np.arange(n)):
        linear = LinearProblem(problem.p, problem.lower, problem.upper, problem.d, np.zeros(n), bias)
    else:
        above, below = np.arange(n // 2), np.arange(n // 2, n)
        linear = LinearProblem(
            p=0.5 * (problem.p[above] + problem.p[below]),
            lower=problem.lower[below],
            upper=problem.upper[above],
            d=problem.d[above],
            epsilon=0.5 * (problem.p[below] - problem.p[above]),
            bias=bias,
        )
        twins = linear.dual
        same = len(twins.p) == n and all(
            np.array_equal(getattr(twins, name), getattr(problem, name)) for name in ("lower", "upper", "d", "row")
        )
        if not same or linear.epsilon.min(initial=0.0) < 0:
            return None
    bounded = np.isfinite(linear.upper - linear.lower) | (linear.d > 0)
    return linear if bool(bounded.all()) else None


def by_rows(X: Any, linear: LinearProblem, n_threads: int) -> Callable[..., tuple[Solution, Certificate]]:
    """A function with the signature of `solve_certified` for problems whose Gram matrix is XX'."""

    def solve(
        problem: DualProblem,
        gram: Gram,
        stop: Stop,
        beta: Floats | None = None,
        report: Report | None = None,
        shrinking: bool = True,
    ) -> tuple[Solution, Certificate]:
        if len(problem.p) < _MANY_ROWS:
            few = dataclasses.replace(stop, max_iter=min(stop.max_iter, _PAIR_STEPS * len(problem.p)))
            early, certificate = solve_certified(problem, gram, few, beta, report, shrinking)
            if early.stop_reason in ("converged", "max_time") or few.max_iter == stop.max_iter:
                return early, certificate
        rows = LinearRows(X, n_threads)
        asked, steps = dataclasses.replace(stop, gap_tol=min(stop.gap_tol, _GAP)), 0
        start, found = None, beta
        if beta is not None:
            begin = problem.row_coefficients(beta, rows.n)
            start = LinearSolution(rows.transposed(begin), 0.0, begin, 0, "converged", "")
        for _ in range(_ROUNDS):
            start, _ = solve_linear(linear, rows, asked, start=start, shrinking=shrinking)
            steps = max(steps, start.steps)
            corrected = nearer(linear, rows, start.w, start.beta)
            found, u = linear.dual_variables(corrected), rows.product(rows.transposed(corrected))
            certificate = certificate_of(problem, found, u, "optimality", "float64")
            small = stop.gap_tol == np.inf or certificate.gap <= stop.gap_tol * abs(certificate.dual)
            if certificate.violation <= stop.tol and small:
                return Solution(found, steps, "converged", u=u), certificate
            if start.stop_reason in ("max_iter", "max_time"):
                return Solution(found, steps, start.stop_reason, u=u), certificate
            if start.stop_reason == "stalled":
                break
            asked = dataclasses.replace(asked, gap_tol=_LOWER * asked.gap_tol)
        # Rounding, or a problem that steps in w do not settle: the kernel machine goes on from here.
        return solve_certified(problem, gram, stop, found, report, shrinking)

    return solve


def nearer(problem: LinearProblem, rows: LinearRows, w: Floats, beta: Floats) -> Floats:
    """β moved inside its box so that X'β comes nearer to w, and Σβ to zero where b is free.

    With D the squared distances to the box, the smallest such change in D's measure is D(X z + z₀), where z solves the
    normal equations; a few times, because the box may cut it.
    """
    beta = beta.copy()
    for _ in range(_CORRECTIONS):
        room = np.minimum(beta - problem.lower, problem.upper - beta)
        room = np.where(
            problem.epsilon > 0, np.minimum(room, np.abs(beta)), room
        )  # inside its tube a sample has no say
        free = np.flatnonzero((room > 0) & np.isfinite(room))
        missing = np.append(w - rows.transposed(beta), -beta.sum() if problem.exact_bias else 0.0)
        if len(free) == 0 or not missing.any():
            break
        weight = room**2
        lower = np.tril(rows.outer(free, weight[free]))
        normal = lower + np.tril(lower, -1).T
        if not problem.exact_bias:
            normal[-1, :], normal[:, -1] = 0.0, 0.0
        z = np.linalg.lstsq(normal, missing, rcond=1e-14)[0]
        change = np.zeros(rows.n)
        change[free] = (weight * rows.product(z[:-1], float(z[-1])))[free]
        with np.errstate(divide="ignore"):
            limit = np.abs(room[free] / change[free]).min(initial=np.inf)
        beta += min(1.0, 0.9 * limit) * change
    return beta
