"""Recipe: a kernel as a plain value that the fused core, files and export can read.

    k(x, z) = scale · ending(inner(x, z)) + constant

after the data were multiplied by ``factor``, or their rows scaled to length 1. Every way to compute a recipe must agree
with the plain one in tests/reference/recipes.py. Composite kernels have a recipe where one gives exactly their values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from mercer.samples.arrays import Floats, row_blocks

Inner = Literal["dot", "sqdist", "l1"]
Ending = Literal["identity", "gaussian", "polynomial", "sigmoid", "laplacian"]


@dataclass(frozen=True, eq=False)
class Recipe:
    """What to compute from two rows, and what to make of it.

    Attributes
    ----------
    inner : {"dot", "sqdist", "l1"}
        t = ⟨x, z⟩, ‖x − z‖² or ‖x − z‖₁.
    ending : {"identity", "gaussian", "laplacian", "polynomial", "sigmoid"}
        t itself, exp(−γt) (of either name), (γt + coef0)^degree or tanh(γt + coef0).
    numbers : tuple of float
        (), (gamma,), (gamma, coef0, degree) or (gamma, coef0), as the ending needs.
    scale : float
        A factor > 0 on the value.
    factor : array or None
        A matrix with one row per feature that the data are multiplied by first.
    normalise : bool
        Whether rows are scaled to length 1 first; zero rows stay zero.
    constant : float
        A number ≥ 0 added to the value.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> recipe = (2 * Gaussian(gamma=0.5)).recipe()
    >>> recipe.inner, recipe.numbers, recipe.scale
    ('sqdist', (0.5,), 2.0)
    """

    inner: Inner
    ending: Ending
    numbers: tuple[float, ...] = ()
    scale: float = 1.0
    factor: Floats | None = None
    normalise: bool = False
    constant: float = 0.0

    @property
    def linear(self) -> bool:
        """Whether k(x, z) = scale · ⟨x, z⟩, so that a machine has a weight vector with one entry per feature."""
        plain = (self.inner, self.ending, self.normalise, self.constant) == ("dot", "identity", False, 0.0)
        return plain and self.factor is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Recipe) or (self.scale, self.constant) != (other.scale, other.constant):
            return False
        return self.same_up_to_scale(other)

    def __hash__(self) -> int:
        return hash((self.inner, self.ending, self.numbers, self.scale, self.normalise, self.constant))

    def same_up_to_scale(self, other: Recipe) -> bool:
        """Whether the two differ only in the factor on the value and in the constant."""
        return self.same_inner(other) and (self.ending, self.numbers) == (other.ending, other.numbers)

    def same_inner(self, other: Recipe) -> bool:
        """Whether the two start from the same number t."""
        if (self.inner, self.normalise) != (other.inner, other.normalise):
            return False
        if self.factor is None or other.factor is None:
            return self.factor is other.factor
        return np.array_equal(self.factor, other.factor)


T = TypeVar("T")


class Arithmetic(Protocol[T]):
    """Numbers, or what stands for them: arrays, C expressions, names of nodes of a graph."""

    def times(self, t: T, factor: float) -> T:
        """t · factor."""

    def plus(self, t: T, number: float) -> T:
        """t + number."""

    def exp(self, t: T) -> T:
        """e^t."""

    def tanh(self, t: T) -> T:
        """tanh(t)."""

    def power(self, t: T, degree: float) -> T:
        """t^degree."""


def ended(ending: Ending, numbers: tuple[float, ...], t: T, arithmetic: Arithmetic[T]) -> T:
    """The ending of a recipe, of its inner number t; scale and constant are not in it.

    This is the table for all who compute or write down a recipe in Python: NumPy, C and ONNX files, twice the
    precision. Each says what five operations are in its arithmetic. Kernels themselves are computed in place, below.
    """
    if ending == "identity":
        return t
    gamma = numbers[0]
    if ending in ("gaussian", "laplacian"):
        return arithmetic.exp(arithmetic.times(t, -gamma))
    base = arithmetic.plus(arithmetic.times(t, gamma), numbers[1])
    return arithmetic.tanh(base) if ending == "sigmoid" else arithmetic.power(base, numbers[2])


class ArrayArithmetic:
    """NumPy's, in the type of the array: numbers are rounded to it first."""

    def times(self, t: Any, factor: float) -> Any:
        return t * t.dtype.type(factor)

    def plus(self, t: Any, number: float) -> Any:
        return t + t.dtype.type(number)

    def exp(self, t: Any) -> Any:
        return np.exp(t)

    def tanh(self, t: Any) -> Any:
        return np.tanh(t)

    def power(self, t: Any, degree: float) -> Any:
        return t ** (int(degree) if degree == int(degree) else degree)


