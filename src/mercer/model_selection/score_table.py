"""The scores of a search while it runs: one cell for each point of the grid, with a score for each fold.

A cell is skipped once it has provably lost: even if its remaining scores are the largest possible and those of another
cell the smallest possible, its mean stays below the other's. Skipping therefore never changes the chosen cell.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from mercer.samples.arrays import Floats

# Relative difference between means of the same numbers that are summed in another order, at most.
_ROUNDING = 1e-12


class ScoreTable:
    """Scores, gaps, times and errors of all fits, by point and fold; several threads may fill it."""

    def __init__(
        self,
        points: list[dict[str, Any]],
        n_folds: int,
        ends: tuple[float, float] | None,
        likely: bool = False,
        kept: int | None = None,
    ) -> None:
        self.points, self.n_folds, self._likely = points, n_folds, likely
        self._kept = kept  # a cell that is never skipped, since the best one is compared with it
        self._least = -np.inf if ends is None else ends[0]
        self._most = None if ends is None else ends[1]
        shape = (len(points), n_folds)
        self.scores, self.gaps, self.relative_gaps = (np.full(shape, np.nan) for _ in range(3))
        self.seconds = np.full(shape, np.nan)
        self.errors: dict[tuple[int, int], str] = {}
        self.lost: dict[int, str] = {}
        self.notes: dict[tuple[int, int], str] = {}
        self.early: dict[tuple[int, int], str] = {}  # stop reasons of fits that did not converge
        self._lock = threading.Lock()

    def put(
        self,
        point: int,
        fold: int,
        score: float,
        gap: float,
        relative: float,
        seconds: float,
        ended: str = "converged",
    ) -> None:
        """Store the result of a fit and its stop reason."""
        with self._lock:
            if ended != "converged":
                self.early[point, fold] = ended
                self.notes[point, fold] = f"stopped early ({ended})"
            self.scores[point, fold] = score
            self.gaps[point, fold], self.relative_gaps[point, fold] = gap, relative
            self.seconds[point, fold] = seconds

    def fail(self, point: int, fold: int, error: BaseException | str) -> None:
        """Store the error of a fit."""
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        with self._lock:
            self.errors[point, fold] = text

    def wanted(self, point: int, fold: int) -> bool:
        """Return whether this fit can still change which cell is chosen."""
        with self._lock:
            if point in self.lost:
                return False
            if (point, fold) in self.errors or not np.isnan(self.scores[point, fold]):
                return False
            reason = self._reason_to_skip(point)
            if reason is not None:
                self.lost[point] = reason
            return reason is None

    def _reason_to_skip(self, point: int) -> str | None:
        known = self.scores[point][~np.isnan(self.scores[point])]
        if self._most is None or len(known) == 0 or point == self._kept:
            return None
        best = self._best_lower_bound()
        most = self._upper_bound(point)
        if most < best - _ROUNDING * max(1.0, abs(best)):
            return (
                f"lost after {len(known)} of {self.n_folds} folds: its mean is at most {most:.6g}, that of another "
                f"cell at least {best:.6g}"
            )
        means = self.scores.mean(axis=1)
        reached = float(np.max(means, initial=-np.inf, where=~np.isnan(means)))
        if self._likely and len(known) > 1 and np.isfinite(reached):
            margin = 2.0 * float(known.std(ddof=1)) / np.sqrt(len(known))
            if float(known.mean()) + margin < reached:
                return (
                    f"probably lost after {len(known)} of {self.n_folds} folds: their mean {known.mean():.6g} is more "
                    f"than two standard errors below {reached:.6g}"
                )
        return None

    def _upper_bound(self, point: int) -> float:
        """Upper bound on the mean score of a cell."""
        assert self._most is not None
        return float(np.where(np.isnan(self.scores[point]), self._most, self.scores[point]).mean())

    def _best_lower_bound(self) -> float:
        """Largest lower bound on the mean score of any cell."""
        sound = np.ones(len(self.points), dtype=bool)
        sound[[point for point, _ in self.errors]] = False
        sound[list(self.lost)] = False
        sums = np.where(np.isnan(self.scores), self._least, self.scores).mean(axis=1)
        return float(np.max(sums, initial=-np.inf, where=sound))

    def revive(self) -> list[int]:
        """Unmark and return the cells that were skipped because of a cell that failed later."""
        with self._lock:
            best = self._best_lower_bound()
            again = [k for k, text in self.lost.items() if text.startswith("lost") and self._upper_bound(k) >= best]
            for k in again:
                del self.lost[k]
            return again

    @property
    def done(self) -> int:
        """Number of fits that are done, were skipped, or failed."""
        with self._lock:
            left = np.isnan(self.scores)
            for point in self.lost:
                left[point] = False
            for point, fold in self.errors:
                left[point, fold] = False
            return int(left.size - left.sum())

    @property
    def complete(self) -> bool:
        return self.done == self.scores.size

    @property
    def means(self) -> Floats:
        """Mean score of each cell; NaN if the score of a fold is missing."""
        return np.asarray(self.scores.mean(axis=1))

    def why(self, point: int) -> str:
        """Describe why a cell has no score, or why its fits ended early; empty if neither holds."""
        if point in self.lost:
            return self.lost[point]
        if any(k == point for k, _ in self.errors):
            return self._listed(point, self.errors)
        return "not reached" if np.isnan(self.scores[point]).any() else self._listed(point, self.notes)

    def _listed(self, point: int, texts: dict[tuple[int, int], str]) -> str:
        several = self.n_folds > 1
        return "; ".join(
            f"fold {fold}: {text}" if several else text for (k, fold), text in sorted(texts.items()) if k == point
        )

    def results(self) -> dict[str, Any]:
        """Return `cv_results_` as scikit-learn has it, with gaps, skipped cells and reasons."""
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
        filled = np.where(np.isnan(means), -np.inf, means)
        order = np.unique(-filled, return_inverse=True)[1]
        counts = np.bincount(order)
        results["rank_test_score"] = (1 + np.cumsum(counts) - counts)[order].astype(np.int32)
        results["fit_time"] = np.nansum(self.seconds, axis=1)
        for name, values in (("gap", self.gaps), ("relative_gap", self.relative_gaps)):
            results[name] = np.where(np.isnan(values).all(axis=1), np.nan, _largest(values))
        results["skipped"] = np.array([k in self.lost for k in range(n)])
        results["why"] = [self.why(k) for k in range(n)]
        return results


def _largest(values: Floats) -> Floats:
    return np.asarray(np.max(np.where(np.isnan(values), -np.inf, values), axis=1))
