"""Numbers in twice the precision of float64, as unevaluated sums of two arrays (high, low) with |low| ≤ u|high|.

Sums and products are Dekker's and Knuth's, with errors of a few u² (u = 2⁻⁵³; Joldes, Muller and Popescu 2017); `exp`
is right to 2⁻⁹⁸ of its value.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from math import factorial

import numpy as np

from mercer.arrays import Floats

Twofold = tuple[Floats, Floats]

EXP_ERROR = 2.0**-98
# Relative errors of one sum and of one product.
SUM_ERROR, PRODUCT_ERROR = 2.0**-104, 2.0**-103

_SPLITTER = 2.0**27 + 1
# exp(t) = 2ⁿ exp(j/64) exp(r), |r| ≤ 1/128: ln 2 in parts of _LN2_BITS bits, so that n times a part is exact.
_STEPS, _LN2_BITS = 64, 42
# Terms r^k/k! for k from 7 to 12 are below 2⁻⁶¹, so that float64 holds them to 2⁻¹¹⁴; those after are below 2⁻¹²³.
_FIRST_OF_TAIL, _LAST_OF_TAIL = 7, 12
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
    """The sums of columns, by halves: each halving adds one rounding error."""
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
    powers, ln2, inverse = _constants()
    high = np.maximum(t[0], _LOWEST_EXPONENT)
    low = np.where(high > t[0], 0.0, t[1])
    n = np.rint(high / ln2[0])
    r = exact_sum(high, -n * ln2[0])
    r = add(r, normal(low, np.zeros_like(low)))
    r = add(r, normal(-n * ln2[1], -n * ln2[2]))
    j = np.rint(r[0] * _STEPS)
    r = add(r, (-j / _STEPS, np.zeros_like(j)))
    tail = np.full_like(j, inverse[_LAST_OF_TAIL][0])
    for k in range(_LAST_OF_TAIL - 1, _FIRST_OF_TAIL - 1, -1):
        tail = tail * r[0] + inverse[k][0]
    value: Twofold = normal(tail, np.zeros_like(tail))
    for k in range(_FIRST_OF_TAIL - 1, -1, -1):
        value = add(multiply(value, r), _everywhere(inverse[k], j))
    place = j.astype(np.intp) + _STEPS
    found = multiply(value, (powers[0][place], powers[1][place]))
    scale = np.where(t[0] < _LOWEST_EXPONENT, 0.0, np.ldexp(1.0, n.astype(np.int32)))
    return found[0] * scale, found[1] * scale


def _everywhere(number: tuple[float, float], like: Floats) -> Twofold:
    return np.full_like(like, number[0]), np.full_like(like, number[1])


@cache
def _constants() -> tuple[Twofold, tuple[float, float, float], list[tuple[float, float]]]:
    """exp(j/64) for |j| ≤ 64, ln 2 as two parts of 42 bits and the rest, and 1/k!."""
    with localcontext() as context:
        context.prec = 60
        exact = [_two_parts((Decimal(j) / _STEPS).exp()) for j in range(-_STEPS, _STEPS + 1)]
        ln2, unit = Decimal(2).ln(), Decimal(2) ** _LN2_BITS
        first = int(ln2 * unit) / unit
        second = int((ln2 - first) * unit**2) / unit**2
        inverse = [_two_parts(1 / Decimal(factorial(k))) for k in range(_LAST_OF_TAIL + 1)]
        parts = float(first), float(second), float(ln2 - first - second)
        return (np.array([high for high, _ in exact]), np.array([low for _, low in exact])), parts, inverse


def _two_parts(number: Decimal) -> tuple[float, float]:
    high = float(number)
    return high, float(number - Decimal(high))
