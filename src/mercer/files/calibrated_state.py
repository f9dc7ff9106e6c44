"""What a file holds of a calibrated machine: the machine, its curves and scores, or the functions of samples left out.

A file may come from somebody who means harm, so every array is held to the shape and type that a fit leaves.
"""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any, Final

import numpy as np

from mercer.data.labels import REST, planes
from mercer.expansion import Expansion
from mercer.files.scikit_kinds import expect
from mercer.kernels import Kernel
from mercer.threads import effective_n_threads

CALIBRATED: Final = ("CalibratedClassifier", "CalibratedRegressor")
# The arrays of each kind of curve.
_CURVES: Final = {
    "Sigmoids": ("mercer.calibration.sigmoid", ("slope", "offset")),
    "Softmax": ("mercer.calibration.temperature", ("slope",)),
    "Steps": ("mercer.calibration.isotonic", ("f", "p", "starts")),
    "VennAbers": ("mercer.calibration.venn_abers", ("f", "W", "S", "starts", "unit")),
}
_OF_EXPANSION: Final = ("kernel", "vectors", "coefficients", "b", "columns", "n_columns")
_OF_INVERSE: Final = ("kernel", "vectors", "inverse", "c", "b", "residuals")


def calibrated_class(name: str) -> Any:
    """The class of this name; it is imported here, because few files need it."""
    return getattr(import_module("mercer.calibration"), name)


def calibrated_state(model: Any) -> dict[str, Any]:
    """What a fitted model has learnt, as values that a file can hold; its machines as they are."""
    cv = model.cv if isinstance(model.cv, int | str) else 5  # a splitter of scikit-learn is of use for another fit only
    state: dict[str, Any] = {"cv": cv, "machine": model.estimator_}
    if type(model).__name__ == "CalibratedClassifier":
        curves, own = model.probabilities_.curves, model._own_scores_
        kind = type(curves).__name__
        named = {name: getattr(curves, name) for name in _CURVES[kind][1]}
        return state | {
            "method": model.method,
            "curves": {"kind": kind, **named},
            "own": {"scores": own.scores, "starts": own.starts},
        }
    folds = [] if model._folds_[0][0] is model.estimator_ else [list(pair) for pair in model._folds_]
    state |= {"residuals": model.residuals_, "without": model._without_, "folds": folds, "functions": None}
    functions = model._functions_
    if functions is not None and hasattr(functions, "expansion"):
        told = {name: getattr(functions.expansion, name) for name in _OF_EXPANSION}
        state["functions"] = {"kind": "support vectors", **told, "output": functions.output}
        state["residuals"] = functions.residuals
    elif functions is not None:
        state["functions"] = {"kind": "inverse", **{name: getattr(functions, name) for name in _OF_INVERSE}}
    return state


def calibrated_model(name: str, state: Any) -> Any:
    """The inverse of `calibrated_state`; ModelFormatError for what no fit could have left."""
    expect(isinstance(state, dict) and hasattr(state.get("machine"), "predict"), f"{name}: it has no machine")
    machine = state["machine"]
    expect(isinstance(state.get("cv"), int | str), f"{name}: cv must be a number or a word")
    made = _classifier if name == "CalibratedClassifier" else _regressor
    model = made(state, machine)
    for attribute in ("n_features_in_", "feature_names_in_"):
        if hasattr(machine, attribute):
            setattr(model, attribute, getattr(machine, attribute))
    return model


def _classifier(state: dict[str, Any], machine: Any) -> Any:
    from mercer.calibration.classifier import CalibratedClassifier
    from mercer.calibration.conformal import OwnScores
    from mercer.calibration.curves import METHODS, ClassProbabilities
    from mercer.held_out.around import machine_of

    decides = machine_of(machine)
    expect(hasattr(decides, "classes_") and hasattr(decides, "_decision"), "a calibrated classifier needs a classifier")
    expect(state.get("method") in METHODS, f"{state.get('method')!r:.40} is no method of calibration")
    k, against_rest = len(decides.classes_), bool(getattr(decides, "_function_per_class", True))
    between = planes(k, against_rest)
    own = state.get("own")
    expect(isinstance(own, dict) and own.keys() == {"scores", "starts"}, "it has no scores of its classes")
    assert isinstance(own, dict)
    _expect_numbers(own["scores"], "scores")
    _expect_starts(own["starts"], k, len(own["scores"]))
    model = CalibratedClassifier(machine, method=state["method"], cv=state["cv"])
    model.estimator_, model.classes_ = machine, decides.classes_
    curves = _curves(state.get("curves"), len(between))
    model.probabilities_ = ClassProbabilities(curves, k, between[0][1] == REST)
    model._own_scores_ = OwnScores(own["scores"], own["starts"])
    return model


