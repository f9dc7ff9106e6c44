"""Kernel values in twice the precision, for kernels that the core knows by an inner product or a distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats, is_sparse
from mercer.compression import twofold
from mercer.compression.exact_products import Sliced, product, product_error, squares
from mercer.compression.twofold import EXP_ERROR, PRODUCT_ERROR, SUM_ERROR, Twofold
from mercer.kernels import Kernel, Recipe


def twofold_values(kernel: Kernel, vectors: Any) -> TwofoldValues | None:
    """Values between these vectors; None for a kernel or data that only float64 is at hand for."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    if recipe is None or recipe.factor is not None or recipe.normalise or is_sparse(vectors):
        return None
    whole = recipe.ending != "polynomial" or recipe.numbers[2] == int(recipe.numbers[2])
    if recipe.ending == "sigmoid" or not whole:
        return None
    return TwofoldValues(recipe, np.asarray(vectors, dtype=np.float64))


class TwofoldValues:
    """k between rows of one matrix, as sums of two float64 numbers.

    `error` bounds the error of a value, as a share of √(k(x, x) k(z, z)).
    """

    def __init__(self, recipe: Recipe, X: Floats) -> None:
        self._recipe, self._X, inner = recipe, X, X.shape[1]
        low = None
        if recipe.inner == "sqdist":  # which a shift of all rows does not change
            X, low = twofold.exact_sum(X, np.broadcast_to(-X.mean(axis=0), X.shape))
        self._gamma = recipe.numbers[0] if recipe.numbers else 1.0
        if recipe.inner == "l1":
            largest = float(np.abs(X).max(initial=0.0)) * inner
            self.error = EXP_ERROR + 4 * self._gamma * largest * (inner + 4) * SUM_ERROR
            return
        self._sliced = Sliced.of(X, low, inner)
        share = product_error(self._sliced.bits, inner)
        largest = float(self._sliced.scale.max(initial=0.0)) ** 2
        if recipe.inner == "sqdist":
            self._squares = squares(self._sliced)
            self.error = EXP_ERROR + self._gamma * largest * (4 * share + 8 * (inner + 1) * SUM_ERROR)
        else:
            # The scale of a row is at most four times its length, and (γ|x||z| + c)ⁿ at most √(k(x, x) k(z, z)).
            degree = recipe.numbers[2] if recipe.ending == "polynomial" else 1.0
            self.error = 2 * degree * (16 * share + 4 * PRODUCT_ERROR)

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
        if recipe.ending in ("gaussian", "laplacian"):
            values = twofold.exp(twofold.times(t, -self._gamma))
        elif recipe.ending == "polynomial":
            _, coef0, degree = recipe.numbers
            base = twofold.times(t, self._gamma)
            base = twofold.add(base, (np.full_like(base[0], coef0), np.zeros_like(base[0])))
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
