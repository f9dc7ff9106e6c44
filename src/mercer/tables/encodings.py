"""What a table's columns become: numbers standardised, categories one-hot, dates, words, or nothing.

Each class is one way, as plain values that a file can hold. Ways of different kinds count alike in a distance: two rows
differ by 2 in the square, in the mean over a standardised number, where their categories differ, and at most by about
2 in the time of the year.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from mercer.runtime.errors import ModelFormatError
from mercer.samples.arrays import Flags, Floats, sums_by
from mercer.tables.cells import DATE_FORMS, Cells, as_numbers, as_seconds, holes, level, truth, words_among
from mercer.tables.dialect import quantity

CYCLES: Final = {"time of day": 86400.0, "time of year": 365.2425 * 86400.0}  # seconds


@dataclass(frozen=True)
class Numbers:
    """(value − centre)/scale, a hole filled with the median; and a column that marks holes, where there were some."""

    name: str
    fill: float
    centre: float
    scale: float
    n_holes: int
    standardised: bool

    def check(self, where: str) -> None:
        """Raise ModelFormatError for numbers that no table makes."""
        _expect_scale(self.name, self.scale)

    @property
    def description(self) -> str:
        return ("number, standardised" if self.standardised else "number") + _holes_told(self.n_holes, self.fill)

    @property
    def titles(self) -> list[str]:
        return [self.name, *_mark(self)]

    def encode(self, cells: Cells) -> Any:
        values, wrong = as_numbers(cells)
        if wrong is not None:
            wrong = words_among(cells)[1]
            if wrong is not None:
                raise _wrong_cell(self.name, wrong, cells, "a number")
        finite_or_hole(values, self.name)
        empty = np.isnan(values)
        scaled = (np.where(empty, self.fill, values) - self.centre) / self.scale
        return _beside(scaled[:, None], empty, self.n_holes)

    def decode(self, numbers: Floats) -> Cells:
        values = numbers[:, 0] * self.scale + self.centre
        return np.where(numbers[:, -1] == 1, np.nan, values) if self.n_holes else values


@dataclass(frozen=True)
class Levels:
    """A column for each level, 1 where the cell holds it; none for a level that is new. Holes are a level, if any."""

    name: str
    levels: tuple[str, ...]
    n_holes: int
    truth_values: bool

    def check(self, where: str) -> None:
        """Raise ModelFormatError for levels that no table makes."""
        _expect_short_titles(self.name, self.levels)
        if len(set(self.levels)) != len(self.levels):
            raise ModelFormatError(f"every level of {self.name!r} must be there once")

    @property
    def description(self) -> str:
        first = [_short(one) for one in self.levels[:3]]
        shown = ", ".join([*first, "…"] if len(first) < len(self.levels) else first)
        kind = "truth value" if self.truth_values else "category"
        whose = "its" if self.n_holes == 1 else "their"
        own = f"; {_count(self.n_holes, 'missing value')}, a level of {whose} own" if self.n_holes else ""
        return f"{kind}, one column for each of {_count(len(self.levels), 'level')} ({shown}){own}"

    @property
    def titles(self) -> list[str]:
        return [*(f"{self.name}={one}" for one in self.levels), *_mark(self)]

    def unseen(self, cells: Cells) -> list[str]:
        """The levels among these cells that training had not."""
        return sorted({self.spelt(item) for item in cells[~holes(cells)].tolist()}.difference(self.levels))

    def spelt(self, item: Any) -> str:
        """A cell as the name of a level."""
        known = truth(item) if self.truth_values else None
        return level(item if known is None else known)

    def encode(self, cells: Cells) -> Any:
        place = {one: j for j, one in enumerate(self.levels)}
        found = [
            None if hole else place.get(self.spelt(item), -1)
            for item, hole in zip(cells.tolist(), holes(cells), strict=True)
        ]
        if self.n_holes:
            found = [len(self.levels) if j is None else j for j in found]
        columns = np.array([-1 if j is None else j for j in found], dtype=np.intp)
        rows = np.flatnonzero(columns >= 0)
        shape = (len(cells), len(self.levels) + bool(self.n_holes))
        return sp.csr_array((np.ones(len(rows)), (rows, columns[rows])), shape=shape)

    def decode(self, numbers: Floats) -> Cells:
        names = np.array([*self.levels, None], dtype=object)  # the last for a hole, and for a level that is new
        known = numbers[:, : len(self.levels)] == 1
        return np.asarray(names[np.where(known.any(axis=1), known.argmax(axis=1), len(self.levels))])


@dataclass(frozen=True)
class Dates:
    """Seconds, standardised as numbers are, and a point on a circle for each cycle that the dates span."""

    name: str
    form: str
    fill: float
    centre: float
    scale: float
    n_holes: int
    cycles: tuple[str, ...]

    def check(self, where: str) -> None:
        """Raise ModelFormatError for numbers that no dates make."""
        _expect_scale(self.name, self.scale)
        if not abs(self.fill) < 1e12:  # in seconds, the year 33,658; Python's dates end before
            raise ModelFormatError(f"{self.fill!r} is no date")
        if self.form not in DATE_FORMS or not set(self.cycles) <= set(CYCLES):
            raise ModelFormatError(f"no date is read as {self.form!r:.40}")

    @property
    def description(self) -> str:
        filled = str(np.datetime64(int(self.fill), "s").astype("datetime64[D]"))
        order = "" if self.form == "ISO" else f", {self.form}"
        return f"date{order}: {' and '.join(['its seconds', *self.cycles])}{_holes_told(self.n_holes, filled)}"

    @property
    def titles(self) -> list[str]:
        circles = [f"{self.name}: {side} of {cycle}" for cycle in self.cycles for side in ("cosine", "sine")]
        return [self.name, *circles, *_mark(self)]

    def encode(self, cells: Cells) -> Any:
        values, wrong = as_seconds(cells, self.form)
        if wrong is not None:
            raise _wrong_cell(self.name, wrong, cells, f"a date ({self.form})")
        empty = np.isnan(values)
        values = np.where(empty, self.fill, values)
        angles = [2 * np.pi * values / CYCLES[cycle] for cycle in self.cycles]
        circles = [side(angle) for angle in angles for side in (np.cos, np.sin)]
        return _beside(np.column_stack([(values - self.centre) / self.scale, *circles]), empty, self.n_holes)

    def decode(self, numbers: Floats) -> Cells:
        found = (numbers[:, 0] * self.scale + self.centre).round().astype("datetime64[s]")
        return np.where(numbers[:, -1] == 1, np.datetime64("NaT", "s"), found) if self.n_holes else found


@dataclass(frozen=True)
class Words:
    """Counts of the words of a text, each times ln((1 + n)/(1 + rows with the word)) + 1; each text to length 1."""

    name: str
    words: tuple[str, ...]
    weights: tuple[float, ...]

    def check(self, where: str) -> None:
        """Raise ModelFormatError for words that no table makes."""
        _expect_short_titles(self.name, self.words)
        if not len(set(self.words)) == len(self.words) == len(self.weights):
            raise ModelFormatError(f"every word of {self.name!r} must be there once, and needs a weight")

    @property
    def description(self) -> str:
        return f"text, counts of {_count(len(self.words), 'word')}"

    @property
    def titles(self) -> list[str]:
        return [f"{self.name}: {word}" for word in self.words]

    def encode(self, cells: Cells) -> Any:
        place = {word: j for j, word in enumerate(self.words)}
        data: list[float] = []
        indices: list[int] = []
        ends = [0]
        for item in cells.tolist():
            counts = Counter(place[word] for word in words_of(item) if word in place)
            entries = {j: counts[j] * self.weights[j] for j in sorted(counts)}
            length = float(np.sqrt(sum(value * value for value in entries.values())))
            indices += entries
            data += [value / length for value in entries.values()]
            ends.append(len(indices))
        parts = (np.array(data, dtype=np.float64), np.array(indices, dtype=np.int32), np.array(ends, dtype=np.int32))
        return sp.csr_array(parts, shape=(len(cells), len(self.words)))

    def decode(self, numbers: Floats) -> Cells:
        """The words that count, the heaviest first: their order in the text is not known."""
        heaviest = [sorted(np.flatnonzero(row).tolist(), key=lambda j: -row[j]) for row in numbers]
        return np.array([" ".join(self.words[j] for j in row) for row in heaviest], dtype=object)


@dataclass(frozen=True)
class LeftOut:
    """Nothing, for a reason; `guessed` where nobody asked for it."""

    name: str
    reason: str
    guessed: bool

    @property
    def description(self) -> str:
        return f"left out: {self.reason}"

    @property
    def titles(self) -> list[str]:
        return []

    def encode(self, cells: Cells) -> Any:
        return np.empty((len(cells), 0))

    def decode(self, numbers: Floats) -> Cells:
        return np.full(len(numbers), None, dtype=object)


# What is done to one column: its `name`, a `description` in words, the `titles` of the columns that it makes, `encode`,
# which gives a row per cell, dense or CSR, with as many columns as there are titles, and `decode`, its inverse.
Encoding = Numbers | Levels | Dates | Words | LeftOut


def _expect_scale(name: str, scale: float) -> None:
    if not scale > 0:
        raise ModelFormatError(f"the scale of {name!r} must be positive")


def _expect_short_titles(name: str, values: tuple[str, ...]) -> None:
    """Refuse a long name with many values: each becomes a title that begins with the name of the column."""
    if len(name) * len(values) > 2**20 + 16 * (sum(map(len, values)) + len(values)):
        raise ModelFormatError(f"the name of a column with {len(values)} values is too long: {len(name)} characters")


def finite_or_hole(values: Floats, name: str) -> None:
    """Raise ValueError where a number is infinite; NaN is a hole."""
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ValueError(
            f"row {row + 1} of the column {name!r} is {values[row]}, an infinity; correct or empty the cell"
        )


def _beside(values: Floats, empty: Flags, n_holes: int) -> Floats:
    return np.column_stack([values, empty]) if n_holes else values


def _short(text: str) -> str:
    """On one line, no longer than a name, and quoted where it holds the comma of a list."""
    line = " ".join(text.split())
    line = line if len(line) <= 20 else f"{line[:19]}…"
    return repr(line) if "," in line else line


def _mark(column: Any) -> list[str]:
    return [f"{column.name} is missing"] if column.n_holes else []


def _holes_told(count: int, fill: float | str) -> str:
    shown = quantity(fill) if isinstance(fill, float) else fill
    return f"; {_count(count, 'missing value')} filled with the median {shown} and marked" if count else ""


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _wrong_cell(name: str, row: int, cells: Cells, kind: str) -> ValueError:
    return ValueError(
        f"row {row + 1} of the column {name!r} holds {cells[row]!r:.40}, which is not {kind} as in training; "
        "correct or empty the cell"
    )


def vocabulary(cells: Cells) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The words of at least two texts, since one that a single row has says nothing of others; and their weights."""
    rows = Counter(word for item in cells.tolist() for word in set(words_of(item)))
    words = sorted(word for word, count in rows.items() if count > 1)
    return tuple(words), tuple(float(np.log((1 + len(cells)) / (1 + rows[word])) + 1) for word in words)


def words_of(item: Any) -> list[str]:
    return [] if item is None else re.findall(r"\w+", str(item).lower())


def moments(values: Floats, weight: Floats) -> tuple[float, float]:
    """Mean and standard deviation, 1 if that is 0; no square overflows.

    Equal values are summed as one, and in ascending order, so that a weight of 2 equals two rows to the last bit,
    whatever order they come in.
    """
    distinct, place = np.unique(values, return_inverse=True)
    mass = sums_by(place, weight, len(distinct))
    largest = float(np.abs(distinct).max()) or 1.0
    shares = distinct / largest
    centre = float(np.average(shares, weights=mass))
    deviation = float(np.sqrt(np.average((shares - centre) ** 2, weights=mass)))
    return centre * largest, deviation * largest or 1.0
