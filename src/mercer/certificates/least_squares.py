"""Certificates of least squares: bounds that include the rounding of their own evaluation.

For f and b, and any β with d = λ/w, r = y − f − b and f_β = Σ β_i k(x_i, ·),

    P(f, b) − D(β) = ½‖f − f_β‖² + Σ (r_i − d_iβ_i)²/(2d_i) − bΣβ

A kernel machine has f = f_β; a linear one has weights of its own (mercer.certificates.weights). In exact arithmetic
Σβ = 0 with a bias. Where it is s, the optimum P* is at least D(β) − b*s. The best bias b* for the optimal f* differs
from b by no more than the weighted mean of r and √(2(P − P*))·max √k(x, x), since ½‖f − f*‖² ≤ P − P*. So with G the
first two terms,

    P − P* ≤ near = G + |s|·(|mean r| + √(2·near)·max √k(x, x)),      gap = max(near, G + |b s|) ≥ P − D(β)

`dual` is P minus that gap. Every residual enters with the bound of its error added.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.arrays import Floats, gamma, sums_by
from mercer.certificates.certificate import Certificate, Measures, conditions
from mercer.certificates.dual import PROOF
from mercer.gram.ball import Ball
from mercer.gram.gram import Provable
from mercer.problems.least_squares import LeastSquares

# What "exact" means: a relative gap far below what any target is known to; f is within 1.5e-5 of the optimal one,
# relative to √(2P).
EXACT_GAP = 1e-10
# What is proven of P itself. The gap is often larger: it takes the rounding of β for that of the solution, which counts
# where b is large or the features' units differ much.
ABOVE = "primal value above the optimum"
# A few operations on a number, as a share of it.
ROUNDINGS = gamma(6)
# Operations on each term of a sum, and a few sums of sums.
_PER_TERM = 16
# What is allowed to the sums of squares behind a gap at least, one of which has a term for each feature.
_SLACK = 1e-10


def of_sums(n: int) -> float:
    """The relative error of sums of n terms of one sign, in any order: NumPy adds columns one row after another."""
    return gamma(n + _PER_TERM)


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

    Rounding makes sums of β that differ a little from C, and so an f_β that differs from f.
    """
    own, root = joint(problem, beta), gram.reach
    reach, twist, apart = float(root.max()), np.zeros((1, problem.n_outputs)), np.zeros(problem.n_outputs)
    with np.errstate(over="ignore", invalid="ignore"):
        if problem.n < len(problem.weight) or not np.array_equal(C, own):  # else f_β is f
            copies = int(np.bincount(problem.member).max())
            size = joint(problem, np.abs(beta)) if copies > 1 else np.zeros_like(own)
            apart = root @ (np.abs(C - own) + gamma(copies + 2) * size)  # at least ‖f − f_β‖
            twist = np.outer(root, apart)[problem.member]
        F = U[problem.member]
        ridge = (problem.lam / problem.weight)[:, None] * beta
        H = problem.Y - F - ridge
        b = problem.weight @ H / problem.mass if problem.bias else np.zeros(problem.n_outputs)
        rest = H - b
        errors = errors[problem.member] + ROUNDINGS * (np.abs(problem.Y) + np.abs(F) + np.abs(ridge) + np.abs(b))
        squares = np.sum(C * U, axis=0) + np.sum(problem.weight[:, None] * (rest + ridge) ** 2, axis=0) / problem.lam
        # Of ½β'Kβ: errors of f, and what f_β has that f has not, ‖f‖ times their distance; roundings of sums. The dual
        # value has no more (with the linear term, the distance counts twice), the primal value has the losses too.
        energy, moved = 0.5 * np.sum(np.abs(beta) * errors, axis=0), errors + twist
        below = energy + 2 * apart * (np.sqrt(np.abs(np.sum(C * U, axis=0)) + 2 * energy) + apart)
        below += of_sums(len(beta)) * (np.sum(np.abs(C * U), axis=0) + np.abs(squares) + below)
        lost = problem.weight[:, None] * moved * (np.abs(rest + ridge) + 0.5 * moved)
        off = below + (1 + of_sums(len(beta))) * np.sum(lost, axis=0) / problem.lam
    totals = sums_of(beta) if problem.bias else np.zeros(problem.n_outputs)
    return Certificate.total(
        [
            certificate_of_output(
                problem,
                float(b[k]),
                total=abs(float(totals[k])),
                primal=0.5 * float(squares[k]),
                distance=0.5 * float(apart[k] * apart[k]),
                twist=twist[:, k],
                off=float(off[k]),
                below=float(below[k]),
                residual=rest[:, k] + ridge[:, k],
                rest=np.abs(rest[:, k]) + errors[:, k],
                low=rest[:, k] - errors[:, k] - twist[:, k],
                high=rest[:, k] + errors[:, k] + twist[:, k],
                shift=(0.0, 0.0),
                reach=reach,
                gap_measures=PROOF[gram.positive_definite],
            )
            for k in range(problem.n_outputs)
        ]
    )


