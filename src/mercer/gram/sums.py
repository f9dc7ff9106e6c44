"""Sums over weighted samples and their targets: all that linear least squares needs, in memory d × d for any n.

The sums of two sets of samples give the sums of their union (Chan, Golub and LeVeque) or difference, so that samples
can be added and forgotten: recursive least squares. Sums are kept instead of a factor because removing samples from a
factor can break down, while a difference of sums is as accurate as the sums were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats, add_gram, is_sparse, mirror
from mercer.gram.linear_gram import float64_strips
from mercer.problems.least_squares import LeastSquares


@dataclass(frozen=True, eq=False)
class Sums:
    """Weight, means, and sums of squares and products about the means (about 0 without bias)."""

    weight: float
    x: Floats  # d
    y: Floats  # outputs
    xx: Floats  # d × d
    xy: Floats  # d × outputs
    yy: Floats  # outputs
    bias: bool

    @classmethod
    def of(cls, X: Any, problem: LeastSquares) -> Sums:
        """The sums of the distinct samples X, each with its weight and mean target."""
        total, Y, weight, d = problem.total, problem.mean, problem.mass, X.shape[1]
        x, y = np.zeros(d), np.zeros(Y.shape[1])
        if problem.bias:
            for rows, part in float64_strips(X):
                x += np.asarray(part.T @ total[rows]).ravel() / weight
            y = total @ Y / weight
        Y = total[:, None] * (Y - y)
        xx, xy = np.zeros((d, d)), np.zeros((d, Y.shape[1]))
        for rows, part in float64_strips(X):
            if is_sparse(part):
                xx += (part.multiply(total[rows, None]).T @ part).toarray()
                xy += part.T @ Y[rows]
            else:
                part = part - x
                add_gram(xx, part * np.sqrt(total[rows, None]))
                xy += part.T @ Y[rows]
        if not is_sparse(X):
            mirror(xx)
        if is_sparse(X) and problem.bias:
            xx -= weight * np.outer(x, x)
            xy -= np.outer(x, Y.sum(axis=0))
        rows_y = problem.Y - y
        return cls(weight, x, y, xx, xy, problem.weight @ rows_y**2, problem.bias)

    def plus(self, other: Sums) -> Sums:
        """The sums of both sets of samples."""
        return self._combined(other, 1.0)

    def minus(self, other: Sums) -> Sums:
        """The sums without samples that were added before."""
        weight = self.weight - other.weight
        if weight < -1e-9 * self.weight:
            raise ValueError(
                f"samples of weight {other.weight:g} cannot be forgotten: only {self.weight:g} have been learnt"
            )
        if weight <= 1e-9 * self.weight:
            x, y, xx, xy, yy = (np.zeros_like(a) for a in (self.x, self.y, self.xx, self.xy, self.yy))
            return Sums(0.0, x, y, xx, xy, yy, self.bias)
        return self._combined(other, -1.0)

    def _combined(self, other: Sums, sign: float) -> Sums:
        """The sums with (sign = 1) or without (−1) the other samples; means move by their share of the new weight."""
        weight = self.weight + sign * other.weight
        share = sign * other.weight / weight if self.bias else 0.0
        between = self.weight * share
        dx, dy = other.x - self.x, other.y - self.y
        return Sums(
            weight,
            self.x + share * dx,
            self.y + share * dy,
            self.xx + sign * other.xx + between * np.outer(dx, dx),
            self.xy + sign * other.xy + between * np.outer(dx, dy),
            self.yy + sign * other.yy + between * dy**2,
            self.bias,
        )
