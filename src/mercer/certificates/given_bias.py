"""Certificates of β with a given bias, such as that of another library's model.

`mercer.certificates.dual` chooses the b that belongs to β. With b fixed there are no equalities, and p − b takes the
place of p, so that

    P(w, b) = ½β'Kβ + Σ max over t in [lower_i, upper_i] of (p_i − b_g − u_i) t − d_i t²/2  +  Σ_g b_g·total_g

is the primal value of a problem without bias. The dual value is that of a feasible point beside β.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import STATED_ROUNDINGS, certify_dual
from mercer.places.ball import exact
from mercer.places.gram import BoundedProducts
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats


def certify_with_bias(
    problem: DualProblem,
    gram: BoundedProducts,
    beta: Floats,
    b: Floats,
    feasible_points: Sequence[Floats],
    relative_error: float = 0.0,
) -> Certificate:
    """Certify (β, b), where b has an entry for each equality and every variable has finite bounds.

    `primal` is the value at (β, b) itself, also where β misses its bounds or sums. `dual` is the largest value among
    the `feasible_points` near β, and −∞ without any. The caller's β may differ from this one by the share
    `relative_error` of every entry, and the caller's b by the same share of its largest entry.
    """
    proofs = [certify_dual(problem, gram, point)[0] for point in feasible_points]
    # Without a feasible point the residuals are those of β.
    proof = max(proofs, key=lambda candidate: candidate.dual) if proofs else certify_dual(problem, gram, beta)[0]
    p = problem.p - np.append(b, 0.0)[problem.group]  # group −1, without an equality, takes the appended 0
    proof_without_b, _ = certify_dual(replace(problem.without_bias(), p=p), gram, beta)
    with np.errstate(over="ignore", invalid="ignore"):
        # 1. A multiplier t of a loss has |t| ≤ largest. The rounding of p − b is in `proof_without_b`: the core allows
        #    for four roundings of |p| + |u| + |dβ| in every residual, and makes three.
        largest = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
        # 2. A change δ of β moves u_i by at most r_i·Σ r_j|δ_j| with the entry bounds r, and ½β'Kβ by
        #    Σ r_i|β_i + δ_i/2| times that sum.
        r = exact(gram.entry_bounds[problem.row])
        length = r.inner(np.abs(beta))
        # 3. A change of b moves the losses and the products b_g·total_g; the totals have the caller's roundings.
        cost_of_b = np.abs(b).max(initial=0.0) * (exact(largest).sum() + exact(np.abs(problem.totals)).sum())
        cost_of_change = relative_error * (
            length * (r.inner(largest) + (1 + 0.5 * exact(relative_error)) * length) + cost_of_b
        )
        products = exact(problem.totals).rounded(STATED_ROUNDINGS).inner(b)
        primal = (exact(proof_without_b.primal) + cost_of_change + products).high
    kkt = {name: max(value, proof_without_b.kkt[name]) for name, value in proof.kkt.items()}
    dual = proof.dual if proofs else -np.inf
    # A certificate raises a gap of 0 to the difference of the two values, rounded upwards.
    return replace(proof, primal=primal, dual=dual, gap=0.0, kkt=kkt, b=tuple(b.tolist()))
