"""How much better a price between those that were tried could be: `search_gap_`, proven for two classes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from mercer.selection.bounds import Known, least_wrong
from mercer.selection.cells import Cells
from mercer.selection.grids import FALLING, PRICES, bare
from mercer.selection.out_of_fold import FoldFit


class SearchGap:
    """Collects what fits prove about held-out samples, and makes one number of it."""

    def __init__(self, points: list[dict[str, Any]], counts_mistakes: bool) -> None:
        self._points = points
        self._known: dict[tuple[str, int], dict[int, tuple[Known, Any, bool]]] = {}
        self._lock = threading.Lock()
        self._reason = (
            ""
            if counts_mistakes
            else "only the share of held-out samples of folds that are right, without weights, has such a bound"
        )
        if not self._reason and not any(bare(name) in ("C", *FALLING) for point in points for name in point):
            self._reason = "the grid has no C"

    def put(self, point: int, fold: int, machine: Any, fit: FoldFit, y: Any) -> None:
        """A fit of a fold, and the targets of its held-out samples."""
        if self._reason:
            return
        if len(fit.tasks) != 1 or fit.classes is None or len(fit.classes) != 2:
            self._reason = "only machines for two classes have such a bound"
            return
        (task,) = fit.tasks
        if task.certificate.proves != "optimality":
            self._reason = f"the kernel is not known to be positive definite: a fit proves {task.certificate.proves}"
            return
        assert task.values is not None
        assert task.errors is not None
        assert task.lengths is not None
        params = self._points[point]
        price = float(machine.C)
        for name, value in params.items():
            if bare(name) in FALLING:
                price = 1.0 / float(value)
        known = Known(
            price, task.values - task.offset, task.errors, task.lengths, task.norm, max(task.certificate.gap, 0.0)
        )
        rest = {name: value for name, value in params.items() if bare(name) not in ("C", *FALLING)}
        key = repr(sorted(rest.items(), key=lambda item: item[0])), fold
        with self._lock:
            self._known.setdefault(key, {})[point] = (known, np.asarray(y) == fit.classes[1], machine.bias is True)

    def value(self, cells: Cells, best: int) -> tuple[float | None, str]:
        """The largest gain that is not ruled out, or None and why."""
        if self._reason:
            return None, self._reason
        if not self._known:
            return None, "fits that were made fold by fold keep no decision values"
        if not cells.complete or cells.errors:
            return None, "the search is not complete"
        searched = {n for point in cells.points for n in point if bare(n) in PRICES and bare(n) not in ("C", *FALLING)}
        if searched:
            return None, f"{', '.join(sorted(searched))} was searched too, and has no such bound"
        top, score = 0.0, float(cells.means[best])
        for kernel in {key for key, _ in self._known}:
            top = max(top, self._most(cells, kernel) - score)
        return top, ""

    def _most(self, cells: Cells, kernel: str) -> float:
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
        if len(prices) < 2:
            return -np.inf
        return _least_over(shares, prices)


def _least_over(shares: dict[tuple[float, float], float], prices: list[float]) -> float:
    """One minus the smallest share of mistakes over the range; ranges of different folds need not be the same.

    Folds in which other prices were skipped have other ranges: the least count on each piece between two ends is used.
    """
    ends = np.unique([end for piece in shares for end in piece])
    middles = np.sqrt(ends[1:] * ends[:-1])
    total = np.zeros(len(middles))
    for (low, high), share in shares.items():
        total[(middles > low) & (middles < high)] += share
    inside = (middles > prices[0]) & (middles < prices[-1])
    return 1.0 - float(total[inside].min(initial=1.0)) if inside.any() else -np.inf
