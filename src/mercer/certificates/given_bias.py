"""The proof of β together with a bias of the caller's own, as another library's model has it.

`mercer.certificates.dual` chooses the b that belongs to β. With b fixed the equalities go, and p − b takes the place of
p, so that

    P(w, b) = ½β'Kβ + Σ max over t in [lower_i, upper_i] of (p_i − b_g − u_i) t − d_i t²/2  +  Σ_g b_g·total_g

is the primal value of a problem without bias. The dual value is that of a feasible point beside β, as ever.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Floats, gamma
from mercer.certificates.certificate import Certificate, bounded_sum
from mercer.certificates.dual import certify_dual
from mercer.gram.gram import Provable
from mercer.problems.dual_problem import DualProblem


def certify_with_bias(problem: DualProblem, gram: Provable, beta: Floats, b: Floats) -> Certificate:
    """Certify (β, b), where b has an entry for each equality and every variable has finite bounds."""
    proof, _ = certify_dual(problem, gram, beta)
    p = problem.p - np.append(b, 0.0)[problem.group]  # group −1, without an equality, is the last
    fixed, _ = certify_dual(replace(problem.without_bias(), p=p), gram, beta)
    # p − b is rounded once, and a loss moves by no more than that times the largest |t|.
    most = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    rounded = gamma(1) * bounded_sum(np.abs(p) * most, 1)
    products = b * problem.totals
    primal = bounded_sum([fixed.primal, rounded, *products, *(gamma(1) * np.abs(products))], 1)
    kkt = {name: max(value, fixed.kkt[name]) for name, value in proof.kkt.items()}
    # The gap is that of these two values, which a certificate sees to.
    given = replace(proof, primal=primal, gap=0.0, kkt=kkt, b=tuple(b.tolist()))
    return replace(given, gap=float(np.nextafter(given.gap, np.inf)))
