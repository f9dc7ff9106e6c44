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
    budget: int
    deadline: float
    gap: SearchGap
    reporter: Reporter
    callback: Callable[[dict[str, Any]], None] | None

    def at(self, point: int) -> Any:
        """Return the unfitted estimator at a point of the grid."""
        return estimator_at(self.estimator, self.cells.points[point])

    def wanted(self, point: int, fold: int) -> bool:
        """Return whether a fit can still change which cell is chosen, and time is left."""
        return time.monotonic() < self.deadline and self.cells.wanted(point, fold)

    def training(self, fold: int) -> tuple[Any, Any, Any]:
        """Return the training samples of a fold, their targets and weights."""
        train, _ = self.splits[fold]
        return part_of(self.X, train, train if self._square else None), *self._targets_and_weights(train)

    def samples(self, fold: int) -> Any:
        """Return a copy of the held-out samples of a fold, which a scorer may change."""
        train, test = self.splits[fold]
        return part_of(self.X, test, train if self._square else None)

    def targets(self, fold: int) -> tuple[Any, Any]:
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
    def _square(self) -> bool:
        return getattr(self.estimator, "kernel", None) == "precomputed"

    def _targets_and_weights(self, rows: Any) -> tuple[Any, Any]:
        return None if self.y is None else self.y[rows], None if self.sample_weight is None else self.sample_weight[
            rows
        ]

    def _line(self) -> str:
        cells, means = self.cells, self.cells.means
        line = f"{cells.done:>6,} of {cells.scores.size:,} fits"
        if cells.lost:
            line += f", {len(cells.lost):,} cells skipped"
        if not np.isnan(means).all():
            best = int(np.nanargmax(means))
            line += f", best {means[best]:.4f} at {describe_params(cells.points[best])}"
        return line


def fit_fold_by_fold(search: Search, group: list[int], *, warm_start: bool = True) -> None:
    """Fit and score these points in every fold; an error is stored in its cell, and the search goes on.

    With `warm_start`, each fit starts from the solution of the last one.
    """
    for fold in range(len(search.splits)):
        model = clone(search.estimator)
        warm = next((name for name in model.get_params() if name.rpartition("__")[2] == "warm_start"), None)
        X, y, weight = search.training(fold)
        seen, held_out = (None, None) if search.qid is None else (search.qid[rows] for rows in search.splits[fold])
        for point in group:
            if not search.wanted(point, fold):
                continue
            begun = time.perf_counter()
            if not needs_predictions_only(
                search.scorer
            ):  # the score may depend on what a warm start changes within tol
                model = clone(search.estimator)
            try:
                model.set_params(**{n: clone(v, safe=False) for n, v in search.cells.points[point].items()})
                if warm_start and warm is not None and hasattr(machine_of(model), "certificate_"):
                    model.set_params(**{warm: True})
                model.fit(X, y, **weight_option(model, weight), **search.query_option(seen))
                score = compute_score(search.scorer, model, search.samples(fold), *search.targets(fold), qid=held_out)
            except Exception as error:  # errors of a user's kernel or scorer belong to their cell
                search.cells.fail(point, fold, error)
            else:
                proof = getattr(machine_of(model), "certificate_", None)
                gap, relative = (math.nan, math.nan) if proof is None else (proof.gap, proof.relative_gap)
                ended = getattr(machine_of(model), "stop_reason_", "converged")
                search.cells.put(point, fold, score, gap, relative, time.perf_counter() - begun, ended)
            search.report(point, fold)
