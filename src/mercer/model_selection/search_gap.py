"""`search_gap_`: a proven bound on the score that any C between the tried ones could gain, for two classes.

With P = ½‖w‖² + Σ C_i ξ_i, a feasible β, w = Σ β_j φ(x_j) and a gap g between their values,

    ½‖w − w*‖² ≤ P(w, b) − P*   and   ½‖w − w*‖² ≤ D* − D(β),   so that   ‖w − w*‖ ≤ √g

(the first because P is strongly convex in w, the second because D changes by −½‖w − w*‖² and a first-order term
that is not positive at a maximum). For another penalty C' = rC, the optima satisfy ⟨w' − r w*, w' − w*⟩ ≤ 0: w' lies in
the ball with the diameter from w* to r w* (add r times the variational inequality of w* at w' to that of w' at w*).
Hence

    |⟨w', φ(x)⟩ − (1 + r)/2 ⟨w, φ(x)⟩| ≤ √k(x, x) [ (1 + r)/2 √g + |1 − r|/2 (‖w‖ + √g) ]

b is not bounded; so the number of samples that are surely wrong is the smallest number of wrong samples over all b.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from mercer.model_selection.grids import FALLING, PROBLEM_PARAMETERS, RISING, drop_parameters, penalty_of
from mercer.model_selection.held_out.fold_fits import FoldFit
from mercer.model_selection.parameter_keys import group_equal_keys, key_of_params
from mercer.model_selection.score_table import ScoreTable
from mercer.samples.arrays import Flags, Floats

# Relative slack for rounding in this module; the gap itself is a bound already.
_ROUNDING_FACTOR = 1.0 + 1e-6
# Number of parts, in equal ratios, of the range between two neighbouring values of C.
_PARTS_PER_RANGE = 4


@dataclass(frozen=True, eq=False)
class FoldFunctions:
    """Values of one fold's decision function at its held-out samples, and the numbers that bound them for other C."""

    C: float
    values: Floats  # ⟨w, φ(x)⟩ without b
    errors: Floats  # bounds on the rounding error of each value
    lengths: Floats  # √k(x, x)
    norm: float  # an upper bound on ‖w‖
    gap: float

    def bounds(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Return lower and upper bounds on ⟨w', φ(x)⟩ for the optimum at any C from `low` to `high`."""
        ends = [self._bounds_at(C / self.C) for C in (low, high)]
        return np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])

    def _bounds_at(self, ratio: float) -> tuple[Floats, Floats]:
        """Return lower and upper bounds on ⟨w', φ(x)⟩ for the optimum at `ratio` times this C."""
        distance = np.sqrt(self.gap) * _ROUNDING_FACTOR  # largest distance of w from the optimum at this C
        radius = 0.5 * (1 + ratio) * distance + 0.5 * abs(1 - ratio) * (self.norm + distance)
        centre = 0.5 * (1 + ratio) * self.values
        width = (self.lengths * radius + 0.5 * (1 + ratio) * self.errors) * _ROUNDING_FACTOR + 1e-12 * np.abs(centre)
        return centre - width, centre + width


def count_surely_wrong(low: Floats, high: Floats, positive: Flags, free_bias: bool) -> int:
    """Return the number of samples that are misclassified for every f with f − b between `low` and `high`.

    f ≥ 0 is the positive class. A positive sample is wrong if high + b < 0, a negative one if low + b ≥ 0. If b is
    free, the result is the smallest such number over all b; otherwise b is 0.
    """
    if not free_bias:
        return int((high[positive] < 0).sum() + (low[~positive] >= 0).sum())
    wrong_below = np.sort(-high[positive])  # each positive sample is wrong for b below its number
    wrong_from = np.sort(-low[~positive])  # each negative sample is wrong for b from its number on
    # As b grows, the count falls at the numbers of `wrong_below` and rises at those of `wrong_from`. So it is smallest
    # at one of `wrong_below`, or below all of them.
    candidates = np.concatenate([[-np.inf], wrong_below])
    n_positive = len(wrong_below) - np.searchsorted(wrong_below, candidates, side="right")
    n_negative = np.searchsorted(wrong_from, candidates, side="right")
    return int((n_positive + n_negative).min())


def surely_wrong_by_range(
    functions: list[FoldFunctions], positive: Flags, free_bias: bool
) -> list[tuple[float, float, int]]:
    """Split the range between the fitted C, and return (smallest C, largest C, number of surely wrong samples)."""
    functions = sorted(functions, key=lambda function: function.C)
    ranges = []
    for left, right in pairwise(functions):
        cuts = np.geomspace(left.C, right.C, _PARTS_PER_RANGE + 1)
        for low, high in pairwise(cuts):
            first, second = left.bounds(low, high), right.bounds(low, high)
            lowest, highest = np.maximum(first[0], second[0]), np.minimum(first[1], second[1])
            ranges.append((float(low), float(high), count_surely_wrong(lowest, highest, positive, free_bias)))
    return ranges


# C and the parameters that replace it.
_PENALTIES = (*RISING, *FALLING)


