"""Declarations of fitted attributes: one `AttributeSpec` for each attribute that a fit sets.

    class EnclosingBall(Machine):
        _FITTED = fitted(radius_=Number(), centre_=Array("features"), kernel_=BoundKernel(required=True))

A class adds to the declarations of its ancestors. A size is a number, a name of `_SIZES` whose value comes from the
model, or None for any size. A `required` attribute must be in every file. The others are set only by some fits, or are
missing in models that came from another program.

The declaration is written once, in the class that has the attribute, and everything else reads it:

    pipeline/class_spec.py            ClassSpec: _FITTED of a class and its ancestors, with checks of several attributes
    files/mercer_file/model_file.py   the attributes that a file holds and may set, and their form in the file
    files/scikit/table.py             ClassSpecs of scikit-learn's classes, which cannot carry a declaration
    pickles                           the attributes that are not pickled (`Unsaved`), and the arrays made read-only
    compression, tests of fits        the attributes that a machine must have, and check_state after a fit

`to_plain` and `from_plain` convert a value to the entries of a file and back: numbers, text, lists, dictionaries,
arrays, kernels and estimators, which files/mercer_file/description.py writes as JSON. A new estimator therefore needs
no code in files/. Checksums detect damaged files, and the checks here reject forged ones: no file can set an attribute
that is not declared, and all counts and shapes that prediction relies on have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.table import CertificateTable
from mercer.kernels import Kernel
from mercer.places.expansion import Expansion
from mercer.runtime.errors import ModelFormatError
from mercer.samples.arrays import is_sparse
from mercer.samples.labels import n_planes

Size = str | int | None
# Named sizes of a fitted model.
_SIZES: Final[dict[str, Callable[[Any], Any]]] = {
    "features": lambda model: getattr(model, "n_features_in_", None),
    "classes": lambda model: len(model.classes_),
    "outputs": lambda model: (
        len(model._expansion_.b)
        if hasattr(model, "_expansion_")
        else n_planes(len(model.classes_), against_rest=True)
        if hasattr(model, "classes_")
        else 1
    ),
    "vectors": lambda model: model._expansion_.coefficients.shape[0],
    "support": lambda model: len(model.support_),
    "samples": lambda model: model.shape_fit_[0],
    # Coefficients per support vector: one against each other class, or one for every class.
    "planes per vector": lambda model: (
        len(model.classes_) if len(model.classes_) > 2 and has_function_per_class(model) else len(model.classes_) - 1
    ),
    # Length of an iterate of stochastic descent; for w, the number of features, plus 1 if fitted with a bias.
    "directions": lambda model: (
        model._expansion_.coefficients.shape[0]
        if hasattr(model, "_expansion_")
        else model.n_features_in_ + int(np.shape(model._theta_)[-1:] == (model.n_features_in_ + 1,))
    ),
}


@dataclass(frozen=True, kw_only=True)
class AttributeSpec:
    """Spec of a fitted attribute: its form in a file, and the checks that a value must pass.

    The base class accepts any value unchanged; a check of the whole class has to validate it.
    """

    required: bool = False
    needs: str = ""  # another attribute that must be present if this one is
    unless: str = ""  # another attribute that a model may have instead of this one
    needed_by: str = ""  # a parameter that cannot be true if this attribute is absent or None
    kept: bool = False  # True if the attribute stays valid after `mercer.compress` has replaced the vectors

    @property
    def holds_estimators(self) -> bool:
        """Return True if the value is an estimator, or a list of estimators, that predicts for this model."""
        return False

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the names of the attribute's entries in a file."""
        return (name,)

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        """Return what a file stores for the attribute, by the names of its entries."""
        return {name: value}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """Build the attribute's value from what a file stores for it; the inverse of `to_plain`."""
        return parts[name]

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError if `value` cannot be this attribute of the model."""


def fitted(*others: Mapping[str, AttributeSpec], **specs: AttributeSpec) -> Mapping[str, AttributeSpec]:
    """Declare the fitted attributes of a class by name, those of other declarations first."""
    return MappingProxyType({name: spec for group in (*others, specs) for name, spec in group.items()})


@dataclass(frozen=True, kw_only=True)
class _Array(AttributeSpec):
    """Spec that `Array` returns."""

    shape: tuple[Size, ...]
    sparse: bool = False
    nan: bool = False
    flat: bool = False
    kinds: str = ""
    single: bool = False
    or_none: bool = False

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        if (self.or_none and value is None) or (self.single and is_number(value)):
            return
        shape_of_model = [_size(size, model) for size in self.shape]
        if self.flat and getattr(value, "ndim", 0) == 1:
            shape_of_model = shape_of_model[:1]
        if self.kinds:
            is_valid = (
                isinstance(value, np.ndarray) and value.dtype.kind in self.kinds and _has_shape(value, shape_of_model)
            )
        else:
            is_float64 = is_sparse(value) or getattr(value, "dtype", None) == np.float64
            is_valid = is_float64 and _is_numbers(value, shape_of_model, self.sparse, self.nan)
        shape = " × ".join("any" if size is None else str(size) for size in shape_of_model)
        expect(is_valid, f"{name} must be {shape} {'values' if self.kinds else 'numbers'}")


def Array(*shape: Size, **options: Any) -> AttributeSpec:
    """Return the spec of an array of finite float64 numbers of a given shape.

    Options relax it: `sparse` allows a CSR matrix, which may be float32; `nan` allows NaN for missing numbers; `flat`
    allows a one-dimensional array for a single output; `single` allows one number instead of an array, and `or_none`
    None; `kinds` allows any values with dtypes of these kinds, for attributes of scikit-learn's estimators.
    """
    return _Array(shape=shape, **options)


@dataclass(frozen=True)
class IndexArray(AttributeSpec):
    """Indices, of training samples or anything else; all must be smaller than the size `below`, if it is given."""

    below: Size = None

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        end = _size(self.below, model)
        expect(_is_indices(value, end), f"{name} must be indices" + ("" if end is None else f" below {end}"))


@dataclass(frozen=True)
class Counts(AttributeSpec):
    """Numbers of items in groups, which must add up to `total`."""

    groups: Size = None
    total: Size = None

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        groups, total = _size(self.groups, model), _size(self.total, model)
        expect(_is_indices(value, total + 1 if isinstance(total, int) else total), f"{name} must hold counts")
        expect(len(value) == groups, f"{name} must have one count for each of {groups} groups")
        expect(int(value.sum()) == total, f"{name} must add up to {total}")


@dataclass(frozen=True)
class Number(AttributeSpec):
    """Finite float; with `per_output`, also an array with one for each output. Without `finite`, any real number."""

    or_none: bool = False
    per_output: bool = False
    finite: bool = True

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        if self.per_output and isinstance(value, np.ndarray):
            Array("outputs").check(name, value, model)
            return
        is_valid = isinstance(value, float) and bool(np.isfinite(value)) if self.finite else is_number(value)
        kind = "a finite number" if self.finite else "a number"
        expect(is_valid or (self.or_none and value is None), f"{name} must be {kind}")


@dataclass(frozen=True, kw_only=True)
class Predicate(AttributeSpec):
    """Value that satisfies a predicate `holds(value, model)`; `must` completes the message "… must …"."""

    must: str
    holds: Callable[[Any, Any], bool]

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(self.holds(value, model), f"{name} must {self.must}")


Flag = partial(Predicate, must="be true or false", holds=lambda value, _: isinstance(value, bool))
Text = partial(Predicate, must="be text", holds=lambda value, _: isinstance(value, str))
BoundKernel = partial(Predicate, must="be a kernel", holds=lambda value, _: isinstance(value, Kernel))
Parameters = partial(
    Predicate, must="be parameters", holds=lambda value, _: isinstance(value, dict) and _is_text(value)
)
Shape = partial(
    Predicate,
    must="be the shape of the training samples",
    holds=lambda value, _: isinstance(value, tuple) and value != () and all(type(n) is int and n >= 0 for n in value),
)
Names = partial(
    Predicate,
    must="have a name for each feature",
    holds=lambda value, model: getattr(value, "shape", None) == (_size("features", model),) and _is_text(value),
)


def Count(or_array: bool = False, **options: Any) -> AttributeSpec:
    """Return the spec of a count, such as a number of steps; with `or_array`, also of an array of counts."""
    return Predicate(
        must="be a count", holds=lambda n, _: is_count(n) or (or_array and _is_indices(n, None)), **options
    )


@dataclass(frozen=True)
class ListOf(AttributeSpec):
    """List whose items have one spec; with `or_none`, items may be None."""

    spec: AttributeSpec
    count: Size = None
    or_none: bool = False

    @property
    def holds_estimators(self) -> bool:
        return self.spec.holds_estimators

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {name: [self.spec.to_plain(name, item)[name] for item in value]}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """Build the attribute's value from what a file stores for it."""
        expect(isinstance(parts[name], list), f"{name} must be a list")
        return [self.spec.from_plain(name, {name: item}, model) for item in parts[name]]

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        count = _size(self.count, model)
        is_valid = isinstance(value, list) and (count is None or len(value) == count)
        expect(is_valid, f"{name} must be a list" + ("" if count is None else f" of {count}"))
        for number, item in enumerate(value):
            if not (self.or_none and item is None):
                self.spec.check(f"{name}[{number}]", item, model)


