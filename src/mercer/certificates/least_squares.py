"""Certificates of least squares: bounds that include the rounding of their own evaluation.

For f and b, and any β with d = λ/w, r = y − f − b and f_β = Σ β_i k(x_i, ·),

    P(f, b) − D(β) = ½‖f − f_β‖² + Σ (r_i − d_iβ_i)²/(2d_i) − bΣβ

A kernel machine has f = f_β; a linear one has weights of its own (mercer.certificates.weights). In exact arithmetic
Σβ = 0 with a bias. Where it is s, the optimum P* is at least D(β) − b*s. The best bias b* for the optimal f* differs
from b by no more than the weighted mean of r and √(2(P − P*))·max √k(x, x), since ½‖f − f*‖² ≤ P − P*. So with G the
first two terms,

    P − P* ≤ near = G + |s|·(|mean r| + √(2·near)·max √k(x, x)),      gap = max(near, G + |b s|) ≥ P − D(β)

D(β) − bΣβ = Σ β_i(r_i + ½f_i − ½d_iβ_i), and `dual` is this less what s costs.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.arrays import Floats, gamma, sums_by
from mercer.certificates.certificate import Certificate, Measures, conditions
from mercer.certificates.dual import PROOF
from mercer.gram.ball import Ball, exact, rounded_up
from mercer.gram.gram import Provable
from mercer.problems.least_squares import LeastSquares

# What "exact" means: a relative gap far below what any target is known to; f is within 1.5e-5 of the optimal one,
# relative to √(2P).
EXACT_GAP = 1e-10
# What is proven of P itself. The gap is often larger: it takes the rounding of β for that of the solution, which counts
# where b is large or the features' units differ much.
ABOVE = "primal value above the optimum"
# Operations on numbers ≥ 0, and a few more.
_ROUNDINGS = 16


def certify_solution(
    problem: LeastSquares, gram: Provable, C: Floats, U: Floats, errors: Floats
) -> tuple[Floats, Certificate]:
    """β of the rows and its proof, from the joint coefficients C; rounding is bounded as closely as it takes."""
    beta = problem.split(C, gram.diagonal)
    certificate = certify_outputs(problem, gram, beta, U, errors, C)
    if not is_exact(problem, certificate):  # KC as exact as it gets, which is slower: column by column
        each = [gram.product_bound(column, level=gram.levels[-1]) for column in C.T]
        U, errors = map(np.column_stack, zip(*each, strict=True))
        certificate = certify_outputs(problem, gram, beta, U, errors, C)
    return beta, certificate


def certify_outputs(
    problem: LeastSquares, gram: Provable, beta: Floats, U: Floats, errors: Floats, C: Floats
) -> Certificate:
    """One part per output; U = KC, exact up to `errors`, with the sums C of β over the rows of each distinct sample.

    Rounding makes sums of β that differ a little from C, and so an f_β that differs from f. All that is claimed holds
    for both.
    """
    u, weight, reach = Ball(U, errors), problem.weight[:, None], gram.reach
    with np.errstate(over="ignore", invalid="ignore"):
        ridge = exact((problem.lam / problem.weight)[:, None]).rounded() * beta  # dβ
        f = u.take(problem.member)
        fitted = f + ridge
        b = problem.weight @ (problem.Y - fitted.value) / problem.mass if problem.bias else np.zeros(problem.n_outputs)
        target = exact(problem.Y) - b
        rest = target - fitted  # r − dβ
        # With a bias, this is D(β) − bΣβ. An error of f is in it once, halved.
        dual = 0.5 * (target + rest).inner(beta, axis=0)
        near = rest.square().inner(weight, axis=0) / (2 * problem.lam)
        if problem.n < len(problem.weight) or (C[problem.member] != beta).any():
            missed = exact((C - joint_sums(problem, exact(beta))).size)
            away = Ball.within(missed.inner(reach[:, None], axis=0).high)  # at least ‖f − f_β‖
            f = f + (exact(reach[:, None]) * away).take(problem.member)
            rest = target - (f + ridge)
            near = rest.square().inner(weight, axis=0) / (2 * problem.lam) + 0.5 * away.square()
            dual = dual + 0.5 * away * (u.inner(C, axis=0).sqrt() + away)  # ½⟨f_β, f − f_β⟩
    return certify_parts(
        problem, b, beta, dual + near, dual, near, target - f, rest, float(reach.max()), PROOF[gram.positive_definite]
    )


def certify_limit(problem: LeastSquares, gram: Provable, C: Floats, U: Floats, b: Floats) -> Certificate:
    """λ = 0, where ½Σw(y − f)² has no dual: the normal equations KW(y − f) = 0 and Σw(y − f) = 0 are left.

    `gap` is the most that a step along a single k(x_i, ·) would gain.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        residual = problem.Y - Ball(U, gram.product_bound(C).error).take(problem.member) - b
        slopes, reach = joint_sums(problem, residual * problem.weight[:, None]), gram.reach[:, None]
        missed = Ball.within(slopes.error).inner(reach, axis=0)
        gradient = gram.product_bound(slopes.value) + exact(reach) * missed
        return limit_of_outputs(problem, residual, gradient, problem.total * gram.diagonal**2, b)


