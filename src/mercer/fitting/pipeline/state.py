"""What a fit leaves: each estimator declares its fitted attributes, and files and checks go by that declaration.

    class Ball(Machine):
        FITTED = fitted(radius_=Number(), centre_=Array("features"))

A class adds to what its ancestors declare. The name of a size stands for a number that the model itself tells; None
stands for any (see mercer.fitting.pipeline.kinds). What is `required` must be in every file. The rest is what only some
fits leave, or models that came from another program lack.

Checksums tell damage from health, not an honest writer from a dishonest one. These checks are for the second: no file
can set an attribute that is not declared, and every count and shape that prediction relies on has to agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import freeze, is_sparse
from mercer.errors import ModelFormatError
from mercer.fitting.pipeline.kinds import Kind, expect


def state_of(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Everything a file must hold: plain values and kernels, and the arrays beside them."""
    check_is_fitted(model)
    kinds = declared(type(model))
    fitted: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for name in fitted_names(model):
        if name not in kinds:
            raise TypeError(
                f"{type(model).__name__}.{name} is no attribute that a fit leaves, and a model file holds no others; "
                "delete it, or use pickle"
            )
        for key, value in kinds[name].to_plain(name, getattr(model, name)).items():
            numeric = is_sparse(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")
            (arrays if numeric else fitted)[key] = value
    return {"params": model.get_params(deep=False), "fitted": fitted}, arrays


def restored(cls: Any, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    """The inverse of `state_of`; ModelFormatError for what no fit of such an estimator could have left."""
    plain = {**header["fitted"], **{name: freeze(array) for name, array in arrays.items()}}
    check_names(cls, plain)
    model = cls(**header["params"])
    set_fitted(model, plain)
    check_state(model)
    return model


def set_fitted(model: Any, plain: Mapping[str, Any]) -> None:
    """Set the attributes that a file holds; they are not checked yet."""
    for name, kind in declared(type(model)).items():
        parts = {key: plain[key] for key in kind.keys(name) if key in plain}
        if parts:
            setattr(model, name, kind.from_plain(name, parts, model))


def check_names(cls: type, names: Iterable[Any]) -> None:
    """Raise ModelFormatError if a file would set anything but what a fit leaves."""
    known = {key for name, kind in declared(cls).items() for key in kind.keys(name)}
    for name in names:
        if name not in known:
            raise ModelFormatError(f"{name!r:.60} is not an attribute that a fitted {cls.__name__} has")


def check_state(model: Any) -> None:
    """Raise ModelFormatError if the fitted attributes contradict the declaration, or each other."""
    present = vars(model)
    try:
        for name, kind in declared(type(model)).items():
            if name in present:
                kind.check(name, present[name], model)
                expect(not kind.needs or kind.needs in present, f"there is no {name} without {kind.needs}")
            else:
                missing = kind.required and kind.unless not in present
                expect(not missing, f"it has no {name}")
    except ModelFormatError as error:
        raise ModelFormatError(f"this is no fitted {type(model).__name__}: {error}") from None


def declared(cls: type) -> dict[str, Kind]:
    """The fitted attributes of a class: its own and its ancestors'."""
    kinds: dict[str, Kind] = {}
    for ancestor in reversed(cls.__mro__):
        kinds.update(vars(ancestor).get("FITTED", {}))
    return kinds


def fitted_names(model: Any) -> list[str]:
    """The attributes that a fit has set."""
    return [name for name in vars(model) if name[-1] == "_" and name[:2] != "__"]


def freeze_fitted(model: Any) -> None:
    """Make all fitted arrays read-only, as after a fit."""
    for name in fitted_names(model):
        freeze(getattr(model, name))


def chosen_of(model: Any) -> Any:
    """The estimator that a fitted search has chosen, `TunedSVC` or scikit-learn's; any other model itself."""
    return getattr(model, "__dict__", {}).get("best_estimator_", model)
