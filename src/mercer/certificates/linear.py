"""The certificate of a linear machine, from (w, b) and β alone: w need not equal X'β.

    P(w, b) − D(β) = ½‖w − X'β‖² (+ ½(b/B − BΣβ)²) + Σ shares,   every share ≥ 0

The shares are those of `mercer.certificates.dual`, with f = Xw + b in the place of Kβ + b. All sums are float64, and
the gap and the violation include the most that rounding can hide.

With an unregularised bias only a β whose sum is zero is feasible. So D is that of β − te_j, where one variable has
taken the sum t, and with x_j'X'β = f_j − b − x_j'(w − X'β)

    P(w, b) − D(β − te_j) ≤ ½‖w − X'β‖² + Σ shares + |t|·(|p_j − f_j − d_jβ_j ∓ ε_j| + ‖x_j‖‖w − X'β‖)
                            + ½t²(‖x_j‖² + d_j)
"""

from __future__ import annotations

import math

import numpy as np

from mercer import _core
from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate, conditions
from mercer.gram.ball import LEAST, Ball, exact, rounded_up
from mercer.gram.protocols import Rows
from mercer.problems.linear_problem import LinearProblem

# A larger error of X'β, as a share of ‖w‖, is worth a second sum in twice the precision.
_LARGEST_ERROR_SHARE = 1e-6
_TINY = float(np.finfo(float).tiny)
# Operations of the core on each number of a sum, and a few more.
_ROUNDINGS = 8
# Roundings of p ∓ ε − f − dβ and of its bounds, and a little more for the sum of their sizes.
_OF_RESIDUALS = 6


def certify_linear(problem: LinearProblem, rows: Rows, w: Floats, b: float, beta: Floats) -> Certificate:
    """The certificate of (w, b) and of a β inside its box, whose sum is zero if the bias is unregularised."""
    curved, tubes = bool(problem.d.any()), bool(problem.epsilon.any())
    with np.errstate(over="ignore", invalid="ignore"):
        length = exact(w).norm()
        f = rows.product_bound(w, b)
        if rows.origin:  # the bias of rows that were not centred is b − w'c, rounded
            f = f + Ball.within((length * rows.origin).rounded(_ROUNDINGS).error)
        hi, lo, combined_error = rows.combination(beta, _LARGEST_ERROR_SHARE * length.high)
        losses, shares, _, worst, box, outward, inward, top, bottom = _core.linear_findings(
            problem.p, problem.lower, problem.upper, problem.d, problem.epsilon, f.value,
            _errors_of_residuals(problem, f, beta), beta,
        )  # fmt: skip
        combined, missed = exact(hi) + lo if lo.any() else exact(hi), Ball.within(combined_error)  # X'β
        off = w - combined
        apart = off.norm() + missed
        norm, energy, distance = length.square(), (combined.norm() + missed).square(), apart.square()
        total = _total(beta) if problem.bias else exact(0.0)
        if problem.bias not in (0, np.inf):
            own, meant = exact(b) / problem.bias, total * problem.bias
            norm, energy, distance = norm + own.square(), energy + meant.square(), distance + (own - meant).square()
        # One loss of each sample, or of the two sides of its tube, is a number ≥ 0 after a few roundings.
        primal = norm * 0.5 + exact(losses).rounded((1 + tubes) * rows.n + _ROUNDINGS)
        dual = exact(problem.p).inner(beta) - energy * 0.5
        if curved:
            dual = dual - exact(beta).square().inner(problem.d) * 0.5
        if tubes:
            dual = dual - exact(problem.epsilon).inner(np.abs(beta))
        to_gap = to_dual = math.inf if box > 0 else 0.0
        if problem.exact_bias and box <= 0:
            to_gap, to_dual = _repair(problem, rows, beta, f, b, total.size, apart.size)
        # A β that fits f but not w satisfies every condition except w = X'β. Its violation is what it adds to the gap,
        # as a share of the primal value.
        excess = (distance * 0.5).high
        share = rounded_up(excess / max(primal.high, _TINY), 1) if excess else 0.0
    missing = share if to_gap < math.inf else math.inf
    return Certificate(
        primal=primal.high,
        dual=(dual - to_dual).low,
        gap=excess + shares + to_gap,  # and at least the difference of the two, which has all errors
        violation=max(missing, top - bottom) if problem.exact_bias else max(missing, top, -bottom),
        kkt={
            **conditions(box, total.size if problem.exact_bias else 0.0, outward, inward),
            "w is the combination Σβ_i x_i": float(off.size.max(initial=0.0)),
        },
        gap_measures="optimality",
        worst=worst,
        b=(b,) if problem.bias else (),
    )


def longest(rows: Rows) -> Floats:
    """The length of every row, or a little more: each square of an entry may have lost LEAST."""
    return np.asarray(rounded_up(np.sqrt(rows.lengths + rows.d * LEAST), rows.d + _ROUNDINGS))


def _total(beta: Floats) -> Ball:
    """Σβ, which is computed exactly and rounded once."""
    try:
        return exact(math.fsum(beta.tolist())).rounded()
    except (OverflowError, ValueError):  # ∞ − ∞
        return Ball.within(math.inf)


def _errors_of_residuals(problem: LinearProblem, f: Ball, beta: Floats) -> Floats:
    """Bound the errors of p ∓ ε − f − dβ as the core computes them.

    Each rounding is of a number that is no larger than all sizes together.
    """
    sizes = np.abs(problem.p) + problem.epsilon + np.abs(f.value) + np.abs(problem.d * beta)
    return np.asarray(Ball(sizes, f.error).rounded(_OF_RESIDUALS).error)


def _repair(
    problem: LinearProblem, rows: Rows, beta: Floats, f: Ball, b: float, most: float, apart: float
) -> tuple[float, float]:
    """Bound what moving a sum of size `most` to zero adds to the gap, and takes from the dual value.

    The variable with the most room takes it, or those that may move take parts of it. `apart` bounds ‖w − X'β‖.
    """
    if not 0 < most < math.inf:
        return most, most
    # Within a tube the two sides of zero are two variables.
    room, tube = np.minimum(beta - problem.lower, problem.upper - beta), problem.epsilon
    if tube.any():
        room = np.where(tube > 0, np.minimum(room, np.abs(beta)), room)
    j = int(np.argmax(room))
    alone = math.nextafter(float(room[j]), -math.inf) >= most  # a difference, rounded once
    which = slice(j, j + 1) if alone else slice(None)
    own, lengths = beta[which], rounded_up(np.sqrt(rows.lengths[which] + rows.d * LEAST), rows.d + _ROUNDINGS)
    slopes = problem.p[which] - f.take(which) - exact(problem.d[which]) * own
    slopes = slopes + Ball.within(rounded_up(lengths * apart, 1))
    if tube.any():
        slopes = slopes - tube[which] * np.sign(own)
        if not alone:  # zero may be crossed
            slopes = slopes + Ball.within(2 * tube)
    # All numbers are ≥ 0.
    length, curvature = most * np.maximum.reduce(lengths), np.maximum.reduce(problem.d[which])
    second, factor = 0.5 * (length * length + most * most * curvature), length + curvature
    costs = most * np.maximum.reduce(slopes.size) + second, most * np.maximum.reduce((slopes + b).size) + second
    return float(rounded_up(costs[0], _ROUNDINGS, factor)), float(rounded_up(costs[1], _ROUNDINGS, factor))
