"""Spec of an attribute whose value is one of several dataclasses, checked by the annotations of its fields.

columns_=ListOf(OneOf(Numbers, Levels, Dates))
probabilities_=OneOf(ClassProbabilities, curves=OneOf(Sigmoids, IsotonicCurves))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, get_type_hints

import numpy as np

from mercer.estimators.fitting.pipeline.state import AttributeSpec, Predicate, expect
from mercer.kernels import Kernel
from mercer.samples.arrays import Floats, Indices


@dataclass(frozen=True, kw_only=True)
class _OneOf(AttributeSpec):
    """Spec that `OneOf` returns."""

    classes: Mapping[str, type]
    parts: Mapping[str, AttributeSpec]
    or_none: bool

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        """Return what a file stores for the attribute, by the names of its entries."""
        if self.or_none and value is None:
            return {name: None}
        entries: dict[str, Any] = {"kind": _stored_name(type(value))}
        defaults = _defaults_of_added(type(value))
        for part, spec in self._specs(type(value)).items():
            if part not in defaults or getattr(value, part) != defaults[part]:
                entries |= spec.to_plain(part, getattr(value, part))
        return {name: entries}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """Build the attribute's value from what a file stores for it."""
        entries = parts[name]
        if self.or_none and entries is None:
            return None
        expect(isinstance(entries, dict) and entries.get("kind") in self.classes, f"{name} is of no known kind")
        cls = self.classes[entries["kind"]]
        specs = self._specs(cls)
        entries = _defaults_of_added(cls) | entries
        expect(entries.keys() == {"kind", *specs}, f"{entries['kind']} is written with {', '.join(specs)}")
        values = {part: spec.from_plain(part, entries, model) for part, spec in specs.items()}
        _check_parts(name, specs, values, model)
        return cls(**values)

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        if self.or_none and value is None:
            return
        expect(self.classes.get(_stored_name(type(value))) is type(value), f"{name} is of no known kind")
        _check_parts(name, self._specs(type(value)), vars(value), model)
        if hasattr(value, "check"):
            value.check(name)

    def _specs(self, cls: Any) -> dict[str, AttributeSpec]:
        """Return the specs of the fields of one of the dataclasses, in their order."""
        hints = get_type_hints(cls)
        return {
            field.name: self.parts[field.name] if field.name in self.parts else _spec_by_annotation(hints[field.name])
            for field in fields(cls)
        }


def OneOf(*classes: type, or_none: bool = False, required: bool = False, **parts: AttributeSpec) -> AttributeSpec:
    """Return the spec of a value of one of several dataclasses.

    In a file it is a dictionary of its fields with the name of its class under "kind". Each field is checked against
    its annotation before the value is created; `parts` are specs of fields whose annotation does not suffice. If a
    dataclass has a method `check(name)`, it is called too.
    """
    return _OneOf(classes={_stored_name(cls): cls for cls in classes}, parts=parts, or_none=or_none, required=required)


def added_later(default: Any) -> Any:
    """Return a dataclass field that older files lack, and that files hold only where it differs from its default."""
    return field(default=default, metadata={"added later": True})


def _defaults_of_added(cls: Any) -> dict[str, Any]:
    """Return the names and defaults of the fields that `added_later` made."""
    return {attribute.name: attribute.default for attribute in fields(cls) if "added later" in attribute.metadata}


def _stored_name(cls: type) -> str:
    """Return the name of a dataclass in files: its STORED_NAME, or the name of the class."""
    return str(getattr(cls, "STORED_NAME", cls.__name__))


def _check_parts(name: str, specs: Mapping[str, AttributeSpec], values: Mapping[str, Any], model: Any) -> None:
    """Check each field of a value by its spec."""
    for part, spec in specs.items():
        spec.check(f"{part} of {name}", values[part], model)


def _spec_by_annotation(hint: Any) -> AttributeSpec:
    """Return the spec of a field with this annotation; a field that is `Any` is not checked here."""
    if hint is Any:
        return AttributeSpec()
    if isinstance(hint, type) and is_dataclass(hint):
        return OneOf(hint)
    type_name, holds = _ANNOTATIONS[hint]
    return Predicate(must=f"be {type_name}", holds=lambda value, _: holds(value))


def _is_finite_float(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _is_int_list(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"


# Annotations of fields: their names in messages, and their tests. `Any` is for values that a check of the model covers.
_ANNOTATIONS: Final[dict[Any, tuple[str, Callable[[Any], bool]]]] = {
    str: ("str", lambda value: type(value) is str),
    bool: ("bool", lambda value: type(value) is bool),
    int: ("int", lambda value: type(value) is int and value >= 0),
    float: ("float", _is_finite_float),
    tuple[str, ...]: (
        "tuple[str, ...]",
        lambda value: isinstance(value, tuple) and all(type(item) is str for item in value),
    ),
    tuple[float, ...]: (
        "tuple[float, ...]",
        lambda value: isinstance(value, tuple) and all(map(_is_finite_float, value)),
    ),
    Floats: ("Floats", lambda value: isinstance(value, np.ndarray) and value.dtype == np.float64),
    Indices: ("Indices", _is_int_list),
    Indices | None: ("Indices or None", lambda value: value is None or _is_int_list(value)),
    Kernel: ("Kernel", lambda value: isinstance(value, Kernel)),
}
