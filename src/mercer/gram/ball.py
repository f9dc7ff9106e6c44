"""A computed value and how far it can be from the true one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Indices, gamma

# What a product can lose below the normal numbers, twice over: γ_k counts roundings of normal numbers alone.
LEAST = float(np.finfo(np.float64).smallest_subnormal)


class Ball(NamedTuple):
    """A computed number, or an array of them, and a bound on the error of each: the true ones lie in [low, high]."""

    value: Any
    error: Any

    @property
    def low(self) -> Any:
        return self.value - self.error

    @property
    def high(self) -> Any:
        return self.value + self.error

    @property
    def size(self) -> Any:
        """The most that the true number's absolute value can be."""
        return np.abs(self.value) + self.error

    def take(self, rows: Indices) -> Ball:
        return Ball(self.value[rows], self.error[rows])

    def put(self, rows: Indices, other: Ball) -> None:
        """Other values and errors on some rows."""
        self.value[rows], self.error[rows] = other

    def rounded(self, roundings: int = 1) -> Ball:
        """These values after this many roundings."""
        return Ball(self.value, self.error + gamma(roundings) * np.abs(self.value))

    def finite(self) -> Ball:
        """These values with infinite bounds where one, or its bound, has overflowed: then nothing is known."""
        known = np.isfinite(self.value) & np.isfinite(self.error)
        return Ball(self.value, np.where(known, self.error, np.inf))

    def plus(self, other: Ball) -> Ball:
        """The sum, rounded."""
        return Ball(self.value + other.value, self.error + other.error).rounded()

    def minus(self, other: Ball) -> Ball:
        """The difference, rounded."""
        return Ball(self.value - other.value, self.error + other.error).rounded()

    def times(self, factor: float) -> Ball:
        """The product with a number that is exact, rounded."""
        return Ball(factor * self.value, abs(factor) * self.error).rounded()
