"""Conversion of parameters, kernels and fitted values to JSON and back: the closed vocabulary of ``.mercer`` files.

Numbers, strings, lists and dictionaries are written as such. Every other value is an object with the key "$":

    {"$": "float", "value": "inf"}                  a number JSON cannot write
    {"$": "scalar", "dtype": "<f4", "value": 0.5}   a NumPy scalar, whose type decides how arrays are promoted
    {"$": "tuple", "items": [...]}                  also "dict", a list of [key, value] pairs, for keys of other types
    {"$": "array", "name": ...}                     an array of the container; "csr" refers to three
    {"$": "strings", "object": ..., "items": ...}   an array of str
    {"$": "objects", "shape": ..., "items": ...}    an array of strings, numbers and None
    {"$": "slice", "items": [...]}                  start, stop and step
    {"$": "type", "name": ..., "instance": ...}     a type of numbers, such as np.float64, or its np.dtype
    {"$": "function", "name": ...}                  one of `FUNCTIONS`
    {"$": "kernel", "name": ..., "params": {...}}   a class of kernels, by name, with its parameters
    {"$": "learnt_kernel", "name": ..., "params": {...}}   one whose parameters samples chose
    {"$": "estimator", "class": ..., ...}           see mercer.files.mercer_file.model_file

Every name is looked up in a list of this package, and none is a module or a path, so reading a file cannot run code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from mercer import kernels
from mercer.estimators.fitting.pipeline.state import expect
from mercer.files.mercer_file.budget import Budget
from mercer.files.mercer_file.container import DTYPES, Array
from mercer.kernels import Kernel
from mercer.kernels.names import COMPOSED_KERNELS
from mercer.runtime.errors import ModelFormatError
from mercer.samples.arrays import freeze

# Functions for FunctionTransformer and TransformedTargetRegressor; they map arrays to arrays without side effects.
_UFUNCS: Final = ("abs", "absolute", "cbrt", "cos", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "negative")
FUNCTIONS: Final = {name: getattr(np, name) for name in (*_UFUNCS, "reciprocal", "sin", "sqrt", "square")}
# Score functions of SelectKBest and the like, imported when needed.
_SCORES: Final = ("chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression", "r_regression")
_TYPES: Final[dict[str, Any]] = {
    **{np.dtype(name).name: np.dtype(name).type for name in DTYPES},
    "Python float": float,
    "Python int": int,
    "Python bool": bool,
    "str": str,
    "object": object,
    "number": np.number,
    "integer": np.integer,
    "floating": np.floating,
    "inexact": np.inexact,
}

_PER_KERNEL: Final = 1024  # bytes of memory for a kernel object with its parameters

JsonObject = dict[str, Any]
Arrays = MutableMapping[str, Array]
Describe = Callable[[Any, Arrays, str], Any]
Rebuild = Callable[[JsonObject, Mapping[str, Array], str, Budget], Any]


def describe(value: Any, arrays: Arrays, where: str, other: Describe | None = None) -> Any:
    """Return ``value`` as JSON; arrays inside it are stored in ``arrays`` under names that begin with ``where``.

    Values outside the vocabulary are passed to ``other``; without ``other`` they raise TypeError.
    """
    if isinstance(value, np.generic) and (dtype := value.dtype.newbyteorder("<").str) in DTYPES:
        return {"$": "scalar", "dtype": dtype, "value": describe(value.item(), arrays, where)}
    if isinstance(value, np.str_):  # a subclass of str
        return str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
    if isinstance(value, list):
        return [describe(item, arrays, f"{where}.{_label(i, item)}", other) for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"$": "tuple", "items": [describe(item, arrays, where, other) for item in value]}
    if isinstance(value, slice):
        return {"$": "slice", "items": describe([value.start, value.stop, value.step], arrays, where)}
    if isinstance(value, dict):
        if all(isinstance(key, str) and key != "$" for key in value):
            return {key: describe(item, arrays, f"{where}.{key}", other) for key, item in value.items()}
        return {"$": "dict", "items": [describe(list(pair), arrays, where, other) for pair in value.items()]}
    if isinstance(value, np.ndarray):
        return _describe_array(value, arrays, where)
    if sp.issparse(value):
        return _describe_csr(value, arrays, where)
    if (named_value := _describe_named(value)) is not None:
        return named_value
    if isinstance(value, Kernel) and _kernel_class(type(value).__name__) is type(value):
        params = describe(value.get_params(deep=False), arrays, where)
        return {"$": "learnt_kernel" if value.learnt else "kernel", "name": type(value).__name__, "params": params}
    if other is not None:
        return other(value, arrays, where)
    raise unsupported_value(value, where)


def _label(number: int, item: Any) -> str:
    """Return the name of a list item for errors: the name of a Pipeline step, or the item's number."""
    is_named_step = isinstance(item, tuple) and len(item) > 1 and isinstance(item[0], str)
    return item[0] if is_named_step else str(number)


