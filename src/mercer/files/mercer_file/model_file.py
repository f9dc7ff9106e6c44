"""``mercer.save`` and ``mercer.load``: a fitted model as a ``.mercer`` file.

A file holds an estimator of mercer, or what scikit-learn's pipelines, transformers and wrappers make of it: a model of
standardised data is of little use without the numbers it was standardised with. In its JSON they are

    {"$": "estimator", "class": "SVC", "state": {"params": ..., "fitted": ...}, "arrays": ...}    mercer's, fitted
    {"$": "estimator", "class": "PCA", "params": {...}, "fitted": {...}}                          of a table

A class is looked up by name in `mercer.estimators` and in the tables of mercer.files.scikit.table and own_table, and
nowhere else. What is saved is checked as what is loaded will be, so that no file is written that could not be read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer import bayes, estimators, unsupervised
from mercer.errors import ModelFormatError, ModelVersionWarning, warn_user
from mercer.features.feature_map import FeatureMap, n_columns_made
from mercer.files.mercer_file.budget import Budget
from mercer.files.mercer_file.container import Array, read_container, write_container
from mercer.files.mercer_file.description import Arrays, Told, cannot_hold, describe, rebuild
from mercer.files.mercer_file.feature_maps import FEATURE_MAPS
from mercer.files.mercer_file.own_table import OWN
from mercer.files.scikit.checks import CONFIG, Fitted, Plain
from mercer.files.scikit.table import SCIKIT, Row
from mercer.fitting.pipeline.machine import Machine
from mercer.fitting.pipeline.state import Unsaved, expect, restored, state_of
from mercer.kernels import Kernel
from mercer.runtime.refitting import fitted_names
from mercer.tables.estimator import Tabular

# What set_output was told, in scikit-learn's name for it.
_OUTPUT: Final = "_sklearn_output_config"
_PER_ESTIMATOR: Final = 4096  # bytes of an object with its parameters
_MOST_ITEMS: Final = 10_000  # in a parameter that is a list or a dictionary
_SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
_TABLE: Final = SCIKIT | OWN | FEATURE_MAPS
# What an error names: the names without an underscore, which users can import.
_TOLD: Final = ", ".join(name for name in SCIKIT if name[0].isupper())


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator of mercer, or a pipeline of scikit-learn around it, to a ``.mercer`` file.

    The file appears under its name only when it is complete: if saving fails, what was there is intact.

    Parameters
    ----------
    model : estimator
        Fitted. Around mercer's estimators may stand Pipeline, ColumnTransformer, FeatureUnion, scikit-learn's scalers,
        encoders, imputers and vectorizers, PCA, CalibratedClassifierCV, VotingClassifier, TransformedTargetRegressor
        and the like. A kernel that is a Python function cannot be saved this way; use pickle.
    path : str or path-like
        Conventionally ends in ``.mercer``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mercer
    >>> model = mercer.SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.mercer"
    ...     mercer.save(model, path)
    ...     again = mercer.load(path)
    >>> again.predict([[0.2], [2.9]]).tolist()
    [0, 1]
    """
    model = model if isinstance(model, BaseEstimator) else getattr(model, "model", model)  # of `easy` and `ask`
    check_is_fitted(model)
    arrays: dict[str, Array] = {}
    described = describe_model(model, arrays)
    if not machines_in(model):
        raise TypeError(
            f"{type(model).__name__} holds no estimator of mercer's that predicts, groups or makes components, and a "
            ".mercer file is for those; save it in a Pipeline with one, or alone with pickle or joblib"
        )
    content = {"mercer": mercer.__version__, "scikit-learn": sklearn.__version__, "model": described}
    views = {name: array.view() for name, array in arrays.items()}  # those of the model may stay writeable

    def check(read: dict[str, Any], budget: Budget) -> None:
        try:
            rebuild_model(read["model"], views, "model", budget)
        except _NO_MODEL as error:
            raise TypeError(
                f"{type(model).__name__} cannot be saved as a .mercer file, since none could be loaded: "
                f"{_reason(error)}; use pickle or joblib"
            ) from error

    write_container(path, content, arrays, check)


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Any:
    """Load what `save` wrote. The model predicts exactly, bit for bit, what it predicted when it was saved.

    Loading never runs code from the file. A file that is damaged, truncated or from a newer version raises
    ModelFormatError, which says what is wrong and where; a path that is missing or no regular file, OSError. If the
    model holds parts of scikit-learn and another minor version of it wrote them, ModelVersionWarning says so.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool, default=False
        Leave the arrays in the file and map it into memory, so that many processes share one copy. The checksums are
        still compared now; do not overwrite such a file in place later (`save` never does: it replaces files).

    Examples
    --------
    See `save`.
    """
    budget = Budget()
    try:
        content, arrays = read_container(path, mmap, budget)
    except MemoryError:
        raise ModelFormatError(_too_large(path)) from None
    try:
        model = rebuild_model(content.get("model"), arrays, "model", budget)
        if not machines_in(model):
            raise ModelFormatError("there is no fitted estimator of mercer in it")
    except MemoryError:
        raise ModelFormatError(_too_large(path)) from None
    except _NO_MODEL as error:
        # The checksums held, so these are headers somebody wrote, or a version whose states differ.
        raise ModelFormatError(
            f"{os.fspath(path)!r}, written by mercer {content.get('mercer')!r:.40} with scikit-learn "
            f"{content.get('scikit-learn')!r:.40}, read by {mercer.__version__} with {sklearn.__version__}: "
            f"{_reason(error)}"
        ) from error
    learner = model.estimator_ if type(model) is Tabular else model
    if estimator_class(type(learner).__name__) is None:
        _compare(content.get("scikit-learn"), os.fspath(path))
    return model


