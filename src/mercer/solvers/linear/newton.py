"""Newton's method in (w, b) for linear machines, with a proximal term in the dual where the loss has corners.

A squared loss has a piecewise linear gradient, and Newton's method on it ends after a few steps: with z = (x, 1) and F
the samples whose best t lies inside its box,

    H = diag(1, …, 1, 1/B²) + Σ over F of z z'/d_i .

The hinge and the tube have d = 0. There a proximal term −μ_i/2 (t − centre_i)² is added to the dual (Rockafellar 1976),
which makes d_i + μ_i of d_i: corners become bends of width μ_iC_i, the same for all samples. When the steps have found
the bent problem's optimum about as closely as its own distance from the true one, the centre moves to the t found
there and the bends narrow. What decides is the gap of the true problem, never a gradient:

    P(w, b) − D(t) = ½‖w − X't‖² + Σ shares,  every share ≥ 0 .

Tall data begin with their first rows only, each counted so many times (the rows are in an order as good as random).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer import _core
from mercer.arrays import Floats, inner
from mercer.gram.linear_rows import LinearRows
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import StopReason
from mercer.solvers.linear.direction import ByColumns, BySamples, few_columns

# The first bend is so many times the mean of |p|, the error at w = 0; after a sample of the rows, this share of it.
# Each is so much narrower than the last.
_FIRST_BEND, _SAMPLED = 2.0, 0.1
_NARROWER, _NARROWEST = 0.6, 1e-9
# With a start in the space of the samples the proximal term is at least this part of their own curvature, ‖x‖²: where
# C‖x‖² is large hardly a sample is at its bound, and nothing else would hold the steps.
_FIRM = 0.01
# The bends narrow when a step would gain less than this share of the gap, and of the proximal term: where C is large
# the gap is all loss, much larger than what tells whether the bent problem is solved (Rockafellar's criterion). (Hinge,
# to a gap of 1e-4, in steps: a9a 28, w8a 34, covtype10k 16; by the gap alone 28, 33 and 24.)
_SETTLED = 0.02
# A sample of the rows is worth a start of its own from this many rows per column on; each sample is so much smaller,
# and solved to this share of its loss: its optimum is not the whole's.
_ROWS_PER_COLUMN, _FEWEST_ROWS, _SMALLER, _ROUGH = 20, 2000, 8, 0.03
# Looks at the gap that do not find it a tenth smaller, before the method gives up.
_PATIENCE = 25
# Steps from one bend to the next after which rounding is taken to lead them in circles; a few dozen are many.
_LONGEST = 100


@dataclass(eq=False)
class Point:
    """w and b, the dual variables they were found with, and how."""

    w: Floats
    b: float
    beta: Floats
    steps: int = 0
    reason: StopReason = "converged"


# How many times too large what was asked for still is; at most 1 where a point will do.
Miss = Callable[[Point], float]


def newton(
    problem: LinearProblem,
    rows: LinearRows,
    miss: Miss,
    goals: tuple[float, float],
    start: Point | None,
    max_steps: int,
    deadline: float,
    max_work: float = np.inf,
) -> Point:
    """Steps until a point misses nothing or a limit is met; goals as in `descend`, work as in `BySamples`."""
    bend = _FIRST_BEND * float(np.abs(problem.p).mean()) or 1.0  # where all targets are 0, any will do
    if start is None:
        start = Point(np.zeros(rows.d), 0.0, np.zeros(rows.n))
        m = rows.n // _SMALLER
        if m >= max(_FEWEST_ROWS, _ROWS_PER_COLUMN * (rows.d + 1)):
            part, few = problem.first(m, rows.n / m), rows.first(m)
            rough = newton(part, few, lambda _: 0.0, (np.inf, _ROUGH), None, max_steps, deadline)
            start = Point(rough.w, rough.b, np.zeros(rows.n), rough.steps)
            bend *= _SAMPLED
    elif start.beta.any():
        bend *= _SAMPLED**2
        if not few_columns(rows):
            bend = max(bend, _FIRM * float((problem.price * rows.lengths).mean()))
    return _climb(problem, rows, miss, goals, start, bend, max_steps, deadline, max_work)


def _respondents(problem: LinearProblem, centre: Floats, bend: float, n_threads: int) -> _core.Respondents:
    """The samples with a proximal term bend/price around the centre; a bend of 0 means none."""
    if bend == 0:
        return _core.Respondents(problem.p, 1.0 / problem.d, problem.lower, problem.upper, problem.epsilon, n_threads)
    mu = bend / problem.price
    inverse = 1.0 / (problem.d + mu)
    return _core.Respondents(problem.p + mu * centre, inverse, problem.lower, problem.upper, problem.epsilon, n_threads)


def _climb(
    problem: LinearProblem,
    rows: LinearRows,
    miss: Miss,
    goals: tuple[float, float],
    start: Point,
    bend: float,
    max_steps: int,
    deadline: float,
    max_work: float,
) -> Point:
    smooth = bool((problem.d > 0).all())
    w, b, steps = start.w.copy(), start.b, start.steps
    bend = 0.0 if smooth else bend
    f = rows.product(w, b)
    centre = start.beta
    samples = _respondents(problem, centre, bend, rows.n_threads)
    curvature = (ByColumns if few_columns(rows) else BySamples)(problem, rows, smooth)
    if not smooth and w.any() and not start.beta.any():
        centre = np.empty(rows.n)
        samples.respond(problem.p, problem.d, f, centre)
        samples = _respondents(problem, centre, bend, rows.n_threads)
    tol, gap_tol = goals
    since_bend, stale, best, asked, still = 0, 0, np.inf, np.inf, False
    while True:
        t = np.empty(rows.n)
        total, losses, shares = samples.respond(problem.p, problem.d, f, t)
        gradient = np.append(w - rows.transposed(t), _bias_slope(problem, b, total))
        if steps >= max_steps:
            return Point(w, b, t, steps, "max_iter")
        if time.monotonic() > deadline:
            return Point(w, b, t, steps, "max_time")
        if curvature.work > max_work:
            return Point(w, b, t, steps, "stalled")
        # The gap of (w, b) and t, but for a free bias's Σt, which is not zero yet.
        apart = inner(gradient[:-1], gradient[:-1])
        primal = losses + 0.5 * inner(w, w)
        if problem.bias not in (0, np.inf):
            apart += float(np.square(problem.bias * gradient[-1]))
            primal += 0.5 * float(np.square(b / problem.bias))
        gap = shares + 0.5 * apart
        if tol == np.inf and gap <= gap_tol * (primal - gap) and gap <= 0.5 * asked:
            asked = gap
            point = Point(w, b, t, steps)
            if miss(point) <= 1:
                return point
        direction = curvature.direction(t, bend, gradient)
        gain = -inner(gradient, direction)
        little = gain <= 1e-15 * (shares + inner(w, w)) and (smooth or since_bend > 2)
        settled = still or since_bend >= _LONGEST or little
        if settled or gain <= _SETTLED * min(shares, _proximal(problem, t, centre, bend)):
            point = Point(w, b, t, steps)
            if (tol < np.inf or settled or 10 * gap_tol * (primal - gap) >= gap) and miss(point) <= 1:
                return point
            stale = 0 if gain + shares < 0.9 * best else stale + 1
            best = min(best, gain + shares)
            if stale > _PATIENCE:
                return Point(w, b, t, steps, "stalled")
            if not smooth and (since_bend > 0 or settled):
                bend, since_bend, centre = max(bend * _NARROWER, _NARROWEST), 0, t
                samples = _respondents(problem, centre, bend, rows.n_threads)
                continue
        move = rows.product(direction[:-1], float(direction[-1]))
        step = _length(problem, samples, gain, w, b, direction, f, move)
        before, w, b, f = (w, b), w + step * direction[:-1], b + step * float(direction[-1]), f + step * move
        # On huge features w is tiny: its steps drown in rounding long before their gain looks small beside it.
        still = b == before[1] and np.array_equal(w, before[0])
        steps += 1
        since_bend += 1


def _proximal(problem: LinearProblem, t: Floats, centre: Floats, bend: float) -> float:
    """Twice the proximal term at t; without one nothing is asked of it."""
    if bend == 0:
        return np.inf
    moved = t - centre
    return bend * inner(moved, moved / problem.price)


def _bias_slope(problem: LinearProblem, b: float, total: float) -> float:
    if problem.bias == 0:
        return 0.0
    return (0.0 if problem.exact_bias else b / problem.bias**2) - total


def _length(
    problem: LinearProblem,
    samples: _core.Respondents,
    gain: float,
    w: Floats,
    b: float,
    direction: Floats,
    f: Floats,
    move: Floats,
) -> float:
    """How far to go: to where the slope of the convex objective is a small part of what it was."""
    dw, db = direction[:-1], float(direction[-1])
    linear = inner(w, dw)
    square = inner(dw, dw)
    if problem.bias not in (0, np.inf):
        linear += b * db / problem.bias**2
        square += db * db / problem.bias**2

    def slope(s: float) -> float:
        return linear + s * square - samples.along(f, move, s)

    first = -gain
    low, high, at = 0.0, 1.0, slope(1.0)
    if abs(at) <= 0.5 * abs(first):
        return 1.0
    below = first
    while at < 0 and high < 1e6:
        low, below, high = high, at, 2 * high
        at = slope(high)
    for _ in range(30):
        s = low + (high - low) * below / (below - at) if at > below else 0.5 * (low + high)
        s = min(max(s, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        now = slope(s)
        if abs(now) <= 0.1 * abs(first):
            return s
        if now < 0:
            low, below = s, now
        else:
            high, at = s, now
    return 0.5 * (low + high)
