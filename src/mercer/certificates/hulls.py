"""Certificates of hull problems, in the scale of the machine that they belong to.

A certificate bounds the squared distance δ² of two convex hulls from both sides: −2·(dual + gap) ≤ δ² ≤ −2·dual. The
machine with margins at ±1 has ½‖w‖² = 2/δ² (Igel, sec. 4.1.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.certificates.certificate import EQUALITY, GRADIENT_CONDITIONS, Certificate, widen_certificate
from mercer.certificates.dual import certify_dual
from mercer.places.ball import Ball, exact
from mercer.places.gram import BoundedProducts
from mercer.places.rounding import DOUBLE
from mercer.problems import classification
from mercer.problems.classification import rho_and_b
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, inner

# Relative rounding error of a quotient, and a little more for the sums below.
_ROUNDOFF = 1.01 * DOUBLE


@dataclass(frozen=True)
class Centring:
    """Rounding errors of subtracting a centre from all samples; prediction adds ⟨w, centre⟩ back to b."""

    moved: float = 0.0  # largest distance by which rounding moved a sample in feature space
    length: float = 0.0  # length of the centre
    terms: int = 0  # number of terms of ⟨w, centre⟩

    def tilt(self, norm: float, longest: float, total: float) -> float:
        """Bound the difference between f with its rounded b and f of the centred samples.

        `norm` is ‖w‖, `total` is |Σβ|, and no sample is longer than `longest`.
        """
        sums = exact((norm + self.length * total) * (self.length + longest)).rounded(self.terms + 16).error
        # `sums` includes the roundings of this line.
        return float(sums * bool(self.length) + total * self.length * longest)


def hard_margin_certificate(
    hulls: Certificate, rho: float, b: float, sample_shift: float = 0.0, tilt: float = 0.0
) -> Certificate:
    """Return the certificate of the hard margin with a bias, for ½‖w‖² and its dual, from that of its hulls.

    The hulls' coefficients are divided by `rho`. Rounding moved no sample by more than `sample_shift` before it
    became part of a hull, and no f(x) is further than `tilt` from the one with an exact b. Without a proof that the
    hulls are apart, primal is infinite.
    """
    # 1. Values; the gap of the hulls includes their rounding errors.
    with np.errstate(over="ignore", invalid="ignore"):
        inner_length = (-2.0 * (exact(hulls.dual) + hulls.gap)).positive().sqrt()
        outer_length = (-2.0 * exact(hulls.dual)).positive().sqrt()
        least_distance, largest_distance = inner_length - 2 * sample_shift, outer_length + 2 * sample_shift
        primal = float((exact(2.0) / least_distance.square()).high) if least_distance.low > 0 else math.inf
        dual = float((exact(2.0) / largest_distance.square()).low) if hulls.dual < 0 else math.inf
        shift = float((2 * sample_shift * largest_distance / rho + 2 * tilt).high)
    scaled = widen_certificate(_divide_by_rho(hulls, rho), 0.0, shift)
    # 2. Residuals. f has one b and margins at ±1, whereas each hull has its own b, and these are 2ρ' apart: the margins
    #    of all samples differ by ρ' − ρ from those in the residuals of the hulls.
    hull_rho, size = rho_and_b(hulls.b)[0], sum(map(abs, hulls.b)) + rho
    margin_shift = (abs(hull_rho - rho) + 8 * _ROUNDOFF * size) / rho  # eight roundings cover six sums and quotients
    kkt = {name: value + margin_shift * name.startswith(GRADIENT_CONDITIONS) for name, value in scaled.kkt.items()}
    kkt[EQUALITY] += _ROUNDOFF * 2.0 / rho  # rounding of the quotients; the coefficients of each hull add up to 1
    return replace(scaled, primal=primal, dual=dual, gap=_gap(primal, dual), kkt=kkt, b=(b,))


def with_halfway_bias(certificate: Certificate) -> Certificate:
    """Return the certificate of a hard margin whose b lies halfway between its support vectors of both classes.

    With the certified b, no residual of a support vector exceeds the two gradient conditions in `kkt`. So the two
    conditions also bound the distance between the two b.
    """
    residuals = certificate.kkt.items()
    largest = max(value for name, value in residuals if name.startswith(GRADIENT_CONDITIONS))
    kkt = {name: value + largest * name.startswith(GRADIENT_CONDITIONS) for name, value in residuals}
    return replace(certificate, kkt=kkt)


def certify_hard_margin(problem: DualProblem, gram: BoundedProducts, beta: Floats) -> Certificate:
    """Certify ½‖w‖² with y_i f(x_i) ≥ 1 for β of any scale.

    The best multiple of β bounds the optimum from below. If w and b separate the samples, they are feasible after a
    division by their smallest margin, and bound the optimum from above.
    """
    y = problem.p
    if not len(problem.totals):
        soft_problem = classification.soft_margin(y, np.full(len(y), 2.0 * float(np.abs(beta).max()))).without_bias()
        return hard_margin_through_origin(certify_dual(soft_problem, gram, beta)[0], gram, y, beta)
    hull_problem = classification.hulls(y)
    beta = hull_problem.nearest_feasible(beta / (0.5 * float(np.abs(beta).sum())))
    proof, _ = certify_dual(hull_problem, gram, beta)
    rho = -proof.dual
    if rho > np.finfo(float).tiny:
        certificate = hard_margin_certificate(proof, rho, rho_and_b(proof.b)[1] / rho)
    else:  # too small to divide by
        certificate = hard_margin_certificate(proof, 1.0, 0.0)
    energy, u = _energy_and_values(gram, beta)
    smallest = 0.5 * (exact(float(u.low[y > 0].min())) - float(u.high[y < 0].max()))
    primal = min(certificate.primal, _feasible_value(energy, smallest))
    return replace(certificate, primal=primal, gap=_gap(primal, certificate.dual))


def hard_margin_through_origin(soft: Certificate, gram: BoundedProducts, y: Floats, beta: Floats) -> Certificate:
    """Return the certificate of the hard margin without a bias, from that of a soft margin with no active upper bound.

    With m the smallest of y_i f(x_i), w/m is feasible, so that primal = ½‖w‖²/m². The dual value is the larger of two
    lower bounds on the optimum: (y'β)²/(2β'Kβ), of the best multiple of β, and the dual value of the soft margin. Kβ is
    recomputed in the highest precision.
    """
    energy, u = _energy_and_values(gram, beta)
    primal = _feasible_value(energy, exact(float(np.where(y > 0, u.low, -u.high).min())))
    alpha = exact(np.abs(beta)).sum()
    best = float((0.5 * alpha / energy * alpha).low)
    best = max(soft.dual, best if math.isfinite(best) else 0.0)
    return replace(soft, primal=primal, dual=best, gap=_gap(primal, best))


def _energy_and_values(gram: BoundedProducts, beta: Floats) -> tuple[Ball, Ball]:
    """Return β'Kβ and Kβ in the highest precision."""
    u = gram.product_bound(beta, level=gram.levels[-1])
    return u.inner(beta), u


