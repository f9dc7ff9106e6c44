"""How far to go along a Newton direction: to where the slope of the convex objective is a small share of the first."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats, inner
from mercer.problems.linear_problem import LinearProblem
from mercer.solvers.linear.smoothed import SmoothedLosses

# A full step is taken if it leaves at most this share of the slope; otherwise the search goes on to _SEARCHED of it.
_FULL_STEP, _SEARCHED = 0.5, 0.1
# The longest step, and the most evaluations inside a bracket. Both only end searches that rounding spoils.
_LONGEST, _MOST_TRIES = 1e6, 30
# A trial keeps this share of the bracket away from either end, so that the bracket always shrinks.
_INSIDE = 0.1


def step_length(
    problem: LinearProblem,
    losses: SmoothedLosses,
    gain: float,
    at: tuple[Floats, float],
    direction: tuple[Floats, float],
    f: Floats,
    move: Floats,
) -> float:
    """From `at` = (w, b) along `direction`, with f = Xw + b and its change `move`; −gain is the slope at 0."""
    (w, b), (dw, db) = at, direction
    linear, square = inner(w, dw), inner(dw, dw)
    if problem.bias not in (0, np.inf):
        linear += b * db / problem.bias**2
        square += db * db / problem.bias**2

    def slope(s: float) -> float:
        return linear + s * square + losses.slope_along(f, move, s)

    first = -gain
    low, slope_low, high, slope_high = 0.0, first, 1.0, slope(1.0)
    if abs(slope_high) <= _FULL_STEP * abs(first):
        return 1.0
    while slope_high < 0 and high < _LONGEST:
        low, slope_low, high = high, slope_high, 2 * high
        slope_high = slope(high)
    for _ in range(_MOST_TRIES):
        # The secant through the ends of the bracket, or its middle where rounding has levelled the slopes.
        s = low + (high - low) * slope_low / (slope_low - slope_high) if slope_high > slope_low else 0.5 * (low + high)
        margin = _INSIDE * (high - low)
        s = min(max(s, low + margin), high - margin)
        here = slope(s)
        if abs(here) <= _SEARCHED * abs(first):
            return s
        if here < 0:
            low, slope_low = s, here
        else:
            high, slope_high = s, here
    return 0.5 * (low + high)
