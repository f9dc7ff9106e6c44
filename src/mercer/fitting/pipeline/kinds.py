"""The kinds of attributes that a fit leaves: how each goes to a file and back, and what must be true of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from mercer.arrays import is_sparse
from mercer.certificates.certificate import Certificate
from mercer.certificates.table import CertificateTable
from mercer.data.labels import n_planes
from mercer.errors import ModelFormatError
from mercer.expansion import Expansion
from mercer.kernels import Kernel

Size = str | int | None
# Of a model whose prediction is an expansion, and of one that keeps w.
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
    # Coefficients of a support vector of several classes: one against each other class, or one for every class.
    "planes per vector": lambda model: (
        len(model.classes_) if len(model.classes_) > 2 and has_function_per_class(model) else len(model.classes_) - 1
    ),
    # Numbers in an iterate of stochastic descent; of w, one for each feature, and one more if fitted with a bias.
    "directions": lambda model: (
        model._expansion_.coefficients.shape[0]
        if hasattr(model, "_expansion_")
        else model.n_features_in_ + int(np.shape(model._theta_)[-1:] == (model.n_features_in_ + 1,))
    ),
}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How an attribute goes to a file and back, and what must be true of it."""

    required: bool = False
    needs: str = ""  # another attribute, without which there must not be this one
    unless: str = ""  # another attribute, which a model may have instead of this one

    def keys(self, name: str) -> tuple[str, ...]:
        """The names that a file knows it by."""
        return (name,)

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        """What a file holds, by these names."""
        return {name: value}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """The inverse."""
        return parts[name]

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError if `value` cannot be this attribute of the model."""


def fitted(*others: Mapping[str, Kind], **kinds: Kind) -> Mapping[str, Kind]:
    """The declaration of a class: its fitted attributes by name, those of other declarations first."""
    return MappingProxyType({name: kind for one in (*others, kinds) for name, kind in one.items()})


@dataclass(frozen=True, init=False)
class Array(Kind):
    """Finite numbers of a shape, float64; `sparse` ones are a CSR matrix, which may be float32."""

    shape: tuple[Size, ...]
    sparse: bool
    nan: bool  # NaN says that there is no number
    flat: bool  # a matrix of one output may be a list

    def __init__(
        self, *shape: Size, sparse: bool = False, nan: bool = False, flat: bool = False, **whether: Any
    ) -> None:
        super().__init__(**whether)
        for name, value in (("shape", shape), ("sparse", sparse), ("nan", nan), ("flat", flat)):
            object.__setattr__(self, name, value)

    def check(self, name: str, value: Any, model: Any) -> None:
        wanted = [_size(size, model) for size in self.shape]
        if self.flat and getattr(value, "ndim", 0) == 1:
            wanted = wanted[:1]
        told = " × ".join("any" if size is None else str(size) for size in wanted)
        precise = is_sparse(value) or getattr(value, "dtype", None) == np.float64
        expect(precise and _is_numbers(value, wanted, self.sparse, self.nan), f"{name} must be {told} numbers")


@dataclass(frozen=True)
class Places(Kind):
    """Indices of training samples, of which there are as many as `below` says, or any."""

    below: Size = None

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(_is_indices(value, _size(self.below, model)), f"{name} must be indices of training samples")


@dataclass(frozen=True)
class Counts(Kind):
    """How many of something there are in each of some groups; they add up to `total`."""

    groups: Size = None
    total: Size = None

    def check(self, name: str, value: Any, model: Any) -> None:
        groups, total = _size(self.groups, model), _size(self.total, model)
        expect(_is_indices(value, total + 1 if isinstance(total, int) else total), f"{name} must hold counts")
        expect(len(value) == groups, f"{name} must have one count for each of {groups} groups")
        expect(int(value.sum()) == total, f"{name} must add up to {total}")


@dataclass(frozen=True)
class Count(Kind):
    """A number of something: of steps, perhaps of each problem's."""

    several: bool = False

    def check(self, name: str, value: Any, model: Any) -> None:
        listed = self.several and _is_indices(value, None)
        expect(listed or (type(value) is int and 0 <= value < 2**63), f"{name} must be a count")


