"""Certificates of least squares on landmarks: the residual of the normal equations says how far the optimum is.

    minimise  ½ Σ w_i (y_i − f(x_i))² + ½ λ c'K_MM c     over f = Σ_j c_j k(z_j, ·) + b

In coordinates α in which c'K_MM c = ‖α‖², and with the bias eliminated, the normal equations are (H + λI)α = g. Their
residual r at any α gives the duality gap ‖r‖²/(2λ); the dual point is β = W(y − f)/λ.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate


def landmark_gap(residual: Floats, lam: float) -> Floats:
    """The duality gap of each output, from the true residual of its normal equations."""
    return np.asarray(np.sum(residual * residual, axis=0) / (2 * lam))


def certify_landmarks(residual: Floats, right: Floats, primal: Floats, b: Floats, lam: float) -> Certificate:
    """One part per output, from residuals recomputed over the samples; `right` holds the norms ‖g‖.

    `violation` is the residual relative to ‖g‖.
    """
    gap = landmark_gap(residual, lam)
    size = np.sqrt(np.sum(residual * residual, axis=0))
    relative = size / np.maximum(right, np.finfo(float).tiny)
    return Certificate.total(
        [
            Certificate(
                primal=float(primal[k]),
                dual=float(primal[k] - gap[k]),
                gap=float(gap[k]),
                violation=float(relative[k]),
                kkt={"normal equations": float(size[k])},
                proves="optimality",
                b=(float(b[k]),),
            )
            for k in range(len(gap))
        ]
    )
