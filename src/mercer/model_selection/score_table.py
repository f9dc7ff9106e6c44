"""The scores of a search while it runs: one cell for each point of the grid, with a score for each fold.

A cell can be skipped once it has provably lost: the folds that are left cannot lift its mean to what another cell has
already made sure of, even if its own scores are the largest that there are and the other's the smallest. This is a fact
about the search itself, so that skipping never changes what is chosen.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from mercer.samples.arrays import Floats

# Means of the same numbers, added up in another order, differ by no more than this share.
_ROUNDING = 1e-12


class Cells:
    """Scores, gaps, times and errors, by point and fold; safe to fill from several threads."""

    def __init__(
        self,
        points: list[dict[str, Any]],
        n_folds: int,
        ends: tuple[float, float] | None,
        likely: bool = False,
        kept: int | None = None,
    ) -> None:
        self.points, self.n_folds, self._likely = points, n_folds, likely
        self._kept = kept  # a cell that is never skipped, because the best one is compared with it
        self._least = -np.inf if ends is None else ends[0]
        self._most = None if ends is None else ends[1]
        shape = (len(points), n_folds)
        self.scores, self.gaps, self.relative_gaps = (np.full(shape, np.nan) for _ in range(3))
        self.seconds = np.full(shape, np.nan)
        self.errors: dict[tuple[int, int], str] = {}
        self.lost: dict[int, str] = {}
        self.notes: dict[tuple[int, int], str] = {}
        self.early: dict[tuple[int, int], str] = {}  # why fits ended that did not converge
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
        """A fit is there, and why it ended."""
        with self._lock:
            if ended != "converged":
                self.early[point, fold] = ended
                self.notes[point, fold] = f"stopped early ({ended})"
            self.scores[point, fold] = score
            self.gaps[point, fold], self.relative_gaps[point, fold] = gap, relative
            self.seconds[point, fold] = seconds

    def fail(self, point: int, fold: int, error: BaseException | str) -> None:
        """A fit could not be made."""
        told = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        with self._lock:
            self.errors[point, fold] = told

    def wanted(self, point: int, fold: int) -> bool:
        """Whether this fit can still change what is chosen."""
        with self._lock:
            if point in self.lost:
                return False
            if (point, fold) in self.errors or not np.isnan(self.scores[point, fold]):
                return False
            reason = self._why_lost(point)
            if reason is not None:
                self.lost[point] = reason
            return reason is None

    def _why_lost(self, point: int) -> str | None:
        known = self.scores[point][~np.isnan(self.scores[point])]
        if self._most is None or len(known) == 0 or point == self._kept:
            return None
        best = self._sure()
        most = self._at_most(point)
        if most < best - _ROUNDING * max(1.0, abs(best)):
            return (
                f"lost after {len(known)} of {self.n_folds} folds: its mean is at most {most:.6g}, and another has at "
                f"least {best:.6g}"
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

    def _at_most(self, point: int) -> float:
        """The largest mean that a cell can still have."""
        assert self._most is not None
        return float(np.where(np.isnan(self.scores[point]), self._most, self.scores[point]).mean())

    def _sure(self) -> float:
        """The mean that some cell will have at least."""
        sound = np.ones(len(self.points), dtype=bool)
        sound[[point for point, _ in self.errors]] = False
        sound[list(self.lost)] = False
        sums = np.where(np.isnan(self.scores), self._least, self.scores).mean(axis=1)
        return float(np.max(sums, initial=-np.inf, where=sound))

    def revive(self) -> list[int]:
        """Cells that were skipped because of one that failed later: they are wanted again."""
        with self._lock:
            best = self._sure()
            again = [k for k, told in self.lost.items() if told.startswith("lost") and self._at_most(k) >= best]
            for k in again:
                del self.lost[k]
            return again

    @property
    def done(self) -> int:
        """Fits that are made, were skipped, or cannot be made."""
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
        """The mean score of each cell; NaN where a fold has none."""
        return np.asarray(self.scores.mean(axis=1))

    def why(self, point: int) -> str:
        """What became of a cell that has no score, in words, or where a fit ended early."""
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
        """scikit-learn's `cv_results_`, with the gaps and what became of each cell."""
        n, means = len(self.points), self.means
        with np.errstate(invalid="ignore"):
            spread = self.scores.std(axis=1)
        found: dict[str, Any] = {}
        for name in sorted({name for point in self.points for name in point}):
            column: Any = np.ma.array(np.empty(n, dtype=object), mask=True)
            for k, point in enumerate(self.points):
                if name in point:
                    column[k] = point[name]
            found[f"param_{name}"] = column
        found["params"] = list(self.points)
        for fold in range(self.n_folds):
            found[f"split{fold}_test_score"] = self.scores[:, fold].copy()
        found["mean_test_score"], found["std_test_score"] = means, spread
        filled = np.where(np.isnan(means), -np.inf, means)
        order = np.unique(-filled, return_inverse=True)[1]
        counts = np.bincount(order)
        found["rank_test_score"] = (1 + np.cumsum(counts) - counts)[order].astype(np.int32)
        found["fit_time"] = np.nansum(self.seconds, axis=1)
        for name, values in (("gap", self.gaps), ("relative_gap", self.relative_gaps)):
            found[name] = np.where(np.isnan(values).all(axis=1), np.nan, _largest(values))
        found["skipped"] = np.array([k in self.lost for k in range(n)])
        found["why"] = [self.why(k) for k in range(n)]
        return found


def _largest(values: Floats) -> Floats:
    return np.asarray(np.max(np.where(np.isnan(values), -np.inf, values), axis=1))
