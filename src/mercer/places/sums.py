"""Sums over weighted samples and their targets: all that linear least squares needs, in d × d memory for any n.

With z = (1, x − origin, y − origin) they are M = Σ w zz', without the products of two targets. The sums of two sets of
samples give those of their union or difference, so that samples can be added and forgotten: recursive least squares.
The origin follows the mean, as in the updates of Chan, Golub and LeVeque. It need not equal the mean, and so it has no
error itself.

A vector e bounds the rounding: no entry M_jk has an error above e_j e_k. A sum of n products has an error of at most
γ_n Σw|z_j z_k| ≤ γ_n √(Σw z_j²) √(Σw z_k²), which has this form. So has the sum of two such bounds if the squares of e
are added (Cauchy–Schwarz). The rounding of samples that were added and removed again stays in e.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, add_gram, gamma, is_sparse, mirror, row_blocks, sums_by

# Roundings of one entry when sums move to another origin, or are added.
_ROUNDINGS = 8


@dataclass(frozen=True, eq=False)
class Sums:
    """Weight, sums, and sums of squares and products, about an origin close to the mean (0 without bias)."""

    weight: float  # Σ w
    x: Floats  # origin of the d features
    y: Floats  # origin of the outputs
    xx: Floats  # d × d
    xy: Floats  # d × outputs
    yy: Floats  # one per output
    bias: bool
    rest_x: Floats  # Σ w(x − origin)
    rest_y: Floats  # Σ w(y − origin)
    error: Floats  # e for the weight, the d features and the outputs

    @classmethod
    def of(cls, X: Any, problem: LeastSquares) -> Sums:
        """Compute the sums over the distinct samples X, each with its weight and targets."""
        d, is_sparse_X = X.shape[1], is_sparse(X)

        def sums_of(total: Floats) -> Floats:
            out = np.zeros(d)
            for rows, part in float64_strips(X):
                out += np.asarray(part.T @ total[rows]).ravel()
            return out

        def products_about(x: Floats, Y: Floats) -> tuple[Floats, Floats, Floats]:
            total, xx, xy, rest = problem.total, np.zeros((d, d)), np.zeros((d, Y.shape[1])), np.zeros(d)
            for rows, part in float64_strips(X):
                if is_sparse_X:  # about zero, so that the samples stay sparse
                    xx += (part.multiply(total[rows, None]).T @ part).toarray()
                else:
                    part = part - x
                    add_gram(xx, part * np.sqrt(total[rows, None]))
                xy += part.T @ Y[rows]
                rest += np.asarray(part.T @ total[rows]).ravel()
            if not is_sparse_X:
                mirror(xx)
            return xx, xy, rest

        return cls.gathered(problem, d, is_sparse_X, sums_of, products_about)

    @classmethod
    def gathered(
        cls,
        problem: LeastSquares,
        d: int,
        sparse: bool,
        sums_of: Callable[[Floats], Floats],
        products_about: Callable[[Floats, Floats], tuple[Floats, Floats, Floats]],
    ) -> Sums:
        """Compute the sums of samples on any engine from two functions that sum over the samples, in any order.

        `sums_of(t)` returns Σ t x, and `products_about(o, Y)` returns Σ w(x − o)(x − o)', Σ (x − o)y' and Σ w(x − o).
        The origin o is 0 for sparse samples.
        """
        weight, q = problem.mass, problem.n_outputs
        x, y = np.zeros(d), np.zeros(q)
        if problem.bias:
            x, y = sums_of(problem.total) / weight, problem.weight @ problem.Y / weight
        deviation = problem.weight[:, None] * (problem.Y - y)
        Y = np.column_stack([sums_by(problem.member, column, problem.n) for column in deviation.T])
        xx, xy, rest_x = products_about(x, Y)
        yy = np.sum(deviation * (problem.Y - y), axis=0)
        size = np.concatenate([[weight], xx.diagonal(), yy])
        error = np.sqrt(gamma(len(problem.weight) + _ROUNDINGS) * np.abs(size))
        origin = np.zeros(d) if sparse else x
        sums = cls(weight, origin, y, xx, xy, yy, problem.bias, rest_x, deviation.sum(axis=0), error)
        if not problem.bias:
            return replace(sums, rest_x=np.zeros(d), rest_y=np.zeros(q))
        return sums._about_origin(x, y) if sparse else sums

    def plus(self, other: Sums) -> Sums:
        """Return the sums over both sets of samples."""
        return self._combined(other, 1.0)

    def minus(self, other: Sums) -> Sums:
        """Return the sums without samples that were added before."""
        weight = self.weight - other.weight
        if weight < -1e-9 * self.weight:
            raise ValueError(
                f"samples of weight {other.weight:g} cannot be forgotten: only {self.weight:g} have been learnt"
            )
        if weight <= 1e-9 * self.weight:
            raise ValueError("no samples would be left: forget fewer samples, or make a new estimator")
        difference = self._combined(other, -1.0)
        difference._check_possible()
        return difference

    def _check_possible(self) -> None:
        """Raise ValueError if no samples can have these sums, even with the rounding that e allows."""
        size = np.concatenate([[self.weight], self.xx.diagonal(), self.yy])
        allowed_squares = self.error**2
        # Cauchy–Schwarz, for the squares themselves, the sums, and the products with the targets.
        largest = np.maximum(size, 0.0) + 2 * allowed_squares
        d = len(self.x)
        root, slack = np.sqrt(largest), self.error
        bounded_sums = (
            (self.rest_x, root[0] * root[1 : d + 1], slack[0] * slack[1 : d + 1]),
            (self.rest_y, root[0] * root[d + 1 :], slack[0] * slack[d + 1 :]),
            (self.xy, np.outer(root[1 : d + 1], root[d + 1 :]), np.outer(slack[1 : d + 1], slack[d + 1 :])),
        )
        is_possible = bool((size >= -2 * allowed_squares).all())
        is_possible = is_possible and all(
            bool((np.abs(sums) <= bound + 2 * error).all()) for sums, bound, error in bounded_sums
        )
        if is_possible and d:
            unit = np.divide(1.0, root[1 : d + 1], out=np.zeros(d), where=root[1 : d + 1] > 0)
            smallest = float(scipy.linalg.eigvalsh(self.xx * unit[:, None] * unit, check_finite=False)[0])
            is_possible = smallest >= -2 * float(np.sum((slack[1 : d + 1] * unit) ** 2)) - gamma(8 * d * d)
        if not is_possible:
            raise ValueError(
                "these samples cannot be forgotten, since they were never learnt in this form: the remaining sums "
                "would have negative squares, or products larger than the squares allow. Forget samples with the "
                "values, targets and weights that they were learnt with"
            )

    @property
    def centred_error(self) -> Floats:
        """Error bounds e of features and outputs in sums about the exact mean.

        Least squares with a bias needs these sums. Those about the origin differ from them by rest_j rest_k over the
        weight.
        """
        e = self.error
        if not self.bias:
            return e[1:]
        rest = np.concatenate([np.abs(self.rest_x), np.abs(self.rest_y)]) + e[0] * e[1:]
        least_weight = self.weight - e[0] ** 2
        return np.sqrt(e[1:] ** 2 + rest**2 / least_weight) if least_weight > 0 else np.full(len(rest), math.inf)

    def bias_of(self, W: Floats) -> Floats:
        """Return the bias b that is optimal for the feature weights W."""
        if not self.bias:
            return np.zeros(W.shape[1])
        return np.asarray(self.y - self.x @ W + (self.rest_y - self.rest_x @ W) / self.weight)

    def _combined(self, other: Sums, sign: float) -> Sums:
        """Return the sums with (sign = 1) or without (−1) the other samples, about the resulting mean."""
        weight = self.weight + sign * other.weight
        if not self.bias:
            a, b = self, other
        else:
            share = sign * other.weight / weight
            x, y = (mean + share * (other_mean - mean) for mean, other_mean in ((self.x, other.x), (self.y, other.y)))
            a, b = self._about_origin(x, y), other._about_origin(x, y)
        squares = np.abs(a.xx.diagonal()) + np.abs(b.xx.diagonal())
        size = np.concatenate([[a.weight + b.weight], squares, np.abs(a.yy) + np.abs(b.yy)])
        names = ("xx", "xy", "yy", "rest_x", "rest_y")
        sums: dict[str, Any] = {name: getattr(a, name) + sign * getattr(b, name) for name in names}
        error = np.sqrt(a.error**2 + b.error**2 + gamma(_ROUNDINGS) * size)
        return replace(a, weight=weight, error=error, **sums)

    def _about_origin(self, x: Floats, y: Floats) -> Sums:
        """Return the sums about another origin."""
        dx, dy, W = x - self.x, y - self.y, self.weight
        size = np.concatenate([[W], np.abs(self.xx.diagonal()), np.abs(self.yy)])
        step = np.concatenate([[0.0], np.abs(dx), np.abs(dy)])
        error = self.error + step * self.error[0]
        return replace(
            self,
            x=x,
            y=y,
            xx=self.xx - np.outer(self.rest_x, dx) - np.outer(dx, self.rest_x) + W * np.outer(dx, dx),
            xy=self.xy - np.outer(self.rest_x, dy) - np.outer(dx, self.rest_y) + W * np.outer(dx, dy),
            yy=self.yy - 2 * self.rest_y * dy + W * dy**2,
            rest_x=self.rest_x - W * dx,
            rest_y=self.rest_y - W * dy,
            error=np.sqrt(error**2 + gamma(_ROUNDINGS) * (np.sqrt(size) + np.sqrt(W) * step) ** 2),
        )


def float64_strips(X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield X in float64, a strip of rows at a time; a sparse float64 X is one strip, because slicing would copy it."""
    if is_sparse(X) and X.dtype == np.float64:
        yield slice(0, X.shape[0]), X
        return
    per_row = 8 * (X.shape[1] if not is_sparse(X) else 2 * max(1, X.nnz // max(1, X.shape[0])))
    for rows in row_blocks(X.shape[0], per_row):
        yield rows, X[rows].astype(np.float64, copy=False)
