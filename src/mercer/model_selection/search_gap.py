"""How much better a price between those that were tried could be: `search_gap_`, proven for two classes.

With P = ½‖w‖² + Σ C_i ξ_i, a feasible β, w = Σ β_j φ(x_j) and a gap g between their values,

    ½‖w − w*‖² ≤ P(w, b) − P*   and   ½‖w − w*‖² ≤ D* − D(β),   so that   ‖w − w*‖ ≤ √g

(the first because P is strongly convex in w, the second because D loses ½‖w − w*‖² beside a first-order term that is
not positive at a maximum). For another price C' = rC, the optima satisfy ⟨w' − r w*, w' − w*⟩ ≤ 0: w' lies in the ball
with the diameter from w* to r w* (add r times the variational inequality of w* at w' to that of w' at w*). Hence

    |⟨w', φ(x)⟩ − (1 + r)/2 ⟨w, φ(x)⟩| ≤ √k(x, x) [ (1 + r)/2 √g + |1 − r|/2 (‖w‖ + √g) ]

b is not bounded: a sample counts as surely wrong only if it is for the b that makes the fewest of them wrong.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from mercer.model_selection.grids import FALLING, PRICES, RISING, price_of, without
from mercer.model_selection.held_out.fold_fits import FoldFit
from mercer.model_selection.parameter_keys import grouped, key_of_params
from mercer.model_selection.score_table import Cells
from mercer.samples.arrays import Flags, Floats

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


# A price and what stands for it.
_ONE_PRICE = (*RISING, *FALLING)


class SearchGap:
    """Collects what fits prove about held-out samples, and makes one number of it."""

    def __init__(self, points: list[dict[str, Any]], counts_mistakes: bool, prefix: str = "") -> None:
        self._points, self._prefix = points, prefix
        # Points that differ in one price alone, C or another that stands for it, and so have the same kernel.
        keys = [key_of_params(without(_ONE_PRICE, params, prefix) | self._priced(params)) for params in points]
        self._kernels = {k: number for number, group in enumerate(grouped(keys)) for k in group}
        self._known: dict[tuple[int, int], dict[int, tuple[Known, Any, bool]]] = {}
        self._lock = threading.Lock()
        self._reason = (
            ""
            if counts_mistakes
            else "only the share of held-out samples of folds that are right, without weights, has such a bound"
        )
        if not self._reason and not any(map(self._priced, points)):
            self._reason = "the grid has no C"
        if any(len(self._priced(params)) > 1 for params in points):
            self._reason = f"the grid names several of {', '.join(_ONE_PRICE)} at once"

    def _priced(self, params: dict[str, Any]) -> dict[str, bool]:
        """Which prices a point names."""
        return {name: True for name in _ONE_PRICE if isinstance(params.get(self._prefix + name), Real)}

    def put(self, point: int, fold: int, machine: Any, fit: FoldFit, y: Any) -> None:
        """A fit of a fold, and the targets of its held-out samples."""
        if self._reason:
            return
        # Of several classes a fold may know two only; it was fitted pair by pair, without what a bound takes.
        if len(fit.tasks) != 1 or fit.classes is None or len(fit.classes) != 2 or fit.tasks[0].values is None:
            self._reason = "only machines for two classes have such a bound"
            return
        (task,) = fit.tasks
        if task.certificate.gap_measures != "optimality":
            self._reason = (
                f"the kernel is not known to be positive definite: a fit proves {task.certificate.gap_measures}"
            )
            return
        assert task.values is not None  # for mypy
        assert task.errors is not None
        assert task.lengths is not None
        price = price_of(self._points[point], self._prefix) or float(machine.C)
        price = price if price > 0 else -1.0 / price
        known = Known(
            price, task.values - task.offset, task.errors, task.lengths, task.norm, max(task.certificate.gap, 0.0)
        )
        with self._lock:
            self._known.setdefault((self._kernels[point], fold), {})[point] = (
                known,
                np.asarray(y) == fit.classes[1],
                machine.bias is True,
            )

    def value(self, cells: Cells, best: int) -> tuple[float | None, str]:
        """The largest gain that is not ruled out, or None and why."""
        if self._reason:
            return None, self._reason
        if not self._known:
            return None, "fits that were made fold by fold keep no decision values"
        if not cells.complete or cells.errors:
            return None, "the search is not complete"
        if len({point for fits in self._known.values() for point in fits}) < len(cells.points):
            return None, "some fits were made fold by fold, which keeps no decision values"
        others = {self._prefix + name for name in PRICES if name not in _ONE_PRICE}
        searched = sorted({name for point in cells.points for name in point} & others)
        if searched:
            return None, f"{', '.join(searched)} was searched too, and has no such bound"
        top, score = 0.0, float(cells.means[best])
        for kernel in {key for key, _ in self._known}:
            top = max(top, self._most(cells, kernel) - score)
        return top, ""

    def _most(self, cells: Cells, kernel: int) -> float:
        """The largest mean accuracy that some price in the range can have with this kernel."""
        shares: dict[tuple[float, float], float] = {}
        prices = sorted(
            {one.price for (name, _), fits in self._known.items() if name == kernel for one, _, _ in fits.values()}
        )
        for fold in range(cells.n_folds):
            fits = self._known.get((kernel, fold), {})
            if not fits:
                continue
            positive, free = next((positive, free) for _, positive, free in fits.values())
            for low, high, wrong in least_wrong([known for known, _, _ in fits.values()], positive, free):
                share = wrong / (max(1, len(positive)) * cells.n_folds)
                shares[low, high] = shares.get((low, high), 0.0) + share
        return _least_over(shares, prices) if len(prices) > 1 else -np.inf


def _least_over(shares: dict[tuple[float, float], float], prices: list[float]) -> float:
    """One minus the smallest share of mistakes over the range; ranges of different folds need not be the same.

    Folds in which other prices were skipped have other ranges: the least count on each piece between two ends is used.
    Between prices that no fold has side by side, nothing is known, and no sample counts as wrong. Ranges lie between
    the smallest and the largest of the prices, of which there are at least two.
    """
    ends = np.unique([*prices, *(end for piece in shares for end in piece)])
    middles = np.sqrt(ends[1:] * ends[:-1])
    total = np.zeros(len(middles))
    for (low, high), share in shares.items():
        total[(middles > low) & (middles < high)] += share
    return 1.0 - float(total.min())