# What making a model of a content raises if the content is none.
_NO_MODEL: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def _reason(error: BaseException) -> str:
    """One line of an error, with its type where that is not our own."""
    told = str(error) if isinstance(error, ModelFormatError) else f"{type(error).__name__}: {error}"
    return " ".join(told.split())[:600]


def _too_large(path: str | os.PathLike[str]) -> str:
    return (
        f"{os.fspath(path)!r} of {os.path.getsize(path)} bytes needs more memory than this computer has left; free "
        "some, or leave the arrays in the file with mercer.load(path, mmap=True)"
    )


def _compare(written: Any, path: str | bytes) -> None:
    """Warn if another minor version of scikit-learn wrote the file."""
    if isinstance(written, str) and written.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        warn_user(
            f"{path!r} was written with scikit-learn {written:.40}, and this is {sklearn.__version__}: its parts of "
            "the model may predict differently; compare a few predictions, then save the model again",
            ModelVersionWarning,
        )


def describe_model(model: Fitted, arrays: Arrays, where: str = "") -> Told:
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
    if _class_named(name) is not type(model):
        raise _cannot_save(model, where)
    row = _TABLE[name]
    params = row.given(model)
    learnt = {key: value for key, value in vars(model).items() if key not in params}
    for key in learnt.keys() - row.fitted.keys():
        raise TypeError(
            f"{where}.{key} is no attribute of {name} that this mercer knows (scikit-learn {sklearn.__version__}), and "
            "a .mercer file holds no others; use pickle or joblib"
        )
    try:
        _check(model, row, learnt.keys())
        plain = {
            part: one for key, value in learnt.items() for part, one in row.fitted[key].to_plain(key, value).items()
        }
    except ModelFormatError as error:
        raise TypeError(f"{where} ({name}) cannot be saved as a .mercer file: {error}; use pickle or joblib") from None
    told = describe(params, arrays, where, _describe_other)
    return {"$": "estimator", "class": name, "params": told, "fitted": describe(plain, arrays, where, _describe_other)}


def _describe_other(value: Any, arrays: Arrays, where: str) -> Told:
    if hasattr(value, "get_params") or type(value).__name__ in _TABLE:
        return describe_model(value, arrays, where)
    raise cannot_hold(value, where)


def _class_named(name: str) -> Any:
    """The class of a row, or None; its module is imported when first asked for."""
    return getattr(import_module(_TABLE[name].module), name, None) if name in _TABLE else None


def _cannot_save(model: Fitted, where: str) -> TypeError:
    name = type(model).__name__
    step = "it" if where == name else where
    if name in _SEARCHES:
        return TypeError(f"{step} is a {name}, which a .mercer file cannot hold; save its best_estimator_")
    return TypeError(
        f"{step} is a {name}, which a .mercer file cannot hold: its classes are mercer's estimators, {_TOLD}; use "
        "pickle or joblib, and load such files only from people you trust"
    )


