"""Certificates of least squares on landmarks: the residual of the normal equations says how far the optimum is.

    minimise  ½ Σ w_i (y_i − f(x_i))² + ½ λ c'K_MM c     over f = Σ_j c_j k(z_j, ·) + b

In coordinates α in which c'K_MM c = ‖α‖², and with the bias eliminated, the normal equations are (H + λI)α = g. Their
residual r at any α gives the duality gap ‖r‖²/(2λ); the dual point is β = W(y − f)/λ. K_MM carries a jitter on its
diagonal, at the size of rounding, in the problem that is solved and in the one that is proven.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from mercer.arrays import Floats, gamma
from mercer.certificates.certificate import Certificate
from mercer.gram.cross import Doubt


def landmark_gap(residual: Floats, lam: float) -> Floats:
    """The duality gap of each output, from the true residual of its normal equations."""
    return np.asarray(np.sum(residual * residual, axis=0) / (2 * lam))


def doubted_gap(residual: Floats, alpha: Floats, C: Floats, lam: float, L: Floats, own: float, doubt: Doubt) -> Floats:
    """The same with what rounding can add to the residual L⁻¹K_nMᵀW(y − f) − λα.

    Sums over the samples that are off by e move it by |L⁻¹|e at most. An f that is off by e moves it by
    √(Σ w e²) √(Σ w k(x, x)) at most, whatever K_MM is. Solving with L has a relative error of γ_m |L⁻¹||L| (Higham,
    8.1). K_MM is known up to `own`, in units of √(k_ii k_jj), which its factor's rounding is part of; that moves the
    residual by λ|L⁻¹| times the product with |c|.
    """
    m = len(L)
    inverse = np.abs(solve_triangular(L, np.eye(m), lower=True, overwrite_b=True, check_finite=False))
    size = np.abs(residual) + inverse @ doubt.residual
    size += gamma(2 * m + 4) * (inverse @ (np.abs(L) @ (lam * np.abs(alpha) + np.abs(residual))))
    root = np.sqrt(np.sum(L * L, axis=1))
    heard = root @ np.abs(C)
    size += lam * own * (inverse @ np.outer(root, heard))
    values = np.sqrt(doubt.squares * doubt.trace)
    # Twice what rounding adds: |L⁻¹| itself is computed.
    return np.asarray((np.sqrt(np.sum((2 * size - np.abs(residual)) ** 2, axis=0)) + values) ** 2 / (2 * lam))


def certify_landmarks(
    gap: Floats, right: Floats, primal: Floats, b: Floats, lam: float, precision: str = "float64"
) -> Certificate:
    """One part per output, from gaps recomputed over the samples; `right` holds the norms ‖g‖.

    `violation` is the residual relative to ‖g‖.
    """
    size = np.sqrt(2 * lam * gap)
    relative = size / np.maximum(right, np.finfo(float).tiny)
    return Certificate.total(
        [
            Certificate(
                primal=float(primal[k]),
                dual=float(primal[k] - gap[k]),
                gap=max(float(gap[k]), float(primal[k]) - float(primal[k] - gap[k])),
                violation=float(relative[k]),
                kkt={"normal equations": float(size[k])},
                proves="optimality",
                precision=precision,
                b=(float(b[k]),),
            )
            for k in range(len(gap))
        ]
    )
