"""Certificates of linear machines, from (w, b) and β alone: w need not equal X'β.

    P(w, b) − D(β) = ½‖w − X'β‖² (+ ½(b/B − BΣβ)²) + Σ shares,   every share ≥ 0

The shares are those of `mercer.certificates.dual`, with f = Xw + b in the place of Kβ + b. All sums are float64, and
the gap and the violation include the most that rounding can hide.

With an unregularised bias only a β whose sum is zero is feasible. So D is that of β − te_j, where one variable has
taken the sum t, and with x_j'X'β = f_j − b − x_j'(w − X'β)

    D(β − te_j) ≥ D(β) − |t|·(|p_j − f_j + b − d_jβ_j ∓ ε_j| + ‖x_j‖‖w − X'β‖) − ½t²(‖x_j‖² + d_j)

Every claim is one-sided: only upper bounds of ‖w‖, ‖X'β‖, ‖w − X'β‖ and the losses count, all of them sums, products
and roots of numbers ≥ 0. Their roundings are counted together, and each bound is rounded up once. `gap` is no less than
the difference of the two bounds, so that no error has to be counted in it again.
"""

from __future__ import annotations

import math

import numpy as np

from mercer import _core
from mercer.certificates.certificate import Certificate, kkt_residuals
from mercer.places.ball import LEAST, rounded_up
from mercer.places.protocols import Rows
from mercer.problems.linear_problem import LinearProblem
from mercer.samples.arrays import Floats, gamma, inner

# Error of X'β, relative to ‖w‖, above which X'β is summed again in twice the precision.
_LARGEST_ERROR_SHARE = 1e-6
_TINY = float(np.finfo(float).tiny)
# Roundings of the core for each number of a sum, and a few more.
_ROUNDINGS = 8
# Roundings of p ∓ ε − f − dβ and of its bounds, and a little more for the sum of their sizes.
_RESIDUAL_ROUNDINGS = 6


def certify_linear(problem: LinearProblem, rows: Rows, w: Floats, b: float, beta: Floats) -> Certificate:
    """Certify (w, b) with a β inside its box, whose sum is zero if the bias is unregularised."""
    has_ridge, has_tubes = bool(np.count_nonzero(problem.d)), bool(np.count_nonzero(problem.epsilon))
    n, growth = rows.n, 1 + gamma(2 * rows.n + rows.d + 4 * _ROUNDINGS)
    with np.errstate(over="ignore", invalid="ignore"):
        # 1. Outputs, and the errors of p ∓ ε − f − dβ: no rounded number is larger than `sizes`, |p| + |f| + ε + |dβ|.
        length = _length(w)
        f = rows.product_bound(w, b)
        sizes = np.abs(problem.p) + np.abs(f.value)
        if has_tubes:
            sizes += problem.epsilon
        if has_ridge:
            curvature_terms = np.abs(problem.d * beta)
            sizes += curvature_terms
        errors = gamma(_RESIDUAL_ROUNDINGS) * sizes + f.error
        if rows.origin:  # the bias for samples that are not centred is b − w'c, rounded
            errors += gamma(_ROUNDINGS) * rows.origin * length
        errors = rounded_up(errors, _ROUNDINGS)
        losses, shares, _, worst, box, outward, inward, top, bottom = _core.linear_findings(
            problem.p, problem.lower, problem.upper, problem.d, problem.epsilon, f.value, errors, beta
        )
        # 2. X'β = hi + lo, with an error of at most `sum_error`. Both differences in (w − hi) − lo are rounded; the
        #    first one is bounded by ‖w − hi‖ ≤ ‖w − hi − lo‖ + ‖lo‖.
        hi, lo, sum_error = rows.combination(beta, _LARGEST_ERROR_SHARE * length)
        difference, lo_length = w - hi, 0.0
        if lo.any():
            difference, lo_length = difference - lo, _length(lo)
        distance = growth * (_length(difference) + gamma(1) * lo_length + sum_error)
        norm_of_sum = _length(hi) + lo_length + sum_error
        square, energy, square_distance = length * length, norm_of_sum * norm_of_sum, distance * distance
        # 3. A bias with a penalty is the weight of one more feature, and BΣβ a sum like X'β.
        if problem.bias and not problem.exact_bias:
            weight, combination, combination_error = b / problem.bias, *_bias_combination(problem.bias, beta)
            size, bias_distance = abs(combination) + combination_error, abs(weight - combination) + combination_error
            square, energy = square + weight * weight, energy + size * size
            square_distance += bias_distance * bias_distance
        # 4. The primal value is a sum of numbers ≥ 0, one loss per sample or per side of its tube, and is rounded up.
        primal = _add_underflow(0.5 * square + losses, growth, 2 * n + rows.d if length or losses else 0)
        total = _total(beta) if problem.exact_bias else 0.0
        total_bound = math.nextafter(abs(total), math.inf) if total else 0.0
        repair_cost = math.inf if box > 0 else 0.0
        if problem.exact_bias and box <= 0:
            repair_cost = _repair_cost(problem, rows, beta, f.value, errors, b, total_bound, distance, has_tubes)
        # 5. The dual value is Σ p_iβ_i − `subtrahend`, whose terms are ≥ 0. One of them bounds the rounding errors of
        #    the sum and of the subtraction.
        products = problem.p * beta
        subtrahend = 0.5 * energy + gamma(n + 2) * float(np.add.reduce(np.abs(products))) + repair_cost
        if has_ridge:  # underflow may have reduced each |dβ| by LEAST/2
            subtrahend += inner(0.5 * curvature_terms + LEAST, np.abs(beta))
        if has_tubes:
            subtrahend += inner(problem.epsilon, np.abs(beta))
        dual = float(np.add.reduce(products)) - _add_underflow(
            subtrahend, growth, 4 * n + rows.d if subtrahend or beta.any() else 0
        )
        # If w is not X'β, all other conditions can hold exactly at a β that is not optimal. So the violation includes
        # what ½‖w − X'β‖² adds to the gap, as a share of the primal value.
        excess = 0.5 * square_distance
        gap_share = excess / max(primal, _TINY) if repair_cost < math.inf else math.inf
    return Certificate(
        primal=primal,
        dual=dual,
        gap=excess + shares,  # Certificate raises it to primal − dual, which includes all rounding errors
        violation=max(gap_share, top - bottom) if problem.exact_bias else max(gap_share, top, -bottom),
        kkt={
            **kkt_residuals(box, total_bound if problem.exact_bias else 0.0, outward, inward),
            "w is the combination Σβ_i x_i": distance,
        },
        gap_measures="optimality",
        worst=worst,
        b=(b,) if problem.bias else (),
    )