def _describe_named(value: Any) -> dict[str, Any] | None:
    """Describe a function or a type of the vocabulary by name; return None for any other value."""
    if isinstance(value, (np.ufunc, FunctionType)):
        name = value.__name__
        return {"$": "function", "name": name} if _function_named(name) is value else None
    if isinstance(value, np.dtype):
        name = "str" if value.kind == "U" else value.name
        return {"$": "type", "name": name, "instance": True} if name in _TYPES else None
    if isinstance(value, type):
        names = [name for name, known_type in _TYPES.items() if known_type is value]
        return {"$": "type", "name": names[0], "instance": False} if names else None
    return None


def _function_named(name: object) -> Any:
    """Return a function of the vocabulary by name, or None."""
    if name in _SCORES:
        from sklearn import feature_selection

        return getattr(feature_selection, str(name))
    return FUNCTIONS.get(name) if isinstance(name, str) else None


def unsupported_value(value: object, where: str) -> TypeError:
    """Return the error for a value that a .mercer file cannot hold."""
    kind = "a Python function" if callable(value) else f"an object of type {type(value).__name__}"
    return TypeError(
        f"{where} is {kind}, but a .mercer file holds only numbers, strings, mercer's own kernels and a few functions "
        f"of NumPy ({', '.join(FUNCTIONS)}), never code; use pickle or joblib for this model, and load such files "
        "only from people you trust"
    )


def _describe_array(value: Array, arrays: Arrays, where: str) -> JsonObject:
    """Describe an array of strings or objects in JSON; store an array of numbers in `arrays`."""
    are_strings = value.dtype.kind == "U" or (value.dtype.kind == "O" and all(isinstance(s, str) for s in value.flat))
    if are_strings and value.ndim == 1:
        return {"$": "strings", "object": value.dtype.kind == "O", "items": [str(item) for item in value]}
    if value.dtype.kind == "O" and all(isinstance(item, _ITEMS) for item in value.flat):
        items = [describe(item, arrays, where) for item in value.ravel()]
        return {"$": "objects", "shape": list(value.shape), "items": items}
    if value.dtype.newbyteorder("<").str not in DTYPES:
        raise TypeError(f"{where} is an array of dtype {value.dtype}, which a .mercer file cannot hold; use pickle")
    name = where
    while name in arrays:
        name += "'"
    arrays[name] = value
    return {"$": "array", "name": name}


_ITEMS: Final = (str, bool, int, float, np.number, np.bool_, type(None))


def _describe_csr(value: Any, arrays: Arrays, where: str) -> JsonObject:
    """Describe a sparse matrix by its shape and its three CSR arrays."""
    rows = value.tocsr()
    parts = {part: describe(getattr(rows, part), arrays, f"{where}.{part}") for part in ("data", "indices", "indptr")}
    return {"$": "csr", "shape": list(rows.shape), "matrix": isinstance(value, sp.spmatrix), **parts}


def _kernel_class(name: object) -> type[Kernel] | None:
    """Return a kernel class of mercer by name, or None."""
    if not isinstance(name, str):
        return None
    cls = getattr(kernels, name) if name in kernels.__all__ else COMPOSED_KERNELS.get(name)
    return cls if isinstance(cls, type) and issubclass(cls, Kernel) and cls is not Kernel else None


def rebuild(
    description: Any,
    arrays: Mapping[str, Array],
    where: str,
    other: Rebuild | None = None,
    budget: Budget | None = None,
) -> Any:
    """Return the value that `describe` described; raise ModelFormatError for anything outside the vocabulary.

    Memory for values that may be larger than their description is taken from the budget first; the default is the
    budget of an empty file.
    """
    return _ValueReader(arrays, other, Budget() if budget is None else budget).value(description, where)


def _item_path(where: str, key: object) -> str:
    """Return the path of an item for errors, cut off so that long or nested names take no memory."""
    return f"{where[-200:]}.{key!s:.60}"


