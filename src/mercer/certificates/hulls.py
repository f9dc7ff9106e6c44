"""The proofs of hull problems, told in the scale of the machine they belong to.

The nearest points of two convex hulls are ‖w‖ apart, and a certificate bounds ‖w‖² from both sides: it is at least
−2·(dual + gap) and at most −2·dual. The machine with margins at ±1 has ½‖w‖² = 2/‖w‖² of the hulls (Igel, sec. 4.1.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.certificates.certificate import EQUALITY, OF_GRADIENTS, Certificate, allowing_for
from mercer.certificates.dual import certify_dual
from mercer.places.ball import Ball, exact
from mercer.places.gram import BoundedProducts
from mercer.places.rounding import DOUBLE
from mercer.problems import classification
from mercer.problems.classification import rho_and_b
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, inner

# Of one quotient, and a little more for the sums here.
_ROUNDOFF = 1.01 * DOUBLE


@dataclass(frozen=True)
class Centring:
    """What subtracting a centre from all samples costs: the most that rounding moved one, in feature space.

    Prediction adds ⟨w, centre⟩ back, a sum of this many `terms` that rounds with the centre's `length`.
    """

    moved: float = 0.0
    length: float = 0.0
    terms: int = 0

    def tilt(self, norm: float, reach: float, total: float) -> float:
        """How far f with its rounded b can be from the centred one; ‖w‖, the longest sample, and |Σβ|."""
        sums = exact((norm + self.length * total) * (self.length + reach)).rounded(self.terms + 16).error
        return float(sums * bool(self.length) + total * self.length * reach)  # whose roundings are in `sums`


def hard_margin_certificate(
    hulls: Certificate, rho: float, b: float, moved: float = 0.0, tilt: float = 0.0
) -> Certificate:
    """The proof of the hard margin with a bias from that of its hulls: values are those of ½‖w‖² and of its dual.

    `rho` is what the hulls' coefficients are divided by. No sample was `moved` further than this from its place before
    it became part of a hull, and no f(x) is further than `tilt` from the one with an exact b. Without a proof that the
    hulls are apart, primal is infinite.
    """
    # The gap holds what rounding may hide.
    with np.errstate(over="ignore", invalid="ignore"):
        inner_length = (-2.0 * (exact(hulls.dual) + hulls.gap)).positive().sqrt()
        outer_length = (-2.0 * exact(hulls.dual)).positive().sqrt()
        near, far = inner_length - 2 * moved, outer_length + 2 * moved
        primal = float((exact(2.0) / near.square()).high) if near.low > 0 else math.inf
        dual = float((exact(2.0) / far.square()).low) if hulls.dual < 0 else math.inf
        shift = float((2 * moved * far / rho + 2 * tilt).high)
    told = allowing_for(_divided(hulls, rho), 0.0, shift)
    # f has one b and margins at ±1, where the hulls have a b each, 2ρ' apart: the margins of all samples differ by
    # ρ' − ρ from those that the residuals are about.
    half, size = rho_and_b(hulls.b)[0], sum(map(abs, hulls.b)) + rho
    apart = (abs(half - rho) + 8 * _ROUNDOFF * size) / rho  # of six sums and quotients, these among them
    kkt = {name: value + apart * name.startswith(OF_GRADIENTS) for name, value in told.kkt.items()}
    kkt[EQUALITY] += _ROUNDOFF * 2.0 / rho  # of every quotient; the coefficients of each hull add up to 1
    return replace(told, primal=primal, dual=dual, gap=_gap(primal, dual), kkt=kkt, b=(b,))


def between_support_vectors(certificate: Certificate) -> Certificate:
    """The proof of a hard margin whose b lies halfway between its support vectors of both classes.

    Their residuals with the certified b are no larger than the two that are told, and so is the distance of the two b.
    """
    told = certificate.kkt.items()
    largest = max(value for name, value in told if name.startswith(OF_GRADIENTS))
    return replace(certificate, kkt={name: value + largest * name.startswith(OF_GRADIENTS) for name, value in told})


def certify_hard_margin(problem: DualProblem, gram: BoundedProducts, beta: Floats) -> Certificate:
    """The proof of ½‖w‖² with y_i f(x_i) ≥ 1 for β of any scale: its best multiple bounds the optimum from below.

    From above it is bounded by w and b as far as they separate the samples: divided by their smallest margin they are
    feasible.
    """
    y = problem.p
    if not len(problem.totals):
        free = classification.soft_margin(y, np.full(len(y), 2.0 * float(np.abs(beta).max()))).without_bias()
        return hard_margin_through_origin(certify_dual(free, gram, beta)[0], gram, y, beta)
    two = classification.hulls(y)
    beta = two.nearest_feasible(beta / (0.5 * float(np.abs(beta).sum())))
    proof, _ = certify_dual(two, gram, beta)
    rho = -proof.dual
    if rho > np.finfo(float).tiny:
        told = hard_margin_certificate(proof, rho, rho_and_b(proof.b)[1] / rho)
    else:  # nothing can be divided by it
        told = hard_margin_certificate(proof, 1.0, 0.0)
    energy, u = _energy_and_values(gram, beta)
    smallest = 0.5 * (exact(float(u.low[y > 0].min())) - float(u.high[y < 0].max()))
    primal = min(told.primal, _feasible_value(energy, smallest))
    return replace(told, primal=primal, gap=_gap(primal, told.dual))


def hard_margin_through_origin(soft: Certificate, gram: BoundedProducts, y: Floats, beta: Floats) -> Certificate:
    """The proof of the hard margin without a bias, from that of a soft margin whose bounds hold no multiplier.

    With m the smallest of y_i f(x_i), w/m is feasible, so that primal = ½‖w‖²/m². The dual is that of the best multiple
    of β, (y'β)²/(2β'Kβ), or that of the soft margin, which no hard one can undercut. Kβ is recomputed as exactly as it
    gets.
    """
    energy, u = _energy_and_values(gram, beta)
    primal = _feasible_value(energy, exact(float(np.where(y > 0, u.low, -u.high).min())))
    alpha = exact(np.abs(beta)).sum()
    best = float((0.5 * alpha / energy * alpha).low)
    best = max(soft.dual, best if math.isfinite(best) else 0.0)
    return replace(soft, primal=primal, dual=best, gap=_gap(primal, best))


def _energy_and_values(gram: BoundedProducts, beta: Floats) -> tuple[Ball, Ball]:
    """β'Kβ, and Kβ, as exactly as it gets."""
    u = gram.product_bound(beta, level=gram.levels[-1])
    return u.inner(beta), u


