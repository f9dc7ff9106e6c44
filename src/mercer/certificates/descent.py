"""A duality gap for stochastic subgradient descent: the mean w of its iterates against a dual point of its steps.

With C_i = p_i/λ, f_i = ⟨w, φ(x_i)⟩ and v = Σ β_iφ(x_i) for any β_i = y_iα_i, 0 ≤ α_i ≤ C_i,

    primal = ½‖w‖² + Σ C_i max(0, 1 − y_if_i)
    dual   = Σα − ½‖v‖²
    gap    = ½‖w − v‖² + Σ [C_i max(0, 1 − y_if_i) − α_i(1 − y_if_i)],   every term ≥ 0
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mercer import _core
from mercer.arrays import Floats
from mercer.certificates.certificate import UNCOUNTED, Certificate
from mercer.certificates.dual import PROOF
from mercer.problems.pegasos import PegasosProblem


class FeatureSpace(Protocol):
    """Samples φ(x_i), and vectors w in coordinates of some kind."""

    positive_definite: str  # what is known of the kernel

    def outputs(self, w: Floats) -> Floats:
        """⟨w, φ(x_i)⟩ for every row."""

    def square(self, w: Floats, outputs: Floats) -> float:
        """‖w‖², given the outputs of w."""

    def combine(self, beta: Floats) -> Floats:
        """Σ β_iφ(x_i) in coordinates."""


def certify_descent(problem: PegasosProblem, space: FeatureSpace, w: Floats, f: Floats, share: Floats) -> Certificate:
    """The gap between w, whose outputs are f, and a dual point; all three have one row per machine.

    The dual point is α_i = C_i · share_i, 0 ≤ share_i ≤ 1, or the multiple of it that is best in the box. One that is
    always at hand is share_i = 1 where y_if_i < 1, else 0: then −v is a subgradient of the losses at w, only ½‖w − v‖²
    is left of the gap, and it vanishes where w is optimal and no sample lies on the margin.
    """
    C, zeros = problem.probability / problem.lam, np.zeros(len(problem.weight))
    parts = []
    for k, y in enumerate(problem.signs):
        alpha = share[k] * C
        v = space.combine(y * alpha)
        u = space.outputs(v)
        energy = space.square(v, u)
        if energy > 0:
            multiple = min(float(alpha.sum()) / energy, 1.0 / float(share[k].max()))
            alpha, v, u, energy = np.minimum(multiple * alpha, C), multiple * v, multiple * u, multiple**2 * energy
        bound = y * C
        losses, terms, _, worst, box, outward, inward, _, _ = _core.linear_findings(
            y, np.minimum(bound, 0.0), np.maximum(bound, 0.0), zeros, zeros, f[k], zeros, y * alpha
        )
        slope = 1.0 - y * u  # of the dual in α
        certificate = Certificate(
            primal=0.5 * space.square(w[k], f[k]) + losses,
            dual=float(alpha.sum()) - 0.5 * energy,
            gap=0.5 * max(space.square(w[k] - v, f[k] - u), 0.0) + terms,
            violation=max(float(slope[alpha < C].max(initial=0.0)), -float(slope[alpha > 0].min(initial=0.0))),
            kkt={
                "dual feasibility: box": box,
                "dual feasibility: equality": 0.0,
                "primal feasibility": outward,
                "complementary slackness": inward,
            },
            proves=PROOF[space.positive_definite],
            precision=UNCOUNTED,
            worst=worst,
        )
        parts.append(certificate)
    return Certificate.total(parts)
