"""The losses of a linear machine, their corners rounded by a proximal term in the dual (Rockafellar 1976).

To each sample's share of the dual, t p_i − ε_i|t| − d_i t²/2 over its box, comes −μ_i/2 (t − centre_i)², which makes
d_i + μ_i of d_i. With μ_i = smoothing/price_i every corner becomes a parabola of the same width, `smoothing`, in units
of the residual p − f. A smoothing of 0 means none, for losses that have no corners (d > 0).

`step_length` goes along a Newton direction to where the slope of the convex objective is a small share of the first.
"""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.arrays import Floats, inner
from mercer.problems.linear_problem import LinearProblem


class SmoothedLosses:
    """How samples respond to the outputs f = Xw + b: the best t of each, and what the true losses are there."""

    def __init__(self, problem: LinearProblem, centre: Floats, smoothing: float, n_threads: int) -> None:
        self._problem, self._n_threads = problem, n_threads
        self.centre, self.smoothing = centre, smoothing
        if smoothing == 0:
            q, inverse = problem.p, 1.0 / problem.d
        else:
            mu = smoothing / problem.price
            q, inverse = problem.p + mu * centre, 1.0 / (problem.d + mu)
        self._core = _core.Respondents(q, inverse, problem.lower, problem.upper, problem.epsilon, n_threads)

    def respond(self, f: Floats) -> tuple[Floats, float, float, float]:
        """t, Σt, and at t the losses without smoothing and their shares of the duality gap."""
        t = np.empty(len(f))
        total, losses, shares = self._core.respond(self._problem.p, self._problem.d, f, t)
        return t, total, losses, shares

    def slope_along(self, f: Floats, move: Floats, step: float) -> float:
        """The derivative of the smoothed losses at f + step·move along `move`."""
        return -self._core.along(f, move, step)

    def proximal(self, t: Floats) -> float:
        """Twice the proximal term at t; infinite without one, so that it is never the smaller of two."""
        if self.smoothing == 0:
            return np.inf
        moved = t - self.centre
        return self.smoothing * inner(moved, moved / self._problem.price)

    def moved(self, centre: Floats, smoothing: float) -> SmoothedLosses:
        """These losses smoothed around another centre, with another width."""
        return SmoothedLosses(self._problem, centre, smoothing, self._n_threads)


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