def rebuild_model(
    description: Any, arrays: Mapping[str, Array], where: str = "model", budget: Budget | None = None
) -> Any:
    """The inverse of `describe_model`; ModelFormatError for what no fit could have left."""
    budget = Budget() if budget is None else budget
    budget.take(_PER_ESTIMATOR, where)
    if not isinstance(description, dict) or not isinstance(description.get("class"), str):
        raise ModelFormatError("the header names no estimator")
    name = description["class"]
    found = estimator_class(name)
    if found is not None:
        if "params" in description:
            params = rebuild(description["params"], arrays, f"{where}.{name}", None, budget)
            check_parameters(params)
            return found(**params)
        header = rebuild(description["state"], arrays, f"{name}.state", None, budget)
        fitted = rebuild(description["arrays"], arrays, f"{name}.arrays", None, budget)
        check_parameters(header["params"])
        model = restored(found, header, fitted)
        if "output" in description:
            CONFIG.check("output", description["output"], model)
            setattr(model, _OUTPUT, description["output"])
        return model
    if name not in _TABLE:
        raise ModelFormatError(f"{name!r:.60} is not an estimator of this mercer")
    found = _class_named(name)
    if found is None:
        raise ModelFormatError(f"scikit-learn {sklearn.__version__} has no {name}")
    params = rebuild(description["params"], arrays, f"{where[-200:]}.{name}", rebuild_model, budget)
    learnt = rebuild(description["fitted"], arrays, f"{where[-200:]}.{name}", rebuild_model, budget)
    expect(isinstance(params, dict) and isinstance(learnt, dict), f"{name} has parameters and attributes by name")
    model = _restored(found, _TABLE[name], params, learnt)
    # Columns that no array of the file stands behind: many such transformers side by side would make a huge row.
    columns = n_columns_made(model) if isinstance(model, FeatureMap) else vars(model).get("n_output_features_", 0)
    budget.take(8 * int(columns), f"a row of the columns that {name} makes")
    return model


def _restored(cls: Any, row: Row, params: Plain, learnt: Plain) -> Fitted:
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
        raise ModelFormatError(f"{name}: {error}"[:600]) from None
    return model


def check_parameters(params: Any) -> None:
    """Raise ModelFormatError unless an estimator's parameters are numbers, words, kernels, arrays or short lists.

    Constructors take what they are given; what is no parameter of any honest estimator is refused here.
    """
    expect(isinstance(params, dict), "an estimator has parameters by name")
    for name, value in params.items():
        count = _n_plain(value)
        expect(count is not None, f"{name!r:.60} is no number, word, kernel, array or list of such")
        expect(count is None or count <= _MOST_ITEMS, f"{name!r:.60} holds more than {_MOST_ITEMS} values")


def _n_plain(value: Any) -> int | None:
    """Number of values in a parameter, those in its lists and dictionaries included; None if one cannot be."""
    if isinstance(value, (list, tuple, dict)):
        items = [*value, *value.values()] if isinstance(value, dict) else value
        counts = [_n_plain(item) for item in items[: _MOST_ITEMS + 1]]
        return None if None in counts else 1 + sum(count for count in counts if count is not None)
    plain = value is None or isinstance(value, (bool, int, float, str, np.generic, np.ndarray, Kernel))
    return 1 if plain else None


def _check(model: Fitted, row: Row, learnt: Any) -> None:
    """Raise ModelFormatError if parameters or attributes are none that a fit could have left."""
    if hasattr(model, "_parameter_constraints"):
        model._validate_params()
    row.params(model)
    if not learnt - {"_sklearn_output_config"}:
        return  # not fitted, or nothing to learn
    for key, kind in row.fitted.items():
        if key in vars(model):
            if not isinstance(kind, Unsaved):
                kind.check(key, getattr(model, key), model)
        elif row.always_has(key):
            raise ModelFormatError(f"it has no {key}, which scikit-learn {sklearn.__version__} needs")
    for option, needed in row.needs.items():
        expect(not getattr(model, option) or vars(model).get(needed) is not None, f"{option} needs {needed}")
    row.whole(model)


def estimator_class(name: str) -> Any:
    """The class of mercer's that has this name, or None."""
    room = next((room for room in (estimators, unsupervised, bayes) if name in room.__all__), None)
    found = getattr(room, name, None)
    return found if isinstance(found, type) and issubclass(found, Machine) else None


def machines_in(model: Fitted) -> list[Any]:
    """The fitted estimators of mercer in a model, in the order in which they stand."""
    if estimator_class(type(model).__name__) is type(model):
        return [model] if fitted_names(model) else []
    if isinstance(model, (list, tuple)):
        return [machine for item in model for machine in machines_in(item)]
    name = type(model).__name__
    if name in OWN:
        return machines_in(vars(model).get(OWN[name].holds))
    if name not in SCIKIT and name != "_CalibratedClassifier":
        return []
    return [machine for value in vars(model).values() for machine in machines_in(value)]
