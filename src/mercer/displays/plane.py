"""The plane that a picture shows: two features vary over a grid, the others stand still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats, is_sparse
from mercer.tables.cells import is_missing
from mercer.tables.frame import frame_of

_NAMED_OTHERS = 3  # other features whose values fit into one line under a picture 6.4 inches wide


@dataclass(frozen=True, eq=False)
class Plane:
    """A grid in two features.

    `rows` are the points of the grid as the model takes them, an array or a frame like X; `points` are the rows of X in
    the two features; `rest` says where the others stand.
    """

    xx0: Floats
    xx1: Floats
    rows: Any
    points: Floats
    names: tuple[str, str]
    rest: str

    @classmethod
    def through(
        cls, X: Any, features: Any, names: Any, known: Any, resolution: int, margin: float = 0.1, at: Any = None
    ) -> Plane:
        """The plane of two features, by number or name; `known` are the model's names, for an X that has none.

        Other features stand where `at` says, a dictionary from their numbers or names; else where most samples are.
        """
        framed = hasattr(X, "columns")
        titles = column_names(X, names, known)
        if len(titles) < 2:
            raise ValueError(f"a picture needs two features, but X has {len(titles)}")
        if framed:
            columns: list[Any] = frame_of(X).columns
        else:
            columns = list(np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64).T)
        i, j = _pair(features, titles)
        shown = [_numbers(columns[k], titles[k]) for k in (i, j)]
        xx0, xx1 = np.meshgrid(*(np.linspace(*_ends(column, margin), resolution) for column in shown))
        chosen = _chosen({} if at is None else at, titles, (i, j))
        typical = [chosen[k] if k in chosen else _typical(column) for k, column in enumerate(columns)]
        cells = [np.full(xx0.size, value) for value in typical]
        cells[i], cells[j] = xx0.ravel(), xx1.ravel()
        rows = type(X)(dict(zip(X.columns, cells, strict=True))) if framed else np.column_stack(cells)
        others = [k for k in range(len(columns)) if k not in (i, j)]
        rest = _where([(titles[k], typical[k]) for k in others if k not in chosen])
        rest = "; ".join(part for part in (_places_text((titles[k], v) for k, v in chosen.items()), rest) if part)
        return cls(xx0, xx1, rows, np.column_stack(shown), (titles[i], titles[j]), rest)


def _pair(features: Any, titles: list[str]) -> tuple[int, int]:
    """The numbers of two different columns that were given by number or name."""
    found = [column_number(feature, titles) for feature in features]
    if len(found) != 2 or None in found or found[0] == found[1]:
        few = len(titles) <= 20 and titles != [f"feature {k}" for k in range(len(titles))]
        raise ValueError(
            f"features={features!r} must be two different columns of the {len(titles)} there are, by number from 0 or "
            f"by name{': ' + ', '.join(titles) if few else ''}"
        )
    return found[0], found[1]  # type: ignore[return-value]  # None is refused above


def column_number(column: Any, titles: list[str]) -> int | None:
    """The number of a column that was given by number or name; None if it is neither."""
    k = titles.index(column) if isinstance(column, str) and column in titles else column
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    return int(k) if whole and 0 <= k < len(titles) else None


def _numbers(column: Any, title: str) -> Floats:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"an axis needs numbers, but the column {title!r} has others: choose other features") from None


def _ends(column: Floats, margin: float) -> tuple[float, float]:
    finite = column[np.isfinite(column)]
    if not len(finite):
        raise ValueError("a feature of the picture has no number in any row: choose other features")
    low, high = float(finite.min()), float(finite.max())
    room = margin * (high - low) if high > low else 1.0
    return low - room, high + room


def _typical(column: Any) -> Any:
    """The mean of numbers, the most frequent of other values."""
    if column.dtype.kind in "iuf":
        finite = column[np.isfinite(column)]
        return float(finite.mean()) if len(finite) else np.nan
    there = [item for item in column.tolist() if not is_missing(item)] if column.dtype.kind == "O" else list(column)
    return Counter(there).most_common(1)[0][0] if there else None


def _where(others: list[tuple[str, Any]]) -> str:
    """A line for the reader of the picture; empty where nothing is left out of it."""
    if not others:
        return ""
    numbers = [isinstance(value, float) for _, value in others]
    how = "mean" if all(numbers) else "most frequent value" if not any(numbers) else "mean or most frequent value"
    if len(others) > _NAMED_OTHERS:
        return f"the other {len(others)} features at their {how}"
    return f"{_places_text(others)} ({how})"


def _places_text(places: Any) -> str:
    texts = [f"{name} = {value:.3g}" if isinstance(value, float) else f"{name} = {value}" for name, value in places]
    return f"at {', '.join(texts)}" if texts else ""


def _chosen(at: Any, titles: list[str], shown: tuple[int, int]) -> dict[int, Any]:
    """The caller's places of other features by their numbers."""
    if not isinstance(at, Mapping):
        raise TypeError(
            f"at={at!r} must be a dict from columns, by number from 0 or by name, to their values, such as "
            f"{{{titles[-1]!r}: 0.0}}"
        )
    out = {}
    for key, value in at.items():
        k = column_number(key, titles)
        if k is None or k in shown:
            raise ValueError(
                f"at={at!r} must give values for columns beside the two that are shown, by number from 0 or by name; "
                f"{key!r} is not one of them"
            )
        out[k] = float(value) if isinstance(value, int | float | np.number) else value
    return out


def column_names(X: Any, names: Any = None, known: Any = None) -> list[str]:
    """Of all columns: those given, the frame's, the model's, or their numbers."""
    found = names if names is not None else frame_of(X).names if hasattr(X, "columns") else known
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2:
        raise ValueError(f"a picture needs rows of columns, but X has shape {shape}")
    n = shape[1]
    if found is None or (names is None and len(found) != n):
        return [f"feature {k}" for k in range(n)]
    if len(found) != n:
        raise ValueError(f"names has {len(found)} names, but X has {n} columns")
    return [str(name) for name in found]


def column_and_name(X: Any, feature: Any, model: Any) -> tuple[Floats, str]:
    """One column as numbers, by its number or name, and its name."""
    titles = column_names(X, None, getattr(model, "feature_names_in_", None))
    k = column_number(feature, titles)
    if k is None:
        raise ValueError(f"feature={feature!r} is none of the {len(titles)} columns, by number from 0 or by name")
    if hasattr(X, "columns"):
        return _numbers(np.asarray(X[X.columns[k]]), titles[k]), titles[k]
    values = X[:, [k]].toarray()[:, 0] if is_sparse(X) else np.asarray(X)[:, k]
    return _numbers(values, titles[k]), titles[k]