def certify_limit(problem: LeastSquares, gram: Provable, C: Floats, U: Floats, b: Floats) -> Certificate:
    """λ = 0, where ½Σw(y − f)² has no dual: the normal equations KW(y − f) = 0 and Σw(y − f) = 0 are left.

    `gap` is the most that a step along a single k(x_i, ·) would gain.
    """
    error = gram.product_bound(C).error
    R = Ball(problem.mean - U - b, error + ROUNDINGS * (np.abs(problem.mean) + np.abs(U) + np.abs(b)))
    total, root = problem.total[:, None], gram.reach
    G = gram.product_bound(total * R.value)
    G = Ball(G.value, G.error + np.outer(root, root @ (total * R.error)))
    return limit_of_outputs(problem, R, G, problem.total * gram.diagonal**2, b)


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


def certificate_of_output(
    problem: LeastSquares,
    b: float,
    *,
    total: float,
    primal: float,
    off: float,
    distance: float,
    residual: Floats,
    rest: Floats,
    low: Floats,
    high: Floats,
    shift: tuple[float, float],
    reach: float,
    gap_measures: Measures,
    above: float = math.inf,
    twist: Floats | float = 0.0,
    below: float | None = None,
) -> Certificate:
    """One output's, where |Σβ| = `total`, and P is within `off` of `primal`.

    D is less than what the other numbers say by no more than `below`, or than `off`.

    ½‖f − f_β‖² ≤ `distance` and |r − dβ| ≤ `rest`; rounding of the sums of β moves f_β(x) by at most `twist`. All that
    is claimed holds for f and for f_β, whose residual is within rest + twist. What β leaves, y − f_β − b − dβ, lies
    between `low` and `high`, plus a `shift` that all rows share, known up to its second number.
    """
    summed = 1 + max(_SLACK, of_sums(len(rest)))
    with np.errstate(over="ignore", invalid="ignore"):
        rest = rest + 2 * twist
        shares = rest * rest * problem.weight
        near = gap = summed * (distance + float(np.sum(shares)) / (2 * problem.lam))
        if total:
            mean = abs(float(problem.weight @ residual)) / problem.mass + float(np.max(rest))
            # near = first + total·reach·√(2·near) at most, solved for near.
            first, step = near + total * mean, total * reach * math.sqrt(2.0)
            near = summed * (first + step * math.sqrt(first) + step * step)
            gap = max(near, summed * (gap + total * abs(b)))
        outside = float(np.maximum(np.abs(low + shift[0]), np.abs(high + shift[0])).max(initial=0.0)) + shift[1]
        apart = float(high.max(initial=0.0) - low.min(initial=0.0)) if problem.bias else 0.0
        # Both values become bounds. The last factor is for the two roundings of `dual`.
        primal, gap = primal + off, gap + off + (off if below is None else below)
        dual = primal - gap - 2 * ROUNDINGS * (abs(primal) + gap)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        violation=max(apart, outside),
        kkt={**conditions(0.0, total, outside, outside), ABOVE: min(above, near)},
        gap_measures=gap_measures,
        worst=int(np.argmax(shares)),
        b=(b,) if problem.bias else (),
    )


def limit_of_outputs(problem: LeastSquares, R: Ball, G: Ball, curvature: Floats, b: Floats) -> Certificate:
    """λ = 0: residuals of the distinct samples, the gradient, and how the objective curves along each of its axes."""
    apart = problem.Y - problem.mean[problem.member]
    rows = np.abs(apart + R.value[problem.member])
    off = R.error[problem.member] + ROUNDINGS * (np.abs(problem.Y) + np.abs(apart) + rows)
    summed = of_sums(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        risks = 0.5 * (problem.weight @ rows**2)
        offs = problem.weight @ (off * (rows + 0.5 * off)) * (1 + summed) + summed * risks  # of half the risk
    parts = []
    for k in range(problem.n_outputs):
        high, low = float(risks[k] + offs[k]), float(risks[k] - offs[k])
        g = G.size[:, k]
        gains = np.divide(g * g, 2 * curvature, out=np.zeros_like(g), where=curvature > 0)
        sums = abs(float(problem.total @ R.value[:, k])) + float(problem.total @ R.error[:, k]) if problem.bias else 0.0
        gain = float(gains.max(initial=0.0))
        kkt = {"normal equations": float(g.max(initial=0.0)), "residuals sum to 0": sums}
        parts.append(
            Certificate(
                primal=high,
                dual=low - gain,
                gap=max(gain, high - (low - gain)),
                violation=max(kkt.values()),
                kkt=kkt,
                gap_measures="stationarity",
                worst=int(np.argmax(gains)) if len(gains) else 0,
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
