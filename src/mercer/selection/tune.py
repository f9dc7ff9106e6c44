"""`mercer.tune`: a grid search whose fits share kernel values and are certified, and that skips what provably loses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d

from mercer.arrays import is_sparse, n_samples
from mercer.errors import held_warnings, warn_user
from mercer.fitting.pipeline.fit import bytes_of, deadline_of
from mercer.held_out.folds import folds_of
from mercer.kernels import kernel_accepts
from mercer.parameters import one_of
from mercer.progress import Reporter
from mercer.selection.cells import Cells
from mercer.selection.conclusion import conclude
from mercer.selection.criteria import CRITERIA, check_criterion
from mercer.selection.fold_by_fold import fit_fold_by_fold
from mercer.selection.grids import by_kernel, default_grid, machine_of, points_of, with_own
from mercer.selection.result import TuningResult
from mercer.selection.scoring import Scorer, counts_mistakes, ends_of, scorer_of
from mercer.selection.search_gap import SearchGap
from mercer.selection.shared_search import SharedSearch
from mercer.selection.steps import Steps
from mercer.selection.summary import params_told
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame, frame_of, part_of
from mercer.threads import effective_n_threads


@dataclass(frozen=True, eq=False)
class Search:
    """What a search is about: the estimator, the samples, the folds, and how they are scored."""

    estimator: Any
    prefix: str  # of the names of its machine's parameters
    X: Any
    y: Any
    sample_weight: Any
    splits: list[tuple[Any, Any]]
    scorer: Scorer
    cells: Cells
    n_threads: int
    budget: int
    deadline: float
    told: Callable[[int, int], None]
    gap: SearchGap

    def wanted(self, point: int, fold: int) -> bool:
        """Whether a fit can still change what is chosen, and there is time for it."""
        return time.monotonic() < self.deadline and self.cells.wanted(point, fold)

    def samples(self, fold: int) -> Any:
        """The held-out samples of a fold: a copy, which a score may change."""
        train, test = self.splits[fold]
        square = getattr(self.estimator, "kernel", None) == "precomputed"
        return part_of(self.X, test, train if square else None)

    def targets(self, fold: int) -> tuple[Any, Any]:
        """Their targets and their weights, copies too."""
        _, test = self.splits[fold]
        y, weight = (None if part is None else part[test] for part in (self.y, self.sample_weight))
        return y, weight


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
    grid : dict or list of dicts, optional
        Values to try for each parameter, such as {"C": [1, 10], "gamma": [0.01, 0.1]}. `gamma` stands for
        `kernel__gamma` of a kernel object, and names of a Pipeline's last step or a Tabular's machine need no prefix.
        The largest mean score wins, the first of several, as in GridSearchCV. None makes a grid for the data as the
        machine sees them; the estimator's own parameters then stay unless the best cell is better by more than one
        standard error of the difference over the folds.
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
    """
    _check_called_right(estimator, X)
    one_of("skip", skip, (True, False, "likely"))
    one_of("criterion", criterion, CRITERIA)
    prefix, machine = machine_of(estimator)
    if y is None and (is_classifier(machine) or is_regressor(machine)):
        raise ValueError(f"{type(machine).__name__} requires y to be passed, but the target y is None")
    y = None if y is None else column_or_1d(y, warn=True)
    if not hasattr(X, "shape") and kernel_accepts(getattr(machine, "kernel", "rbf")) != "sequences":
        X = np.asarray(X)
    elif isinstance(estimator, Tabular):
        X = frame_of(X)  # read once
    elif is_sparse(X):
        X = sp.csr_array(X)  # whose rows can be taken
    own = None
    if grid is None:
        steps = Steps(clone(estimator))
        seen = steps.fit(X, y, sample_weight)
        grid = default_grid(machine, seen, steps.target(y))
        if not grid:
            raise ValueError(f"there is no default grid for {machine!r}; give one, such as grid={{'C': [1, 10]}}")
        points, own = with_own(estimator, points_of(estimator, grid))
    else:
        points = points_of(estimator, grid)
    asked = {"cv": cv != 5, "scoring": scoring is not None, "groups": groups is not None}
    check_criterion(estimator, criterion, {**asked, "one_standard_error": one_standard_error}, points)
    labelled = is_classifier(estimator) or (y is not None and not is_regressor(estimator))  # outliers in every fold
    by_folds = criterion == "folds"
    rows = np.zeros((n_samples(X), 1)) if isinstance(X, Frame) else X  # whose number is all that folds need
    splits = list(folds_of(cv, y, labelled).split(rows, y, groups)) if by_folds else []
    ends = ends_of(estimator, scoring) if skip and by_folds else None
    cells = Cells(points, len(splits) if by_folds else 1, ends, likely=skip == "likely", kept=own)
    progress = _Progress(cells, verbose, callback)
    search = Search(
        estimator=estimator,
        prefix=prefix,
        X=X,
        y=y,
        sample_weight=None if sample_weight is None else np.asarray(sample_weight),
        splits=splits,
        scorer=scorer_of(estimator, scoring),
        cells=cells,
        n_threads=effective_n_threads(n_jobs if n_jobs is not None else getattr(machine, "n_jobs", None)),
        budget=bytes_of(getattr(machine, "cache_size", 1000)),
        deadline=deadline_of(max_time),
        told=progress.told,
        gap=SearchGap(points, by_folds and counts_mistakes(estimator, scoring) and sample_weight is None, prefix),
    )
    interrupted = False
    with held_warnings() as of_fits:
        try:
            shared = _run(search) if by_folds else _judge(search, criterion)
        except KeyboardInterrupt:
            interrupted, shared = True, "interrupted"
    progress.close()
    with held_warnings() as of_end:
        result = conclude(search, shared, interrupted, refit, one_standard_error, own)
    # Each once; fits that ended early are counted in the conclusion.
    early = {warning for warning in of_fits if issubclass(warning[1], ConvergenceWarning)}
    for message, category in dict.fromkeys([*(one for one in of_fits if one not in early), *of_end]):
        warn_user(message, category)
    return result


