"""One column of a table as an axis: numbers, dates in seconds, or categories, each at the place of its level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.tables.cells import Cells, as_numbers, as_seconds, cells_of, holes, level
from mercer.tables.encodings import Dates, Levels, Numbers, Words


@dataclass(frozen=True, eq=False)
class Axis:
    """A column, its kind ("number", "date", "category" or "text"), and its cells as numbers, NaN for a hole.

    `levels` are the categories, None among them where holes are one.
    """

    name: str
    kind: str
    cells: Cells
    places: Floats
    levels: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, name: str, cells: Any, encoding: Any = None) -> Axis:
        """As a table's model reads the column; else by what its cells are."""
        cells = cells_of(cells)
        if isinstance(encoding, Words):
            return cls(name, "text", cells, np.full(len(cells), np.nan))
        if isinstance(encoding, Dates) or (encoding is None and cells.dtype.kind == "M"):
            return cls(name, "date", cells, as_seconds(cells, getattr(encoding, "form", "ISO"))[0])
        if not isinstance(encoding, Levels):
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
        return cls(name, "category", cells, np.array([place[one] for one in spelt]), tuple(levels))

    def at(self, places: Floats) -> Cells:
        """Cells that stand at these numbers."""
        if self.kind == "date":
            return np.asarray(np.asarray(places * 1e6).round().astype("datetime64[us]"))
        if self.kind == "category":
            return np.array([self.levels[int(place)] for place in places], dtype=object)
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
