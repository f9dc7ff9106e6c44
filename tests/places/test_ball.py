"""Balls hold the true numbers, which fractions know: any operation, any magnitude, any number of its operands."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.places.ball import LEAST, Ball, exact, rounded_up, sum_rows
from mercer.samples.arrays import gamma

ENDS = (-1, 0, 1)
TINY = float(np.finfo(float).tiny)


def fractions(values):
    return [Fraction(value) for value in np.ravel(values).tolist()]


def points(ball, end):
    """The numbers at an end of the balls, or in the middle."""
    return [x + end * e for x, e in zip(fractions(ball.value), fractions(ball.error), strict=True)]


def holds(ball, truths):
    """Whether the balls hold these numbers, and claim nothing where something has overflowed."""
    with np.errstate(all="ignore"):
        parts = [np.atleast_1d(part).ravel() for part in (ball.value, ball.error, ball.low, ball.high, ball.size)]
    for value, error, low, high, size, true in zip(*(part.tolist() for part in parts), truths, strict=True):
        if math.isfinite(value) and math.isfinite(error):
            assert abs(Fraction(value) - true) <= Fraction(error), (value, error, float(true))
            assert low == -math.inf or Fraction(low) <= true
            assert high == math.inf or true <= Fraction(high)
            assert size == math.inf or abs(true) <= Fraction(size)
        else:
            assert (low, high, size) == (-math.inf, math.inf, math.inf), (value, error)
    return True


def drawn(seed, n=150):
    """Two arrays of balls of all magnitudes: ordinary and extreme numbers, near each other or not, exact or not."""
    rng = np.random.default_rng(seed)
    most = (9, 300, 9, 9)[seed % 4]
    middle = (0, 0, -155, -310)[seed % 4]  # products or the numbers themselves are below the normal ones
    x, y = (rng.choice([-1, 1], n) * 10.0 ** np.clip(middle + rng.uniform(-most, most, n), -323, 308) for _ in "xy")
    near = rng.random(n) < 0.3
    y[near] = -x[near] * (1 + rng.integers(-4, 5, near.sum()) * 2.0**-52)
    x[rng.random(n) < 0.05] = 0.0
    balls = []
    for values in (x, y):
        error = np.abs(values) * 10.0 ** rng.uniform(-18, 1, n)
        error[rng.random(n) < 0.2] = 0.0
        error = np.where(rng.random(n) < 0.1, 10.0 ** np.clip(middle + rng.uniform(-most, most, n), -323, 308), error)
        balls.append(Ball(values, error))
    return balls


OPERATIONS = {
    "sum": (lambda x, y: x + y, lambda x, y: x + y),
    "difference": (lambda x, y: x - y, lambda x, y: x - y),
    "product": (lambda x, y: x * y, lambda x, y: x * y),
    "quotient": (lambda x, y: x / y, lambda x, y: x / y if y else Fraction(0)),
    "sum with a number": (lambda x, y: x + y.value, None),
    "difference from a number": (lambda x, y: x - y.value, None),
    "number minus a ball": (lambda x, y: y.value - x, None),
    "multiple": (lambda x, y: y.value * x, None),
    "part": (lambda x, y: x / y.value, None),
    "number by a ball": (lambda x, y: y.value / x, None),
}
EXACT = {
    "sum with a number": lambda x, y: x + y,
    "difference from a number": lambda x, y: x - y,
    "number minus a ball": lambda x, y: y - x,
    "multiple": lambda x, y: x * y,
    "part": lambda x, y: x / y if y else Fraction(0),
    "number by a ball": lambda x, y: y / x if x else Fraction(0),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_two_numbers(name, seed):
    x, y = drawn(seed)
    operate, truth = OPERATIONS[name]
    with np.errstate(all="ignore"):
        result = operate(x, y)
    for i, j in product(ENDS, ENDS if truth else (0,)):
        pairs = zip(points(x, i), points(y, j), strict=True)
        assert holds(result, [(truth or EXACT[name])(a, b) for a, b in pairs])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("roundings", [1, 16])
def test_operations_on_one_number(seed, roundings):
    x, _ = drawn(seed)
    with np.errstate(all="ignore"):
        square, positive, rounded = x.square(), x.positive(), x.rounded(roundings)
    for end in ENDS:
        truths = points(x, end)
        assert holds(square, [a * a for a in truths])
        assert holds(positive, [max(a, Fraction(0)) for a in truths])
        assert holds(abs(x), list(map(abs, truths)))
        assert holds(-x, [-a for a in truths])
        for share in (-1, 1):  # of a number as it was before so many roundings
            k = roundings * Fraction(2) ** -53
            assert holds(rounded, [a + share * k / (1 - k) * abs(b) for a, b in zip(truths, points(x, 0), strict=True)])


@pytest.mark.parametrize("seed", range(8))
def test_roots(seed):
    x, _ = drawn(seed)
    x = Ball(np.abs(x.value) * np.where(np.arange(len(x.value)) % 5, 1, -1), x.error)
    with np.errstate(all="ignore"):
        root = x.sqrt()
    for end in ENDS:
        for value, error, true in zip(fractions(root.value), fractions(root.error), points(x, end), strict=True):
            if true >= 0:
                assert max(value - error, 0) ** 2 <= true <= (value + error) ** 2


@pytest.mark.parametrize("seed", range(8))
def test_intervals(seed):
    x, y = (ball.value for ball in drawn(seed))
    low, high = np.minimum(x, y), np.maximum(x, y)
    ball = Ball.between(low, high)
    assert holds(ball, fractions(low))
    assert holds(ball, fractions(high))
    assert holds(Ball.within(high - low), [Fraction(0)] * len(low))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [1, 2, 3, 150])
def test_sums(n, seed):
    x, y = drawn(seed)
    x, y = x.take(slice(n)), y.take(slice(n))
    A = np.vstack([y.value, np.where(np.arange(n) % 2, y.value, 0.0)])
    with np.errstate(all="ignore"):
        total, inner, weighted = x.sum(), x.inner(y), x.inner(y.value)
        dense, sparse = x.transformed(A), x.transformed(sp.csr_array(A))
    for i in ENDS:
        assert holds(total, [sum(points(x, i))])
        signs = np.where(y.value < 0, -1, 1).tolist()
        along = [a + i * s * e for a, s, e in zip(points(x, 0), signs, fractions(x.error), strict=True)]
        for result in (weighted, dense.take(0), sparse.take(0)):
            assert holds(result, [sum(a * b for a, b in zip(along, points(y, 0), strict=True))])
        truth = [sum(a * b for a, b in zip(along, fractions(A[1]), strict=True))]
        assert holds(dense.take(1), truth)
        assert holds(sparse.take(1), truth)
        for j in ENDS:
            pairs = zip(points(x, i), points(y, j), strict=True)
            assert holds(inner, [sum(a * b for a, b in pairs)])


@pytest.mark.parametrize("divisor", [3.0, -7e-300, 7e300, LEAST])
@pytest.mark.parametrize("seed", range(4))
def test_parts_by_one_number(seed, divisor):
    x, _ = drawn(seed)
    with np.errstate(all="ignore"):
        result = x / divisor
    for end in ENDS:
        assert holds(result, [a / Fraction(divisor) for a in points(x, end)])


@pytest.mark.parametrize("seed", range(4))
def test_balls_of_single_numbers(seed):
    """Floats instead of arrays."""
    x, y = drawn(seed)
    for k in range(60):
        a, b = (Ball(float(ball.value[k]), float(ball.error[k])) for ball in (x, y))
        assert holds(a, [points(a, 1)[0]])
        assert holds(a, [points(a, -1)[0]])
        if b.value and seed != 1:
            with np.errstate(all="ignore"):
                result = (a + b) * a - b / 3.0
            for i, j in product(ENDS, ENDS):
                (p,), (q,) = points(a, i), points(b, j)
                assert holds(result, [(p + q) * p - q / 3])


@pytest.mark.parametrize("seed", range(8))
def test_sums_by_an_index(seed):
    x, _ = drawn(seed)
    index = np.arange(len(x.value)) ** 2 % 7
    with np.errstate(all="ignore"):
        result = x.sum_by(index, 8)
    for end in ENDS:
        truths = points(x, end)
        sums = [sum((t for t, k in zip(truths, index.tolist(), strict=True) if k == i), Fraction(0)) for i in range(8)]
        assert holds(result, sums)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [1, 3, 150])
def test_lengths(n, seed):
    x = drawn(seed)[0].take(slice(n))
    with np.errstate(all="ignore"):
        length = x.norm()
    if math.isfinite(length.value) and math.isfinite(length.error):
        value, error = Fraction(length.value), Fraction(length.error)
        for end in (*ENDS, "outwards"):
            away = [(1 if t >= 0 else -1) if end == "outwards" else end for t in x.value.tolist()]
            parts = zip(fractions(x.value), away, fractions(x.error), strict=True)
            square = sum((t + s * e) ** 2 for t, s, e in parts)
            assert max(value - error, 0) ** 2 <= square <= (value + error) ** 2


@pytest.mark.parametrize("seed", range(4))
def test_lengths_whose_error_is_the_whole(seed):
    """‖e‖ alone, and ‖x‖ alone: sums of squares round down in half of all cases."""
    rng = np.random.default_rng(seed)
    for n in range(1, 60):
        e = 10.0 ** rng.uniform(-3, 3, n) * (1e-165 if seed % 2 else 1.0)
        for ball in (Ball.within(e), exact(e)):
            length = ball.norm()
            most = Fraction(length.value) + Fraction(length.error)
            least = max(Fraction(length.value) - Fraction(length.error), 0)
            square = sum(t * t for t in fractions(e))
            assert most**2 >= square
            assert least**2 <= square


@pytest.mark.parametrize("seed", range(8))
def test_the_largest(seed):
    x, _ = drawn(seed)
    table = Ball(x.value.reshape(50, 3), x.error.reshape(50, 3))
    for end in ENDS:
        rows = np.array(points(x, end), dtype=object).reshape(50, 3)
        assert holds(table.max(axis=1), [max(row) for row in rows.tolist()])


@pytest.mark.parametrize("seed", range(8))
def test_sums_of_rows_in_twice_the_precision(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(60, 7)) * 10.0 ** rng.integers(-20, 20, (60, 7))
    values[:, -1] = -values[:, :-1].sum(axis=1)  # most of it cancels
    values[:3] = [1e16, 1.0, -1e16, 0, 0, 0, 0], [0.5, -0.25, -0.25, 0, 0, 0, 0], [1e16, 1.0, 1e-16, -1e16, -1, 0, 0]
    result = sum_rows(values)
    assert holds(result, [sum(fractions(row)) for row in values])
    assert (result.value[0], result.value[1], result.error[1]) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("scale", [1.0, 1e-160])
def test_numbers_that_are_rounded_up(scale):
    """(ab + c)/d, of three operations."""
    rng = np.random.default_rng(0)
    a, b, c, d = 10.0 ** rng.uniform(-3, 3, (4, 300)) * np.array([[scale], [scale], [scale * scale], [1.0]])
    results = rounded_up((a * b + c) / d, 3, 1 / d)
    for result, *numbers in zip(results.tolist(), a.tolist(), b.tolist(), c.tolist(), d.tolist(), strict=True):
        p, q, r, s = map(Fraction, numbers)
        allowed = 10 * (1 + 1 / s) * Fraction(LEAST)
        assert (p * q + r) / s <= Fraction(result) <= (p * q + r) / s * (1 + Fraction(1, 10**14)) + allowed


@pytest.mark.parametrize("seed", range(30))
def test_sums_of_errors_alone(seed):
    """Σe is rounded too, and in half of all cases down."""
    e = np.random.default_rng(seed).random(90)
    third = np.full(90, 1 / 3)
    ball, truth = Ball.within(e), sum(fractions(e))
    weighted = truth * Fraction(1 / 3)
    assert Fraction(ball.sum().error) >= truth
    assert (np.array(fractions(ball.sum_by(np.zeros(90, dtype=np.intp), 1).error)) >= truth).all()
    assert Fraction(ball.inner(third).error) >= weighted
    assert Fraction(float(ball.transformed(third).error)) >= weighted


def test_a_quotient_that_underflows_by_a_number_that_may_be_small():
    """10 LEAST/21 is 0 in float64, and the denominator may be 2.1e-8."""
    x, y = exact(np.full(1, 10 * LEAST)), Ball(np.full(1, 21.0), np.full(1, 21 * (1 - 1e-9)))
    assert holds(x / y, [Fraction(10 * LEAST) / (Fraction(21.0) - Fraction(float(y.error[0])))])


@pytest.mark.parametrize("y", [0.0, 1.0, -1.0, 2.0, -3.0])
@pytest.mark.parametrize("x", [0.0, 1.0, -5.0])
def test_a_quotient_by_a_number_that_may_be_zero_claims_nothing(x, y):
    for divisor in (Ball(y, 3.0), Ball(np.array([y]), np.array([3.0]))):
        one = 1.0 if isinstance(divisor.value, float) else np.ones(1)
        with np.errstate(all="ignore"):
            for quotient in ((x * one) / divisor, Ball(x * one, one) / divisor):
                ends = (float(np.squeeze(end)) for end in (quotient.low, quotient.high, quotient.size))
                assert tuple(ends) == (-math.inf, math.inf, math.inf)
                assert not quotient.error < math.inf  # −∞ made a violation 0 once


def test_sums_of_columns_are_those_of_each():
    x, y = drawn(0)
    x, y = (Ball(ball.value.reshape(50, 3), ball.error.reshape(50, 3)) for ball in (x, y))
    for k in range(3):
        column = Ball(x.value[:, k], x.error[:, k]), Ball(y.value[:, k], y.error[:, k])
        assert holds(x.sum(axis=0).take(k), [sum(points(column[0], 1))])
        pairs = zip(points(column[0], 1), points(column[1], -1), strict=True)
        assert holds(x.inner(y, axis=0).take(k), [sum(a * b for a, b in pairs)])


@pytest.mark.parametrize("value", [1.0, 0.0, -math.inf, math.inf, math.nan])
@pytest.mark.parametrize("error", [0.0, 1.0, math.inf, math.nan])
def test_what_is_not_finite_claims_nothing(value, error):
    """An operand that has overflowed, alone or in an array, as the first or as the second one."""
    if math.isfinite(value) and math.isfinite(error):
        return
    for bad in (Ball(value, error), Ball(np.array([value]), np.array([error]))):
        one = 2.0 if isinstance(bad.value, float) else np.array([2.0])
        zero = 0.0 * one
        with np.errstate(all="ignore"):
            results = [bad + one, one - bad, bad * one, bad * zero, bad / one, one / bad, bad.square(), bad.rounded()]
            results += [bad + exact(one), exact(one) - bad, exact(one) * bad, exact(zero) * bad, exact(one) / bad]
            results += [bad.sqrt(), bad.sqrt().positive(), bad.positive()]
            results += [Ball.between(value * one, one)] if math.isfinite(error) else [Ball.within(error * one)]
            if isinstance(one, np.ndarray):
                results += [bad.sum(), bad.inner(one), bad.inner(exact(zero)), exact(one).inner(bad)]
                results += [bad.transformed(np.ones((1, 1)))]
            for result in results:
                ends = (float(np.squeeze(end)) for end in (result.low, result.high, result.size))
                assert tuple(ends) == (-math.inf, math.inf, math.inf)


def test_operations_that_overflow_claim_nothing():
    big = exact(np.array([1e308, -1e308]))
    with np.errstate(all="ignore"):
        results = [big + big, big * big, big / 1e-10, big.square(), big.inner(np.full(2, 1e10)), 10.0 * big]
        results += [exact(np.array([1e308, 1e308])).sum(), exact(np.array([1.0])) / np.zeros(1), big.rounded(2**53)]
        for result in results:
            assert (np.atleast_1d(result.low) == -math.inf).all()
            assert (np.atleast_1d(result.high) == math.inf).all()


def test_zeros_are_exact():
    zero, x = exact(np.zeros(3)), drawn(0)[0].take(slice(3))
    results = [zero + zero, zero * x, x * zero, zero / 7.0, zero.square(), zero.sqrt(), zero.positive(), zero.rounded()]
    results += [zero.sum(), zero.inner(x), x.inner(zero), x.inner(zero.value), zero - zero.value]
    results += [zero / Ball(np.full(3, 2.0), np.full(3, 1.0))]
    for result in results:
        assert not np.any(result.value)
        assert not np.any(result.error)
        assert not np.any(result.high)


def test_errors_are_little_above_the_least():
    """What a bound would be without any rounding of its own."""
    x, y = drawn(0)
    keep = (np.abs(x.value) > 1e-9) & (np.abs(y.value) > 1e-9)
    x, y, u = x.take(keep), y.take(keep), 2.0**-53
    result = x * y
    least = np.abs(x.value) * y.error + np.abs(y.value) * x.error + x.error * y.error + u * np.abs(result.value)
    assert (result.error <= 1.000001 * least).all()
    result = x + y
    assert (result.error <= 1.000001 * (x.error + y.error + u * np.abs(result.value))).all()
    result = x.inner(y.value)
    least = np.abs(y.value) @ (x.error + gamma(len(x.value)) * np.abs(x.value))
    assert result.error <= 1.01 * least
    small = Ball(np.array([4.0, 1e-30]), np.array([1e-10, 1.0]))
    np.testing.assert_allclose(small.sqrt().error, [0.25e-10, 1.0], rtol=1e-4)
    np.testing.assert_array_equal(Ball(np.array([-2.0, 1.0]), np.array([1.0, 1.0])).positive().error, [0.0, 1.0])


def test_numpy_refuses_balls():
    """A function of NumPy would go on without the error."""
    x = Ball(np.ones(3), np.full(3, 0.5))
    for function in (np.abs, np.sqrt, np.exp, np.negative):
        with pytest.raises(TypeError, match="ufunc"):
            function(x)
    np.testing.assert_array_equal((np.ones(3) + x).value, [2.0, 2.0, 2.0])
    np.testing.assert_array_equal((np.float64(2) * x).value, [2.0, 2.0, 2.0])
    with pytest.raises(TypeError):
        np.ones(3) @ x


def test_parts_of_balls():
    x = Ball(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]))
    value, error = x
    np.testing.assert_array_equal(x.take(np.array([2, 0])).error, error[[2, 0]])
    x.put(np.array([1]), Ball(5.0, 0.5))
    assert (value[1], error[1]) == (5.0, 0.5)
    np.testing.assert_array_equal(Ball(value, np.array([0.1, math.nan, 0.3])).finite().error, [0.1, math.inf, 0.3])
    assert Ball(np.array([LEAST]), np.array([0.0])).rounded().high >= 2 * LEAST
    assert TINY > LEAST