def row_length_bounds(rows: Rows) -> Floats:
    """Return an upper bound on the length of each row; the square of an entry may underflow by up to LEAST."""
    return np.asarray(rounded_up(np.sqrt(rows.squared_lengths + rows.d * LEAST), rows.d + _ROUNDINGS))


def _length(x: Floats) -> float:
    """Return ‖x‖, whose d + 2 roundings the caller counts; a square may underflow by LEAST/2. Zeros have length 0."""
    square = float(np.add.reduce(x * x))
    return math.sqrt(square + len(x) * LEAST) if square > 0 or x.any() else 0.0


def _add_underflow(value: float, growth: float, n_products: int) -> float:
    """Return value·growth plus the underflow of `n_products` products and a few more; value ≥ 0, and 0 stays 0."""
    return value * growth + (n_products + _ROUNDINGS) * LEAST if value or n_products else 0.0


def _bias_combination(B: float, beta: Floats) -> tuple[float, float]:
    """Return BΣβ and a bound on its error, whose own roundings the caller counts; ∞ where the sum overflows."""
    combination = B * float(np.add.reduce(beta))
    error = gamma(len(beta) + 2) * B * float(np.add.reduce(np.abs(beta)))
    return (combination, error) if math.isfinite(combination) else (math.inf, error)


def _total(beta: Floats) -> float:
    """Return Σβ, computed exactly and rounded once; ∞ where it overflows."""
    try:
        return math.fsum(beta[beta != 0].tolist())
    except (OverflowError, ValueError):  # ∞ − ∞
        return math.inf


def _repair_cost(
    problem: LinearProblem,
    rows: Rows,
    beta: Floats,
    f: Floats,
    errors: Floats,
    b: float,
    total_bound: float,
    distance: float,
    tubes: bool,
) -> float:
    """Bound the dual value that moving Σβ, at most `total_bound`, to zero costs.

    The variable that is furthest from its bounds moves, or, if its bounds are too near, all that can move take parts of
    the sum. `errors` are those of p ∓ ε − f − dβ, and also cover the underflow of the products here; `distance` bounds
    ‖w − X'β‖. All other numbers are ≥ 0, and the caller counts their roundings.
    """
    if not 0 < total_bound < math.inf:
        return total_bound
    # Within a tube the two sides of zero are two variables.
    to_bound, tube = np.minimum(beta - problem.lower, problem.upper - beta), problem.epsilon
    if tubes:
        to_bound = np.where(tube > 0, np.minimum(to_bound, np.abs(beta)), to_bound)
    j = int(to_bound.argmax())
    if to_bound.item(j) >= total_bound:  # above the rounded sum, so that the true distance is above the true sum
        coefficient, curvature = beta.item(j), problem.d.item(j)
        length = math.sqrt(rows.squared_lengths.item(j) + rows.d * LEAST)
        slope = problem.p.item(j) - math.copysign(tube.item(j), coefficient) - f.item(j) - curvature * coefficient
        slope_error = errors.item(j) + length * distance
        slope_bound = abs(slope + b) + slope_error
    else:
        lengths, curvature = np.sqrt(rows.squared_lengths + rows.d * LEAST), float(np.maximum.reduce(problem.d))
        slopes = problem.p - f - problem.d * beta
        slope_errors = errors + lengths * distance + tube  # ε with either sign, as β may cross zero
        length, slope_bound = (
            float(np.maximum.reduce(lengths)),
            float(np.maximum.reduce(np.abs(slopes + b) + slope_errors)),
        )
    reach = total_bound * length
    return total_bound * slope_bound + 0.5 * (reach * reach + total_bound * (total_bound * curvature))
