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
from mercer.fitting.pipeline.state import Array, Kind, ListOf, expect, is_count

# Columns of a dense row, 8 MB; as many as HashingVectorizer makes by default.
MOST_OUTPUTS: Final = 2**20
_MOST_QUANTIFIERS: Final = 4  # a pattern takes at most (length of a text)^quantifiers steps


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
class Config(Kind):
    """What set_output was told."""

    def check(self, name: str, value: Any, model: Any) -> None:
        known = isinstance(value, dict) and value.get("transform", "default") in ("default", "pandas", "polars", None)
        expect(known and value.keys() <= {"transform"}, f"{name} must name a container of transform")


@dataclass(frozen=True)
class One(Kind):
    """One of a few values."""

    of: tuple[Any, ...]

    def check(self, name: str, value: Any, model: Any) -> None:
        expect(any(type(value) is type(one) and value == one for one in self.of), f"{name} must be one of {self.of}")


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
        ListOf(Array(None, kinds="f"), "n_features_in_").check(name, list(value), model)


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
    n = int(getattr(model, "n_features_in_", 0))
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
