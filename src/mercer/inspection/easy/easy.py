"""`mercer.easy`: train a model on a table in one call, and report how accurate it is and which columns matter.

The reported figures are measured on rows that neither training nor the parameter search has seen. Up to 1,000 rows
this is nested cross-validation: each of five folds has its own search on the other four. Beyond that a quarter of the
rows is held out once. The final model is searched and trained on all rows; beyond 3,000 rows it takes the parameters
of the search on three quarters of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from mercer.calibration import CalibratedClassifier, CalibratedRegressor
from mercer.estimators import SVC, SVR
from mercer.inspection.easy.advice import advise
from mercer.inspection.easy.easy_model import EasyModel as EasyModel  # mercer/__init__.pyi imports it from here
from mercer.inspection.easy.easy_model import Training
from mercer.inspection.easy.figures import ClassFigures, NumberFigures
from mercer.inspection.easy.held_out import HeldOut
from mercer.inspection.easy.importance import column_importance
from mercer.inspection.easy.outliers import Outliers, flag_large_errors
from mercer.inspection.easy.target import TargetKind, check_enough_rows, target_kind
from mercer.model_selection.result import TuningResult
from mercer.model_selection.scoring import balanced_soft_accuracy, soft_accuracy
from mercer.model_selection.tune import tune
from mercer.runtime.errors import GuessWarning
from mercer.runtime.progress import Reporter
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Indices
from mercer.samples.column_names import column_suggestion
from mercer.tables.choice import guesses_in, target_guesses
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame, frame_of
from mercer.tables.reading import classes_in, expect_complete, numbers, read_frame

# Largest table with nested cross-validation; beyond it, a held-out quarter is as informative in a fifth of the time.
_MAX_NESTED_ROWS = 1000
_ABSOLUTE_ERROR = "neg_mean_absolute_error"  # score of a search with outliers, which decide R²
_EPSILONS = (0.1, 0.03, 0.01)  # in standard deviations of the target
_MOST_SEARCH_ROWS = 3000  # rows used by one search; more would take minutes and change little
MACHINES = ("auto", "svc", "svr")
Search = tuple[dict[str, Any], str]  # the best parameters, and a description of the search


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
    """Train a model on a table: search parameters, test on held-out rows, fit to all rows, calibrate and explain.

    Parameters
    ----------
    table : frame or path
        Table of pandas, polars or pyarrow, or the path of a file with one; an array if `target` is one.
    target : str, or column
        Name of the column to predict, or its values.
    machine : {"auto", "svc", "svr"}, default="auto"
        Estimator: "svc" for classes, "svr" for numbers. "auto" chooses a regression if the target holds fractions or
        more than 20 different numbers.
    %(columns)s
    class_weight : {"auto", "balanced", None}, default="auto"
        Class weights. "balanced" gives all classes the same total weight and searches by balanced accuracy. "auto"
        does so if a class has fewer than a quarter of the rows that it would have if all classes were equally large.
    random_state : int, default=0
        Seed of all splits and random draws.
    verbose : bool, default=False
        Whether to print progress, about once a second.

    Returns
    -------
    EasyModel
        Trained model. `print` shows its report; it predicts, explains, plots and saves.

    See Also
    --------
    tabular : Preprocess the columns of a table for any estimator.
    tune : Search a grid of parameters.

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
    columns = {"drop": drop, "only": only, "categorical": categorical, "numeric": numeric, "text": text}
    options = {**columns, "missing": missing, "standardise": standardise}
    source = "the table"
    if isinstance(table, str | os.PathLike):
        source, table = os.fspath(table), read_frame(table, texts=[*categorical, *text])
    frame, y, name, kind, unit = _split_target(table, target, machine, source)
    context: dict[str, Any] = {"unit": unit, "source": source, "machine": machine}
    return run_easy(frame, y, name, kind, options, class_weight, random_state, **context, verbose=verbose)


