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
from mercer.arrays import Floats, gamma, inner
from mercer.arrays import norm as norm_of
from mercer.certificates.certificate import Certificate, conditions
from mercer.gram.ball import Ball
from mercer.gram.protocols import Rows
from mercer.problems.linear_problem import LinearProblem

# A larger error of X'β, as a share of ‖w‖, is worth a second sum in twice the precision.
_LARGEST_ERROR_SHARE = 1e-6


def certify_linear(problem: LinearProblem, rows: Rows, w: Floats, b: float, beta: Floats) -> Certificate:
    """The certificate of (w, b) and of a β inside its box, whose sum is zero if the bias is unregularised."""
    f, error = rows.product_bound(w, b)
    # The bias of rows that were not centred is b − w'c, rounded.
    error = error + gamma(4) * rows.origin * norm_of(w) + gamma(2) * (np.abs(problem.p) + np.abs(f))
    hi, lo, combined_error = rows.combination(beta, _LARGEST_ERROR_SHARE * norm_of(w))
    off = (w - hi) - lo
    off_error = combined_error + gamma(4) * norm_of(off) + gamma(2) * norm_of(lo)
    losses, shares, total, worst, box, outward, inward, top, bottom = _core.linear_findings(
        problem.p, problem.lower, problem.upper, problem.d, problem.epsilon, f, error, beta
    )
    norm, energy = inner(w, w), _square(norm_of(hi) + norm_of(lo) + combined_error)
    distance = _square(norm_of(off) + off_error)
    total_error = gamma(rows.n) * float(np.abs(beta).sum())
    if problem.bias not in (0, np.inf):
        own, meant = b / problem.bias, problem.bias * total
        wrong = problem.bias * total_error + gamma(2) * (abs(own) + abs(meant))
        norm, energy = norm + own * own, energy + _square(abs(meant) + wrong)
        distance += _square(abs(own - meant) + wrong)
    summed = gamma(rows.n + rows.d + 8)
    primal = (0.5 * norm + losses) * (1 + summed)
    terms = (np.abs(problem.p) + problem.epsilon + 0.5 * problem.d * np.abs(beta)) * np.abs(beta)
    to_gap = to_dual = math.inf if box > 0 else 0.0
    if problem.exact_bias and box <= 0:
        apart = norm_of(off) + off_error
        to_gap, to_dual = _repair(problem, rows, beta, Ball(f, error), b, abs(total) + total_error, apart)
    dual = problem.value(beta, energy) - 2 * summed * (float(terms.sum()) + energy) - to_dual
    gap = (0.5 * distance + shares + to_gap) * (1 + summed)
    # A β that fits f but not w satisfies every condition except w = X'β. Its violation is what it adds to the gap, as
    # a share of the primal value.
    missed = 0.5 * distance / max(primal, np.finfo(float).tiny) if distance else 0.0
    missed = missed if to_gap < math.inf else math.inf
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        violation=max(missed, top - bottom) if problem.exact_bias else max(missed, top, -bottom),
        kkt={
            **conditions(box, abs(total) if problem.exact_bias else 0.0, outward, inward),
            "w is the combination Σβ_i x_i": float(np.abs(off).max(initial=0.0)),
        },
        gap_measures="optimality",
        worst=worst,
        b=(b,) if problem.bias else (),
    )


def longest(rows: Rows) -> Floats:
    """The length of every row, or a little more."""
    return np.sqrt(rows.lengths) * (1 + gamma(rows.d + 8))


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
    alone = bool(room[j] * (1 - gamma(4)) >= most)
    which = slice(j, j + 1) if alone else slice(None)
    p, d, own, tube = problem.p[which], problem.d[which], beta[which], tube[which]
    lengths = np.sqrt(rows.lengths[which]) * (1 + gamma(rows.d + 8))
    r = p - f.value[which] - d * own - tube * np.sign(own)
    slack = f.error[which] + lengths * apart + gamma(8) * (np.abs(p) + np.abs(f.value[which]) + abs(b))
    if not alone:  # zero may be crossed
        slack = slack + 2 * tube
    second = 0.5 * most * most * (float(lengths.max()) ** 2 + float(d.max()))
    to_gap = most * float((np.abs(r) + slack).max()) + second
    to_dual = most * float((np.abs(r + b) + slack).max()) + second
    return to_gap * (1 + gamma(16)), to_dual * (1 + gamma(16))


def _square(x: float) -> float:
    """x², infinite where `**` would raise an error."""
    return x * x
