"""mercer's own models around others, as rows like scikit-learn's: tables, searches, calibrated machines.

A file may come from somebody who means harm, so every value is held to the type that its class declares, and every
array to the length that prediction relies on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from itertools import pairwise
from typing import Any, Final

import numpy as np
from sklearn.base import clone

from mercer.data.labels import REST, planes
from mercer.errors import ModelFormatError
from mercer.files.scikit.checks import Fitted, Model, Plain
from mercer.files.scikit.table import Row, row
from mercer.fitting.pipeline.state import (
    Array,
    Count,
    Flag,
    Function,
    Kind,
    ListOf,
    Number,
    Parameters,
    Places,
    Text,
    Unsaved,
    check_vectors,
    expect,
)
from mercer.kernels import Kernel
from mercer.runtime.threads import effective_n_threads


@dataclass(frozen=True)
class Declared(Kind):
    """A value of one of some dataclasses, as a dictionary of its fields and, under "kind", its class.

    Each field is held to the type that its class declares. `homes` are the modules of the classes, by their names.
    """

    homes: Mapping[str, str]
    or_none: bool = False

    def to_plain(self, name: str, value: Any) -> Plain:
        if value is None:
            return {name: None}
        plain = {one.name: getattr(value, one.name) for one in fields(value)}
        for field in fields(value):
            if str(field.type) in _NESTED:
                plain |= _NESTED[str(field.type)].to_plain(field.name, plain[field.name])
        return {name: {"kind": type(value).__name__, **plain}}

    def from_plain(self, name: str, parts: Plain, model: Fitted) -> Any:
        plain = parts[name]
        if self.or_none and plain is None:
            return None
        expect(isinstance(plain, dict) and plain.get("kind") in self.homes, f"{name} is of no known kind")
        kind = getattr(import_module(self.homes[plain["kind"]]), plain["kind"])
        declared = {one.name: str(one.type) for one in fields(kind)}
        expect(plain.keys() == {"kind", *declared}, f"{plain['kind']} is written with {', '.join(declared)}")
        values = {}
        for field, wanted in declared.items():
            value = plain[field]
            if wanted in _NESTED:
                value = _NESTED[wanted].from_plain(field, plain, model)
            elif not _TYPES[wanted](value):
                raise ModelFormatError(f"{field} of {name} must be {wanted}, not {value!r:.40}")
            values[field] = value
        return kind(**values)


def _is_number(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "str": lambda value: type(value) is str,
    "bool": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int and value >= 0,
    "float": _is_number,
    "tuple[str, ...]": lambda value: isinstance(value, tuple) and all(type(item) is str for item in value),
    "tuple[float, ...]": lambda value: isinstance(value, tuple) and all(map(_is_number, value)),
    "Floats": lambda value: isinstance(value, np.ndarray) and value.dtype == np.float64,
    "Indices": lambda value: isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i",
    "Indices | None": lambda value: value is None or _TYPES["Indices"](value),
    "Kernel": lambda value: isinstance(value, Kernel),
    "Any": lambda value: True,  # vectors and coefficients, dense, sparse or texts: checked with what they belong to
}
_NESTED: Final = {
    "Expansion": Declared({"Expansion": "mercer.rkhs"}),
    "Curves": Declared(
        dict.fromkeys(("Softmax", "Steps", "VennAbers"), "mercer.calibration.curves")
        | {"Sigmoids": "mercer.calibration.sigmoid"}
    ),
}


def _around_itself(model: Fitted) -> Plain:
    """The parameters of a fitted model, without the estimator that it was given: the fitted one says the same."""
    params = dict(model.get_params(deep=False))
    if "estimator_" in vars(model):
        params["estimator"] = None
    if "cv" in params and not isinstance(params["cv"], int | str):
        params["cv"] = 5  # a splitter of scikit-learn is of use for another fit only
    return params


# --- tables ----------------------------------------------------------------------------------------------------------

_LISTS: Final = ("drop", "only", "categorical", "numeric", "text")
_READING: Final = ("separator", "decimal", "encoding", "units", "na", "target", "digest")


@dataclass(frozen=True)
class _Encoding(Declared):
    """What is done to one column of a table."""

    def check(self, name: str, value: Any, model: Fitted) -> None:
        from mercer.tables.cells import DATE_FORMS
        from mercer.tables.encodings import CYCLES, Dates, Levels, Numbers, Words

        if isinstance(value, (Numbers, Dates)):
            expect(value.scale > 0, f"the scale of {value.name!r} must be positive")
        if isinstance(value, Dates):
            # In seconds, the year 33,658; Python's dates end before.
            expect(abs(value.fill) < 1e12, f"{value.fill!r} is no date")
            known = value.form in DATE_FORMS and set(value.cycles) <= set(CYCLES)
            expect(known, f"no date is read as {value.form!r:.40}")
        parts = value.levels if isinstance(value, Levels) else value.words if isinstance(value, Words) else ()
        # Every level and word becomes a title that begins with the name of the column.
        letters = len(value.name) * len(parts)
        few = letters <= 2**20 + 16 * (sum(map(len, parts)) + len(parts))
        expect(few, f"the name of a column with {len(parts)} values is too long: {len(value.name)} characters")
        if isinstance(value, Levels):
            expect(len(set(value.levels)) == len(value.levels), f"every level of {value.name!r} must be there once")
        if isinstance(value, Words):
            whole = len(set(value.words)) == len(value.words) == len(value.weights)
            expect(whole, f"every word of {value.name!r} must be there once, and needs a weight")


@dataclass(frozen=True)
class _Reading(Kind):
    """How the command line read a table."""

    def check(self, name: str, value: Any, model: Fitted) -> None:
        words = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
        expect(words and set(value) <= set(_READING), f"a table is read by {', '.join(_READING)}")


def _wishes(model: Fitted) -> None:
    for name in _LISTS:
        given = getattr(model, name)
        names = isinstance(given, (list, tuple)) and all(isinstance(one, str) for one in given)
        expect(names or (name == "only" and given is None), f"{name} must be names")
    expect(model.missing in ("impute", "drop"), f"missing cannot be {model.missing!r:.40}")
    expect(type(model.standardise) is bool, "standardise must be true or false")


def _given_to_table(model: Fitted) -> Plain:
    params = _around_itself(model)
    for name in _LISTS:
        params[name] = params[name] if params[name] is None or isinstance(params[name], tuple) else list(params[name])
    return params


def _table(model: Fitted) -> None:
    names = [one.name for one in model.columns_]
    expect(len(set(names)) == len(names) == model.n_features_in_ > 0, "every column needs a name of its own")
    made = sum(len(one.titles) for one in model.columns_)
    known = getattr(model.estimator_, "n_features_in_", None)
    expect(made == known, f"the columns become {made} numbers, and the estimator expects {known}")
    finite = np.isfinite(model.target_mean_).all() and np.isfinite(model.target_scale_).all()
    expect(bool(finite), "y was standardised with finite numbers")
    if hasattr(model, "feature_names_in_"):
        expect(list(model.feature_names_in_) == names, "feature_names_in_ must be the names of the columns")


def _clone_inside(model: Fitted) -> None:
    model.estimator = clone(model.estimator_)


# --- searches --------------------------------------------------------------------------------------------------------

_FIGURE: Final = Number(or_none=True, finite=False)


@dataclass(frozen=True)
class _Results(Kind):
    """`cv_results_`, without the columns of parameters, which follow from the list of points."""

    def to_plain(self, name: str, value: Any) -> Plain:
        return {name: {key: column for key, column in value.items() if not key.startswith("param_")}}

    def from_plain(self, name: str, parts: Plain, model: Fitted) -> Any:
        results = parts[name]
        known = isinstance(results, dict) and isinstance(results.get("params"), list)
        expect(known, f"{name} must have the points of a search")
        columns = {}
        names = sorted({key for point in results["params"] for key in point})
        # A column for each name: as much as all points have, unless each point has names of its own.
        entries = sum(map(len, results["params"]))
        most = 16 * entries + 10_000
        expect(len(names) * len(results["params"]) <= most, f"{name} has {len(names)} parameters in {entries} values")
        for parameter in names:
            column: Any = np.ma.array(np.empty(len(results["params"]), dtype=object), mask=True)
            for k, point in enumerate(results["params"]):
                if parameter in point:
                    column[k] = point[parameter]
            columns[f"param_{parameter}"] = column
        return results | columns


def _given_to_search(model: Fitted) -> Plain:
    """`cv` and `scoring` as words and numbers only; others are of use for another fit only."""
    params = dict(model.get_params(deep=False))
    if not isinstance(params["cv"], int | str | type(None)):
        params["cv"] = vars(model).get("n_splits_", 5)
    if not isinstance(params["scoring"], int | str | type(None)):
        params["scoring"] = None
    return params


_SEARCH: Final = row(
    "mercer.selection.tuned",
    **dict.fromkeys(("best_index_", "best_score_", "n_splits_", "search_gap_"), _FIGURE),
    **dict.fromkeys(("search_gap_reason_", "shared_", "choice_"), Text()),
    complete_=Flag(),
    best_params_=Parameters(),
    best_estimator_=Model(methods=("predict",)),
    cv_results_=_Results(),
).but(holds="best_estimator_", given=_given_to_search)


# --- calibrated machines ---------------------------------------------------------------------------------------------


def _calibrated_params(model: Fitted) -> None:
    expect(isinstance(model.cv, int | str) or hasattr(model.cv, "split"), "cv must be a number or a word")
    if hasattr(model, "method"):
        from mercer.calibration.curves import METHODS

        expect(model.method in METHODS, f"{model.method!r:.40} is no method of calibration")
        expect(model.decides in ("probability", "machine"), f"{model.decides!r:.40} cannot decide")


def _calibrated_classifier(model: Fitted) -> None:
    from mercer.held_out.machines import machine_of

    decides = machine_of(model.estimator_)
    expect(hasattr(decides, "classes_") and hasattr(decides, "_decision"), "a calibrated classifier needs a classifier")
    k = len(decides.classes_)
    between = planes(k, bool(getattr(decides, "_function_per_class", True)))
    found, against_rest = model.probabilities_, between[0][1] == REST
    same = (found.n_classes, found.against_rest) == (k, against_rest)
    expect(same, f"its probabilities must be of {k} classes, as its machine decides")
    curves, n = vars(found.curves), len(between)
    if "starts" in curves:
        _expect_starts(curves["starts"], n, len(curves["f"]))
        expect(bool((np.diff(curves["starts"]) > 0).all()), "every curve has at least one corner")
    per_plane = {"slope": n, "offset": n, "unit": n}
    for name, values in curves.items():
        if name != "starts":
            sums = n if name in "WS" else 0  # one more than values for each plane
            _expect_length(values, name, per_plane.get(name, len(curves.get("f", ())) + sums))
            expect(bool(np.isfinite(values).all()), f"{name} must be finite numbers")
    if "W" in curves:  # a hull of sums that do not rise would never be found
        new_plane = (curves["starts"][1:-1] + np.arange(1, n)) - 1
        rising = np.delete(np.diff(curves["W"]) > 0, new_plane)
        expect(bool(rising.all()), "W must rise on every plane")
    _expect_length(model._own_scores_.scores, "scores", None)
    _expect_starts(model._own_scores_.starts, k, len(model._own_scores_.scores))
    _expect_weight(model, "_own_weight_", len(model._own_scores_.scores))


def _classes_inside(model: Fitted) -> None:
    from mercer.held_out.machines import machine_of

    model.estimator, model.classes_ = model.estimator_, machine_of(model.estimator_).classes_


@dataclass(frozen=True)
class _Folds(Kind):
    """Machines, each with the rows that it was trained on; the machine itself, with None, where there are no folds."""

    def to_plain(self, name: str, value: Any) -> Plain:
        return {name: [list(pair) for pair in value if pair[1] is not None]}

    def from_plain(self, name: str, parts: Plain, model: Fitted) -> Any:
        folds = parts[name]
        whole = isinstance(folds, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in folds)
        expect(whole and all(hasattr(pair[0], "predict") for pair in folds), "a fold is a machine and its rows")
        return [(part, rows) for part, rows in folds] or [(model.estimator_, None)]

    def check(self, name: str, value: Any, model: Fitted) -> None:
        for _, rows in value:
            if rows is not None:
                # Samples of weight 0 have places, but no residuals.
                Places(None if hasattr(model, "_weight_") else "residuals_").check("the rows of a fold", rows, model)


def _calibrated_regressor(model: Fitted) -> None:
    n, functions = len(model.residuals_), model._functions_
    _expect_weight(model, "_weight_", n)
    _expect_length(model._without_, "the fold of each sample", n)
    Places(len(model._folds_)).check("the fold of each sample", model._without_, model)
    if functions is None:
        return
    _expect_length(functions.residuals, "residuals", n)
    if hasattr(functions, "expansion"):
        expansion = functions.expansion
        Function().check("functions", expansion, model.estimator_)
        _expect_length(functions.output, "the function of each sample", n)
        Places(len(expansion.b)).check("the function of each sample", functions.output, model)
        return
    _expect_length(functions.c, "c", n)
    expect(functions.inverse.shape in ((n, n), (n + 1, n + 1)), "the inverse must be square")
    if functions.kernel.accepts == "gram":
        expect(functions.vectors is None, "a precomputed kernel has no vectors")
    else:
        check_vectors("the vectors", functions.vectors, n, getattr(model.estimator_, "n_features_in_", None))


def _threads_inside(model: Fitted) -> None:
    model.estimator = model.estimator_
    if hasattr(model._functions_, "n_threads"):
        threads = effective_n_threads(getattr(model.estimator_, "n_jobs", None))
        model._functions_ = replace(model._functions_, n_threads=threads)


def _expect_length(values: Any, name: str, length: int | None) -> None:
    expect(values.ndim == 1 and length in (None, len(values)), f"{name} must be a list of {length or ''} numbers")


def _expect_weight(model: Fitted, name: str, length: int) -> None:
    weight = vars(model).get(name)
    if weight is not None:
        _expect_length(weight, name, length)
        expect(bool((weight > 0).all()), f"{name} must be above 0")


def _expect_starts(value: Any, count: int, end: int) -> None:
    _expect_length(value, "starts", count + 1)
    rising = int(value[0]) == 0 and int(value[-1]) == end and all(a <= b for a, b in pairwise(value.tolist()))
    expect(rising, f"starts must rise from 0 to {end}")


def _calibrated(**fitted: Kind) -> Row:
    made = row("mercer.calibration", estimator_=Model(methods=("predict",)), _unproven_=Text(), **fitted)
    return made.but(holds="estimator_", given=_around_itself, params=_calibrated_params)


OWN: Final[dict[str, Row]] = {
    "Tabular": row(
        "mercer.tables.estimator",
        estimator_=Model(),
        columns_=ListOf(
            _Encoding(dict.fromkeys(("Numbers", "Levels", "Dates", "Words", "LeftOut"), "mercer.tables.encodings"))
        ),
        target_mean_=Array(None, single=True),
        target_scale_=Array(None, single=True),
        n_rows_dropped_=Count(),
        rows_=Places(),
        reading_=_Reading(),
    ).but(
        holds="estimator_",
        optional=("reading_", "rows_"),
        given=_given_to_table,
        params=_wishes,
        whole=_table,
        finish=_clone_inside,
    ),
    **dict.fromkeys(("TunedSVC", "TunedSVR", "TunedOneClassSVM"), _SEARCH),
    "CalibratedClassifier": _calibrated(
        classes_=Unsaved(),
        probabilities_=Declared({"ClassProbabilities": "mercer.calibration.curves"}),
        _own_scores_=Declared({"OwnScores": "mercer.calibration.classifier"}),
        _own_weight_=Array(None),
        _held_out_=Flag(),
    ).but(optional=("_own_weight_", "_held_out_", "_unproven_"), whole=_calibrated_classifier, finish=_classes_inside),
    "CalibratedRegressor": _calibrated(
        residuals_=Array(None),
        _folds_=_Folds(),
        _without_=Places(),
        _functions_=Declared(
            {
                "LeaveOneOutFunctions": "mercer.calibration.leave_one_out_functions",
                "FunctionsLeftOut": "mercer.held_out.leave_one_out",
            },
            or_none=True,
        ),
        _weight_=Array(None),
    ).but(optional=("_weight_", "_unproven_"), whole=_calibrated_regressor, finish=_threads_inside),
}