@dataclass(frozen=True)
class Number(Kind):
    """A finite number; several outputs may have one each."""

    or_none: bool = False
    per_output: bool = False

    def check(self, name: str, value: Any, model: Any) -> None:
        if self.per_output and isinstance(value, np.ndarray):
            Array("outputs").check(name, value, model)
            return
        whole = isinstance(value, float) and bool(np.isfinite(value))
        expect(whole or (self.or_none and value is None), f"{name} must be a finite number")


@dataclass(frozen=True)
class Flag(Kind):
    """True or False."""

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(isinstance(value, bool), f"{name} must be true or false")


@dataclass(frozen=True)
class Text(Kind):
    """A word or a sentence."""

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(isinstance(value, str), f"{name} must be text")


@dataclass(frozen=True)
class Names(Kind):
    """The names of the features."""

    def check(self, name: str, value: Any, model: Any) -> None:
        whole = isinstance(value, np.ndarray) and value.ndim == 1 and all(isinstance(item, str) for item in value)
        expect(whole, f"{name} must be a list of names")


@dataclass(frozen=True)
class Shape(Kind):
    """The shape of the training samples."""

    def check(self, name: str, value: Any, model: Any) -> None:
        whole = isinstance(value, tuple) and len(value) > 0 and all(type(n) is int and n >= 0 for n in value)
        expect(whole, f"{name} must be the shape of the training samples")


@dataclass(frozen=True)
class Parameters(Kind):
    """Values of parameters by name."""

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(isinstance(value, dict) and all(isinstance(key, str) for key in value), f"{name} must be parameters")


@dataclass(frozen=True)
class Labels(Kind):
    """The classes, with as many outputs as there are planes between them; None asks the model for which."""

    against_rest: bool | None = True

    def check(self, name: str, value: Any, model: Any) -> None:
        whole = isinstance(value, np.ndarray) and value.ndim == 1 and len(value) > 1
        expect(whole, "there must be two classes")
        against_rest = has_function_per_class(model) if self.against_rest is None else self.against_rest
        wanted, found = n_planes(len(value), against_rest), _size("outputs", model)
        expect(found == wanted, f"{len(value)} classes make {wanted} outputs, not {found}")


@dataclass(frozen=True)
class Vectors(Kind):
    """Samples, as many as `count` says: numbers, strings, or None or nothing where a kernel matrix was given."""

    count: Size = None

    def check(self, name: str, value: Any, model: Any) -> None:
        if value is None or (isinstance(value, np.ndarray) and value.size == 0):
            return
        _check_vectors(name, value, _size(self.count, model), _size("features", model))


@dataclass(frozen=True)
class BoundKernel(Kind):
    """A kernel with its parameters as numbers."""

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(isinstance(value, Kernel), f"its {name} is {value!r:.60}")


@dataclass(frozen=True)
class Proof(Kind):
    """A certificate."""

    def keys(self, name: str) -> tuple[str, ...]:
        return name, f"{name}.parts"

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value.parts, CertificateTable):
            return {name: value.to_dict()}
        plain = {**replace(value, parts=(), b=()).to_dict(), "parts": value.parts.told()}
        return {name: plain, f"{name}.parts": value.parts.to_array()}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        plain, numbers = parts[name], parts.get(f"{name}.parts")
        if numbers is None:
            return Certificate.from_dict(plain)
        table = CertificateTable.from_file(numbers, plain["parts"])
        return replace(Certificate.from_dict({**plain, "parts": ()}), parts=table, b=tuple(table.b.ravel().tolist()))


