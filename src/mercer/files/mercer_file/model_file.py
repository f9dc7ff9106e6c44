"""A fitted model as a ``.mercer`` file, and back.

A file holds an estimator of mercer, or what scikit-learn's pipelines, transformers and wrappers make of it: a model of
standardised data is of little use without the numbers it was standardised with. In its JSON they are

    {"$": "estimator", "class": "SVC", "state": {"params": ..., "fitted": ...}, "arrays": ...}    a fitted machine
    {"$": "estimator", "class": "PCA", "params": {...}, "fitted": {...}}                          any other estimator

What the attributes of a class are is not written here: mercer's classes declare it (fitting/pipeline/state.py), and
those of scikit-learn have a table in the same language (files/scikit/table.py). A class is looked up by name among the
public names of `mercer` and `mercer.features`, in that table, and among the classes that the caller of `load` names,
and nowhere else. What is saved is checked as what is loaded will be, so that no file is written that could not be read.
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
from mercer.files.mercer_file.description import Arrays, JsonObject, cannot_hold, describe, rebuild
from mercer.files.scikit.table import SCIKIT
from mercer.inspection import features
from mercer.inspection.features.feature_map import FeatureMap, n_columns_made
from mercer.runtime.errors import ModelFormatError, ModelVersionWarning, warn_user
from mercer.runtime.refitting import fitted_names

Fitted = Any  # an estimator of mercer or scikit-learn
_PER_ESTIMATOR: Final = 4096  # bytes of an object with its parameters
_SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
# What an error names: the names without an underscore, which users can import.
_SCIKIT_NAMES: Final = ", ".join(name for name in SCIKIT if name[0].isupper())


def write_mercer_file(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator of mercer, or a pipeline of scikit-learn around it, as a ``.mercer`` file."""
    check_is_fitted(model)
    arrays: dict[str, Array] = {}
    writer = _Writer()
    described = writer.model(model, arrays, type(model).__name__)
    if not machines_in(model):
        raise TypeError(
            f"{type(model).__name__} holds no estimator of mercer's that predicts, groups or makes components, and a "
            ".mercer file is for those; save it in a Pipeline with one, or alone with pickle or joblib"
        )
    content = {"mercer": mercer.__version__, "scikit-learn": sklearn.__version__, "model": described}
    views = {name: array.view() for name, array in arrays.items()}  # those of the model may stay writeable

    def check(read: dict[str, Any], budget: Budget) -> None:
        try:
            _Reader(writer.classes).model(read["model"], views, "model", budget)
        except _NO_MODEL as error:
            raise TypeError(
                f"{type(model).__name__} cannot be saved as a .mercer file, since none could be loaded: "
                f"{_reason(error)}; use pickle or joblib"
            ) from error

    write_container(path, content, arrays, check)


def read_mercer_file(path: str | os.PathLike[str], *, mmap: bool = False, classes: Iterable[type] = ()) -> Any:
    """Read what `write_mercer_file` wrote; `mercer.load` says what it raises."""
    budget, reader = Budget(), _Reader(_by_name(classes))
    try:
        content, arrays = read_container(path, mmap, budget)
    except MemoryError:
        raise ModelFormatError(too_large(path)) from None
    try:
        model = reader.model(content.get("model"), arrays, "model", budget)
        if not machines_in(model):
            raise ModelFormatError("there is no fitted estimator of mercer in it")
    except MemoryError:
        raise ModelFormatError(too_large(path)) from None
    except _NO_MODEL as error:
        # The checksums held, so these are headers somebody wrote, or a version whose states differ.
        raise ModelFormatError(
            f"{os.fspath(path)!r}, written by mercer {content.get('mercer')!r:.40} with scikit-learn "
            f"{content.get('scikit-learn')!r:.40}, read by {mercer.__version__} with {sklearn.__version__}: "
            f"{_reason(error)}"
        ) from error
    if reader.met_scikit:
        _compare(content.get("scikit-learn"), os.fspath(path))
    return model


# What making a model of a content raises if the content is none.
_NO_MODEL: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def _reason(error: BaseException) -> str:
    """One line of an error, with its type where that is not our own."""
    told = str(error) if isinstance(error, ModelFormatError) else f"{type(error).__name__}: {error}"
    return " ".join(told.split())[:600]


