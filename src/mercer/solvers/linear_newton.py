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
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import StopReason
from mercer.solvers.linear_rows import LinearRows

# The first bend is so many times the mean of |p|, the error at w = 0; after a sample of the rows, this share of it.
# Each is so much narrower than the last.
_FIRST_BEND, _SAMPLED = 2.0, 0.1
_NARROWER, _NARROWEST = 0.3, 1e-9
# The bends narrow when a step would gain less than this share of the gap (a9a, hinge, to a gap of 1e-4: 82 ms with 0.2,
# 274 with 0.5, 358 with 1).
_SETTLED = 0.2
# A sample of the rows is worth a start of its own from this many rows per column on; each sample is so much smaller,
# and solved to this share of its loss: its optimum is not the whole's.
_ROWS_PER_COLUMN, _FEWEST_ROWS, _SMALLER, _ROUGH = 20, 2000, 8, 0.03
# Looks at the gap that do not find it a tenth smaller, before the method gives up.
_PATIENCE = 25


@dataclass(eq=False)
class Point:
    """w and b, the dual variables they were found with, and how."""

    w: Floats
    b: float
    beta: Floats
    steps: int = 0
    reason: StopReason = "converged"


Good = Callable[[Point], bool]


def newton(
    problem: LinearProblem, rows: LinearRows, good: Good, start: Point | None, max_steps: int, deadline: float
) -> Point:
    """Steps until `good` says that a point will do, or a limit is met."""
    bend = _FIRST_BEND * float(np.abs(problem.p).mean())
    if start is None:
        start = Point(np.zeros(rows.d), 0.0, np.zeros(rows.n))
        m = rows.n // _SMALLER
        if m >= max(_FEWEST_ROWS, _ROWS_PER_COLUMN * (rows.d + 1)):
            part, few = problem.first(m, rows.n / m), rows.first(m)
            rough = newton(part, few, _roughly(part, few), None, max_steps, deadline)
            start = Point(rough.w, rough.b, np.zeros(rows.n), rough.steps)
            bend *= _SAMPLED
    elif start.beta.any():
        bend *= _SAMPLED**2
    return _climb(problem, rows, good, start, bend, max_steps, deadline)


def _roughly(problem: LinearProblem, rows: LinearRows) -> Good:
    def good(point: Point) -> bool:
        f = rows.product(point.w, point.b)
        return _gap(problem, f, point.beta) <= _ROUGH * float(problem.losses(problem.p - f).sum())

    return good


def _climb(
    problem: LinearProblem, rows: LinearRows, good: Good, start: Point, bend: float, max_steps: int, deadline: float
) -> Point:
    smooth = bool((problem.d > 0).all())
    w, b, centre, steps = start.w.copy(), start.b, start.beta.copy(), start.steps
    f = rows.product(w, b)
    if not smooth and w.any() and not centre.any():
        centre = problem.response(problem.p - f, centre, bend / problem.price)
    since_bend, stale, best = 0, 0, np.inf
    while True:
        mu = None if smooth else bend / problem.price
        t = problem.response(problem.p - f, centre, mu)
        gradient = np.append(w - rows.transposed(t), _bias_slope(problem, b, t))
        if steps >= max_steps:
            return Point(w, b, t, steps, "max_iter")
        if time.monotonic() > deadline:
            return Point(w, b, t, steps, "max_time")
        direction = _direction(problem, rows, t, mu, gradient)
        gain, gap = -inner(gradient, direction), _gap(problem, f, t)
        settled = gain <= 1e-15 * (gap + inner(w, w))
        if settled or gain <= _SETTLED * gap:
            point = Point(w, b, t, steps)
            if good(point):
                return point
            stale = 0 if gain + gap < 0.9 * best else stale + 1
            best = min(best, gain + gap)
            if stale > _PATIENCE:
                return Point(w, b, t, steps, "stalled")
            if not smooth and (since_bend > 0 or settled):
                centre, bend, since_bend = t, max(bend * _NARROWER, _NARROWEST), 0
                continue
        move = rows.product(direction[:-1], float(direction[-1]))
        step = _length(problem, w, b, direction, f, move, centre, mu)
        w, b, f = w + step * direction[:-1], b + step * float(direction[-1]), f + step * move
        steps += 1
        since_bend += 1


def _bias_slope(problem: LinearProblem, b: float, t: Floats) -> float:
    if problem.bias == 0:
        return 0.0
    return (0.0 if problem.exact_bias else b / problem.bias**2) - float(t.sum())


def _gap(problem: LinearProblem, f: Floats, t: Floats) -> float:
    """The samples' shares of the true problem's gap at f and t."""
    r = problem.p - f
    own = t * (r - 0.5 * problem.d * t) - problem.epsilon * np.abs(t)
    return float((problem.losses(r) - own).sum())


def _direction(problem: LinearProblem, rows: LinearRows, t: Floats, mu: Floats | None, gradient: Floats) -> Floats:
    """−H⁻¹ gradient."""
    free = (t > problem.lower) & (t < problem.upper)
    if problem.epsilon.any():
        free &= t != 0
    F = np.flatnonzero(free)
    curvature = 1.0 / (problem.d[F] if mu is None else problem.d[F] + mu[F])
    H = rows.outer(F, curvature)
    np.einsum("ii->i", H)[:-1] += 1.0
    if problem.bias == 0:
        H[-1, :] = 0.0
        H[:, -1] = 0.0
        H[-1, -1] = 1.0
    elif problem.exact_bias:
        # Without a free sample nothing holds b: a step of its own size, which the search along it will correct.
        H[-1, -1] += 1e-12 * H[-1, -1] if len(F) else max(1.0, abs(gradient[-1]))
    else:
        H[-1, -1] += 1.0 / problem.bias**2
    size, ridge = np.diagonal(H).copy(), 0.0
    while True:
        factor = H.copy()
        np.einsum("ii->i", factor)[:] += ridge * size
        if _core.cholesky(factor, rows.n_threads) < 0:
            break
        ridge = max(1e-14, 100 * ridge)
    solved = -gradient[:, None]
    _core.cholesky_solve(factor, solved, rows.n_threads)
    return np.asarray(solved[:, 0])


def _length(
    problem: LinearProblem,
    w: Floats,
    b: float,
    direction: Floats,
    f: Floats,
    move: Floats,
    centre: Floats,
    mu: Floats | None,
) -> float:
    """How far to go: to where the slope of the convex objective is a small part of what it was."""
    dw, db = direction[:-1], float(direction[-1])
    linear = inner(w, dw)
    square = inner(dw, dw)
    if problem.bias not in (0, np.inf):
        linear += b * db / problem.bias**2
        square += db * db / problem.bias**2

    def slope(s: float) -> float:
        t = problem.response(problem.p - (f + s * move), centre, mu)
        return linear + s * square - inner(t, move)

    first = slope(0.0)
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
