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
from mercer.certificates.certificate import Certificate, conditions
from mercer.places.ball import LEAST, rounded_up
from mercer.places.protocols import Rows
from mercer.problems.linear_problem import LinearProblem
from mercer.samples.arrays import Floats, gamma, inner

# Error of X'β, relative to ‖w‖, from which on it is summed again in twice the precision.
_LARGEST_ERROR_SHARE = 1e-6
_TINY = float(np.finfo(float).tiny)
# Roundings of the core for each number of a sum, and a few more.
_ROUNDINGS = 8
# Roundings of p ∓ ε − f − dβ and of its bounds, and a little more for the sum of their sizes.
_OF_RESIDUALS = 6


def certify_linear(problem: LinearProblem, rows: Rows, w: Floats, b: float, beta: Floats) -> Certificate:
    """Certify (w, b) with a β inside its box, whose sum is zero if the bias is unregularised."""
    curved, tubes = bool(np.count_nonzero(problem.d)), bool(np.count_nonzero(problem.epsilon))
    n, up = rows.n, 1 + gamma(2 * rows.n + rows.d + 4 * _ROUNDINGS)
    with np.errstate(over="ignore", invalid="ignore"):
        # 1. Outputs, and the errors of p ∓ ε − f − dβ: no rounded number is larger than `sizes`, |p| + |f| + ε + |dβ|.
        length = _length(w)
        f = rows.product_bound(w, b)
        sizes = np.abs(problem.p) + np.abs(f.value)
        if tubes:
            sizes += problem.epsilon
        if curved:
            bent = np.abs(problem.d * beta)
            sizes += bent
        errors = gamma(_OF_RESIDUALS) * sizes + f.error
        if rows.origin:  # the bias of rows that were not centred is b − w'c, rounded
            errors += gamma(_ROUNDINGS) * rows.origin * length
        errors = rounded_up(errors, _ROUNDINGS)
        losses, shares, _, worst, box, outward, inward, top, bottom = _core.linear_findings(
            problem.p, problem.lower, problem.upper, problem.d, problem.epsilon, f.value, errors, beta
        )
        # 2. X'β = hi + lo, with an error of at most `missed`. Both differences in (w − hi) − lo are rounded; the first
        #    one is bounded by ‖w − hi‖ ≤ ‖w − hi − lo‖ + ‖lo‖.
        hi, lo, missed = rows.combination(beta, _LARGEST_ERROR_SHARE * length)
        off, below = w - hi, 0.0
        if lo.any():
            off, below = off - lo, _length(lo)
        apart = up * (_length(off) + gamma(1) * below + missed)
        combined = _length(hi) + below + missed
        norm, energy, distance = length * length, combined * combined, apart * apart
        # 3. A bias with a penalty is the weight of one more feature.
        total = _total(beta) if problem.bias else 0.0
        if problem.bias and not problem.exact_bias:
            weight, combination = b / problem.bias, total * problem.bias
            norm, energy = norm + weight * weight, energy + combination * combination
            distance += (weight - combination) * (weight - combination)
        # 4. The primal value is a sum of numbers ≥ 0, one loss per sample or per side of its tube, and is rounded up.
        primal = _raised(0.5 * norm + losses, up, 2 * n + rows.d if length or losses else 0)
        most = math.nextafter(abs(total), math.inf) if total else 0.0
        moved = math.inf if box > 0 else 0.0
        if problem.exact_bias and box <= 0:
            moved = _repair(problem, rows, beta, f.value, errors, b, most, apart, tubes)
        # 5. The dual value is Σ p_iβ_i − `less`. All terms of `less` are ≥ 0; one of them bounds the rounding errors of
        #    the sum and of the subtraction.
        products = problem.p * beta
        less = 0.5 * energy + gamma(n + 2) * float(np.add.reduce(np.abs(products))) + moved
        if curved:  # dβ may have lost LEAST/2
            less += inner(0.5 * bent + LEAST, np.abs(beta))
        if tubes:
            less += inner(problem.epsilon, np.abs(beta))
        dual = float(np.add.reduce(products)) - _raised(less, up, 4 * n + rows.d if less or beta.any() else 0)
        # A β that fits f but not w satisfies every condition except w = X'β. Its violation is what it adds to the gap,
        # as a share of the primal value.
        excess = 0.5 * distance
        missing = excess / max(primal, _TINY) if moved < math.inf else math.inf
    return Certificate(
        primal=primal,
        dual=dual,
        gap=excess + shares,  # Certificate raises it to primal − dual, which includes all rounding errors
        violation=max(missing, top - bottom) if problem.exact_bias else max(missing, top, -bottom),
        kkt={
            **conditions(box, most if problem.exact_bias else 0.0, outward, inward),
            "w is the combination Σβ_i x_i": apart,
        },
        gap_measures="optimality",
        worst=worst,
        b=(b,) if problem.bias else (),
    )


