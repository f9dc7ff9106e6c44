"""What a fit leaves: each estimator declares its fitted attributes, and files and checks go by that declaration.

    class Ball(Machine):
        FITTED = fitted(radius_=Number(), centre_=Array("features"))

A class adds to what its ancestors declare. The name of a size stands for a number that the model itself tells; None
stands for any (`_SIZES`). What is `required` must be in every file. The rest is what only some
fits leave, or models that came from another program lack.

Checksums tell damage from health, not an honest writer from a dishonest one. These checks are for the second: no file
can set an attribute that is not declared, and every count and shape that prediction relies on has to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import freeze, is_sparse
from mercer.certificates.certificate import Certificate
from mercer.certificates.table import CertificateTable
from mercer.data.labels import n_planes
from mercer.errors import ModelFormatError
from mercer.kernels import Kernel
from mercer.rkhs import Expansion
from mercer.runtime.refitting import fitted_names

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


@dataclass(frozen=True, kw_only=True)
class _Array(Kind):
    shape: tuple[Size, ...]
    sparse: bool = False
    nan: bool = False
    flat: bool = False
    kinds: str = ""
    single: bool = False
    or_none: bool = False

    def check(self, name: str, value: Any, model: Any) -> None:
        if (self.or_none and value is None) or (self.single and is_number(value)):
            return
        wanted = [_size(size, model) for size in self.shape]
        if self.flat and getattr(value, "ndim", 0) == 1:
            wanted = wanted[:1]
        if self.kinds:
            whole = isinstance(value, np.ndarray) and value.dtype.kind in self.kinds and _has_shape(value, wanted)
        else:
            precise = is_sparse(value) or getattr(value, "dtype", None) == np.float64
            whole = precise and _is_numbers(value, wanted, self.sparse, self.nan)
        told = " × ".join("any" if size is None else str(size) for size in wanted)
        expect(whole, f"{name} must be {told} {'values' if self.kinds else 'numbers'}")


def Array(*shape: Size, **options: Any) -> Kind:
    """Finite numbers of a shape, float64, of which the `options` allow more.

    `sparse` ones are a CSR matrix, which may be float32. NaN says that there is no number (`nan`). A matrix of one
    output may be a list (`flat`), or be one number for all (`single`), or None (`or_none`). With `kinds`, it may hold
    any values of dtypes of these kinds: what scikit-learn leaves.
    """
    return _Array(shape=shape, **options)


@dataclass(frozen=True)
class Places(Kind):
    """Indices, of training samples or of something else, of which there are as many as `below` says, or any."""

    below: Size = None

    def check(self, name: str, value: Any, model: Any) -> None:
        end = _size(self.below, model)
        expect(_is_indices(value, end), f"{name} must be indices" + ("" if end is None else f" below {end}"))


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
class Number(Kind):
    """A finite number; several outputs may have one each. Not `finite`, it may be whole, NaN or infinite."""

    or_none: bool = False
    per_output: bool = False
    finite: bool = True

    def check(self, name: str, value: Any, model: Any) -> None:
        if self.per_output and isinstance(value, np.ndarray):
            Array("outputs").check(name, value, model)
            return
        whole = isinstance(value, float) and bool(np.isfinite(value)) if self.finite else is_number(value)
        told = "a finite number" if self.finite else "a number"
        expect(whole or (self.or_none and value is None), f"{name} must be {told}")


@dataclass(frozen=True, kw_only=True)
class Tested(Kind):
    """Values for which something `holds`, of the value and the model."""

    must: str
    holds: Callable[[Any, Any], bool]

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(self.holds(value, model), f"{name} must {self.must}")


Flag = partial(Tested, must="be true or false", holds=lambda value, _: isinstance(value, bool))
Text = partial(Tested, must="be text", holds=lambda value, _: isinstance(value, str))
BoundKernel = partial(Tested, must="be a kernel", holds=lambda value, _: isinstance(value, Kernel))
Parameters = partial(Tested, must="be parameters", holds=lambda value, _: isinstance(value, dict) and _is_text(value))
Shape = partial(
    Tested,
    must="be the shape of the training samples",
    holds=lambda value, _: isinstance(value, tuple) and value != () and all(type(n) is int and n >= 0 for n in value),
)
Names = partial(
    Tested,
    must="have a name for each feature",
    holds=lambda value, model: getattr(value, "shape", None) == (_size("features", model),) and _is_text(value),
)


def Count(several: bool = False, **whether: Any) -> Kind:
    """A number of something: of steps, perhaps of each problem's."""
    return Tested(must="be a count", holds=lambda n, _: is_count(n) or (several and _is_indices(n, None)), **whether)


