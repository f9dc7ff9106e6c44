"""A duality gap for stochastic subgradient descent: the mean w of its iterates against a dual point of its steps.

With C_i = p_i/λ, f_i = ⟨w, φ(x_i)⟩ and v = Σ β_iφ(x_i) for any β_i = y_iα_i, 0 ≤ α_i ≤ C_i,

    primal = ½‖w‖² + Σ C_i max(0, 1 − y_if_i)
    dual   = Σα − ½‖v‖²
    gap    = ½‖w − v‖² + Σ [C_i max(0, 1 − y_if_i) − α_i(1 − y_if_i)],   every term ≥ 0

Everything is recomputed from w and α, and enters with a bound on its rounding errors.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mercer import _core
from mercer.arrays import Floats, gamma, inner
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import PROOF
from mercer.problems.pegasos import PegasosProblem


class FeatureSpace(Protocol):
    """Samples φ(x_i), and vectors w in coordinates of some kind, each known up to an error."""

    positive_definite: str  # what is known of the kernel

    def outputs(self, w: Floats) -> Floats:
        """⟨w, φ(x_i)⟩ for every row."""

    def square(self, w: Floats, outputs: Floats) -> float:
        """‖w‖², given the outputs of w."""

    def combine(self, beta: Floats) -> tuple[Floats, Floats]:
        """Σ β_iφ(x_i) in coordinates, and bounds on their errors, which allow for a few roundings of β too."""

    def outputs_bound(self, w: Floats, error: Floats) -> tuple[Floats, Floats]:
        """The outputs from fresh values, and bounds on their errors that allow for a few roundings of w too."""

    def square_bound(self, w: Floats, error: Floats, outputs: Floats, outputs_error: Floats) -> tuple[float, float]:
        """‖w‖² and a bound on its error."""


def certify_descent(problem: PegasosProblem, space: FeatureSpace, w: Floats, share: Floats) -> Certificate:
    """The gap between w and a dual point; both have one row per machine.

    The dual point is α_i = C_i · share_i, 0 ≤ share_i ≤ 1, or the multiple of it that is best in the box. One that is
    always at hand is share_i = 1 where y_if_i < 1, else 0: then −v is a subgradient of the losses at w, only ½‖w − v‖²
    is left of the gap, and it vanishes where w is optimal and no sample lies on the margin.
    """
    C = problem.probability / problem.lam
    with np.errstate(over="ignore", invalid="ignore"):
        return Certificate.total([_certified(space, y, C, w[k], share[k] * C) for k, y in enumerate(problem.signs)])


def _certified(space: FeatureSpace, y: Floats, C: Floats, w: Floats, alpha: Floats) -> Certificate:
    n, exact = len(C), np.zeros_like(w)
    f, e_f = space.outputs_bound(w, exact)
    v, e_v = space.combine(y * alpha)
    u, e_u = space.outputs_bound(v, e_v)
    square, energy = space.square_bound(w, exact, f, e_f), space.square_bound(v, e_v, u, e_u)
    if 0 < energy[0] < np.inf:
        largest = float(np.divide(alpha, C, out=np.zeros(n), where=C > 0).max())
        m = min(float(alpha.sum()) / energy[0], 1.0 / largest)
        alpha = np.minimum(m * alpha, C)
        v, u = m * v, m * u
        # Twice the errors: they allow for the roundings of m·α.
        e_v, e_u = 2 * m * e_v + gamma(4) * np.abs(v), 2 * m * e_u + gamma(4) * np.abs(u)
        energy = space.square_bound(v, e_v, u, e_u)
    apart = f - u
    distance = sum(
        space.square_bound(w - v, e_v + gamma(1) * np.abs(w - v), apart, e_f + e_u + gamma(1) * np.abs(apart))
    )
    bound, zeros, summed = y * C, np.zeros(n), gamma(n + 8)
    losses, shares, _, worst, box, outward, inward, _, _ = _core.linear_findings(
        y, np.minimum(bound, 0.0), np.maximum(bound, 0.0), zeros, zeros, f, e_f + gamma(4) * (1 + np.abs(f)), y * alpha
    )
    slope, e_slope = 1.0 - y * u, e_u + gamma(4) * (1 + np.abs(u))  # of the dual in α
    rising, falling = slope + e_slope, e_slope - slope
    primal = (0.5 * sum(square) + losses) * (1 + summed)
    off = (square[1] + 2 * inner(C, e_f)) * (1 + summed) + 4 * summed * abs(primal)  # at most what `primal` adds
    return Certificate(
        primal=primal,
        # Only an indefinite K makes it larger than the primal value, and then it bounds nothing.
        dual=min(primal - off, float(alpha.sum()) * (1 - summed) - 0.5 * sum(energy) * (1 + summed)),
        gap=(0.5 * float(np.maximum(distance, 0.0)) + shares) * (1 + summed),
        violation=max(float(rising[alpha < C].max(initial=0.0)), float(falling[alpha > 0].max(initial=0.0))),
        kkt={
            "dual feasibility: box": box,
            "dual feasibility: equality": 0.0,
            "primal feasibility": outward,
            "complementary slackness": inward,
        },
        proves=PROOF[space.positive_definite],
        worst=worst,
    )
