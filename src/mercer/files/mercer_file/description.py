"""Parameters, kernels and fitted values as plain JSON, and back: the closed vocabulary of a ``.mercer`` file.

Numbers, strings, lists and dictionaries stand for themselves. Everything else is an object with the key "$":

    {"$": "float", "value": "inf"}                  a number JSON cannot write
    {"$": "scalar", "dtype": "<f4", "value": 0.5}   NumPy's, whose type decides how arrays are promoted
    {"$": "tuple", "items": [...]}                  and "dict", of [key, value] pairs, for keys of other types
    {"$": "array", "name": ...}                     an array of the container; "csr" has three
    {"$": "strings", "object": ..., "items": ...}   an array of str
    {"$": "objects", "shape": ..., "items": ...}    an array of strings, numbers and None
    {"$": "slice", "items": [...]}                  start, stop and step
    {"$": "type", "name": ..., "instance": ...}     a type of numbers, such as np.float64, or its np.dtype
    {"$": "function", "name": ...}                  one of `FUNCTIONS`
    {"$": "kernel", "name": ..., "params": {...}}   a class of kernels, by name, with its parameters
    {"$": "learnt_kernel", "name": ..., "params": {...}}   one whose parameters samples chose
    {"$": "estimator", "class": ..., ...}           see mercer.files.mercer_file.model_file

Every name is looked up in a list of this package, and none is a module or a path, so reading one cannot run code.
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

# Of FunctionTransformer and TransformedTargetRegressor: they take arrays to arrays and do nothing else.
_UFUNCS: Final = ("abs", "absolute", "cbrt", "cos", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "negative")
FUNCTIONS: Final = {name: getattr(np, name) for name in (*_UFUNCS, "reciprocal", "sin", "sqrt", "square")}
# Of SelectKBest and the like. Imported when asked for.
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

_PER_KERNEL: Final = 1024  # bytes of an object with its parameters

JsonObject = dict[str, Any]  # an object of JSON
Arrays = MutableMapping[str, Array]
Describe = Callable[[Any, Arrays, str], Any]
Rebuild = Callable[[JsonObject, Mapping[str, Array], str, Budget], Any]


def describe(value: Any, arrays: Arrays, where: str, other: Describe | None = None) -> Any:
    """``value`` as JSON; arrays inside it go to ``arrays`` under names that begin with ``where``.

    What is not in the vocabulary goes to ``other``, or is a TypeError.
    """
    if isinstance(value, np.generic) and (dtype := value.dtype.newbyteorder("<").str) in DTYPES:
        return {"$": "scalar", "dtype": dtype, "value": describe(value.item(), arrays, where)}
    if isinstance(value, np.str_):  # which is a str, and equal to one
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
    if (named := _describe_named(value)) is not None:
        return named
    if isinstance(value, Kernel) and _kernel_class(type(value).__name__) is type(value):
        params = describe(value.get_params(deep=False), arrays, where)
        return {"$": "learnt_kernel" if value.learnt else "kernel", "name": type(value).__name__, "params": params}
    if other is not None:
        return other(value, arrays, where)
    raise cannot_hold(value, where)


def _label(number: int, item: Any) -> str:
    """Name of an item of a list in errors: that of a step of a Pipeline, or its number."""
    named = isinstance(item, tuple) and len(item) > 1 and isinstance(item[0], str)
    return item[0] if named else str(number)


def _describe_named(value: Any) -> dict[str, Any] | None:
    if isinstance(value, (np.ufunc, FunctionType)):
        name = value.__name__
        return {"$": "function", "name": name} if _function_named(name) is value else None
    if isinstance(value, np.dtype):
        name = "str" if value.kind == "U" else value.name
        return {"$": "type", "name": name, "instance": True} if name in _TYPES else None
    if isinstance(value, type):
        found = [name for name, one in _TYPES.items() if one is value]
        return {"$": "type", "name": found[0], "instance": False} if found else None
    return None


def _function_named(name: object) -> Any:
    if name in _SCORES:
        from sklearn import feature_selection

        return getattr(feature_selection, str(name))
    return FUNCTIONS.get(name) if isinstance(name, str) else None


def cannot_hold(value: object, where: str) -> TypeError:
    """Error to raise for a value that no file can hold."""
    kind = "a Python function" if callable(value) else f"an object of type {type(value).__name__}"
    return TypeError(
        f"{where} is {kind}, and a .mercer file holds numbers, strings, mercer's own kernels and a few functions of "
        f"NumPy ({', '.join(FUNCTIONS)}), never code; "
        "use pickle or joblib for this model, and load such files only from people you trust"
    )


def _describe_array(value: Array, arrays: Arrays, where: str) -> JsonObject:
    strings = value.dtype.kind == "U" or (value.dtype.kind == "O" and all(isinstance(s, str) for s in value.flat))
    if strings and value.ndim == 1:
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
    rows = value.tocsr()
    parts = {part: describe(getattr(rows, part), arrays, f"{where}.{part}") for part in ("data", "indices", "indptr")}
    return {"$": "csr", "shape": list(rows.shape), "matrix": isinstance(value, sp.spmatrix), **parts}


def _kernel_class(name: object) -> type[Kernel] | None:
    if not isinstance(name, str):
        return None
    found = getattr(kernels, name) if name in kernels.__all__ else COMPOSED_KERNELS.get(name)
    return found if isinstance(found, type) and issubclass(found, Kernel) and found is not Kernel else None


def rebuild(
    description: Any,
    arrays: Mapping[str, Array],
    where: str,
    other: Rebuild | None = None,
    budget: Budget | None = None,
) -> Any:
    """The inverse of `describe`; a ModelFormatError names the place of what is not in the vocabulary.

    Whatever may be larger than its description is taken from the budget first, by default that of an empty file.
    """
    return _Reader(arrays, other, Budget() if budget is None else budget).value(description, where)


def _inside(where: str, key: object) -> str:
    """The place of an item for an error: the last names that lead there, so that long or many names cost nothing."""
    return f"{where[-200:]}.{key!s:.60}"


@dataclass(frozen=True)
class _Reader:
    """Turns descriptions into values; each kind has a method of its own."""

    arrays: Mapping[str, Array]
    other: Rebuild | None
    budget: Budget

    def value(self, told: Any, where: str) -> Any:
        if isinstance(told, list):
            return self._values(told, where)
        if not isinstance(told, dict):
            return told
        if "$" not in told:
            return dict(zip(told, self._values(told.values(), where, told), strict=True))
        kind = told["$"]
        if kind == "estimator" and self.other is not None:
            return self.other(told, self.arrays, where, self.budget)
        known = isinstance(kind, str) and kind in _FIELDS
        expect(known, f"{where}: {kind!r} is not a kind of value that this mercer knows")
        fields = _FIELDS[kind]
        whole = told.keys() == {"$", *fields}
        expect(whole, f"{where}: a value of kind {kind!r} is written with {fields}, not {sorted(told)!s:.200}")
        return getattr(self, f"_{kind}")(told, where)

    def _items(self, told: JsonObject, where: str) -> list[Any]:
        expect(isinstance(told["items"], list), f"{where}: its items must be a list")
        # Only tuples and dictionaries may hold models.
        reader = self if told["$"] in ("tuple", "dict") else replace(self, other=None)
        return reader._values(told["items"], where)

    def _values(self, told: Iterable[Any], where: str, keys: Iterable[object] | None = None) -> list[Any]:
        """The value of each item; what stands for itself needs no place for an error."""
        return [
            self.value(item, _inside(where, key)) if isinstance(item, (list, dict)) else item
            for key, item in zip(itertools.count() if keys is None else keys, told, strict=False)
        ]

    def _float(self, told: JsonObject, where: str) -> float:
        value = told["value"]
        expect(value in ("inf", "-inf", "nan"), f"{where}: {value!r} is none of 'inf', '-inf', 'nan'")
        return float(value)

    def _scalar(self, told: JsonObject, where: str) -> Any:
        dtype, value = told["dtype"], self.value(told["value"], where)
        number = dtype in DTYPES and isinstance(value, (bool, int, float))
        expect(number, f"{where}: {value!r} is not a number of dtype {dtype!r}")
        try:
            return np.dtype(dtype).type(value)
        except OverflowError as error:
            raise ModelFormatError(f"{where}: {error}") from None

    def _tuple(self, told: JsonObject, where: str) -> tuple[Any, ...]:
        return tuple(self._items(told, where))

    def _dict(self, told: JsonObject, where: str) -> dict[Any, Any]:
        items = self._items(told, where)
        pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in items)
        expect(pairs, f"{where}: a dictionary is written as a list of [key, value] pairs")
        try:
            return dict(items)
        except TypeError as error:
            raise ModelFormatError(f"{where}: {error}") from None

    def _array(self, told: JsonObject, where: str) -> Array:
        name = told["name"]
        known = isinstance(name, str) and name in self.arrays
        expect(known, f"{where}: the file has no array named {name!r:.60}")
        array = self.arrays[name]
        self.budget.take(array.nbytes, where)  # for each place that names it: a constructor may copy it
        return array

    def _csr(self, told: JsonObject, where: str) -> Any:
        shape, parts = told["shape"], {}
        counts = isinstance(shape, list) and len(shape) == 2 and all(type(n) is int and 0 <= n < 2**62 for n in shape)
        expect(counts, f"{where}: {shape!r} is not the shape of a matrix")
        for part, kind, named in (("data", "f", "numbers"), ("indices", "i", "integers"), ("indptr", "i", "integers")):
            parts[part] = array = self.value(told[part], _inside(where, part))
            flat = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind == kind
            expect(flat, f"{where}.{part}: one-dimensional {named} expected")
        data, indices, indptr = parts["data"], parts["indices"], parts["indptr"]
        ends = len(indptr) == shape[0] + 1 and indptr[0] == 0 and indptr[-1] == len(data)
        rises = ends and not (indptr[1:] < indptr[:-1]).any()
        expect(bool(rises), f"{where}.indptr must rise from 0 to {len(data)} in {shape[0]} steps, one per row")
        inside = len(indices) == len(data) and (not len(indices) or 0 <= indices.min() <= indices.max() < shape[1])
        expect(bool(inside), f"{where}.indices must be {len(data)} columns between 0 and {shape[1] - 1}")
        self.budget.take(8 * (len(indices) + len(indptr)), where)
        build = sp.csr_matrix if told["matrix"] is True else sp.csr_array
        if indices.dtype != indptr.dtype:
            return build((data, indices, indptr), shape=tuple(shape))
        # SciPy's constructor copies what is a view of something larger, such as a mapped file.
        matrix = build(tuple(shape), dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        return matrix

    def _strings(self, told: JsonObject, where: str) -> Any:
        items = self._items(told, where)
        expect(all(isinstance(item, str) for item in items), f"{where}: every item must be a string")
        objects = told["object"] is True
        longest = max(map(len, items), default=1)  # the width of all, of four bytes for each character
        self.budget.take(len(items) * (8 if objects else 4 * longest), where)
        return freeze(np.array(items, dtype=object if objects else np.str_))

    def _objects(self, told: JsonObject, where: str) -> Any:
        items, shape = self._items(told, where), told["shape"]
        plain = all(isinstance(item, _ITEMS) for item in items)
        expect(plain, f"{where}: every item must be a string, a number or null")
        counts = isinstance(shape, list) and len(shape) <= 8 and all(type(n) is int and n >= 0 for n in shape)
        fits = counts and math.prod(shape) == len(items) and max(shape, default=0) <= max(len(items), 1)
        expect(fits, f"{where}: {shape!r:.60} is not the shape of {len(items)} items")
        self.budget.take(8 * len(items), where)
        objects = np.empty(len(items), dtype=object)
        objects[:] = items
        return freeze(objects.reshape(shape))

    def _slice(self, told: JsonObject, where: str) -> slice:
        items = self._items(told, where)
        whole = len(items) == 3 and all(item is None or isinstance(item, (int, str, np.integer)) for item in items)
        expect(whole, f"{where}: a slice has a start, a stop and a step")
        return slice(*items)

    def _type(self, told: JsonObject, where: str) -> Any:
        name = told["name"]
        known = isinstance(name, str) and name in _TYPES
        expect(known, f"{where}: {name!r:.60} is no type of numbers that this mercer knows")
        return np.dtype(_TYPES[name]) if told["instance"] is True else _TYPES[name]

    def _function(self, told: JsonObject, where: str) -> Any:
        found = _function_named(told["name"])
        expect(found is not None, f"{where}: {told['name']!r:.60} is none of {', '.join((*FUNCTIONS, *_SCORES))}")
        return found

    def _kernel(self, told: JsonObject, where: str) -> Kernel:
        found = _kernel_class(told["name"])
        if found is None:
            raise ModelFormatError(f"{where}: {told['name']!r:.60} is not a kernel of this mercer")
        self.budget.take(_PER_KERNEL, where)
        params = replace(self, other=None).value(told["params"], where)
        known = isinstance(params, dict) and set(params) <= set(found._get_param_names())
        if not known:  # a text of the parameters of a tree of kernels is made for an error only
            raise ModelFormatError(f"{where}: {params!r:.200} are not parameters of {found.__name__}")
        return found(**params)

    def _learnt_kernel(self, told: JsonObject, where: str) -> Kernel:
        kernel = self._kernel(told, where)
        kernel.learnt = True
        return kernel


# What a value of each kind is written with.
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
