"""A convex loss from below: for each sample the largest of some of its tangents, which is piecewise linear.

With the slopes s_0 ≤ s_1 ≤ … of a sample's tangents, of which the k-th and the one before it meet at z_k, the dual has
a variable for each k: the subgradient at f(x_i) is s_0 plus parts of the steps s_k − s_(k−1), and each part costs z_k.
The coefficient of the sample is minus its subgradient, so that a step between negative slopes makes it larger, and one
between positive slopes smaller. Tangents at the minimiser of the last ones are added until the loss is close to them
there (Kelley, "The cutting-plane method for solving convex programs", 1960).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats

# First tangents of each sample: at its target, and at these distances on both sides, in spreads of the targets.
_FIRST = (1.0, 1e3)


@dataclass(frozen=True, eq=False)
class Tangents:
    """Largest tangent of a loss at each sample; `points` has a row for each sample, in ascending order."""

    points: Floats
    values: Floats
    slopes: Floats

    @classmethod
    def at(cls, loss: Any, y: Floats, points: Floats) -> Tangents:
        """Return the tangents of the loss at these points; where it overflows, at y instead."""
        with np.errstate(over="ignore", invalid="ignore"):
            finite = [np.isfinite(loss.value(y, t)) & np.isfinite(loss.gradient(y, t)) for t in points.T]
        points = np.sort(np.where(np.column_stack(finite), points, y[:, None]), axis=1)
        values = np.column_stack([loss.value(y, t) for t in points.T])
        slopes = np.column_stack([loss.gradient(y, t) for t in points.T])
        return cls(points, values, np.maximum.accumulate(slopes, axis=1))

    @classmethod
    def around(cls, loss: Any, y: Floats) -> Tangents:
        """Return a few tangents near the targets and far from them."""
        spread = float(np.ptp(y)) or float(np.abs(y).max(initial=0.0)) or 1.0
        return cls.at(loss, y, y[:, None] + spread * np.array([0.0, *_FIRST, *(-d for d in _FIRST)]))

    def value(self, y: Floats, f: Floats) -> Floats:
        return np.asarray((self.values + self.slopes * (f[:, None] - self.points)).max(axis=1))

    def gradient(self, y: Floats, f: Floats) -> Floats:
        largest = (self.values + self.slopes * (f[:, None] - self.points)).argmax(axis=1)
        return np.asarray(self.slopes[np.arange(len(f)), largest])

    def dual(self, C: Floats) -> DualProblem:
        """Build the dual of ½‖f‖² + Σ C_i ℓ_i(f(x_i)) with bias, in which a sample has several variables."""
        T, S = self.points, self.slopes
        # 1. The steps between slopes, and the corners, where neighbouring tangents meet, between their two points.
        steps = np.diff(S, axis=1)
        shares = np.divide(S[:, 1:] * np.diff(T, axis=1) - np.diff(self.values, axis=1), steps, where=steps > 0,
                           out=np.zeros_like(steps))  # fmt: skip
        corners = np.clip(T[:, :-1] + shares, T[:, :-1], T[:, 1:])
        # 2. A step that reaches from slope 0 to the others is always taken: a variable that cannot change.
        S = np.column_stack([np.minimum(S[:, 0], 0.0), S, np.maximum(S[:, -1], 0.0)])
        corners = np.column_stack([T[:, 0], corners, T[:, -1]])
        lower = -C[:, None] * np.diff(np.maximum(S, 0.0), axis=1)
        upper = C[:, None] * np.diff(np.minimum(S, 0.0), axis=1)
        upper[:, 0], lower[:, -1] = lower[:, 0], upper[:, -1]
        # 3. One variable for every step that is not empty.
        is_step = np.diff(S, axis=1) > 0
        row = np.ascontiguousarray(np.nonzero(is_step)[0])
        zeros = np.zeros(len(row))
        return DualProblem(
            corners[is_step], lower[is_step], upper[is_step], zeros, row, zeros.astype(np.int32), np.zeros(1)
        )
