"""Writing of fitted models as ``.mercer`` files, and reading them back.

A file holds an estimator of mercer, also inside scikit-learn's pipelines, transformers and wrappers, since a model of
standardised data is of little use without the scaling. In its JSON they are

    {"$": "estimator", "class": "SVC", "state": {"params": ..., "fitted": ...}, "arrays": ...}    a fitted machine
    {"$": "estimator", "class": "PCA", "params": {...}, "fitted": {...}}                          any other estimator

The attributes of a class are defined elsewhere: mercer's classes declare them (fitting/pipeline/state.py), and those of
scikit-learn have a table of the same form (files/scikit/table.py). A class is looked up by name only among the public
names of `mercer` and `mercer.features`, in that table, and among the classes that the caller of `load` passes. A model
is checked on saving as it is on loading, so that no file is written that could not be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import sklearn
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer.estimators.fitting.pipeline.class_spec import EVERY, OUTPUT, ClassSpec, DeclaresState, state_of
from mercer.estimators.fitting.pipeline.machine import Machine
from mercer.estimators.fitting.pipeline.state import expect
from mercer.files.mercer_file.budget import Budget
from mercer.files.mercer_file.container import Array, read_container, write_container
from mercer.files.mercer_file.description import Arrays, JsonObject, describe, rebuild, unsupported_value
from mercer.files.scikit.table import SCIKIT
from mercer.inspection import features
from mercer.inspection.features.feature_map import FeatureMap, n_columns_made
from mercer.runtime.errors import ModelFormatError, ModelVersionWarning, warn_user
from mercer.runtime.refitting import fitted_names

Fitted = Any  # a fitted estimator of mercer or scikit-learn
_PER_ESTIMATOR: Final = 4096  # bytes of memory for an estimator object with its parameters
_SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
# Classes that an error message lists: those that users can import.
_SCIKIT_NAMES: Final = ", ".join(name for name in SCIKIT if name[0].isupper())


def write_mercer_file(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator of mercer, or a pipeline of scikit-learn around it, as a ``.mercer`` file."""
    check_is_fitted(model)
    arrays: dict[str, Array] = {}
    writer = _ModelWriter()
    description = writer.model(model, arrays, type(model).__name__)
    if not machines_in(model):
        raise TypeError(
            f"{type(model).__name__} contains no estimator of mercer that predicts, clusters or computes components, "
            "as a .mercer file must; save it in a Pipeline with one, or alone with pickle or joblib"
        )
    content = {"mercer": mercer.__version__, "scikit-learn": sklearn.__version__, "model": description}
    # The reader makes arrays read-only; views keep the model's own arrays writable.
    views = {name: array.view() for name, array in arrays.items()}

    def check(content_read: dict[str, Any], budget: Budget) -> None:
        try:
            _ModelReader(writer.classes).model(content_read["model"], views, "model", budget)
        except _REBUILD_ERRORS as error:
            raise TypeError(
                f"{type(model).__name__} cannot be saved as a .mercer file, since it could not be loaded: "
                f"{_reason(error)}; use pickle or joblib"
            ) from error

    write_container(path, content, arrays, check)


def read_mercer_file(path: str | os.PathLike[str], *, mmap: bool = False, classes: Iterable[type] = ()) -> Any:
    """Read a file that `write_mercer_file` wrote; see `mercer.load` for the errors."""
    budget, reader = Budget(), _ModelReader(_classes_by_name(classes))
    try:
        content, arrays = read_container(path, mmap, budget)
    except MemoryError:
        raise ModelFormatError(too_large_message(path)) from None
    try:
        model = reader.model(content.get("model"), arrays, "model", budget)
        if not machines_in(model):
            raise ModelFormatError("it contains no fitted estimator of mercer")
    except MemoryError:
        raise ModelFormatError(too_large_message(path)) from None
    except _REBUILD_ERRORS as error:
        # The checksums are right, so the header was forged, or another version has other attributes.
        raise ModelFormatError(
            f"{os.fspath(path)!r}, written by mercer {content.get('mercer')!r:.40} with scikit-learn "
            f"{content.get('scikit-learn')!r:.40}, read by {mercer.__version__} with {sklearn.__version__}: "
            f"{_reason(error)}"
        ) from error
    if reader.met_scikit:
        _warn_other_version(content.get("scikit-learn"), os.fspath(path))
    return model


# Errors that rebuilding a model raises if the content is not a valid model.
_REBUILD_ERRORS: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def _reason(error: BaseException) -> str:
    """Return an error as one line, with its type unless it is a ModelFormatError."""
    text = str(error) if isinstance(error, ModelFormatError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:600]


def too_large_message(path: str | os.PathLike[str]) -> str:
    """Return the message for a file that needs more memory than the host has."""
    return (
        f"{os.fspath(path)!r} of {os.path.getsize(path)} bytes needs more memory than this computer has left; free "
        "some, or map the arrays of a .mercer file into memory with mercer.load(path, mmap=True)"
    )


