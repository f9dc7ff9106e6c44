"""`mercer.tune`: a grid search with certified fits that share kernel values; points that provably lose are skipped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d

from mercer.estimators.fitting.pipeline.fit import cache_bytes, deadline_of
from mercer.kernels.names import kernel_accepts
from mercer.model_selection.criteria import CRITERIA, check_criterion
from mercer.model_selection.grids import (
    QUICK,
    default_grid,
    describe_edges,
    grid_points,
    group_points_by_kernel,
    penalty_of,
    prefix_and_machine,
    with_current_point,
)
from mercer.model_selection.held_out.folds import make_splitter, needs_groups, row_indices
from mercer.model_selection.held_out.machines import issue_warnings, weight_option
from mercer.model_selection.preprocessing import Preprocessing
from mercer.model_selection.result import TuningResult, best_cell, choose_cell, smallest_penalty_cell
from mercer.model_selection.score_table import ScoreTable
from mercer.model_selection.scoring import SOFT, is_accuracy, score_range, scorer_of, scorer_of_queries
from mercer.model_selection.search import Search, fit_fold_by_fold
from mercer.model_selection.search_gap import SearchGap
from mercer.model_selection.shared_search import MANY_PAIRS, SharedSearch
from mercer.runtime.errors import GuessWarning, Warned, collect_warnings, warn_user
from mercer.runtime.parameters import one_of
from mercer.runtime.progress import Reporter
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import is_sparse, n_samples
from mercer.samples.engine import EngineSamples, on_host, to_engine
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame, frame_of


def tune(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    grid: Any = None,
    cv: Any = 5,
    scoring: Any = None,
    criterion: str = "folds",
    groups: Any = None,
    qid: Any = None,
    sample_weight: Any = None,
    refit: bool = True,
    skip: Any = True,
    one_standard_error: bool = False,
    n_jobs: int | None = None,
    max_time: float | None = None,
    verbose: bool = False,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> TuningResult:
    """Choose parameters by cross-validation, with kernel values shared between folds and values of C.

    Parameters
    ----------
    estimator : estimator, Pipeline or Tabular
        Estimator to tune. Fits of `SVC`, `SVR` and `OneClassSVM` share kernel values between all folds; inside a
        Pipeline or a Tabular, whose other steps are refitted for every fold, they share them between the points of the
        grid. Other estimators are fitted fold by fold.
    X : array or CSR matrix of shape (n_samples, n_features)
        Samples, as for the estimator's `fit`; also a table, a list of strings, or a square kernel matrix.
    y : array of shape (n_samples,), optional
        Targets, as for the estimator's `fit`.
    grid : dict, list of dicts or "quick", optional
        Values to try for each parameter, such as {"C": [1, 10], "gamma": [0.01, 0.1]}. `gamma` stands for
        `kernel__gamma` of a kernel object, and names of a Pipeline's last step or a Tabular's machine need no prefix.
        The first point with the largest mean score wins, as in GridSearchCV. None makes a grid from the data that the
        machine sees, and "quick" a grid with at most a fifth as many cells; with both, the estimator's own parameters
        are kept unless the best cell is better by more than one standard error of the difference over the folds.
    cv : int, splitter or list of (train, test), default=5
        Folds, as in scikit-learn's GridSearchCV, except that a number means shuffled rows, always in the same way:
        StratifiedKFold(5, shuffle=True, random_state=0), or KFold if y has no classes. GridSearchCV's folds of
        consecutive rows are cv=StratifiedKFold(5) or KFold(5).
    scoring : str or function, optional
        Score, as in GridSearchCV; None means the estimator's own `score`, such as the accuracy for classifiers and R²
        for regressors. One-class machines have none: their score is the balanced accuracy if y has labels ±1, and
        otherwise how close the share of held-out outliers is to ν. A function of the model, the samples and y that
        needs more than predictions for these samples is given a model, and then every fold is fitted by itself.
    criterion : {"folds", "loo", "xi-alpha", "span", "span-bound", "radius-margin", "margin-bound"}, default="folds"
        Criterion that scores a point. "loo" is exact leave-one-out. The others need one fit: they estimate the
        leave-one-out error or bound the probability of error, and score 1 − that error.
    groups : array of shape (n_samples,), optional
        Group of each sample, for splitters that need groups.
    qid : array of shape (n_samples,), optional
        Query of each sample, for `RankSVM`: fits and scores compare only samples of the same query. A number as `cv`
        then holds out whole queries, GroupKFold(5, shuffle=True, random_state=0); splitters get `qid` as groups unless
        `groups` is given.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples, in fits and in scores.
    refit : bool, default=True
        Whether the best point is fitted to all samples, by the estimator itself.
    skip : bool or "likely", default=True
        True skips fits that provably cannot change the choice, if the score has a known maximum. "likely" also skips
        cells whose mean so far is two standard errors below the best.
    one_standard_error : bool, default=False
        Whether to choose the smallest C whose score is within one standard error of the best.
    n_jobs : int, optional
        Number of threads; None means the estimator's `n_jobs`.
    max_time : float, optional
        Seconds after which no further fit is started; the result is then not complete.
    verbose : bool, default=False
        Whether to print a line every second, with the time left.
    callback : function, optional
        Function called after every fit with a dictionary: params, fold, score, gap, done, of.

    Returns
    -------
    TuningResult
        Scores and the best estimator. After Ctrl-C it has the scores so far, no refit, and `complete_` is False.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import mercer
    >>> X, y = load_iris(return_X_y=True)
    >>> found = mercer.tune(mercer.SVC(), X, y, grid={"C": [0.1, 1, 10, 100], "gamma": [0.1, 1]})
    >>> found.best_score_ > 0.95
    True
    >>> found.best_estimator_.certificate_.relative_gap < 1e-2
    True
    >>> found.complete_, bool(found.at(C=1, gamma=0.1)["mean_test_score"] > 0.9)
    (True, True)
    """
    _check_arguments(estimator, X, y)
    # 1. Check the arguments, and read samples and targets.
    one_of("skip", skip, (True, False, "likely"))
    one_of("criterion", criterion, CRITERIA)
    prefix, machine = prefix_and_machine(estimator)
    if y is None and (is_classifier(machine) or is_regressor(machine)):
        raise ValueError(f"{type(machine).__name__} requires y to be passed, but the target y is None")
    qid = _check_queries(estimator, machine, groups, qid)
    X = to_engine(X)
    y = None if y is None else column_or_1d(on_host(y), warn=True)
    if not hasattr(X, "shape") and kernel_accepts(getattr(machine, "kernel", "rbf")) != "sequences":
        X = np.asarray(X)
    elif isinstance(estimator, Tabular):
        X = frame_of(X)  # read once
    elif is_sparse(X) and not isinstance(X, EngineSamples):
        X = sp.csr_array(X)  # can be indexed by rows
    # 2. List the points of the grid.
    current = None  # the cell of the estimator's own parameters
    grid_warnings: dict[Warned, None] = {}
    if grid is None or (isinstance(grid, str) and grid == QUICK):
        steps = Preprocessing(clone(estimator))
        with collect_warnings() as grid_warnings:
            machine_samples = steps.fit(X, y, sample_weight)
        grid = default_grid(machine, machine_samples, steps.target(y), quick=grid is not None)
        if not grid:
            raise ValueError(f"there is no default grid for {machine!r}; pass one, such as grid={{'C': [1, 10]}}")
        points, current = with_current_point(estimator, grid_points(estimator, grid))
    else:
        points = grid_points(estimator, grid)
    is_passed = {"cv": cv != 5, "scoring": scoring is not None, "groups": groups is not None, "qid": qid is not None}
    check_criterion(estimator, criterion, {**is_passed, "one_standard_error": one_standard_error}, points)
    # 3. Split the samples into folds.
    labelled = is_classifier(estimator) or (y is not None and not is_regressor(estimator))  # ±1 for outliers
    uses_folds = criterion == "folds"
    # Splitters need only the number of rows.
    rows = np.zeros((n_samples(X), 1)) if isinstance(X, Frame | EngineSamples) else X
    if qid is not None:
        groups = qid if groups is None else groups
        cv = GroupKFold(cv, shuffle=True, random_state=0) if isinstance(cv, int) else cv
    folds = _check_splitter(cv, y, labelled, groups).split(rows, y, groups) if uses_folds else ()
    splits = [(row_indices(train, n_samples(X)), row_indices(test, n_samples(X))) for train, test in folds]
    # 4. Fit and score all cells that are not skipped.
    cells = ScoreTable(
        points,
        len(splits) if uses_folds else 1,
        score_range(estimator, scoring) if skip and uses_folds else None,
        skip_likely=skip == "likely",
        reference_point=current,
    )
    search = Search(
        estimator=estimator,
        prefix=prefix,
        X=X,
        y=y,
        sample_weight=None if sample_weight is None else np.asarray(on_host(sample_weight)),
        qid=qid,
        splits=splits,
        scorer=scorer_of(estimator, scoring, y is not None) if qid is None else scorer_of_queries(scoring),
        cells=cells,
        n_threads=effective_n_threads(n_jobs if n_jobs is not None else getattr(machine, "n_jobs", None)),
        budget=cache_bytes(getattr(machine, "cache_size", 1000)),
        deadline=deadline_of(max_time),
        gap=SearchGap(points, uses_folds and is_accuracy(estimator, scoring) and sample_weight is None, prefix),
        reporter=Reporter(verbose),
        callback=callback,
    )
    interrupted = False
    with collect_warnings() as search_warnings:
        try:
            shared = _run(search) if uses_folds else _run_without_folds(search, criterion)
        except KeyboardInterrupt:
            interrupted, shared = True, "interrupted"
    search.close()
    # 5. Choose a cell, refit, and issue each warning once: `_conclude` counts the fits that ended early, and the refit
    #    repeats guesses.
    with collect_warnings() as end_warnings:
        result = _conclude(search, shared, interrupted, refit, one_standard_error, current)
    repeated_warnings = (ConvergenceWarning, GuessWarning) if result.best_estimator_ is not None else ConvergenceWarning
    earlier_warnings = (*grid_warnings, *search_warnings)
    unrepeated = [warning for warning in earlier_warnings if not issubclass(warning[1], repeated_warnings)]
    issue_warnings([*unrepeated, *end_warnings])
    return result


def _check_splitter(cv: Any, y: Any, labelled: bool, groups: Any) -> Any:
    """Return the splitter of `cv`; raise ValueError if it needs groups and there are none."""
    splitter = make_splitter(cv, y, labelled)
    if groups is None and needs_groups(splitter):
        raise ValueError(f"cv={cv!r} needs groups: pass groups=, the group of each sample, or a number of folds as cv")
    return splitter


def _check_arguments(estimator: Any, X: Any, y: Any) -> None:
    """Raise if the estimator or the samples are missing, or y has several columns; the message says what to write."""
    if isinstance(estimator, type):
        raise TypeError(f"{estimator.__name__} is a class: pass an instance, {estimator.__name__}()")
    if not hasattr(estimator, "fit"):
        description = f"an array of shape {np.shape(estimator)}" if np.ndim(estimator) else repr(estimator)
        description = "a table" if hasattr(estimator, "columns") else description
        raise TypeError(
            f"the first argument of tune is the machine, not {description}. Write mercer.tune(mercer.SVC(), X, y) for "
            "classes, mercer.tune(mercer.SVR(), X, y) for numbers, mercer.tune(mercer.OneClassSVM(), X) without y, and "
            "mercer.tabular(mercer.SVC()) if X is a table"
        )
    if X is None:
        raise TypeError("tune needs samples: mercer.tune(estimator, X, y)")
    if getattr(X, "shape", (1,))[:1] == (0,) or (isinstance(X, (list, tuple)) and not X):
        raise ValueError(
            f"Found array with 0 sample(s) (shape={np.shape(X)}) while a minimum of 1 is required by tune."
        )
    shape: tuple[int, ...] = np.shape(y) if isinstance(y, list | tuple) else getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns, but tune takes one target; tune a machine for each column, or use "
            "sklearn.model_selection.GridSearchCV"
        )


def _check_queries(estimator: Any, machine: Any, groups: Any, qid: Any) -> Any:
    """Return the query of each sample; raise if the machine takes none, or if `groups` is given in its place."""
    name = type(machine).__name__
    takes_queries = "qid" in signature(machine.fit).parameters
    if qid is None:
        if takes_queries and groups is not None:
            raise ValueError(
                f"groups only decides which samples are held out together; {name} would still compare samples of "
                "different groups. Pass qid= instead, which also makes the folds; leave groups out for a single query"
            )
        return None
    if not takes_queries:
        raise TypeError(f"qid is for RankSVM, not for {name}; use groups=")
    if estimator is not machine and not isinstance(estimator, Pipeline):
        raise TypeError(
            f"a {type(estimator).__name__} does not pass qid to its {name}; tune the {name}, or a Pipeline with it"
        )
    return column_or_1d(on_host(qid))


def _run(search: Search) -> str:
    """Fit all points in all folds, unless they are skipped; return the text of `TuningResult.shared_`."""
    descriptions: dict[str, None] = {}
    groups = group_points_by_kernel(search.cells.points, search.prefix)
    while groups:
        shared = SharedSearch(search)
        not_shared = shared.run(groups)
        descriptions.update(dict.fromkeys(shared.descriptions))
        for group, reason in not_shared:
            descriptions[f"not shared: {reason}"] = None
            fit_fold_by_fold(search, group, warm_start=reason != MANY_PAIRS)
        revived_cells = set(search.cells.revive())
        groups = [points for group in groups if (points := [k for k in group if k in revived_cells])]
    return "; ".join(descriptions)


def _run_without_folds(search: Search, criterion: str) -> str:
    """Score all points without folds; return the text of `TuningResult.shared_`."""
    from mercer.model_selection.without_folds import score_without_folds  # imports exact solutions and theory

    return score_without_folds(search, criterion)


def _conclude(
    search: Search, shared: str, interrupted: bool, refit: bool, one_standard_error: bool, current: int | None
) -> TuningResult:
    """Choose a cell, refit if requested, and warn; `current` is the cell of the estimator's own parameters."""
    cells = search.cells
    best, reason = _choose(search, one_standard_error, current)
    result = TuningResult(
        cv_results_=cells.results(),
        n_splits_=cells.n_folds,
        complete_=cells.complete,
        shared_=shared,
        interrupted_=interrupted,
        best_index_=best,
        choice_=reason,
    )
    if best is None:
        if not interrupted:
            _report_no_score(search, refit)
        return result
    result.best_params_, result.best_score_ = dict(cells.points[best]), float(cells.means[best])
    result.search_gap_, result.search_gap_reason_ = search.gap.value(cells, best)
    _warn_of_early_stops(cells, best)
    if refit and not interrupted:
        model = search.at(best)
        options = weight_option(model, search.sample_weight) | search.query_option(search.qid)
        result.best_estimator_ = model.fit(search.X, search.y, **options)
        if not cells.complete:
            warn_user(
                f"the search ended after {cells.done:,} of {cells.scores.size:,} fits (max_time) and chose the best of "
                "them. Raise max_time, or try fewer points",
                ConvergenceWarning,
            )
        edges = describe_edges(cells.points, result.best_params_)
        if edges:
            warn_user(f"the best score is at the edge of the grid: {'; '.join(edges)}. Widen the grid", UserWarning)
    return result


