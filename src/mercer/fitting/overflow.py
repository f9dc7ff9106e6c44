"""Numbers that overflowed on the way are an error, never a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import is_sparse


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
