"""Solve a linear machine by Newton's method or dual coordinate descent, or by both in turn, until it is certified.

Newton's method costs about d² per sample and step and takes a few dozen steps, whatever the scales of the columns. A
pass of dual coordinate descent (Hsieh et al. 2008) costs one visit of every stored entry. It takes tens of passes on
text, but thousands if C is large, rows are nearly equal, or columns differ in scale. So with solver="auto":

1. Descent runs, with pauses after 50, 100, 200, … passes.
2. At a pause, the progress of the last half of the passes predicts how many more are needed.
3. If these are many, Newton's method on the free samples continues from there, at a cost of at most a few times all
   passes so far.
4. If that is not enough, descent takes as many passes again, and so on.

Nothing depends on a clock, so fits are repeatable. (Of 600 random sparse problems 2 are unsolved after 2000 passes, 20
by descent alone; reuters with the hinge and C = 10 takes 0.3 s instead of 4.4.)

Coordinate steps change one variable at a time and update w = X'β, so they cannot keep Σβ = 0. For classification on
sparse rows the core finds an unregularised bias itself, by Newton steps on it between passes. Otherwise the bias is the
limit of regularised ones: with the term ½(b − b₀)²/B² in the primal, the bias is one more feature of value B, and b₀
moves to the last b (the method of multipliers for Σβ = 0). The certificate is that of the true problem, at a β whose
sum is made zero.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.places.protocols import Rows
from mercer.problems.linear_problem import LinearProblem
from mercer.samples.arrays import inner
from mercer.solvers.linear.newton import FEW_COLUMNS, few_columns, newton
from mercer.solvers.linear.referee import LinearSolution, Point, Referee
from mercer.solvers.qp import NAMES, solve_linear_by_qp
from mercer.solvers.solution import Stop, StopReason

# Methods by the names that users pass; "auto" chooses one.
METHODS = {"newton": "newton", "dual": "dual coordinate descent", **NAMES}


def choose(rows: Rows) -> tuple[str, str]:
    """Return the method that suits these rows, and the reason."""
    if few_columns(rows.n, rows.d):
        return METHODS["newton"], f"{rows.d} columns, no more than {min(FEW_COLUMNS, rows.n)}"
    if rows.descent is None:
        return METHODS["newton"], "the samples are stored where steps on single rows are too slow"
    reason = f"more than {FEW_COLUMNS}" if rows.d > FEW_COLUMNS else f"more than the {rows.n} rows"
    return METHODS["dual"], f"{rows.d} columns, {reason}"


def solve_linear(
    problem: LinearProblem,
    rows: Rows,
    stop: Stop,
    start: LinearSolution | None = None,
    *,
    solver: str = "auto",
    seed: int = 0,
    shrinking: bool = True,
) -> tuple[LinearSolution, Certificate]:
    """Solve a linear machine and certify the solution; `solver` is "auto" or a name in METHODS."""
    method, explanation = choose(rows) if solver == "auto" else (METHODS[solver], "as requested")
    referee = Referee(problem, rows, stop)
    start_point = None if start is None else Point(start.w, float(start.b), start.beta)
    if method == "newton":
        last = newton(referee, start_point, referee.judge)
        if referee.best is None:
            referee.judge(last)
        if last.reason == "stalled" and rows.descent is not None:
            method, explanation = f"newton, then {METHODS['dual']}", f"{explanation}; Newton's steps stalled"
            # The usual cause is rounding; a thousand passes show whether descent gets further.
            assert referee.best is not None
            last = descend(referee, referee.best[0], min(stop.max_iter, last.steps + 1000), seed, shrinking)
            if last.reason == "max_iter" and last.steps < stop.max_iter:  # not the user's limit
                last = replace(last, reason="stalled")
    elif solver in NAMES:
        last = solve_linear_by_qp(referee, start_point, method)
    elif solver == "auto":
        last, newton_helped = alternate_methods(referee, start_point, seed, shrinking)
        if newton_helped:
            method, explanation = f"{method}, then newton", f"{explanation}; descent was slow"
    else:
        last = descend(referee, start_point, stop.max_iter, seed, shrinking)
    assert referee.best is not None
    point, certificate = referee.best
    reason: StopReason = last.reason
    if stop.met(certificate):
        reason = "converged"
    elif reason == "converged":
        reason = "stalled"
    return LinearSolution(point.w, point.b, point.beta, last.steps, reason, f"{method}: {explanation}"), certificate


# If descent reports convergence and the certificate does not meet the goal, the tolerances of descent are multiplied by
# _MOST_SHARE / (ratio of the error to its goal), but by no factor below _LEAST_SHARE per round. Below _FLOOR of the
# user's tolerances, rounding is taken to be the cause.
_LEAST_SHARE, _MOST_SHARE, _FLOOR = 0.2, 0.8, 1e-12


def descend(referee: Referee, start: Point | None, max_passes: int, seed: int, shrinking: bool) -> Point:
    """Run dual coordinate descent until the referee accepts a point or a limit is met.

    The passes of `start` count towards `max_passes`.
    """
    problem, rows, stop = referee.problem, referee.rows, replace(referee.stop, max_iter=max_passes)
    row_steps = rows.descent
    if row_steps is None:
        raise ValueError(
            "solver='dual' takes steps on single rows, which are too slow where these samples are stored; "
            "use solver='auto' or 'newton'"
        )
    if not np.isfinite(rows.squared_lengths).all():
        raise FloatingPointError("the squares of the features overflow float64; scale the features")
    with_multipliers, B, origin = False, problem.bias, 0.0
    beta = np.zeros(rows.n) if start is None else np.clip(start.beta, problem.lower, problem.upper)
    w = rows.transposed(beta)
    b = np.array([0.0 if start is None else start.b])
    state = np.array([seed], dtype=np.uint64)
    passes, factor = 0 if start is None else start.steps, 1.0
    while True:
        # 1. Run passes in the core.
        last_sum, passes_left = float(beta.sum()), max(0, max_passes - passes)
        p = problem.p - origin if with_multipliers else problem.p
        constants = (problem.lower, problem.upper, problem.d, problem.epsilon, rows.squared_lengths)
        value = problem.value(beta, inner(w, w)) - origin * last_sum
        limits = (
            factor * stop.tol,
            factor * stop.gap_tol,
            min(passes_left, 5) if with_multipliers else passes_left,
            stop.seconds,
        )
        n_passes, _, _, end_reason = row_steps.descend(
            p, *constants, B, beta, w, b, value, not with_multipliers, state, *limits, shrinking
        )
        # A call that converges within its first pass counts as one pass, so that the limit is reached in the end.
        passes += n_passes if end_reason == "unsettled" and not with_multipliers else max(min(1, passes_left), n_passes)
        if end_reason == "unsettled" and not with_multipliers and passes < max_passes:
            # 2. The core did not settle the bias: from now on use the method of multipliers, moving b₀ after every
            # five passes. B² is the mean curvature of the other variables, ‖x‖² + d: with a smaller one b lags behind,
            # with a larger one it dominates the steps.
            with_multipliers, B, origin = (
                True,
                math.sqrt(float((rows.squared_lengths + problem.d).mean()) or 1.0),
                float(b[0]),
            )
            w, b = rows.transposed(beta), np.zeros(1)
            continue
        # 3. Certify the point, and stop if it is good enough, or at a limit.
        limit = stop.limit(passes)
        point = Point(w.copy(), origin + float(b[0]), beta.copy(), passes)
        goal_ratio = referee.judge_beta(point)
        if goal_ratio <= 1:
            return point
        if limit is not None:
            return replace(point, reason=limit)
        # 4. Compute w again, without the rounding errors of many small steps, and tighten the tolerances of descent.
        w = rows.transposed(beta)
        bias_is_moving = with_multipliers and abs(last_sum) + abs(float(beta.sum())) > 1e-12 * float(np.abs(beta).sum())
        if end_reason == "converged" and not bias_is_moving:
            factor *= min(_MOST_SHARE, max(_LEAST_SHARE, _MOST_SHARE / goal_ratio))
        if with_multipliers:
            origin, b = point.b, np.zeros(1)
        if factor < _FLOOR:
            return replace(point, reason="rounding floor")


# Descent pauses after this many passes and then whenever they have doubled. Text needs fewer passes in all. Newton's
# method may take over from the second pause on, as a rate needs two.
_FIRST_PAUSE = 50
# Descent is slow if it is predicted to take more than this multiple of the passes so far.
_SLOW_FACTOR = 1.5
# Largest cost of a turn of Newton's method, as a multiple of all passes so far.
_NEWTON_SHARE = 8.0
# A turn that lowers the error to less than this share is followed by another one, twice as long.
_PROMISING_SHARE = 0.1


def alternate_methods(referee: Referee, start: Point | None, seed: int, shrinking: bool) -> tuple[Point, bool]:
    """Alternate descent and Newton's method; return the last point, and whether Newton's method was used."""
    max_iter, stored = referee.stop.max_iter, referee.rows.stored
    passes, steps, used_newton, pause = 0, 0, False, _FIRST_PAUSE
    last_ratio = math.inf
    while True:
        last = descend(referee, start, min(max_iter - steps, pause), seed + passes, shrinking)
        passes = last.steps
        last = replace(last, steps=passes + steps)
        if last.reason != "max_iter" or last.steps >= max_iter:
            return last, used_newton
        goal_ratio = referee.judge_beta(last)
        if is_slow(last_ratio, goal_ratio, pause, _FIRST_PAUSE):
            used_newton = True
            last, goal_ratio = _newton_turns(referee, last, goal_ratio, _NEWTON_SHARE * passes * stored)
            if last.reason != "stalled":
                return last, used_newton
            steps = last.steps - passes
        last_ratio, pause = goal_ratio, 2 * pause
        start = replace(last, steps=passes)


def is_slow(last_ratio: float, goal_ratio: float, passes: int, first_pause: int) -> bool:
    """Return whether descent is predicted to need many more passes.

    The last half of the passes lowered the ratio of the error to its goal from `last_ratio` to `goal_ratio`.
    """
    return passes > first_pause and _passes_left(last_ratio, goal_ratio, passes // 2) > _SLOW_FACTOR * passes


def _newton_turns(referee: Referee, start: Point, goal_ratio: float, max_work: float) -> tuple[Point, float]:
    """Run Newton's method in turns of growing work; return the best point, and the error ratio before the last turn.

    The steps of the point include those of all turns. The stop reason is "stalled" if the work was used up without
    success.
    """
    best, steps = start, start.steps
    while True:
        point = newton(referee, replace(best, steps=steps), referee.judge_both, max_work)
        steps = point.steps
        if point.reason != "stalled":
            return point, 0.0
        new_ratio = referee.judge_both(point)
        if new_ratio < goal_ratio:
            best = point
        if new_ratio > _PROMISING_SHARE * goal_ratio:
            return replace(best, steps=steps, reason="stalled"), goal_ratio
        goal_ratio, max_work = new_ratio, 2 * max_work


def _passes_left(last_ratio: float, goal_ratio: float, n_passes: int) -> float:
    """Predict the number of passes to the goal from the last `n_passes`, which lowered the error as in `is_slow`."""
    if not goal_ratio < last_ratio:
        return math.inf
    return n_passes * math.log(goal_ratio) / math.log(last_ratio / goal_ratio) if goal_ratio > 1 else 0.0
