"""The law of a regression's errors as LIBSVM's -b 1 has it: P(|y − f(x)| > t) = exp(−t/σ), the same σ at every x."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats


def laplace_scale(residuals: Floats) -> float:
    """σ: the mean |r|, once those beyond five standard deviations of such a law are left out."""
    size = np.abs(residuals)
    kept = size[size <= 5.0 * np.sqrt(2.0) * size.mean()]
    return float(kept.mean())
