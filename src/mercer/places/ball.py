"""Ball arithmetic, computed values with bounds on their errors: the arithmetic of all certificates.

A ball (x, e) holds every number X with |X − x| ≤ e. Each operation returns a ball that holds the result for every
number of its operands, whatever rounding did. With u = 2⁻⁵³ and γ_k = ku/(1 − ku) (Higham, "Accuracy and stability of
numerical algorithms", chapters 2 and 3):

1. A rounded result z of +, −, ·, / or √ is within u|z| of the exact one. Sums and differences have no other error, as
   those below the normal numbers are exact. A product or a quotient may lose LEAST/2 more there.
2. Errors are computed in float64 too, from numbers ≥ 0 by sums, products and quotients. Each rounding makes them
   smaller by the factor 1 − u at most, so that a factor of 1 + 8u (_UP) covers seven of them. A sum of n terms has
   n − 1 roundings, and gets the factor 1 + γ_{n+8}.
3. Operands that are not balls are exact.
4. An operation that overflows has an infinite value, and with it an infinite error or NaN. NaN propagates through all
   further operations. `low`, `high` and `size` treat both as infinity: nothing is known. The caller silences NumPy's
   warnings with `np.errstate`.

NumPy's functions refuse balls, so that no value is used without its error unless the code says `.value`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.samples.arrays import Indices, gamma, sums_by

# Smallest number above 0: twice the most that a product or a quotient can lose below the normal numbers.
LEAST = float(np.finfo(np.float64).smallest_subnormal)
# Array size from which on BLAS starts threads for an inner product.
_THREADED_SIZE = 10_000
_U = 2.0**-53
_UP = 1 + 8 * _U


@dataclass(eq=False)
class Ball:
    """A computed number, or an array of them, with a bound on each error: the true numbers lie in [low, high]."""

    value: Any
    error: Any

    __array_ufunc__ = None  # NumPy's operators defer to the methods below, and its functions raise a TypeError

    @staticmethod
    def within(bound: Any) -> Ball:
        """Build balls around 0 for numbers of which only an upper bound on the absolute value is known."""
        return Ball(0.0 * bound, bound)

    @staticmethod
    def between(low: Any, high: Any) -> Ball:
        """Build balls for numbers in [low, high].

        The middle m is any float; |X − m| ≤ max(high − m, m − low), and each difference is rounded once.
        """
        middle = 0.5 * low + 0.5 * high
        if isinstance(low, float) and isinstance(high, float):
            return Ball(middle, max(high - middle, middle - low) * _UP if middle == middle else math.nan)
        return Ball(middle, np.maximum(high - middle, middle - low) * _UP)

    def __iter__(self) -> Iterator[Any]:
        """Yield the value, then the error."""
        return iter((self.value, self.error))

    def take(self, rows: Any) -> Ball:
        """Return the balls at these indices."""
        return Ball(self.value[rows], self.error[rows])

    def put(self, rows: Any, other: Ball) -> None:
        """Replace the balls at these indices."""
        self.value[rows], self.error[rows] = other

    # --- bounds on the true numbers -----------------------------------------------------------------------------------

    @property
    def low(self) -> Any:
        """Lower bound on the true numbers, −∞ where nothing is known."""
        return -_sum_rounded_up(-self.value, self.error)

    @property
    def high(self) -> Any:
        """Upper bound on the true numbers, ∞ where nothing is known."""
        return _sum_rounded_up(self.value, self.error)

    @property
    def size(self) -> Any:
        """Upper bound on the true numbers' absolute values, ∞ where nothing is known."""
        return _sum_rounded_up(abs(self.value), self.error)

    def finite(self) -> Ball:
        """Return the balls with infinite errors where a value, or its error, has overflowed or is NaN."""
        # A sum of products is not finite if one of the numbers is not.
        if np.size(self.value) < _THREADED_SIZE and math.isfinite(np.vdot(self.value, self.error)):
            return self
        is_finite = np.isfinite(self.value) & np.isfinite(self.error)
        return Ball(self.value, np.where(is_finite, self.error, np.inf))

    def rounded(self, roundings: int = 1) -> Ball:
        """Return balls that hold the numbers before k = `roundings` roundings: X = x(1 + θ), |θ| ≤ γ_k (Higham, 3.1).

        γ_k|x| may itself underflow, where it is below LEAST.
        """
        size = abs(self.value)
        return Ball(self.value, (self.error + gamma(roundings) * size) * _UP + LEAST * (size > 0))

    # --- operations on each number ------------------------------------------------------------------------------------

    def __neg__(self) -> Ball:
        return Ball(-self.value, self.error)

    def __abs__(self) -> Ball:
        """Return |X|: ||X| − |x|| ≤ |X − x|."""
        return Ball(abs(self.value), self.error)

    def __add__(self, other: Any) -> Ball:
        """Return X + Y: |X + Y − fl(x + y)| ≤ e_x + e_y + u|fl(x + y)|."""
        if isinstance(other, Ball):
            value = self.value + other.value
            return Ball(value, (self.error + other.error + _U * abs(value)) * _UP)
        value = self.value + other
        return Ball(value, (self.error + _U * abs(value)) * _UP)

    def __radd__(self, other: Any) -> Ball:
        return self.__add__(other)

    def __sub__(self, other: Any) -> Ball:
        """Return X − Y, with the bound of X + Y."""
        if isinstance(other, Ball):
            value = self.value - other.value
            return Ball(value, (self.error + other.error + _U * abs(value)) * _UP)
        value = self.value - other
        return Ball(value, (self.error + _U * abs(value)) * _UP)

    def __rsub__(self, other: Any) -> Ball:
        value = other - self.value
        return Ball(value, (self.error + _U * abs(value)) * _UP)

    def __mul__(self, other: Any) -> Ball:
        """Return XY: |XY − fl(xy)| ≤ |x|e_y + (|y| + e_y)e_x + u|fl(xy)|, plus LEAST for each of four products.

        Zero times a number with a finite error is exactly zero.
        """
        x, e = self.value, self.error
        if isinstance(other, Ball):
            value, size = x * other.value, abs(other.value) + other.error
            error = abs(x) * other.error + size * e + _U * abs(value)
        else:
            value, size = x * other, abs(other)
            error = size * e + _U * abs(value)
        return Ball(value, error * _UP + 4 * LEAST * ((abs(x) + e > 0) & (size > 0)))

    def __rmul__(self, other: Any) -> Ball:
        return self.__mul__(other)

    def __truediv__(self, other: Any) -> Ball:
        """Return X/Y: |X/Y − fl(x/y)| ≤ (e_x + |x/y|e_y)/(|y| − e_y) + u|fl(x/y)|, plus LEAST for each quotient.

        X/Y − x/y = ((X − x) − (x/y)(Y − y))/Y. The computed |x/y| may have lost LEAST/2, and so may its product
        with e_y. Where |y| ≤ e_y, Y may be 0 and nothing is known.
        """
        x, e = self.value, self.error
        underflow = 2 * LEAST * (abs(x) + e > 0)
        if isinstance(other, float) and 0 < abs(other) < math.inf:
            value = x / other
            return Ball(value, (e / abs(other) + _U * abs(value)) * _UP + underflow)
        y, e_y = (other.value, other.error) if isinstance(other, Ball) else (other, None)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            value, smallest = np.divide(x, y), abs(y)
            if e_y is not None:
                tiny_errors = LEAST * (abs(x) > 0)
                e = e + (abs(value) + tiny_errors) * e_y + tiny_errors * (e_y > 0)
                smallest = smallest - e_y
            error = (np.divide(e, smallest) + _U * abs(value)) * (1 + 16 * _U) + underflow  # nine roundings
            # Nothing is known where the denominator may be 0 or infinite: the error becomes ∞ or NaN.
            return Ball(value, np.divide(np.abs(error), (smallest > 0) & (smallest < np.inf)))

    def __rtruediv__(self, other: Any) -> Ball:
        return Ball(other, 0.0 * other) / self

    def square(self) -> Ball:
        """Return X²: |X² − fl(x²)| ≤ (2|x| + e)e + u fl(x²), plus LEAST for each product."""
        size, e = abs(self.value), self.error
        value = size * size
        return Ball(value, ((2 * size + e) * e + _U * value) * _UP + 4 * LEAST * (size + e > 0))

    def sqrt(self) -> Ball:
        """Return √X for X ≥ 0; if a ball extends below 0, only its part from 0 on counts.

        With z = √x, |√X − z| = |X − x|/(√X + z) ≤ e/(√(x − e) + z), and never above √e. If x < 0, X is within e of 0.
        The computed denominator is larger by the factor 1 + 2.5u at most.
        """
        if isinstance(self.value, float) and isinstance(self.error, float) and 0 <= self.value < math.inf:
            x, e = float(self.value), float(self.error)
            z = math.sqrt(x)
            root = math.sqrt(e) if e >= 0 else math.nan
            return Ball(z, (min(root, e / max(z + math.sqrt(max(x - e, 0.0)), LEAST)) + _U * z) * _UP)
        x, e = np.maximum(self.value, 0.0), self.error
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.sqrt(x)
            denominator = np.maximum(z + np.sqrt(np.maximum(x - e, 0.0)), LEAST)  # no root but 0 is as small as LEAST
            error = np.minimum(np.sqrt(e), e / denominator)
            return Ball(z, (error + _U * z + 0.0 * self.value) * _UP)  # NaN where x is −∞

    def positive(self) -> Ball:
        """Return max(X, 0), which is within e of max(x, 0) and at most x + e."""
        if isinstance(self.value, float) and isinstance(self.error, float) and -math.inf < self.value < math.inf:
            return Ball(max(self.value, 0.0), min(self.error, max(self.high, 0.0)))
        error = self.error + 0.0 * self.value  # NaN where x is −∞
        return Ball(np.maximum(self.value, 0.0), np.minimum(error, np.maximum(self.high, 0.0)))

    def max(self, axis: int) -> Ball:
        """Return the largest number along an axis: |max X − max x| ≤ max e."""
        return Ball(np.maximum.reduce(self.value, axis), np.maximum.reduce(self.error, axis))

    # --- sums ---------------------------------------------------------------------------------------------------------

    def sum(self, axis: int | None = None) -> Ball:
        """Return ΣX, summed in any order: |ΣX − fl(Σx)| ≤ Σe + γ_{n−1}Σ|x| (Higham, equation 4.4).

        γ_n fl(Σ|x|) may lose LEAST/2 if it underflows. If Σ|x| is above 2⁻¹⁰²¹, (γ_n − γ_{n−1})Σ|x| is larger than
        this loss, and otherwise all sums are exact.
        """
        value, size = np.add.reduce(self.value, axis), np.add.reduce(abs(self.value), axis)
        n = self.value.size if axis is None else self.value.shape[axis]
        error = (np.add.reduce(self.error, axis) + gamma(n) * size) * (1 + gamma(n + 8))
        return Ball(float(value), float(error)) if axis is None else Ball(value, error)

    def inner(self, other: Any, axis: int | None = None) -> Ball:
        """Return ΣXY, summed in any order: |ΣXY − fl(Σxy)| ≤ Σ[|x|e_y + (|y| + e_y)e_x] + γ_nΣ|xy| (Higham, 3.5).

        Each product may lose LEAST/2, and so may each of the two products in its error. Sums of zeros are exact.
        """
        x, e = self.value, self.error
        y, e_y = (other.value, other.error) if isinstance(other, Ball) else (other, None)
        products, size = x * y, abs(y)
        value = np.add.reduce(products, axis)
        n = products.size if axis is None else products.shape[axis]
        terms = size * e if e_y is None else abs(x) * e_y + (size + e_y) * e
        sizes = np.add.reduce(abs(products), axis)
        error = (np.add.reduce(terms, axis) + gamma(n + 1) * sizes) * (1 + gamma(n + 10))
        nonzero = sizes > 0 if axis is None else np.logical_and.reduce(sizes > 0, None)
        if nonzero or ((np.any(y) or np.any(e_y)) and (np.any(x) or np.any(e))):
            error = error + 4 * n * LEAST
        return Ball(float(value), float(error)) if axis is None else Ball(value, error)

    def sum_by(self, index: Indices, n: int) -> Ball:
        """Return ΣX over equal indices, for each index from 0 to n − 1, bounded as in `sum` by the longest sum."""
        n_terms = int(np.bincount(index, minlength=1).max())
        value, size, error = (sums_by(index, part, n) for part in (self.value, abs(self.value), self.error))
        return Ball(value, (error + gamma(n_terms) * size) * (1 + gamma(n_terms + 8)))

    def norm(self) -> Ball:
        """Return ‖X‖, the root of the sum of all squares: |‖X‖ − ‖x‖| ≤ ‖e‖.

        Both sums of n squares have the relative error γ_n, as squares are ≥ 0, and each square may lose LEAST/2. If a
        sum is off by s, its root is off by √s at most.
        """
        value = float(np.add.reduce(self.value * self.value, None))
        error = float(np.add.reduce(self.error * self.error, None))
        n = self.value.size
        underflow = math.sqrt(n * LEAST) if value + error > 0 or np.any(self.value) or np.any(self.error) else 0.0
        value, error, share = math.sqrt(value), math.sqrt(error), gamma(n + 8)
        return Ball(value, (error + share * value) * (1 + share) + 2 * underflow)

    def transformed(self, A: Any) -> Ball:
        """Return AX for an exact matrix or row A, sparse or dense: |AX − fl(Ax)| ≤ |A|e + γ_k|A||x| for k terms."""
        n_terms = int(np.bincount(A.nonzero()[0], minlength=1).max()) if hasattr(A, "tocsr") else A.shape[-1]
        size = abs(A)
        error = np.asarray(size @ self.error) + gamma(n_terms + 1) * np.asarray(size @ abs(self.value))
        return Ball(np.asarray(A @ self.value), error * (1 + gamma(n_terms + 10)) + 4 * n_terms * LEAST)


