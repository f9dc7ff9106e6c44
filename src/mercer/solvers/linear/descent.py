"""Dual coordinate descent for linear machines (Hsieh et al. 2008): one variable at a time, w = X'β kept up to date.

Coordinate steps cannot hold Σβ = 0. For classification on sparse rows the core finds an unregularised bias itself, by
Newton steps on it between passes. Otherwise it comes as the limit of regularised ones: with the term ½(b − b₀)²/B² in
the primal the bias is one more feature of value B, and b₀ moves to the b that was found (the method of multipliers for
Σβ = 0). The certificate is that of the true problem, at a β whose sum is made zero.
"""

from __future__ import annotations

import math
import time

import numpy as np

from mercer.arrays import inner
from mercer.gram.linear_rows import LinearRows
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import StopReason
from mercer.solvers.linear.newton import Miss, Point

# Passes between two moves of b₀.
_PASSES = 5
# A certificate that disagrees with the descent lowers its goal, by what was missed and between these two factors.
_LOWEST, _LOWER = 0.2, 0.8


def descend(
    problem: LinearProblem,
    rows: LinearRows,
    miss: Miss,
    goals: tuple[float, float],
    start: Point | None,
    seed: int,
    max_passes: int,
    deadline: float,
    shrinking: bool,
) -> Point:
    """Passes until a point misses nothing; goals are a violation and a gap relative to the dual value."""
    if not np.isfinite(rows.lengths).all():
        raise FloatingPointError("the squares of the features overflow float64; scale the features")
    multipliers, B, origin = False, problem.bias, 0.0
    beta = np.zeros(rows.n) if start is None else np.clip(start.beta, problem.lower, problem.upper)
    w = rows.transposed(beta)
    b = np.array([0.0 if start is None else start.b])
    state = np.array([seed], dtype=np.uint64)
    passes, factor = 0 if start is None else start.steps, 1.0
    tol, gap_tol = goals
    while True:
        before = float(beta.sum())
        taken, _, _, ended = rows.core.descend(
            problem.p - origin if multipliers else problem.p,
            problem.lower,
            problem.upper,
            problem.d,
            problem.epsilon,
            rows.lengths,
            B,
            beta,
            w,
            b,
            problem.value(beta, inner(w, w)) - origin * before,
            not multipliers,
            state,
            factor * tol,
            factor * gap_tol,
            min(_PASSES if multipliers else max_passes, max(1, max_passes - passes)),
            max(0.0, deadline - time.monotonic()),
            shrinking,
        )
        passes += taken if ended == "unsettled" and not multipliers else max(1, taken)
        if ended == "unsettled" and not multipliers and passes < max_passes:
            # The bias's feature is as long as the others together: then it neither lags behind nor rules.
            multipliers, B, origin = True, math.sqrt(float((rows.lengths + problem.d).mean()) or 1.0), float(b[0])
            w, b = rows.transposed(beta), np.zeros(1)
            continue
        reason: StopReason | None = None
        if passes >= max_passes:
            reason = "max_iter"
        elif time.monotonic() > deadline:
            reason = "max_time"
        point = Point(w.copy(), origin + float(b[0]), beta.copy(), passes)
        missed = miss(point)
        if missed <= 1:
            return point
        if reason is not None:
            point.reason = reason
            return point
        w = rows.transposed(beta)  # what rounding added in many small steps goes
        moving = multipliers and abs(before) + abs(float(beta.sum())) > 1e-12 * float(np.abs(beta).sum())
        if ended == "converged" and not moving:
            factor *= min(_LOWER, max(_LOWEST, _LOWER / missed))
        if multipliers:
            origin, b = point.b, np.zeros(1)
        if factor < 1e-12:
            point.reason = "rounding floor"
            return point
