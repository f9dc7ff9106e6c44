"""The Matérn function 2^(1−ν)/Γ(ν) · t^ν K_ν(t), and its slope."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.polynomial import Polynomial
from scipy import special

from mercer.arrays import Floats, row_blocks
from mercer.kernels.endings import exp_of_minus

# From this ν on Debye's expansion is exact to rounding; below it the Bessel function hardly ever overflows.
_DEBYE_NU = 50.0
# A Bessel function takes about a microsecond, as long as other kernels take for half a kilobyte of values: blocks of
# them are that much smaller, so that Ctrl-C and max_time are heard in time.
_BESSEL_BYTES = 512


def matern_slope_over_t(nu: float, t: Floats) -> Floats:
    """k'(t)/t of the Matérn function, from (t^ν K_ν)' = −t^ν K_{ν−1} (DLMF 10.29.4); does not overwrite t.

    Where ν ≤ 1 it is infinite at t = 0. The differences x − z that it is multiplied by are 0 there: so is the result.
    """
    if nu > 1:
        return matern(nu - 1.0, t.copy()) / (-2.0 * (nu - 1.0))
    out = np.zeros_like(t)
    between = (t > 0) & (t < 1e3)  # beyond, the exponential is 0
    s = t[between]
    if nu == 0.5:
        out[between] = -np.exp(-s) / s
    else:
        size = (1 - nu) * math.log(2) - special.gammaln(nu) + (nu - 1) * np.log(s)
        out[between] = -np.exp(size + np.log(special.kve(1.0 - nu, s)) - s)
    return out


def matern(nu: float, t: Floats) -> Floats:
    """The Matérn function of t = √(2ν) r / length_scale; overwrites t."""
    if nu == 0.5:
        return exp_of_minus(1.0, t)
    if nu in (1.5, 2.5):
        np.minimum(t, 1e3, out=t)  # there the exponential is 0 already, and ∞ · 0 would not be a number
        polynomial = 1.0 + t if nu == 1.5 else 1.0 + t + t**2 / 3.0
        polynomial *= exp_of_minus(1.0, t)
        return polynomial
    return _matern_by_debye(nu, t) if nu >= _DEBYE_NU else _matern_by_bessel(nu, t)


def _matern_by_bessel(nu: float, t: Floats) -> Floats:
    out = np.ones_like(t)
    out[t > 1e3 + 10 * nu] = 0.0  # less than the smallest float64, and kve fails for very large arguments
    between = (t > 0) & (out > 0)
    values = t[between]
    for some in row_blocks(len(values), _BESSEL_BYTES):
        s = values[some]
        scaled = special.kve(nu, s)
        with np.errstate(over="ignore"):
            found = np.exp((1 - nu) * math.log(2) - special.gammaln(nu) + nu * np.log(s) + np.log(scaled) - s)
        # K_ν overflows only near 0, where the first term of 1 − k, t²/(4(ν − 1)), is at the level of rounding.
        near = np.isinf(scaled)
        found[near] = 1.0 - s[near] ** 2 / (4 * (nu - 1))
        values[some] = np.minimum(found, 1.0)
    out[between] = values
    return out


def _matern_by_debye(nu: float, t: Floats) -> Floats:
    """Debye's expansion of K_ν, uniform in t (DLMF 10.41.4), divided by its value at t = 0.

    With z = t/ν, s = √(1 + z²) and p = 1/s:  log k = −ν(s − 1 − log((1 + s)/2)) − ½ log s + log Σ(p) − log Σ(1),
    where Σ(p) = Σ_k (−1)^k U_k(p)/ν^k.
    """
    with np.errstate(over="ignore"):
        z = np.minimum(t / nu, 1e150)
        s = np.sqrt(1.0 + z**2)
        above = z**2 / (1.0 + s)  # s − 1 without cancellation
        series = sum(((-1 / nu) ** k * u for k, u in enumerate(_debye_polynomials())), Polynomial([0.0]))
        logarithm = -nu * (above - np.log1p(above / 2)) - 0.5 * np.log1p(above)
        logarithm += np.log(series(1.0 / s) / series(1.0))
    return np.exp(logarithm)


@cache
def _debye_polynomials() -> tuple[Polynomial, ...]:
    """U_0 to U_10 by their recurrence (DLMF 10.41.9); for ν ≥ 50 the later terms are below rounding."""
    polynomials = [Polynomial([1.0])]
    for _ in range(10):
        last = polynomials[-1]
        integral = (Polynomial([1.0, 0.0, -5.0]) * last).integ()
        polynomials.append(Polynomial([0.0, 0.0, 0.5, 0.0, -0.5]) * last.deriv() + integral / 8)
    return tuple(polynomials)
