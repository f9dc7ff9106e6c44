"""Recipes: kernels as plain values that the compiled core, model files and exports can read.

    k(x, z) = scale · ending(inner(x, z)) + constant

The data are first multiplied by ``factor``, or their rows are scaled to length 1. Every implementation of recipes must
agree with the simple one in tests/reference/recipes.py. A composite kernel has a recipe only if the recipe gives
exactly its values.
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
    """Formula of a kernel: an inner number of two rows, and a function of that number.

    Attributes
    ----------
    inner : {"dot", "sqdist", "l1"}
        Inner number t: ⟨x, z⟩, ‖x − z‖² or ‖x − z‖₁.
    ending : {"identity", "gaussian", "laplacian", "polynomial", "sigmoid"}
        Function of t: t itself, exp(−γt) (for both names), (γt + coef0)^degree or tanh(γt + coef0).
    numbers : tuple of float
        Parameters of the ending: (), (gamma,), (gamma, coef0, degree) or (gamma, coef0).
    scale : float
        Factor > 0 on the value.
    factor : array or None
        Matrix with one row per feature by which the data are multiplied first.
    normalise : bool
        Whether rows are scaled to length 1 first; zero rows stay zero.
    constant : float
        Constant ≥ 0 added to the value.

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
        """True if k(x, z) = scale · ⟨x, z⟩, so that a machine has a weight vector with one entry per feature."""
        is_dot_product = (self.inner, self.ending, self.normalise, self.constant) == ("dot", "identity", False, 0.0)
        return is_dot_product and self.factor is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Recipe) or (self.scale, self.constant) != (other.scale, other.constant):
            return False
        return self.same_up_to_scale(other)

    def __hash__(self) -> int:
        return hash((self.inner, self.ending, self.numbers, self.scale, self.normalise, self.constant))

    def same_up_to_scale(self, other: Recipe) -> bool:
        """Return whether the two recipes differ only in the factor on the value and in the constant."""
        return self.same_inner(other) and (self.ending, self.numbers) == (other.ending, other.numbers)

    def same_inner(self, other: Recipe) -> bool:
        """Return whether the two recipes have the same inner number t."""
        if (self.inner, self.normalise) != (other.inner, other.normalise):
            return False
        if self.factor is None or other.factor is None:
            return self.factor is other.factor
        return np.array_equal(self.factor, other.factor)


T = TypeVar("T")


class Arithmetic(Protocol[T]):
    """Arithmetic on a representation of numbers: arrays, C expressions, or names of nodes of a graph."""

    def times(self, t: T, factor: float) -> T:
        """Return t · factor."""

    def plus(self, t: T, number: float) -> T:
        """Return t + number."""

    def exp(self, t: T) -> T:
        """Return e^t."""

    def tanh(self, t: T) -> T:
        """Return tanh(t)."""

    def power(self, t: T, degree: float) -> T:
        """Return t^degree."""


def apply_ending(ending: Ending, numbers: tuple[float, ...], t: T, arithmetic: Arithmetic[T]) -> T:
    """Apply the ending of a recipe to its inner number t, without scale and constant.

    All code that evaluates or exports recipes in Python (NumPy, C and ONNX files, double-double numbers) uses this
    function with its own five operations. The kernels themselves use the functions below, which work in place.
    """
    if ending == "identity":
        return t
    gamma = numbers[0]
    if ending in ("gaussian", "laplacian"):
        return arithmetic.exp(arithmetic.times(t, -gamma))
    base = arithmetic.plus(arithmetic.times(t, gamma), numbers[1])
    return arithmetic.tanh(base) if ending == "sigmoid" else arithmetic.power(base, numbers[2])


