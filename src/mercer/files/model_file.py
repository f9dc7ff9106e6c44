"""``mercer.save`` and ``mercer.load``: a fitted estimator as a ``.mercer`` file.

A file holds the estimator's class by name, looked up in `mercer.estimators`, and its state: parameters,
kernel, expansion and certificate. A Pipeline of StandardScalers and then such an estimator can be
saved too: a model of standardised data is of little use without the numbers it was standardised with.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer import estimators
from mercer.errors import ModelFormatError
from mercer.files.container import Array, read_container, write_container
from mercer.files.description import describe, rebuild
from mercer.files.tabular_state import table_model, table_state
from mercer.fitting.state import restored, state_of
from mercer.tables import Tabular


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator of mercer, or a Pipeline of StandardScaler and one, to a ``.mercer`` file.

    The file appears under its name only when it is complete: if saving fails, what was there is intact.

    Parameters
    ----------
    model : estimator
        Fitted. A kernel that is a Python function cannot be saved this way; use pickle.
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
    check_is_fitted(model)
    arrays: dict[str, Array] = {}
    content = {"mercer": mercer.__version__, "model": _describe_model(model, arrays)}
    write_container(path, content, arrays)


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Any:
    """Load what `save` wrote. The model predicts exactly, bit for bit, what it predicted when it was saved.

    Loading never runs code from the file. A file that is damaged, truncated or from a newer version raises
    ModelFormatError, which says what is wrong and where; a path that is missing or no regular file, OSError.

    Parameters
    ----------
    path : str or path-like
    mmap : bool, default=False
        Leave the arrays in the file and map it into memory, so that many processes share one copy. The checksums are
        still compared now; do not overwrite such a file in place later (`save` never does: it replaces files).

    Examples
    --------
    See `save`.
    """
    content, arrays = read_container(path, mmap)
    try:
        return _rebuild_model(content.get("model"), arrays)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # The checksums held, so these are headers somebody wrote, or a version of mercer whose states differ.
        reason = f"{type(error).__name__}: {error}" if not isinstance(error, ModelFormatError) else str(error)
        writer = content.get("mercer")
        raise ModelFormatError(
            f"{os.fspath(path)!r}, written by mercer {writer!r}, read by {mercer.__version__}: {reason}"
        ) from error


def _describe_model(model: Any, arrays: dict[str, Array]) -> dict[str, Any]:
    name = type(model).__name__
    if type(model) is Pipeline:
        if not _can_be_saved(model.steps):
            raise TypeError(
                f"{model!r} cannot be saved as a .mercer file, which holds {_PIPELINES}; use pickle or joblib"
            )
        steps = [[step_name, _describe_model(step, arrays)] for step_name, step in model.steps]
        return {"class": name, "steps": steps}
    if type(model) is StandardScaler:
        state = {key: getattr(model, key) for key in _SCALER_STATE if hasattr(model, key)}
        return {"class": name, "params": model.get_params(), "state": describe(state, arrays, name)}
    if type(model) is Tabular:
        inner = _describe_model(model.estimator_, arrays)
        return {"class": name, "estimator": inner, "table": describe(table_state(model), arrays, name)}
    if _estimator_class(name) is not type(model):
        raise TypeError(
            f"{model!r} cannot be saved as a .mercer file, which holds estimators of mercer and "
            f"{_PIPELINES}; use pickle or joblib"
        )
    header, fitted = state_of(model)
    return {"class": name, "state": describe(header, arrays, name), "arrays": describe(fitted, arrays, name)}


def _rebuild_model(description: Any, arrays: dict[str, Array]) -> Any:
    if not isinstance(description, dict) or not isinstance(description.get("class"), str):
        raise ModelFormatError("the header names no estimator")
    name = description["class"]
    if name in _READERS:
        return _READERS[name](description, arrays)
    found = _estimator_class(name)
    if found is None:
        raise ModelFormatError(f"{name!r} is not an estimator of this mercer")
    header = rebuild(description["state"], arrays, f"{name}.state")
    fitted = rebuild(description["arrays"], arrays, f"{name}.arrays")
    return restored(found, header, fitted)


def _estimator_class(name: str) -> Any:
    return getattr(estimators, name) if name in estimators.__all__ else None


def _rebuild_pipeline(description: dict[str, Any], arrays: dict[str, Array]) -> Pipeline:
    steps = [(str(name), _rebuild_model(step, arrays)) for name, step in description["steps"]]
    if not _can_be_saved(steps):
        raise ModelFormatError(f"this file holds another Pipeline than {_PIPELINES}")
    return Pipeline(steps)


_PIPELINES = "Pipelines of StandardScalers and then one estimator of mercer"


def _can_be_saved(steps: list[tuple[str, Any]]) -> bool:
    *scalers, (_, last) = steps
    return (
        all(type(step) is StandardScaler for _, step in scalers) and _estimator_class(type(last).__name__) is not None
    )


_SCALER_STATE = ("mean_", "var_", "scale_", "n_samples_seen_", "n_features_in_", "feature_names_in_")


def _rebuild_scaler(description: dict[str, Any], arrays: dict[str, Array]) -> StandardScaler:
    scaler = StandardScaler(**rebuild(description["params"], arrays, "StandardScaler"))
    state = rebuild(description["state"], arrays, "StandardScaler")
    columns = state["n_features_in_"]
    for key in ("mean_", "var_", "scale_"):
        value = state[key]
        whole = isinstance(value, np.ndarray) and value.shape == (columns,) and value.dtype == np.float64
        if value is not None and not (whole and np.isfinite(value).all()):
            raise ModelFormatError(f"StandardScaler.{key} must be {columns} finite numbers")
    for key in state.keys() & set(_SCALER_STATE):
        setattr(scaler, key, state[key])
    return scaler


def _rebuild_tabular(description: dict[str, Any], arrays: dict[str, Array]) -> Tabular:
    estimator = _rebuild_model(description["estimator"], arrays)
    return table_model(rebuild(description["table"], arrays, "Tabular"), estimator)


_READERS: dict[str, Callable[[dict[str, Any], dict[str, Array]], Any]] = {
    "Pipeline": _rebuild_pipeline,
    "StandardScaler": _rebuild_scaler,
    "Tabular": _rebuild_tabular,
}
