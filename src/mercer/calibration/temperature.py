"""One temperature T > 0 for all outputs: P(+ | f) = 1 / (1 + exp(−f/T)), with the likeliest T for Platt's targets.

The sign of f decides as before, so predictions of two classes stay the machine's own.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from mercer.arrays import Flags, Floats, Indices
from mercer.calibration.sigmoid import Sigmoids, soft_targets

_WIDEST = np.log(1e9)  # of log T about that of the largest |f|


def fit_temperature(f: Floats, positive: Flags, weight: Floats, starts: Indices) -> Sigmoids:
    """Sigmoids of several outputs, whose values stand one after another: the same slope 1/T for all, no offset."""
    target = soft_targets(positive, weight, starts)
    unit = float(np.abs(f).max(initial=0.0)) or 1.0
    scaled = f / unit

    def loss(log_slope: float) -> float:
        t = np.exp(log_slope) * scaled
        return float((weight * (np.logaddexp(0.0, t) - target * t)).sum())

    # Convex in the slope, so there is one minimum in its logarithm too. If the machine ranks the wrong way round, it is
    # at slope 0, and the smallest slope of the range makes every probability one half.
    found = minimize_scalar(loss, bounds=(-_WIDEST, _WIDEST), method="bounded", options={"xatol": 1e-9})
    slope = float(np.exp(found.x)) / unit
    return Sigmoids(np.full(len(starts), slope), np.zeros(len(starts)))
