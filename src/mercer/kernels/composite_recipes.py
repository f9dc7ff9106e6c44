"""Recipes of composite kernels, where a recipe gives exactly the same values; None elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace

from mercer.kernels.recipe import Recipe

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
