"""Which method solves a linear machine, and the certificate that ends it; dual coordinate descent and its turns.

Newton's method costs about d² per sample and step and takes a few dozen steps, whatever the columns' scales. Dual
coordinate descent (Hsieh et al. 2008) costs the stored entries per pass and takes tens of passes on text, thousands on
tall or badly scaled data: where C is large, where rows are nearly the same, where scales differ. How fast it came
nearer to the goal over the last half of its passes predicts how many more it would take. If those are many, Newton's
method on the free samples goes on from where descent is, at a cost of at most a few times all passes so far; if that
does not suffice, descent takes as many passes again, and so on. Nothing depends on a clock, so fits are repeatable. (Of
600 random sparse problems 2 are unsolved after 2000 passes, 20 by descent alone; reuters with the hinge and C = 10
takes 0.3 s instead of 4.4.)

Coordinate steps, of one variable at a time with w = X'β kept up to date, cannot hold Σβ = 0. For classification on
sparse rows the core finds an unregularised bias itself, by Newton steps on it between passes. Otherwise it comes as the
limit of regularised ones: with the term ½(b − b₀)²/B² in the primal the bias is one more feature of value B, and b₀
moves to the b that was found (the method of multipliers for Σβ = 0). The certificate is that of the true problem, at a
β whose sum is made zero.
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

# The methods that can be asked for by name instead of "auto".
METHODS = {"newton": "newton", "dual": "dual coordinate descent", **NAMES}


def choose(rows: Rows) -> tuple[str, str]:
    """The method that suits these rows, and the reason."""
    if few_columns(rows.n, rows.d):
        return METHODS["newton"], f"{rows.d} columns, no more than {min(FEW_COLUMNS, rows.n)}"
    if rows.descent is None:
        return METHODS["newton"], "the samples are where steps on one row after another would cost too much"
    why = f"more than {FEW_COLUMNS}" if rows.d > FEW_COLUMNS else f"more than the {rows.n} rows"
    return METHODS["dual"], f"{rows.d} columns, {why}"


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
    """A solution whose certificate says that `stop` is met, or why it is not; `solver` is "auto" or one of METHODS."""
    method, why = choose(rows) if solver == "auto" else (METHODS[solver], "asked for")
    referee = Referee(problem, rows, stop)
    begin = None if start is None else Point(start.w, float(start.b), start.beta)
    if method == "newton":
        last = newton(referee, begin, referee.judge)
        if referee.best is None:
            referee.judge(last)
        if last.reason == "stalled" and rows.descent is not None:
            method, why = f"newton, then {METHODS['dual']}", f"{why}; Newton's steps stalled"
            # Rounding is the usual cause, and a thousand passes show whether descent can do better.
            assert referee.best is not None
            last = descend(referee, referee.best[0], min(stop.max_iter, last.steps + 1000), seed, shrinking)
            if last.reason == "max_iter" and last.steps < stop.max_iter:  # not the user's limit
                last = replace(last, reason="stalled")
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


# When the certificate disagrees with a descent that took itself for converged, the descent's own tolerances shrink by
# _MOST / (how many times the goal was missed), but by no factor below _LEAST per round. Below _FLOOR of what was asked
# for, rounding is taken to be the cause.
_LEAST, _MOST, _FLOOR = 0.2, 0.8, 1e-12


def descend(referee: Referee, start: Point | None, max_passes: int, seed: int, shrinking: bool) -> Point:
    """Passes until the referee accepts a point or a limit is met; those of the start count."""
    problem, rows, stop = referee.problem, referee.rows, replace(referee.stop, max_iter=max_passes)
    steps = rows.descent
    if steps is None:
        raise ValueError(
            "solver='dual' takes steps on one row after another, which cost too much where these samples are; "
            "use solver='auto' or 'newton'"
        )
    if not np.isfinite(rows.lengths).all():
        raise FloatingPointError("the squares of the features overflow float64; scale the features")
    multipliers, B, origin = False, problem.bias, 0.0
    beta = np.zeros(rows.n) if start is None else np.clip(start.beta, problem.lower, problem.upper)
    w = rows.transposed(beta)
    b = np.array([0.0 if start is None else start.b])
    state = np.array([seed], dtype=np.uint64)
    passes, factor = 0 if start is None else start.steps, 1.0
    while True:
        before, left = float(beta.sum()), max(0, max_passes - passes)
        p = problem.p - origin if multipliers else problem.p
        fixed = (problem.lower, problem.upper, problem.d, problem.epsilon, rows.lengths)
        value = problem.value(beta, inner(w, w)) - origin * before
        limits = (factor * stop.tol, factor * stop.gap_tol, min(left, 5) if multipliers else left, stop.seconds)
        taken, _, _, ended = steps.descend(p, *fixed, B, beta, w, b, value, not multipliers, state, *limits, shrinking)
        # A call that converges within its first pass counts as one, so that the limit is reached in the end.
        passes += taken if ended == "unsettled" and not multipliers else max(min(1, left), taken)
        if ended == "unsettled" and not multipliers and passes < max_passes:
            # From here on b₀ moves after five passes. B² = the mean curvature of the other variables, ‖x‖² + d: a
            # smaller one makes b lag, a larger one lets it dominate the steps.
            multipliers, B, origin = True, math.sqrt(float((rows.lengths + problem.d).mean()) or 1.0), float(b[0])
            w, b = rows.transposed(beta), np.zeros(1)
            continue
        limit = stop.limit(passes)
        point = Point(w.copy(), origin + float(b[0]), beta.copy(), passes)
        missed = referee.judge_beta(point)
        if missed <= 1:
            return point
        if limit is not None:
            return replace(point, reason=limit)
        w = rows.transposed(beta)  # drops the rounding that many small steps have added up
        moving = multipliers and abs(before) + abs(float(beta.sum())) > 1e-12 * float(np.abs(beta).sum())
        if ended == "converged" and not moving:
            factor *= min(_MOST, max(_LEAST, _MOST / missed))
        if multipliers:
            origin, b = point.b, np.zeros(1)
        if factor < _FLOOR:
            return replace(point, reason="rounding floor")


# Descent pauses after this many passes and then whenever they have doubled. Text takes fewer in all. Newton's method
# may take over from the second pause on: one pause shows no rate.
_FIRST_PAUSE = 50
# Descent crawls if it is predicted to take more than this multiple of the passes it has had.
_CRAWL = 1.5
# What a turn of Newton's method may cost, as a multiple of all passes so far.
_NEWTON_SHARE = 8.0
# A turn that cuts what is missed to less than this share is followed by another one, twice as long.
_PROMISING = 0.1


def take_turns(referee: Referee, start: Point | None, seed: int, shrinking: bool) -> tuple[Point, bool]:
    """A point, and whether Newton's method had a part in it."""
    max_iter, stored = referee.stop.max_iter, referee.rows.stored
    passes, steps, helped, pause = 0, 0, False, _FIRST_PAUSE
    before = math.inf
    while True:
        last = descend(referee, start, min(max_iter - steps, pause), seed + passes, shrinking)
        passes = last.steps
        last = replace(last, steps=passes + steps)
        if last.reason != "max_iter" or last.steps >= max_iter:
            return last, helped
        missed = referee.judge_beta(last)
        if crawls(before, missed, pause, _FIRST_PAUSE):
            helped = True
            last, missed = _newton_turns(referee, last, missed, _NEWTON_SHARE * passes * stored)
            if last.reason != "stalled":
                return last, helped
            steps = last.steps - passes
        before, pause = missed, 2 * pause
        start = replace(last, steps=passes)


def crawls(before: float, missed: float, passes: int, first_pause: int) -> bool:
    """Whether descent has long to go, if the last half of its passes cut what is missed from `before` to `missed`."""
    return passes > first_pause and _passes_left(before, missed, passes // 2) > _CRAWL * passes


def _newton_turns(referee: Referee, start: Point, missed: float, max_work: float) -> tuple[Point, float]:
    """The best point of Newton's method from a start, with all steps counted, and what was missed before the last turn.

    Its reason is "stalled" if the work was used up without success.
    """
    best, steps = start, start.steps
    while True:
        found = newton(referee, replace(best, steps=steps), referee.judge_both, max_work)
        steps = found.steps
        if found.reason != "stalled":
            return found, 0.0
        now = referee.judge_both(found)
        if now < missed:
            best = found
        if now > _PROMISING * missed:
            return replace(best, steps=steps, reason="stalled"), missed
        missed, max_work = now, 2 * max_work


def _passes_left(before: float, missed: float, between: int) -> float:
    """Predicted passes until nothing is missed, if the last `between` passes cut it from `before` to `missed`."""
    if not missed < before:
        return math.inf
    return between * math.log(missed) / math.log(before / missed) if missed > 1 else 0.0
