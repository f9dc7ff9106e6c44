"""The certificate of linear least squares where only sums over the samples are left, with the rounding these carry.

At weights w of the features, and their best b, the gradient g = X̃'Wỹ − X̃'WX̃w − λw is that of a quadratic function:

    P − P* = g'(X̃'WX̃ + λI)⁻¹g / 2λ ≤ ‖S⁻¹g‖² / (2λ α),   α the least eigenvalue of S⁻¹(X̃'WX̃ + λI)S⁻¹

for any diagonal S; here the one that makes the diagonal 1, so that the units of the features do not matter. The sums
are known up to e_j e_k (mercer.gram.sums), which moves g_j by e_j(Σ e_k|w_k| + e_y), and α by no more than ‖S⁻¹e‖².
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from mercer.arrays import Floats, gamma
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import ABOVE, EXACT_GAP
from mercer.gram.sums import Sums


def certify_sums(sums: Sums, W: Floats, lam: float, scale: float = 1.0) -> Certificate:
    """For k = scale·⟨x, z⟩ and λ = scale·lam; at λ = 0 `gap` is the most that a step along one feature would gain."""
    d, size = len(W), np.abs(W)
    e, e_y = sums.centred_error[:d], sums.centred_error[d:]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gradient = sums.xy - sums.xx @ W - lam * W
        error = np.outer(e, e @ size + e_y) + gamma(d + 4) * (np.abs(sums.xy) + np.abs(sums.xx) @ size + lam * size)
        risk = sums.yy - 2 * np.einsum("dq,dq->q", W, sums.xy) + np.einsum("dq,dq->q", W, sums.xx @ W)
        G = np.abs(gradient) + error
        diagonal = np.abs(sums.xx.diagonal()) + lam
        unit = np.divide(1.0, np.sqrt(diagonal), out=np.zeros(d), where=diagonal > 0)
        scaled = np.sum((unit[:, None] * G) ** 2, axis=0)
        # What rounding does to b costs its square times the weight.
        e_b = (sums.error[0] * (e @ size + e_y)) / sums.weight + gamma(d + 4) * (np.abs(sums.y) + np.abs(sums.x) @ size)
        lost = sums.weight * e_b**2 if sums.bias else np.zeros_like(e_b)
        terms = (
            np.abs(sums.yy)
            + 2 * np.sum(size * np.abs(sums.xy), axis=0)
            + np.sum(size * (np.abs(sums.xx) @ size), axis=0)
        )
        risk_error = (e @ size + e_y) ** 2 + gamma(2 * d + 8) * terms + lost
    primal = _primal(np.sum(W * W, axis=0), np.maximum(risk, 0.0), lam, scale)
    off = _primal(np.zeros(W.shape[1]), risk_error, lam, scale) + gamma(d + 8) * primal
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if lam > 0:
            least = lam * float(np.min(unit, initial=np.inf)) ** 2 if d else 1.0
            gap = (scaled / least + lost) / (2 * lam * scale)
            if not (gap <= EXACT_GAP * primal).all():  # worth the eigenvalues
                gap = (scaled / max(least, least_curvature(sums, lam, unit)) + lost) / (2 * lam * scale)
        else:
            gap = 0.5 * (np.max((unit[:, None] * G) ** 2, axis=0, initial=0.0) + lost)
    b = sums.bias_of(W)
    parts = []
    for k in range(W.shape[1]):
        worst, above = float(G[:, k].max(initial=0.0)), float(gap[k])
        # Both values are bounds: P is known up to `off`.
        high, low = float(primal[k] + off[k]), float(primal[k] - off[k]) - above
        parts.append(
            Certificate(
                primal=high,
                dual=low - gamma(4) * (abs(low) + above),
                gap=above + 2 * float(off[k]),
                violation=worst,
                kkt={"normal equations": worst, ABOVE: above},
                gap_measures="optimality" if lam > 0 else "stationarity",
                precision="float64, from sums over the samples",
                worst=int(np.argmax(G[:, k])),
                b=(float(b[k]),) if sums.bias else (),
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
    return smallest - float(np.sum((unit * e) ** 2)) - gamma(8 * d * d)


def sums_are_exact(sums: Sums, certificate: Certificate, lam: float, scale: float = 1.0) -> bool:
    """Whether every output's gap is as small as promised, or as the rounding of the targets' own digits."""
    share = gamma(len(sums.x) + 16)
    squares = share**2 * (np.abs(sums.yy) + sums.weight * sums.y**2)
    floor = squares / (2 * lam * scale) if lam > 0 else squares / 2
    parts = certificate.parts or (certificate,)
    pairs = zip(parts, floor.tolist(), strict=True)
    return all(part.kkt[ABOVE] <= EXACT_GAP * part.primal + allowed for part, allowed in pairs)


def _primal(norms: Floats, risk: Floats, lam: float, scale: float) -> Floats:
    """½‖f‖² + risk/(2λ) with ‖f‖² = ‖w‖²/scale, or at λ = 0 half of the risk."""
    return np.asarray(0.5 * (norms + risk / lam) / scale if lam > 0 else 0.5 * risk)
