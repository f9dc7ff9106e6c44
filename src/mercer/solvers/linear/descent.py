"""Dual coordinate descent for linear machines (Hsieh et al. 2008): one variable at a time, w = X'β kept up to date.

Coordinate steps cannot hold Σβ = 0. For classification on sparse rows the core finds an unregularised bias itself, by
Newton steps on it between passes. Otherwise it comes as the limit of regularised ones: with the term ½(b − b₀)²/B² in
the primal the bias is one more feature of value B, and b₀ moves to the b that was found (the method of multipliers for
Σβ = 0). The certificate is that of the true problem, at a β whose sum is made zero.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mercer.arrays import inner
from mercer.solvers.linear.referee import Point, Referee

# The method of multipliers moves b₀ after this many passes.
_PASSES_PER_MULTIPLIER = 5
# When the certificate disagrees with a descent that took itself for converged, the descent's own tolerances shrink by
# _MOST / (how many times the goal was missed), but by no factor below _LEAST per round. Below _FLOOR of what was asked
# for, rounding is taken to be the cause.
_LEAST, _MOST, _FLOOR = 0.2, 0.8, 1e-12


def descend(referee: Referee, start: Point | None, max_passes: int, seed: int, shrinking: bool) -> Point:
    """Passes until the referee accepts a point or a limit is met; those of the start count."""
    problem, rows, stop = referee.problem, referee.rows, replace(referee.stop, max_iter=max_passes)
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
            factor * stop.tol,
            factor * stop.gap_tol,
            min(left, _PASSES_PER_MULTIPLIER) if multipliers else left,
            stop.seconds,
            shrinking,
        )
        # A call that converges within its first pass counts as one, so that the limit is reached in the end.
        passes += taken if ended == "unsettled" and not multipliers else max(min(1, left), taken)
        if ended == "unsettled" and not multipliers and passes < max_passes:
            # B² = the mean curvature of the other variables, ‖x‖² + d: a smaller one makes b lag, a larger one lets it
            # dominate the steps.
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
