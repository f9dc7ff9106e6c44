"""Mean and standard deviation of the targets of a regression, without those that lie far outside all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.samples.arrays import Flags, Floats
from mercer.tables.encodings import moments

# A target lies far outside if it is more than six times as far from the median as the outer eighth of its side begins:
# 7 standard deviations of a normal distribution. A longer tail of one side has a wider limit of its own.
_REACH_FACTOR = 6.0
_MOST_OUTSIDE_SHARE = 0.05  # share of the weight, except for a single number; more than that is no error of a few rows


def target_moments(y: Floats, weight: Floats) -> tuple[Any, Any]:
    """Weighted mean and standard deviation of each target without those that `is_far_off` marks.

    The moments are 0 and 1 for targets that an estimator refuses: infinite or missing ones, or all of weight 0.
    """
    if not np.isfinite(y).all() or not weight.sum() > 0:
        return 0.0, 1.0
    if y.ndim == 1:
        is_kept = ~is_far_off(y, weight)
        return moments(y[is_kept], weight[is_kept])
    means, scales = zip(*(target_moments(column, weight) for column in y.T), strict=True)
    return np.array(means), np.array(scales)


def is_far_off(y: Floats, weight: Floats) -> Flags:
    """Return which targets lie far outside the others, such as numbers with a misplaced decimal point.

    How far they lie makes no difference to the mean and standard deviation of the others. No target counts as far off
    if several targets with more than a twentieth of the weight would, or if three quarters of the weight have the same
    target.
    """
    low, middle, high = _middle_three_quarters(y, weight)
    if not high - low > 0:
        return np.zeros(len(y), dtype=bool)
    length_below, length_above = middle - low or high - middle, high - middle or middle - low
    is_far = (y < middle - _REACH_FACTOR * length_below) | (y > middle + _REACH_FACTOR * length_above)
    are_few = weight[is_far].sum() <= _MOST_OUTSIDE_SHARE * weight.sum() or len(np.unique(y[is_far])) == 1
    return is_far if are_few else np.zeros(len(y), dtype=bool)


def is_concentrated(y: Floats) -> bool:
    """Return whether the middle three quarters of the targets are one and the same number."""
    low, _, high = _middle_three_quarters(y, np.ones(len(y)))
    return not high - low > 0


def _middle_three_quarters(y: Floats, weight: Floats) -> tuple[float, float, float]:
    """Return the 1/8 quantile, the median and the 7/8 quantile: the smallest targets with this weight up to them."""
    order = np.argsort(y, kind="stable")
    mass = np.cumsum(weight[order])
    places = np.searchsorted(mass, np.array([1 / 8, 1 / 2, 7 / 8]) * mass[-1] * (1 - 1e-11), side="left")
    low, middle, high = y[order[places]].tolist()
    return low, middle, high
