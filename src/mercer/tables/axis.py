"""One column of a table as an axis: numbers, dates in days since 1970, or categories at the places of their levels."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mercer.samples.arrays import Floats
from mercer.tables.cells import Cells, as_numbers, as_seconds, cells_of, holes, level
from mercer.tables.encodings import Dates, Levels, Numbers, Words

_DAY: Final = 86400.0  # seconds


@dataclass(frozen=True, eq=False)
class Axis:
    """A column, its kind ("number", "date", "category" or "text"), and its cells as numbers, NaN for a hole.

    `levels` are the categories, None among them where holes are one, and `items` a cell of each.
    """

    name: str
    kind: str
    cells: Cells
    places: Floats
    levels: tuple[str | None, ...] = ()
    items: tuple[Any, ...] = ()

    @classmethod
    def of(cls, name: str, cells: Any, encoding: Any = None, *, category: bool = False) -> Axis:
        """As a table's model reads the column; else by what its cells are, or as a category."""
        given, cells = cells, cells_of(cells)
        if isinstance(encoding, Words):
            return cls(name, "text", cells, np.full(len(cells), np.nan))
        if isinstance(encoding, Dates) or (encoding is None and _are_dates(cells)):
            return cls(name, "date", cells, as_seconds(cells, getattr(encoding, "form", "ISO"))[0] / _DAY)
        if not (category or isinstance(encoding, Levels)):
            values, wrong = as_numbers(cells)
            if wrong is None and (isinstance(encoding, Numbers) or not np.isnan(values).all()):
                return cls(name, "number", cells, values)
        spell = encoding.spelt if isinstance(encoding, Levels) else level
        spelt = [None if hole else spell(item) for item, hole in zip(cells.tolist(), holes(cells), strict=True)]
        known: Sequence[str] = encoding.levels if isinstance(encoding, Levels) else ()
        levels: list[str | None] = [*known, *sorted({one for one in spelt if one is not None}.difference(known))]
        if None in spelt or (isinstance(encoding, Levels) and encoding.n_holes):
            levels.append(None)
        place = {one: float(k) for k, one in enumerate(levels)}
        items = {one: one for one in levels} | dict(zip(spelt, np.asarray(given).tolist(), strict=True))
        places = np.array([place[one] for one in spelt])
        return cls(name, "category", cells, places, tuple(levels), tuple(items[one] for one in levels))

    def at(self, places: Floats) -> Cells:
        """Cells that stand at these numbers."""
        if self.kind == "date":
            return np.asarray((places * _DAY).round().astype("datetime64[s]").astype("datetime64[us]"))
        if self.kind == "category":
            kind = bool if all(isinstance(item, bool) for item in self.items) else object
            return np.array([self.items[int(place)] for place in places], dtype=kind)
        return np.asarray(places)

    def grid(self, resolution: int) -> Floats:
        """The distinct numbers, or so many at equal steps between the 5 % and the 95 % quantiles; every category."""
        if self.kind == "category":
            return np.arange(float(len(self.levels)))
        column = self.places[np.isfinite(self.places)]
        if not len(column):
            raise ValueError(f"the column {self.name!r} has no grid of its own, being {self.kind}; give one in grid")
        distinct = np.unique(column)
        low, high = np.quantile(column, (0.05, 0.95))
        if low == high:
            low, high = distinct[0], distinct[-1]
        return distinct if len(distinct) <= resolution else np.linspace(low, high, resolution)


def _are_dates(cells: Cells) -> bool:
    known = [] if cells.dtype.kind != "O" else [item for item in cells.tolist() if item is not None]
    return cells.dtype.kind == "M" or (bool(known) and all(isinstance(item, datetime.date) for item in known))
