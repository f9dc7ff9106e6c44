"""A table column as an axis of a plot or grid: numbers, dates in days since 1970, or categories numbered by level."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mercer.samples.arrays import Floats
from mercer.tables.cells import Cells, as_seconds, cells_of, level_name, missing_values
from mercer.tables.encodings import Dates, Levels, Numbers, Words
from mercer.tables.number_column import read_column, scan_column

_DAY: Final = 86400.0  # seconds


@dataclass(frozen=True, eq=False)
class Axis:
    """A column with its coordinates: numbers as they are, days since 1970 for dates, level numbers for categories.

    `kind` is "number", "date", "category" or "text"; `places` are the coordinates, NaN for a missing number or date.
    `levels` are the names of the categories, with None for missing values; `items` holds one original cell of each.
    """

    name: str
    kind: str
    cells: Cells
    places: Floats
    levels: tuple[str | None, ...] = ()
    items: tuple[Any, ...] = ()

    @classmethod
    def of(cls, name: str, cells: Any, encoding: Any = None, *, category: bool = False) -> Axis:
        """Make an axis from a column.

        `encoding` is the column's encoding in a fitted `Tabular`. Without one, the cells decide the kind, unless
        `category` forces a category.
        """
        raw_cells, cells = cells, cells_of(cells)
        if isinstance(encoding, Words):
            return cls(name, "text", cells, np.full(len(cells), np.nan))
        if isinstance(encoding, Dates) or (encoding is None and _are_dates(cells)):
            return cls(name, "date", cells, as_seconds(cells, getattr(encoding, "form", "ISO"))[0] / _DAY)
        if not (category or isinstance(encoding, Levels)):
            values = _numbers(cells, encoding)
            if values is not None:
                return cls(name, "number", cells, values)
        name_level = encoding.level_of if isinstance(encoding, Levels) else level_name
        level_names = [
            None if gap else name_level(item) for item, gap in zip(cells.tolist(), missing_values(cells), strict=True)
        ]
        known: Sequence[str] = encoding.levels if isinstance(encoding, Levels) else ()
        levels: list[str | None] = [
            *known,
            *sorted({level for level in level_names if level is not None}.difference(known)),
        ]
        if None in level_names or (isinstance(encoding, Levels) and encoding.n_holes):
            levels.append(None)
        place = {level: float(k) for k, level in enumerate(levels)}
        items = {level: level for level in levels} | dict(zip(level_names, np.asarray(raw_cells).tolist(), strict=True))
        places = np.array([place[level] for level in level_names])
        return cls(name, "category", cells, places, tuple(levels), tuple(items[level] for level in levels))

    def at(self, places: Floats) -> Cells:
        """Return the cells at these coordinates."""
        if self.kind == "date":
            return np.asarray((places * _DAY).round().astype("datetime64[s]").astype("datetime64[us]"))
        if self.kind == "category":
            kind = bool if all(isinstance(item, bool) for item in self.items) else object
            return np.array([self.items[int(place)] for place in places], dtype=kind)
        return np.asarray(places)

    def grid(self, resolution: int) -> Floats:
        """Return the coordinates of a grid: every category, or the distinct numbers of the column.

        If more than `resolution` numbers differ, the grid is that many equal steps from the 5 % to the 95 % quantile.
        """
        if self.kind == "category":
            return np.arange(float(len(self.levels)))
        column = self.places[np.isfinite(self.places)]
        if not len(column):
            raise ValueError(f"the column {self.name!r} is {self.kind} and has no grid by itself; pass one as grid")
        distinct = np.unique(column)
        low, high = np.quantile(column, (0.05, 0.95))
        if low == high:
            low, high = distinct[0], distinct[-1]
        return distinct if len(distinct) <= resolution else np.linspace(low, high, resolution)


def _numbers(cells: Cells, encoding: Any) -> Floats | None:
    """Return the numbers of a column, as its encoding reads them; None if the cells are not numbers."""
    if isinstance(encoding, Numbers):
        return encoding.values(cells)
    if cells.dtype.kind in "iuf":
        return None if np.isnan(cells).all() else cells.astype(np.float64)
    column = read_column(scan_column(cells.tolist()))
    return column.values if column.is_complete else None


def _are_dates(cells: Cells) -> bool:
    items = [] if cells.dtype.kind != "O" else [item for item in cells.tolist() if item is not None]
    return cells.dtype.kind == "M" or (bool(items) and all(isinstance(item, datetime.date) for item in items))