def row_length_bounds(rows: Rows) -> Floats:
    """Upper bound on the length of every row; each square of an entry may have lost LEAST."""
    return np.asarray(rounded_up(np.sqrt(rows.lengths + rows.d * LEAST), rows.d + _ROUNDINGS))


def _length(x: Floats) -> float:
    """Return ‖x‖ before its d + 2 roundings are counted; each square may have lost LEAST/2. Zeros have length 0."""
    square = float(np.add.reduce(x * x))
    return math.sqrt(square + len(x) * LEAST) if square > 0 or x.any() else 0.0


def _raised(value: float, up: float, lost: int) -> float:
    """Return a number ≥ 0 times `up`, plus what `lost` products and a few more lose by underflow; 0 stays 0."""
    return value * up + (lost + _ROUNDINGS) * LEAST if value or lost else 0.0


def _total(beta: Floats) -> float:
    """Return Σβ, computed exactly and rounded once; ∞ where it overflows."""
    try:
        return math.fsum(beta.tolist())
    except (OverflowError, ValueError):  # ∞ − ∞
        return math.inf


def _repair(
    problem: LinearProblem,
    rows: Rows,
    beta: Floats,
    f: Floats,
    errors: Floats,
    b: float,
    most: float,
    apart: float,
    tubes: bool,
) -> float:
    """Bound what moving a sum of size `most` to zero takes from the dual value.

    The variable that is furthest from its bounds takes it, or those that may move take parts of it. `errors` are those
    of p ∓ ε − f − dβ, and their LEASTs are enough for the products here; `apart` bounds ‖w − X'β‖. All other numbers
    are ≥ 0, and the caller counts their roundings.
    """
    if not 0 < most < math.inf:
        return most
    # Within a tube the two sides of zero are two variables.
    room, tube = np.minimum(beta - problem.lower, problem.upper - beta), problem.epsilon
    if tubes:
        room = np.where(tube > 0, np.minimum(room, np.abs(beta)), room)
    j = int(room.argmax())
    if room.item(j) >= most:  # and so above the rounded sum: then the true room is above the true sum
        coefficient, curvature = beta.item(j), problem.d.item(j)
        length = math.sqrt(rows.lengths.item(j) + rows.d * LEAST)
        slope = problem.p.item(j) - math.copysign(tube.item(j), coefficient) - f.item(j) - curvature * coefficient
        doubt = errors.item(j) + length * apart
        steep = abs(slope + b) + doubt
    else:
        lengths, curvature = np.sqrt(rows.lengths + rows.d * LEAST), float(np.maximum.reduce(problem.d))
        slopes = problem.p - f - problem.d * beta
        doubts = errors + lengths * apart + tube  # of either side, as zero may be crossed
        length, steep = float(np.maximum.reduce(lengths)), float(np.maximum.reduce(np.abs(slopes + b) + doubts))
    reach = most * length
    return most * steep + 0.5 * (reach * reach + most * (most * curvature))