def exp_of_minus(gamma: float, t: Floats) -> Floats:
    """exp(−γt), which is 0 if γt overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        for some in row_blocks(len(t), t.nbytes // max(1, len(t))):  # between two of which Ctrl-C is heard
            part = t[some]
            part *= -gamma
            np.exp(part, out=part)
    return t


def affine(gamma: float, coef0: float, t: Floats) -> Floats:
    """γt + coef0."""
    with np.errstate(over="ignore", invalid="ignore"):
        t *= gamma
        t += coef0
    return t


def integer_power(t: Floats, n: int) -> Floats:
    """t^n for n ≥ 0 by repeated squaring, several times faster than a general power."""
    if n == 0:
        return np.ones_like(t)
    with np.errstate(over="ignore", invalid="ignore"):
        while n % 2 == 0:
            t *= t
            n //= 2
        result = t
        if n > 1:
            t = 1.0 * t  # a copy
        while n > 1:
            n //= 2
            t *= t
            if n % 2:
                result *= t
    return result


_EXPONENTIAL = ("gaussian", "laplacian")


def scaled(recipe: Recipe | None, factor: float) -> Recipe | None:
    """a·k."""
    if recipe is None:
        return None
    return _with_scale(recipe, recipe.scale * factor, recipe.constant * factor)


def shifted(recipe: Recipe | None, constant: float) -> Recipe | None:
    """k + c: part of the ending if k is affine in ⟨x, z⟩, so that powers of it have a recipe too; else beside it."""
    if recipe is None or constant == 0:
        return recipe
    polynomial = _as_polynomial(recipe)
    if polynomial is None or polynomial.numbers[2] != 1:
        return _with_scale(recipe, recipe.scale, recipe.constant + constant)
    gamma, coef0, _ = polynomial.numbers
    return replace(polynomial, numbers=(recipe.scale * gamma, recipe.scale * coef0 + constant, 1.0), scale=1.0)


def added(left: Recipe | None, right: Recipe | None) -> Recipe | None:
    """k1 + k2, if they differ by a factor only."""
    if left is None or right is None or not left.same_up_to_scale(right):
        return None
    return _with_scale(left, left.scale + right.scale, left.constant + right.constant)


def multiplied(left: Recipe | None, right: Recipe | None) -> Recipe | None:
    """k1·k2: exponents add up, and so do the degrees of powers of the same base."""
    if left is None or right is None or not left.same_inner(right) or left.constant or right.constant:
        return None
    scale = left.scale * right.scale
    if left.ending == right.ending and left.ending in _EXPONENTIAL:
        return _with_numbers(left, (left.numbers[0] + right.numbers[0],), scale)
    left, right = _as_polynomial(left), _as_polynomial(right)
    if left is None or right is None or left.numbers[:2] != right.numbers[:2]:
        return None
    return _with_numbers(left, (*left.numbers[:2], left.numbers[2] + right.numbers[2]), scale)


def raised(recipe: Recipe | None, exponent: int) -> Recipe | None:
    """k^n."""
    if recipe is None or exponent == 1:
        return recipe
    if recipe.constant:
        return None
    try:
        scale = recipe.scale**exponent
    except OverflowError:
        return None
    if recipe.ending in _EXPONENTIAL:
        return _with_numbers(recipe, (recipe.numbers[0] * exponent,), scale)
    polynomial = _as_polynomial(recipe)
    if polynomial is None:
        return None
    return _with_numbers(polynomial, (*polynomial.numbers[:2], polynomial.numbers[2] * exponent), scale)


def unit_diagonal(recipe: Recipe | None) -> Recipe | None:
    """k(x, z)/√(k(x, x) k(z, z)), if k(x, x) is a constant."""
    if recipe is None or recipe.ending not in _EXPONENTIAL:
        return None
    at_zero = recipe.scale + recipe.constant
    return _with_scale(recipe, recipe.scale / at_zero, recipe.constant / at_zero)


def _as_polynomial(recipe: Recipe) -> Recipe | None:
    if recipe.ending == "polynomial":
        return recipe
    return replace(recipe, ending="polynomial", numbers=(1.0, 0.0, 1.0)) if recipe.ending == "identity" else None


def _with_scale(recipe: Recipe, scale: float, constant: float) -> Recipe | None:
    return _with_numbers(replace(recipe, constant=constant), recipe.numbers, scale) if math.isfinite(constant) else None


def _with_numbers(recipe: Recipe, numbers: tuple[float, ...], scale: float) -> Recipe | None:
    """None if a number is outside the range of float64: the composite kernel then reports the overflow."""
    finite = all(math.isfinite(number) for number in numbers) and math.isfinite(scale) and scale > 0
    return replace(recipe, numbers=numbers, scale=scale) if finite else None