def _feasible_value(energy: Ball, smallest: Ball) -> float:
    """Return ½‖w‖²/m² for the `smallest` margin m of y_i f(x_i); infinite if f does not separate the samples."""
    return float((0.5 * energy / smallest.square()).high) if smallest.low > 0 else math.inf


def widen_for_division(
    certificate: Certificate, problem: DualProblem, gram: BoundedProducts, beta: Floats
) -> Certificate:
    """Widen a certificate by the rounding errors of dividing β and b by one number.

    Rounding every β_j moves (Kβ)_i by no more than 2⁻⁵³ Σ_j |β_j| |K_ij|, and |K_ij| ≤ r_i r_j.
    """
    root, size = gram.entry_bounds, np.abs(beta)
    u_errors = _ROUNDOFF * (inner(size, root) * root + max(map(abs, certificate.b), default=0.0))
    shift = 2 * float(u_errors.max(initial=0.0))
    loss = inner(problem.upper - problem.lower, u_errors) + 2 * inner(size, u_errors)
    widened = widen_certificate(certificate, loss, shift)
    widened.kkt[EQUALITY] += _ROUNDOFF * float(size.sum())
    return widened


def divide_nu_certificate(certificate: Certificate, rho: float) -> Certificate:
    """Rescale a ν-machine's certificate to ½‖w‖² + CΣw_i max(0, 1 − y_i f(x_i)) − CνW with C = 1/ρ.

    w, b and the residuals are divided by ρ, so that the values of the objective are divided by ρ².
    """
    primal, gap = (_upper_quotient(_upper_quotient(value, rho), rho) for value in (certificate.primal, certificate.gap))
    dual = -_upper_quotient(_upper_quotient(-certificate.dual, rho), rho)
    return _divide_by_rho(certificate, rho, primal=primal, dual=dual, gap=gap)


def _divide_by_rho(certificate: Certificate, rho: float, **values: Any) -> Certificate:
    """Return a certificate with residuals and biases divided by ρ, and with other `values`."""
    return replace(
        certificate,
        **values,
        violation=_upper_quotient(certificate.violation, rho),
        kkt={name: _upper_quotient(residual, rho) for name, residual in certificate.kkt.items()},
        b=tuple(value / rho for value in certificate.b),
    )


def _upper_quotient(value: float, rho: float) -> float:
    """Return an upper bound on value/ρ: the next number above the rounded quotient; ρ is infinite for w = 0."""
    quotient = value / rho
    return math.nextafter(quotient, math.inf) if value and rho < math.inf else quotient


def _gap(primal: float, dual: float) -> float:
    """Return primal − dual, or 0 if that is negative; infinite if `dual` is not finite."""
    return max(0.0, primal - dual) if math.isfinite(dual) else math.inf
