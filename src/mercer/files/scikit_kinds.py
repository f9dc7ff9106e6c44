"""What the attributes of scikit-learn's transformers and wrappers must be, so that no file can make them misbehave.

scikit-learn trusts its own attributes: an index of a vocabulary beyond its end, for instance, is written into a sparse
matrix unchecked. So everything that ends as an index, a size or a pattern is checked here, on saving and on loading.
"""

from __future__ import annotations

import re
from collections import UserList
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mercer.errors import ModelFormatError
from mercer.fitting.pipeline.kinds import Kind

Size = str | int | None
# A dense row of so many columns is 8 MB. As many as HashingVectorizer makes by default.
MOST_OUTPUTS: Final = 2**20
_MOST_QUANTIFIERS: Final = 4  # a pattern takes at most (length of a text)^quantifiers steps


def expect(holds: bool, otherwise: str) -> None:
    """Raise ModelFormatError unless it holds."""
    if not holds:
        raise ModelFormatError(otherwise)


def size_of(size: Size, model: Any) -> int | None:
    """A size in numbers: of an attribute, or its length; −1, which nothing has, where the model does not tell."""
    if size is None or isinstance(size, int):
        return size
    found: Any = getattr(model, size, None)
    if is_count(found):
        return int(found)
    return len(found) if isinstance(found, list) or getattr(found, "ndim", 0) == 1 else -1


def is_count(value: Any, below: int = 2**62) -> bool:
    """Whether it is a whole number from 0 on."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < below


def is_number(value: Any) -> bool:
    """Whether it is a real number, NaN and infinity among them."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


@dataclass(frozen=True, init=False)
class Numbers(Kind):
    """An array of a shape; `kinds` are those of its dtype. It may be a single number or None where that is said."""

    shape: tuple[Size, ...]
    kinds: str
    single: bool
    none: bool

    def __init__(self, *shape: Size, kinds: str = "f", single: bool = False, none: bool = False) -> None:
        super().__init__()
        for name, value in (("shape", shape), ("kinds", kinds), ("single", single), ("none", none)):
            object.__setattr__(self, name, value)

    def check(self, name: str, value: Any, model: Any) -> None:
        if (self.none and value is None) or (self.single and is_number(value)):
            return
        wanted = [size_of(size, model) for size in self.shape]
        whole = isinstance(value, np.ndarray) and value.dtype.kind in self.kinds and value.ndim == len(wanted)
        fits = whole and all(w is None or f == w for f, w in zip(value.shape, wanted, strict=True))
        told = " × ".join("any number of" if size is None else str(size) for size in wanted)
        expect(fits, f"{name} must be {told} values")


@dataclass(frozen=True)
class Count(Kind):
    """How many of something there are."""

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(is_count(value), f"{name} must be a count")


@dataclass(frozen=True)
class Single(Kind):
    """A number."""

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(is_number(value), f"{name} must be a number")


@dataclass(frozen=True)
class Places(Kind):
    """Indices below a size."""

    below: Size = None

    def check(self, name: str, value: Any, model: Any) -> None:
        whole = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"
        end = size_of(self.below, model)
        inside = whole and (not len(value) or (value.min() >= 0 and (end is None or value.max() < end)))
        expect(bool(inside), f"{name} must be indices below {end}")


@dataclass(frozen=True)
class One(Kind):
    """One of a few values."""

    of: tuple[Any, ...]

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(any(type(value) is type(one) and value == one for one in self.of), f"{name} must be one of {self.of}")


FLAG: Final = One((True, False))


@dataclass(frozen=True)
class Labels(Kind):
    """Classes: two or more, ascending where they are numbers."""

    def check(self, name: str, value: Any, model: Any) -> None:
        whole = isinstance(value, np.ndarray) and value.ndim == 1 and len(value) > 1
        expect(whole, f"{name} must be two classes or more")


@dataclass(frozen=True)
class ListOf(Kind):
    """A list of so many, each of a kind, or None if that is allowed."""

    kind: Kind
    count: Size = None
    none: bool = False

    def check(self, name: str, value: Any, model: Any) -> None:
        count = size_of(self.count, model)
        whole = isinstance(value, list) and (count is None or len(value) == count)
        expect(whole, f"{name} must be a list" + ("" if count is None else f" of {count}"))
        for number, item in enumerate(value):
            if not (self.none and item is None):
                self.kind.check(f"{name}[{number}]", item, model)


@dataclass(frozen=True)
class Categories(Kind):
    """The categories of one column; numbers ascend (NaN last), since they are searched by bisection."""

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(isinstance(value, np.ndarray) and value.ndim == 1, f"{name} must be an array")
        if value.dtype.kind in "iufb":
            known = value[~np.isnan(value)] if value.dtype.kind == "f" else value
            rises = bool((known[1:] > known[:-1]).all()) and len(known) >= len(value) - 1
            expect(rises and bool((known == value[: len(known)]).all()), f"{name} must ascend, each value once")
        else:
            items = [item for item in value.tolist() if item == item]  # NaN is not itself
            expect(len(set(items)) == len(items), f"{name} must hold each value once")


