"""Machines without a fold, and what they say of its samples; also those inside of pipelines, tables and the like.

What is around a machine sees the samples first, and the machine what that makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from mercer.estimators.fitting.pipeline.state import chosen_of
from mercer.model_selection.held_out.folds import Splits
from mercer.model_selection.held_out.from_solution import values_from_solution
from mercer.runtime.progress import Reporter
from mercer.samples import checks as samples
from mercer.samples.arrays import Floats, Indices
from mercer.samples.engine import on_host
from mercer.tables.frame import Frame, part_of
from mercer.tables.unwrap import ask


def machine_of(model: Any) -> Any:
    """The machine that decides; the model itself where nothing is around it."""
    return ask(model).machine


def decision_values(model: Any, X: Any) -> Floats:
    """The machine's decision values, a column for each plane, on what the steps before it make of X."""
    asked = ask(model)
    values: Floats = asked.machine._decision(asked.rows(X))
    return values


def without_names(owner: Any, X: Any) -> tuple[Any, Any]:
    """The fitted model inside of `owner`, and X, both without names of features: those are the owner's to compare.

    So one warning, about the owner, says that names are missing, and none if they were taken from it (as shap does).
    """
    asked = ask(owner.estimator_)
    model = owner.estimator_ if asked.steps else asked.machine
    if asked.steps or not hasattr(model, "feature_names_in_"):
        return model, X
    X, model = samples.vectors(owner, X, reset=False), copy(model)
    del model.feature_names_in_
    return model, X


def weight_option(model: Any, weight: Any) -> dict[str, Any]:
    """The keyword of `fit` that gives the weights to the last step."""
    if weight is None:
        return {}
    path = ["sample_weight"]
    while isinstance(model, Pipeline | BaseSearchCV):
        if isinstance(model, BaseSearchCV):  # which hands the keyword on to what it searches for
            model = model.estimator
            continue
        name, model = model.steps[-1]
        path.insert(-1, name)
    return {"__".join(path): weight}


def fit_counted(model: Any, X: Any, y: Any, weight: Any) -> None:
    """Fit a model to the samples that have weight.

    scikit-learn's Pipelines and searches give weights to the last step alone: their other steps are not shown samples
    of weight 0. The columns of a kernel matrix stay as they are.
    """
    if weight is not None and isinstance(model, Pipeline | BaseSearchCV) and not get_tags(model).input_tags.pairwise:
        weight = samples.weights(on_host(weight), _num_samples(y))
        rows = np.flatnonzero(weight)
        X, y, weight = _safe_indexing(X, rows), _safe_indexing(y, rows), weight[rows]
    model.fit(X, y, **weight_option(model, weight))


def as_fitted(model: Any) -> Any:
    """Return a copy that stays as it is when the model is fitted again; both share arrays."""
    kept = copy(model)
    if isinstance(model, Pipeline):
        kept.steps = [(name, step if isinstance(step, str) else as_fitted(step)) for name, step in model.steps]
    elif isinstance(model, FrozenEstimator):
        kept.estimator = as_fitted(model.estimator)
    return kept


def searches_in(model: Any) -> list[str]:
    """The names of the searches in a fitted model, from the outside."""
    return [type(layer).__name__ for layer in ask(model).layers if chosen_of(layer) is not layer]


class FoldLines:
    """Told of every fold; prints only if it is asked to."""

    def __init__(self, verbose: bool, n_folds: int) -> None:
        self._reporter, self._n, self._done = Reporter(verbose), n_folds, 0

    def done(self, n_folds: int = 1) -> None:
        """`n_folds` more folds are done."""
        self._done += n_folds
        words = f"{self._done} of {self._n} folds of the calibration"
        if self._done < self._n:
            self._reporter.tell(words, self._done / self._n)
        else:
            self._reporter.close(words)


def out_of_fold(
    machine: Any, X: Any, y: Any, weight: Floats | None, splits: Splits, done: Callable[[int], None] = lambda n: None
) -> Floats:
    """Decision values, a row for each sample and a column for each plane, by a machine that did not train on it.

    The machine is a fitted one. What it learnt from y is learnt again in every fold; a kernel that was bound to all X
    may be shared. A sample has NaN where it is on neither side of a plane, or in no fold. `done` is told how many more
    folds are done.
    """
    asked = ask(machine)
    # Classes that are balanced have weights from all labels: each fold's are its own.
    if asked.machine is machine and not isinstance(getattr(machine, "class_weight", None), str):
        found = values_from_solution(machine, X, y, weight, splits, done)
        if found is not None:
            return found
    out: Any = None
    for part, test, rest in fold_machines(machine, X, np.asarray(y), weight, splits):
        values = decision_values(part, rest)
        out = np.full((len(y), values.shape[1]), np.nan) if out is None else out
        out[test] = values
        done(1)
    return np.asarray(out)


def _rows(model: Any, X: Any, rows: Indices, train: Indices | None) -> Any:
    return X.rows(rows) if isinstance(X, Frame) else _safe_split(model, X, None, rows, train)[0]


def fold_machines(
    model: Any, X: Any, y: Any, weight: Floats | None, splits: Splits
) -> Iterator[tuple[Any, Indices, Any]]:
    """The model fitted without each fold, with the places and samples that the fold leaves out; y may be None.

    Every fold fits a clone of the whole model to its own rows, so that whatever a fit learns from targets is learnt
    again there: kernel weights, the parameters of a Gaussian process, what a search chose, λ.
    """
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    asked = ask(model)
    kernel = getattr(asked.machine, "kernel_", None)
    X = X if asked.steps else read_samples(asked.machine, X, kernel, reset=False)
    precomputed = kernel is not None and kernel.accepts == "gram"
    for train, test in splits:
        part = clone(model)
        options = weight_option(part, None if weight is None else weight[train])
        if asked.steps:
            seen, rest = _rows(part, X, train, None), _rows(part, X, test, train)
        else:
            columns = train if precomputed else None
            seen, rest = part_of(X, train, columns), part_of(X, test, columns)
        part.fit(seen, None if y is None else y[train], **options)
        yield part, test, rest