def _warn_other_version(version: Any, path: str | bytes) -> None:
    """Warn if another minor version of scikit-learn wrote the file."""
    if isinstance(version, str) and version.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        warn_user(
            f"{path!r} was written with scikit-learn {version:.40}, but this is {sklearn.__version__}: the parts of "
            "the model from scikit-learn may predict differently; compare a few predictions, then save the model "
            "again",
            ModelVersionWarning,
        )


def describe_model(model: Fitted, arrays: Arrays) -> JsonObject:
    """Return an estimator as JSON, with its arrays in ``arrays``; a TypeError names the step that cannot be saved."""
    return _ModelWriter().model(model, arrays, type(model).__name__)


@dataclass
class _ModelWriter:
    """Writer of model descriptions; `classes` collects the classes from neither mercer nor scikit-learn, by name."""

    classes: dict[str, type] = field(default_factory=dict)

    def model(self, model: Fitted, arrays: Arrays, where: str) -> JsonObject:
        """Describe an estimator."""
        name, spec = type(model).__name__, self._spec(model, where)
        if isinstance(model, Machine) and not fitted_names(model):  # a wrapper fits copies of its unfitted estimator
            params = describe(spec.parameters(model), arrays, where, None if _is_flat(type(model), spec) else self.part)
            return {"$": "estimator", "class": name, "params": params}
        if _is_flat(type(model), spec):
            header, fitted = state_of(model)
            state, learnt = describe(header, arrays, where), describe(fitted, arrays, where)
            output = {"output": dict(vars(model)[OUTPUT])} if OUTPUT in vars(model) else {}
            return {"$": "estimator", "class": name, "state": state, "arrays": learnt, **output}
        params = spec.parameters(model)
        names = fitted_names(model) if isinstance(model, Machine) else [key for key in vars(model) if key not in params]
        try:
            spec.check_parameters(model)
            if set(names) - {OUTPUT}:
                spec.check(model)
            entries = spec.to_plain(model, names, where)
        except ModelFormatError as error:
            raise TypeError(
                f"{where} ({name}) cannot be saved as a .mercer file: {error}; use pickle or joblib"
            ) from None
        described = describe(params, arrays, where, self.part)
        return {
            "$": "estimator",
            "class": name,
            "params": described,
            "fitted": describe(entries, arrays, where, self.part),
        }

    def part(self, value: Any, arrays: Arrays, where: str) -> JsonObject:
        """Describe a model inside another; raise TypeError for any other value."""
        if hasattr(value, "get_params") or type(value).__name__ in SCIKIT:
            return self.model(value, arrays, where)
        raise unsupported_value(value, where)

    def _spec(self, model: Fitted, where: str) -> ClassSpec:
        """Return the declaration of a model's class; raise TypeError if a file cannot hold the class."""
        cls = type(model)
        name = cls.__name__
        if mercer_class(name) is cls:
            return ClassSpec.of(cls)
        if name in SCIKIT and _scikit_class(name) is cls:
            return SCIKIT[name].spec
        if declares_itself(cls) and _is_unused_name(name) and self.classes.setdefault(name, cls) is cls:
            return ClassSpec.of(cls)
        raise _cannot_save(model, where)


def _is_flat(cls: type, spec: ClassSpec) -> bool:
    """Return True for a machine without nested estimators, whose state and arrays the file stores separately."""
    return issubclass(cls, Machine) and not spec.holds_estimators


def mercer_class(name: str) -> type[DeclaresState] | None:
    """Return the mercer class with this name if it declares its state, else None."""
    for package in (mercer, features):
        if name in package.__all__:
            cls = getattr(package, name)
            return cls if isinstance(cls, type) and issubclass(cls, DeclaresState) else None
    return None


def declares_itself(cls: type) -> bool:
    """Return True if a class itself declares its state; a subclass without a declaration may have any attributes."""
    return issubclass(cls, DeclaresState) and "_FITTED" in vars(cls)


def _is_unused_name(name: str) -> bool:
    """Return True if neither mercer nor scikit-learn has a class of this name."""
    return mercer_class(name) is None and name not in SCIKIT


def _classes_by_name(classes: Iterable[type]) -> dict[str, type]:
    """Return the classes that the caller of `load` allows, by name; raise TypeError for one without a declaration."""
    by_name: dict[str, type] = {}
    for cls in classes:
        declares = isinstance(cls, type) and declares_itself(cls) and _is_unused_name(cls.__name__)
        if not declares or by_name.setdefault(cls.__name__, cls) is not cls:
            raise TypeError(
                f"classes contains {cls!r:.80}, but must contain classes that derive from DeclaresState of "
                "mercer.estimators.fitting.pipeline.class_spec and define _FITTED, with names that are unique among "
                "them and differ from those of mercer and scikit-learn"
            )
    return by_name


def _scikit_class(name: str) -> Any:
    """Import and return a class of scikit-learn; None if this version does not have it."""
    return getattr(import_module(SCIKIT[name].module), name, None)


