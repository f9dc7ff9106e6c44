"""Specs of whole classes for saving and loading: attributes, parameters, and checks of several attributes together.

An estimator of mercer derives from `DeclaresState` and declares `_FITTED`; if its files need more than that, it
overrides methods of `DeclaresState`. Classes of scikit-learn have a `ClassSpec` in files/scikit/table.py instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.pipeline.state import AttributeSpec, Count, Names, Predicate, Unsaved, expect, fitted
from mercer.kernels import Kernel
from mercer.runtime.errors import ModelFormatError
from mercer.runtime.refitting import fitted_names
from mercer.samples.arrays import freeze, is_sparse

Plain = dict[str, Any]  # entries of a file, by name
Check = Callable[[Any], None]

_MOST_ITEMS: Final = 10_000  # limit for a parameter that is a list or a dictionary

# Attribute in which scikit-learn stores the setting of set_output.
OUTPUT: Final = "_sklearn_output_config"
# Attributes that every class may have.
EVERY: Final = fitted(
    n_features_in_=Count(),
    feature_names_in_=Names(),
    _sklearn_output_config=Predicate(
        must="name a container of transform",
        holds=lambda value, _: (
            isinstance(value, dict)
            and value.keys() <= {"transform"}
            and value.get("transform") in ("default", "pandas", "polars", None)
        ),
    ),
)


class DeclaresState:
    """Estimator that declares the attributes that its fit sets, and can therefore be saved."""

    _FITTED: ClassVar[Mapping[str, AttributeSpec]] = EVERY
    # Renamed parameters, by their name in older files, with their present name.
    _RENAMED_PARAMETERS: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def _parameters_to_save(self) -> Plain:
        """Return the parameters for a file, without those that only another fit needs and a file cannot hold."""
        return _parameters(self)

    def _check_saved_parameters(self) -> None:
        """Raise ModelFormatError for parameters that no valid file has; constructors check nothing."""
        for name, value in _parameters(self).items():
            check_parameter(name, value)

    def _check_fitted(self) -> None:
        """Raise ModelFormatError for fitted attributes that contradict each other or the parameters."""

    def _complete_fitted(self) -> None:
        """Set the attributes that follow from others and are in no file."""

    def __getstate__(self) -> Any:
        """Return the attributes to pickle: all but those that are declared as not pickled."""
        specs = declared(type(self))
        state: Any = super().__getstate__()
        left_out = [name for name, spec in specs.items() if isinstance(spec, Unsaved) and not spec.pickled]
        return {name: value for name, value in state.items() if name not in left_out} if left_out else state


def _parameters(estimator: Any) -> Plain:
    return dict(estimator.get_params(deep=False))


@dataclass(frozen=True)
class ClassSpec:
    """Fitted attributes of one class by name, and the functions that save, check and complete such a model."""

    attributes: Mapping[str, AttributeSpec]
    parameters: Callable[[Any], Plain]  # returns the constructor's parameters for a file
    check_parameters: Check
    check_attributes: Check
    complete: Check  # sets the attributes that follow from others and are in no file

    @classmethod
    def of(cls, declaring: type[DeclaresState]) -> ClassSpec:
        """Return the spec of a class that declares its state."""
        return cls(
            declared(declaring),
            declaring._parameters_to_save,
            declaring._check_saved_parameters,
            declaring._check_fitted,
            declaring._complete_fitted,
        )

    @property
    def holds_estimators(self) -> bool:
        """Return True if a fitted attribute is an estimator."""
        return any(spec.holds_estimators for spec in self.attributes.values())

    def to_plain(self, model: Any, names: Iterable[str], where: str) -> Plain:
        """Return the entries of a file for these attributes of the model; raise TypeError for undeclared ones."""
        entries: Plain = {}
        for name in names:
            if name not in self.attributes:
                raise TypeError(
                    f"{where}.{name} is not a fitted attribute that this version of mercer knows, and a model file "
                    "holds no others; delete it, or use pickle"
                )
            entries |= self.attributes[name].to_plain(name, vars(model)[name])
        return entries

    def check_names(self, cls: type, names: Iterable[Any]) -> None:
        """Raise ModelFormatError if a file would set anything other than fitted attributes."""
        declared_names = {key for name, spec in self.attributes.items() for key in spec.keys(name)}
        for name in names:
            if name not in declared_names:
                raise ModelFormatError(f"{name!r:.60} is not an attribute that a fitted {cls.__name__} has")

    def set_fitted(self, model: Any, entries: Mapping[str, Any]) -> None:
        """Set the attributes that a file holds; they are not checked yet."""
        for name, spec in self.attributes.items():
            parts = {key: entries[key] for key in spec.keys(name) if key in entries}
            if parts:
                setattr(model, name, spec.from_plain(name, parts, model))

    def check(self, model: Any) -> None:
        """Raise ModelFormatError if the fitted attributes contradict the declaration, or each other."""
        attributes = vars(model)
        for name, spec in self.attributes.items():
            is_missing = spec.required and name not in attributes and spec.unless not in attributes
            expect(not is_missing, f"it has no {name}")
        for name, spec in self.attributes.items():
            if name in attributes:
                spec.check(name, attributes[name], model)
                expect(not spec.needs or spec.needs in attributes, f"there is no {name} without {spec.needs}")
            if spec.needed_by:
                expect(
                    not getattr(model, spec.needed_by) or attributes.get(name) is not None,
                    f"{spec.needed_by} needs {name}",
                )
        self.check_attributes(model)

    def restore(self, cls: Any, params: Any, entries: Mapping[str, Any]) -> Any:
        """Return a fitted model from the entries of a file; raise ModelFormatError if no fit could have left them."""
        model = self.unfitted(cls, params)
        self.check_names(cls, entries)
        self.set_fitted(model, entries)
        try:
            self.check(model)
        except ModelFormatError as error:
            raise ModelFormatError(f"this is no fitted {cls.__name__}: {error}"[:600]) from None
        self.complete(model)
        return model

    def unfitted(self, cls: Any, params: Any) -> Any:
        """Return an unfitted model with the parameters from a file."""
        expect(isinstance(params, dict), f"{cls.__name__} has parameters by name")
        new_names = getattr(cls, "_RENAMED_PARAMETERS", {})
        expect(
            not any(old in params and new in params for old, new in new_names.items()),
            f"{cls.__name__} has a name twice",
        )
        params = {new_names.get(name, name): value for name, value in params.items()}
        expect(params.get("memory") is None, f"{cls.__name__}: memory must be None: a file may not name a folder")
        model = cls(**params)
        try:
            self.check_parameters(model)
        except ModelFormatError as error:
            raise ModelFormatError(f"{cls.__name__}: {error}"[:600]) from None
        return model


def declared(cls: type) -> dict[str, AttributeSpec]:
    """Return the specs of the fitted attributes that a class and its ancestors declare."""
    specs: dict[str, AttributeSpec] = {}
    for ancestor in reversed(cls.__mro__):
        specs.update(vars(ancestor).get("_FITTED", {}))
    return specs


def check_state(model: Any) -> None:
    """Raise ModelFormatError if the fitted attributes contradict what the class declares, or each other."""
    try:
        ClassSpec.of(type(model)).check(model)
    except ModelFormatError as error:
        raise ModelFormatError(f"this is no fitted {type(model).__name__}: {error}") from None


def state_of(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the content of a model's file: a header of parameters and plain values, and the arrays by name."""
    check_is_fitted(model)
    spec = ClassSpec.of(type(model))
    entries = spec.to_plain(model, fitted_names(model), type(model).__name__)
    arrays = {key: value for key, value in entries.items() if _is_numeric(value)}
    fitted_entries = {key: value for key, value in entries.items() if key not in arrays}
    return {"params": spec.parameters(model), "fitted": fitted_entries}, arrays


