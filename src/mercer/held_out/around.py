"""Machines inside of pipelines, tables and frozen models, which see what the steps before them make of the samples."""

from __future__ import annotations

from copy import copy
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from mercer.arrays import Floats
from mercer.data import samples


def machine_of(model: Any) -> Any:
    """The machine that decides; the model itself where nothing is around it."""
    return _steps_of(model)[-1][1]


def decision_values(model: Any, X: Any) -> Floats:
    """The machine's decision values, a column for each plane, on what the steps before it make of X."""
    *before, (_, machine) = _steps_of(model)
    for outer, _ in before:
        if isinstance(outer, Pipeline):
            X = outer[:-1].transform(X) if len(outer.steps) > 1 else X
        elif not isinstance(outer, FrozenEstimator):
            X = outer.encode(X)
    values: Floats = machine._decision(X)
    return values


def without_names(owner: Any, X: Any) -> tuple[Any, Any]:
    """The fitted model inside of `owner`, and X, both without names of features: those are the owner's to compare.

    So one warning, about the owner, says that names are missing, and none if they were taken from it (as shap does).
    """
    model = owner.estimator_
    if not hasattr(model, "feature_names_in_") or machine_of(model) is not model:
        return model, X
    X, model = samples.vectors(owner, X, reset=False), copy(model)
    del model.feature_names_in_
    return model, X


def weight_option(model: Any, weight: Any) -> dict[str, Any]:
    """The keyword of `fit` that gives the weights to the last step."""
    if weight is None:
        return {}
    path = ["sample_weight"]
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        path.insert(-1, name)
    return {"__".join(path): weight}


def _steps_of(model: Any) -> list[tuple[Any, Any]]:
    """What is around the machine, from the outside, each with what it holds; the last is the machine, twice."""
    found: list[tuple[Any, Any]] = []
    while True:
        if isinstance(model, Pipeline):
            inner = model.steps[-1][1]
        elif isinstance(model, FrozenEstimator):
            inner = model.estimator
        elif hasattr(model, "encode"):  # a table's columns
            inner = getattr(model, "estimator_", model.estimator)
        else:
            return [*found, (model, model)]
        found.append((model, inner))
        model = inner
