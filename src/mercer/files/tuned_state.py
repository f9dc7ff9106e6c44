"""What a file holds of an estimator that chose its own parameters: those it was given, and what its search found."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np

from mercer.errors import ModelFormatError
from mercer.files.scikit_kinds import expect

TUNED: Final = ("TunedSVC", "TunedSVR", "TunedOneClassSVM")
_TEXTS, _FLAGS = ("search_gap_reason_", "shared_", "choice_"), ("complete_",)


def tuned_class(name: str) -> Any:
    """The class of this name; it is imported here, because few files need it."""
    return getattr(import_module("mercer.selection.tuned"), name)


def tuned_state(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of a model and what it has learnt; `cv` and `scoring` as words and numbers only."""
    params = model.get_params(deep=False)
    for name in ("cv", "scoring"):
        if not isinstance(params[name], int | str | type(None)):
            params[name] = None if name == "scoring" else model.n_splits_ if "n_splits_" in vars(model) else 5
    learnt = {name: value for name, value in vars(model).items() if name not in params}
    if "cv_results_" in learnt:
        results = learnt["cv_results_"]
        learnt["cv_results_"] = {key: value for key, value in results.items() if not key.startswith("param_")}
    return params, learnt


def tuned_model(name: str, params: Any, learnt: Any) -> Any:
    """The inverse of `tuned_state`; ModelFormatError for what no search could have left."""
    expect(isinstance(params, dict) and isinstance(learnt, dict), f"{name} has parameters and attributes by name")
    try:
        model = tuned_class(name)(**params)
    except TypeError as error:
        raise ModelFormatError(f"{name}: {error}") from None
    if not learnt:
        return model
    results = learnt.get("cv_results_")
    known = isinstance(results, dict) and isinstance(results.get("params"), list)
    expect(known and hasattr(learnt.get("best_estimator_"), "predict"), f"{name}: it has no search and no best machine")
    assert isinstance(results, dict)
    wanted = {*_NUMBERS, *_TEXTS, *_FLAGS, "best_params_", "best_estimator_", "cv_results_"}
    expect(learnt.keys() == wanted, f"{name}: it has not the attributes that a search leaves")
    expect(all(isinstance(learnt[key], str) for key in _TEXTS), f"{name}: its words must be text")
    numbers = all(isinstance(learnt[key], int | float | np.number | type(None)) for key in _NUMBERS)
    expect(numbers and isinstance(learnt["best_params_"], dict), f"{name}: its results must be numbers")
    for parameter in sorted({key for point in results["params"] for key in point}):
        column: Any = np.ma.array(np.empty(len(results["params"]), dtype=object), mask=True)
        for k, point in enumerate(results["params"]):
            if parameter in point:
                column[k] = point[parameter]
        results[f"param_{parameter}"] = column
    for key, value in learnt.items():
        setattr(model, key, value)
    return model


_NUMBERS = ("best_index_", "best_score_", "n_splits_", "search_gap_")
