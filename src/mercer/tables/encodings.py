"""Encodings of table columns: standardised numbers, one-hot categories, dates, word counts, or a dropped column.

Each class has fields that a model file can hold. Columns of different kinds contribute alike to squared distances: two
rows differ by 2 on average in a standardised number, by 2 in a category whose levels differ, and by at most about 2 in
the time of the year.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
import scipy.sparse as sp

from mercer.estimators.fitting.pipeline.dataclass_spec import added_later
from mercer.places.host.prepared import SPARSE_SHARE
from mercer.runtime.errors import ModelFormatError
from mercer.samples.arrays import Flags, Floats, is_sparse, sums_by
from mercer.tables.cells import (
    DATE_FORMS,
    Cells,
    as_seconds,
    level_name,
    missing_values,
    parse_truth_or_digit,
)
from mercer.tables.number_column import (
    NumberColumn,
    NumberFormat,
    read_column,
    scan_column,
    unreadable_numbers,
    words_and_odd_row,
)
from mercer.tables.units import TIME, expect_unit, format_quantity

BEGINS_WITH_DIGITS: Final = "most cells begin with a digit, and are no numbers"  # reason to drop a column
CYCLES: Final = {"time of day": 86400.0, "time of year": 365.2425 * 86400.0}  # seconds


@dataclass(frozen=True)
class Numbers:
    """Numbers as (value − centre)/scale; missing values become the median, with a flag if training had any."""

    name: str
    fill: float
    centre: float
    scale: float
    n_holes: int
    standardised: bool
    unit: str = added_later("")
    marks: str = added_later("")  # decimal mark and mark between thousands in training: see `NumberFormat`

    def check(self, where: str) -> None:
        """Raise ModelFormatError if the values of a file are impossible."""
        _expect_scale(self.name, self.scale)

    @property
    def description(self) -> str:
        """Encoding of the column, in words."""
        unit = f" in {self.unit}" if self.unit not in ("", TIME) else ", a time" if self.unit else ""
        kind = f"number{unit}, standardised" if self.standardised else f"number{unit}"
        is_short = not self.unit and abs(self.fill) < 1e4  # perhaps a year, which has no mark between thousands
        fill = f"{self.fill:.4g}" if is_short else format_quantity(self.fill, self.unit)
        return kind + _describe_missing(self.n_holes, fill)

    @property
    def titles(self) -> list[str]:
        return [self.name, *_missing_title(self)]

    def values(self, cells: Cells, column: NumberColumn | None = None) -> Floats:
        """Return the numbers of a column, NaN for missing values and words.

        `column` is the result of `read_column`, if that is known. Raise ValueError for another cell, or another unit
        than that of training.
        """
        if cells.dtype.kind in "iuf":
            return cells.astype(np.float64)
        if column is None:
            column = read_column(scan_column(cells.tolist()), trained=NumberFormat(self.marks, self.unit))
        column = with_padded_integers(cells, column)
        if column.problem is not None:
            raise unreadable_numbers(self.name, cells, column)
        expect_unit(self.name, self.unit, column.format.unit)
        odd_row = words_and_odd_row(cells, column)[1]
        if odd_row is not None:
            raise _wrong_cell(self.name, odd_row, cells, "a number")
        return column.values

    def encode(self, cells: Cells) -> Any:
        """Return the columns of `titles` for these cells, a row for each."""
        values = self.values(cells)
        expect_no_infinity(values, self.name)
        empty = np.isnan(values)
        scaled = (np.where(empty, self.fill, values) - self.centre) / self.scale
        return _append_flag(scaled[:, None], empty, self.n_holes)

    def decode(self, numbers: Floats) -> Cells:
        """Return the cells that these columns stand for."""
        values = numbers[:, 0] * self.scale + self.centre
        return np.where(numbers[:, -1] == 1, np.nan, values) if self.n_holes else values


@dataclass(frozen=True)
class Levels:
    """One-hot columns, one for each level. Missing values are a level if training had any.

    `n_rare` rare levels of training share one column, which new levels get too; if there are none, a new level is all
    zeros.
    """

    name: str
    levels: tuple[str, ...]
    n_holes: int
    truth_values: bool
    n_rare: int = added_later(0)

    def check(self, where: str) -> None:
        """Raise ModelFormatError if the levels of a file are impossible."""
        _expect_short_titles(self.name, self.levels)
        if len(set(self.levels)) != len(self.levels):
            raise ModelFormatError(f"every level of {self.name!r} must occur once")

    @property
    def description(self) -> str:
        """Encoding of the column, in words."""
        first = [_shorten(level) for level in self.levels[:3]]
        levels = ", ".join([*first, "…"] if len(first) < len(self.levels) else first)
        kind = "truth value" if self.truth_values else "category"
        pronoun = "its" if self.n_holes == 1 else "their"
        hole_text = f"; {_count_of(self.n_holes, 'missing value')}, a level of {pronoun} own" if self.n_holes else ""
        rare_text = f" and one for {_count_of(self.n_rare, 'rare level')}" if self.n_rare else ""
        return f"{kind}, one column for each of {_count_of(len(self.levels), 'level')} ({levels}){rare_text}{hole_text}"

    @property
    def titles(self) -> list[str]:
        """Names of the columns that the encoding makes."""
        rare_title = [f"{self.name} is rare"] if self.n_rare else []
        return [*(f"{self.name}={level}" for level in self.levels), *rare_title, *_missing_title(self)]

    def unseen(self, cells: Cells) -> list[str]:
        """Return the levels among these cells that training did not have; none if rare levels share a column."""
        if self.n_rare:
            return []
        return sorted({self.level_of(item) for item in cells[~missing_values(cells)].tolist()}.difference(self.levels))

    def level_of(self, item: Any) -> str:
        """Return the name of a cell's level: for OUI the level oui, if the levels are truth values."""
        truth = parse_truth_or_digit(item) if self.truth_values else None
        if truth is None:
            return level_name(item)
        return next((level for level in self.levels if parse_truth_or_digit(level) == truth), str(truth))

    def encode(self, cells: Cells) -> Any:
        """Return the columns of `titles` for these cells, a row for each."""
        index = {level: j for j, level in enumerate(self.levels)}
        of_new = len(self.levels) if self.n_rare else -1
        of_missing = len(self.levels) + bool(self.n_rare) if self.n_holes else -1
        columns = np.array(
            [
                of_missing if missing else index.get(self.level_of(item), of_new)
                for item, missing in zip(cells.tolist(), missing_values(cells), strict=True)
            ],
            dtype=np.intp,
        )
        rows = np.flatnonzero(columns >= 0)
        shape = (len(cells), len(self.titles))
        return sp.csr_array((np.ones(len(rows)), (rows, columns[rows])), shape=shape)

    def decode(self, numbers: Floats) -> Cells:
        """Return the cells that these columns stand for."""
        rare_name = ["(rare)"] if self.n_rare else []
        names = np.array([*self.levels, *rare_name, None], dtype=object)  # None for a missing value and for a new level
        is_level = numbers[:, : len(names) - 1] == 1
        return np.asarray(names[np.where(is_level.any(axis=1), is_level.argmax(axis=1), len(names) - 1)])


