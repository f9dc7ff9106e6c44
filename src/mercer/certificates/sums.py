"""Certificates of linear least squares from sums over the samples alone, with the rounding errors of these sums.

At weights w of the features, with the best b for them, the gradient g = X̃'Wỹ − X̃'WX̃w − λw is that of a quadratic
function:

    P − P* = g'(X̃'WX̃ + λI)⁻¹g / 2λ ≤ ‖S⁻¹g‖² / (2λ α),   α the least eigenvalue of S⁻¹(X̃'WX̃ + λI)S⁻¹

for any diagonal S. The S here makes the diagonal of the last matrix 1, so that the units of the features do not matter.
The sums are known up to e_j e_k (mercer.places.sums), which moves g_j by e_j(Σ e_k|w_k| + e_y), and α by no more than
‖S⁻¹e‖².
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import EXACT_GAP, SUBOPTIMALITY
from mercer.places.ball import Ball, exact
from mercer.places.sums import Sums
from mercer.samples.arrays import Floats, gamma


def certify_sums(sums: Sums, W: Floats, lam: float, scale: float = 1.0) -> Certificate:
    """Certify the weights W for k = scale·⟨x, z⟩ and λ = scale·lam.

    At λ = 0 `gap` is the largest decrease by a step along one feature.
    """
    d, e, e_y = len(W), sums.centred_error[: len(W)], sums.centred_error[len(W) :]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # 1. Gradient and risk. Errors of the sums are products e_j e_k.
        gradient_errors = Ball.within((exact(np.abs(W)).transformed(e) + e_y).high)
        products = exact(W).transformed(sums.xx)
        gradient = sums.xy - products - lam * exact(W) + exact(e[:, None]) * gradient_errors
        risk = sums.yy - (2.0 * exact(W)).inner(sums.xy, axis=0) + products.inner(W, axis=0) + gradient_errors.square()
        G = gradient.size
        diagonal = np.abs(sums.xx.diagonal()) + lam
        unit = np.divide(1.0, np.sqrt(diagonal), out=np.zeros(d), where=diagonal > 0)
        scaled_squares = (exact(G) * unit[:, None]).square()
        # 2. An error of b adds its square times the sum of the weights to the risk.
        bias_cost = exact(np.zeros(W.shape[1]))
        if sums.bias:
            b = sums.y - exact(W).transformed(sums.x) + (sums.rest_y - exact(W).transformed(sums.rest_x)) / sums.weight
            bias_cost = (
                sums.weight * (Ball.within(b.error) + exact(sums.error[0]) * gradient_errors / sums.weight).square()
            )
        # 3. Values, and the distance from the optimum.
        norms = exact(W).square().sum(axis=0)
        primal = _primal(norms, (risk + Ball.within(bias_cost.size)).positive(), lam, scale)
        if lam > 0:
            least = float((lam * exact(float(unit.min())).square()).low)
            gap = (scaled_squares.sum(axis=0) / exact(least) + bias_cost) / (2 * lam * exact(scale))
            if not (gap.high <= EXACT_GAP * primal.value).all():  # the least eigenvalue gives a smaller bound
                least = max(least, least_curvature(sums, lam, unit))
                gap = (scaled_squares.sum(axis=0) / exact(least) + bias_cost) / (2 * lam * exact(scale))
        else:
            gap = 0.5 * (scaled_squares.max(axis=0) + bias_cost)
        highest, lowest, gap_bound = primal.high, (primal - Ball.within(gap.size)).low, gap.size
    biases, parts = sums.bias_of(W), []
    for k in range(W.shape[1]):
        worst = float(G[:, k].max(initial=0.0))
        parts.append(
            Certificate(
                primal=float(highest[k]),
                dual=float(lowest[k]),
                gap=float(gap_bound[k]),  # Certificate raises it to primal − dual
                violation=worst,
                kkt={"normal equations": worst, SUBOPTIMALITY: float(gap_bound[k])},
                gap_measures="optimality" if lam > 0 else "stationarity",
                precision="float64, from sums over the samples",
                worst=int(np.argmax(G[:, k])),
                b=(float(biases[k]),) if sums.bias else (),
            )
        )
    return Certificate.total(parts)


def least_curvature(sums: Sums, lam: float, unit: Floats) -> float:
    """Return a lower bound on the eigenvalues of U(X̃'WX̃ + λI)U, where U = diag(`unit`)."""
    d, e = len(unit), sums.centred_error[: len(unit)]
    matrix = sums.xx * unit[:, None] * unit + np.diag(lam * unit**2)
    if not np.isfinite(matrix).all():
        return 0.0
    smallest = float(scipy.linalg.eigvalsh(matrix, check_finite=False)[0])
    # A matrix with a unit diagonal has a norm of at most d, and its eigenvalues the error of 8d backward stable steps.
    eigenvalue = Ball(smallest, float(exact(1.0).rounded(8 * d * d).error)) - (exact(e) * unit).square().sum()
    return float(eigenvalue.low)


def sums_are_exact(sums: Sums, certificate: Certificate, lam: float, scale: float = 1.0) -> bool:
    """Return whether every output's gap is below EXACT_GAP, or below the effect of the rounding of its targets."""
    share = gamma(len(sums.x) + 16)
    rounding_squares = share**2 * (np.abs(sums.yy) + sums.weight * sums.y**2)
    floor = rounding_squares / (2 * lam * scale) if lam > 0 else rounding_squares / 2
    parts = certificate.parts or (certificate,)
    pairs = zip(parts, floor.tolist(), strict=True)
    return all(part.kkt[SUBOPTIMALITY] <= EXACT_GAP * part.primal + allowed for part, allowed in pairs)


def _primal(norms: Ball, risk: Ball, lam: float, scale: float) -> Ball:
    """Return ½‖f‖² + risk/(2λ) with ‖f‖² = ‖w‖²/scale, or half of the risk at λ = 0."""
    return 0.5 * (norms + risk / lam) / scale if lam > 0 else 0.5 * risk
