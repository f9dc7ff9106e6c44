"""The end of a search: which cell is chosen and why, its machine trained on all samples, and what must be told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import warn_user
from mercer.held_out.around import weight_option
from mercer.selection.cells import Cells
from mercer.selection.grids import edges_of, made, price_of
from mercer.selection.result import TuningResult, best_of, cheapest_of, chosen

if TYPE_CHECKING:
    from mercer.selection.tune import Search


def conclude(
    search: Search, shared: str, interrupted: bool, refit: bool, one_standard_error: bool, own: int | None
) -> TuningResult:
    """Everything that was found, with the best machine if it is to be trained; `own` is the estimator's own cell."""
    cells = search.cells
    best, why = _choice(search, one_standard_error, own)
    result = TuningResult(
        cv_results_=cells.results(),
        n_splits_=cells.n_folds,
        complete_=cells.complete,
        shared_=shared,
        interrupted_=interrupted,
        best_index_=best,
        choice_=why,
    )
    if best is None:
        if not interrupted:
            _tell_nothing(search, refit)
        return result
    result.best_params_, result.best_score_ = dict(cells.points[best]), float(cells.means[best])
    result.search_gap_, result.search_gap_reason_ = search.gap.value(cells, best)
    _tell_early(cells, best)
    if refit and not interrupted:
        model = made(search.estimator, result.best_params_)
        result.best_estimator_ = model.fit(search.X, search.y, **weight_option(model, search.sample_weight))
        if not cells.complete:
            told = f"the search ended after {cells.done:,} of {cells.scores.size:,} fits (max_time)"
            warn_user(f"{told}; the best of those was taken. Raise max_time, or try fewer points", ConvergenceWarning)
        edges = edges_of(cells.points, result.best_params_)
        if edges:
            warn_user(f"the best score is at the edge of the grid: {'; '.join(edges)}. Widen the grid", UserWarning)
    return result


def _choice(search: Search, one_standard_error: bool, own: int | None) -> tuple[int | None, str]:
    cells = search.cells
    best = best_of(cells)
    if best is None:
        return None, ""
    if one_standard_error:
        prices = [price_of(point, search.prefix) for point in cells.points]
        return cheapest_of(cells, best, prices), "the smallest C within one standard error of the largest mean score"
    if own is not None and cells.n_folds > 1:
        lengths = np.array([(len(train), len(test)) for train, test in search.splits]).mean(axis=0)
        return chosen(cells, best, own, float(lengths[1] / lengths[0]))
    return best, "the largest mean score of the grid"


def _tell_nothing(search: Search, refit: bool) -> None:
    """No cell has a score: an error where a machine was wanted, and a warning where scores alone were."""
    cells = search.cells
    if not cells.errors:
        if not cells.complete:
            warn_user(
                f"no cell has a score: the search ended after {cells.done:,} of {cells.scores.size:,} fits (max_time). "
                "Raise max_time, or try fewer points",
                ConvergenceWarning,
            )
        return
    told = cells.why(min(cells.errors)[0])
    weighed = "" if search.sample_weight is None else " with this sample_weight"
    message = f"no cell of the grid could be fitted{weighed} in every fold: {told}"
    if refit and cells.complete:
        raise ValueError(message)
    warn_user(message, UserWarning)


def _tell_early(cells: Cells, best: int) -> None:
    """One warning for all fits that ended before they were optimal."""
    if not cells.early:
        return
    reasons = ", ".join(f"{count:,} × {reason}" for reason, count in Counter(cells.early.values()).most_common())
    made_in_all = int(np.isfinite(cells.scores).sum())
    largest = max((float(cells.relative_gaps[place]) for place in cells.early), default=np.nan)
    mark = "the chosen cell among them" if any(point == best for point, _ in cells.early) else "not in the chosen cell"
    warn_user(
        f"{len(cells.early):,} of {made_in_all:,} fits stopped before tol ({reasons}), {mark}, "
        f"with gaps of up to {largest:.1e} of the dual value: their scores are those of machines that are not optimal. "
        "Scale the features, lower C, or raise max_iter or tol; cv_results_['why'] names the cells",
        ConvergenceWarning,
    )
