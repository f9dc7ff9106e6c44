"""K of all samples, stored once for many problems, with a bound on what each value is off by.

Kernels that differ only in their ending start from the same numbers t: inner products or squared distances. These are
computed once, in float64, and kept in float32. With v = 2⁻²⁴ and u_ij = √(k_ii k_jj) ≥ |k_ij|:

    k = s·exp(−γt) + c     |δk| ≤ s·exp(−γt)(2vγt + γ|δt| + 12v) + v·c ≤ 13v·u_ij + γ|δt|·u_ij
    k = s·(γt + a)^p + c   |δk| ≤ (p + 2)v·u_ij,  where a ≥ 0 (Cauchy and Schwarz bound (γ‖x‖‖z‖ + a)^p by u_ij)

|δt| is what float64 leaves of a squared distance that was computed from norms, and must be negligible. 12v counts the
exponential in float32: NumPy's errs by at most 4 units in the last place, each at most 2v, and its result is rounded
and multiplied by s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, row_blocks
from mercer.gram.gram import Gram
from mercer.gram.rounding import DOUBLE, SINGLE
from mercer.kernels import Recipe

# Rows of a square block of inner products that is computed at a time: 2 MB.
_BLOCK_ROWS = 512
# The most that float64 may leave of an exponent for a shared squared distance to count as exact.
_LARGEST_EXPONENT_ERROR = SINGLE / 4
# Larger values could overflow in float32 together with their coefficients.
_LARGEST_VALUE = 1e30


@dataclass(frozen=True, eq=False)
class StoredGram:
    """K in float32 or float64, with contiguous rows, and the Gram that knows its values better."""

    values: Any
    gram: Gram
    unit: float  # |δk_ij| ≤ unit · size_i · size_j, beside the errors of values that the Gram computed
    sizes: Floats
    level: Any = None  # the precision in which the Gram computed the values; None where they were made from others

    @classmethod
    def plain(cls, gram: Gram) -> StoredGram:
        """K as the Gram computes it fastest."""
        level = gram.precisions[0]
        return cls(gram.full(level), gram, 0.0, np.sqrt(np.abs(gram.diagonal)), level)

    @classmethod
    def of(cls, gram: Gram, shared: SharedNumbers | None = None) -> StoredGram:
        """K of a Gram in float64, rounded to float32, or from the numbers that it shares with others if it can."""
        made = None if shared is None else shared.stored(gram)
        if made is not None:
            return made
        everything, values = np.arange(gram.n), np.empty((gram.n, gram.n), np.float32)
        largest = 0.0
        with np.errstate(over="ignore"):
            for own, other, block in _blocks(gram):
                largest = max(largest, float(np.abs(block).max(initial=0.0)))
                values[other, own] = block
                values[own, other] = values[other, own].T
        values[everything, everything] = gram.diagonal
        if not largest < _LARGEST_VALUE:
            raise FloatingPointError(f"float32 does not hold the values of {gram.kernel!r}; scale the features")
        sizes = np.sqrt(np.abs(gram.diagonal))
        if gram.positive_definite != "yes":
            sizes = np.full(gram.n, np.sqrt(max(largest, float(sizes.max(initial=0.0)) ** 2)))
        return cls(values, gram, 1.01 * SINGLE, sizes, np.float64)

    @property
    def n(self) -> int:
        return len(self.sizes)

    @cached_property
    def doubled(self) -> Any:
        """K beside itself: a column for each of the two variables of a sample."""
        return np.concatenate([self.values, self.values], axis=1)

    def errors(self, coefficients: Floats) -> Floats:
        """How far each row's product with these coefficients can be from the true one, if it is summed in float64."""
        used = np.flatnonzero(coefficients)
        mass = float(np.abs(coefficients[used]) @ self.sizes[used])
        found = (self.unit + (len(used) + 4) * DOUBLE) * 1.01 * mass * self.sizes
        return found if self.level is None else found + self.gram.errors(coefficients, level=self.level)


