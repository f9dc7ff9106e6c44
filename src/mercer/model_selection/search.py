"""The state of a running search, and fits of its points fold by fold without shared kernel values."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.model_selection.grids import estimator_at
from mercer.model_selection.held_out.machines import machine_of, weight_option
from mercer.model_selection.result import describe_params
from mercer.model_selection.score_table import ScoreTable
from mercer.model_selection.scoring import Scorer, compute_score, needs_predictions_only
from mercer.model_selection.search_gap import SearchGap
from mercer.runtime.progress import Reporter
from mercer.tables.frame import part_of


@dataclass(frozen=True, eq=False)
class Search:
    """The estimator, samples, folds, scorer, score table and reporter of one search."""

    estimator: Any
    prefix: str  # prefix of the machine's parameters
    X: Any
    y: Any
    sample_weight: Any
    qid: Any  # query of each sample in a ranking
    splits: list[tuple[Any, Any]]
    scorer: Scorer
    cells: ScoreTable
    n_threads: int
    budget: int  # bytes for stored kernel matrices
    deadline: float  # on the clock of time.monotonic
    gap: SearchGap
    reporter: Reporter
    callback: Callable[[dict[str, Any]], None] | None

    def at(self, point: int) -> Any:
        """Return the unfitted estimator at a point of the grid."""
        return estimator_at(self.estimator, self.cells.points[point])

    def is_needed(self, point: int, fold: int) -> bool:
        """Return whether time is left, and this fit can still change which cell is chosen."""
        return time.monotonic() < self.deadline and self.cells.is_needed(point, fold)

    def training_set(self, fold: int) -> tuple[Any, Any, Any]:
        """Return the training samples of a fold, their targets and weights."""
        train, _ = self.splits[fold]
        return part_of(self.X, train, train if self._is_precomputed else None), *self._targets_and_weights(train)

    def held_out_samples(self, fold: int) -> Any:
        """Return a copy of the held-out samples of a fold; a user's scorer may change the copy."""
        train, test = self.splits[fold]
        return part_of(self.X, test, train if self._is_precomputed else None)

    def held_out_targets(self, fold: int) -> tuple[Any, Any]:
        """Return copies of the targets and weights of the held-out samples of a fold."""
        return self._targets_and_weights(self.splits[fold][1])

    def query_option(self, qid: Any) -> dict[str, Any]:
        """Return the keyword argument of `fit` that gives a ranking its queries."""
        return {} if qid is None else {f"{self.prefix}qid": qid}

    def report(self, point: int, fold: int) -> None:
        """Call the user's callback after a fit, and print a line if a second has passed."""
        cells = self.cells
        if self.callback is not None:
            self.callback(
                {
                    "params": cells.points[point],
                    "fold": fold,
                    "score": float(cells.scores[point, fold]),
                    "gap": float(cells.gaps[point, fold]),
                    "done": cells.done,
                    "of": cells.scores.size,
                }
            )
        if self.reporter.is_due:
            self.reporter.report(self._line(), cells.done / cells.scores.size or None)

    def close(self) -> None:
        """Print the last line of progress."""
        self.reporter.close(self._line())

    @property
    def _is_precomputed(self) -> bool:
        """True if X is a square kernel matrix, whose columns are selected too."""
        return getattr(self.estimator, "kernel", None) == "precomputed"

    def _targets_and_weights(self, rows: Any) -> tuple[Any, Any]:
        """Return the targets and weights of these rows; None for those that the search does not have."""
        y, weight = (None if values is None else values[rows] for values in (self.y, self.sample_weight))
        return y, weight

    def _line(self) -> str:
        """Write one line of progress."""
        cells, means = self.cells, self.cells.means
        line = f"{cells.done:>6,} of {cells.scores.size:,} fits"
        if cells.skipped:
            line += f", {len(cells.skipped):,} cells skipped"
        if not np.isnan(means).all():
            best = int(np.nanargmax(means))
            line += f", best {means[best]:.4f} at {describe_params(cells.points[best])}"
        return line


def fit_fold_by_fold(search: Search, group: list[int], *, warm_start: bool = True) -> None:
    """Fit and score these points in every fold; an error is stored in its cell, and the search goes on.

    With `warm_start`, each fit starts from the solution of the previous one.
    """
    for fold in range(len(search.splits)):
        model = clone(search.estimator)
        warm_name = next((name for name in model.get_params() if name.rpartition("__")[2] == "warm_start"), None)
        X, y, weight = search.training_set(fold)
        train_qid, test_qid = (None, None) if search.qid is None else (search.qid[rows] for rows in search.splits[fold])
        for point in group:
            if not search.is_needed(point, fold):
                continue
            start_time = time.perf_counter()
            if not needs_predictions_only(search.scorer):
                # The score may depend on more than predictions, such as α, which a warm start changes within tol.
                model = clone(search.estimator)
            try:
                model.set_params(**{n: clone(v, safe=False) for n, v in search.cells.points[point].items()})
                if warm_start and warm_name is not None and hasattr(machine_of(model), "certificate_"):
                    model.set_params(**{warm_name: True})
                model.fit(X, y, **weight_option(model, weight), **search.query_option(train_qid))
                samples, targets_and_weights = search.held_out_samples(fold), search.held_out_targets(fold)
                score = compute_score(search.scorer, model, samples, *targets_and_weights, qid=test_qid)
            except Exception as error:  # errors of a user's kernel or scorer belong to their cell
                search.cells.fail(point, fold, error)
            else:
                proof = getattr(machine_of(model), "certificate_", None)
                gap, relative_gap = (math.nan, math.nan) if proof is None else (proof.gap, proof.relative_gap)
                stop_reason = getattr(machine_of(model), "stop_reason_", "converged")
                seconds = time.perf_counter() - start_time
                search.cells.put(point, fold, score, gap, relative_gap, seconds, stop_reason)
            search.report(point, fold)
