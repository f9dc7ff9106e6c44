"""Numbers that overflowed on the way are an error or a warning, never a model that calls itself converged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays import is_sparse
from mercer.certificates.certificate import Certificate


def proven(reason: str, certificate: Certificate) -> str:
    """Why a fit stopped, where a gap that is no number proves nothing: its terms are beyond float64."""
    return reason if reason != "converged" or math.isfinite(certificate.gap) else "rounding floor"


def expect_finite(model: Any) -> None:
    """Refuse a fit whose coefficients are not finite numbers."""
    fitted = vars(model)
    values = {name: fitted[name] for name in ("coef_", "dual_coef_", "intercept_") if name in fitted}
    if "_expansion_" in fitted:
        values["expansion"] = fitted["_expansion_"].coefficients
    for name, value in values.items():
        if not np.isfinite(value.data if is_sparse(value) else value).all():
            raise FloatingPointError(
                f"{type(model).__name__} overflowed: its {name} is not finite. The features, the targets, the weights "
                "or their price (C or 1/lam) are too large or too small together; scale them"
            )
