"""Targets of regression as users give them: finite numbers, one column or one column per output."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_array

from mercer.arrays import Floats
from mercer.data.samples import is_plain, refuse_masked, refuse_non_numbers


def numbers(y: Any) -> Floats:
    """One finite number per sample."""
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None.")
    several = "RLSRegressor learns several outputs at once, sklearn.multioutput.MultiOutputRegressor one after another"
    refuse_masked(y, "y")
    y = single_column(y, several)
    refuse_non_numbers(y, "y")
    target: Floats = y.astype(np.float64)
    check_finite_targets(target)
    return np.asarray(target + 0.0)  # −0.0 is 0.0


def codes_of(y: Floats) -> Any:
    """One code per target, equal where targets are: their 64 bits, also where indices have 32."""
    return y.view(np.int64)


def outputs(y: Any) -> tuple[Floats, bool]:
    """A float64 matrix with one column per output, and whether y had one dimension."""
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None.")
    refuse_masked(y, "y")
    if not is_plain(y, 1):
        y = check_array(y, dtype=None, ensure_2d=False, allow_nd=True, input_name="y", ensure_all_finite=False)
    refuse_non_numbers(y, "y")
    y = np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2) or y.shape[-1] == 0:
        raise ValueError(f"y has shape {y.shape}; it must have one number per sample, or one row of numbers per sample")
    finite = np.isfinite(y)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"y contains {y[place]} at {place}; impute or drop such samples first")
    return y.reshape(len(y), -1), y.ndim == 1


def single_column(y: Any, several: str) -> np.ndarray:
    """y as one value per sample; if it has more, the error ends with `several`, which says what to do."""
    if is_plain(y, 1):
        return np.asarray(y)
    try:
        return np.asarray(column_or_1d(y, warn=True))
    except ValueError as error:
        if "1d array" not in str(error):
            raise
        raise ValueError(f"{error} {several}") from None


def check_finite_targets(y: np.ndarray) -> None:
    """Raise an error that names the first value that is not finite."""
    finite = np.isfinite(y)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        name = "NaN" if np.isnan(y[bad[0]]) else "infinity"
        raise ValueError(
            f"Input y contains {name}: y[{bad[0]}]={y[bad[0]]}, and {len(bad)} such entries in all. "
            "Impute or drop these samples first"
        )