def _choose(search: Search, one_standard_error: bool, current: int | None) -> tuple[int | None, str]:
    """Return the chosen cell and the reason; the cell is None if no cell has a mean."""
    cells = search.cells
    best = best_cell(cells)
    if best is None:
        return None, ""
    if one_standard_error:
        penalties = [penalty_of(point, search.prefix) for point in cells.points]
        cell = smallest_penalty_cell(cells, best, penalties)
        return cell, "the smallest C within one standard error of the largest mean score"
    if current is not None and cells.n_folds > 1:
        lengths = np.array([(len(train), len(test)) for train, test in search.splits]).mean(axis=0)
        # Soft scores hardly depend on the training rows of a fold (`benchmarks/compare_tables.py messy`).
        return choose_cell(cells, best, current, 0.0 if search.scorer in SOFT else float(lengths[1] / lengths[0]))
    return best, "the largest mean score of the grid"


def _report_no_score(search: Search, refit: bool) -> None:
    """Warn that no cell has a score; raise ValueError if fits failed in a complete search and a refit was requested."""
    cells = search.cells
    if not cells.errors:
        if time.monotonic() < search.deadline:
            warn_user(
                "no cell has a finite score in every fold (R² needs two rows in each fold and finite targets; a "
                "ranking needs two samples of a query with different y)",
                UserWarning,
            )
        elif not cells.complete:
            warn_user(
                f"no cell has a score: the search ended after {cells.done:,} of {cells.scores.size:,} fits (max_time). "
                "Raise max_time, or try fewer points",
                ConvergenceWarning,
            )
        return
    weight_text = "" if search.sample_weight is None else " with this sample_weight"
    message = f"no cell of the grid could be fitted{weight_text} in every fold: {cells.reason(min(cells.errors)[0])}"
    if refit and cells.complete:
        raise ValueError(message)
    warn_user(message, UserWarning)


def _warn_of_early_stops(cells: ScoreTable, best: int) -> None:
    """Issue one warning for all fits that stopped before `tol`."""
    if not cells.early:
        return
    reasons = ", ".join(f"{count:,} × {reason}" for reason, count in Counter(cells.early.values()).most_common())
    n_fits = int(np.isfinite(cells.scores).sum())
    largest = max((float(cells.relative_gaps[cell]) for cell in cells.early), default=np.nan)
    chosen_cell = (
        "the chosen cell among them" if any(point == best for point, _ in cells.early) else "not in the chosen cell"
    )
    warn_user(
        f"{len(cells.early):,} of {n_fits:,} fits stopped before tol ({reasons}), {chosen_cell}, with gaps of up to "
        f"{largest:.1e} of the dual value: their scores are not those of optimal machines. "
        "Scale the features, lower C, or raise max_iter or tol; cv_results_['why'] names the cells",
        ConvergenceWarning,
    )
