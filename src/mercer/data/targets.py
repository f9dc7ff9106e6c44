"""Targets of regression as users hand them over: finite numbers, one column per output."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from mercer.arrays import Floats
from mercer.data.samples import refuse_masked, refuse_what_is_no_number


def outputs(y: Any) -> tuple[Floats, bool]:
    """A float64 matrix with one column per output, and whether y was a plain list of numbers."""
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None.")
    refuse_masked(y, "y")
    y = check_array(y, dtype=None, ensure_2d=False, allow_nd=True, input_name="y", ensure_all_finite=False)
    refuse_what_is_no_number(y, "y")
    y = np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2) or y.shape[-1] == 0:
        raise ValueError(f"y has shape {y.shape}; it must have one number per sample, or one row of numbers per sample")
    bad = np.argwhere(~np.isfinite(y))
    if len(bad):
        place = tuple(int(i) for i in bad[0])
        raise ValueError(f"y contains {y[place]} at {place}; impute or drop such samples first")
    return y.reshape(len(y), -1), y.ndim == 1
