"""The plane that a picture shows: two features vary over a grid, the others stand still."""

from __future__ import annotations

from collections import Counter
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
        cls,
        X: Any,
        features: Any,
        names: Any,
        known: Any,
        resolution: int,
        margin: float,
    ) -> Plane:
        """The plane of two features, by number or name; `known` are the model's names, for an X that has none."""
        framed = hasattr(X, "columns")
        if framed:
            frame = frame_of(X)
            columns: list[Any] = frame.columns
            titles = frame.names
        else:
            values = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
            if values.ndim != 2:
                raise ValueError(f"a picture needs rows of two features or more, but X has shape {values.shape}")
            columns = list(values.T)
            titles = [f"feature {k}" for k in range(len(columns))]
            if known is not None and len(known) == len(columns):
                titles = [str(name) for name in known]
        if len(columns) < 2:
            raise ValueError(f"a picture needs two features, but X has {len(columns)}")
        if names is not None:
            if len(names) != len(columns):
                raise ValueError(f"names has {len(names)} names, but X has {len(columns)} columns")
            titles = [str(name) for name in names]
        i, j = _pair(features, titles)
        shown = [_numbers(columns[k], titles[k]) for k in (i, j)]
        xx0, xx1 = np.meshgrid(*(np.linspace(*_ends(column, margin), resolution) for column in shown))
        typical = [_typical(column) for column in columns]
        cells = [np.full(xx0.size, value) for value in typical]
        cells[i], cells[j] = xx0.ravel(), xx1.ravel()
        rows = type(X)(dict(zip(X.columns, cells, strict=True))) if framed else np.column_stack(cells)
        others = [k for k in range(len(columns)) if k not in (i, j)]
        rest = _where([(titles[k], typical[k]) for k in others])
        return cls(xx0, xx1, rows, np.column_stack(shown), (titles[i], titles[j]), rest)


def _pair(features: Any, titles: list[str]) -> tuple[int, int]:
    """The numbers of two different columns that were given by number or name."""
    found = [titles.index(f) if isinstance(f, str) and f in titles else f for f in features]
    whole = [f for f in found if isinstance(f, int | np.integer) and not isinstance(f, bool) and 0 <= f < len(titles)]
    if len(found) != 2 or len(whole) != 2 or whole[0] == whole[1]:
        few = len(titles) <= 20 and titles != [f"feature {k}" for k in range(len(titles))]
        raise ValueError(
            f"features={features!r} must be two different columns of the {len(titles)} there are, by number from 0 or "
            f"by name{': ' + ', '.join(titles) if few else ''}"
        )
    return int(whole[0]), int(whole[1])


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
    told = (f"{name} = {value:.3g}" if isinstance(value, float) else f"{name} = {value}" for name, value in others)
    return f"at {', '.join(told)} ({how})"
