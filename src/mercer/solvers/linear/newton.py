"""Newton's method in (w, b) for linear machines, on losses whose corners are smoothed less and less.

A squared loss has a piecewise linear gradient, and Newton's method on it ends after a few steps: with z = (x, 1) and F
the samples whose best t lies inside its box,

    H = diag(1, …, 1, 1/B²) + Σ over F of z z'/d_i .

The hinge and the tube have d = 0 and corners, which `SmoothedLosses` rounds. When the smoothed problem is solved about
as closely as its optimum is away from the true one, the proximal centre moves to the t found there and the smoothing
shrinks. What decides is the gap of the true problem, never a gradient:

    P(w, b) − D(t) = ½‖w − X't‖² + Σ shares,  every share ≥ 0 .

Tall data begin with a pilot: their first rows only, weighted up to stand for all (the rows are in an order as good as
random).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer import _core
from mercer.arrays import Floats, inner
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import StopReason
from mercer.solvers.linear.direction import ByColumns, BySamples, few_columns
from mercer.solvers.linear.referee import Judge, Point, Referee
from mercer.solvers.linear.smoothed import SmoothedLosses, step_length

# The first smoothing is _FIRST_SMOOTHING · mean|p|, and mean|p| is the mean error at w = 0. After a pilot it is
# _AFTER_PILOT of that, from a given (w, b, β) _AFTER_PILOT² of it. It shrinks by _SHRINK per round, down to _LEAST.
_FIRST_SMOOTHING, _AFTER_PILOT = 2.0, 0.1
_SHRINK, _LEAST = 0.6, 1e-9
# From a given start in the space of the samples the smoothing also makes μ at least this share of ‖x‖², a sample's own
# curvature: where C‖x‖² is large hardly a sample is at its bound, and nothing else would keep the steps short.
_CURVATURE_SHARE = 0.01
# The smoothed problem counts as solved when a step would gain less than this share of the gap and of the proximal term.
# The second matters where C is large: there the gap is all loss, and far larger than what tells whether the smoothed
# problem is solved (Rockafellar's criterion). (Hinge, to a gap of 1e-4, in steps: a9a 28, w8a 34, covtype10k 16; by the
# gap alone 28, 33 and 24.)
_SOLVED = 0.02
# A pilot has 1/_PILOT_SHARE of the rows and is run if those are at least _PILOT_ROWS, and _PILOT_ROWS_PER_COLUMN for
# each column. It ends at a gap of _PILOT_GAP of its dual value, because its optimum is not that of the whole.
_PILOT_SHARE, _PILOT_ROWS, _PILOT_ROWS_PER_COLUMN, _PILOT_GAP = 8, 2000, 20, 0.03
# Rounds that do not bring the gap to 0.9 of the best one so far, before the method gives up.
_PATIENCE_ROUNDS = 25
# More steps than this in a round mean that rounding leads them in circles; a few dozen are many.
_ROUND_STEPS = 100


def newton(referee: Referee, start: Point | None, judge: Judge, max_work: float = np.inf) -> Point:
    """Steps until `judge`, one of the referee's, accepts a point or a limit is met; work as in `BySamples`."""
    problem, rows = referee.problem, referee.rows
    smoothing = _FIRST_SMOOTHING * float(np.abs(problem.p).mean()) or 1.0  # where all targets are 0, any will do
    if start is None:
        start = Point(np.zeros(rows.d), 0.0, np.zeros(rows.n))
        m = rows.n // _PILOT_SHARE
        if m >= max(_PILOT_ROWS, _PILOT_ROWS_PER_COLUMN * (rows.d + 1)):
            asked = replace(referee.stop, tol=np.inf, gap_tol=_PILOT_GAP)
            pilot = newton(Referee(problem.first(m, rows.n / m), rows.first(m), asked), None, _accept)
            start = replace(pilot, beta=np.zeros(rows.n))
            smoothing *= _AFTER_PILOT
    elif start.beta.any():
        smoothing *= _AFTER_PILOT**2
        if not few_columns(rows.n, rows.d):
            smoothing = max(smoothing, _CURVATURE_SHARE * float((problem.price * rows.lengths).mean()))
    return _climb(referee, start, judge, smoothing, max_work)