def run_easy(
    frame: Frame,
    y: Any,
    target: str,
    kind: TargetKind,
    options: dict[str, Any],
    class_weight: str | None,
    seed: int,
    *,
    unit: str = "",
    source: str = "the table",
    machine: str = "auto",
    command: str = "",
    path_suffices: bool = True,
    verbose: bool = False,
) -> EasyModel:
    """Run `easy` on features and a target that are read already.

    `options` are parameters of `Tabular`, and `unit` is the target's unit. `source`, the path of the table if it has
    one, `machine`, as the user gave it, and `command`, the command line, only appear in errors and in the report, which
    shows how to read the file by its path only if `path_suffices`.
    """
    check_enough_rows(y, kind.is_regression, source)
    has_class_weights = not kind.is_regression and (
        class_weight == "balanced" or (class_weight == "auto" and _is_uneven(y))
    )
    inner = SVR() if kind.is_regression else SVC(class_weight="balanced" if has_class_weights else None)
    run = EasyRun(Tabular(inner, **options), frame, y, kind.is_regression, has_class_weights, seed, verbose)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuessWarning)  # the report lists the guesses
        warnings.filterwarnings("ignore", "The least populated class")  # that class has at least two rows
        guess_messages = guesses_in(frame, run.estimator.column_options(), source) | target_guesses(y, target)
        held_out, held_out_search = run.predict_held_out()
        reused_search = held_out_search if len(y) > _MOST_SEARCH_ROWS else None
        params, search = reused_search or run.search(np.arange(len(y)))
        model = run.train(params)
        outliers = run.find_outliers(model) if kind.is_regression else None
        figures = run.figures(held_out, unit, outliers)
        given_options = {**options, "machine": machine, "class_weight": class_weight, "random_state": seed}
        training = Training(frame, y, held_out, given_options, source, command, path_suffices)
        easy_model = EasyModel(model, target, training, figures, search)
        easy_model.outliers = outliers
        easy_model.kind_reason, easy_model.guesses = kind.reason, guess_messages
        easy_model.matters = column_importance(easy_model.model, frame, seed)
        easy_model.hints = advise(easy_model)
    return easy_model


# --- reading ---------------------------------------------------------------------------------------------------------


def _split_target(table: Any, target: Any, machine: str, source: str) -> tuple[Frame, Any, str, TargetKind, str]:
    """Split a table into features and target; return the features, and the target's values, name, kind and unit."""
    if isinstance(target, str):
        complete_frame = frame_of(table)
        if not complete_frame.named or target not in complete_frame.names:
            columns = ", ".join(map(repr, complete_frame.names)) if complete_frame.named else "no column names"
            suggestion = column_suggestion(target, complete_frame.names) if complete_frame.named else ""
            raise ValueError(f"{source} has no column {target!r}{suggestion}; it has {columns}")
        frame, name = complete_frame.drop(target), target
        column, unit = complete_frame.target(target, regression=True if machine == "svr" else None)
    else:
        frame, column, name, unit = frame_of(table), np.asarray(target), "y", ""
        if len(column) != len(frame):
            raise ValueError(f"{source} has {len(frame)} rows, but target has {len(column)}")
    expect_complete(column, source, name)
    if column.dtype.kind == "O" and all(isinstance(item, bool | np.bool_) for item in column):
        column = column.astype(bool)
    y = classes_in(column, source, name) if column.dtype.kind not in "b" else column
    kind = target_kind(y, machine)
    if kind.is_regression:
        y = numbers(column, source, name, "a regression needs numbers: choose another target or another machine")
    elif column.dtype.kind == "O" and all(isinstance(item, str) for item in column):
        y = column.astype(str)  # "1" stays a label
    elif y.dtype.kind == "f" and (y % 1 == 0).all():
        y = y.astype(np.int64)  # pandas turns integers into floats where a row had a missing value
    return frame, y, name, kind, unit


def _is_uneven(y: Any) -> bool:
    counts = np.unique(y, return_counts=True)[1]
    return bool(counts.min() < 0.25 * len(y) / len(counts))


# --- search, evaluation and training ----------------------------------------------------------------------------------