def is_exact(problem: LeastSquares, certificate: Certificate) -> bool:
    """Whether every output is as close to its optimum as promised.

    Where the optimum is zero, for a constant target, no share of it can be reached: what the rounding of y alone
    would do, n times over, is allowed as well. At λ = 0 the optimum is often zero, and the spread of y takes its place.
    """
    parts = certificate.parts or (certificate,)
    if problem.lam == 0:
        mean = problem.weight @ problem.Y / problem.mass if problem.bias else 0.0
        spread = 0.5 * (problem.weight @ (problem.Y - mean) ** 2)
        floor = EXACT_GAP * spread + 0.5 * (problem.weight @ (gamma(len(problem.weight) + 16) * problem.Y) ** 2)
    else:
        floor = problem.weight @ (gamma(len(problem.weight) + 16) * problem.Y) ** 2 / (2 * problem.lam)
    return all(
        part.kkt.get(ABOVE, part.gap) <= EXACT_GAP * part.primal + allowed
        for part, allowed in zip(parts, floor.tolist(), strict=True)
    )


def certify_parts(
    problem: LeastSquares,
    b: Floats,
    beta: Floats,
    primal: Ball,
    dual: Ball,
    near: Ball,
    residual: Ball,
    rest: Ball,
    reach: float,
    gap_measures: Measures,
    above: Floats | None = None,
    shift: Ball | None = None,
    left: Ball | None = None,
) -> Certificate:
    """One part per output, of P, D(β) − bΣβ and their difference `near`, and the residuals r and r − dβ.

    `above` bounds P − P* in another way. What β leaves, y − f_β − b − dβ, is `left`, or r − dβ, plus a `shift` that all
    rows share.
    """
    left = rest if left is None else left
    total = np.abs(sums_of(beta)) if problem.bias else np.zeros(problem.n_outputs)
    total = np.nextafter(total, np.inf) * (total > 0)  # of sums that were rounded once
    with np.errstate(over="ignore", invalid="ignore"):
        # 1. Σβ = 0 is missed by `total`. D(β) − bΣβ then is Σβ times b* − b above a bound on the optimum.
        gaps = nearest = near.high
        if total.any():
            sums = residual.inner(problem.weight[:, None], axis=0).size
            # near = first + step·√near at most, solved for near. All numbers are ≥ 0.
            tilt = rounded_up(sums / problem.mass, len(problem.weight) + _ROUNDINGS)
            first, step = gaps + total * tilt, total * reach * math.sqrt(2.0)
            slope = np.sqrt(first) + step
            nearest = rounded_up(first + step * slope, _ROUNDINGS, slope)
            own = total * np.abs(b)
            gaps = np.maximum(nearest, rounded_up(gaps + own, _ROUNDINGS))
            slope = np.sqrt(nearest)
            dual = dual - rounded_up(np.maximum(total * tilt + step * slope, own), _ROUNDINGS, slope)
        # 2. Values and residuals become bounds.
        highest, lowest, low, high = primal.high, dual.low, left.low, left.high
        apart = np.maximum.reduce(high) - np.minimum.reduce(low) if problem.bias else np.zeros(len(b))
        ends = (low, high) if shift is None else ((exact(low) + shift).low, (exact(high) + shift).high)
        outside = np.maximum.reduce(np.maximum(-ends[0], ends[1]))
        violation = np.maximum(rounded_up(apart, 1), outside)
        worst = (rest.size**2 * problem.weight[:, None]).argmax(axis=0)
    above = nearest if above is None else np.minimum(above, nearest)
    return Certificate.total(
        [
            Certificate(
                primal=float(highest[k]),
                dual=float(lowest[k]),
                gap=float(gaps[k]),
                violation=float(violation[k]),
                kkt={**conditions(0.0, float(total[k]), residue, residue), ABOVE: float(above[k])},
                gap_measures=gap_measures,
                worst=int(worst[k]),
                b=(float(b[k]),) if problem.bias else (),
            )
            for k, residue in enumerate(outside.tolist())
        ]
    )


def limit_of_outputs(
    problem: LeastSquares, residual: Ball, gradient: Ball, curvature: Floats, b: Floats
) -> Certificate:
    """λ = 0: residuals of the rows, the gradient, and how the objective curves along each of its axes."""
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


def sums_of(beta: Floats) -> Floats:
    """The exact sum of each column, rounded once; 0 where it is not finite, which the residuals show."""
    return np.array([math.fsum(column.tolist()) if np.isfinite(column).all() else 0.0 for column in beta.T])


def joint(problem: LeastSquares, beta: Floats) -> Floats:
    """β summed over the rows of each distinct sample."""
    return np.column_stack([sums_by(problem.member, column, problem.n) for column in beta.T])


def joint_sums(problem: LeastSquares, values: Ball) -> Ball:
    """Numbers of the rows, a column per output, summed over the rows of each distinct sample."""
    columns = [Ball(*(part[:, k] for part in values)) for k in range(problem.n_outputs)]
    each = [column.sum_by(problem.member, problem.n) for column in columns]
    return Ball(*(np.column_stack(parts) for parts in zip(*each, strict=True)))
