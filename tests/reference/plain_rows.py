"""`Rows` in plain NumPy, as an engine may bring them: sums in float64 only, and no steps on one row after another."""

import numpy as np

from mercer.places.ball import LEAST, Ball
from mercer.samples.arrays import gamma


class PlainRows:
    descent = None

    def __init__(self, X, origin=0.0):
        self._X, self.origin = X, origin
        self.n, self.d = X.shape
        self.stored = X.size
        self.squared_lengths = (X * X).sum(axis=1)

    def first(self, m):
        return PlainRows(self._X[:m], self.origin)

    def take(self, which):
        return PlainRows(self._X[which], self.origin)

    def product(self, w, shift=0.0):
        return self._X @ w + shift

    def transposed(self, c):
        return self._X.T @ c

    def gram(self, which, others):
        return self._X[which] @ self._X[others].T

    def outer(self, which, c):
        Z = np.column_stack([self._X[which], np.ones(len(which))])
        return (Z.T * c) @ Z

    def product_bound(self, w, shift=0.0):
        error = gamma(self.d + 6) * (self._sizes() * _size(w) + abs(shift)) + (self.d + 2) * LEAST
        return Ball(self.product(w, shift), error).finite()

    precise_product = product_bound

    def combination(self, c, tolerance=0.0):
        error = gamma(self.n + 8) * float(np.abs(c) @ self._sizes()) + 2 * self.n * self.d * LEAST
        return self.transposed(c), np.zeros(self.d), error if np.isfinite(error) else np.inf

    def gram_product(self, c):
        v, _, error = self.combination(c)
        u, own = self.product_bound(v)
        return Ball(u, own + 2 * error * self._sizes()).finite()

    def _sizes(self):
        return np.sqrt(self.squared_lengths + self.d * LEAST)


def _size(w):
    return float(np.sqrt(w @ w + len(w) * LEAST))
