"""The certificate of a machine of one class with the bias that is best for its w.

A certificate takes the mean gradient of the free variables for b. Half of the samples on the boundary are then a little
outside, and each costs its whole weight in the primal value. Where ν is small, so that next to no weight may be
outside, the gap says nothing then. With h = p − Kβ the primal value is, as a function of b,

    ½β'Kβ + Σ w_i max(0, h_i − b) + b·total

which is least where samples with h_i > b weigh at most `total`, and those with h_i ≥ b at least that: a quantile of h.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Floats, gamma, inner
from mercer.certificates.certificate import Certificate, conditions
from mercer.gram.gram import Provable
from mercer.problems.dual_problem import DualProblem

_EPS = float(np.finfo(float).eps)


def with_best_bias(problem: DualProblem, gram: Provable, beta: Floats, certificate: Certificate) -> Certificate:
    """The certificate of β with the b that makes the primal value smallest; the given one if that is no better.

    The problem has one equality, β ≥ 0 and d = 0. The dual value and the violation do not depend on b.
    """
    u = gram.product_bound(beta)
    (total,), n = problem.totals.tolist(), len(beta)
    with np.errstate(over="ignore", invalid="ignore"):
        h = problem.p - u.value
        error = u.error + 2 * _EPS * (np.abs(problem.p) + np.abs(u.value))
        order = np.argsort(-h, kind="stable")
        outside = np.cumsum(problem.upper[order])
        last = order[min(int(np.searchsorted(outside, total * (1 - 4 * n * _EPS))), n - 1)]
        b = float(h[last] + error[last])  # so that rounding does not put this sample outside
        r, error = h - b, error + 2 * _EPS * (np.abs(h) + abs(b))
        losses = problem.upper * np.maximum(r + error, 0.0)
        size = inner(beta, np.abs(u.value) + u.error) + float(losses.sum()) + abs(b * total)
        primal = 0.5 * (inner(beta, u.value) + inner(beta, u.error)) + float(losses.sum()) + b * total
        primal += gamma(n + 16) * size
        outward = float(np.where(beta < problem.upper, r + error, 0.0).max(initial=0.0))
        inward = float(np.where(beta > problem.lower, error - r, 0.0).max(initial=0.0))
    box, equality, *_ = certificate.kkt.values()
    gap = (primal - certificate.dual) * (1 + 2 * _EPS)
    if not gap < certificate.gap:
        return certificate
    return replace(
        certificate, primal=primal, gap=max(gap, 0.0), kkt=conditions(box, equality, outward, inward), b=(b,)
    )