@dataclass(frozen=True)
class Labels(AttributeSpec):
    """Class labels, whose number must match the number of outputs."""

    against_rest: bool | None = True  # one output per class; False: one per pair; None: as the model was fitted
    without_outputs: bool = False  # True for scikit-learn's models, which have no outputs to compare with

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        is_valid = isinstance(value, np.ndarray) and value.ndim == 1 and len(value) > 1
        expect(is_valid, f"{name} must be two classes or more")
        if self.without_outputs:
            return
        against_rest = has_function_per_class(model) if self.against_rest is None else self.against_rest
        expected_size, size = n_planes(len(value), against_rest), _size("outputs", model)
        expect(size == expected_size, f"{len(value)} classes make {expected_size} outputs, not {size}")


@dataclass(frozen=True)
class Vectors(AttributeSpec):
    """Samples, `count` in number: a matrix or strings, or None or an empty array for a precomputed kernel."""

    count: Size = None

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        if value is None or (isinstance(value, np.ndarray) and value.size == 0):
            return
        check_vectors(name, value, _size(self.count, model), _size("features", model))


@dataclass(frozen=True)
class Proof(AttributeSpec):
    """Certificate of optimality."""

    def keys(self, name: str) -> tuple[str, ...]:
        return name, f"{name}.parts"

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        """Return what a file stores for the attribute, by the names of its entries."""
        if not isinstance(value.parts, CertificateTable):
            return {name: value.to_dict()}
        entries = {**replace(value, parts=(), b=()).to_dict(), "parts": value.parts.as_dict()}
        return {name: entries, f"{name}.parts": value.parts.to_array()}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """Build the attribute's value from what a file stores for it."""
        entries, numbers = parts[name], parts.get(f"{name}.parts")
        if numbers is None:
            return Certificate.from_dict(entries)
        table = CertificateTable.from_file(numbers, entries["parts"])
        return replace(Certificate.from_dict({**entries, "parts": ()}), parts=table, b=tuple(table.b.ravel().tolist()))


