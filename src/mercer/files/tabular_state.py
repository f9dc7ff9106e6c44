"""What `mercer.tabular` learnt of a table, as plain values, and back; the classes of encodings are a closed list.

A file may come from somebody who means harm, so every value is held to the type that its class declares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

import numpy as np
from sklearn.base import clone

from mercer.errors import ModelFormatError
from mercer.tables.cells import DATE_FORMS
from mercer.tables.encodings import CYCLES, Dates, LeftOut, Levels, Numbers, Words
from mercer.tables.estimator import Tabular

_ENCODINGS: Final[dict[str, Any]] = {kind.__name__: kind for kind in (Numbers, Levels, Dates, Words, LeftOut)}
_END_OF_TIME_SECONDS: Final = 1e12  # the year 33,658; Python's dates end before
_LISTS: Final = ("drop", "only", "categorical", "text")
_READING: Final = ("separator", "decimal", "encoding", "units", "na", "target")


def table_state(model: Tabular) -> dict[str, Any]:
    """Everything that a fit left, but for the estimator inside."""
    lists = {name: getattr(model, name) for name in _LISTS}
    return {
        **{name: names if names is None or isinstance(names, tuple) else list(names) for name, names in lists.items()},
        "missing": model.missing,
        "standardise": bool(model.standardise),
        "columns": [_plain(one) for one in model.columns_],
        "target_mean": model.target_mean_,
        "target_scale": model.target_scale_,
        "n_rows_dropped": model.n_rows_dropped_,
        "named": hasattr(model, "feature_names_in_"),
        "reading": dict(getattr(model, "reading_", {})),
    }


def table_model(state: Any, estimator: Any) -> Tabular:
    """The inverse, around its fitted estimator; ModelFormatError for what no fit could have left."""
    _expect(isinstance(state, dict), "there is no table")
    for name in _LISTS:
        given = list(state[name]) if isinstance(state[name], tuple) else state[name]
        _expect(_is_list(given, str) or (name == "only" and given is None), f"{name} must be names")
    _expect(state["missing"] in ("impute", "drop"), f"missing cannot be {state['missing']!r:.40}")
    flags = (state["standardise"], state["named"])
    _expect(all(type(flag) is bool for flag in flags), "standardise and named must be true or false")
    columns = [_encoding(one) for one in state["columns"]]
    _expect(len({one.name for one in columns}) == len(columns) > 0, "every column needs a name of its own")
    made = sum(len(one.titles) for one in columns)
    _expect(made == estimator.n_features_in_, f"the columns become {made} numbers, and the estimator expects others")
    dropped, reading = state["n_rows_dropped"], state["reading"]
    _expect(type(dropped) is int and dropped >= 0, "n_rows_dropped must count rows")
    words = isinstance(reading, dict) and all(isinstance(one, str) for one in reading.values())
    _expect(words and set(reading) <= set(_READING), f"a table is read by {', '.join(_READING)}")
    parameters = {name: state[name] for name in (*_LISTS, "missing", "standardise")}
    model = Tabular(clone(estimator), **parameters)
    model.estimator_, model.columns_ = estimator, columns
    model.target_mean_, model.target_scale_ = (_finite(state[f"target_{name}"]) for name in ("mean", "scale"))
    model.n_rows_dropped_, model.n_features_in_ = dropped, len(columns)
    if state["named"]:
        model.feature_names_in_ = np.array([one.name for one in columns], dtype=object)
    if reading:
        model.reading_ = reading
    return model


def _plain(encoding: Any) -> dict[str, Any]:
    values = {one.name: getattr(encoding, one.name) for one in fields(encoding)}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {"kind": type(encoding).__name__, **plain}


def _encoding(plain: Any) -> Any:
    _expect(isinstance(plain, dict) and plain.get("kind") in _ENCODINGS, "a column has no known kind")
    kind = _ENCODINGS[plain["kind"]]
    declared = {one.name: str(one.type) for one in fields(kind)}
    _expect(set(plain) == {"kind", *declared}, f"{plain['kind']} is written with {', '.join(declared)}")
    for name, wanted in declared.items():
        _expect(_TYPES[wanted](plain[name]), f"{name} of {plain['kind']} must be {wanted}, not {plain[name]!r:.40}")
    made = kind(**{name: tuple(plain[name]) if "tuple" in declared[name] else plain[name] for name in declared})
    if isinstance(made, (Numbers, Dates)):
        _expect(made.scale > 0, f"the scale of {made.name!r} must be positive")
    if isinstance(made, Dates):
        _expect(abs(made.fill) < _END_OF_TIME_SECONDS, f"{made.fill!r} is no date")
        _expect(made.form in DATE_FORMS and set(made.cycles) <= set(CYCLES), f"no date is read as {made.form!r:.40}")
    if isinstance(made, Words):
        _expect(len(made.words) == len(made.weights), f"every word of {made.name!r} needs a weight")
    return made


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(type(item) is kind for item in value)


def _is_number(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "str": lambda value: type(value) is str,
    "bool": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int and value >= 0,
    "float": _is_number,
    "tuple[str, ...]": lambda value: _is_list(value, str) and len(set(value)) == len(value),
    "tuple[float, ...]": lambda value: isinstance(value, list) and all(map(_is_number, value)),
}


def _finite(value: Any) -> Any:
    is_array = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.float64
    _expect(_is_number(value) or (is_array and np.isfinite(value).all()), "y was standardised with finite numbers")
    return value


def _expect(condition: Any, complaint: str) -> None:
    if not condition:
        raise ModelFormatError(f"Tabular: {complaint}")
