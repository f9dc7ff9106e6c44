"""Certificates of least squares: bounds that include the rounding of their own evaluation.

For f and b, and any β with d = λ/w, r = y − f − b and f_β = Σ β_i k(x_i, ·),

    P(f, b) − D(β) = ½‖f − f_β‖² + Σ (r_i − d_iβ_i)²/(2d_i) − bΣβ

A kernel machine has f = f_β; a linear one has other weights than f_β (mercer.certificates.weights). In exact arithmetic
Σβ = 0 with a bias. If Σβ is s instead, the optimum P* is at least D(β) − b*s. The best bias b* for the optimal f*
differs from b by no more than the weighted mean of r and √(2(P − P*))·max √k(x, x), since ½‖f − f*‖² ≤ P − P*. So with
G, the sum of the first two terms above,

    P − P* ≤ distance = G + |s|·(|mean r| + √(2·distance)·max √k(x, x)),    gap ≥ max(distance, G + |b s|) ≥ P − D(β)

D(β) − bΣβ = Σ β_i(r_i + ½f_i − ½d_iβ_i), and `dual` is this value minus the terms in s.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.certificates.certificate import Certificate, ProvenClaim, kkt_residuals
from mercer.certificates.dual import PROOF
from mercer.places.ball import LEAST, Ball, exact, rounded_up
from mercer.places.gram import BoundedProducts
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, gamma, sums_by

# Largest relative gap of a solution that counts as exact; f is within 1.5e-5 of the optimal one, relative to √(2P).
EXACT_GAP = 1e-10
# Name in `kkt` of the bound on P − P*. The gap is often larger: it includes the rounding of β, which matters where b is
# large or the features' units differ much.
SUBOPTIMALITY = "primal value above the optimum"
# Roundings of a bound that is computed from numbers ≥ 0, and a few more.
_ROUNDINGS = 16
# Roundings of y − b − f − dβ, and of its sum with y − b.
_RESIDUAL_ROUNDINGS = 8
_TINY = float(np.finfo(float).tiny)


def certify_solution(
    problem: LeastSquares, gram: BoundedProducts, C: Floats, U: Floats, errors: Floats
) -> tuple[Floats, Certificate]:
    """Return β of the rows and its certificate, from the coefficients C of the distinct samples.

    KC is computed in a higher precision if its rounding errors would hide that the solution is exact.
    """
    beta = problem.split(C, gram.diagonal)
    certificate = certify_outputs(problem, gram, beta, U, errors, C)
    if not is_exact(problem, certificate):  # the highest precision is slower: column by column
        bounds = [gram.product_bound(column, level=gram.levels[-1]) for column in C.T]
        U, errors = map(np.column_stack, zip(*bounds, strict=True))
        certificate = certify_outputs(problem, gram, beta, U, errors, C)
    return beta, certificate


def certify_outputs(
    problem: LeastSquares, gram: BoundedProducts, beta: Floats, U: Floats, errors: Floats, C: Floats
) -> Certificate:
    """Certify each output; U = KC, exact up to `errors`; C sums β over the rows of each distinct sample.

    Rounding makes the sums of β differ a little from C, and f_β from f. All claims hold for both.
    """
    weight, member, n = problem.weight[:, None], problem.member, len(problem.weight)
    with np.errstate(over="ignore", invalid="ignore"):
        # 1. r − dβ has five roundings and the sum with y − b three more, each of a number below the sum of all sizes.
        ridge = problem.lam / weight * beta  # dβ
        f = U[member]
        f_plus_ridge = f + ridge
        b = problem.weight @ (problem.Y - f_plus_ridge) / problem.mass if problem.bias else np.zeros(problem.n_outputs)
        target = problem.Y - b
        rest = target - f_plus_ridge
        error = gamma(_RESIDUAL_ROUNDINGS) * (np.abs(target) + np.abs(f) + np.abs(ridge)) + errors[member]
        if problem.lam < 2 * _TINY * problem.mass:  # λ/w may have lost LEAST/2
            error += LEAST * np.abs(beta)
        error = rounded_up(error, _RESIDUAL_ROUNDINGS)
        # 2. `dual` is D(β) − bΣβ, where half of an error of f enters.
        dual = Ball(target + rest, error).inner(beta, axis=0)
        dual = Ball(0.5 * dual.value, 0.5 * dual.error + LEAST)
        distance = _squares(problem, rest, error)
        if problem.n < n or (C[member] != beta).any():
            entry_bounds = gram.entry_bounds[:, None]
            sum_errors = (C - sums_by_sample(problem, exact(beta))).size
            error_norm = Ball.within(exact(sum_errors).inner(entry_bounds, axis=0).high)  # at least ‖f − f_β‖
            error = rounded_up(error + (entry_bounds * error_norm.error)[member], 2)
            distance = (exact(_squares(problem, rest, error)) + 0.5 * error_norm.square()).high
            dual = dual + 0.5 * error_norm * (Ball(U, errors).inner(C, axis=0).sqrt() + error_norm)  # ½⟨f_β, f − f_β⟩
        bound = exact(distance)
        return certify_parts(
            problem, b, beta, dual + bound, dual, bound, Ball(target - f, error), Ball(rest, error),
            float(np.maximum.reduce(gram.entry_bounds)), PROOF[gram.positive_definite],
        )  # fmt: skip


def _squares(problem: LeastSquares, rest: Floats, error: Floats) -> Floats:
    """Return upper bounds on Σ w_i(r_i − d_iβ_i)²/(2λ), one per output; squares and products may underflow."""
    size, n = np.abs(rest) + error, len(problem.weight)
    terms = np.add.reduce(size * size * problem.weight[:, None]) + LEAST * (problem.mass + n)
    return np.asarray(rounded_up(terms / (2 * problem.lam), n + _ROUNDINGS))


def certify_limit(problem: LeastSquares, gram: BoundedProducts, C: Floats, U: Floats, b: Floats) -> Certificate:
    """Certify the limit λ = 0, from the coefficients C of the distinct samples, U = KC, and b of each output.

    ½Σw(y − f)² has no dual. Its optimality conditions are the normal equations KW(y − f) = 0 and Σw(y − f) = 0. `gap`
    is the largest decrease by a step along a single k(x_i, ·).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        residual = problem.Y - Ball(U, gram.product_bound(C).error).take(problem.member) - b
        slopes, entry_bounds = sums_by_sample(problem, residual * problem.weight[:, None]), gram.entry_bounds[:, None]
        error_norm = Ball.within(slopes.error).inner(entry_bounds, axis=0)
        gradient = gram.product_bound(slopes.value) + exact(entry_bounds) * error_norm
        return limit_certificate(problem, residual, gradient, problem.total * gram.diagonal**2, b)