class SharedNumbers:
    """Inner products or squared distances of all samples, in float32; made by `of`."""

    def __init__(self, numbers: Any, recipe: Recipe, error: float) -> None:
        self._numbers, self._recipe, self._error = numbers, recipe, error

    @classmethod
    def of(cls, linear: Gram, recipe: Recipe) -> SharedNumbers | None:
        """From the Gram of the samples under a linear kernel; None where the recipe does not start from these."""
        if not shares_numbers(recipe) or not linear.fused:
            return None
        n, squares = linear.n, linear.diagonal
        numbers = np.empty((n, n), np.float32)
        for own, other, block in _blocks(linear):
            if recipe.inner == "sqdist":
                np.multiply(block, -2.0, out=block)
                block += squares[other, None]
                block += squares[own]
                np.maximum(block, 0.0, out=block)
            numbers[other, own] = block
            numbers[own, other] = numbers[other, own].T
        if recipe.inner == "sqdist":
            numbers[np.arange(n), np.arange(n)] = 0.0
        elif not np.isfinite(numbers).all():
            return None
        terms = linear.X.shape[1]
        return cls(numbers, recipe, 4 * (terms + 10) * DOUBLE * float(squares.max(initial=0.0)))

    def stored(self, gram: Gram) -> StoredGram | None:
        """K of a Gram of the same samples, if its recipe starts from the same numbers."""
        recipe = gram.kernel.recipe()
        if recipe is None or not shares_numbers(recipe) or not recipe.same_inner(self._recipe):
            return None
        unit = self._unit(recipe)
        if unit is None:
            return None
        values = np.empty_like(self._numbers)
        for some in row_blocks(gram.n, 16 * gram.n):
            _end(self._numbers[some], recipe, values[some])
        if not np.isfinite(values).all():
            return None
        everything = np.arange(gram.n)
        values[everything, everything] = gram.diagonal
        return StoredGram(values, gram, unit, np.sqrt(np.abs(gram.diagonal)))

    def _unit(self, recipe: Recipe) -> float | None:
        if recipe.ending == "gaussian":
            left = recipe.numbers[0] * self._error
            return 13 * SINGLE + left if left <= _LARGEST_EXPONENT_ERROR else None
        if recipe.ending == "identity":
            return 3 * SINGLE
        gamma, coef0, degree = recipe.numbers
        return (degree + 2) * SINGLE * 1.1 if coef0 >= 0 and gamma >= 0 else None


def shares_numbers(recipe: Recipe) -> bool:
    """Whether the kernel's values can be made from inner products or squared distances of the samples as they are."""
    plain = recipe.factor is None and not recipe.normalise and recipe.inner != "l1"
    return plain and recipe.ending in ("gaussian", "identity", "polynomial")


def _blocks(gram: Gram) -> Iterator[tuple[slice, slice, Floats]]:
    """K in float64, block by block above the diagonal: its columns, its rows, and the values."""
    n, everything = gram.n, np.arange(gram.n)
    samples, rows = gram.prepared(everything, np.float64, whole=True)
    for left in range(0, n, _BLOCK_ROWS):
        own = slice(left, min(n, left + _BLOCK_ROWS))
        columns = None if samples is None else samples.columns(rows[own])
        for top in range(0, left + 1, _BLOCK_ROWS):
            other = slice(top, min(n, top + _BLOCK_ROWS))
            _core.check_stop()
            if samples is None:
                yield own, other, gram.block(everything[other], everything[own])
            else:
                yield own, other, samples.block(rows[other], columns)


def _end(numbers: Any, recipe: Recipe, out: Any) -> None:
    """The ending of a recipe, in float32 for the exponential and in float64 for powers."""
    if recipe.ending == "gaussian":
        np.multiply(numbers, np.float32(-recipe.numbers[0]), out=out)
        np.exp(out, out=out)
        if recipe.scale != 1.0:
            out *= np.float32(recipe.scale)
        if recipe.constant:
            out += np.float32(recipe.constant)
        return
    values = numbers.astype(np.float64)
    if recipe.ending == "polynomial":
        gamma, coef0, degree = recipe.numbers
        values = (gamma * values + coef0) ** degree
    with np.errstate(over="ignore"):
        out[...] = recipe.scale * values + recipe.constant