@dataclass(frozen=True)
class KernelExpansion(AttributeSpec):
    """Kernel expansion that predicts; its kernel is `kernel_` of the model."""

    def keys(self, name: str) -> tuple[str, ...]:
        return tuple(f"expansion.{part.name}" for part in fields(Expansion) if part.name != "kernel")

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {key: getattr(value, key.partition(".")[2]) for key in self.keys(name)}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """Build the attribute's value from what a file stores for it."""
        BoundKernel().check("kernel_", getattr(model, "kernel_", None), model)
        return Expansion(kernel=model.kernel_, **{key.partition(".")[2]: value for key, value in parts.items()})

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        b, coefficients = value.b, value.coefficients
        expect(_is_numbers(b, [None]) and len(b) > 0, "b must be a list of finite numbers")
        is_valid = _is_numbers(coefficients, [None, len(b)], sparse=True)
        expect(is_valid, f"the coefficients must be a matrix of finite numbers with {len(b)} columns, one for each b")
        count, accepts = coefficients.shape[0], value.kernel.accepts
        if accepts == "gram":
            expect(value.vectors is None, "a precomputed kernel has no support vectors")
            expect(_is_indices(value.columns, value.n_columns), "columns must be indices of training samples")
            expect(len(value.columns) == count, f"there are {len(value.columns)} columns for {count} coefficients")
            return
        expect(value.columns is None, "only a precomputed kernel has columns")
        if (accepts == "sequences") != isinstance(value.vectors, list):  # no expect(): the message's repr is slow
            raise ModelFormatError(f"{value.kernel} does not take such vectors")
        check_vectors("the support vectors", value.vectors, count, _size("features", model))


@dataclass(frozen=True)
class NestedEstimator(AttributeSpec):
    """Fitted estimator with the given `methods`, or one of the `words` in its place."""

    methods: tuple[str, ...] = ()
    words: tuple[str | None, ...] = ()

    @property
    def holds_estimators(self) -> bool:
        return True

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        if (value is None or isinstance(value, str)) and value in self.words:
            return
        expect(hasattr(value, "get_params") and not isinstance(value, type), f"{name} must be an estimator")
        for method in self.methods:
            expect(hasattr(value, method), f"{name} is a {type(value).__name__}, which cannot {method}")