@dataclass(frozen=True)
class Dates:
    """Standardised seconds, and cosine and sine for each cycle (day, year) that the dates span."""

    name: str
    form: str
    fill: float
    centre: float
    scale: float
    n_holes: int
    cycles: tuple[str, ...]

    def check(self, where: str) -> None:
        """Raise ModelFormatError if the values of a file are impossible."""
        _expect_scale(self.name, self.scale)
        if not abs(self.fill) < 1e12:  # seconds until the year 33,658, after the last of Python's dates
            raise ModelFormatError(f"{self.fill!r} is no date")
        if self.form not in DATE_FORMS or not set(self.cycles) <= set(CYCLES):
            raise ModelFormatError(f"no date is read as {self.form!r:.40}")

    @property
    def description(self) -> str:
        """Encoding of the column, in words."""
        fill_text = str(np.datetime64(int(self.fill), "s").astype("datetime64[D]"))
        order = "" if self.form == "ISO" else f", {self.form}"
        parts = " and ".join(["seconds since 1970", *self.cycles])
        return f"date{order}: {parts}{_describe_missing(self.n_holes, fill_text)}"

    @property
    def titles(self) -> list[str]:
        """Names of the columns that the encoding makes."""
        cycle_titles = [f"{self.name}: {side} of {cycle}" for cycle in self.cycles for side in ("cosine", "sine")]
        return [self.name, *cycle_titles, *_missing_title(self)]

    def values(self, cells: Cells) -> Floats:
        """Return the dates of a column in seconds since 1970, NaN for missing values."""
        values, odd_row = as_seconds(cells, self.form)
        if odd_row is not None:
            raise _wrong_cell(self.name, odd_row, cells, f"a date ({self.form})")
        return values

    def encode(self, cells: Cells) -> Any:
        """Return the columns of `titles` for these cells, a row for each."""
        values = self.values(cells)
        empty = np.isnan(values)
        values = np.where(empty, self.fill, values)
        angles = [2 * np.pi * values / CYCLES[cycle] for cycle in self.cycles]
        cycle_columns = [side(angle) for angle in angles for side in (np.cos, np.sin)]
        return _append_flag(np.column_stack([(values - self.centre) / self.scale, *cycle_columns]), empty, self.n_holes)

    def decode(self, numbers: Floats) -> Cells:
        """Return the cells that these columns stand for."""
        dates = (numbers[:, 0] * self.scale + self.centre).round().astype("datetime64[s]")
        return np.where(numbers[:, -1] == 1, np.datetime64("NaT", "s"), dates) if self.n_holes else dates


