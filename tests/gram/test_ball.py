"""Balls hold the true numbers, which fractions know."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.gram.ball import Ball


def exact(values):
    return [Fraction(value) for value in np.ravel(values).tolist()]


def holds(ball, truths):
    pairs = zip(exact(ball.value), exact(ball.error), truths, strict=True)
    return all(abs(value - true) <= error for value, error, true in pairs)


@pytest.mark.parametrize("name", ["plus", "minus"])
def test_sums_hold_every_number_of_both_balls(name):
    rng = np.random.default_rng(0)
    a, b = (Ball(rng.normal(size=200) * 10.0 ** rng.uniform(-9, 9, 200), rng.uniform(0, 1e-9, 200)) for _ in "ab")
    result, sign = getattr(a, name)(b), 1 if name == "plus" else -1
    for i, j in ((-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0)):
        left = [x + i * e for x, e in zip(exact(a.value), exact(a.error), strict=True)]
        right = [x + j * e for x, e in zip(exact(b.value), exact(b.error), strict=True)]
        assert holds(result, [x + sign * z for x, z in zip(left, right, strict=True)])
    assert (result.error <= a.error + b.error + 2.0**-52 * np.abs(result.value)).all()


def test_products_and_roundings():
    rng = np.random.default_rng(1)
    a, factor = Ball(rng.normal(size=(50, 4)), rng.uniform(0, 1e-12, (50, 4))), -1 / 3
    for sign in (-1, 1):
        true = [x + sign * e for x, e in zip(exact(a.value), exact(a.error), strict=True)]
        assert holds(a.times(factor), [Fraction(factor) * x for x in true])
        assert holds(a.rounded(3), true)
    assert (a.low <= a.value).all()
    assert (a.value <= a.high).all()
    np.testing.assert_array_equal(a.size, np.maximum(-a.low, a.high))
    np.testing.assert_array_equal(a.take(np.array([3, 1])).error, a.error[[3, 1]])
