"""The proof of a kernel machine with any convex loss.

For every c, θ = −g with g = wℓ′ is a feasible point of the Fenchel dual (with a bias, if Σg = 0), and the Fenchel–Young
inequality is tight there. With ρ = g + 2λc, which is zero at the optimum, the gap is, whatever the loss,

    gap = λ (c + g/2λ)'K(c + g/2λ) = ρ'Kρ/4λ
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Floats, inner
from mercer.certificates.certificate import UNCOUNTED, Certificate, Proves
from mercer.certificates.dual import PROOF
from mercer.gram.gram import Gram
from mercer.losses import Loss, is_known_convex
from mercer.problems.representer import RepresenterProblem


def certify_representer(problem: RepresenterProblem, gram: Gram, c: Floats, b: float) -> Certificate:
    """The proof of (c, b), everything recomputed in float64 from these alone."""
    u = gram.product(c)
    g = problem.gradient(u + b)
    rho = g + 2 * problem.lam * c
    primal = problem.value(u + b) + problem.lam * inner(c, u)
    gap = float(np.maximum(0.0, inner(rho, gram.product(rho)) / (4 * problem.lam)))  # max() would make 0 of NaN
    violation = float(np.abs(rho).max(initial=0.0))
    return Certificate(
        primal=primal,
        dual=primal - gap,
        gap=gap,
        violation=violation,
        kkt={
            "stationarity": violation,
            "dual feasibility: equality": abs(float(g.sum())) if problem.bias else 0.0,
        },
        proves=_proof(gram.positive_definite, problem.loss),
        precision=UNCOUNTED,
        b=(b,),
    )


def _proof(positive_definite: str, loss: Loss) -> Proves:
    """What a gap of zero proves: a loss of the user's is convex on his word alone."""
    proof = PROOF[positive_definite]
    if is_known_convex(loss) or proof == "stationarity":
        return proof
    if proof == "optimality":
        return "optimality if the loss is convex"
    return "optimality if K is positive semi-definite and the loss is convex"


def scale_certificate(certificate: Certificate, factor: float, b: float) -> Certificate:
    """The proof of an objective that is `factor` times the certified one."""
    scaled = {name: factor * getattr(certificate, name) for name in ("primal", "dual", "gap")}
    return replace(certificate, **scaled, b=(b,))