def is_exact(problem: LeastSquares, certificate: Certificate) -> bool:
    """Return whether every output is within EXACT_GAP of its optimum.

    For a constant target the optimum is zero, and no relative gap can be reached: the effect of n roundings of y is
    allowed as well. At λ = 0 the optimum is often zero, and the gap may be EXACT_GAP times the variance of y instead.
    """
    parts = certificate.parts or (certificate,)
    if problem.lam == 0:
        mean = problem.weight @ problem.Y / problem.mass if problem.bias else 0.0
        spread = 0.5 * (problem.weight @ (problem.Y - mean) ** 2)
        floor = EXACT_GAP * spread + 0.5 * (problem.weight @ (gamma(len(problem.weight) + 16) * problem.Y) ** 2)
    else:
        floor = problem.weight @ (gamma(len(problem.weight) + 16) * problem.Y) ** 2 / (2 * problem.lam)
    return all(
        part.kkt.get(SUBOPTIMALITY, part.gap) <= EXACT_GAP * part.primal + allowed
        for part, allowed in zip(parts, floor.tolist(), strict=True)
    )


def certify_parts(
    problem: LeastSquares,
    b: Floats,
    beta: Floats,
    primal: Ball,
    dual: Ball,
    distance: Ball,
    residual: Ball,
    rest: Ball,
    reach: float,
    gap_measures: ProvenClaim,
    upper_bound: Floats | None = None,
    shift: Ball | None = None,
    dual_gradient: Ball | None = None,
) -> Certificate:
    """Build a certificate per output from P, `dual` = D(β) − bΣβ, their difference `distance`, r and `rest` = r − dβ.

    `upper_bound` is another upper bound on P − P*. If f is not f_β, then y − f_β − b − dβ is `dual_gradient` (by
    default `rest`) plus `shift`, which all rows share.
    """
    dual_gradient, n = rest if dual_gradient is None else dual_gradient, len(problem.weight)
    totals = column_sums(beta) if problem.bias else np.zeros(problem.n_outputs)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = residual.inner(problem.weight[:, None], axis=0).size if totals.any() else totals
        high, low = (
            np.maximum.reduce(dual_gradient.value + dual_gradient.error),
            np.minimum.reduce(dual_gradient.value - dual_gradient.error),
        )
        size = np.abs(rest.value) + rest.error
        worst = (size * size * problem.weight[:, None]).argmax(axis=0).tolist()
    parts = []
    for k, (total, top, bottom) in enumerate(zip(totals.tolist(), high.tolist(), low.tolist(), strict=True)):
        # 1. |Σβ|, which should be 0, is at most `total_bound`. P* ≥ D(β) − b*Σβ = (D(β) − bΣβ) − (b* − b)Σβ.
        bound = _ball_of_output(distance, k).high
        value, total_bound = _ball_of_output(dual, k), math.nextafter(abs(total), math.inf) if total else 0.0
        if total_bound:
            # distance ≤ first + step·√distance, solved for the distance. All numbers are ≥ 0.
            tilt = rounded_up(float(sums[k]) / problem.mass, n + _ROUNDINGS)
            first, step, product = (
                bound + total_bound * tilt,
                total_bound * reach * math.sqrt(2.0),
                total_bound * abs(float(b[k])),
            )
            slope = math.sqrt(first) + step
            bound = rounded_up(first + step * slope, _ROUNDINGS, slope)
            slope = math.sqrt(bound)
            value = value - rounded_up(max(total_bound * tilt + step * slope, product), _ROUNDINGS, slope)
        # 2. Residuals become bounds: each end was rounded once.
        top, bottom = top + gamma(2) * abs(top), bottom - gamma(2) * abs(bottom)
        spread = top - bottom if problem.bias else 0.0
        if shift is not None:
            common = _ball_of_output(shift, k)
            top, bottom = (exact(top) + common).high, (exact(bottom) + common).low
        largest_residual = max(top, -bottom)
        parts.append(
            Certificate(
                primal=_ball_of_output(primal, k).high,
                dual=value.low,
                gap=bound,  # Certificate raises it to primal − dual, which includes |bΣβ|
                violation=max(largest_residual, rounded_up(spread, 1)),
                kkt={
                    **kkt_residuals(0.0, total_bound, largest_residual, largest_residual),
                    SUBOPTIMALITY: bound if upper_bound is None else min(float(upper_bound[k]), bound),
                },
                gap_measures=gap_measures,
                worst=worst[k],
                b=(float(b[k]),) if problem.bias else (),
            )
        )
    return Certificate.total(parts)