@dataclass(frozen=True)
class Function(Kind):
    """The expansion that predicts; its kernel is the model's."""

    def keys(self, name: str) -> tuple[str, ...]:
        return tuple(f"expansion.{part.name}" for part in fields(Expansion) if part.name != "kernel")

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {key: getattr(value, key.partition(".")[2]) for key in self.keys(name)}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        BoundKernel().check("kernel_", getattr(model, "kernel_", None), model)
        return Expansion(kernel=model.kernel_, **{key.partition(".")[2]: value for key, value in parts.items()})

    def check(self, name: str, value: Any, model: Any) -> None:
        b, coefficients = value.b, value.coefficients
        expect(_is_numbers(b, [None]) and len(b) > 0, "b must be a list of finite numbers")
        whole = _is_numbers(coefficients, [None, len(b)], sparse=True)
        expect(whole, f"the coefficients must be a matrix of finite numbers with {len(b)} columns, one for each b")
        count, accepts = coefficients.shape[0], value.kernel.accepts
        if accepts == "gram":
            expect(value.vectors is None, "a precomputed kernel has no support vectors")
            expect(_is_indices(value.columns, value.n_columns), "columns must be indices of training samples")
            expect(len(value.columns) == count, f"there are {len(value.columns)} columns for {count} coefficients")
            return
        expect(value.columns is None, "only a precomputed kernel has columns")
        expect(
            (accepts == "sequences") == isinstance(value.vectors, list), f"{value.kernel} does not take such vectors"
        )
        _check_vectors("the support vectors", value.vectors, count, _size("features", model))


@dataclass(frozen=True, init=False)
class Record(Kind):
    """A value of a dataclass, or several of them in a tuple, as a dictionary of its fields."""

    made_by: Callable[..., Any]
    parts: tuple[tuple[str, Kind], ...]
    several: bool

    def __init__(self, made_by: Callable[..., Any], several: bool = False, **parts: Kind) -> None:
        super().__init__()
        for name, value in (("made_by", made_by), ("parts", tuple(parts.items())), ("several", several)):
            object.__setattr__(self, name, value)

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {name: [_public(one) for one in value] if self.several else _public(value)}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        if self.several:
            return tuple(self.made_by(**one) for one in parts[name])
        return self.made_by(**parts[name])

    def check(self, name: str, value: Any, model: Any) -> None:
        for one in value if self.several else (value,):
            for part, kind in self.parts:
                kind.check(f"{name}.{part}", getattr(one, part), model)
            if hasattr(one, "check"):
                one.check(name)


def _public(value: Any) -> dict[str, Any]:
    """The fields of a record; what begins with an underscore, such as training samples, is not for files."""
    return {name: part for name, part in vars(value).items() if not name.startswith("_")}


@dataclass(frozen=True)
class Unsaved(Kind):
    """What a later fit can start from: it holds the training samples, and no file does."""

    def keys(self, name: str) -> tuple[str, ...]:
        return ()

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {}


def _size(size: Size, model: Any) -> Any:
    """A size in numbers; None where any will do, −1, which nothing has, where the model does not tell."""
    if not isinstance(size, str):
        return size
    found = _SIZES[size](model)
    return found if type(found) is int else -1


def _is_numbers(value: Any, shape: list[Any], sparse: bool = False, nan: bool = False) -> bool:
    data = value.data if sparse and is_sparse(value) else value
    if not (isinstance(data, np.ndarray) and data.dtype.kind == "f" and value.ndim == len(shape)):
        return False
    fits = all(wanted is None or found == wanted for found, wanted in zip(value.shape, shape, strict=True))
    return fits and bool((np.isfinite(data) | (nan & np.isnan(data))).all())


def _is_indices(value: Any, end: Any) -> bool:
    if not (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"):
        return False
    return bool((value >= 0).all()) and (end is None or (type(end) is int and bool((value < end).all())))


def _check_vectors(name: str, value: Any, count: Any, n_features: Any) -> None:
    if isinstance(value, list):
        expect(all(isinstance(text, str) for text in value), f"{name} must be strings")
        expect(count is None or len(value) == count, f"there must be {count} of {name}, not {len(value)}")
    else:
        told = f"{name} must be a matrix of finite numbers, {count} × {n_features}"
        expect(_is_numbers(value, [count, n_features], sparse=True), told)


def has_function_per_class(model: Any) -> bool:
    """Whether several classes have a function each, rather than each pair; of the fit, whatever was set since."""
    known = vars(model)
    return bool(known["_per_class_"] if "_per_class_" in known else known.get("multiclass", "ovo") != "ovo")


def expect(holds: bool, otherwise: str) -> None:
    """Raise ModelFormatError unless it holds."""
    if not holds:
        raise ModelFormatError(f"this is no fitted machine: {otherwise}")