class SearchGap:
    """Collects the decision functions of all folds during a search, and computes `search_gap_` from them."""

    def __init__(self, points: list[dict[str, Any]], scores_accuracy: bool, prefix: str = "") -> None:
        self._points, self._prefix = points, prefix
        # Groups of points that differ only in C, θ or λ, and therefore have the same kernel.
        keys = [
            key_of_params(drop_parameters(_PENALTIES, params, prefix) | self._penalties(params)) for params in points
        ]
        self._kernels = {k: number for number, group in enumerate(group_equal_keys(keys)) for k in group}
        self._fold_functions: dict[tuple[int, int], dict[int, tuple[FoldFunctions, Any, bool]]] = {}
        self._lock = threading.Lock()
        self._reason = (
            "" if scores_accuracy else "there is a bound only for the accuracy in folds, without sample weights"
        )
        if not self._reason and not any(map(self._penalties, points)):
            self._reason = "the grid has no C"
        if any(len(self._penalties(params)) > 1 for params in points):
            self._reason = f"the grid names several of {', '.join(_PENALTIES)} at once"

    def _penalties(self, params: dict[str, Any]) -> dict[str, bool]:
        """Return a dictionary from each of C, θ and λ that is a number in the point to True."""
        return {name: True for name in _PENALTIES if isinstance(params.get(self._prefix + name), Real)}

    def put(self, point: int, fold: int, machine: Any, fit: FoldFit, y: Any) -> None:
        """Add the fit of a fold, with the targets of its held-out samples."""
        if self._reason:
            return
        # A fold with two of several classes was fitted pair by pair, and lacks the values that a bound needs.
        if len(fit.tasks) != 1 or fit.classes is None or len(fit.classes) != 2 or fit.tasks[0].values is None:
            self._reason = "there is a bound only for two classes"
            return
        (task,) = fit.tasks
        if task.certificate.gap_measures != "optimality":
            self._reason = (
                f"the kernel is not known to be positive definite, so fits prove only {task.certificate.gap_measures}"
            )
            return
        assert task.values is not None  # for mypy
        assert task.errors is not None
        assert task.lengths is not None
        C = penalty_of(self._points[point], self._prefix) or float(machine.C)
        C = C if C > 0 else -1.0 / C
        functions = FoldFunctions(
            C, task.values - task.offset, task.errors, task.lengths, task.norm, max(task.certificate.gap, 0.0)
        )
        with self._lock:
            self._fold_functions.setdefault((self._kernels[point], fold), {})[point] = (
                functions,
                np.asarray(y) == fit.classes[1],
                machine.bias is True,
            )

    def value(self, cells: ScoreTable, best: int) -> tuple[float | None, str]:
        """Return the search gap, or None and the reason."""
        if self._reason:
            return None, self._reason
        if not self._fold_functions:
            return None, "fits made fold by fold keep no decision values"
        if not cells.complete or cells.errors:
            return None, "the search is not complete"
        if len({point for fits in self._fold_functions.values() for point in fits}) < len(cells.points):
            return None, "some fits were made fold by fold and keep no decision values"
        others = {self._prefix + name for name in PROBLEM_PARAMETERS if name not in _PENALTIES}
        searched_names = sorted({name for point in cells.points for name in point} & others)
        if searched_names:
            return None, f"there is no bound if {', '.join(searched_names)} is searched too"
        gap, score = 0.0, float(cells.means[best])
        for kernel in {key for key, _ in self._fold_functions}:
            gap = max(gap, self._largest_accuracy(cells, kernel) - score)
        return gap, ""

    def _largest_accuracy(self, cells: ScoreTable, kernel: int) -> float:
        """Return an upper bound on the mean accuracy of any C in the range with this kernel."""
        shares: dict[tuple[float, float], float] = {}
        all_C = sorted(
            {fit.C for (key, _), fits in self._fold_functions.items() if key == kernel for fit, _, _ in fits.values()}
        )
        for fold in range(cells.n_folds):
            fits = self._fold_functions.get((kernel, fold), {})
            if not fits:
                continue
            positive, free = next((positive, free) for _, positive, free in fits.values())
            for low, high, is_wrong in surely_wrong_by_range([fit for fit, _, _ in fits.values()], positive, free):
                share = is_wrong / (max(1, len(positive)) * cells.n_folds)
                shares[low, high] = shares.get((low, high), 0.0) + share
        return _accuracy_bound(shares, all_C) if len(all_C) > 1 else -np.inf


def _accuracy_bound(shares: dict[tuple[float, float], float], all_C: list[float]) -> float:
    """Return one minus the smallest share of surely wrong samples over the range of C.

    `shares` maps ranges of C to shares of surely wrong samples, summed over the folds. Folds have different ranges if
    fits were skipped: shares are then added on each piece between two neighbouring ends, and a fold without a range
    there adds nothing. All ranges lie between the smallest and the largest of the values in `all_C`, at least two.
    """
    ends = np.unique([*all_C, *(end for piece in shares for end in piece)])
    middles = np.sqrt(ends[1:] * ends[:-1])
    total = np.zeros(len(middles))
    for (low, high), share in shares.items():
        total[(middles > low) & (middles < high)] += share
    return 1.0 - float(total.min())