class ArrayArithmetic:
    """Arithmetic of NumPy arrays in their dtype, to which other numbers are rounded first."""

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
    """Compute exp(−γt) in place; it is 0 if γt overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in row_blocks(len(t), t.nbytes // max(1, len(t))):  # Ctrl-C takes effect between two blocks
            block = t[rows]
            block *= -gamma
            np.exp(block, out=block)
    return t


def affine(gamma: float, coef0: float, t: Floats) -> Floats:
    """Compute γt + coef0 in place."""
    with np.errstate(over="ignore", invalid="ignore"):
        t *= gamma
        t += coef0
    return t


def integer_power(t: Floats, n: int) -> Floats:
    """Compute t^n for n ≥ 0 by repeated squaring, several times faster than a general power; may overwrite t."""
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


def recipe_of_multiple(recipe: Recipe | None, factor: float) -> Recipe | None:
    """Return the recipe of a·k."""
    if recipe is None:
        return None
    return _with_scale(recipe, recipe.scale * factor, recipe.constant * factor)


def recipe_of_shifted(recipe: Recipe | None, constant: float) -> Recipe | None:
    """Return the recipe of k + c: c is part of the ending if k is affine in ⟨x, z⟩, so that powers have a recipe."""
    if recipe is None or constant == 0:
        return recipe
    polynomial = _as_polynomial(recipe)
    if polynomial is None or polynomial.numbers[2] != 1:
        return _with_scale(recipe, recipe.scale, recipe.constant + constant)
    gamma, coef0, _ = polynomial.numbers
    return replace(polynomial, numbers=(recipe.scale * gamma, recipe.scale * coef0 + constant, 1.0), scale=1.0)


def recipe_of_sum(left: Recipe | None, right: Recipe | None) -> Recipe | None:
    """Return the recipe of k1 + k2 if the two differ only by a factor and a constant; otherwise None."""
    if left is None or right is None or not left.same_up_to_scale(right):
        return None
    return _with_scale(left, left.scale + right.scale, left.constant + right.constant)


def recipe_of_product(left: Recipe | None, right: Recipe | None) -> Recipe | None:
    """Return the recipe of k1·k2 for two exponentials, or for powers of the same base; otherwise None."""
    if left is None or right is None or not left.same_inner(right) or left.constant or right.constant:
        return None
    scale = left.scale * right.scale
    if left.ending == right.ending and left.ending in _EXPONENTIAL:
        return _with_numbers(left, (left.numbers[0] + right.numbers[0],), scale)
    left, right = _as_polynomial(left), _as_polynomial(right)
    if left is None or right is None or left.numbers[:2] != right.numbers[:2]:
        return None
    return _with_numbers(left, (*left.numbers[:2], left.numbers[2] + right.numbers[2]), scale)


def recipe_of_power(recipe: Recipe | None, exponent: int) -> Recipe | None:
    """Return the recipe of k^n; None if k has no recipe or no recipe represents its power."""
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


def recipe_of_normalised(recipe: Recipe | None) -> Recipe | None:
    """Return the recipe of k(x, z)/√(k(x, x) k(z, z)) if k(x, x) is constant; otherwise None."""
    if recipe is None or recipe.ending not in _EXPONENTIAL:
        return None
    at_zero = recipe.scale + recipe.constant
    return _with_scale(recipe, recipe.scale / at_zero, recipe.constant / at_zero)


def _as_polynomial(recipe: Recipe) -> Recipe | None:
    """Return the recipe with a polynomial ending; None if its ending is not a polynomial."""
    if recipe.ending == "polynomial":
        return recipe
    return replace(recipe, ending="polynomial", numbers=(1.0, 0.0, 1.0)) if recipe.ending == "identity" else None


def _with_scale(recipe: Recipe, scale: float, constant: float) -> Recipe | None:
    """Return the recipe with another scale and constant; None if one overflows."""
    return _with_numbers(replace(recipe, constant=constant), recipe.numbers, scale) if math.isfinite(constant) else None


def _with_numbers(recipe: Recipe, numbers: tuple[float, ...], scale: float) -> Recipe | None:
    """Return the recipe with other numbers; None if one overflows, which the composite kernel then reports."""
    are_finite = all(math.isfinite(number) for number in numbers) and math.isfinite(scale) and scale > 0
    return replace(recipe, numbers=numbers, scale=scale) if are_finite else None
