"""The certificate of linear least squares, from weights w of the features and b.

With β_i = w_i r_i/λ and v = scale·Xᵀβ it is that of mercer.certificates.least_squares, ‖f − f_β‖² = ‖w − v‖²/scale.
Where the features' units differ by many orders of magnitude, the rounding of β alone opens a gap. The gradient at w is
λ(v − w)/scale, and the objective is quadratic, so that

    P − P* ≤ ‖S⁻¹(v − w)‖² λ/(2α scale²)

with the S and α of mercer.certificates.sums, whatever the units. This bound is told beside the gap.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats, gamma
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import (
    EXACT_GAP,
    ROUNDINGS,
    certificate_of_output,
    joint,
    limit_of_outputs,
    of_sums,
    sums_of,
)
from mercer.certificates.sums import least_curvature
from mercer.gram.ball import Ball
from mercer.gram.protocols import LinearGram
from mercer.gram.sums import Sums
from mercer.problems.least_squares import LeastSquares


def certify_weights(
    problem: LeastSquares, linear: LinearGram, W: Floats, b: Floats, centre: Floats | None, sums: Sums | None = None
) -> tuple[Floats | None, Certificate]:
    """The β of the rows that weights of the features give, and the proof of both; no β at λ = 0.

    `centre`, floats near the means of dense samples, keeps columns far from zero from cancelling. `sums` over the
    samples tell how much the objective curves.
    """
    if problem.lam == 0:
        return None, certify_weights_limit(problem, linear, W, b, centre)
    with np.errstate(over="ignore", invalid="ignore"):
        residuals = problem.Y - _values(linear, W, b, centre).take(problem.member)  # y − f − b
        R = residuals.value
        beta = (problem.weight / problem.lam)[:, None] * R
        if problem.bias:  # what rounding left of the sum, spread by weight
            beta -= (problem.weight / problem.mass)[:, None] * beta.sum(axis=0)
            # The rest goes where a number has digits to spare, of a row that is not too light to bear it.
            heavy = np.flatnonzero(problem.weight * len(R) >= problem.mass * (1 - EXACT_GAP))
            least = heavy[np.argmin(np.abs(beta[heavy]), axis=0)]
            beta[least, np.arange(len(b))] -= sums_of(beta)
        totals = sums_of(beta) if problem.bias else np.zeros(len(b))
        apart = W - _combination(problem, linear, beta, totals, centre)  # f − f_β
        distance = 0.5 * np.sum(apart.size**2, axis=0) / linear.scale
        squares = np.sum(W * W, axis=0) / linear.scale + np.sum(problem.weight[:, None] * R**2, axis=0) / problem.lam
        off = (
            np.sum(problem.weight[:, None] * residuals.size * residuals.error, axis=0) / problem.lam
            + of_sums(len(R) + len(W)) * squares
        )
        ridge = (problem.lam / problem.weight)[:, None] * beta
        rest = Ball(R - ridge, residuals.error + ROUNDINGS * (np.abs(R) + np.abs(ridge)))
        # y − f_β − b − dβ = (f − f_β) + (r − dβ); what the centre adds to f − f_β is the same everywhere.
        tilt = linear.times_bound(apart, centre).take(problem.member) + rest
        c = np.zeros(len(W)) if centre is None else centre
        above = _above(problem, linear, R, apart.size, rest.size, totals, sums)
        shift, shift_error = c @ apart.value, np.abs(c) @ apart.rounded(len(c)).error
    parts = [
        certificate_of_output(
            problem,
            float(b[k]),
            total=abs(float(totals[k])),
            primal=0.5 * float(squares[k]),
            distance=float(distance[k]),
            off=float(off[k]),
            residual=R[:, k],
            rest=rest.size[:, k],
            low=tilt.low[:, k],
            high=tilt.high[:, k],
            shift=(float(shift[k]), float(shift_error[k])),
            reach=linear.reach,
            gap_measures="optimality",
            above=float(above[k]),
        )
        for k in range(problem.n_outputs)
    ]
    return beta, Certificate.total(parts)


def _above(
    problem: LeastSquares, linear: LinearGram, R: Floats, apart: Floats, rest: Floats, totals: Floats, sums: Sums | None
) -> Floats:
    """What bounds P − P* of each output; infinite where nothing is known beyond the gap, or nothing needs to be."""
    lam = problem.lam / linear.scale
    squares = np.sum(problem.weight[:, None] * rest**2, axis=0) / (2 * problem.lam)
    plain = 0.5 * np.sum(apart * apart, axis=0) / linear.scale + squares
    risk = np.sum(problem.weight[:, None] * R**2, axis=0) / (2 * problem.lam)
    if sums is None or (plain <= 0.5 * EXACT_GAP * risk).all():
        return np.full(len(risk), np.inf)
    diagonal = np.abs(sums.xx.diagonal()) + lam
    unit = 1.0 / np.sqrt(diagonal)
    alpha = max(lam * float(unit.min()) ** 2, least_curvature(sums, lam, unit))
    slope = lam * (apart + linear.scale * np.abs(np.outer(sums.x, totals)))
    root = np.sqrt(np.sum((unit[:, None] * slope) ** 2, axis=0) / (2 * lam * alpha * linear.scale)) + np.sqrt(squares)
    mean = np.abs(problem.weight @ R) / problem.mass + np.max(rest, axis=0)
    return np.asarray(root**2 + problem.mass * mean**2 / (2 * problem.lam) * bool(problem.bias))


def certify_weights_limit(
    problem: LeastSquares, linear: LinearGram, W: Floats, b: Floats, centre: Floats | None
) -> Certificate:
    """λ = 0 and weights of the features, whose normal equations are XᵀW(y − f) = 0.

    `gap` is the most that a step along a single feature would gain.
    """
    F = _values(linear, W, b, centre)
    R = Ball(problem.mean - F.value, F.error + ROUNDINGS * (np.abs(problem.mean) + np.abs(F.value)))
    total = problem.total[:, None]
    G = linear.transposed_bound(Ball(total * R.value, total * R.error), total * np.abs(R.value), centre)
    return limit_of_outputs(problem, R, G, linear.transposed_squares(problem.total, centre), b)


def _values(linear: LinearGram, W: Floats, b: Floats, centre: Floats | None) -> Ball:
    """f + b of the distinct samples; b + ⟨w, c⟩ is summed in extended precision, where there is one."""
    F = linear.times_bound(Ball(W, 0.0), centre)
    if centre is None:
        return F + b
    wide = b.astype(np.longdouble) + centre.astype(np.longdouble) @ W.astype(np.longdouble)
    summed = (len(W) + 2) * float(np.finfo(np.longdouble).eps) * (np.abs(b) + np.abs(centre) @ np.abs(W))
    return F + Ball(np.asarray(wide, dtype=np.float64), summed).rounded()


def _combination(
    problem: LeastSquares, linear: LinearGram, beta: Floats, totals: Floats, centre: Floats | None
) -> Ball:
    """scale·Xᵀβ over the rows, the weights of f_β."""
    size = joint(problem, np.abs(beta))
    copies = int(np.bincount(problem.member).max())
    V = linear.transposed_bound(Ball(joint(problem, beta), gamma(copies - 1) * size), size, centre)
    if centre is not None:  # the sums of β are rounded too
        V = V + Ball(np.outer(centre, totals), 0.0).rounded(2)
    return V * linear.scale
