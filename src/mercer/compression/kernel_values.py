"""Kernel values in twice the precision, for kernels that the core knows by an inner product or a distance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays import is_sparse
from mercer.compression import twofold
from mercer.compression.exact_products import Sliced, product, squares
from mercer.compression.twofold import EXP_ERROR, PRODUCT_ERROR, SUM_ERROR, Twofold
from mercer.kernels import Kernel

# Lengths of rows, as shares of the largest, and values of γ, beyond which products leave the range of float64.
_SHORTEST_ROW, _LARGEST_GAMMA = 2.0**-400, 2.0**900
# Exponents beyond have values that float64 cannot hold.
_LARGEST_EXPONENT = 2.0**20


def has_twofold_values(kernel: Kernel, vectors: Any) -> bool:
    """Whether there is more than float64 for this kernel on these data."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" and not kernel.given else None
    if recipe is None or recipe.factor is not None or recipe.normalise or is_sparse(vectors):
        return False
    whole = recipe.ending != "polynomial" or recipe.numbers[2] == int(recipe.numbers[2])
    return recipe.ending != "sigmoid" and whole


class TwofoldValues:
    """k between rows of one matrix, as sums of two float64 numbers.

    `error` bounds the error of a value, as a share of √(k(x, x) k(z, z)). Features are divided by a power of two that
    none exceeds, and γ or the kernel's scale multiplied instead, so that no square leaves the range of float64.
    """

    def __init__(self, kernel: Kernel, vectors: Any, slices: int) -> None:
        recipe, X = kernel.recipe(), np.asarray(vectors, dtype=np.float64)
        assert recipe is not None
        inner = X.shape[1]
        unit = 2.0 ** math.ceil(math.log2(float(np.abs(X).max(initial=0.0)) or 1.0))
        X = X / unit
        low = None
        if recipe.inner == "sqdist":  # which a shift of all rows does not change
            X, low = twofold.exact_sum(X, np.broadcast_to(-X.mean(axis=0), X.shape))
        self._recipe, self._X = recipe, X
        squared = 1.0 if recipe.inner == "l1" else unit
        self._gamma = (recipe.numbers[0] if recipe.numbers else 1.0) * unit * squared
        if not self._gamma < _LARGEST_GAMMA:
            raise _out_of_range(kernel)
        if recipe.inner == "l1":
            self.error = EXP_ERROR + 8 * PRODUCT_ERROR + 4 * self._gamma * inner * (inner + 4) * SUM_ERROR
            return
        self._sliced = Sliced.of(X, low, inner, slices)
        share = self._sliced.product_error(inner)
        if recipe.inner == "sqdist":
            largest = float(self._sliced.scale.max(initial=0.0)) ** 2
            self._squares = squares(self._sliced)
            self.error = (
                EXP_ERROR + 8 * PRODUCT_ERROR + self._gamma * largest * (4 * share + 8 * (inner + 1) * SUM_ERROR)
            )
            return
        longest = np.abs(X).max(axis=1, initial=0.0)
        if (longest[longest > 0] < _SHORTEST_ROW).any():
            raise _out_of_range(kernel)
        # The scale of a row is at most four times its length, and (γ|x||z| + c)ⁿ at most √(k(x, x) k(z, z)).
        degree = recipe.numbers[2] if recipe.ending == "polynomial" else 1.0
        self.error = 2 * degree * (16 * share + 8 * PRODUCT_ERROR)

    def __call__(self, rows: slice, columns: slice) -> Twofold:
        recipe = self._recipe
        if recipe.inner == "l1":
            t = self._l1(rows, columns)
        else:
            t = product(self._sliced.rows(rows), self._sliced.rows(columns))
        if recipe.inner == "sqdist":
            high, low = self._squares
            both = twofold.add((high[rows, None], low[rows, None]), (high[columns], low[columns]))
            t = twofold.add(both, (-2.0 * t[0], -2.0 * t[1]))
            t = (np.maximum(t[0], 0.0), np.where(t[0] > 0, t[1], 0.0))
        radial = recipe.ending in ("gaussian", "laplacian")
        if radial and self._gamma > 1.0:
            most = _LARGEST_EXPONENT / self._gamma
            t = (np.minimum(t[0], most), np.where(t[0] < most, t[1], 0.0))
        t = twofold.times(t, self._gamma)
        if radial:
            values = twofold.exp((-t[0], -t[1]))
        elif recipe.ending == "polynomial":
            _, coef0, degree = recipe.numbers
            base = twofold.add(t, (np.full_like(t[0], coef0), np.zeros_like(t[0])))
            values = twofold.power(base, int(degree)) if degree else (np.ones_like(t[0]), np.zeros_like(t[0]))
        else:
            values = t
        if recipe.scale != 1.0:
            values = twofold.times(values, recipe.scale)
        if recipe.constant:
            values = twofold.add(values, (np.full_like(values[0], recipe.constant), np.zeros_like(values[0])))
        return values

    def _l1(self, rows: slice, columns: slice) -> Twofold:
        x, z = self._X[rows], self._X[columns]
        total = (np.zeros((len(x), len(z))), np.zeros((len(x), len(z))))
        for feature in range(x.shape[1]):
            high, low = twofold.exact_sum(x[:, feature, None], -z[None, :, feature])
            sign = np.sign(high)
            total = twofold.add(total, (sign * high, sign * low))
        return total


def _out_of_range(kernel: Kernel) -> FloatingPointError:
    return FloatingPointError(
        f"the features' lengths, or γ times their squares, leave the range of float64 under {kernel!r}, so that "
        "‖w − w'‖ cannot be proven; scale the features"
    )