@dataclass(frozen=True)
class Vocabulary(Kind):
    """Terms and their columns, as a list of the terms in the order of the columns."""

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        self.check(name, value, None)
        return {name: [term for term, _ in sorted(value.items(), key=lambda pair: int(pair[1]))]}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        terms = parts[name]
        expect(isinstance(terms, list) and all(isinstance(term, str) for term in terms), f"{name} must be terms")
        return {term: column for column, term in enumerate(terms)}

    def check(self, name: str, value: Any, model: Any) -> None:
        whole = isinstance(value, dict) and all(isinstance(term, str) for term in value)
        columns = list(value.values()) if whole else []
        whole = whole and all(is_count(column) for column in columns) and len(columns) > 0
        expect(whole and sorted(columns) == list(range(len(columns))), f"{name} must have one column for each term")


@dataclass(frozen=True)
class Model(Kind):
    """An estimator that has been rebuilt, or one of a few words in its place; it must have the `methods`."""

    methods: tuple[str, ...] = ()
    words: tuple[str | None, ...] = ()

    def check(self, name: str, value: Any, model: Any) -> None:
        if (value is None or isinstance(value, str)) and value in self.words:
            return
        expect(hasattr(value, "get_params") and not isinstance(value, type), f"{name} must be an estimator")
        for method in self.methods:
            expect(hasattr(value, method), f"{name} is a {type(value).__name__}, which cannot {method}")


@dataclass(frozen=True)
class Names(Kind):
    """The names of the features, one each."""

    def check(self, name: str, value: Any, model: Any) -> None:
        whole = isinstance(value, np.ndarray) and value.ndim == 1 and all(isinstance(item, str) for item in value)
        expect(whole and len(value) == size_of("n_features_in_", model), f"{name} must have a name for each feature")


@dataclass(frozen=True)
class Config(Kind):
    """What set_output was told."""

    def check(self, name: str, value: Any, model: Any) -> None:
        known = isinstance(value, dict) and value.get("transform", "default") in ("default", "pandas", "polars", None)
        expect(known and value.keys() <= {"transform"}, f"{name} must name a container of transform")


@dataclass(frozen=True)
class Type(Kind):
    """A type of numbers, or object."""

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(isinstance(value, np.dtype), f"{name} must be a dtype")


@dataclass(frozen=True)
class Edges(Kind):
    """The edges of the bins of each feature: an array of arrays, as a list."""

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {name: list(value)}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        expect(isinstance(parts[name], list), f"{name} must be a list")
        edges = np.empty(len(parts[name]), dtype=object)
        edges[:] = parts[name]
        return edges

    def check(self, name: str, value: Any, model: Any) -> None:
        ListOf(Numbers(None), "n_features_in_").check(name, list(value), model)


@dataclass(frozen=True)
class Made(Kind):
    """Objects that are no estimators, each as a dictionary of its attributes, made again by a function."""

    by: Callable[..., Any]
    names: frozenset[str]

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        for one in value:
            expect(vars(one).keys() == self.names, f"{name} has other attributes than {sorted(self.names)}")
        return {name: [dict(vars(one)) for one in value]}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        plain = parts[name]
        whole = isinstance(plain, list) and all(isinstance(one, dict) and one.keys() == self.names for one in plain)
        expect(whole, f"{name} must be a list of {sorted(self.names)}")
        return [self.by(**one) for one in plain]


def check_pattern(name: str, pattern: Any) -> None:
    """A regular expression that cannot take exponential time, whatever the text: no repetition stands in another.

    Expressions of that kind are a well-known way to halt a program, and no token needs one.
    """
    expect(isinstance(pattern, str) and len(pattern) <= 200, f"{name} must be a pattern of at most 200 characters")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ModelFormatError(f"{name}: {error}") from None
    bare = re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\]", "c", re.sub(r"\\[^0-9]", "c", pattern.replace(r"\\", "c")))
    repeats = re.search(r"\)(?:[*+{]|\?\?)", bare) is not None
    referred = "\\" in bare or "(?P=" in bare
    expect(
        not repeats and not referred and len(re.findall(r"[*+{]", bare)) <= _MOST_QUANTIFIERS,
        f"{name} repeats a group, refers to one, or has more than {_MOST_QUANTIFIERS} quantifiers, and may take "
        "exponential time",
    )


def check_columns(name: str, columns: Any, model: Any) -> None:
    """Columns of a table: by name, number, mask or slice, and all of them there."""
    known = getattr(model, "feature_names_in_", None)
    n = size_of("n_features_in_", model) or 0
    if isinstance(columns, slice):
        ends: Iterable[Any] = (columns.start, columns.stop)
        named = all(end is None or isinstance(end, int) or (known is not None and end in known) for end in ends)
        expect(named and (columns.step is None or type(columns.step) is int), f"{name} is no slice of columns")
        return
    items = columns.tolist() if isinstance(columns, np.ndarray) else columns
    items = items.data if isinstance(items, UserList) else items  # the remainder's, in scikit-learn 1.6
    items = items if isinstance(items, list) else [items]
    if items and all(isinstance(item, bool) for item in items):
        expect(len(items) == n, f"{name} must be a mask of {n} columns")
        return
    for item in items:
        number = isinstance(item, (int, np.integer)) and -n <= int(item) < n
        there = number or (isinstance(item, str) and known is not None and item in known)
        expect(there, f"{name} names a column that is not there: {item!r:.60}")
