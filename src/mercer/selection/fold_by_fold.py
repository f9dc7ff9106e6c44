"""Any estimator, fitted fold by fold: nothing is shared but, along C, a solution that the next fit can go on from."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from mercer.held_out.around import machine_of, weight_option
from mercer.selection.scoring import asks_predictions_only, scored
from mercer.tables.frame import part_of

if TYPE_CHECKING:
    from mercer.selection.tune import Search


def fit_fold_by_fold(search: Search, group: list[int]) -> None:
    """Fit and score these points in every fold; an error is kept with its cell, and the rest goes on."""
    for fold, (train, _) in enumerate(search.splits):
        model = clone(search.estimator)
        warm = next((name for name in model.get_params() if name.rpartition("__")[2] == "warm_start"), None)
        X, y = _training(search, train)
        weight = None if search.sample_weight is None else search.sample_weight[train]
        for point in group:
            if not search.wanted(point, fold):
                continue
            begun = time.perf_counter()
            if not asks_predictions_only(search.scorer):  # it may look at what another start changes within tol
                model = clone(search.estimator)
            try:
                model.set_params(**{n: clone(v, safe=False) for n, v in search.cells.points[point].items()})
                if warm is not None and hasattr(machine_of(model), "certificate_"):
                    model.set_params(**{warm: True})
                model.fit(X, y, **weight_option(model, weight))
                score = scored(search.scorer, model, search.samples(fold), *search.targets(fold))
            except Exception as error:  # whatever a user's kernel or score raises belongs to its cell
                search.cells.fail(point, fold, error)
            else:
                proof = getattr(machine_of(model), "certificate_", None)
                gap, relative = (math.nan, math.nan) if proof is None else (proof.gap, proof.relative_gap)
                ended = getattr(machine_of(model), "stop_reason_", "converged")
                search.cells.put(point, fold, score, gap, relative, time.perf_counter() - begun, ended)
            search.told(point, fold)


def _training(search: Search, train: Any) -> tuple[Any, Any]:
    square = getattr(search.estimator, "kernel", None) == "precomputed"
    return part_of(search.X, train, train if square else None), None if search.y is None else search.y[train]