def _check_called_right(estimator: Any, X: Any) -> None:
    """Say what to write where the estimator or the samples are not there."""
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
            fit_fold_by_fold(search, group)
        again = set(search.cells.revive())
        left = [kept for group in left if (kept := [k for k in group if k in again])]
    return "; ".join(words)


def _judge(search: Search, criterion: str) -> str:
    """Judge every point that is wanted without folds; returns what was shared."""
    from mercer.selection.without_folds import judge  # the exact solutions and the theory, which folds do not need

    return judge(search, criterion)


class _Progress:
    """A line a second, and a call of the caller's function for every fit."""

    def __init__(self, cells: Cells, verbose: bool, callback: Callable[[dict[str, Any]], None] | None) -> None:
        self._cells, self._callback, self._reporter = cells, callback, Reporter(verbose)

    def told(self, point: int, fold: int) -> None:
        cells = self._cells
        if self._callback is not None:
            self._callback(
                {
                    "params": cells.points[point],
                    "fold": fold,
                    "score": float(cells.scores[point, fold]),
                    "gap": float(cells.gaps[point, fold]),
                    "done": cells.done,
                    "of": cells.scores.size,
                }
            )
        if self._reporter.is_due:
            self._reporter.tell(self._words(), cells.done / cells.scores.size or None)

    def close(self) -> None:
        self._reporter.close(self._words())

    def _words(self) -> str:
        cells, means = self._cells, self._cells.means
        told = f"{cells.done:>6,} of {cells.scores.size:,} fits"
        if cells.lost:
            told += f", {len(cells.lost):,} cells skipped"
        if not np.isnan(means).all():
            best = int(np.nanargmax(means))
            told += f", best {means[best]:.4f} at {params_told(cells.points[best])}"
        return told
