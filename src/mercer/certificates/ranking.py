"""Certificates of rankings, from coefficients β and the multipliers α of pairs, where β should be A'α.

β̂ = A'α is β up to e_β, and u = Kβ is known up to e. With r ≥ √k(x, x),

    primal ≤ ½β'u + ½|β|'e + Σ C_ij max(0, 1 − (u_i − e_i) + (u_j + e_j))
    dual   ≥ Σα − ½β'u − ½|β|'e − e_β'(|u| + e) − ½(e_β'r)²

The sums over pairs are differences of running sums. Numbers are added in two parts: multiples of a
unit, which makes all their sums exact, and rests, so small that γ_n Σ|terms| does not matter. If a pair's α follows
from the order of other values than u, at most Δ away, the pair violates its condition by at most 2Δ.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.certificates.certificate import Certificate, kkt_residuals
from mercer.certificates.dual import PROOF
from mercer.places.ball import Ball, exact
from mercer.places.gram import BoundedProducts
from mercer.problems.ranking import RankDual, RankProblem
from mercer.samples.arrays import Floats, Precision

# Additions of running sums, besides one for each term.
_ROUNDINGS = 16


def certify_ranking(
    problem: RankProblem, gram: BoundedProducts, beta: Floats, dual: RankDual, tol: float = 0.0
) -> Certificate:
    """Certify β and α, in the highest precision if the relative gap is above `tol` in float64."""
    certificate = _certified(problem, gram, beta, dual, np.float64)
    if gram.levels[-1] != np.float64 and not certificate.relative_gap <= tol:
        certificate = _certified(problem, gram, beta, dual, gram.levels[-1])
    return certificate


def _certified(
    problem: RankProblem, gram: BoundedProducts, beta: Floats, dual: RankDual, level: Precision
) -> Certificate:
    """Certify β and α with products of one precision."""
    C, w, n = problem.C, problem.weight, len(beta)
    pairs, alpha = problem.pairs(dual.r, dual.low, 1.0), dual.alpha
    assert len(pairs[0]) == len(alpha)
    u = gram.product_bound(beta, level=level)
    with np.errstate(over="ignore", invalid="ignore"):
        # 1. The difference of β and A'α, and Σα. An α outside its box stands for the nearest one inside.
        better_sums, worse_sums = _sums(problem, dual.r, dual.r - dual.low, exact(w))
        bound = problem.bound(pairs)
        box = float(np.maximum(alpha - bound, -alpha).max(initial=0.0))
        clipped_alpha, C_weight = exact(alpha) + Ball.within(np.full(len(alpha), box)), C * exact(w)
        coefficients_of_alpha = (
            C_weight * (better_sums - worse_sums)
            + clipped_alpha.sum_by(pairs[0], n)
            - clipped_alpha.sum_by(pairs[1], n)
        )
        difference = Ball.within((beta - coefficients_of_alpha).size)
        gain = C_weight.inner(better_sums) + clipped_alpha.sum()
        # 2. This difference δ changes the energy by Σ δ_i u_i and at most ½(Σ|δ_i|r_i)².
        energy = 0.5 * u.inner(beta)
        dual_value = gain - energy - u.inner(difference) - 0.5 * difference.inner(gram.entry_bounds).square()
        # 3. Sum of all hinge losses that may be positive within the errors of u. A hinge that is wrongly included or
        #    left out, by the rounding of 1 − (u_i − e_i), is no larger than this rounding.
        limits, highest = 1.0 - exact(u.low), u.high
        weight_of_violations, sums_of_values = (
            _sums(problem, highest, -limits.value, values)[0] for values in (exact(w), exact(w) * highest)
        )
        losses = C_weight * (
            limits * weight_of_violations + sums_of_values + exact(w).sum() * Ball.within(limits.error)
        )
        # 4. Pairs whose multipliers follow from the order of r. A pair that the test r_j > fl(r_i − 1) leaves out may
        #    miss 1 by the rounding of that limit. A pair that r_j > fl(r_i − low) includes is below low, as r_j is a
        #    float.
        (i, j), order_error = pairs, exact(2 * float((u - dual.r).size.max(initial=0.0)))
        shortfall = 1.0 - (u.take(i) - u.take(j))
        largest_omission = order_error + Ball.within(float((exact(dual.r) - 1.0).error.max(initial=0.0)))
        outward = np.where(alpha < bound, shortfall.high, 0.0).max(initial=largest_omission.high)
        inward = np.where(alpha > 0, -shortfall.low, 0.0).max(
            initial=(order_error - (1.0 - exact(dual.low))).positive().high
        )
    return Certificate(
        primal=float((energy + losses.sum()).high),
        dual=float(dual_value.low),
        gap=0.0,
        violation=float(max(outward, inward)),
        kkt=kkt_residuals(box, float(difference.error.max(initial=0.0)), float(outward), float(inward)),
        gap_measures=PROOF[gram.positive_definite],
    )


def _sums(problem: RankProblem, r: Floats, limit: Floats, values: Ball) -> tuple[Ball, Ball]:
    """Return `RankProblem.sums` of one number for each sample, with their errors.

    Every value is a multiple of `unit` plus a rest. Sums of the multiples are exact; sums of the rests are differences
    of running sums of at most n terms, two for each pass.
    """
    size = exact(np.abs(values.value)).sum()
    unit = 2.0 ** (math.frexp(size.value)[1] - 51) if 0 < size.value < math.inf else 1.0
    coarse = np.round(values.value / unit) * unit
    fine = values.value - coarse
    sums = problem.sums(r, limit, np.column_stack([coarse, fine]))
    rest_bound = 4 * problem.n_passes * exact(np.abs(fine)).sum()
    errors = Ball.within(rest_bound.rounded(2 * len(r) + _ROUNDINGS).error) + Ball.within(values.error).sum()
    better_sums, worse_sums = (exact(part[:, 0]) + exact(part[:, 1]) + errors for part in sums)
    return better_sums, worse_sums
