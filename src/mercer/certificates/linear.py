"""The certificate of a linear machine, from (w, b) and β alone: w need not equal X'β.

    P(w, b) − D(β) = ½‖w − X'β‖² (+ ½(b/B − BΣβ)²) + Σ shares,   every share ≥ 0

The shares are those of `mercer.certificates.dual`, with f = Xw + b in the place of Kβ + b. With an unregularised bias
b·Σβ joins them. All sums are float64, and the gap and the violation include the most that rounding can hide.
"""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.arrays import Floats, gamma, inner
from mercer.arrays import norm as norm_of
from mercer.certificates.certificate import Certificate, conditions
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
    unbalanced = abs(b) * (abs(total) + total_error) if problem.exact_bias else 0.0
    dual = problem.value(beta, energy) - 2 * summed * (float(terms.sum()) + energy) - unbalanced
    gap = (0.5 * distance + shares + unbalanced) * (1 + summed)
    # A β that fits f but not w satisfies every condition except w = X'β. Its violation is what it adds to the gap, as
    # a share of the primal value.
    apart = 0.5 * distance / max(primal, np.finfo(float).tiny) if distance else 0.0
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        violation=max(apart, top - bottom) if problem.exact_bias else max(apart, top, -bottom),
        kkt={
            **conditions(box, abs(total) if problem.exact_bias else 0.0, outward, inward),
            "w is the combination Σβ_i x_i": float(np.abs(off).max(initial=0.0)),
        },
        gap_measures="optimality",
        worst=worst,
        b=(b,) if problem.bias else (),
    )


def _square(x: float) -> float:
    """x², infinite where `**` would raise an error."""
    return x * x
