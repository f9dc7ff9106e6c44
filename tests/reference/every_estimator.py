"""Fitted models of every public estimator, found by inspection: a new one cannot be forgotten."""

import importlib
import inspect
import pkgutil

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_outlier_detector
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer

_rng = np.random.default_rng(3)
# As numbers that float32 and LIBSVM's eight digits hold exactly.
X = np.round(_rng.normal(size=(42, 3)) * 64) / 64
ROWS = np.round(_rng.normal(size=(60, 3)) * 80) / 64
NUMBERS = X[:, 0] - np.sin(2 * X[:, 1]) + 0.1 * _rng.normal(size=42)
CLASSES = {k: np.digitize(NUMBERS, np.quantile(NUMBERS, np.arange(1, k) / k)) for k in (2, 3, 4)}
SCHEMES = ("ovo", "ovr", "crammer_singer", "weston_watkins")


def estimators():
    """Every public estimator by its name: what the `__all__` of any module lists."""
    modules = [mercer]
    for found in pkgutil.walk_packages(mercer.__path__, "mercer."):
        # Engines need their own libraries, and have no estimators.
        if not found.name.endswith("__main__") and not found.name.startswith("mercer.places."):
            modules.append(importlib.import_module(found.name))
    listed = [getattr(module, name) for module in modules for name in getattr(module, "__all__", ())]
    return {one.__name__: one for one in listed if inspect.isclass(one) and issubclass(one, BaseEstimator)}


def _made(cls, **given):
    """An estimator with parameters that make it small and the same every time, of those that it has."""
    names = inspect.signature(cls.__init__).parameters
    known = {"random_state": 0, "tol": 1e-9, "cv": 3, "n_components": 2, "n_clusters": 2, "n_landmarks": 20, **given}
    if "estimator" in names and names["estimator"].default is inspect.Parameter.empty:
        known["estimator"] = mercer.SVR() if "Regressor" in cls.__name__ else mercer.SVC()
    return cls(**{name: value for name, value in known.items() if name in names})


def fitted(name):
    """Fitted models of one estimator, by what they are: of two classes and more, by every scheme, of numbers."""
    cls = estimators()[name]
    plain = _made(cls)
    if name == "KernelCCA":
        return {name: plain.fit(X, np.c_[NUMBERS, X[:, 1] ** 2])}
    if not is_classifier(plain):
        y = None if is_outlier_detector(plain) else NUMBERS
        return {name: plain.fit(X) if y is None else plain.fit(X, y)}
    parameter = "multiclass" if "multiclass" in plain.get_params(deep=False) else None
    schemes = SCHEMES
    if parameter is None:
        schemes = ("",)
    elif name == "LinearSVC":
        schemes = ("ovr", "crammer-singer")
    elif name == "MKLClassifier":
        schemes = ("ovo", "ovr")
    models = {}
    for k, y in CLASSES.items():
        for scheme in schemes:
            given = {parameter: scheme} if parameter else {}
            if name == "LinearSVC" and scheme != "ovr":
                given["bias"] = "regularized"
            model = _made(cls, **given)
            models[f"{name}, {k} classes {scheme}".strip()] = model.fit(X, y)
    return models


def wrapped():
    """Models around a machine of mercer's: a Pipeline, a search, a table."""
    y = CLASSES[3]
    return {
        "Pipeline": make_pipeline(StandardScaler(), mercer.SVC(tol=1e-9)).fit(X, y),
        "Pipeline, numbers": make_pipeline(StandardScaler(), mercer.SVR(tol=1e-9)).fit(X, NUMBERS),
        "GridSearchCV": GridSearchCV(mercer.SVC(tol=1e-9), {"C": [1.0, 2.0]}, cv=2).fit(X, y),
        "Tabular, numbers": mercer.Tabular(mercer.SVR(tol=1e-9)).fit(X, NUMBERS),
    }


def values(model, rows):
    """The public answers that a file is to give: a column for each output."""
    if hasattr(model, "classes_") or is_outlier_detector(model):
        machine = mercer.unwrap(model).machine
        by_pair = hasattr(machine, "decision_function_shape") and getattr(machine, "multiclass", "ovo") == "ovo"
        if by_pair:
            before, machine.decision_function_shape = machine.decision_function_shape, "ovo"
        try:
            answers = model.decision_function(rows)
        finally:
            if by_pair:
                machine.decision_function_shape = before
    else:
        answers = model.predict(rows)
    return np.asarray(answers, dtype=np.float64).reshape(len(rows), -1)
