"""The losses of a linear machine, their corners rounded by a proximal term in the dual (Rockafellar 1976).

To each sample's share of the dual, t p_i − ε_i|t| − d_i t²/2 over its box, comes −μ_i/2 (t − centre_i)², which makes
d_i + μ_i of d_i. With μ_i = smoothing/price_i every corner becomes a parabola of the same width, `smoothing`, in units
of the residual p − f. A smoothing of 0 means none, for losses that have no corners (d > 0).
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
        """These losses with another centre and width."""
        return SmoothedLosses(self._problem, centre, smoothing, self._n_threads)
