"""Certificates of stochastic subgradient descent: the gap between the mean w of its iterates and a dual point.

With C_i = p_i/λ, f_i = ⟨w, φ(x_i)⟩ and v = Σ β_iφ(x_i) for any β_i = y_iα_i, 0 ≤ α_i ≤ C_i,

    primal = ½‖w‖² + Σ C_i max(0, 1 − y_if_i)
    dual   = Σα − ½‖v‖²
    gap    = ½‖w − v‖² + Σ [C_i max(0, 1 − y_if_i) − α_i(1 − y_if_i)],   every term ≥ 0

All of these are recomputed from w and α, with bounds on their rounding errors.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mercer import _core
from mercer.certificates.certificate import Certificate, kkt_residuals
from mercer.certificates.dual import PROOF
from mercer.places.ball import Ball, exact
from mercer.problems.pegasos import PegasosProblem
from mercer.samples.arrays import Floats


class FeatureSpace(Protocol):
    """Samples φ(x_i) and vectors w in coordinates that the implementation chooses, each known up to an error."""

    positive_definite: str  # "yes", "no", "depends" or "unknown"

    def outputs(self, w: Floats) -> Floats:
        """Return ⟨w, φ(x_i)⟩ for every row."""

    def square(self, w: Floats, outputs: Floats) -> float:
        """Return ‖w‖², given the outputs of w."""

    def combine(self, beta: Floats) -> Ball:
        """Return Σ β_iφ(x_i) in coordinates; the errors allow for a few roundings of β too."""

    def outputs_bound(self, w: Ball) -> Ball:
        """Return the outputs from recomputed kernel values; the errors allow for a few roundings of w too."""

    def square_bound(self, w: Ball, outputs: Ball) -> Ball:
        """Return ‖w‖² with its error, given the outputs of w."""


def certify_descent(problem: PegasosProblem, space: FeatureSpace, w: Floats, share: Floats) -> Certificate:
    """Certify w with a dual point; both have one row per binary problem.

    The dual point is the multiple of α_i = C_i · share_i, 0 ≤ share_i ≤ 1, with the largest dual value in the box. A
    share that is always available is 1 where y_if_i < 1, else 0: then −v is a subgradient of the losses at w, and the
    gap is ½‖w − v‖², which is zero if w is optimal and no sample lies on the margin.
    """
    C = problem.probability / problem.lam
    with np.errstate(over="ignore", invalid="ignore"):
        return Certificate.total([_certified(space, y, C, w[k], share[k] * C) for k, y in enumerate(problem.signs)])


def _certified(space: FeatureSpace, y: Floats, C: Floats, w: Floats, alpha: Floats) -> Certificate:
    """Certify one binary problem."""
    # 1. Outputs of w and of the dual point v, which is scaled to the best multiple in the box.
    n, exact_w = len(C), Ball(w, np.zeros_like(w))
    f, v = space.outputs_bound(exact_w), space.combine(y * alpha)
    u = space.outputs_bound(v)
    square, energy = space.square_bound(exact_w, f), space.square_bound(v, u)
    if 0 < energy.value < np.inf:
        largest = float(np.divide(alpha, C, out=np.zeros(n), where=C > 0).max())
        m = min(float(alpha.sum()) / energy.value, 1.0 / largest)
        alpha = np.minimum(m * alpha, C)
        # Twice the errors: they allow for the roundings of m·α.
        v, u = (Ball(ball.value, 2 * ball.error) * m for ball in (v, u))
        energy = space.square_bound(v, u)
    # 2. Losses and residuals.
    distance = space.square_bound(exact_w - v, f - u).value
    bound, zeros = y * C, np.zeros(n)
    ends, error = (np.minimum(bound, 0.0), np.maximum(bound, 0.0)), Ball(1.0 + abs(f.value), f.error).rounded(4).error
    losses, shares, _, worst, box, outward, inward, _, _ = _core.linear_findings(
        y, *ends, zeros, zeros, f.value, error, y * alpha
    )
    slope = 1.0 - u * y  # gradient of the dual value by α
    # 3. Values; the losses are the largest that the errors of f allow.
    primal = float((0.5 * square + exact(losses).rounded(n + 8)).high)
    dual = float((exact(alpha).sum() - 0.5 * energy).low)
    return Certificate(
        primal=primal,
        dual=min(primal, dual),  # a dual value above `primal` shows an indefinite K, and bounds nothing
        gap=0.5 * max(float(distance), 0.0)
        + shares,  # Certificate raises it to primal − dual, which includes all rounding errors
        violation=max(float(slope.high[alpha < C].max(initial=0.0)), float((-slope.low)[alpha > 0].max(initial=0.0))),
        kkt=kkt_residuals(box, 0.0, outward, inward),
        gap_measures=PROOF[space.positive_definite],
        worst=worst,
    )
