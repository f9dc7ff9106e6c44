"""The proof of β together with a bias of the caller's own, as another library's model has it.

`mercer.certificates.dual` chooses the b that belongs to β. With b fixed the equalities go, and p − b takes the place of
p, so that

    P(w, b) = ½β'Kβ + Σ max over t in [lower_i, upper_i] of (p_i − b_g − u_i) t − d_i t²/2  +  Σ_g b_g·total_g

is the primal value of a problem without bias. The dual value is that of a feasible point beside β.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mercer.certificates.certificate import Certificate, bounded_sum
from mercer.certificates.dual import STATED_ROUNDINGS, certify_dual
from mercer.places.gram import BoundedProducts
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, gamma


def certify_with_bias(
    problem: DualProblem, gram: BoundedProducts, beta: Floats, b: Floats, near: Sequence[Floats], missed: float = 0.0
) -> Certificate:
    """Certify (β, b), where b has an entry for each equality and every variable has finite bounds.

    `primal` is the value at (β, b) itself, also where β misses its bounds or sums. `dual` is the largest value among
    the feasible points `near` it, and −∞ where there is none. The caller's own β may differ by the share `missed` of
    every entry, and his own b by that of the largest.
    """
    proofs = [certify_dual(problem, gram, one)[0] for one in near]
    # Without a feasible point the residuals are those of β.
    proof = max(proofs, key=lambda one: one.dual) if proofs else certify_dual(problem, gram, beta)[0]
    p = problem.p - np.append(b, 0.0)[problem.group]  # group −1, without an equality, is the last
    fixed, _ = certify_dual(replace(problem.without_bias(), p=p), gram, beta)
    # p − b is rounded once, and a loss moves by no more than that times the largest |t|.
    most = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    rounded = gamma(1) * bounded_sum(np.abs(p) * most, 1)
    products = b * problem.totals
    # A change δ of β moves u_i by at most reach_i·Σ reach_j|δ_j|, and ½β'Kβ by Σ reach_i|β_i + δ_i/2| times that sum.
    reach = gram.entry_bounds[problem.row]
    length = bounded_sum(reach * np.abs(beta), 1)
    shifted = np.abs(b).max(initial=0.0) * bounded_sum([*most, *np.abs(problem.totals)], 1)
    moved = missed * (length * (bounded_sum(reach * most, 1) + length) + shifted) * (1 + gamma(16))
    primal = bounded_sum([fixed.primal, rounded, moved, *products, *(gamma(STATED_ROUNDINGS) * np.abs(products))], 1)
    kkt = {name: max(value, fixed.kkt[name]) for name, value in proof.kkt.items()}
    dual = proof.dual if proofs else -np.inf
    # A certificate raises a gap of 0 to the difference of the two values, rounded upwards.
    return replace(proof, primal=primal, dual=dual, gap=0.0, kkt=kkt, b=tuple(b.tolist()))
