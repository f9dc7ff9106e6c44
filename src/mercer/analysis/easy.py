"""`mercer.easy`: a table and the name of a column in it, and out comes a model, what it is worth and what matters to it.

Parameters are searched on rows that are not judged by: up to 1,000 rows in each of five folds anew (nested
cross-validation), beyond that on three quarters of the rows. So the figures are of rows that neither training nor the
search has seen. The model that is kept is then trained on all rows.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

import mercer
from mercer.analysis.figures import ClassFigures, Facts, NumberFigures
from mercer.analysis.hints import hints_on
from mercer.analysis.page import Line, page, quantity
from mercer.arrays import Indices
from mercer.calibration import CalibratedClassifier, CalibratedRegressor
from mercer.errors import GuessWarning
from mercer.estimators import SVC, SVR
from mercer.files import save
from mercer.runtime.progress import Reporter
from mercer.selection.tune import tune
from mercer.tables.encodings import guesses
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame, frame_of
from mercer.tables.reading import classes_in, expect_whole, numbers

# Up to here every fold has a search of its own; beyond, a quarter of the rows says as much in a fifth of the time.
_NESTED = 1000
_MOST_SEARCHED = 3000  # rows of a search, of which more would take minutes and change little
_EXPLAINED, _BACKGROUND, _WORK = 100, 50, 2_000_000_000  # rows, rows, kernel factors: about ten seconds of one core
_MOST_CLASSES = 20  # different whole numbers that may be classes
MACHINES = ("auto", "svc", "svr")


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
    class_weight: str | None = "auto",
    seed: int = 0,
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
    drop, only, categorical, numeric, text, missing
        What to do with columns and holes, as in `tabular`.
    class_weight : {"auto", "balanced", None}, default="auto"
        "auto": classes count alike, and the balanced accuracy decides, where one has less than a quarter of the rows
        that it would have if all had the same.
    seed : int, default=0
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
    frame, y, name, why = _parted(table, target, machine)
    if not why.is_regression:
        _expect_two_of_each(y, name)
    wishes = {"drop": drop, "only": only, "categorical": categorical, "numeric": numeric, "text": text}
    weighed = not why.is_regression and (class_weight == "balanced" or (class_weight == "auto" and _is_uneven(y)))
    inner = SVR() if why.is_regression else SVC(class_weight="balanced" if weighed else None)
    course = _Course(Tabular(inner, **wishes, missing=missing), frame, y, why.is_regression, weighed, seed, verbose)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuessWarning)  # they are in the report
        judged = course.judge()
        params, found = judged.search or course.search(np.arange(len(y)))
        model = course.train(params)
        made = EasyModel(model, name, frame.shape, course.figures(judged), judged.how, found, why.told)
        table_ = made.table
        made.guesses = guesses(frame, table_.columns_, table_.wishes())
        made.hints = hints_on(made.figures, y, name, table_.columns_, weighed=weighed)
        made.explanation, made.background = course.explain(model) if hasattr(model, "explain") else (None, None)
    return made


@dataclass(eq=False, repr=False)
class EasyModel:
    """What `mercer.easy` found.

    Attributes
    ----------
    model : CalibratedClassifier or CalibratedRegressor
        Around a `Tabular`, trained on all rows: what `save` saves and `mercer.load` gives back.
    target : str
        The column that was learnt.
    shape : (int, int)
        Rows, and columns beside the target.
    figures : ClassFigures or NumberFigures
        Of rows that were held out of training and of the search.
    judged_by : str
        How, in words.
    search : str
        What was searched and chosen, in words.
    kind_told : str
        Why it is a regression or not, where that was guessed.
    guesses : dict
        By column, what was guessed of it.
    hints : list of str
        What to try next.
    explanation : Explanation or None
        Shapley values of some rows, per column of the table.
    background : frame
        The rows that they are compared with.
    """

    model: Any
    target: str
    shape: tuple[int, int]
    figures: ClassFigures | NumberFigures
    judged_by: str
    search: str
    kind_told: str = ""
    guesses: dict[str, str] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)
    explanation: Any = None
    background: Any = None

    @property
    def table(self) -> Tabular:
        """What reads the table, with the machine inside."""
        found: Tabular = getattr(self.model, "estimator_", self.model)
        return found if isinstance(found, Tabular) else self.model

    def predict(self, X: Any) -> Any:
        """The class or number of each row."""
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class."""
        return self.model.predict_proba(X)

    def predict_interval(self, X: Any, alpha: float = 0.1) -> Any:
        """The ends of an interval that holds the number with probability of about 1 − alpha."""
        return self.model.predict_interval(X, alpha)

    def explain(self, X: Any, background: Any = None) -> Any:
        """Shapley values of rows, compared with `background`, by default rows of the training table."""
        return self.model.explain(X, self.background if background is None else background)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save `model` as a .mercer file, for `mercer.load` and `mercer predict`."""
        save(self.model, path)

    def plot(self, kind: str = "bar", **options: Any) -> Any:
        """What matters, as "bar" or "beeswarm"; needs matplotlib."""
        if self.explanation is None:
            raise ValueError("there are no Shapley values to draw")
        return self.explanation.plot(kind, **options)

    @property
    def importance(self) -> dict[str, float]:
        """Of each column, its share of all Shapley values, the largest first."""
        if self.explanation is None:
            return {}
        sizes = np.asarray(self.explanation.importance)
        sizes = sizes if sizes.ndim == 1 else sizes.mean(axis=1)
        order = np.argsort(-sizes, kind="stable")
        whole = float(sizes.sum()) or 1.0
        return {self.explanation.feature_names[j]: float(sizes[j]) / whole for j in order}

    def to_dict(self) -> Facts:
        """For a program."""
        certificate = self.table.estimator_.certificate_
        return {
            "mercer": mercer.__version__,
            "target": self.target,
            "rows": self.shape[0],
            "columns": {one.name: one.description for one in self.table.columns_},
            "judged_by": self.judged_by,
            "score": {"held_out": getattr(self.figures, "accuracy", getattr(self.figures, "r2", None))},
            **self.figures.to_dict(),
            "importance": self.importance,
            "search": self.search,
            "guesses": self.guesses,
            "hints": self.hints,
            "certificate": certificate.to_dict() | {"verdict": certificate.verdict},
        }

    def lines(self) -> list[Line]:
        """The report, a name and what is said of it at a time."""
        return [
            *(("in short" if not k else "", f"{k + 1}  {told}") for k, told in enumerate(self._in_short())),
            None,
            *self.figures.lines(),
            ("judged by", self.judged_by),
            None,
            *what_matters(self.importance, self.explanation),
            None,
            *column_lines([(one.name, one.description) for one in self.table.columns_]),
            *(("asked" if not k else "", told) for k, told in enumerate(self.guesses.values())),
            None,
            *([("kind", self.kind_told)] if self.kind_told else []),
            ("machine", self.search),
            *certificate_lines(self.table.estimator_),
        ]

    def _in_short(self) -> list[str]:
        """Five lines."""
        certificate = self.table.estimator_.certificate_
        best = list(self.importance.items())[:3]
        matters = ", ".join(f"{name} ({share:.0%})" for name, share in best)
        rows = f"{self.shape[0]:,} rows"
        trained = self.table.n_rows_dropped_ and f"{self.shape[0] - self.table.n_rows_dropped_:,} of {rows}"
        nexts = self.hints or ["predict new rows, and ask why: predict, predict_proba, explain"]
        return [
            self.figures.headline,
            self._weakest(),
            f"what matters most: {matters}" if matters else "what matters is not known for this machine",
            f"the model has now seen {trained or f'all {rows}'}; it {certificate.verdict}",
            f"next: {nexts[0]}",
        ]

    def _weakest(self) -> str:
        if isinstance(self.figures, ClassFigures):
            recall, precision = self.figures.recall, self.figures.precision
            k = int(np.nanargmin(recall))
            alarms = "" if np.isnan(precision[k]) else f"; where it says so, {precision[k]:.0%} are"
            return f"hardest: of the rows that are {self.figures.classes[k]!r} it finds {recall[k]:.0%}{alarms}"
        low, high = np.quantile(np.abs(self.figures.truth - self.figures.answers), (0.5, 0.9))
        unit = self.figures.unit
        return f"half of the answers are off by less than {quantity(low, unit)}, nine of ten by less than {quantity(high, unit)}"

    def __str__(self) -> str:
        title = f"mercer {mercer.__version__}: {self.target!r} from {self.shape[1]} columns of {self.shape[0]:,} rows"
        return "\n".join([title, "", *page(self.lines())])

    def __repr__(self) -> str:
        return f"EasyModel({self.target!r}, {self.figures.headline})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in a notebook, and at IPython's prompt


def what_matters(importance: dict[str, float], explanation: Any) -> list[Line]:
    """The columns by their share of the Shapley values, as bars."""
    if not importance:
        return []
    shown = list(importance.items())[:8]
    wide = max(len(name) for name, _ in shown)
    most = shown[0][1] or 1.0
    lines: list[Line] = [
        ("" if k else "what matters", f"{name:<{wide}}  {share:>4.0%}  {'█' * round(24 * share / most)}".rstrip())
        for k, (name, share) in enumerate(shown)
    ]
    rest = len(importance) - len(shown)
    told = f"of the mean |Shapley value| of {len(explanation)} rows, exact" + (
        f"; and {rest} more columns" if rest else ""
    )
    return [*lines, ("", told)]


def column_lines(told: list[tuple[str, str]]) -> list[Line]:
    """What was done to each column, a line for each; in a wide table, one for all to which the same was done."""
    if len(told) > 20:
        alike: dict[str, list[str]] = {}
        for name, what in told:
            alike.setdefault(what, []).append(name)
        told = [(_listed(names), what) for what, names in alike.items()]
    told = [(name or "(no name)", what) for name, what in told]
    width = max(len(name) for name, _ in told)
    return [("" if i else "columns", f"{name:<{width}}  {what}") for i, (name, what) in enumerate(told)]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"


def certificate_lines(machine: Any) -> list[Line]:
    """Three lines: what is proven, how close the fit is, and whether it reached what was asked."""
    found = machine.certificate_
    state = "converged" if machine.converged_ else f"NOT converged: {machine.stop_reason_}"
    parts = f", in sums over {len(found.parts)} machines" if found.parts else ""
    asked = f" (tol = {machine.tol:g})" if hasattr(machine, "tol") else ""
    return [
        ("certificate", f"{found.verdict}{parts}"),
        (
            "",
            f"gap {found.gap:.2e}, {found.relative_gap:.1e} of the dual value {found.dual:.6g}: no better fit is further away",
        ),
        ("", f"violation {found.violation:.2e}{asked}: {state}"),
    ]


# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """Whether numbers are learnt, and why, where that was guessed."""

    is_regression: bool
    told: str = ""


def kind_of(column: Any, machine: str) -> Kind:
    """What the values of a target ask for: classes, or numbers if they have fractions or many different values."""
    if machine in ("svc", "svr"):
        return Kind(machine == "svr")
    values = np.asarray(column)
    if values.dtype.kind not in "iuf":
        return Kind(False)
    distinct = np.unique(values)
    if (distinct % 1 != 0).any():
        return Kind(True, "a regression, since the target has fractions; machine='svc' makes classes of them")
    if len(distinct) <= _MOST_CLASSES:
        return Kind(False)
    told = (
        f"a regression, since the target has {len(distinct):,} different numbers; machine='svc' makes classes of them"
    )
    return Kind(True, told)


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
    elif y.dtype.kind == "f" and (y % 1 == 0).all():
        y = y.astype(np.int64)  # a frame has floats where another row had a hole
    return frame, y, name, kind


def _expect_two_of_each(y: Any, name: str) -> None:
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) < 2:
        raise ValueError(f"every row of {name!r} is {labels[0]!r}: there is nothing to tell apart")
    if counts.min() < 2:
        raise ValueError(
            f"the class {str(labels[counts.argmin()])!r} of {name!r} has a single row, which cannot be both trained on "
            "and held out; leave it out or add rows"
        )


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
            return KFold(min(5, len(y)), shuffle=True, random_state=self.seed)
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
            scoring="balanced_accuracy" if self.weighed else None,
            refit=False,
            verbose=self.verbose,
        )
        if found.interrupted_:
            raise KeyboardInterrupt
        assert found.best_params_ is not None  # else tune says why not
        plain = {name.rpartition("__")[2]: value for name, value in found.best_params_.items()}
        chosen = ", ".join(
            f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in plain.items()
        )
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
            how = f"nested cross-validation: each of {len(splits)} folds asked of a model searched and trained on the others"
            return _Judged(self.y, answers, how, usual)
        train, test = train_test_split(
            np.arange(n), test_size=0.25, stratify=None if self.is_regression else self.y, random_state=self.seed
        )
        search = self.search(train)
        answers = self._fitted(train, search[0]).predict(self.frame.rows(test))
        usual = np.full(len(test), np.median(self.y[train]) if self.is_regression else 0)
        how = f"a quarter of the rows, {len(test):,}, held out of search and training (seed {self.seed})"
        return _Judged(self.y[test], answers, how, usual, search)

    def figures(self, judged: _Judged) -> ClassFigures | NumberFigures:
        """How good the answers are."""
        if self.is_regression:
            return NumberFigures(judged.truth, judged.answers, judged.usual)
        return ClassFigures(judged.truth, judged.answers, np.unique(self.y), self.weighed)

    def train(self, params: dict[str, Any]) -> Any:
        """The model of all rows, with probabilities or intervals."""
        model, folds = clone(self.estimator).set_params(**params), self._folds(self.y)
        if self.is_regression:
            return CalibratedRegressor(model, cv=folds).fit(self.frame, self.y)
        return CalibratedClassifier(model, cv=folds, decides="machine").fit(self.frame, self.y)

    def explain(self, model: Any) -> tuple[Any, Frame]:
        """Shapley values of some rows, and the rows that they are compared with."""
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(len(self.y))
        background = self.frame.rows(order[:_BACKGROUND])
        machine = model.estimator_.estimator_
        each = len(background) * len(machine.support_) * machine.n_features_in_ + 1
        some = order[-max(10, min(_EXPLAINED, _WORK // each)) :]
        return model.explain(self.frame.rows(some), background), background