@dataclass
class EasyRun:
    """One run of `mercer.easy` on a table: parameter search, held-out predictions and the final fit."""

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

    def search(self, rows: Indices) -> Search:
        """Search parameters by cross-validation on `rows`; return them with a description of the search."""
        sampled_rows, details = rows, ""
        if len(rows) > _MOST_SEARCH_ROWS:
            sampled_rows = self._draw_rows(rows, _MOST_SEARCH_ROWS)
            details = f", searched on {len(sampled_rows):,} of {len(rows):,} rows"
        scoring: Any = balanced_soft_accuracy if self.weighed else soft_accuracy
        if self.is_regression:
            scoring = _ABSOLUTE_ERROR if self._has_outliers(sampled_rows) else None
        params, result = self._tune(self.estimator, sampled_rows, "quick", scoring)
        n_points = len(result.cv_results_["params"])
        if scoring == _ABSOLUTE_ERROR:  # the best epsilon depends on the noise, which the outliers hide
            best, grid = clone(self.estimator).set_params(**params), {"epsilon": list(_EPSILONS)}
            params |= self._tune(best, sampled_rows, grid, scoring)[0]
            n_points += len(_EPSILONS)
            details += ", by the mean absolute error, since there are outliers"
        short_params = {name.rpartition("__")[2]: value for name, value in params.items()}
        params_text = ", ".join(
            f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in short_params.items()
        )
        params_text += ", balanced class weights" if self.weighed else ""
        return (
            params,
            f"{type(self.estimator.estimator).__name__}, {params_text}: chosen from {n_points} grid points{details}; "
            f"{result.choice_}",
        )

    def _tune(self, estimator: Tabular, rows: Indices, grid: Any, scoring: Any) -> tuple[dict[str, Any], TuningResult]:
        """Search a grid by cross-validation on `rows`; return the best parameters and the result of the search."""
        y = self.y[rows]
        result = tune(
            estimator,
            self.frame.rows(rows),
            y,
            grid=grid,
            cv=self._folds(y),
            scoring=scoring,
            refit=False,
            verbose=self.verbose,
        )
        if result.interrupted_:
            raise KeyboardInterrupt
        if result.best_params_ is None:  # tune has warned of the reason
            raise ValueError("no parameters could be fitted on every fold of these rows; the warning above says why")
        return result.best_params_, result

    def _has_outliers(self, rows: Indices) -> bool:
        """Return whether held-out errors of the default machine on `rows` are more than 20 times their median."""
        errors = np.empty(len(rows))
        for train, test in self._folds(self.y[rows]).split(rows):
            answers = self._fit(rows[train], {}).predict(self.frame.rows(rows[test]))
            errors[test] = np.abs(self.y[rows[test]] - answers)
        return bool(flag_large_errors(errors).any())

    def _draw_rows(self, rows: Indices, count: int) -> Indices:
        stratify = None if self.is_regression else self.y[rows]
        try:
            return np.sort(train_test_split(rows, train_size=count, stratify=stratify, random_state=self.seed)[0])
        except ValueError:  # a class has too few rows for a stratified split
            return np.sort(np.random.default_rng(self.seed).permutation(rows)[:count])

    def _fit(self, rows: Indices, params: dict[str, Any]) -> Tabular:
        model: Tabular = clone(self.estimator).set_params(**params)
        return model.fit(self.frame.rows(rows), self.y[rows])

    def predict_held_out(self) -> tuple[HeldOut, Search | None]:
        """Predict rows that neither training nor the search has seen; return also a search that served all rows."""
        n = len(self.y)
        if n <= _MAX_NESTED_ROWS:
            splits = list(self._folds(self.y).split(np.zeros(n), self.y))
            method = f"nested cross-validation: {len(splits)} folds, each held out of its search and training"
        else:
            stratify = None if self.is_regression else self.y
            splits = [train_test_split(np.arange(n), test_size=0.25, stratify=stratify, random_state=self.seed)]
            held_out = len(splits[0][1])
            method = f"a quarter of the rows, {held_out:,}, held out of search and training (seed {self.seed})"
        reporter = Reporter(self.verbose)
        models, answers, search = [], [], None
        for k, (train, test) in enumerate(splits):
            reporter.report(f"fold {k + 1} of {len(splits)}", k / len(splits))
            search = self.search(train)
            models.append(self._fit(train, search[0]))
            answers.append(models[-1].predict(self.frame.rows(test)))
        rows = np.concatenate([test for _, test in splits])
        order = np.argsort(rows) if len(splits) > 1 else np.arange(len(rows))
        rows = rows[order]
        fold = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])[order]
        trained_on = [train for train, _ in splits]
        held_out_predictions = HeldOut(
            rows, self.y[rows], np.concatenate(answers)[order], fold, models, trained_on, method
        )
        return held_out_predictions, search if len(splits) == 1 else None

    def find_outliers(self, model: CalibratedRegressor) -> Outliers:
        """Find rows whose targets both the final model and the models that did not train on them miss by far."""
        encoded_rows = model.estimator_.encode(self.frame)
        return Outliers.find(encoded_rows, self.y, model.residuals_, np.abs(self.y - model.predict(self.frame)))

    def figures(self, held_out: HeldOut, unit: str, outliers: Outliers | None) -> ClassFigures | NumberFigures:
        """Scores of the held-out predictions."""
        if outliers is not None:
            is_outlying = np.isin(held_out.rows, outliers.rows)
            return NumberFigures(held_out.truth, held_out.answers, held_out.medians(self.y), unit, is_outlying)
        return ClassFigures(held_out.truth, held_out.answers, np.unique(self.y), self.weighed)

    def train(self, params: dict[str, Any]) -> Any:
        """Fit the final model to all rows and calibrate its probabilities or intervals."""
        model, folds = clone(self.estimator).set_params(**params), self._folds(self.y)
        if self.is_regression:
            calibrated: Any = CalibratedRegressor(model, cv=folds)
        else:
            calibrated = CalibratedClassifier(model, cv=folds, decides="machine")
        calibrated.fit(self.frame, self.y)
        return calibrated.without_guarantee("its parameters were chosen by a search over all rows")
