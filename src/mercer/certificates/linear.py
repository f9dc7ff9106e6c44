"""The certificate of a linear machine, from (w, b) and β alone: w need not equal X'β.

    P(w, b) − D(β) = ½‖w − X'β‖² (+ ½(b/B − BΣβ)²) + Σ shares,   every share ≥ 0

The shares are those of `mercer.certificates.dual`, with f = Xw + b in the place of Kβ + b; all sums are float64.
"""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.arrays import Floats, inner
from mercer.certificates.certificate import Certificate
from mercer.gram.linear_rows import LinearRows
from mercer.problems.linear_problem import LinearProblem


def certify_linear(problem: LinearProblem, rows: LinearRows, w: Floats, b: float, beta: Floats) -> Certificate:
    """The certificate of (w, b) and of a β inside its box, whose sum is zero if the bias is unregularised."""
    f = rows.product(w, b)
    off = w - rows.transposed(beta)
    combined = w - off
    losses, shares, total, worst, box, outward, inward, top, bottom = _core.linear_findings(
        problem.p, problem.lower, problem.upper, problem.d, problem.epsilon, f, beta
    )
    norm, energy, distance = inner(w, w), inner(combined, combined), inner(off, off)
    if problem.bias not in (0, np.inf):
        own, meant = b / problem.bias, problem.bias * total
        norm, energy, distance = norm + own * own, energy + meant * meant, distance + (own - meant) * (own - meant)
    primal = 0.5 * norm + losses
    # A β that fits f but not w satisfies every condition except w = X'β. Its violation is what it adds to the gap, as
    # a share of the primal value.
    apart = 0.5 * distance / max(primal, np.finfo(float).tiny) if distance else 0.0
    return Certificate(
        primal=primal,
        dual=problem.value(beta, energy),
        gap=0.5 * distance + shares,
        violation=max(apart, top - bottom) if problem.exact_bias else max(apart, top, -bottom),
        kkt={
            "dual feasibility: box": box,
            "dual feasibility: equality": abs(total) if problem.exact_bias else 0.0,
            "primal feasibility": outward,
            "complementary slackness": inward,
            "w is the combination Σβ_i x_i": float(np.abs(off).max(initial=0.0)),
        },
        proves="optimality",
        worst=worst,
        b=(b,) if problem.bias else (),
    )
