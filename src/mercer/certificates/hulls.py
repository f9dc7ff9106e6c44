"""The proofs of hull problems, told in the scale of the machine they belong to.

The nearest points of two convex hulls are ‖w‖ apart, and a certificate bounds ‖w‖² from both sides: it is at least
−2·(dual + gap) and at most −2·dual. The machine with margins at ±1 has ½‖w‖² = 2/‖w‖² of the hulls (Igel, sec. 4.1.4).
"""

from __future__ import annotations

import math
from dataclasses import replace

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate


def hard_margin_certificate(hulls: Certificate, rho: float, b: float) -> Certificate:
    """The proof of the hard margin with a bias from that of its hulls: values are those of ½‖w‖² and of its dual.

    `rho` is what the hulls' coefficients are divided by. Without a proof that the hulls are apart, primal is infinite.
    """
    below, above = -2.0 * (hulls.dual + hulls.gap), -2.0 * hulls.dual  # the gap holds what rounding may hide
    primal = 2.0 / below if below > 0 else math.inf
    dual = 2.0 / above if above > 0 else math.inf
    return replace(_divided(hulls, rho), primal=primal, dual=dual, gap=_gap(primal, dual), b=(b,))


def hard_margin_through_origin(soft: Certificate, beta: Floats, margins: Floats, energy: float) -> Certificate:
    """The proof of the hard margin without a bias, from that of a soft margin whose bounds hold no multiplier.

    With m the smallest of y_i f(x_i), w/m is feasible, so that primal = ½‖w‖²/m². The dual is that of the best multiple
    of β, (y'β)²/(2β'Kβ).
    """
    smallest, alpha = float(margins.min()), float(abs(beta).sum())
    # Squares of very small or large numbers would leave the range of float64.
    primal = 0.5 * energy / smallest / smallest if smallest > 0 else math.inf
    dual = 0.5 * alpha * (alpha / energy) if energy > 0 else math.inf
    return replace(soft, primal=primal, dual=dual, gap=_gap(primal, dual))


def in_scale_of_f(certificate: Certificate, rho: float) -> Certificate:
    """The proof of a ν-machine after the division by ρ: that of ½‖w‖² + CΣw_i max(0, 1 − y_i f(x_i)) − CνW, C = 1/ρ."""
    primal, dual, gap = (value / rho / rho for value in (certificate.primal, certificate.dual, certificate.gap))
    return replace(_divided(certificate, rho), primal=primal, dual=dual, gap=gap)


def _divided(certificate: Certificate, rho: float) -> Certificate:
    """Residuals and biases of the coefficients divided by ρ."""
    return replace(
        certificate,
        violation=certificate.violation / rho,
        kkt={name: residual / rho for name, residual in certificate.kkt.items()},
        b=tuple(value / rho for value in certificate.b),
    )


def _gap(primal: float, dual: float) -> float:
    return max(0.0, primal - dual) if math.isfinite(dual) else math.inf
