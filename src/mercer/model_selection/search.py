"""A search while it runs: what every way of fitting asks of it, and the way in which nothing is shared."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.model_selection.grids import made
from mercer.model_selection.held_out.machines import machine_of, weight_option
from mercer.model_selection.result import params_told
from mercer.model_selection.score_table import Cells
from mercer.model_selection.scoring import Scorer, asks_predictions_only, scored
from mercer.model_selection.search_gap import SearchGap
from mercer.runtime.progress import Reporter
from mercer.tables.frame import part_of


@dataclass(frozen=True, eq=False)
class Search:
    """What a search is about: the estimator, the samples, the folds, how they are scored, and whom to tell."""

    estimator: Any
    prefix: str  # of the names of its machine's parameters
    X: Any
    y: Any
    sample_weight: Any
    qid: Any  # the query of each sample, of a ranking
    splits: list[tuple[Any, Any]]
    scorer: Scorer
    cells: Cells
    n_threads: int
    budget: int
    deadline: float
    gap: SearchGap
    reporter: Reporter
    callback: Callable[[dict[str, Any]], None] | None

    def at(self, point: int) -> Any:
        """The estimator at a point of the grid, not fitted."""
        return made(self.estimator, self.cells.points[point])

    def wanted(self, point: int, fold: int) -> bool:
        """Whether a fit can still change what is chosen, and there is time for it."""
        return time.monotonic() < self.deadline and self.cells.wanted(point, fold)

    def training(self, fold: int) -> tuple[Any, Any, Any]:
        """The samples that a fold trains on, their targets and their weights."""
        train, _ = self.splits[fold]
        return part_of(self.X, train, train if self._square else None), *self._with(train)

    def samples(self, fold: int) -> Any:
        """The held-out samples of a fold: a copy, which a score may change."""
        train, test = self.splits[fold]
        return part_of(self.X, test, train if self._square else None)

    def targets(self, fold: int) -> tuple[Any, Any]:
        """The targets and the weights of these samples, copies too."""
        return self._with(self.splits[fold][1])

    def query_option(self, qid: Any) -> dict[str, Any]:
        """The keyword of `fit` that gives a ranking its queries."""
        return {} if qid is None else {f"{self.prefix}qid": qid}

    def tell(self, point: int, fold: int) -> None:
        """A fit is done, or could not be made: call the caller's function, and print a line a second."""
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
            self.reporter.tell(self._line(), cells.done / cells.scores.size or None)

    def close(self) -> None:
        """No more fits will come."""
        self.reporter.close(self._line())

    @property
    def _square(self) -> bool:
        return getattr(self.estimator, "kernel", None) == "precomputed"

    def _with(self, rows: Any) -> tuple[Any, Any]:
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
            line += f", best {means[best]:.4f} at {params_told(cells.points[best])}"
        return line


def fit_fold_by_fold(search: Search, group: list[int], *, warm_start: bool = True) -> None:
    """Fit and score these points in every fold; an error is kept with its cell, and the rest goes on.

    Nothing is shared but, along C with `warm_start`, a solution that the next fit can go on from.
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
            if not asks_predictions_only(search.scorer):  # it may look at what another start changes within tol
                model = clone(search.estimator)
            try:
                model.set_params(**{n: clone(v, safe=False) for n, v in search.cells.points[point].items()})
                if warm_start and warm is not None and hasattr(machine_of(model), "certificate_"):
                    model.set_params(**{warm: True})
                model.fit(X, y, **weight_option(model, weight), **search.query_option(seen))
                score = scored(search.scorer, model, search.samples(fold), *search.targets(fold), qid=held_out)
            except Exception as error:  # whatever a user's kernel or score raises belongs to its cell
                search.cells.fail(point, fold, error)
            else:
                proof = getattr(machine_of(model), "certificate_", None)
                gap, relative = (math.nan, math.nan) if proof is None else (proof.gap, proof.relative_gap)
                ended = getattr(machine_of(model), "stop_reason_", "converged")
                search.cells.put(point, fold, score, gap, relative, time.perf_counter() - begun, ended)
            search.tell(point, fold)
