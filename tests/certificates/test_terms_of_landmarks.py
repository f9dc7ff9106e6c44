"""Error terms of a certificate of landmarks, each of which decides one of these claims about a scalar problem."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.landmarks import landmark_errors
from mercer.places.protocols import ErrorTotals, Totals

U = Fraction(1, 2**53)


def bounds(
    lam=1.0, residual=0.0, alpha=0.0, C=None, L=1.0, own=0.0, jitter=1e-3, bias=False, mean=0.0, squares=0.0,
    e=0.0, off=0.0, trace=1.0, terms=0,
):  # fmt: skip
    """The bounds of one landmark, or of several, and one sample of weight 1; f is off by `off`."""
    L = np.atleast_2d(np.array(L))
    alpha = np.broadcast_to(np.array(alpha, dtype=float).reshape(-1, 1), (len(L), 1))
    C = alpha if C is None else np.array(C, dtype=float)[:, None]
    now = Totals(np.zeros(C.shape), np.zeros(len(L)), 1.0, np.array([mean]), np.array([squares]), 1)
    errors = ErrorTotals(np.full(C.shape, e), np.array([off**2]), trace, terms)
    found = landmark_errors(np.full(C.shape, residual), alpha, C, lam, (L, jitter), own, now, errors, bias)
    return Fraction(float(found.value[0])), Fraction(float(found.gap[0]))


def test_sums_over_the_samples_are_off():
    """r = L⁻¹e, and the gap is r²/2λ; a third is rounded downwards."""
    assert bounds(e=1.0)[1] >= Fraction(1, 2)
    assert bounds(lam=0.5, L=3.0, e=1.0)[1] >= Fraction(1, 9)


@pytest.mark.parametrize("residual", [0.0, 1.0])
def test_solving_with_the_factor_is_rounded(residual):
    """r is off by γ_m of |L⁻¹||L|(λ|α| + |r|)."""
    alpha = 1.0 - residual
    assert bounds(residual=residual, alpha=alpha)[1] >= (Fraction(residual) + U) ** 2 / 2


def test_outputs_that_are_off_move_the_residual():
    assert bounds(off=0.5)[1] >= Fraction(1, 8)


def test_outputs_that_are_off_move_the_risk():
    """½(1 + ½)² − ½."""
    assert bounds(off=0.5, squares=1.0)[0] >= Fraction(5, 8)
    assert bounds(off=0.5, squares=0.0)[0] >= Fraction(1, 8)


def test_a_risk_is_a_rounded_sum():
    assert bounds(terms=100, squares=1.0)[0] >= 50 * U


@pytest.mark.parametrize("lam", [0.25, 1.0, 4.0])
def test_a_bias_that_is_not_the_best(lam):
    """y − f = 1 at α = 1/λ: P = ½ + 1/2λ, and with the bias 1 and α = 0 it is 0."""
    assert bounds(lam=lam, bias=True, mean=1.0, alpha=1 / lam)[1] >= Fraction(1, 2) + 1 / Fraction(2 * lam)


def test_a_mean_that_is_off():
    """y − f seems to be 0 and is 1, at α = 0; a mean of 0 may be what rounding left of a sum."""
    assert bounds(lam=100.0, bias=True, off=1.0)[1] >= Fraction(1, 2)
    assert bounds(lam=100.0, bias=True, squares=1.0, terms=1000)[1] >= (1000 * U) ** 2 / 2


@pytest.mark.parametrize("own", [2.0**-10, 0.125])
def test_a_kernel_value_that_is_off(own):
    """K_MM is 1 − own and not 1: r²/2λK_MM without coefficients, and with one λc·own is left of r."""
    true = 1 - Fraction(own)
    assert bounds(residual=1.0, own=own)[1] >= 1 / (2 * true)
    assert bounds(alpha=1.0, own=own)[1] >= Fraction(own) ** 2 / (2 * true)
    assert bounds(alpha=1.0, own=own)[0] >= Fraction(own) / 2


def test_coefficients_whose_products_with_the_factor_are_rounded():
    """321·28059810762433 = 2⁵³ + 1: Lᵀc is −2⁻⁵³ in the first entry, and not α = 0."""
    L, c = [[1.0, 0.0], [-321 * 2.0**-53, 2.0**-100]], [1.0, 28059810762433.0]
    assert bounds(L=L, C=c, alpha=[0.0, 2.0**-100 * c[1]])[0] >= U**2 / 2