@dataclass(frozen=True)
class ListOf(Kind):
    """A list, each item of a kind, or None if that is allowed."""

    kind: Kind
    count: Size = None
    or_none: bool = False

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {name: [self.kind.to_plain(name, item)[name] for item in value]}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        expect(isinstance(parts[name], list), f"{name} must be a list")
        return [self.kind.from_plain(name, {name: item}, model) for item in parts[name]]

    def check(self, name: str, value: Any, model: Any) -> None:
        count = _size(self.count, model)
        whole = isinstance(value, list) and (count is None or len(value) == count)
        expect(whole, f"{name} must be a list" + ("" if count is None else f" of {count}"))
        for number, item in enumerate(value):
            if not (self.or_none and item is None):
                self.kind.check(f"{name}[{number}]", item, model)


@dataclass(frozen=True)
class Labels(Kind):
    """The classes, with as many outputs as there are planes between them; None asks the model for which.

    Of a model that has no outputs of its own, scikit-learn's, they are counted `alone`.
    """

    against_rest: bool | None = True
    alone: bool = False

    def check(self, name: str, value: Any, model: Any) -> None:
        whole = isinstance(value, np.ndarray) and value.ndim == 1 and len(value) > 1
        expect(whole, f"{name} must be two classes or more")
        if self.alone:
            return
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
        check_vectors(name, value, _size(self.count, model), _size("features", model))


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
        if (accepts == "sequences") != isinstance(value.vectors, list):  # the text of a tree of kernels takes time
            raise ModelFormatError(f"{value.kernel} does not take such vectors")
        check_vectors("the support vectors", value.vectors, count, _size("features", model))


@dataclass(frozen=True, kw_only=True)
class _Record(Kind):
    made_by: Callable[..., Any]
    parts: Mapping[str, Kind]
    several: bool

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {name: [_public(one) for one in value] if self.several else _public(value)}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        if self.several:
            return tuple(self.made_by(**one) for one in parts[name])
        return self.made_by(**parts[name])

    def check(self, name: str, value: Any, model: Any) -> None:
        for one in value if self.several else (value,):
            for part, kind in self.parts.items():
                kind.check(f"{name}.{part}", getattr(one, part), model)
            if hasattr(one, "check"):
                one.check(name)


def Record(made_by: Callable[..., Any], several: bool = False, **parts: Kind) -> Kind:
    """A value of a dataclass, or several of them in a tuple, as a dictionary of its fields."""
    return _Record(made_by=made_by, several=several, parts=parts)


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
    """A size in numbers, by a word of `_SIZES` or an attribute of the model that is a count or has that length.

    None stands where any will do, −1, which nothing has, where the model does not tell.
    """
    if not isinstance(size, str):
        return size
    found: Any = _SIZES[size](model) if size in _SIZES else getattr(model, size, None)
    if is_count(found):
        return int(found)
    return len(found) if isinstance(found, list) or getattr(found, "ndim", 0) == 1 else -1


def is_count(value: Any, below: int = 2**63) -> bool:
    """Whether it is a whole number from 0 on."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < below


def is_number(value: Any) -> bool:
    """Whether it is a real number, NaN and infinity among them."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _has_shape(value: Any, shape: list[Any]) -> bool:
    return value.ndim == len(shape) and all(
        wanted is None or found == wanted for found, wanted in zip(value.shape, shape, strict=True)
    )


def _is_numbers(value: Any, shape: list[Any], sparse: bool = False, nan: bool = False) -> bool:
    data = value.data if sparse and is_sparse(value) else value
    if not (isinstance(data, np.ndarray) and data.dtype.kind == "f" and _has_shape(value, shape)):
        return False
    return bool((np.isfinite(data) | (nan & np.isnan(data))).all())


def _is_indices(value: Any, end: Any) -> bool:
    if not (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"):
        return False
    return bool((value >= 0).all()) and (end is None or (type(end) is int and bool((value < end).all())))


def _is_text(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def check_vectors(name: str, value: Any, count: Any, n_features: Any) -> None:
    if isinstance(value, list):
        expect(_is_text(value), f"{name} must be strings")
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
        raise ModelFormatError(otherwise)


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


def freeze_fitted(model: Any) -> None:
    """Make all fitted arrays read-only, as after a fit."""
    for name in fitted_names(model):
        freeze(getattr(model, name))


def chosen_of(model: Any) -> Any:
    """The estimator that a fitted search has chosen, `TunedSVC` or scikit-learn's; any other model itself."""
    return getattr(model, "__dict__", {}).get("best_estimator_", model)
