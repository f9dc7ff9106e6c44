"""What a column is standardised with."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats, sums_by


def moments(values: Floats, weight: Floats) -> tuple[float, float]:
    """Mean and standard deviation, 1 if that is 0; no square overflows.

    Equal values are summed as one, and in ascending order, so that a weight of 2 equals two rows to the last bit,
    whatever order they come in.
    """
    distinct, place = np.unique(values, return_inverse=True)
    mass = sums_by(place, weight, len(distinct))
    largest = float(np.abs(distinct).max()) or 1.0
    shares = distinct / largest
    centre = float(np.average(shares, weights=mass))
    deviation = float(np.sqrt(np.average((shares - centre) ** 2, weights=mass)))
    return centre * largest, deviation * largest or 1.0