def _accept(point: Point) -> float:
    """The judge of a pilot, whose point is only a start: its own estimate of the gap will do."""
    return 0.0


def _climb(referee: Referee, start: Point, judge: Judge, smoothing: float, max_work: float) -> Point:
    problem, rows, stop = referee.problem, referee.rows, referee.stop
    smooth = bool((problem.d > 0).all())
    w, b, steps = start.w.copy(), start.b, start.steps
    f = rows.product(w, b)
    losses = SmoothedLosses(problem, start.beta, 0.0 if smooth else smoothing, rows.n_threads)
    if not smooth and w.any() and not start.beta.any():
        losses = losses.moved(losses.respond(f)[0], smoothing)
    curvature = (ByColumns if few_columns(rows.n, rows.d) else BySamples)(problem, rows, smooth)
    round_steps, stale_rounds, least, judged, still = 0, 0, np.inf, np.inf, False
    while True:
        t, total, loss, shares = losses.respond(f)
        gradient = np.append(w - rows.transposed(t), _bias_slope(problem, b, total))
        limit: StopReason | None = stop.limit(steps) or ("stalled" if curvature.work > max_work else None)
        if limit is not None:
            return Point(w, b, t, steps, limit)
        gap, dual = _estimate(problem, w, b, gradient, loss, shares)
        if stop.tol == np.inf and gap <= stop.gap_tol * dual and gap <= 0.5 * judged:
            judged = gap
            point = Point(w, b, t, steps)
            if judge(point) <= 1:
                return point
        try:
            with _core.TimeLimit(stop.seconds):
                direction = curvature.direction(t, losses.smoothing, gradient)
        except _core.OutOfTime:
            return Point(w, b, t, steps, "max_time")
        gain = -inner(gradient, direction)
        vanishing = gain <= 1e-15 * (shares + inner(w, w)) and (smooth or round_steps > 2)
        exhausted = still or vanishing or round_steps >= _ROUND_STEPS
        if exhausted or gain <= _SOLVED * min(shares, losses.proximal(t)):
            point = Point(w, b, t, steps)
            # A certificate costs two products with X: none where the estimate is ten times too large.
            near = stop.tol < np.inf or 10 * stop.gap_tol * dual >= gap
            if (exhausted or near) and judge(point) <= 1:
                return point
            left = max(gain + shares, 0.0)  # rounding may leave `shares` below zero
            stale_rounds = 0 if left < 0.9 * least else stale_rounds + 1
            least = min(least, left)
            if stale_rounds > _PATIENCE_ROUNDS:
                return replace(point, reason="stalled")
            if not smooth and (round_steps > 0 or exhausted):
                losses, round_steps = losses.moved(t, max(losses.smoothing * _SHRINK, _LEAST)), 0
                continue
        dw, db = direction[:-1], float(direction[-1])
        move = rows.product(dw, db)
        step = step_length(problem, losses, gain, (w, b), (dw, db), f, move)
        before, w, b, f = (w, b), w + step * dw, b + step * db, f + step * move
        # On huge features w is tiny: its steps drown in rounding long before their gain looks small beside it.
        still = b == before[1] and np.array_equal(w, before[0])
        steps += 1
        round_steps += 1


def _estimate(
    problem: LinearProblem, w: Floats, b: float, gradient: Floats, loss: float, shares: float
) -> tuple[float, float]:
    """The gap of (w, b) and t, and D(t), but for the Σt of a free bias, which is not zero yet."""
    apart, primal = inner(gradient[:-1], gradient[:-1]), loss + 0.5 * inner(w, w)
    if problem.bias not in (0, np.inf):
        apart += float(np.square(problem.bias * gradient[-1]))
        primal += 0.5 * float(np.square(b / problem.bias))
    gap = shares + 0.5 * apart
    return gap, primal - gap


def _bias_slope(problem: LinearProblem, b: float, total: float) -> float:
    if problem.bias == 0:
        return 0.0
    return (0.0 if problem.exact_bias else b / problem.bias**2) - total