def _feasible_value(energy: Ball, smallest: Ball) -> float:
    """½‖w‖² of a function divided by the smallest of its margins y_i f(x_i); infinite where it does not separate."""
    return float((0.5 * energy / smallest.square()).high) if smallest.low > 0 else math.inf


def before_division(certificate: Certificate, problem: DualProblem, gram: BoundedProducts, beta: Floats) -> Certificate:
    """The proof for β and b that will be divided by one number, each quotient rounded.

    Rounding every β_j moves (Kβ)_i by no more than 2⁻⁵³ Σ_j |β_j| |K_ij|, and |K_ij| ≤ r_i r_j.
    """
    root, size = gram.entry_bounds, np.abs(beta)
    moved = _ROUNDOFF * (inner(size, root) * root + max(map(abs, certificate.b), default=0.0))
    shift = 2 * float(moved.max(initial=0.0))
    loss = inner(problem.upper - problem.lower, moved) + 2 * inner(size, moved)
    allowed = allowing_for(certificate, loss, shift)
    allowed.kkt[EQUALITY] += _ROUNDOFF * float(size.sum())
    return allowed


def in_scale_of_f(certificate: Certificate, rho: float) -> Certificate:
    """The proof of a ν-machine after the division by ρ: that of ½‖w‖² + CΣw_i max(0, 1 − y_i f(x_i)) − CνW, C = 1/ρ."""
    primal, gap = (_divided_up(_divided_up(value, rho), rho) for value in (certificate.primal, certificate.gap))
    dual = -_divided_up(_divided_up(-certificate.dual, rho), rho)
    return _divided(certificate, rho, primal=primal, dual=dual, gap=gap)


def _divided(certificate: Certificate, rho: float, **values: Any) -> Certificate:
    """Residuals and biases of the coefficients divided by ρ, and other `values`."""
    return replace(
        certificate,
        **values,
        violation=_divided_up(certificate.violation, rho),
        kkt={name: _divided_up(residual, rho) for name, residual in certificate.kkt.items()},
        b=tuple(value / rho for value in certificate.b),
    )


def _divided_up(value: float, rho: float) -> float:
    """Return an upper bound on value/ρ: the next number above the rounded quotient; ρ is infinite for w = 0."""
    quotient = value / rho
    return math.nextafter(quotient, math.inf) if value and rho < math.inf else quotient


def _gap(primal: float, dual: float) -> float:
    return max(0.0, primal - dual) if math.isfinite(dual) else math.inf
