"""Estimators as plain JSON, and back: mercer's own, and those of scikit-learn that stand around them.

    {"$": "estimator", "class": "SVC", "state": {"params": ..., "fitted": ...}, "arrays": ...}    mercer's, fitted
    {"$": "estimator", "class": "PCA", "params": {...}, "fitted": {...}}                          scikit-learn's

A class is looked up by name in `mercer.estimators` and in the table of mercer.files.scikit_table, and nowhere else.
What is saved is checked as what is loaded will be, so that no file is written that could not be read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

import sklearn

from mercer import estimators, unsupervised
from mercer.errors import ModelFormatError
from mercer.files.calibrated_state import CALIBRATED, calibrated_class, calibrated_model, calibrated_state
from mercer.files.description import cannot_hold, describe, rebuild
from mercer.files.scikit_kinds import Config, expect
from mercer.files.scikit_table import TABLE, TOLD, Row, class_named
from mercer.files.stored_array import Array
from mercer.files.tabular_state import table_model, table_state
from mercer.files.tuned_state import TUNED, tuned_class, tuned_model, tuned_state
from mercer.fitting.pipeline.kinds import Unsaved
from mercer.fitting.pipeline.machine import Machine
from mercer.fitting.pipeline.state import fitted_names, restored, state_of
from mercer.tables.estimator import Tabular

# What set_output was told, in scikit-learn's name for it.
_OUTPUT: Final = "_sklearn_output_config"
_SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")


def describe_model(model: Any, arrays: MutableMapping[str, Array], where: str = "") -> dict[str, Any]:
    """An estimator as JSON; its arrays go to ``arrays``. A TypeError names the step that cannot be saved, and why."""
    name = type(model).__name__
    where = where or name
    if estimator_class(name) is type(model):
        if not fitted_names(model):  # what a wrapper was given, and fitted copies of
            params = describe(model.get_params(deep=False), arrays, where)
            return {"$": "estimator", "class": name, "params": params}
        header, fitted = state_of(model)
        state, learnt = describe(header, arrays, where), describe(fitted, arrays, where)
        output = {"output": dict(vars(model)[_OUTPUT])} if _OUTPUT in vars(model) else {}
        return {"$": "estimator", "class": name, "state": state, "arrays": learnt, **output}
    if type(model) is Tabular:
        return _describe_tabular(model, arrays, where)
    if name in TUNED and tuned_class(name) is type(model):
        params, learnt = tuned_state(model)
        told = describe(params, arrays, where, _describe_other), describe(learnt, arrays, where, _describe_other)
        return {"$": "estimator", "class": name, "params": told[0], "search": told[1]}
    if name in CALIBRATED and calibrated_class(name) is type(model):
        if "estimator_" not in vars(model):
            params = describe(model.get_params(deep=False), arrays, where, _describe_other)
            return {"$": "estimator", "class": name, "params": params}
        told = describe(calibrated_state(model), arrays, where, _describe_other)
        return {"$": "estimator", "class": name, "calibrated": told}
    if name not in TABLE or class_named(name) is not type(model):
        raise _cannot_save(model, where)
    row, params = TABLE[name], _params_of(model)
    learnt = {key: value for key, value in vars(model).items() if key not in params}
    for key in learnt.keys() - row.fitted.keys():
        raise TypeError(
            f"{where}.{key} is no attribute of {name} that this mercer knows (scikit-learn {sklearn.__version__}), and "
            "a .mercer file holds no others; use pickle or joblib"
        )
    if "memory" in params:
        params["memory"] = None  # a folder on this computer, of use only for another fit
    try:
        _check(model, row, learnt.keys())
        plain = {
            part: one for key, value in learnt.items() for part, one in row.fitted[key].to_plain(key, value).items()
        }
    except ModelFormatError as error:
        raise TypeError(f"{where} ({name}) cannot be saved as a .mercer file: {error}; use pickle or joblib") from None
    told = describe(params, arrays, where, _describe_other)
    return {"$": "estimator", "class": name, "params": told, "fitted": describe(plain, arrays, where, _describe_other)}


def _describe_tabular(model: Tabular, arrays: MutableMapping[str, Array], where: str) -> dict[str, Any]:
    told: dict[str, Any] = {"$": "estimator", "class": "Tabular"}
    if not fitted_names(model):
        params = model.get_params(deep=False)
        return told | {"params": describe(params, arrays, where, _describe_other)}
    inner = describe_model(model.estimator_, arrays, f"{where}.estimator_")
    return told | {"estimator": inner, "table": describe(table_state(model), arrays, where)}


def _rebuild_tabular(description: dict[str, Any], arrays: Mapping[str, Array], where: str) -> Tabular:
    if "params" in description:
        return Tabular(**rebuild(description["params"], arrays, where, rebuild_model))
    inner = rebuild_model(description["estimator"], arrays, where)
    return table_model(rebuild(description["table"], arrays, where), inner)


def _describe_other(value: Any, arrays: MutableMapping[str, Array], where: str) -> dict[str, Any]:
    if hasattr(value, "get_params") or type(value).__name__ in TABLE:
        return describe_model(value, arrays, where)
    raise cannot_hold(value, where)


def _cannot_save(model: Any, where: str) -> TypeError:
    name = type(model).__name__
    step = "it" if where == name else where
    if name in _SEARCHES:
        return TypeError(f"{step} is a {name}, which a .mercer file cannot hold; save its best_estimator_")
    return TypeError(
        f"{step} is a {name}, which a .mercer file cannot hold: its classes are mercer's estimators, {TOLD}; use "
        "pickle or joblib, and load such files only from people you trust"
    )


def rebuild_model(description: Any, arrays: Mapping[str, Array], where: str = "model") -> Any:
    """The inverse of `describe_model`; ModelFormatError for what no fit could have left."""
    if not isinstance(description, dict) or not isinstance(description.get("class"), str):
        raise ModelFormatError("the header names no estimator")
    name = description["class"]
    found = estimator_class(name)
    if found is not None:
        if "params" in description:
            return found(**rebuild(description["params"], arrays, f"{where}.{name}"))
        header = rebuild(description["state"], arrays, f"{name}.state")
        fitted = rebuild(description["arrays"], arrays, f"{name}.arrays")
        model = restored(found, header, fitted)
        if "output" in description:
            Config().check("output", description["output"], model)
            setattr(model, _OUTPUT, description["output"])
        return model
    if name == "Tabular":
        return _rebuild_tabular(description, arrays, where)
    if name in TUNED:
        parts = [rebuild(description[part], arrays, f"{where}.{name}", rebuild_model) for part in ("params", "search")]
        return tuned_model(name, *parts)
    if name in CALIBRATED:
        if "params" in description:
            return calibrated_class(name)(**rebuild(description["params"], arrays, where, rebuild_model))
        return calibrated_model(name, rebuild(description["calibrated"], arrays, f"{where}.{name}", rebuild_model))
    if name not in TABLE:
        raise ModelFormatError(f"{name!r:.60} is not an estimator of this mercer")
    found = class_named(name)
    if found is None:
        raise ModelFormatError(f"scikit-learn {sklearn.__version__} has no {name}")
    params = rebuild(description["params"], arrays, f"{where}.{name}", rebuild_model)
    learnt = rebuild(description["fitted"], arrays, f"{where}.{name}", rebuild_model)
    expect(isinstance(params, dict) and isinstance(learnt, dict), f"{name} has parameters and attributes by name")
    return _restored(found, TABLE[name], params, learnt)


def _restored(cls: Any, row: Row, params: dict[str, Any], learnt: dict[str, Any]) -> Any:
    name = cls.__name__
    expect(params.get("memory") is None, f"{name}: memory must be None: a file of a model may not name a folder")
    if type(params.get("n_jobs")) is int and params["n_jobs"] > (os.cpu_count() or 1):
        params["n_jobs"] = -1  # more processes than this computer has processors are of no use to anybody
    try:
        model = cls(**params)
    except TypeError as error:
        raise ModelFormatError(f"scikit-learn {sklearn.__version__}: {error}") from None
    known = {key: part for key, kind in row.fitted.items() for part in kind.keys(key)}
    for key in learnt.keys() - set(known.values()):
        raise ModelFormatError(f"{key!r:.60} is not an attribute that a fitted {name} has")
    for key, part in known.items():
        if part in learnt:
            setattr(model, key, row.fitted[key].from_plain(key, {part: learnt[part]}, model))
    try:
        _check(model, row, learnt.keys())
        if learnt.keys() - {"_sklearn_output_config"}:
            row.finish(model)
    except ModelFormatError as error:
        raise ModelFormatError(f"{name}: {error}") from None
    return model


def _check(model: Any, row: Row, learnt: Any) -> None:
    """Raise ModelFormatError if parameters or attributes are none that a fit could have left."""
    if hasattr(model, "_parameter_constraints"):
        model._validate_params()
    row.params(model)
    if not learnt - {"_sklearn_output_config"}:
        return  # not fitted, or nothing to learn
    version = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
    for key, kind in row.fitted.items():
        if key in vars(model):
            if not isinstance(kind, Unsaved):
                kind.check(key, getattr(model, key), model)
        elif row.needs(key, version):
            raise ModelFormatError(f"it has no {key}, which scikit-learn {sklearn.__version__} needs")
    row.whole(model)


def _params_of(model: Any) -> dict[str, Any]:
    """The parameters of an estimator, or of a plain object, all of whose attributes are."""
    return dict(model.get_params(deep=False)) if hasattr(model, "get_params") else dict(vars(model))


def estimator_class(name: str) -> Any:
    """The class of mercer's that has this name, or None."""
    room = next((room for room in (estimators, unsupervised) if name in room.__all__), None)
    found = getattr(room, name, None)
    return found if isinstance(found, type) and issubclass(found, Machine) else None


def machines_in(model: Any) -> list[Any]:
    """The fitted estimators of mercer in a model, in the order in which they stand."""
    if estimator_class(type(model).__name__) is type(model):
        return [model] if fitted_names(model) else []
    if type(model) is Tabular:
        return machines_in(getattr(model, "estimator_", None))
    if type(model).__name__ in TUNED:
        return machines_in(vars(model).get("best_estimator_"))
    if type(model).__name__ in CALIBRATED:
        return machines_in(vars(model).get("estimator_"))
    if isinstance(model, (list, tuple)):
        return [machine for item in model for machine in machines_in(item)]
    if type(model).__name__ not in TABLE and type(model).__name__ != "_CalibratedClassifier":
        return []
    return [machine for value in vars(model).values() for machine in machines_in(value)]