@dataclass(frozen=True)
class Words:
    """TF-IDF of a text: word counts times ln((1 + n)/(1 + rows with the word)) + 1, scaled to length 1."""

    name: str
    words: tuple[str, ...]
    weights: tuple[float, ...]

    def check(self, where: str) -> None:
        """Raise ModelFormatError if the words of a file are impossible."""
        _expect_short_titles(self.name, self.words)
        if not len(set(self.words)) == len(self.words) == len(self.weights):
            raise ModelFormatError(f"every word of {self.name!r} must occur once and have a weight")

    @property
    def description(self) -> str:
        return f"text, counts of {_count_of(len(self.words), 'word')}"

    @property
    def titles(self) -> list[str]:
        return [f"{self.name}: {word}" for word in self.words]

    def encode(self, cells: Cells) -> Any:
        """Return the columns of `titles` for these cells, a row for each."""
        index = {word: j for j, word in enumerate(self.words)}
        data: list[float] = []
        indices: list[int] = []
        ends = [0]
        for item in cells.tolist():
            counts = Counter(index[word] for word in split_words(item) if word in index)
            entries = {j: counts[j] * self.weights[j] for j in sorted(counts)}
            length = float(np.sqrt(sum(value * value for value in entries.values())))
            indices += entries
            data += [value / length for value in entries.values()]
            ends.append(len(indices))
        parts = (np.array(data, dtype=np.float64), np.array(indices, dtype=np.int32), np.array(ends, dtype=np.int32))
        return sp.csr_array(parts, shape=(len(cells), len(self.words)))

    def decode(self, numbers: Floats) -> Cells:
        """Return the words of each text, the heaviest first: their order in the text is not known."""
        word_orders = [sorted(np.flatnonzero(row).tolist(), key=lambda j: -row[j]) for row in numbers]
        return np.array([" ".join(self.words[j] for j in row) for row in word_orders], dtype=object)


@dataclass(frozen=True)
class DroppedColumn:
    """A column that is not used, with the reason; `guessed` if the user did not name it."""

    STORED_NAME: ClassVar[str] = "LeftOut"  # name in model files

    name: str
    reason: str
    guessed: bool

    @property
    def may_be_numbers(self) -> bool:
        """Return whether most cells begin with a digit, so that a person may mean them as numbers."""
        return self.reason.startswith(BEGINS_WITH_DIGITS)

    @property
    def description(self) -> str:
        return f"dropped: {self.reason}"

    @property
    def titles(self) -> list[str]:
        return []

    def encode(self, cells: Cells) -> Any:
        return np.empty((len(cells), 0))

    def decode(self, numbers: Floats) -> Cells:
        return np.full(len(numbers), None, dtype=object)


# An encoding has the `name` of its column, a `description` in words, and the `titles` of the columns that it makes.
# `encode` returns a dense or CSR matrix with a row for each cell and a column for each title; `decode` is its inverse.
Encoding = Numbers | Levels | Dates | Words | DroppedColumn