@dataclass(frozen=True, kw_only=True)
class _Record(AttributeSpec):
    """Spec that `Record` returns."""

    made_by: Callable[..., Any]
    parts: Mapping[str, AttributeSpec]
    is_tuple: bool

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {name: [_public(item) for item in value] if self.is_tuple else _public(value)}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """Build the attribute's value from what a file stores for it."""
        if self.is_tuple:
            return tuple(self.made_by(**item) for item in parts[name])
        return self.made_by(**parts[name])

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        for item in value if self.is_tuple else (value,):
            for part, spec in self.parts.items():
                spec.check(f"{name}.{part}", getattr(item, part), model)
            if hasattr(item, "check"):
                item.check(name)


def Record(made_by: Callable[..., Any], is_tuple: bool = False, **parts: AttributeSpec) -> AttributeSpec:
    """Return the spec of a value of a dataclass, with `is_tuple` of a tuple of them; in a file, each is a dictionary.

    `parts` are specs of fields whose sizes depend on the model. If the dataclass has a method `check(name)`, it is
    called too.
    """
    return _Record(made_by=made_by, is_tuple=is_tuple, parts=parts)


def _public(value: Any) -> dict[str, Any]:
    """Return the fields of a record, without private ones, such as training samples, which files do not hold."""
    return {name: part for name, part in vars(value).items() if not name.startswith("_")}


@dataclass(frozen=True)
class Unsaved(AttributeSpec):
    """Attribute that no file holds: it contains training samples, or follows from the other attributes.

    Pickles hold it unless `pickled` is False.
    """

    pickled: bool = True

    def keys(self, name: str) -> tuple[str, ...]:
        return ()

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {}


def _size(size: Size, model: Any) -> Any:
    """Return a size as a number; a name refers to `_SIZES` or to an attribute that is a count or has that length.

    None means any size; −1, which no array has, means that the model does not determine the size.
    """
    if not isinstance(size, str):
        return size
    value: Any = _SIZES[size](model) if size in _SIZES else getattr(model, size, None)
    if is_count(value):
        return int(value)
    return len(value) if isinstance(value, list) or getattr(value, "ndim", 0) == 1 else -1


def is_count(value: Any, below: int = 2**63) -> bool:
    """Return True for an integer of at least 0 and less than `below`."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < below


def is_number(value: Any) -> bool:
    """Return True for a real number, including NaN and infinity."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _has_shape(value: Any, shape: list[Any]) -> bool:
    """Return whether an array has this shape, in which None stands for any size."""
    return value.ndim == len(shape) and all(
        expected is None or size == expected for size, expected in zip(value.shape, shape, strict=True)
    )


def _is_numbers(value: Any, shape: list[Any], sparse: bool = False, nan: bool = False) -> bool:
    """Return whether the value is a float array of this shape, finite except for NaN if `nan` allows it."""
    data = value.data if sparse and is_sparse(value) else value
    if not (isinstance(data, np.ndarray) and data.dtype.kind == "f" and _has_shape(value, shape)):
        return False
    return bool((np.isfinite(data) | (nan & np.isnan(data))).all())


def _is_indices(value: Any, end: Any) -> bool:
    """Return whether the value is an array of integers from 0 to `end` − 1."""
    if not (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"):
        return False
    return bool((value >= 0).all()) and (end is None or (type(end) is int and bool((value < end).all())))


def _is_text(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def check_vectors(name: str, value: Any, count: Any, n_features: Any) -> None:
    """Raise ModelFormatError unless `value` is `count` strings or a matrix of `count` finite samples."""
    if isinstance(value, list):
        expect(_is_text(value), f"{name} must be strings")
        expect(count is None or len(value) == count, f"there must be {count} of {name}, not {len(value)}")
    else:
        message = f"{name} must be a matrix of finite numbers, {count} × {n_features}"
        expect(_is_numbers(value, [count, n_features], sparse=True), message)


def has_function_per_class(model: Any) -> bool:
    """Return True if the fit has a function for each class, not for each pair, whatever `multiclass` is now."""
    attributes = vars(model)
    return bool(
        attributes["_per_class_"] if "_per_class_" in attributes else attributes.get("multiclass", "ovo") != "ovo"
    )


def expect(holds: bool, message: str) -> None:
    """Raise ModelFormatError with this message unless `holds` is True."""
    if not holds:
        raise ModelFormatError(message)


def best_estimator_of(model: Any) -> Any:
    """Return the best estimator of a fitted search (TunedSVC or scikit-learn's), and any other model as it is."""
    return getattr(model, "__dict__", {}).get("best_estimator_", model)
