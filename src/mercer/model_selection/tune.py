"""`mercer.tune`: a grid search whose fits share kernel values and are certified, and that skips what provably loses."""

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

from mercer.estimators.fitting.pipeline.fit import bytes_of, deadline_of
from mercer.kernels.names import kernel_accepts
from mercer.model_selection.criteria import CRITERIA, check_criterion
from mercer.model_selection.grids import (
    QUICK,
    by_kernel,
    default_grid,
    edges_of,
    points_of,
    prefix_and_machine,
    price_of,
    with_own,
)
from mercer.model_selection.held_out.folds import folds_of, needs_groups, places_in
from mercer.model_selection.held_out.machines import weight_option
from mercer.model_selection.preprocessing import Steps
from mercer.model_selection.result import TuningResult, best_of, cheapest_of, chosen
from mercer.model_selection.score_table import Cells
from mercer.model_selection.scoring import SOFT, counts_mistakes, ends_of, scorer_of, scorer_of_queries
from mercer.model_selection.search import Search, fit_fold_by_fold
from mercer.model_selection.search_gap import SearchGap
from mercer.model_selection.shared_search import MANY_PAIRS, SharedSearch
from mercer.runtime.errors import GuessWarning, held_warnings, warn_user
from mercer.runtime.parameters import one_of
from mercer.runtime.progress import Reporter
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import is_sparse, n_samples
from mercer.samples.engine import PlacedSamples, on_host, placed
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
    """Choose parameters by cross-validation, with kernel values shared between folds and prices.

    Parameters
    ----------
    estimator : estimator, Pipeline or Tabular
        `SVC`, `SVR` and `OneClassSVM` share kernel values between all folds; in a Pipeline or a Tabular, whose other
        steps are refitted for every fold, between the points of the grid. Other estimators are fitted fold by fold.
    X : array or CSR matrix of shape (n_samples, n_features)
        The samples, as for the estimator's `fit`: also a table, a list of strings, or a square kernel matrix.
    y : array of shape (n_samples,), optional
        The targets, as for the estimator's `fit`.
    grid : dict, list of dicts or "quick", optional
        Values to try for each parameter, such as {"C": [1, 10], "gamma": [0.01, 0.1]}. `gamma` stands for
        `kernel__gamma` of a kernel object, and names of a Pipeline's last step or a Tabular's machine need no prefix.
        The largest mean score wins, the first of several, as in GridSearchCV. None makes a grid for the data as the
        machine sees them, and "quick" one of at most a fifth as many cells; the estimator's own parameters then stay
        unless the best cell is better by more than one standard error of the difference over the folds.
    cv : int, splitter or list of (train, test), default=5
        As in scikit-learn's GridSearchCV, but that a number means folds of shuffled rows, always the same ones:
        StratifiedKFold(5, shuffle=True, random_state=0), or KFold where y has no classes. GridSearchCV's folds of
        consecutive rows are those of cv=StratifiedKFold(5), or KFold(5).
    scoring : str or function, optional
        As in GridSearchCV: None is the estimator's own `score`, such as the accuracy for classifiers and R² for
        regressors. One-class machines have none: for them it is the balanced accuracy where y has labels ±1, and
        otherwise how close the share of held-out samples outside is to ν. A function of the model, the samples and y
        that asks for more than predictions for these samples is given a model, so that every fold is fitted by itself.
    criterion : {"folds", "loo", "xi-alpha", "span", "span-bound", "radius-margin", "margin-bound"}, default="folds"
        What a point is judged by. "loo" leaves out each sample, exactly. The others take one fit: estimates of
        leave-one-out, and a bound on the probability of error. Scores are then 1 − the share of errors.
    groups : array of shape (n_samples,), optional
        For splitters that need them.
    qid : array of shape (n_samples,), optional
        The query of each sample, for `RankSVM`: fits and scores compare the samples of one query. A number as `cv` then
        leaves out whole queries, GroupKFold(5, shuffle=True, random_state=0); splitters are given `qid` as groups where
        `groups` is not given.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples, in fits and in scores.
    refit : bool, default=True
        Whether the best point is fitted to all samples, by the estimator itself.
    skip : bool or "likely", default=True
        True skips fits that provably cannot change what is chosen: it needs a score with a known maximum. "likely" also
        skips cells whose folds so far are two standard errors below the best.
    one_standard_error : bool, default=False
        Choose the smallest C whose score is within one standard error of the best.
    n_jobs : int, optional
        Threads; None means as many as mercer uses otherwise.
    max_time : float, optional
        Seconds after which no further fit is begun; the result is then not complete.
    verbose : bool, default=False
        A line a second, with the time left.
    callback : function, optional
        Called after every fit with a dictionary: params, fold, score, gap, done, of.

    Returns
    -------
    TuningResult
        After Ctrl-C with what was found so far, `complete_` False, and not refitted.

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
    _check_called_right(estimator, X, y)
    one_of("skip", skip, (True, False, "likely"))
    one_of("criterion", criterion, CRITERIA)
    prefix, machine = prefix_and_machine(estimator)
    if y is None and (is_classifier(machine) or is_regressor(machine)):
        raise ValueError(f"{type(machine).__name__} requires y to be passed, but the target y is None")
    qid = _queries(estimator, machine, groups, qid)
    X = placed(X)
    y = None if y is None else column_or_1d(on_host(y), warn=True)
    if not hasattr(X, "shape") and kernel_accepts(getattr(machine, "kernel", "rbf")) != "sequences":
        X = np.asarray(X)
    elif isinstance(estimator, Tabular):
        X = frame_of(X)  # read once
    elif is_sparse(X) and not isinstance(X, PlacedSamples):
        X = sp.csr_array(X)  # whose rows can be taken
    own = None
    if grid is None or (isinstance(grid, str) and grid == QUICK):
        steps = Steps(clone(estimator))
        seen = steps.fit(X, y, sample_weight)
        grid = default_grid(machine, seen, steps.target(y), quick=grid is not None)
        if not grid:
            raise ValueError(f"there is no default grid for {machine!r}; give one, such as grid={{'C': [1, 10]}}")
        points, own = with_own(estimator, points_of(estimator, grid))
    else:
        points = points_of(estimator, grid)
    asked = {"cv": cv != 5, "scoring": scoring is not None, "groups": groups is not None, "qid": qid is not None}
    check_criterion(estimator, criterion, {**asked, "one_standard_error": one_standard_error}, points)
    labelled = is_classifier(estimator) or (y is not None and not is_regressor(estimator))  # outliers in every fold
    by_folds = criterion == "folds"
    rows = (
        np.zeros((n_samples(X), 1)) if isinstance(X, Frame | PlacedSamples) else X
    )  # whose number is all that folds need
    if qid is not None:
        groups = qid if groups is None else groups
        cv = GroupKFold(cv, shuffle=True, random_state=0) if isinstance(cv, int) else cv
    made = _folds(cv, y, labelled, groups).split(rows, y, groups) if by_folds else ()
    splits = [(places_in(train, n_samples(X)), places_in(test, n_samples(X))) for train, test in made]
    ends = ends_of(estimator, scoring) if skip and by_folds else None
    cells = Cells(points, len(splits) if by_folds else 1, ends, likely=skip == "likely", kept=own)
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
        budget=bytes_of(getattr(machine, "cache_size", 1000)),
        deadline=deadline_of(max_time),
        gap=SearchGap(points, by_folds and counts_mistakes(estimator, scoring) and sample_weight is None, prefix),
        reporter=Reporter(verbose),
        callback=callback,
    )
    interrupted = False
    with held_warnings() as of_fits:
        try:
            shared = _run(search) if by_folds else _judge(search, criterion)
        except KeyboardInterrupt:
            interrupted, shared = True, "interrupted"
    search.close()
    with held_warnings() as of_end:
        result = _conclude(search, shared, interrupted, refit, one_standard_error, own)
    # Each once; fits that ended early are counted in the conclusion, and what a column holds is told by the refit.
    told_later = (ConvergenceWarning, GuessWarning) if result.best_estimator_ is not None else ConvergenceWarning
    early = {warning for warning in of_fits if issubclass(warning[1], told_later)}
    for message, category in dict.fromkeys([*(one for one in of_fits if one not in early), *of_end]):
        warn_user(message, category)
    return result


def _folds(cv: Any, y: Any, labelled: bool, groups: Any) -> Any:
    """The splitter that `cv` asks for; raise if it splits by groups and there are none."""
    splitter = folds_of(cv, y, labelled)
    if groups is None and needs_groups(splitter):
        raise ValueError(
            f"cv={cv!r} keeps the samples of a group together, but tune is given no groups: give groups=, the group of "
            "each sample, or a number of folds as cv"
        )
    return splitter


def _check_called_right(estimator: Any, X: Any, y: Any) -> None:
    """Say what to write where the estimator or the samples are not there, or y has several columns."""
    if isinstance(estimator, type):
        raise TypeError(f"{estimator.__name__} is a class: give tune an estimator of it, {estimator.__name__}()")
    if not hasattr(estimator, "fit"):
        given = f"an array of shape {np.shape(estimator)}" if np.ndim(estimator) else repr(estimator)
        given = "a table" if hasattr(estimator, "columns") else given
        raise TypeError(
            f"tune is given the machine first, and then the samples, but its first argument is {given}. Write "
            "mercer.tune(mercer.SVC(), X, y) for classes, mercer.tune(mercer.SVR(), X, y) for numbers, "
            "mercer.tune(mercer.OneClassSVM(), X) without y, and mercer.tabular(mercer.SVC()) where X is a table"
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
            f"tune(y=...): y has {shape[1]} columns, but a search chooses by one score of one target; tune a machine "
            "for each column, or search for all with sklearn.model_selection.GridSearchCV"
        )


def _queries(estimator: Any, machine: Any, groups: Any, qid: Any) -> Any:
    """Return the query of each sample; raise if it cannot reach the machine, or if only `groups` has it."""
    name = type(machine).__name__
    ranks = "qid" in signature(machine.fit).parameters
    if qid is None:
        if ranks and groups is not None:
            raise ValueError(
                f"groups only says which samples are left out together, and {name} would compare samples of different "
                "groups: give qid=, which also makes the folds; for one query of all samples leave groups out"
            )
        return None
    if not ranks:
        raise TypeError(f"qid is for RankSVM, which compares the samples of a query; {name} has none. Use groups=")
    if estimator is not machine and not isinstance(estimator, Pipeline):
        raise TypeError(
            f"a {type(estimator).__name__} hands no qid to its {name}; tune the {name}, or a Pipeline of it"
        )
    return column_or_1d(on_host(qid))


def _run(search: Search) -> str:
    """Fit everything that is wanted; returns what was shared."""
    words: dict[str, None] = {}
    left = by_kernel(search.cells.points, search.prefix)
    while left:
        together = SharedSearch(search)
        rest = together.run(left)
        words.update(dict.fromkeys(together.words))
        for group, reason in rest:
            words[f"not shared: {reason}"] = None
            fit_fold_by_fold(search, group, warm_start=reason != MANY_PAIRS)
        again = set(search.cells.revive())
        left = [kept for group in left if (kept := [k for k in group if k in again])]
    return "; ".join(words)


def _judge(search: Search, criterion: str) -> str:
    """Judge every point that is wanted without folds; returns what was shared."""
    from mercer.model_selection.without_folds import (
        judge,  # the exact solutions and the theory, which folds do not need
    )

    return judge(search, criterion)


def _conclude(
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
        model = search.at(best)
        options = weight_option(model, search.sample_weight) | search.query_option(search.qid)
        result.best_estimator_ = model.fit(search.X, search.y, **options)
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
        # Soft scores hardly depend on which rows a fold was trained on (`benchmarks/compare_tables.py messy`).
        return chosen(cells, best, own, 0.0 if search.scorer in SOFT else float(lengths[1] / lengths[0]))
    return best, "the largest mean score of the grid"


def _tell_nothing(search: Search, refit: bool) -> None:
    """No cell has a score: an error where a machine was wanted, and a warning where scores alone were."""
    cells = search.cells
    if not cells.errors:
        if time.monotonic() < search.deadline:
            told = (
                "no cell has a score that is a number in every fold (R² needs two rows in each, and finite targets; a "
                "ranking two samples of a query that differ in y)"
            )
            warn_user(told, UserWarning)
        elif not cells.complete:
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
