"""Fits of a model without each fold and decision values of held-out samples; a model may wrap its machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _num_samples

from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.estimators.fitting.pipeline.state import best_estimator_of
from mercer.model_selection.held_out.folds import Splits
from mercer.model_selection.held_out.from_solution import values_from_solution
from mercer.runtime.errors import Warned, warn_user
from mercer.runtime.progress import Reporter
from mercer.samples import checks
from mercer.samples.arrays import Floats, Indices
from mercer.samples.engine import on_host
from mercer.tables.frame import Frame, part_of
from mercer.tables.unwrap import unwrap


def machine_of(model: Any) -> Any:
    """Return the machine inside a model; the model itself if nothing is around it."""
    return unwrap(model).machine


def decision_values(model: Any, X: Any) -> Floats:
    """Apply the steps before the machine to X, and return its decision values, a column per decision function."""
    unwrapped = unwrap(model)
    values: Floats = unwrapped.machine._decision(unwrapped.rows(X))
    return values


def without_names(owner: Any, X: Any) -> tuple[Any, Any]:
    """Return the fitted model inside `owner` and X, both without feature names, after the owner has compared the names.

    The model would compare them again, and warn a second time about missing names. If somebody removed the owner's
    names (as shap does), the owner does not warn, and the model should not either.
    """
    unwrapped = unwrap(owner.estimator_)
    model = owner.estimator_ if unwrapped.steps else unwrapped.machine
    if unwrapped.steps or not hasattr(model, "feature_names_in_"):
        return model, X
    X, model = checks.vectors(owner, X, reset=False), copy(model)
    del model.feature_names_in_
    return model, X


def weight_option(model: Any, weight: Any) -> dict[str, Any]:
    """Return the keyword argument of `fit` that passes the weights to the last step."""
    if weight is None:
        return {}
    path = ["sample_weight"]
    while isinstance(model, Pipeline | BaseSearchCV):
        if isinstance(model, BaseSearchCV):  # a search passes the keyword on to its estimator
            model = model.estimator
            continue
        name, model = model.steps[-1]
        path.insert(-1, name)
    return {"__".join(path): weight}


def fit_positive_weights(model: Any, X: Any, y: Any, weight: Any) -> None:
    """Fit a model to the samples with positive weight.

    scikit-learn's Pipelines and searches pass weights to the last step only, so samples of weight 0 are removed before
    the other steps see them. Rows of a kernel matrix are not removed.
    """
    if weight is not None and isinstance(model, Pipeline | BaseSearchCV) and not get_tags(model).input_tags.pairwise:
        weight = checks.weights(on_host(weight), _num_samples(y))
        rows = np.flatnonzero(weight)
        X, y, weight = _safe_indexing(X, rows), _safe_indexing(y, rows), weight[rows]
    model.fit(X, y, **weight_option(model, weight))


def copy_fitted(model: Any) -> Any:
    """Return a copy that does not change when the model is fitted again; it shares the model's arrays."""
    model_copy = copy(model)
    if isinstance(model, Pipeline):
        model_copy.steps = [(name, step if isinstance(step, str) else copy_fitted(step)) for name, step in model.steps]
    elif isinstance(model, FrozenEstimator):
        model_copy.estimator = copy_fitted(model.estimator)
    return model_copy


def search_names(model: Any) -> list[str]:
    """Return the class names of the searches in a fitted model, from the outside in."""
    return [type(layer).__name__ for layer in unwrap(model).layers if best_estimator_of(layer) is not layer]


class FoldProgress:
    """Progress of a calibration over its folds, printed if `verbose`."""

    def __init__(self, verbose: bool, n_folds: int) -> None:
        self._reporter, self._n, self._n_done = Reporter(verbose), n_folds, 0

    def done(self, n_folds: int = 1) -> None:
        """Count `n_folds` more finished folds."""
        self._n_done += n_folds
        line = f"{self._n_done} of {self._n} folds of the calibration"
        if self._n_done < self._n:
            self._reporter.report(line, self._n_done / self._n)
        else:
            self._reporter.close(line)


def out_of_fold(
    machine: Any, X: Any, y: Any, weight: Floats | None, splits: Splits, done: Callable[[int], None] = lambda n: None
) -> Floats:
    """Return held-out decision values of a fitted machine, a row for each sample and a column for each function.

    Whatever the machine learnt from y is learnt again in every fold; a kernel bound to all of X may be shared. A value
    is NaN if the sample belongs to neither class of the decision function, or to no fold. `done` is called with the
    number of finished folds.
    """
    unwrapped = unwrap(machine)
    # Weights of balanced classes come from the labels of each fold.
    if unwrapped.machine is machine and not isinstance(getattr(machine, "class_weight", None), str):
        held_out = values_from_solution(machine, X, y, weight, splits, done)
        if held_out is not None:
            return held_out
    out: Any = None
    for model, test, held_out_samples in fold_machines(machine, X, np.asarray(y), weight, splits):
        values = decision_values(model, held_out_samples)
        out = np.full((len(y), values.shape[1]), np.nan) if out is None else out
        out[test] = values
        done(1)
    return np.asarray(out)


def _select_rows(model: Any, X: Any, rows: Indices, train: Indices | None) -> Any:
    """Return rows of a table or of an array, the latter with the columns `train` if X is a kernel matrix."""
    return X.rows(rows) if isinstance(X, Frame) else _safe_split(model, X, None, rows, train)[0]


def fold_machines(
    model: Any, X: Any, y: Any, weight: Floats | None, splits: Splits
) -> Iterator[tuple[Any, Indices, Any]]:
    """Yield the model fitted without each fold, with the indices and samples of the held-out rows; y may be None.

    Every fold fits a clone of the whole model to its training rows, so that whatever a fit learns from targets is
    learnt again: kernel weights, parameters of a Gaussian process, the choice of a search, λ.
    """
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    unwrapped = unwrap(model)
    kernel = getattr(unwrapped.machine, "kernel_", None)
    X = X if unwrapped.steps else read_samples(unwrapped.machine, X, kernel, reset=False)
    is_precomputed = kernel is not None and kernel.accepts == "gram"
    for train, test in splits:
        fold_model = clone(model)
        options = weight_option(fold_model, None if weight is None else weight[train])
        if unwrapped.steps:
            train_X, test_X = _select_rows(fold_model, X, train, None), _select_rows(fold_model, X, test, train)
        else:
            columns = train if is_precomputed else None
            train_X, test_X = part_of(X, train, columns), part_of(X, test, columns)
        fold_model.fit(train_X, None if y is None else y[train], **options)
        yield fold_model, test, test_X


def issue_warnings(collected: Iterable[Warned]) -> None:
    """Issue the warnings that `collect_warnings` collected in several fits or predictions, each of them once."""
    for message, category in dict.fromkeys(collected):
        warn_user(message, category)
