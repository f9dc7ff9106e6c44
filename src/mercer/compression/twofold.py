"""Numbers in twice the precision of float64, as unevaluated sums of two arrays (high, low) with |low| ≤ u|high|.

Sums and products are Dekker's and Knuth's, with errors of a few u² (u = 2⁻⁵³; Joldes, Muller and Popescu 2017); `exp`
is right to 2⁻⁷⁰ of its value.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np

from mercer.arrays import Floats

Twofold = tuple[Floats, Floats]

EXP_ERROR = 2.0**-70
# Relative errors of one sum and of one product.
SUM_ERROR, PRODUCT_ERROR = 2.0**-104, 2.0**-103

_SPLITTER = 2.0**27 + 1
# exp(t) = 2ⁿ exp(j/64) exp(r): of ln 2 so many bits that n ln 2 is exact, and |r| ≤ 1/128.
_STEPS, _LN2_BITS = 64, 42
# 1/k! of r^k for k = 3, …, 10, which leave less than 2⁻¹⁰⁰ of a value.
_TAIL = [1.0 / f for f in (6.0, 24.0, 120.0, 720.0, 5040.0, 40320.0, 362880.0, 3628800.0)]
# Exponents below have values that float64 cannot hold.
_LOWEST_EXPONENT = -700.0


def exact_sum(a: Floats, b: Floats) -> Twofold:
    """a + b without an error."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def exact_product(a: Floats, b: Floats | float) -> Twofold:
    """ab without an error, unless it leaves the range of float64."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Floats | float) -> tuple[Floats | float, Floats | float]:
    wide = _SPLITTER * a
    high = wide - (wide - a)
    return high, a - high


def normal(high: Floats, low: Floats) -> Twofold:
    """high + low, |low| ≤ |high|, with `low` as small as it can be."""
    total = high + low
    return total, low - (total - high)


def add(a: Twofold, b: Twofold) -> Twofold:
    high, rest = exact_sum(a[0], b[0])
    low, lost = exact_sum(a[1], b[1])
    high, rest = normal(high, rest + low)
    return normal(high, rest + lost)


def multiply(a: Twofold, b: Twofold) -> Twofold:
    high, low = exact_product(a[0], b[0])
    return normal(high, low + (a[0] * b[1] + a[1] * b[0]))


def times(a: Twofold, factor: float) -> Twofold:
    """A product with one float64 number."""
    high, low = exact_product(a[0], factor)
    return normal(high, low + a[1] * factor)


def power(a: Twofold, n: int) -> Twofold:
    """aⁿ, n ≥ 1, by repeated squaring."""
    result: Twofold | None = None
    while n:
        if n % 2:
            result = a if result is None else multiply(result, a)
        n //= 2
        if n:
            a = multiply(a, a)
    assert result is not None
    return result


def sum_rows(a: Twofold) -> Twofold:
    """The sums of columns, by halves; so many rounding errors as halvings follow one another."""
    high, low = a
    while len(high) > 1:
        half = len(high) // 2
        odd = (high[2 * half :], low[2 * half :])
        high, low = add((high[:half], low[:half]), (high[half : 2 * half], low[half : 2 * half]))
        if len(odd[0]):
            high, low = (np.concatenate(pair) for pair in zip((high, low), odd, strict=True))
    return high[0], low[0]


def exp(t: Twofold) -> Twofold:
    """exp(t) for t ≤ 0; 0 where it is below 10⁻³⁰⁰."""
    table_high, table_low, ln2, ln2_rest = _constants()
    high = np.maximum(t[0], _LOWEST_EXPONENT)
    low = np.where(high > t[0], 0.0, t[1])
    n = np.rint(high / ln2)
    r, rest = exact_sum(high, -n * ln2)
    r, rest = normal(r, rest + (low - n * ln2_rest))
    j = np.rint(r * _STEPS)
    r, more = exact_sum(r, -j / _STEPS)
    r, rest = normal(r, more + rest)
    tail = np.full_like(r, _TAIL[-1])
    for coefficient in _TAIL[-2::-1]:
        tail *= r
        tail += coefficient
    square, square_rest = exact_product(r, r)
    square_rest += 2.0 * r * rest
    tail *= square * r
    value = normal(0.5 * square, 0.5 * square_rest + tail)
    value = add((r, rest), value)
    one_more, lost = exact_sum(np.ones_like(r), value[0])
    place = j.astype(np.intp) + _STEPS
    found = multiply(normal(one_more, lost + value[1]), (table_high[place], table_low[place]))
    scale = np.where(t[0] < _LOWEST_EXPONENT, 0.0, np.ldexp(1.0, n.astype(np.int32)))
    return found[0] * scale, found[1] * scale


@cache
def _constants() -> tuple[Floats, Floats, float, float]:
    """exp(j/64) for |j| ≤ 64 in two parts, and ln 2 as 42 bits and the rest."""
    with localcontext() as context:
        context.prec = 60
        exact = [(Decimal(j) / _STEPS).exp() for j in range(-_STEPS, _STEPS + 1)]
        high = np.array([float(value) for value in exact])
        low = np.array([float(value - Decimal(first)) for value, first in zip(exact, high.tolist(), strict=True)])
        ln2 = Decimal(2).ln()
        first = float(int(ln2 * 2**_LN2_BITS)) / 2**_LN2_BITS
        return high, low, first, float(ln2 - Decimal(first))
