"""Certificates of least squares on landmarks: the residual of the normal equations bounds the distance to the optimum.

    minimise  ½ Σ w_i (y_i − f(x_i))² + ½ λ c'K_MM c     over f = Σ_j c_j k(z_j, ·) + b

In coordinates α in which c'K_MM c = ‖α‖², and with the bias eliminated, the normal equations are (H + λI)α = g. Their
residual r at any α gives the duality gap ‖r‖²/(2λ); the dual point is β = W(y − f)/λ. K_MM carries a jitter on its
diagonal, at the size of rounding, in the problem that is solved and in the one that is certified. The gap includes all
rounding errors, and `primal` and `dual` are bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from mercer.certificates.certificate import Certificate, ProvenClaim
from mercer.certificates.least_squares import SUBOPTIMALITY
from mercer.places.ball import Ball
from mercer.places.protocols import ErrorTotals, Totals
from mercer.samples.arrays import Floats, gamma

_TINY = float(np.finfo(float).tiny)


def landmark_gap(residual: Floats, lam: float) -> Floats:
    """Return the duality gap of each output, from the exact residual of its normal equations."""
    return np.asarray(np.sum(residual * residual, axis=0) / (2 * lam))


@dataclass(frozen=True, eq=False)
class LandmarkErrors:
    """Bounds that include all rounding errors, one number per output."""

    value: Floats  # largest error of the primal value
    gap: Floats  # upper bound on the distance from the optimum


def landmark_errors(
    residual: Floats,
    alpha: Floats,
    C: Floats,
    lam: float,
    factor: tuple[Floats, float],
    kernel_error: float,
    totals: Totals,
    error_totals: ErrorTotals,
    bias: bool,
) -> LandmarkErrors:
    """Bound the gap, with the rounding errors of the residual L⁻¹K_nMᵀW(y − f) − λα, and the error of the primal value.

    An error e of the sums over the samples changes the residual by at most |L⁻¹|e. An error e of f changes it by at
    most √(Σ w e²) √(Σ w k(x, x)), whatever K_MM is, and so does a bias that is not the best one. Solving with L has a
    relative error of γ_m |L⁻¹||L| (Higham, 8.1). K_MM = LLᵀ up to `kernel_error`, in units of √(k_ii k_jj), which
    includes the rounding of `factor`, L with its jitter. This changes the residual by λ|L⁻¹| times the product with
    |c|, and all lengths by the factor `_stretch`.
    """
    (L, jitter), m = factor, len(C)
    inverse = np.abs(solve_triangular(L, np.eye(m), lower=True, overwrite_b=True, check_finite=False))
    size = np.abs(residual) + inverse @ error_totals.residual
    size += gamma(2 * m + 4) * (inverse @ (np.abs(L) @ (lam * np.abs(alpha) + np.abs(residual))))
    root = np.sqrt(np.sum(L * L, axis=1))
    coefficient_sum = root @ np.abs(C)
    output_error = np.sqrt(error_totals.squares)
    sum_rounding = gamma(error_totals.terms + 4)
    bias_error = (
        np.abs(totals.error_sum) + np.sqrt(totals.weight) * (output_error + sum_rounding * np.sqrt(totals.squares))
        if bias
        else 0.0 * output_error
    )
    values = np.sqrt(error_totals.trace) * (output_error + bias_error / np.sqrt(totals.weight))
    # The effect of rounding counts twice, since |L⁻¹| is itself a computed matrix.
    length = np.sqrt(np.sum((2 * size - np.abs(residual)) ** 2, axis=0))
    inverse_root = inverse @ root
    stretch = _stretch(kernel_error, inverse_root, root, jitter)
    # The second bound follows from K_MM ≥ jitter.
    inverse_length = min(
        2 * stretch * float(np.sqrt(inverse_root @ inverse_root)), float(np.sqrt(root @ root / jitter))
    )
    length = stretch * length + lam * kernel_error * inverse_length * coefficient_sum + values
    gap = length**2 / (2 * lam) + bias_error**2 / (2 * totals.weight)
    # Lᵀc differs from α by γ_m|L|ᵀ|c|, and the sum of squares by γ_m‖α‖², where |α| is at most |L|ᵀ|c| and that error.
    alpha_error = gamma(2 * m + 8) * (np.abs(L).T @ np.abs(C))
    norm = np.sum((2 * np.abs(alpha) + alpha_error) * alpha_error, axis=0) + 2 * kernel_error * coefficient_sum**2
    risk = 2 * np.sqrt(totals.squares) * output_error + error_totals.squares + 2 * sum_rounding * totals.squares
    return LandmarkErrors(0.5 * (risk + lam * norm), gap)


def _stretch(kernel_error: float, inverse_root: Floats, root: Floats, jitter: float) -> float:
    """Return how many times longer a residual can be with the true K_MM than with LLᵀ.

    `root` holds √(LLᵀ)_ii, and `inverse_root` is |L⁻¹|root. With D their difference, |D| ≤ kernel_error·root root', and
    N = LLᵀ + D the true one: N ≥ (1 − ‖L⁻¹DL⁻ᵀ‖) LLᵀ. Also N ≥ LLᵀ − ‖D‖ and, as K_MM ≥ 0, N ≥ jitter; the weighted
    mean of both in which ‖D‖ cancels is a multiple of LLᵀ.
    """
    least_share = 1.0 - 4 * kernel_error * float(inverse_root @ inverse_root)
    longest = min(
        1.0 / least_share if least_share > 0 else np.inf, 1.0 + 2 * kernel_error * float(root @ root) / jitter
    )
    return float(np.sqrt(longest))


def certify_landmarks(
    gap: Floats,
    right_norms: Floats,
    primal: Floats,
    b: Floats,
    lam: float,
    precision: str = "float64",
    primal_error: Floats | None = None,
    gap_measures: ProvenClaim = "optimality",
) -> Certificate:
    """Return a certificate with one part per output, from gaps recomputed over the samples.

    `right_norms` holds the norms ‖g‖, and `violation` is the residual relative to ‖g‖. The primal values are known up
    to `primal_error`. The bounds `primal` and `dual` include it, and so does their difference, the gap. The distance of
    the solution from the optimum does not depend on it, and is in `kkt`.
    """
    columns = (gap, right_norms, primal, b, np.zeros_like(gap) if primal_error is None else primal_error)
    parts = []
    for output_gap, length, value, bias, error in zip(*(column.tolist() for column in columns), strict=True):
        values, size = Ball(value, error).rounded(4), math.sqrt(2 * lam * output_gap)
        parts.append(
            Certificate(
                primal=values.high,
                dual=(values - output_gap).low,
                gap=output_gap,  # Certificate raises it to primal − dual, which includes `primal_error`
                violation=size / max(length, _TINY),
                kkt={"normal equations": size, SUBOPTIMALITY: output_gap},
                gap_measures=gap_measures,
                precision=precision,
                b=(bias,),
            )
        )
    return Certificate.total(parts)
