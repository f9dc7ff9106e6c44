"""Which method solves a linear machine, and the certificate that ends it.

Newton's method costs about d² per sample and step and takes a few dozen steps, whatever the columns' scales. Dual
coordinate descent costs the stored entries per pass and takes tens of passes on text, thousands on tall or badly scaled
data: where it crawls, Newton's method on the free samples takes over (`turns`).
"""

from __future__ import annotations

from dataclasses import replace

from mercer.certificates.certificate import Certificate
from mercer.gram.linear_rows import LinearRows
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.linear.descent import descend
from mercer.solvers.linear.direction import FEW_COLUMNS, few_columns
from mercer.solvers.linear.newton import newton
from mercer.solvers.linear.referee import LinearSolution, Point, Referee
from mercer.solvers.linear.turns import take_turns
from mercer.solvers.qp import NAMES, solve_linear_by_qp

# The methods that can be asked for by name instead of "auto".
METHODS = {"newton": "newton", "dual": "dual coordinate descent", **NAMES}
# Passes of descent after Newton's steps have stalled. Rounding is the usual cause, and few passes show whether descent
# can do better; the number is a guess.
_PASSES_AFTER_STALL = 1000


def choose(rows: LinearRows) -> tuple[str, str]:
    """The method that suits these rows, and the reason."""
    if few_columns(rows.n, rows.d):
        return METHODS["newton"], f"{rows.d} columns, no more than {min(FEW_COLUMNS, rows.n)}"
    why = f"more than {FEW_COLUMNS}" if rows.d > FEW_COLUMNS else f"more than the {rows.n} rows"
    return METHODS["dual"], f"{rows.d} columns, {why}"


def solve_linear(
    problem: LinearProblem,
    rows: LinearRows,
    stop: Stop,
    start: LinearSolution | None = None,
    report: Report | None = None,
    *,
    solver: str = "auto",
    seed: int = 0,
    shrinking: bool = True,
) -> tuple[LinearSolution, Certificate]:
    """A solution whose certificate says that `stop` is met, or why it is not; `solver` is "auto" or one of METHODS."""
    method, why = choose(rows) if solver == "auto" else (METHODS[solver], "asked for")
    referee = Referee(problem, rows, stop, report)
    begin = None if start is None else Point(start.w, float(start.b), start.beta)
    if method == "newton":
        last = newton(referee, begin, referee.judge)
        if referee.best is None:
            referee.judge(last)
        if last.reason == "stalled":
            method, why = f"newton, then {METHODS['dual']}", f"{why}; Newton's steps stalled"
            last = _descend_after_stall(referee, last.steps, seed, shrinking)
    elif solver in NAMES:
        last = solve_linear_by_qp(referee, begin, method)
    elif solver == "auto":
        last, helped = take_turns(referee, begin, seed, shrinking)
        if helped:
            method, why = f"{method}, then newton", f"{why}; descent crawled"
    else:
        last = descend(referee, begin, stop.max_iter, seed, shrinking)
    assert referee.best is not None
    point, certificate = referee.best
    reason: StopReason = last.reason
    if stop.met(certificate):
        reason = "converged"
    elif reason == "converged":
        reason = "stalled"
    return LinearSolution(point.w, point.b, point.beta, last.steps, reason, f"{method}: {why}"), certificate


def _descend_after_stall(referee: Referee, steps: int, seed: int, shrinking: bool) -> Point:
    """Descent from the best point, for a while."""
    assert referee.best is not None
    max_iter = referee.stop.max_iter
    last = descend(referee, referee.best[0], min(max_iter, steps + _PASSES_AFTER_STALL), seed, shrinking)
    ours = last.reason == "max_iter" and last.steps < max_iter  # not the user's limit
    return replace(last, reason="stalled") if ours else last
