"""Which method solves a linear machine, and the certificate that ends it.

Newton's method costs about d² per sample and step and takes a few dozen steps, whatever the columns' scales. Dual
coordinate descent costs the stored entries per pass and takes tens of passes on text, thousands on tall or badly scaled
data: where it crawls, Newton's method on the free samples takes over (`linear_turns`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.linear import certify_linear
from mercer.gram.linear_rows import LinearRows
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.linear.descent import descend
from mercer.solvers.linear.direction import COLUMNS, few_columns
from mercer.solvers.linear.newton import Point, newton
from mercer.solvers.linear.turns import take_turns


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """w, b and β, the steps or passes they took, why it stopped, and which method it was and why."""

    w: Floats
    b: float
    beta: Floats
    steps: int
    stop_reason: StopReason
    solver: str


def choose(rows: LinearRows) -> tuple[str, str]:
    """The method for these rows, and the reason."""
    if few_columns(rows):
        return "newton", f"{rows.d} columns, no more than {min(COLUMNS, rows.n)}"
    why = f"more than {COLUMNS}" if rows.d > COLUMNS else f"more than the {rows.n} rows"
    return "dual coordinate descent", f"{rows.d} columns, {why}"


def solve_linear(
    problem: LinearProblem,
    rows: LinearRows,
    stop: Stop,
    *,
    solver: str = "auto",
    start: LinearSolution | None = None,
    seed: int = 0,
    shrinking: bool = True,
    report: Report | None = None,
) -> tuple[LinearSolution, Certificate]:
    """A solution whose certificate says that `stop` is met, or why it is not."""
    method, why = choose(rows) if solver == "auto" else (solver, "asked for")
    found: list[tuple[Point, Certificate]] = []

    def look(w: Floats, b: float, beta: Floats, steps: int) -> float:
        certificate = certify_linear(problem, rows, w, b, beta)
        if report is not None:
            report(partial(certificate_words, steps, certificate))
        missed = stop.missed(certificate)
        if missed <= 1 or not found or certificate.gap <= found[0][1].gap:
            found[:] = [(Point(w, b, beta, steps), certificate)]
        return missed

    def miss(point: Point) -> float:
        beta = balanced(problem, point.beta) if problem.exact_bias else point.beta
        return look(point.w, point.b, beta, point.steps)

    def miss_by_descent(point: Point) -> float:
        if not problem.exact_bias:
            return miss(point)
        beta = balanced(problem, point.beta)
        # Descent has a b that follows the sum of β; the free samples know a better one.
        dual, variables, w = problem.dual, problem.dual_variables(beta), rows.transposed(beta)
        h = dual.p - rows.product(w)[dual.row] - dual.d * variables
        return look(w, float(dual.violation_and_offsets(variables, h)[1][0]), beta, point.steps)

    goals = (stop.tol, stop.gap_tol)
    begin = None if start is None else Point(start.w, start.b, start.beta)
    if method == "newton":
        last = newton(problem, rows, miss, goals, begin, stop.max_iter, stop.deadline)
        if last.reason == "stalled":
            point, certificate = found[0]
            method, why = "newton, then dual coordinate descent", f"{why}; Newton's steps stalled"
            last = descend(
                problem,
                rows,
                miss_by_descent,
                goals,
                point,
                seed,
                min(stop.max_iter, last.steps + 1000),
                stop.deadline,
                shrinking,
            )
            last.reason = "stalled" if last.reason == "max_iter" and last.steps < stop.max_iter else last.reason
    elif solver == "auto":
        # Which w is better for rounding, Newton's or that of a β whose sum was made zero, depends on the data's scale.
        misses = (miss_by_descent, lambda point: min(miss(point), miss_by_descent(point)))
        last, helped = take_turns(problem, rows, misses, goals, begin, seed, stop.max_iter, stop.deadline, shrinking)
        if helped:
            method, why = f"{method}, then newton", f"{why}; descent crawled"
    else:
        last = descend(problem, rows, miss_by_descent, goals, begin, seed, stop.max_iter, stop.deadline, shrinking)
    if not found:
        miss(last)
    point, certificate = found[0]
    reason: StopReason = "converged" if stop.missed(certificate) <= 1 else last.reason
    if reason == "converged" and stop.missed(certificate) > 1:
        reason = "stalled"
    return LinearSolution(point.w, point.b, point.beta, last.steps, reason, f"{method}: {why}"), certificate


def certificate_words(steps: int, certificate: Certificate) -> str:
    """A line about a running solve that certifies on the way."""
    return (
        f"{steps:>8,} steps  violation {certificate.violation:.3e}  gap {certificate.gap:.3e}, "
        f"{certificate.relative_gap:.1e} of the dual value"
    )


def balanced(problem: LinearProblem, beta: Floats) -> Floats:
    """β with a sum of zero: what is too much is taken from the free variables first, in proportion to their room."""
    beta = beta.copy()
    for only_free in (True, False):
        excess = float(beta.sum())
        # What is left is rounding, and would only lift variables off their bounds.
        if abs(excess) <= 1e-14 * float(np.abs(beta).sum()):
            break
        room = beta - problem.lower if excess > 0 else problem.upper - beta
        if not np.isfinite(room).all():
            room = np.where(np.isfinite(room), room, np.abs(beta) + abs(excess))
        if only_free:
            room = np.where((beta > problem.lower) & (beta < problem.upper), room, 0.0)
        total = float(room.sum())
        if total > 0:
            beta -= np.sign(excess) * room * min(1.0, abs(excess) / total)
            beta = np.clip(beta, problem.lower, problem.upper)
    return np.asarray(beta)