@dataclass(frozen=True)
class _ValueReader:
    """Reader of descriptions, with a method for each kind of value."""

    arrays: Mapping[str, Array]
    other: Rebuild | None
    budget: Budget

    def value(self, description: Any, where: str) -> Any:
        """Return the value of a description."""
        if isinstance(description, list):
            return self._values(description, where)
        if not isinstance(description, dict):
            return description
        if "$" not in description:
            return dict(zip(description, self._values(description.values(), where, description), strict=True))
        kind = description["$"]
        if kind == "estimator" and self.other is not None:
            return self.other(description, self.arrays, where, self.budget)
        is_known_kind = isinstance(kind, str) and kind in _FIELDS
        expect(is_known_kind, f"{where}: {kind!r} is not a kind of value that this mercer knows")
        fields = _FIELDS[kind]
        is_complete = description.keys() == {"$", *fields}
        expect(is_complete, f"{where}: a value of kind {kind!r} must have {fields}, not {sorted(description)!s:.200}")
        return getattr(self, f"_{kind}")(description, where)

    def _items(self, description: JsonObject, where: str) -> list[Any]:
        """Return the values of the items of a description."""
        expect(isinstance(description["items"], list), f"{where}: its items must be a list")
        # Only tuples and dictionaries may contain models.
        reader = self if description["$"] in ("tuple", "dict") else replace(self, other=None)
        return reader._values(description["items"], where)

    def _values(self, description: Iterable[Any], where: str, keys: Iterable[object] | None = None) -> list[Any]:
        """Return the value of each item; plain values need no path for errors."""
        return [
            self.value(item, _item_path(where, key)) if isinstance(item, (list, dict)) else item
            for key, item in zip(itertools.count() if keys is None else keys, description, strict=False)
        ]

    def _float(self, description: JsonObject, where: str) -> float:
        """Return infinity or NaN."""
        value = description["value"]
        expect(value in ("inf", "-inf", "nan"), f"{where}: {value!r} is none of 'inf', '-inf', 'nan'")
        return float(value)

    def _scalar(self, description: JsonObject, where: str) -> Any:
        """Return a NumPy scalar of the described type."""
        dtype, value = description["dtype"], self.value(description["value"], where)
        is_number = dtype in DTYPES and isinstance(value, (bool, int, float))
        expect(is_number, f"{where}: {value!r} is not a number of dtype {dtype!r}")
        try:
            return np.dtype(dtype).type(value)
        except OverflowError as error:
            raise ModelFormatError(f"{where}: {error}") from None

    def _tuple(self, description: JsonObject, where: str) -> tuple[Any, ...]:
        """Return a tuple."""
        return tuple(self._items(description, where))

    def _dict(self, description: JsonObject, where: str) -> dict[Any, Any]:
        """Return a dictionary from its list of [key, value] pairs."""
        items = self._items(description, where)
        are_pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in items)
        expect(are_pairs, f"{where}: a dictionary is written as a list of [key, value] pairs")
        try:
            return dict(items)
        except TypeError as error:
            raise ModelFormatError(f"{where}: {error}") from None

    def _array(self, description: JsonObject, where: str) -> Array:
        """Return an array of the container."""
        name = description["name"]
        is_known_name = isinstance(name, str) and name in self.arrays
        expect(is_known_name, f"{where}: the file has no array named {name!r:.60}")
        array = self.arrays[name]
        self.budget.take(array.nbytes, where)  # for every reference, since a constructor may copy the array
        return array

    def _csr(self, description: JsonObject, where: str) -> Any:
        """Return a sparse matrix; raise if its indices are out of range or its rows not in order."""
        shape, parts = description["shape"], {}
        is_shape = isinstance(shape, list) and len(shape) == 2 and all(type(n) is int and 0 <= n < 2**62 for n in shape)
        expect(is_shape, f"{where}: {shape!r} is not the shape of a matrix")
        for part, kind, type_name in (
            ("data", "f", "numbers"),
            ("indices", "i", "integers"),
            ("indptr", "i", "integers"),
        ):
            parts[part] = array = self.value(description[part], _item_path(where, part))
            is_vector = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind == kind
            expect(is_vector, f"{where}.{part}: one-dimensional {type_name} expected")
        data, indices, indptr = parts["data"], parts["indices"], parts["indptr"]
        has_ends = len(indptr) == shape[0] + 1 and indptr[0] == 0 and indptr[-1] == len(data)
        ends_rise = has_ends and not (indptr[1:] < indptr[:-1]).any()
        expect(bool(ends_rise), f"{where}.indptr must rise from 0 to {len(data)} in {shape[0]} steps, one per row")
        are_columns = len(indices) == len(data) and (not len(indices) or 0 <= indices.min() <= indices.max() < shape[1])
        expect(bool(are_columns), f"{where}.indices must be {len(data)} columns between 0 and {shape[1] - 1}")
        self.budget.take(8 * (len(indices) + len(indptr)), where)
        build = sp.csr_matrix if description["matrix"] is True else sp.csr_array
        if indices.dtype != indptr.dtype:
            return build((data, indices, indptr), shape=tuple(shape))
        # SciPy's constructor would copy views of a larger buffer, such as a mapped file.
        matrix = build(tuple(shape), dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        return matrix

    def _strings(self, description: JsonObject, where: str) -> Any:
        """Return an array of strings."""
        items = self._items(description, where)
        expect(all(isinstance(item, str) for item in items), f"{where}: every item must be a string")
        has_objects = description["object"] is True
        longest = max(map(len, items), default=1)  # width of every item, with four bytes per character
        self.budget.take(len(items) * (8 if has_objects else 4 * longest), where)
        return freeze(np.array(items, dtype=object if has_objects else np.str_))

    def _objects(self, description: JsonObject, where: str) -> Any:
        """Return an array of strings, numbers and None."""
        items, shape = self._items(description, where), description["shape"]
        are_allowed = all(isinstance(item, _ITEMS) for item in items)
        expect(are_allowed, f"{where}: every item must be a string, a number or null")
        is_shape = isinstance(shape, list) and len(shape) <= 8 and all(type(n) is int and n >= 0 for n in shape)
        fits = is_shape and math.prod(shape) == len(items) and max(shape, default=0) <= max(len(items), 1)
        expect(fits, f"{where}: {shape!r:.60} is not the shape of {len(items)} items")
        self.budget.take(8 * len(items), where)
        objects = np.empty(len(items), dtype=object)
        objects[:] = items
        return freeze(objects.reshape(shape))

    def _slice(self, description: JsonObject, where: str) -> slice:
        """Return a slice."""
        items = self._items(description, where)
        is_slice = len(items) == 3 and all(item is None or isinstance(item, (int, str, np.integer)) for item in items)
        expect(is_slice, f"{where}: a slice has a start, a stop and a step")
        return slice(*items)

    def _type(self, description: JsonObject, where: str) -> Any:
        """Return a type of numbers, or its np.dtype."""
        name = description["name"]
        is_known_name = isinstance(name, str) and name in _TYPES
        expect(is_known_name, f"{where}: {name!r:.60} is not a type that this mercer knows")
        return np.dtype(_TYPES[name]) if description["instance"] is True else _TYPES[name]

    def _function(self, description: JsonObject, where: str) -> Any:
        """Return a function of the vocabulary."""
        function = _function_named(description["name"])
        expect(
            function is not None, f"{where}: {description['name']!r:.60} is none of {', '.join((*FUNCTIONS, *_SCORES))}"
        )
        return function

    def _kernel(self, description: JsonObject, where: str) -> Kernel:
        """Return a kernel with its parameters."""
        cls = _kernel_class(description["name"])
        if cls is None:
            raise ModelFormatError(f"{where}: {description['name']!r:.60} is not a kernel of this mercer")
        self.budget.take(_PER_KERNEL, where)
        params = replace(self, other=None).value(description["params"], where)
        has_known_parameters = isinstance(params, dict) and set(params) <= set(cls._get_param_names())
        if not has_known_parameters:  # the text of nested kernels is long, and built only for this error
            raise ModelFormatError(f"{where}: {params!r:.200} are not parameters of {cls.__name__}")
        return cls(**params)

    def _learnt_kernel(self, description: JsonObject, where: str) -> Kernel:
        """Return a kernel whose parameters were learnt from samples."""
        kernel = self._kernel(description, where)
        kernel.learnt = True
        return kernel


# Fields of each kind of value.
_FIELDS: Final = {
    "float": ["value"],
    "scalar": ["dtype", "value"],
    "tuple": ["items"],
    "dict": ["items"],
    "array": ["name"],
    "csr": ["shape", "matrix", "data", "indices", "indptr"],
    "strings": ["object", "items"],
    "objects": ["shape", "items"],
    "slice": ["items"],
    "type": ["name", "instance"],
    "function": ["name"],
    "kernel": ["name", "params"],
    "learnt_kernel": ["name", "params"],
}
