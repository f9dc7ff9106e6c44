"""Certificates of one-class machines with the bias that is best for their w.

`mercer.certificates.dual` takes the mean gradient of the free variables for b. Half of the samples on the boundary are
then a little outside, and each adds its whole weight to the primal value. For a small ν, which allows hardly any weight
outside, the gap then proves nothing. With h = p − Kβ the primal value is, as a function of b,

    ½β'Kβ + Σ w_i max(0, h_i − b) + b·total

which is least where samples with h_i > b weigh at most `total`, and those with h_i ≥ b at least that: a quantile of h.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.certificates.certificate import Certificate, kkt_residuals
from mercer.certificates.dual import STATED_ROUNDINGS
from mercer.places.ball import exact
from mercer.places.gram import BoundedProducts
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats

_EPS = float(np.finfo(float).eps)


def with_best_bias(problem: DualProblem, gram: BoundedProducts, beta: Floats, certificate: Certificate) -> Certificate:
    """Return the certificate of β with the b of the smallest primal value, or the given one if its gap is no larger.

    The problem has one equality, β ≥ 0 and d = 0. The dual value and the violation do not depend on b.
    """
    u = gram.product_bound(beta)
    (total,), n = problem.totals.tolist(), len(beta)
    with np.errstate(over="ignore", invalid="ignore"):
        h = problem.p - u
        order = np.argsort(-h.value, kind="stable")
        mass_outside = np.cumsum(problem.upper[order])
        last = order[min(int(np.searchsorted(mass_outside, total * (1 - 4 * n * _EPS))), n - 1)]
        b = float(h.high[last])  # so that rounding does not put this sample outside
        r = h - b
        upper, stated_total = exact(problem.upper).rounded(STATED_ROUNDINGS), exact(total).rounded(STATED_ROUNDINGS)
        value = 0.5 * u.inner(beta) + r.positive().inner(upper) + b * stated_total
        outward = float(np.where(beta < problem.upper, r.high, 0.0).max(initial=0.0))
        inward = float(np.where(beta > problem.lower, -r.low, 0.0).max(initial=0.0))
        primal = float(value.high)
        gap = primal - certificate.dual  # a certificate rounds it upwards
    box, equality, *_ = certificate.kkt.values()
    if not gap < certificate.gap:
        return certificate
    return replace(
        certificate, primal=primal, gap=max(gap, 0.0), kkt=kkt_residuals(box, equality, outward, inward), b=(b,)
    )