def _ball_of_output(values: Ball, k: int) -> Ball:
    """Return the ball of output k, as floats."""
    return Ball(float(values.value[k]), float(values.error[k]))


def limit_certificate(
    problem: LeastSquares, residual: Ball, gradient: Ball, curvature: Floats, b: Floats
) -> Certificate:
    """Build a certificate per output at λ = 0, from the residuals, the gradient, and the curvature along each axis."""
    weight = problem.weight[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        risk, sums = 0.5 * residual.square().inner(weight, axis=0), residual.inner(weight, axis=0)
        high, low, g = risk.high, risk.low, gradient.size
        root = np.sqrt(2 * curvature[:, None])
        gains = np.divide(g, root, out=np.zeros_like(g), where=root > 0) ** 2
    parts = []
    for k in range(problem.n_outputs):
        gain = float(rounded_up(gains[:, k].max(initial=0.0), _ROUNDINGS))
        kkt = {
            "normal equations": float(g[:, k].max(initial=0.0)),
            "residuals sum to 0": float(sums.size[k]) if problem.bias else 0.0,
        }
        parts.append(
            Certificate(
                primal=float(high[k]),
                dual=float((exact(low[k]) - gain).low),
                gap=gain,
                violation=max(kkt.values()),
                kkt=kkt,
                gap_measures="stationarity",
                worst=int(np.argmax(gains[:, k])) if len(gains) else 0,
                b=(float(b[k]),) if problem.bias else (),
            )
        )
    return Certificate.total(parts)


def column_sums(beta: Floats) -> Floats:
    """Return the exact sum of each column, rounded once; 0 if it is not finite, which the residuals show too."""
    return np.array([math.fsum(column.tolist()) if np.isfinite(column).all() else 0.0 for column in beta.T])


def coefficient_sums(problem: LeastSquares, beta: Floats) -> Floats:
    """Return β summed over the rows of each distinct sample."""
    return np.column_stack([sums_by(problem.member, column, problem.n) for column in beta.T])


def sums_by_sample(problem: LeastSquares, values: Ball) -> Ball:
    """Return `values`, a row per training row and a column per output, summed over the rows of each distinct sample."""
    columns = [Ball(*(part[:, k] for part in values)) for k in range(problem.n_outputs)]
    sums = [column.sum_by(problem.member, problem.n) for column in columns]
    return Ball(*(np.column_stack(parts) for parts in zip(*sums, strict=True)))
