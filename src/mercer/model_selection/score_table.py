"""The scores of a search while it runs: one cell for each point of the grid, with a score for each fold.

A cell is skipped once it has provably lost: even if its remaining scores are the largest possible and those of another
cell the smallest possible, its mean stays below the other's. Skipping therefore never changes the chosen cell.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from mercer.samples.arrays import Floats

# Bound on the relative difference between two means of the same numbers, summed in different orders.
_ROUNDING_SHARE = 1e-12


class ScoreTable:
    """Scores, gaps, times and errors of all fits, by point and fold; several threads may fill it."""

    def __init__(
        self,
        points: list[dict[str, Any]],
        n_folds: int,
        score_range: tuple[float, float] | None,
        skip_likely: bool = False,
        reference_point: int | None = None,
    ) -> None:
        self.points, self.n_folds, self._skip_likely = points, n_folds, skip_likely
        self._reference_point = reference_point  # the point that the best one is compared with
        self._smallest_score = -np.inf if score_range is None else score_range[0]
        self._largest_score = None if score_range is None else score_range[1]
        shape = (len(points), n_folds)
        self.scores, self.gaps, self.relative_gaps = (np.full(shape, np.nan) for _ in range(3))
        self.seconds = np.full(shape, np.nan)
        self.errors: dict[tuple[int, int], str] = {}
        self.skipped: dict[int, str] = {}
        self.notes: dict[tuple[int, int], str] = {}
        self.early: dict[tuple[int, int], str] = {}  # stop reasons of fits that did not converge
        self._lock = threading.Lock()

    def put(
        self,
        point: int,
        fold: int,
        score: float,
        gap: float,
        relative_gap: float,
        seconds: float,
        stop_reason: str = "converged",
    ) -> None:
        """Store the result of a fit and its stop reason."""
        with self._lock:
            if stop_reason != "converged":
                self.early[point, fold] = stop_reason
                self.notes[point, fold] = f"stopped early ({stop_reason})"
            self.scores[point, fold] = score
            self.gaps[point, fold], self.relative_gaps[point, fold] = gap, relative_gap
            self.seconds[point, fold] = seconds

    def fail(self, point: int, fold: int, error: BaseException | str) -> None:
        """Store the error of a fit."""
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        with self._lock:
            self.errors[point, fold] = text

    def is_needed(self, point: int, fold: int) -> bool:
        """Return whether this fit can still change which cell is chosen; if not, record why the cell is skipped."""
        with self._lock:
            if point in self.skipped:
                return False
            if (point, fold) in self.errors or not np.isnan(self.scores[point, fold]):
                return False
            reason = self._reason_to_skip(point)
            if reason is not None:
                self.skipped[point] = reason
            return reason is None

    def _reason_to_skip(self, point: int) -> str | None:
        """Return why no further fold of a cell can make it the best one, or None."""
        scores = self.scores[point][~np.isnan(self.scores[point])]
        if self._largest_score is None or len(scores) == 0 or point == self._reference_point:
            return None
        best = self._best_lower_bound()
        upper_bound = self._upper_bound(point)
        if upper_bound < best - _ROUNDING_SHARE * max(1.0, abs(best)):
            return (
                f"lost after {len(scores)} of {self.n_folds} folds: its mean is at most {upper_bound:.6g}, that of "
                f"another cell at least {best:.6g}"
            )
        means = self.scores.mean(axis=1)
        best_mean = float(np.max(means, initial=-np.inf, where=~np.isnan(means)))
        if self._skip_likely and len(scores) > 1 and np.isfinite(best_mean):
            margin = 2.0 * float(scores.std(ddof=1)) / np.sqrt(len(scores))
            if float(scores.mean()) + margin < best_mean:
                return (
                    f"probably lost after {len(scores)} of {self.n_folds} folds: their mean {scores.mean():.6g} is "
                    f"more than two standard errors below {best_mean:.6g}"
                )
        return None

    def _upper_bound(self, point: int) -> float:
        """Return an upper bound on the mean score of a cell."""
        assert self._largest_score is not None
        return float(np.where(np.isnan(self.scores[point]), self._largest_score, self.scores[point]).mean())

    def _best_lower_bound(self) -> float:
        """Return the largest lower bound on the mean score of a cell, among cells neither failed nor skipped."""
        candidates = np.ones(len(self.points), dtype=bool)
        candidates[[point for point, _ in self.errors]] = False
        candidates[list(self.skipped)] = False
        bounds = np.where(np.isnan(self.scores), self._smallest_score, self.scores).mean(axis=1)
        return float(np.max(bounds, initial=-np.inf, where=candidates))

    def revive(self) -> list[int]:
        """Unmark and return the cells that were skipped because of a cell that failed later."""
        with self._lock:
            best = self._best_lower_bound()
            revived_cells = [
                k for k, text in self.skipped.items() if text.startswith("lost") and self._upper_bound(k) >= best
            ]
            for k in revived_cells:
                del self.skipped[k]
            return revived_cells

    @property
    def done(self) -> int:
        """Number of fits that are done, were skipped, or failed."""
        with self._lock:
            missing = np.isnan(self.scores)
            for point in self.skipped:
                missing[point] = False
            for point, fold in self.errors:
                missing[point, fold] = False
            return int(missing.size - missing.sum())

    @property
    def complete(self) -> bool:
        """True if no fit is left to do."""
        return self.done == self.scores.size

    @property
    def means(self) -> Floats:
        """Mean score of each cell; NaN if the score of a fold is missing."""
        return np.asarray(self.scores.mean(axis=1))

    def reason(self, point: int) -> str:
        """Describe why a cell has no score, or else why its fits ended early; empty if there is nothing to say."""
        if point in self.skipped:
            return self.skipped[point]
        if any(k == point for k, _ in self.errors):
            return self._join_texts(point, self.errors)
        return "not reached" if np.isnan(self.scores[point]).any() else self._join_texts(point, self.notes)

    def _join_texts(self, point: int, texts: dict[tuple[int, int], str]) -> str:
        """Join the texts of a cell, each after the number of its fold if there are several folds."""
        has_folds = self.n_folds > 1
        return "; ".join(
            f"fold {fold}: {text}" if has_folds else text for (k, fold), text in sorted(texts.items()) if k == point
        )

    def results(self) -> dict[str, Any]:
        """Return `cv_results_` with scikit-learn's columns, and those of gaps, skipped cells and reasons."""
        n, means = len(self.points), self.means
        with np.errstate(invalid="ignore"):
            spread = self.scores.std(axis=1)
        results: dict[str, Any] = {}
        for name in sorted({name for point in self.points for name in point}):
            column: Any = np.ma.array(np.empty(n, dtype=object), mask=True)
            for k, point in enumerate(self.points):
                if name in point:
                    column[k] = point[name]
            results[f"param_{name}"] = column
        results["params"] = list(self.points)
        for fold in range(self.n_folds):
            results[f"split{fold}_test_score"] = self.scores[:, fold].copy()
        results["mean_test_score"], results["std_test_score"] = means, spread
        means_for_ranks = np.where(np.isnan(means), -np.inf, means)
        order = np.unique(-means_for_ranks, return_inverse=True)[1]
        counts = np.bincount(order)
        results["rank_test_score"] = (1 + np.cumsum(counts) - counts)[order].astype(np.int32)
        results["fit_time"] = np.nansum(self.seconds, axis=1)
        for name, values in (("gap", self.gaps), ("relative_gap", self.relative_gaps)):
            largest = np.max(np.where(np.isnan(values), -np.inf, values), axis=1)
            results[name] = np.where(np.isnan(values).all(axis=1), np.nan, largest)
        results["skipped"] = np.array([k in self.skipped for k in range(n)])
        results["why"] = [self.reason(k) for k in range(n)]
        return results
