"""Certificates of linear least squares, from weights w of the features and b.

With β_i = w_i r_i/λ and v = scale·Xᵀβ the theorem of mercer.certificates.least_squares applies, where
‖f − f_β‖² = ‖w − v‖²/scale. Where the features' units differ by many orders of magnitude, the rounding of β alone opens
a gap. The gradient at w is λ(v − w)/scale, and the objective is quadratic, so that

    P − P* ≤ ‖S⁻¹(v − w)‖² λ/(2α scale²)

with the S and α of mercer.certificates.sums, whatever the units. `kkt` has this bound.
"""

from __future__ import annotations

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import EXACT_GAP, certify_parts, column_sums, limit_certificate, sums_by_sample
from mercer.certificates.sums import least_curvature
from mercer.places.ball import Ball, exact
from mercer.places.protocols import LinearGram
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats


def certify_weights(
    problem: LeastSquares, linear: LinearGram, W: Floats, b: Floats, centre: Floats | None, sums: Sums | None = None
) -> tuple[Floats | None, Certificate]:
    """Return β of the rows that belongs to feature weights W and b, and the certificate; β is None at λ = 0.

    A `centre` near the means of dense samples avoids cancellation in columns far from zero. The `sums` over the
    samples bound the curvature of the objective.
    """
    if problem.lam == 0:
        return None, certify_weights_limit(problem, linear, W, b, centre)
    weight = problem.weight[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        # 1. Residuals, and a β whose sum is zero except for rounding.
        residual = problem.Y - _values(linear, W, b, centre).take(problem.member)  # y − f − b
        R = residual.value
        beta = weight / problem.lam * R
        if problem.bias:  # spread the sum that rounding left by weight
            beta -= (problem.weight / problem.mass)[:, None] * beta.sum(axis=0)
            # Among the rows that are not too light, the one with the smallest |β| takes the rest: it rounds least.
            heavy_samples = np.flatnonzero(problem.weight * len(R) >= problem.mass * (1 - EXACT_GAP))
            least = heavy_samples[np.argmin(np.abs(beta[heavy_samples]), axis=0)]
            beta[least, np.arange(len(b))] -= column_sums(beta)
        # 2. The terms of the gap, and the primal value.
        totals = column_sums(beta) if problem.bias else np.zeros(len(b))
        difference = W - _combination(problem, linear, beta, totals, centre)  # f − f_β
        rest = residual - exact(problem.lam) / weight * beta  # r − dβ
        squares = rest.square().inner(weight, axis=0) / (2 * problem.lam)
        distance = 0.5 * difference.square().sum(axis=0) / linear.scale + squares
        norm = exact(W).square().sum(axis=0) / linear.scale
        primal = 0.5 * (norm + residual.square().inner(weight, axis=0) / problem.lam)
        # 3. y − f_β − b − dβ = (f − f_β) + (r − dβ); the centre adds the same number to f − f_β everywhere.
        dual_gradient = linear.times_bound(difference, centre).take(problem.member) + rest
        shift = None if centre is None else difference.transformed(centre)
        upper_bound = _suboptimality_bound(problem, linear, residual, difference, squares, distance, totals, sums)
    certificate = certify_parts(
        problem,
        b,
        beta,
        primal,
        primal - distance,
        distance,
        residual,
        rest,
        linear.norm_bound,
        "optimality",
        upper_bound,
        shift,
        dual_gradient,
    )
    return beta, certificate


def _suboptimality_bound(
    problem: LeastSquares,
    linear: LinearGram,
    residual: Ball,
    difference: Ball,
    squares: Ball,
    distance: Ball,
    totals: Floats,
    sums: Sums | None,
) -> Floats | None:
    """Bound P − P* of each output; None without `sums`, or if the gap is small enough.

    Let q = r − dβ, m its weighted mean, μ the weighted mean of r, and X̃ the centred samples.

    1. The gradient at w with its best bias is λX̃'β + X̃'W(q − m). Its first part contributes s, the bound of the
       module's docstring, and its second part at most R = Σw(q − m)²/(2λ), together (√s + √R)².
    2. A bias that is μ away from the best costs Σw·μ²/(2λ) = M + μΣβ − λ(Σβ)²/(2Σw), where M = Σw·m²/(2λ).
    3. `squares` is R + M, and (√s + √(R + M))² ≥ (√s + √R)² + M. So (√s + √squares)² + |μΣβ| bounds the sum.
    """
    risk = problem.weight @ residual.value**2 / (2 * problem.lam)
    if sums is None or (distance.value <= 0.5 * EXACT_GAP * risk).all():
        return None
    lam = problem.lam / linear.scale
    unit = 1.0 / np.sqrt(np.abs(sums.xx.diagonal()) + lam)
    alpha = max(float((lam * exact(float(unit.min())).square()).low), least_curvature(sums, lam, unit))
    gradient = Ball.within(difference.size) + linear.scale * (exact(sums.x[:, None]) * totals)  # divided by λ/scale
    slope = (lam * gradient * unit[:, None]).square().sum(axis=0)
    root = (slope / exact(alpha) / (2 * lam * exact(linear.scale))).sqrt() + squares.sqrt()
    mean = residual.inner(problem.weight[:, None], axis=0) / exact(problem.weight).sum()
    return np.asarray((root.square() + abs(mean) * abs(exact(totals).rounded())).high)


def certify_weights_limit(
    problem: LeastSquares, linear: LinearGram, W: Floats, b: Floats, centre: Floats | None
) -> Certificate:
    """Certify weights of the features at λ = 0 by their normal equations XᵀW(y − f) = 0.

    `gap` is the largest decrease by a step along a single feature.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        residual = problem.Y - _values(linear, W, b, centre).take(problem.member)
        slopes = sums_by_sample(problem, residual * problem.weight[:, None])
        gradient = linear.transposed_bound(slopes, np.abs(slopes.value), centre)
        return limit_certificate(problem, residual, gradient, linear.transposed_squares(problem.total, centre), b)


def _values(linear: LinearGram, W: Floats, b: Floats, centre: Floats | None) -> Ball:
    """Return f + b of the distinct samples; b + ⟨w, c⟩ is summed in extended precision, if the host has it."""
    F = linear.times_bound(exact(W), centre)
    if centre is None:
        return F + b
    extended_sums = b.astype(np.longdouble) + centre.astype(np.longdouble) @ W.astype(np.longdouble)
    size = exact(W).transformed(np.abs(centre)) + np.abs(b)
    sum_error = (len(W) + 2) * float(np.finfo(np.longdouble).eps) * size.size
    return F + Ball(np.asarray(extended_sums, dtype=np.float64), sum_error).rounded()


def _combination(
    problem: LeastSquares, linear: LinearGram, beta: Floats, totals: Floats, centre: Floats | None
) -> Ball:
    """Return scale·Xᵀβ over the rows, the weights of f_β."""
    coefficients = sums_by_sample(problem, exact(beta))
    V = linear.transposed_bound(coefficients, coefficients.size, centre)
    if centre is not None:  # the sums of β are rounded too
        V = V + exact(totals).rounded() * centre[:, None]
    return V * linear.scale
