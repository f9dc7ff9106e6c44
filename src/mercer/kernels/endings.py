"""The last step of a kernel: a function of an inner product or a distance.

`ended` is the table of endings for all who compute or write down a recipe in Python: NumPy, C and ONNX files, twice the
precision. Each of them says what five operations are in its arithmetic. Kernels themselves are computed in place, by
the functions below it.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from mercer.arrays import Floats, row_blocks
from mercer.kernels.recipe import Ending

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
    """The ending of a recipe, of its inner number t; scale and constant are not in it."""
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
            t = t.copy()
        while n > 1:
            n //= 2
            t *= t
            if n % 2:
                result *= t
    return result