def too_large(path: str | os.PathLike[str]) -> str:
    """Message for a file that this host has no memory for."""
    return (
        f"{os.fspath(path)!r} of {os.path.getsize(path)} bytes needs more memory than this computer has left; free "
        "some, or leave the arrays of a .mercer file where they are with mercer.load(path, mmap=True)"
    )


def _compare(written: Any, path: str | bytes) -> None:
    """Warn if another minor version of scikit-learn wrote the file."""
    if isinstance(written, str) and written.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        warn_user(
            f"{path!r} was written with scikit-learn {written:.40}, and this is {sklearn.__version__}: its parts of "
            "the model may predict differently; compare a few predictions, then save the model again",
            ModelVersionWarning,
        )


def describe_model(model: Fitted, arrays: Arrays) -> JsonObject:
    """An estimator as JSON; its arrays go to ``arrays``. A TypeError names the step that cannot be saved, and why."""
    return _Writer().model(model, arrays, type(model).__name__)


@dataclass
class _Writer:
    """Describes models; `classes` are those met that are neither mercer's nor scikit-learn's, by their names."""

    classes: dict[str, type] = field(default_factory=dict)

    def model(self, model: Fitted, arrays: Arrays, where: str) -> JsonObject:
        name, spec = type(model).__name__, self._spec(model, where)
        if isinstance(model, Machine) and not fitted_names(model):  # what a wrapper was given, and fitted copies of
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
            plain = spec.to_plain(model, names, where)
        except ModelFormatError as error:
            raise TypeError(
                f"{where} ({name}) cannot be saved as a .mercer file: {error}; use pickle or joblib"
            ) from None
        told = describe(params, arrays, where, self.part)
        return {"$": "estimator", "class": name, "params": told, "fitted": describe(plain, arrays, where, self.part)}

    def part(self, value: Any, arrays: Arrays, where: str) -> JsonObject:
        """Describe a model inside another; TypeError for what is none."""
        if hasattr(value, "get_params") or type(value).__name__ in SCIKIT:
            return self.model(value, arrays, where)
        raise cannot_hold(value, where)

    def _spec(self, model: Fitted, where: str) -> ClassSpec:
        """The declaration of a model's class; TypeError if a file cannot hold the class."""
        cls = type(model)
        name = cls.__name__
        if mercer_class(name) is cls:
            return ClassSpec.of(cls)
        if name in SCIKIT and _scikit_class(name) is cls:
            return SCIKIT[name].spec
        if declares_itself(cls) and _is_free(name) and self.classes.setdefault(name, cls) is cls:
            return ClassSpec.of(cls)
        raise _cannot_save(model, where)


def _is_flat(cls: type, spec: ClassSpec) -> bool:
    """Return True for a machine that holds no estimator: its arrays then stand beside its state in a file."""
    return issubclass(cls, Machine) and not spec.holds_estimators


def mercer_class(name: str) -> type[DeclaresState] | None:
    """The class of mercer's that has this name and declares its state, or None."""
    for package in (mercer, features):
        if name in package.__all__:
            found = getattr(package, name)
            return found if isinstance(found, type) and issubclass(found, DeclaresState) else None
    return None


def declares_itself(cls: type) -> bool:
    """Return True if a class has a declaration of its own: a subclass that says nothing may keep anything."""
    return issubclass(cls, DeclaresState) and "_FITTED" in vars(cls)


def _is_free(name: str) -> bool:
    return mercer_class(name) is None and name not in SCIKIT


def _by_name(classes: Iterable[type]) -> dict[str, type]:
    """Classes that the caller of `load` allows; TypeError for one that does not declare its state."""
    found: dict[str, type] = {}
    for cls in classes:
        declares = isinstance(cls, type) and declares_itself(cls) and _is_free(cls.__name__)
        if not declares or found.setdefault(cls.__name__, cls) is not cls:
            raise TypeError(
                f"classes holds {cls!r:.80}; give classes that derive from DeclaresState of "
                "mercer.estimators.fitting.pipeline.class_spec and have a _FITTED of their own, each with a name that no "
                "other class of them, of mercer or of scikit-learn has"
            )
    return found


def _scikit_class(name: str) -> Any:
    """The class of scikit-learn's, or None in a version without it; its module is imported when first asked for."""
    return getattr(import_module(SCIKIT[name].module), name, None)