def _curves(told: Any, n_planes: int) -> Any:
    expect(isinstance(told, dict) and told.get("kind") in _CURVES, "it has no curves that this mercer knows")
    home, names = _CURVES[told["kind"]]
    expect(told.keys() == {"kind", *names}, f"curves of kind {told['kind']} have {', '.join(names)}")
    starts = told.get("starts")
    if starts is not None:
        _expect_starts(starts, n_planes, len(told["f"]))
        expect(bool((np.diff(starts) > 0).all()), "every curve has at least one corner")
    lengths = {"slope": n_planes, "offset": n_planes, "unit": n_planes}
    for name in names:
        if name != "starts":
            more = n_planes if name in "WS" else 0  # one more sum than values for each plane
            _expect_numbers(told[name], name, lengths.get(name, len(told.get("f", ())) + more))
    return getattr(import_module(home), told["kind"])(*(told[name] for name in names))


def _regressor(state: dict[str, Any], machine: Any) -> Any:
    from mercer.calibration.regressor import CalibratedRegressor

    model = CalibratedRegressor(machine, cv=state["cv"])
    model.estimator_ = machine
    residuals, without, folds = (state.get(name) for name in ("residuals", "without", "folds"))
    _expect_numbers(residuals, "residuals")
    assert residuals is not None
    n = len(residuals)
    expect(isinstance(folds, list), "its folds must be a list")
    assert isinstance(folds, list)
    model._folds_ = [(machine, None)]
    if folds:
        good = all(isinstance(pair, list) and len(pair) == 2 and hasattr(pair[0], "predict") for pair in folds)
        expect(good, "a fold is a machine and its rows")
        for _, rows in folds:
            _expect_places(rows, "the rows of a fold", None, n)
        model._folds_ = [(part, rows) for part, rows in folds]
    _expect_places(without, "the fold of each sample", n, len(model._folds_))
    model._without_ = np.asarray(without)
    model._functions_ = None if state.get("functions") is None else _functions(state["functions"], machine, residuals)
    model.residuals_ = np.abs(residuals)
    return model


def _functions(told: Any, machine: Any, residuals: Any) -> Any:
    from mercer.calibration.leave_one_out_functions import LeaveOneOutFunctions
    from mercer.held_out.leave_one_out import FunctionsLeftOut

    expect(isinstance(told, dict) and isinstance(told.get("kernel"), Kernel), "functions have a kernel")
    n = len(residuals)
    if told.get("kind") == "inverse":
        expect(told.keys() == {"kind", *_OF_INVERSE}, f"an inverse comes with {', '.join(_OF_INVERSE)}")
        _expect_numbers(told["c"], "c", n)
        _expect_numbers(told["residuals"], "residuals", n)
        size = told["inverse"].shape if isinstance(told["inverse"], np.ndarray) else ()
        expect(size in ((n, n), (n + 1, n + 1)) and told["inverse"].dtype == np.float64, "the inverse is square")
        _expect_vectors(told, n)
        return LeaveOneOutFunctions(*(told[name] for name in _OF_INVERSE))
    expect(told.keys() == {"kind", *_OF_EXPANSION, "output"}, "these are no functions that this mercer knows")
    b, coefficients = told["b"], told["coefficients"]
    _expect_numbers(b, "b")
    shaped = isinstance(coefficients, np.ndarray) and coefficients.ndim == 2 and coefficients.dtype == np.float64
    expect(shaped and coefficients.shape[1] == len(b), "every function has its coefficients and its b")
    _expect_vectors(told, len(coefficients))
    if told["columns"] is not None:
        _expect_places(told["columns"], "columns", len(coefficients), told["n_columns"])
    _expect_places(told["output"], "the function of each sample", n, len(b))
    expansion = Expansion(**{name: told[name] for name in _OF_EXPANSION})
    threads = effective_n_threads(getattr(machine, "n_jobs", None))
    return FunctionsLeftOut(expansion, told["output"], residuals, threads)


def _expect_vectors(told: dict[str, Any], n: int) -> None:
    vectors = told["vectors"]
    if told["kernel"].accepts == "gram":
        expect(vectors is None, "a precomputed kernel has no vectors")
    else:
        rows = vectors.shape[0] if hasattr(vectors, "shape") else len(vectors) if isinstance(vectors, list) else -1
        expect(rows == n, f"there must be {n} vectors")


def _expect_numbers(value: Any, name: str, length: int | None = None) -> None:
    plain = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.float64
    expect(plain and (length is None or len(value) == length), f"{name} must be a list of {length or ''} numbers")


def _expect_places(value: Any, name: str, length: int | None, below: Any) -> None:
    whole = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"
    expect(whole and (length is None or len(value) == length), f"{name} must be a list of whole numbers")
    inside = isinstance(below, int) and (len(value) == 0 or 0 <= int(value.min()) <= int(value.max()) < below)
    expect(inside, f"{name} must be from 0 to {below!r:.20}, less one")


def _expect_starts(value: Any, count: int, end: int) -> None:
    _expect_places(value, "starts", count + 1, end + 1)
    rising = int(value[0]) == 0 and int(value[-1]) == end and all(a <= b for a, b in pairwise(value.tolist()))
    expect(rising, f"starts must rise from 0 to {end}")