def exact(values: Any) -> Ball:
    """Return balls of radius 0 for numbers that are exact."""
    return Ball(values, 0.0 * values)


def sum_rows(values: Any) -> Ball:
    """Return Σ_k x_ik of each row, summed in twice the precision of float64 and rounded once.

    The rounding error of an addition is itself a float (Knuth's TwoSum), so that only the sum of these errors is
    inexact, by γ_m of their sizes. Terms that cancel exactly have the sum 0, without an error.
    """
    s, errors, size = 0.0 * values[:, 0], 0.0 * values[:, 0], 0.0 * values[:, 0]
    for x in values.T:
        new = s + x
        rounded_x = new - s
        error = (s - (new - rounded_x)) + (x - rounded_x)
        s, errors, size = new, errors + error, size + abs(error)
    return exact(s) + Ball(errors, size * gamma(2 * values.shape[1] + 8))


def _sum_rounded_up(value: Any, error: Any) -> Any:
    """Return x + e rounded up, and ∞ for NaN or −∞.

    s = fl(x + e) is within u|s| of x + e, and s + 2u|s| rounds to no less than s + u|s|.
    """
    if isinstance(value, float) and isinstance(error, float):
        s = float(value) + float(error)
        s += 2 * _U * abs(s)
        return s if s > -math.inf else math.inf
    s = value + error
    s = s + 2 * _U * abs(s)
    is_bounded = s > -np.inf
    return s if np.logical_and.reduce(is_bounded, None) else np.where(is_bounded, s, np.inf)


def rounded_up(values: Any, roundings: int, factor: Any = 1.0) -> Any:
    """Return upper bounds on numbers ≥ 0 that were computed from numbers ≥ 0 in `roundings` rounded operations.

    The operations are sums, products, quotients and roots. Each makes the result smaller by the factor 1 − u at most.
    One that underflows loses up to LEAST/2 more, and later operations multiply this loss by 1 or `factor` at most.
    """
    return values * (1 + gamma(roundings + 4)) + roundings * LEAST * (1.0 + factor)