def _cannot_save(model: Fitted, where: str) -> TypeError:
    """Return the error for a model whose class a .mercer file cannot hold."""
    name = type(model).__name__
    step = "it" if where == name else where
    if name in _SEARCHES:
        return TypeError(f"{step} is a {name}, which a .mercer file cannot hold; save its best_estimator_")
    return TypeError(
        f"{step} is a {name}, which a .mercer file cannot hold: it can hold mercer's estimators, {_SCIKIT_NAMES}, and "
        "classes that define _FITTED; use pickle or joblib, and load such files only from people you trust"
    )


def rebuild_model(
    description: Any,
    arrays: Mapping[str, Array],
    where: str = "model",
    budget: Budget | None = None,
    classes: Iterable[type] = (),
) -> Any:
    """Return the model that `describe_model` described; raise ModelFormatError for a state that no fit can produce."""
    reader = _ModelReader(_classes_by_name(classes))
    return reader.model(description, arrays, where, Budget() if budget is None else budget)


@dataclass
class _ModelReader:
    """Reader of model descriptions; `classes` are allowed besides those of mercer and scikit-learn."""

    classes: Mapping[str, type] = field(default_factory=dict)
    met_scikit: bool = False  # True once a class of scikit-learn was read

    def model(self, description: Any, arrays: Mapping[str, Array], where: str, budget: Budget) -> Any:
        """Return the model of a description."""
        budget.take(_PER_ESTIMATOR, where)
        if not isinstance(description, dict) or not isinstance(description.get("class"), str):
            raise ModelFormatError("the header names no estimator")
        name = description["class"]
        cls: Any = mercer_class(name) or self.classes.get(name)
        if cls is not None:
            spec = ClassSpec.of(cls)
        elif name in SCIKIT:
            cls, spec, self.met_scikit = _scikit_class(name), SCIKIT[name].spec, True
            if cls is None:
                raise ModelFormatError(f"scikit-learn {sklearn.__version__} has no {name}")
        else:
            raise ModelFormatError(
                f"{name!r:.60} is not an estimator of this mercer; if it is your own, pass its class: "
                "mercer.load(path, classes=[…])"
            )
        if _is_flat(cls, spec):
            return self._machine(cls, spec, description, arrays, where, budget)
        location = f"{where[-200:]}.{name}"
        params = rebuild(description["params"], arrays, location, self.model, budget)
        is_unfitted = issubclass(cls, Machine) and "fitted" not in description
        learnt = {} if is_unfitted else rebuild(description["fitted"], arrays, location, self.model, budget)
        expect(
            isinstance(params, dict) and isinstance(learnt, dict),
            f"{name}: parameters and attributes must be dictionaries",
        )
        if type(params.get("n_jobs")) is int and params["n_jobs"] > (os.cpu_count() or 1):
            params["n_jobs"] = -1  # the host has fewer processors
        model = (
            spec.restore(cls, params, learnt)
            if learnt.keys() - {OUTPUT}
            else _unfitted_model(spec, cls, params, learnt)
        )
        # No arrays in the file back the columns of a feature map: many such maps together could make a huge row.
        columns = n_columns_made(model) if isinstance(model, FeatureMap) else vars(model).get("n_output_features_", 0)
        budget.take(8 * int(columns), f"a row of the columns that {name} computes")
        return model

    def _machine(
        self,
        cls: type,
        spec: ClassSpec,
        description: JsonObject,
        arrays: Mapping[str, Array],
        where: str,
        budget: Budget,
    ) -> Any:
        """Return the machine, without nested estimators, of a description."""
        name = cls.__name__
        if "params" in description:
            return spec.unfitted(cls, rebuild(description["params"], arrays, f"{where}.{name}", None, budget))
        header = rebuild(description["state"], arrays, f"{name}.state", None, budget)
        fitted = rebuild(description["arrays"], arrays, f"{name}.arrays", None, budget)
        model = spec.restore(cls, header["params"], {**header["fitted"], **fitted})
        if "output" in description:
            EVERY[OUTPUT].check("output", description["output"], model)
            setattr(model, OUTPUT, description["output"])
        return model


def _unfitted_model(spec: ClassSpec, cls: type, params: Any, attributes: Mapping[str, Any]) -> Fitted:
    """Return an unfitted model with its parameters; its only attribute can be the setting of `set_output`."""
    model = spec.unfitted(cls, params)
    for name, value in attributes.items():
        EVERY[name].check(name, value, model)
        setattr(model, name, value)
    return model


def machines_in(model: Fitted) -> list[Any]:
    """Return the fitted machines of mercer in a model, in their order."""
    if isinstance(model, (list, tuple)):
        return [machine for item in model for machine in machines_in(item)]
    if isinstance(model, Machine):
        return [model] if fitted_names(model) else []
    if isinstance(model, DeclaresState):
        specs = ClassSpec.of(type(model)).attributes
        inner_models = [vars(model).get(name) for name, spec in specs.items() if spec.holds_estimators]
        return [machine for value in inner_models for machine in machines_in(value)]
    name = type(model).__name__
    if name not in SCIKIT and name != "_CalibratedClassifier":
        return []
    return [machine for value in vars(model).values() for machine in machines_in(value)]
