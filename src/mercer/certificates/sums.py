"""The certificate of linear least squares where only sums over the samples are left, with the rounding these carry.

At weights w of the features, and their best b, the gradient g = X̃'Wỹ − X̃'WX̃w − λw is that of a quadratic function:

    P − P* = g'(X̃'WX̃ + λI)⁻¹g / 2λ ≤ ‖S⁻¹g‖² / (2λ α),   α the least eigenvalue of S⁻¹(X̃'WX̃ + λI)S⁻¹

for any diagonal S; here the one that makes the diagonal 1, so that the units of the features do not matter. The sums
are known up to e_j e_k (mercer.places.sums), which moves g_j by e_j(Σ e_k|w_k| + e_y), and α by no more than ‖S⁻¹e‖².
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import ABOVE, EXACT_GAP
from mercer.places.ball import Ball, exact
from mercer.places.sums import Sums
from mercer.samples.arrays import Floats, gamma


def certify_sums(sums: Sums, W: Floats, lam: float, scale: float = 1.0) -> Certificate:
    """For k = scale·⟨x, z⟩ and λ = scale·lam; at λ = 0 `gap` is the most that a step along one feature would gain."""
    d, e, e_y = len(W), sums.centred_error[: len(W)], sums.centred_error[len(W) :]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # Errors of the sums are products e_j e_k.
        own = exact(np.abs(W)).transformed(e) + e_y
        missed = Ball.within(own.high)
        products = exact(W).transformed(sums.xx)
        gradient = sums.xy - products - lam * exact(W) + exact(e[:, None]) * missed
        risk = sums.yy - (2.0 * exact(W)).inner(sums.xy, axis=0) + products.inner(W, axis=0) + missed.square()
        G = gradient.size
        diagonal = np.abs(sums.xx.diagonal()) + lam
        unit = np.divide(1.0, np.sqrt(diagonal), out=np.zeros(d), where=diagonal > 0)
        scaled = (exact(G) * unit[:, None]).square()
        # What rounding does to b costs its square times the weight.
        lost = exact(np.zeros(W.shape[1]))
        if sums.bias:
            b = sums.y - exact(W).transformed(sums.x) + (sums.rest_y - exact(W).transformed(sums.rest_x)) / sums.weight
            lost = sums.weight * (Ball.within(b.error) + exact(sums.error[0]) * missed / sums.weight).square()
        norms = exact(W).square().sum(axis=0)
        primal = _primal(norms, (risk + Ball.within(lost.size)).positive(), lam, scale)
        if lam > 0:
            least = float((lam * exact(float(np.min(unit, initial=np.inf))).square()).low)
            gap = (scaled.sum(axis=0) / exact(least) + lost) / (2 * lam * exact(scale))
            if not (gap.high <= EXACT_GAP * primal.value).all():  # worth the eigenvalues
                least = max(least, least_curvature(sums, lam, unit))
                gap = (scaled.sum(axis=0) / exact(least) + lost) / (2 * lam * exact(scale))
        else:
            gap = 0.5 * (scaled.max(axis=0) + lost)
        highest, lowest, above = primal.high, (primal - Ball.within(gap.size)).low, gap.size
    biases, parts = sums.bias_of(W), []
    for k in range(W.shape[1]):
        worst = float(G[:, k].max(initial=0.0))
        parts.append(
            Certificate(
                primal=float(highest[k]),
                dual=float(lowest[k]),
                gap=float(above[k]),  # and at least the difference of the two
                violation=worst,
                kkt={"normal equations": worst, ABOVE: float(above[k])},
                gap_measures="optimality" if lam > 0 else "stationarity",
                precision="float64, from sums over the samples",
                worst=int(np.argmax(G[:, k])),
                b=(float(biases[k]),) if sums.bias else (),
            )
        )
    return Certificate.total(parts)


def least_curvature(sums: Sums, lam: float, unit: Floats) -> float:
    """A lower bound on the eigenvalues of X̃'WX̃ + λI, multiplied by the diagonal `unit` from both sides."""
    d, e = len(unit), sums.centred_error[: len(unit)]
    matrix = sums.xx * unit[:, None] * unit + np.diag(lam * unit**2)
    if not np.isfinite(matrix).all():
        return 0.0
    smallest = float(scipy.linalg.eigvalsh(matrix, check_finite=False)[0])
    # A matrix with a unit diagonal has a norm of at most d, and its eigenvalues the error of 8d backward stable steps.
    known = Ball(smallest, float(exact(1.0).rounded(8 * d * d).error)) - (exact(e) * unit).square().sum()
    return float(known.low)


def sums_are_exact(sums: Sums, certificate: Certificate, lam: float, scale: float = 1.0) -> bool:
    """Whether every output's gap is as small as promised, or as the rounding of the targets' own digits."""
    share = gamma(len(sums.x) + 16)
    squares = share**2 * (np.abs(sums.yy) + sums.weight * sums.y**2)
    floor = squares / (2 * lam * scale) if lam > 0 else squares / 2
    parts = certificate.parts or (certificate,)
    pairs = zip(parts, floor.tolist(), strict=True)
    return all(part.kkt[ABOVE] <= EXACT_GAP * part.primal + allowed for part, allowed in pairs)


def _primal(norms: Ball, risk: Ball, lam: float, scale: float) -> Ball:
    """½‖f‖² + risk/(2λ) with ‖f‖² = ‖w‖²/scale, or at λ = 0 half of the risk."""
    return 0.5 * (norms + risk / lam) / scale if lam > 0 else 0.5 * risk
