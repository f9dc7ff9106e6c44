"""The table of endings, in two arithmetics, against the formulas themselves."""

import math
from decimal import Decimal

import numpy as np
import pytest

from mercer.kernels.recipe import ArrayArithmetic, apply_ending

CASES = {
    "identity": ((), lambda t: t),
    "gaussian": ((0.7,), lambda t: math.exp(-0.7 * t)),
    "laplacian": ((0.7,), lambda t: math.exp(-0.7 * t)),
    "polynomial": ((0.7, 0.5, 3.0), lambda t: (0.7 * t + 0.5) ** 3),
    "sigmoid": ((0.7, 0.5), lambda t: math.tanh(0.7 * t + 0.5)),
}


class Decimals:
    """Fifty digits, by Python's decimal numbers."""

    def times(self, t, factor):
        return t * Decimal(factor)

    def plus(self, t, number):
        return t + Decimal(number)

    def exp(self, t):
        return t.exp()

    def tanh(self, t):
        return ((2 * t).exp() - 1) / ((2 * t).exp() + 1)

    def power(self, t, degree):
        return t ** int(degree)


@pytest.mark.parametrize("ending", CASES)
def test_every_ending(ending):
    numbers, formula = CASES[ending]
    t = np.array([0.0, 0.25, 1.0, 3.5])
    wanted = [formula(value) for value in t.tolist()]
    np.testing.assert_allclose(apply_ending(ending, numbers, t, ArrayArithmetic()), wanted, rtol=1e-14)
    exact = [float(apply_ending(ending, numbers, Decimal(value), Decimals())) for value in t.tolist()]
    np.testing.assert_allclose(exact, wanted, rtol=1e-14)


@pytest.mark.parametrize("ending", CASES)
def test_an_array_keeps_its_type(ending):
    numbers, _ = CASES[ending]
    t = np.array([0.25, 1.0], dtype=np.float32)
    assert apply_ending(ending, numbers, t, ArrayArithmetic()).dtype == np.float32
