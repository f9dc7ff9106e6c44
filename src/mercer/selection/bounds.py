"""What is proven about the exact optimum of a cell from a fit that is not exact, for two classes.

With P = ½‖w‖² + Σ C_i ξ_i, a feasible β, w = Σ β_j φ(x_j) and a gap g between their values,

    ½‖w − w*‖² ≤ P(w, b) − P*   and   ½‖w − w*‖² ≤ D* − D(β),   so that   ‖w − w*‖ ≤ √g

(the first because P is strongly convex in w, the second because D loses ½‖w − w*‖² beside a first-order term that is
not positive at a maximum). For another price C' = rC, the optima satisfy ⟨w' − r w*, w' − w*⟩ ≤ 0: w' lies in the ball
with the diameter from w* to r w* (add r times the variational inequality of w* at w' to that of w' at w*). Hence

    |⟨w', φ(x)⟩ − (1 + r)/2 ⟨w, φ(x)⟩| ≤ √k(x, x) [ (1 + r)/2 √g + |1 − r|/2 (‖w‖ + √g) ]

b is not bounded: a sample counts as surely wrong only if it is for the b that makes the fewest of them wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mercer.arrays import Flags, Floats

# The gap is a bound already; this covers rounding of what is computed from it here.
_SLACK = 1.0 + 1e-6
# Parts into which the range between two neighbouring prices is cut, in equal ratios.
_PARTS = 4


@dataclass(frozen=True, eq=False)
class Known:
    """What a fold's fit at one price says about its held-out samples."""

    price: float
    values: Floats  # ⟨w, φ(x)⟩ without b
    errors: Floats  # how far each can be from the true one of these coefficients
    lengths: Floats  # √k(x, x)
    norm: float  # ‖w‖, or a number above it
    gap: float

    def around(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Between which numbers ⟨w', φ(x)⟩ lies for the optimum at any price from `low` to `high`."""
        ends = [self._at(price / self.price) for price in (low, high)]
        return np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])

    def _at(self, ratio: float) -> tuple[Floats, Floats]:
        off = np.sqrt(self.gap) * _SLACK
        radius = 0.5 * (1 + ratio) * off + 0.5 * abs(1 - ratio) * (self.norm + off)
        centre = 0.5 * (1 + ratio) * self.values
        width = (self.lengths * radius + 0.5 * (1 + ratio) * self.errors) * _SLACK + 1e-12 * np.abs(centre)
        return centre - width, centre + width


def surely_wrong(low: Floats, high: Floats, positive: Flags, free_bias: bool) -> int:
    """How many samples are wrong for every f with f − b between `low` and `high`, whatever b is, if it is free.

    f ≥ 0 is the positive class. A positive sample is wrong if high + b < 0, a negative one if low + b ≥ 0.
    """
    if not free_bias:
        return int((high[positive] < 0).sum() + (low[~positive] >= 0).sum())
    wrong_below = np.sort(-high[positive])  # positive samples that are wrong for b below these
    wrong_from = np.sort(-low[~positive])  # negative samples that are wrong for b from these on
    # The count changes only at these b. Just below each of them no more negative samples are wrong than anywhere up to
    # the next, so the least count is at b = one of `wrong_below`, or before all of them.
    at = np.concatenate([[-np.inf], wrong_below])
    still = len(wrong_below) - np.searchsorted(wrong_below, at, side="right")
    already = np.searchsorted(wrong_from, at, side="right")
    return int((still + already).min())


def least_wrong(known: list[Known], positive: Flags, free_bias: bool) -> list[tuple[float, float, int]]:
    """For all prices between the smallest and the largest: ranges of prices, and how many are surely wrong in each."""
    known = sorted(known, key=lambda one: one.price)
    found = []
    for left, right in pairwise(known):
        cuts = np.geomspace(left.price, right.price, _PARTS + 1)
        for low, high in pairwise(cuts):
            first, second = left.around(low, high), right.around(low, high)
            lowest, highest = np.maximum(first[0], second[0]), np.minimum(first[1], second[1])
            found.append((float(low), float(high), surely_wrong(lowest, highest, positive, free_bias)))
    return found
