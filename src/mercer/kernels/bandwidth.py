"""The coefficient gamma: what it may be, and the numbers that "scale", "auto" and "median" stand for.

    "scale"   1 / (d Var X), the variance over all entries of X, as scikit-learn; 1 where X is constant
    "auto"    1 / d
    "median"  1 / (2 m²), or 1 / m for a kernel of the L1 distance, m the median distance between two different samples,
              of at most 1000 rows at equal steps through the data

A sample of weight w counts like w repetitions. The variance is computed in two passes, centred, so an offset does no harm.
"""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats
from mercer.kernels.distances import l1_distances, squared_distances
from mercer.kernels.matrices import as_matrix, row_sums, strips, widened

if TYPE_CHECKING:
    from mercer.kernels.kernel import Kernel

K = TypeVar("K", bound="Kernel")

_RULES = ("scale", "auto", "median")
_MEDIAN_ROWS = 1000
# A spread of this share of the values' size is what rounding makes of constant data.
_SPREAD = 1e-14


def check_gamma(gamma: Any) -> None:
    """A number ≥ 0, or one of the rules."""
    if isinstance(gamma, str):
        if gamma in _RULES:
            return
    elif isinstance(gamma, Real) and not isinstance(gamma, (bool, np.bool_)) and 0 <= gamma < math.inf:
        return
    raise ValueError(f"gamma={gamma!r} must be a finite number ≥ 0, or one of 'scale', 'auto', 'median'")


def gamma_of(kernel: Any) -> float:
    """The kernel's gamma as a number."""
    check_gamma(kernel.gamma)
    if isinstance(kernel.gamma, str):
        raise ValueError(
            f"gamma={kernel.gamma!r} of {kernel!r} depends on the training data: use kernel.bind(X), or give gamma a number"
        )
    return float(kernel.gamma)


def with_bound_gamma(kernel: K, X: Any, sample_weight: Any, l1: bool = False) -> K:
    """The kernel with gamma as a number, the same one where it is one already."""
    check_gamma(kernel.gamma)
    if isinstance(kernel.gamma, str):
        gamma = gamma_from(kernel.gamma, X, sample_weight, l1, stacklevel=4)
        return type(kernel)(**{**kernel.get_params(deep=False), "gamma": gamma})
    if kernel.gamma == 0:
        warnings.warn(
            f"gamma=0 makes {kernel!r} constant: every sample looks the same to it; give gamma a number > 0",
            UserWarning,
            stacklevel=3,
        )
    return kernel


def gamma_from(rule: str, X: Any, sample_weight: Any = None, l1: bool = False, stacklevel: int = 2) -> float:
    """The number a rule stands for on data X."""
    X = as_matrix(X)
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"gamma={rule!r} cannot be computed from X of shape {X.shape}: it has no entries")
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight is not None and weight.shape != (X.shape[0],):
        raise ValueError(f"sample_weight has shape {weight.shape}, but X has {X.shape[0]} samples")
    if rule == "auto":
        return 1.0 / X.shape[1]
    gamma = _from_variance(X, weight) if rule == "scale" else _from_median(X, weight, l1)
    if gamma is None:
        what = "variance is 0" if rule == "scale" else "samples are all identical"
        warnings.warn(
            f"gamma={rule!r} is undefined because X is constant to rounding (its {what}); gamma=1.0 is used instead",
            UserWarning,
            stacklevel=stacklevel,
        )
        return 1.0
    return gamma


def _from_variance(X: Any, weight: Floats | None) -> float | None:
    mean, _ = _moments(X, weight, 0.0)
    if not math.isfinite(mean):
        raise FloatingPointError(
            "gamma='scale' overflows: the entries of X are too large for their mean; scale the features"
        )
    rest, variance = _moments(X, weight, mean)
    variance -= rest**2
    if not math.isfinite(variance):
        raise FloatingPointError(
            "gamma='scale' overflows: the variance of X exceeds float64; scale the features"
        )
    if variance <= _SPREAD**2 * (mean**2 + variance) or variance < np.finfo(np.float64).tiny:
        return None
    return 1.0 / (X.shape[1] * variance)


def _moments(X: Any, weight: Floats | None, centre: float) -> tuple[float, float]:
    """The weighted means of x − centre and (x − centre)² over all entries of X, implicit zeros included."""
    n, d = X.shape
    weight = np.ones(n) if weight is None else weight / (weight.max(initial=0.0) or 1.0)
    first, second = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in strips(n, d):
            block = widened(X[rows])
            if sp.issparse(block):
                shifted = block.data - centre
                zeros = d - np.diff(block.indptr)
                sums = row_sums(shifted, block) - zeros * centre
                squares = row_sums(shifted**2, block) + zeros * centre**2
            else:
                shifted = block - centre
                sums = shifted.sum(axis=1)
                squares = np.einsum("ij,ij->i", shifted, shifted)
            first.append(float(weight[rows] @ sums))
            second.append(float(weight[rows] @ squares))
        total = math.fsum(weight) * d
        return float(np.sum(first)) / total, float(np.sum(second)) / total


def _from_median(X: Any, weight: Floats | None, l1: bool) -> float | None:
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], _MEDIAN_ROWS)).round().astype(np.intp))
    some = X[rows]
    distances = l1_distances(some, some) if l1 else np.sqrt(squared_distances(some, some))
    pairs = np.tril_indices(len(rows), -1)
    between = distances[pairs]
    share = np.ones(len(between)) if weight is None else weight[rows][pairs[0]] * weight[rows][pairs[1]]
    counted = (between > 0) & (share > 0)
    if not counted.any():
        return None
    median = _weighted_median(between[counted], share[counted])
    gamma = 1.0 / median if l1 else 0.5 / median / median
    return min(gamma, float(np.finfo(np.float64).max))


def _weighted_median(values: Floats, share: Floats) -> float:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(share[order])
    half = 0.5 * below[-1]
    lower, upper = np.searchsorted(below, half, side="left"), np.searchsorted(below, half, side="right")
    return float(0.5 * (values[order[lower]] + values[order[min(upper, len(order) - 1)]]))