def restore(cls: Any, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    """Return a model from the result of `state_of`; raise ModelFormatError if no fit could have left it."""
    entries = {**header["fitted"], **{name: freeze(array) for name, array in arrays.items()}}
    return ClassSpec.of(cls).restore(cls, header["params"], entries)


def _is_numeric(value: Any) -> bool:
    return is_sparse(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")


def check_parameter(name: str, value: Any) -> None:
    """Raise ModelFormatError unless a parameter is a number, word, kernel, array, estimator or short list of such."""
    count = _n_plain(value)
    expect(count is not None, f"{name!r:.60} is no number, word, kernel, array or list of such")
    expect(count is None or count <= _MOST_ITEMS, f"{name!r:.60} holds more than {_MOST_ITEMS} values")


def _n_plain(value: Any) -> int | None:
    """Return the number of values in a parameter, including nested ones; None if one of them is not allowed."""
    if isinstance(value, (list, tuple, dict)):
        items = [*value, *value.values()] if isinstance(value, dict) else value
        counts = [_n_plain(item) for item in items[: _MOST_ITEMS + 1]]
        return None if None in counts else 1 + sum(count for count in counts if count is not None)
    is_single = value is None or isinstance(value, (bool, int, float, str, np.generic, np.ndarray, Kernel))
    return 1 if is_single or (hasattr(value, "get_params") and not isinstance(value, type)) else None


def freeze_fitted(model: Any) -> None:
    """Make all fitted arrays read-only, as after a fit."""
    for name in fitted_names(model):
        freeze(getattr(model, name))