def _cannot_save(model: Fitted, where: str) -> TypeError:
    name = type(model).__name__
    step = "it" if where == name else where
    if name in _SEARCHES:
        return TypeError(f"{step} is a {name}, which a .mercer file cannot hold; save its best_estimator_")
    return TypeError(
        f"{step} is a {name}, which a .mercer file cannot hold: its classes are mercer's estimators, {_SCIKIT_NAMES}, "
        "and classes with a _FITTED of their own; use pickle or joblib, and load such files only from people you trust"
    )


def rebuild_model(
    description: Any,
    arrays: Mapping[str, Array],
    where: str = "model",
    budget: Budget | None = None,
    classes: Iterable[type] = (),
) -> Any:
    """The inverse of `describe_model`; ModelFormatError for what no fit could have left."""
    reader = _Reader(_by_name(classes))
    return reader.model(description, arrays, where, Budget() if budget is None else budget)


@dataclass
class _Reader:
    """Makes models of descriptions; `classes` are those that the caller allows beside mercer's and scikit-learn's."""

    classes: Mapping[str, type] = field(default_factory=dict)
    met_scikit: bool = False  # whether a class of scikit-learn was among them

    def model(self, description: Any, arrays: Mapping[str, Array], where: str, budget: Budget) -> Any:
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
                f"{name!r:.60} is not an estimator of this mercer; if it is one of your own, name its class: "
                "mercer.load(path, classes=[…])"
            )
        if _is_flat(cls, spec):
            return self._machine(cls, spec, description, arrays, where, budget)
        place = f"{where[-200:]}.{name}"
        params = rebuild(description["params"], arrays, place, self.model, budget)
        unfitted = issubclass(cls, Machine) and "fitted" not in description
        learnt = {} if unfitted else rebuild(description["fitted"], arrays, place, self.model, budget)
        expect(isinstance(params, dict) and isinstance(learnt, dict), f"{name} has parameters and attributes by name")
        if type(params.get("n_jobs")) is int and params["n_jobs"] > (os.cpu_count() or 1):
            params["n_jobs"] = -1  # more processes than this host has processors are of no use to anybody
        model = spec.restored(cls, params, learnt) if learnt.keys() - {OUTPUT} else _unfitted(spec, cls, params, learnt)
        # Columns that no array of the file stands behind: many such transformers side by side would make a huge row.
        columns = n_columns_made(model) if isinstance(model, FeatureMap) else vars(model).get("n_output_features_", 0)
        budget.take(8 * int(columns), f"a row of the columns that {name} makes")
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
        """A machine without estimators inside."""
        name = cls.__name__
        if "params" in description:
            return spec.unfitted(cls, rebuild(description["params"], arrays, f"{where}.{name}", None, budget))
        header = rebuild(description["state"], arrays, f"{name}.state", None, budget)
        fitted = rebuild(description["arrays"], arrays, f"{name}.arrays", None, budget)
        model = spec.restored(cls, header["params"], {**header["fitted"], **fitted})
        if "output" in description:
            EVERY[OUTPUT].check("output", description["output"], model)
            setattr(model, OUTPUT, description["output"])
        return model


def _unfitted(spec: ClassSpec, cls: type, params: Any, learnt: Mapping[str, Any]) -> Fitted:
    """A model that is not fitted, or has nothing to learn; `set_output` may have been called."""
    model = spec.unfitted(cls, params)
    for name, value in learnt.items():
        EVERY[name].check(name, value, model)
        setattr(model, name, value)
    return model


def machines_in(model: Fitted) -> list[Any]:
    """The fitted machines of mercer in a model, in the order in which they stand."""
    if isinstance(model, (list, tuple)):
        return [machine for item in model for machine in machines_in(item)]
    if isinstance(model, Machine):
        return [model] if fitted_names(model) else []
    if isinstance(model, DeclaresState):
        specs = ClassSpec.of(type(model)).attributes
        held = [vars(model).get(name) for name, spec in specs.items() if spec.holds_estimators]
        return [machine for value in held for machine in machines_in(value)]
    name = type(model).__name__
    if name not in SCIKIT and name != "_CalibratedClassifier":
        return []
    return [machine for value in vars(model).values() for machine in machines_in(value)]