def encode_columns(columns: list[Cells], encodings: list[Encoding]) -> Any:
    """Encode all columns side by side: dense, or CSR if most entries are zero.

    Only the encodings decide between the two, so that a row has the same numbers to the last bit in any table.
    """
    parts = [encoding.encode(column) for encoding, column in zip(encodings, columns, strict=True)]
    width = sum(len(encoding.titles) for encoding in encodings)
    n_dense = sum(len(encoding.titles) for encoding in encodings if isinstance(encoding, (Numbers, Dates)))
    # Below this share of nonzero entries, the core would treat dense rows as sparse.
    if n_dense + sum(isinstance(encoding, Levels) for encoding in encodings) < SPARSE_SHARE * width:
        return sp.csr_array(sp.hstack([sp.csr_array(part) for part in parts]))
    return np.hstack([part.toarray() if is_sparse(part) else part for part in parts])


def _expect_scale(name: str, scale: float) -> None:
    """Raise ModelFormatError unless the scale of a column is positive."""
    if not scale > 0:
        raise ModelFormatError(f"the scale of {name!r} must be positive")


def _expect_short_titles(name: str, values: tuple[str, ...]) -> None:
    """Refuse a long name with many values: each value becomes a title that begins with the column's name."""
    if len(name) * len(values) > 2**20 + 16 * (sum(map(len, values)) + len(values)):
        raise ModelFormatError(f"the name of a column with {len(values)} values is too long: {len(name)} characters")


def expect_no_infinity(values: Floats, name: str) -> None:
    """Raise ValueError if a number is infinite; NaN is a missing value."""
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ValueError(
            f"row {row + 1} of the column {name!r} is {values[row]}, which is not finite; correct or empty the cell"
        )


def _append_flag(values: Floats, empty: Flags, n_holes: int) -> Floats:
    return np.column_stack([values, empty]) if n_holes else values


def _shorten(text: str) -> str:
    """Return the text on one line, cut after 20 characters, and quoted if it contains a comma."""
    line = " ".join(text.split())
    line = line if len(line) <= 20 else f"{line[:19]}…"
    return repr(line) if "," in line else line


def _missing_title(column: Any) -> list[str]:
    return [f"{column.name} is missing"] if column.n_holes else []


def _describe_missing(count: int, fill: str) -> str:
    return f"; {_count_of(count, 'missing value')} filled with the median {fill} and marked" if count else ""


def _count_of(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def with_padded_integers(cells: Cells, column: NumberColumn) -> NumberColumn:
    """Read integers such as 007 too, which are codes unless training or the user says that the column holds numbers."""
    rows = [row for row in np.flatnonzero(column.odd).tolist() if _is_integer(cells[row])]
    if not rows or column.problem is not None:
        return column
    values, odd = column.values.copy(), column.odd.copy()
    values[rows], odd[rows] = [float(cells[row]) for row in rows], False
    return replace(column, values=values, odd=odd)


def _is_integer(item: Any) -> bool:
    return isinstance(item, str) and re.fullmatch(r"[+-]?[0-9]+", item) is not None


def _wrong_cell(name: str, row: int, cells: Cells, kind: str) -> ValueError:
    """Return the error for a cell of another kind than the cells of training."""
    return ValueError(
        f"row {row + 1} of the column {name!r} holds {cells[row]!r:.40}, which is not {kind} as in training; "
        "correct or empty the cell"
    )


def vocabulary(cells: Cells) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the words that occur in at least two texts, and their weights."""
    rows = Counter(word for item in cells.tolist() for word in set(split_words(item)))
    words = sorted(word for word, count in rows.items() if count > 1)
    return tuple(words), tuple(float(np.log((1 + len(cells)) / (1 + rows[word])) + 1) for word in words)


def split_words(item: Any) -> list[str]:
    return [] if item is None else re.findall(r"\w+", str(item).lower())


def moments(values: Floats, weight: Floats) -> tuple[float, float]:
    """Weighted mean and standard deviation; a standard deviation of 0 is returned as 1.

    The weights of equal values are added first, and sums run in ascending order, so that a weight of 2 equals two rows
    to the last bit, in any order of rows. Values are divided by the largest, so that no square overflows.
    """
    distinct, index = np.unique(values, return_inverse=True)
    mass = sums_by(index, weight, len(distinct))
    largest = float(np.abs(distinct).max()) or 1.0
    scaled = distinct / largest
    centre = float(np.average(scaled, weights=mass))
    deviation = float(np.sqrt(np.average((scaled - centre) ** 2, weights=mass)))
    return centre * largest, deviation * largest or 1.0
