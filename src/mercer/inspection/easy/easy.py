"""`mercer.easy`: a table and the name of a column go in; a model comes out, what it is worth and what matters to it.

Parameters are searched on rows that are not judged by: up to 1,000 rows in each of five folds anew (nested
cross-validation), beyond that on three quarters of the rows. So the figures are of rows that neither training nor the
search has seen. The model that is kept is then searched and trained on all rows; beyond 3,000 it has the parameters of
that search.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from mercer.calibration import CalibratedClassifier, CalibratedRegressor
from mercer.estimators import SVC, SVR
from mercer.inspection.easy.easy_model import EasyModel as EasyModel  # also for those who import it from here
from mercer.inspection.easy.figures import ClassFigures, NumberFigures
from mercer.inspection.easy.hints import hints_on
from mercer.inspection.easy.importance import importance_of
from mercer.inspection.easy.target import Kind, expect_enough, kind_of
from mercer.model_selection.scoring import balanced_soft_accuracy, soft_accuracy
from mercer.model_selection.tune import tune
from mercer.runtime.errors import GuessWarning
from mercer.runtime.progress import Reporter
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Indices
from mercer.tables.choice import guesses_in
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame, frame_of
from mercer.tables.reading import classes_in, expect_whole, numbers

# Up to here every fold has a search of its own; beyond, a quarter of the rows says as much in a fifth of the time.
_NESTED = 1000
_MOST_SEARCHED = 3000  # rows of a search, of which more would take minutes and change little
MACHINES = ("auto", "svc", "svr")


@shared_docs
def easy(
    table: Any,
    target: Any,
    *,
    machine: str = "auto",
    drop: Sequence[str] = (),
    only: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    text: Sequence[str] = (),
    missing: str = "impute",
    standardise: bool = True,
    class_weight: str | None = "auto",
    random_state: int = 0,
    verbose: bool = False,
) -> EasyModel:
    """Read a table, search for parameters, judge on rows held out, train on all rows, calibrate and explain.

    Parameters
    ----------
    table : frame
        Of pandas, polars or pyarrow; an array, if `target` is one.
    target : str, or column
        The name of the column to learn, or its values.
    machine : {"auto", "svc", "svr"}, default="auto"
        Classes or numbers. "auto" takes numbers with fractions, or more than 20 different ones, for a regression.
    %(columns)s
    class_weight : {"auto", "balanced", None}, default="auto"
        "auto": classes count alike, and the balanced accuracy decides, where one has less than a quarter of the rows
        that it would have if all had the same.
    random_state : int, default=0
        Of all folds and draws.
    verbose : bool, default=False
        A line a second on how far it is.

    Returns
    -------
    EasyModel
        Print it. It predicts, explains, draws and saves.

    Examples
    --------
    >>> import mercer
    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris(as_frame=True).frame
    >>> model = mercer.easy(iris, target="target")
    >>> model.figures.accuracy > 0.9
    True
    >>> model.predict(iris[:2]).tolist()
    [0, 0]
    """
    if machine not in MACHINES:
        raise ValueError(f"machine={machine!r} must be one of {', '.join(map(repr, MACHINES))}")
    if class_weight not in ("auto", "balanced", None):
        raise ValueError(f"class_weight={class_weight!r} must be 'auto', 'balanced' or None")
    frame, y, name, kind = _parted(table, target, machine)
    columns = {"drop": drop, "only": only, "categorical": categorical, "numeric": numeric, "text": text}
    options = {**columns, "missing": missing, "standardise": standardise}
    return easy_of(frame, y, name, kind, options, class_weight, random_state, verbose=verbose)


def easy_of(
    frame: Frame,
    y: Any,
    target: str,
    kind: Kind,
    options: dict[str, Any],
    class_weight: str | None,
    seed: int,
    *,
    unit: str = "",
    source: str = "the table",
    verbose: bool = False,
) -> EasyModel:
    """What `easy` does once the target is read: of this `kind`, in this `unit`; `options` are those of `Tabular`."""
    expect_enough(y, kind.is_regression, source)
    weighed = not kind.is_regression and (class_weight == "balanced" or (class_weight == "auto" and _is_uneven(y)))
    inner = SVR() if kind.is_regression else SVC(class_weight="balanced" if weighed else None)
    course = _Course(Tabular(inner, **options), frame, y, kind.is_regression, weighed, seed, verbose)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuessWarning)  # they are in the report
        warnings.filterwarnings("ignore", "The least populated class")  # which has two rows at least
        guessed = guesses_in(frame, course.estimator.wishes(), source)
        judged = course.judge()
        every = np.arange(len(y))
        params, found = judged.search if judged.search and len(y) > _MOST_SEARCHED else course.search(every)
        made = EasyModel(course.train(params), target, frame.shape, course.figures(judged, unit), judged.how, found)
        made.kind_told, made.guesses = kind.told, guessed
        made.hints = hints_on(made.figures, y, target, made.table.columns_, weighed=weighed)
        made.matters = importance_of(made.model, frame, seed)
    return made


# --- reading ---------------------------------------------------------------------------------------------------------


def _parted(table: Any, target: Any, machine: str) -> tuple[Frame, Any, str, Kind]:
    """The columns to learn from, the values to learn, their name, and what kind they are."""
    if isinstance(target, str):
        whole = frame_of(table)
        if not whole.named or target not in whole.names:
            known = ", ".join(map(repr, whole.names)) if whole.named else "no names"
            raise ValueError(f"the table has no column {target!r}; it has {known}")
        names = [name for name in whole.names if name != target]
        frame, column, name = Frame(names, [whole[one] for one in names]), whole[target], target
        frame.categories = whole.categories - {target}
    else:
        frame, column, name = frame_of(table), np.asarray(target), "y"
        if len(column) != len(frame):
            raise ValueError(f"the table has {len(frame)} rows, but target has {len(column)}")
    expect_whole(column, "the table", name)
    if column.dtype.kind == "O" and all(isinstance(item, bool | np.bool_) for item in column):
        column = column.astype(bool)
    y = classes_in(column, "the table", name) if column.dtype.kind not in "b" else column
    kind = kind_of(y, machine)
    if kind.is_regression:
        y = numbers(column, "the table", name, "a regression needs numbers: choose another target or machine")
    elif column.dtype.kind == "O" and all(isinstance(item, str) for item in column):
        y = column.astype(str)  # "1" stays a name
    elif y.dtype.kind == "f" and (y % 1 == 0).all():
        y = y.astype(np.int64)  # a frame has floats where another row had a hole
    return frame, y, name, kind


def _is_uneven(y: Any) -> bool:
    counts = np.unique(y, return_counts=True)[1]
    return bool(counts.min() < 0.25 * len(y) / len(counts))


# --- the course ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Judged:
    truth: Any
    answers: Any
    how: str
    usual: Any  # of a regression: the median of what was trained on
    search: tuple[dict[str, Any], str] | None = None  # what was chosen, where there was one search for all rows


@dataclass
class _Course:
    """One run over a table."""

    estimator: Tabular
    frame: Frame
    y: Any
    is_regression: bool
    weighed: bool
    seed: int
    verbose: bool

    def _folds(self, y: Any) -> Any:
        if self.is_regression:
            return KFold(min(5, len(y) // 2), shuffle=True, random_state=self.seed)
        rarest = int(np.unique(y, return_counts=True)[1].min())
        return StratifiedKFold(max(2, min(5, rarest)), shuffle=True, random_state=self.seed)

    def search(self, rows: Indices) -> tuple[dict[str, Any], str]:
        """The parameters that do best on these rows, in folds of them, and what was searched."""
        some, told = rows, ""
        if len(rows) > _MOST_SEARCHED:
            some = self._drawn(rows, _MOST_SEARCHED)
            told = f", searched on {len(some):,} of {len(rows):,} rows"
        y = self.y[some]
        found = tune(
            self.estimator,
            self.frame.rows(some),
            y,
            grid="quick",
            cv=self._folds(y),
            scoring=None if self.is_regression else balanced_soft_accuracy if self.weighed else soft_accuracy,
            refit=False,
            verbose=self.verbose,
        )
        if found.interrupted_:
            raise KeyboardInterrupt
        if found.best_params_ is None:  # tune has warned of the reason
            raise ValueError("no parameters could be tried on all folds of these rows, as a warning says")
        plain = {name.rpartition("__")[2]: value for name, value in found.best_params_.items()}
        chosen = ", ".join(
            f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in plain.items()
        )
        chosen += ", all classes count alike" if self.weighed else ""
        cells = len(found.cv_results_["params"])
        return (
            found.best_params_,
            f"{type(self.estimator.estimator).__name__}, {chosen}: of {cells} cells{told}; {found.choice_}",
        )

    def _drawn(self, rows: Indices, count: int) -> Indices:
        stratify = None if self.is_regression else self.y[rows]
        try:
            return np.sort(train_test_split(rows, train_size=count, stratify=stratify, random_state=self.seed)[0])
        except ValueError:  # a class with too few rows to be in both parts
            return np.sort(np.random.default_rng(self.seed).permutation(rows)[:count])

    def _fitted(self, rows: Indices, params: dict[str, Any]) -> Tabular:
        model: Tabular = clone(self.estimator).set_params(**params)
        return model.fit(self.frame.rows(rows), self.y[rows])

    def judge(self) -> _Judged:
        """Answers to rows that neither training nor the search has seen."""
        n = len(self.y)
        if n <= _NESTED:
            answers: Any = None
            usual = np.empty(n)
            splits = list(self._folds(self.y).split(np.zeros(n), self.y))
            lines = Reporter(self.verbose)
            for k, (train, test) in enumerate(splits):
                lines.tell(f"fold {k + 1} of {len(splits)}", k / len(splits))
                part = self._fitted(train, self.search(train)[0]).predict(self.frame.rows(test))
                answers = np.empty(n, dtype=part.dtype) if answers is None else answers
                answers[test] = part
                usual[test] = np.median(self.y[train]) if self.is_regression else 0
            how = f"nested cross-validation: {len(splits)} folds, each unknown to the search that it judges"
            return _Judged(self.y, answers, how, usual)
        train, test = train_test_split(
            np.arange(n), test_size=0.25, stratify=None if self.is_regression else self.y, random_state=self.seed
        )
        search = self.search(train)
        answers = self._fitted(train, search[0]).predict(self.frame.rows(test))
        usual = np.full(len(test), np.median(self.y[train]) if self.is_regression else 0)
        how = f"a quarter of the rows, {len(test):,}, held out of search and training (seed {self.seed})"
        return _Judged(self.y[test], answers, how, usual, search)

    def figures(self, judged: _Judged, unit: str) -> ClassFigures | NumberFigures:
        """How good the answers are."""
        if self.is_regression:
            return NumberFigures(judged.truth, judged.answers, judged.usual, unit)
        return ClassFigures(judged.truth, judged.answers, np.unique(self.y), self.weighed)

    def train(self, params: dict[str, Any]) -> Any:
        """The model of all rows, with probabilities or intervals."""
        model, folds = clone(self.estimator).set_params(**params), self._folds(self.y)
        if self.is_regression:
            made: Any = CalibratedRegressor(model, cv=folds)
        else:
            made = CalibratedClassifier(model, cv=folds, decides="machine")
        return made.fit(self.frame, self.y).without_guarantee("its parameters were chosen by a search over all rows")
