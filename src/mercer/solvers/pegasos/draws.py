"""Which samples the steps visit (line 4), from a generator whose numbers are the same on every platform."""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices

# Streams of the counter-based generator: draws with replacement, offsets of passes, validation parts, and from the last
# on the order of each pass.
_DRAWS, _OFFSETS, _PARTS, _ORDERS = range(4)

_MOST_VISITS_PER_PASS = 2**31


def draw(seed: int, cumulative: Floats, t: int, count: int) -> Indices:
    """Rows for the steps after t, by inverse CDF over the cumulative weights, with replacement."""
    return _core.draw_rows(seed, _DRAWS, t, count, cumulative)


def one_pass(seed: int, number: int, weight: Floats) -> Indices:
    """Every row as often as its weight says, in random order; the fractions of weights by systematic sampling.

    The points s + offset, s = 0, 1, …, that lie below the total weight each choose the row whose stretch of the
    cumulative weights they fall into.
    """
    cumulative = np.cumsum(weight)
    if cumulative[-1] > _MOST_VISITS_PER_PASS:
        raise ValueError(
            f"the weights add up to {cumulative[-1]:g}, and in a pass a weight is the number of visits: "
            f"at most {_MOST_VISITS_PER_PASS} are made at once. Scale the weights down, or give smaller chunks"
        )
    # 20 bits of offset: s + offset is exact, and an integer weight that many visits.
    offset = float(_core.random_bits(seed, _OFFSETS, number, 1)[0] >> np.uint64(44)) * 2.0**-20
    points = offset + np.arange(int(np.ceil(cumulative[-1])))
    rows = np.searchsorted(cumulative, points[points < cumulative[-1]], side="right")
    order = np.argsort(_core.random_bits(seed, _ORDERS + number, 0, len(rows)), kind="stable")
    return np.asarray(rows[order])


def validation_part(seed: int, n: int, fraction: float) -> Indices:
    """A random part of n rows."""
    order = np.argsort(_core.random_bits(seed, _PARTS, 0, n), kind="stable")
    return np.sort(order[: max(1, round(fraction * n))])
