"""Decide how the numbers of a column are written, and convert them: decimal mark, thousands, unit, times.

Nothing but the cells decides, and in the same way for CSV, Parquet and Excel files and for frames of any library.

1. `scan_column` splits each different text and groups texts with the same marks and unit. "1,5" proves a decimal comma
   and "1 234" blanks between thousands, but the comma in "1,234" is unclear.
2. `proven_decimal_marks` returns the decimal marks that a column proves. Other columns of the table may prove none.
3. `read_column` chooses the format of the column and converts its cells, or says why they cannot be read together.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from types import NoneType
from typing import Any, Final, NamedTuple

import numpy as np

from mercer.samples.arrays import Flags, Floats, Indices
from mercer.tables.number_text import RANK_GUESSES, NumberText, normalise, quote_cell, split_number
from mercer.tables.units import (
    CLEAR_POWERS_OF_10,
    DURATION_UNITS,
    POWERS_OF_10,
    TIME,
    format_clock,
    is_known_unit,
    is_same_unit,
    is_symbol,
)

_TO_SHAPE: Final = str.maketrans("023456789", "111111111")
_MARK_NAMES: Final = {" ": "blanks", "'": "apostrophes", ",": "commas", ".": "points"}
_DECIMAL_NAMES: Final = {",": "a decimal comma", ".": "a decimal point"}
_NEVER_BY_SHAPE: Final = frozenset(":×·*^⁻⁰¹²³⁴⁵⁶⁷⁸⁹")  # signs of times, and of powers of 10
_SHAPE_OF_RATIO: Final = re.compile(r"[01]1{0,2}([.,]1{1,2})? ?/ ?1{1,3}|1{1,4} 1/1\b.*")  # 4.5/5, or 2 1/2 cups
_LONGEST_NUMBER: Final = 60  # characters
_FEW_SHAPES: Final = 50
_FEW_INTEGERS: Final = 10  # integers below 1,000 that numbers such as 1.121 may continue
_FEW_RANKS: Final = 10  # ranks such as 1st, 2nd and 3rd are a category
_UNCLEAR: Final = (
    "its comma or point may be a decimal mark or separate thousands; say which mark is decimal with --decimal , or "
    "--decimal . (in Python, convert the column)"
)
_DIVISION_BY_0: Final = "#DIV/0!"
HOURS: Final = "h:mm"  # `marks` of times of two parts that are hours and minutes, not minutes and seconds


class NumberFormat(NamedTuple):
    """Format of a column of numbers.

    `marks` are the decimal mark and the mark between thousands, as far as the column shows them; or HOURS. `unit` is
    empty, a unit such as "€" or "km", or TIME for times and durations, whose numbers are seconds.
    """

    marks: str = ""
    unit: str = ""

    @property
    def decimal(self) -> str:
        """Decimal mark; empty if unknown, as in a column of integers."""
        return self.marks[:1] if self.marks[:1] in (",", ".") else ""


class Problem(NamedTuple):
    """Reason why the numbers of a column cannot be read together, and a text that shows it."""

    reason: str
    text: Any


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """Numbers of a column of texts.

    `values` are NaN in rows without a number, `odd` marks rows that are neither numbers nor missing. `question` says
    what was guessed, `problem` why nothing can be read, and `remedy` what to do if the guess is wrong.
    """

    values: Floats
    odd: Flags
    format: NumberFormat
    question: str = ""
    problem: Problem | None = None
    remedy: str = "in categorical"
    mostly_numbers: bool = False  # at least four fifths of the cells of all rows; a fold keeps this answer

    def rows(self, chosen: Indices) -> NumberColumn:
        """Return the numbers of the chosen rows, in this order."""
        return replace(self, values=self.values[chosen], odd=self.odd[chosen])

    @property
    def is_certain(self) -> bool:
        """Return whether every cell is a number or missing, and no number may mean another one."""
        return self.problem is None and not self.question and not self.odd.any()

    @property
    def is_complete(self) -> bool:
        """Return whether every cell is a number or missing, and at least one is a number."""
        return self.problem is None and not self.odd.any() and not np.isnan(self.values).all()


@dataclass(frozen=True, eq=False)
class ScannedColumn:
    """Different cells of a column, and groups of those that are numbers.

    `keys` has a hashable key for each row (None if the cell is missing), and `places` the place of each key among the
    cells. A group has one `NumberText` without digits, the places of its cells, and the digits of each of them.
    """

    keys: list[Any]
    places: dict[Any, int]
    cells: list[Any]
    groups: dict[NumberText, tuple[list[int], list[str]]]

    @cached_property
    def index(self) -> Indices:
        """Place of the cell of each row, −1 for a missing value."""
        places = {**self.places, None: -1}
        return np.fromiter(map(places.__getitem__, self.keys), dtype=np.intp, count=len(self.keys))

    @cached_property
    def counts(self) -> Indices:
        """Number of rows that have each of the cells."""
        return np.bincount(self.index[self.index >= 0], minlength=len(self.cells))

    def count(self, text: NumberText) -> int:
        """Return the number of rows in a group."""
        return int(self.counts[self.groups[text][0]].sum())

    def example(self, text: NumberText) -> Any:
        """Return the first cell of a group."""
        return self.cells[self.groups[text][0][0]]


def scan_column(items: list[Any]) -> ScannedColumn:
    """Split each different text of a column into the parts of a number; None is a missing value.

    Texts that differ in their digits alone have the same parts, so that most texts are not split one by one.
    """
    keys = items
    if not {*map(type, items)} <= {str, NoneType}:  # 1, 1.0 and True are equal
        keys = [item if item is None or isinstance(item, str) else (type(item), str(item)) for item in items]
    different = dict.fromkeys(items) if keys is items else dict(zip(keys, items, strict=True))
    different.pop(None, None)
    places = {key: place for place, key in enumerate(different)}
    cells = list(different if keys is items else different.values())
    texts = [
        cell.replace("\n", " ") if isinstance(cell, str) and len(cell) <= _LONGEST_NUMBER else "" for cell in cells
    ]
    normal = normalise("\n".join(texts))
    shapes = normal.translate(_TO_SHAPE).split("\n")
    groups: dict[NumberText, tuple[list[int], list[str]]] = {}
    known: dict[str, tuple[NumberText, int, int] | bool] = {}
    if _are_no_numbers({*shapes}):
        return ScannedColumn(keys, places, cells, groups)
    for place, (text, shape) in enumerate(zip(normal.split("\n"), shapes, strict=True)):
        first = shape.find("1")
        if first < 0:
            continue
        if text[first] == "0":  # 0.5 is a number, and 007 a code
            shape = f"{shape[:first]}0{shape[first + 1 :]}"
        parts = known.get(shape)
        if parts is None:
            parts = known[shape] = _parts_of_shape(shape)
        if isinstance(parts, tuple):
            group, digits = parts[0], text[parts[1] : parts[2]]
        elif parts and (number := split_number(text)) is not None:
            group, digits = number._replace(digits=""), number.digits
        else:
            continue
        group_places, group_digits = groups.setdefault(group, ([], []))
        group_places.append(place)
        group_digits.append(digits)
    return ScannedColumn(keys, places, cells, groups)


def _are_no_numbers(shapes: set[str]) -> bool:
    """Return whether no text has one of these few shapes and is a number; False if there are many shapes."""
    if len(shapes) > _FEW_SHAPES:
        return False
    return not any(_parts_of_shape(one) for shape in shapes for one in {shape, shape.replace("1", "0", 1)})


def _parts_of_shape(shape: str) -> tuple[NumberText, int, int] | bool:
    """Return the parts of all texts of a shape, and where their digits begin and end; or whether they may be numbers.

    Times, durations and exponents depend on more than their shape.
    """
    number = split_number(shape)
    if number is None:
        return not _NEVER_BY_SHAPE.isdisjoint(shape) or _SHAPE_OF_RATIO.fullmatch(shape) is not None
    start = shape.find(number.digits)
    if number.unit == TIME or "e" in number.digits.lower() or start < 0:
        return True
    return number._replace(digits=""), start, start + len(number.digits)


def proven_decimal_marks(column: ScannedColumn) -> set[str]:
    """Return the decimal marks that the numbers of a column prove; none if most of its cells are not numbers."""
    if not column.groups:
        return set()
    n_numbers = sum(map(column.count, column.groups))
    return _decimals_in(column.groups) if 2 * n_numbers > column.counts.sum() else set()


def _decimals_in(groups: Iterable[NumberText]) -> set[str]:
    """Return the decimal marks of these groups, and those that follow from commas or points between thousands."""
    groups = list(groups)
    implied = {"." if group.thousands == "," else "," for group in groups if group.thousands in (",", ".")}
    return implied | {group.decimal for group in groups if group.decimal}


def read_column(
    column: ScannedColumn,
    *,
    requested: str | None = None,
    table_decimal: str | None = None,
    trained: NumberFormat | None = None,
) -> NumberColumn:
    """Convert the texts of a column to numbers, if most cells are numbers.

    If the column proves no decimal mark, it is the one that the user has `requested`, that other columns of the table
    prove, or that the column had in training.
    """
    missing = column.index < 0
    values = np.full(len(column.cells) + 1, np.nan)  # one more, since −1 is the place of a missing value
    odd = np.ones(len(values), dtype=bool)
    for place, cell in enumerate(column.cells):
        value = number_of(cell) if not isinstance(cell, str) else None
        if value is not None:
            values[place], odd[place] = value, False
    groups = _groups_with_units(column)
    n_numbers = sum(map(column.count, groups)) + int(column.counts[~odd[:-1]].sum())
    if trained is None and (2 * n_numbers <= column.counts.sum() or _are_names(column, groups)):
        groups = []  # texts with a few numbers among them, or names
    found, question, remedy = NumberFormat(), "", "in categorical"
    problem = _mixed_units(column, groups, trained) or _mixed_marks(column, groups)
    if groups and problem is None:
        found, doubt, problem = _choose_format(column, groups, requested, table_decimal, trained)
        if problem is None:
            for group in groups:
                places, digits = column.groups[group]
                values[places], odd[places] = _convert(digits, group, found), False
            question = _question(column, groups, values, found, doubt)
            if question and any(group.unclear for group in groups):
                other = "," if found.decimal == "." else "."
                remedy = f"say --decimal {other} (in Python, convert the column)"
    odd_rows = odd[column.index] & ~missing
    mostly_numbers = bool(5 * odd_rows.sum() <= (~missing).sum())
    return NumberColumn(values[column.index], odd_rows, found, question, problem, remedy, mostly_numbers)


def number_of(cell: Any) -> float | None:
    """Return the number in a cell that is not a text: an int, float or Decimal, or the seconds of a time; else None."""
    if isinstance(cell, datetime.timedelta):
        return cell.total_seconds()
    if isinstance(cell, datetime.time):
        return 3600.0 * cell.hour + 60 * cell.minute + cell.second + cell.microsecond / 1e6
    if isinstance(cell, (bool, np.bool_)) or not hasattr(cell, "__float__"):
        return None
    return float(cell)


def _groups_with_units(column: ScannedColumn) -> list[NumberText]:
    """Return the groups whose unit makes them numbers: a known unit, or an unknown word that all cells have."""
    units = {group.unit for group in column.groups}
    first = max(units, key=len, default="")
    if all(is_same_unit(first, unit) for unit in units) or _are_powers_of_10(column.groups):
        return list(column.groups)
    return [group for group in column.groups if group.unit in ("", TIME) or is_known_unit(group.unit)]


def _are_names(column: ScannedColumn, groups: list[NumberText]) -> bool:
    """Return whether ranks are names: few, such as 1st class, or all different, such as the order #4711."""
    if not any(group.guess in RANK_GUESSES for group in groups):
        return False
    return len(column.cells) <= _FEW_RANKS or bool((column.counts == 1).all())


def _are_powers_of_10(groups: Iterable[NumberText]) -> bool:
    """Return whether units are nothing but powers of 10, as in 950, 1.2K and 3.4M; 12, 12B and 14K are houses."""
    with_words = [group for group in groups if group.unit]
    fractions = any(group.decimal or group.unclear for group in with_words)
    return fractions and {group.unit for group in with_words} <= CLEAR_POWERS_OF_10


def _common_unit(column: ScannedColumn, groups: list[NumberText], trained: NumberFormat | None = None) -> str | None:
    """Return the unit of all groups, TIME if they have different units of time, or None if units are mixed.

    Different powers of 10 are no unit, and no power of 10 is if the column was trained on numbers without a unit.
    """
    counts: Counter[str] = Counter()
    for group in groups:
        counts[group.unit] += column.count(group)
    if _holds_typed_numbers(column):
        counts[TIME if any(isinstance(cell, (datetime.time, datetime.timedelta)) for cell in column.cells) else ""] += 1
    unit = max(counts, key=lambda one: (counts[one], one))
    powers = _are_powers_of_10(groups)
    if powers and trained is not None and not trained.unit:
        return ""
    if all(is_same_unit(unit, other) for other in counts):
        return unit
    if powers and trained is None:
        return ""
    minutes = {"m"} if TIME in counts else set()  # 5m beside 1h 5m
    seconds = {""} if _are_laps(column, groups) else set()
    times = {TIME, *minutes, *seconds}
    return TIME if all(other in times or other.lower() in DURATION_UNITS for other in counts) else None


def _are_laps(column: ScannedColumn, groups: list[NumberText]) -> bool:
    """Return whether numbers beside times are seconds: 59.99 beside 1:02.33, all with fractions of a second."""
    clocks = [group for group in groups if group.unit == TIME]
    alone = [group for group in groups if not group.unit]
    if not clocks or not alone or any(group.clock != "m:ss" for group in clocks):
        return False
    if any(group.thousands or "." not in (group.decimal, group.unclear) for group in alone):
        return False
    fractions = all("." in digits for group in clocks for digits in column.groups[group][1])
    return fractions and all(float(digits) < 60 for group in alone for digits in column.groups[group][1])


def _mixed_units(column: ScannedColumn, groups: list[NumberText], trained: NumberFormat | None) -> Problem | None:
    """Return a problem if the cells have different units, or some have none."""
    if not groups or _common_unit(column, groups, trained) is not None:
        return None
    counts: Counter[str] = Counter()
    for group in groups:
        counts[group.unit] += column.count(group)
    names = {unit: f"in {unit}" if unit not in ("", TIME) else "times" if unit else "without a unit" for unit in counts}
    ordered = counts.most_common()
    rare = ordered[-1][0] if len(ordered) > 1 else ordered[0][0]
    other = ordered[0][0] if len(ordered) > 1 else ""
    names.setdefault(other, "without a unit")
    shown = next(column.example(group) for group in groups if group.unit == rare)
    return Problem(f"some cells are {names[other]} and some {names[rare]}; write all in one unit", shown)


def _mixed_marks(column: ScannedColumn, groups: list[NumberText]) -> Problem | None:
    """Return a problem if some cells have a decimal comma and others a decimal point."""
    unclear = {group.unclear for group in groups if group.unclear}
    if len(_decimals_in(groups)) < 2 and (len(unclear) < 2 or _decimals_in(groups)):
        return None
    by_mark = {mark: [group for group in groups if mark in (_decimals_in([group]) or {group.unclear})] for mark in ",."}
    rare = min(by_mark.values(), key=lambda some: sum(map(column.count, some)))
    return Problem(
        "some cells have a decimal comma and some a decimal point; write all with one", column.example(rare[0])
    )


def _choose_format(
    column: ScannedColumn,
    groups: list[NumberText],
    requested: str | None,
    table_decimal: str | None,
    trained: NumberFormat | None,
) -> tuple[NumberFormat, str, Problem | None]:
    """Return the format of a column whose marks and units agree, what was guessed in words, and a problem."""
    unit = _common_unit(column, groups, trained) or ""
    clocks = {group.clock for group in groups if group.clock}
    unclear = [group for group in groups if group.unclear]
    if clocks:
        if trained is not None and trained.unit == TIME:
            hours = trained.marks == HOURS
        else:
            hours = clocks == {"mm:ss"} and all(group.clock for group in groups)
        parts = "hours and minutes" if hours else "minutes and seconds"
        fractions = _decimals_in(groups) | {group.unclear for group in unclear}  # 2.5 h beside 1:30
        return NumberFormat(HOURS if hours else "".join(fractions), unit), f"times in {parts}", None
    decimal, doubt = "", ""
    if proven := _decimals_in(groups):
        decimal = proven.pop()
    elif unclear:
        mark = unclear[0].unclear
        other = "." if mark == "," else ","
        if requested is not None:
            decimal = requested
        elif table_decimal is not None:
            decimal = table_decimal
        elif trained is not None and trained.decimal:
            decimal = trained.decimal
        elif any(group.thousands for group in groups):  # blanks or apostrophes in some cells, the mark in others
            return NumberFormat(), "", Problem(_UNCLEAR, column.example(unclear[0]))
        elif _continue_integers(column, groups, unclear) or (
            _keeps_zeros(column, unclear) and (len(unclear) < len(groups) or _holds_typed_numbers(column))
        ):  # a program that writes 950, and not 950.000, would not write 1.200 either
            decimal, doubt = other, f"numbers with {_MARK_NAMES[mark]} for thousands"
        elif mark == ".":
            decimal, doubt = mark, "numbers with a decimal point"
        else:
            return NumberFormat(), "", Problem(_UNCLEAR, column.example(unclear[0]))
    thousands = {group.thousands for group in groups} | {group.unclear for group in unclear} - {decimal, ""}
    return NumberFormat(decimal + "".join(sorted(thousands - {""}))[:1], unit), doubt, None


def _holds_typed_numbers(column: ScannedColumn) -> bool:
    """Return whether some cells are numbers that are no texts, as in Excel."""
    return any(not isinstance(cell, str) and number_of(cell) is not None for cell in column.cells)


def _keeps_zeros(column: ScannedColumn, ambiguous: list[NumberText]) -> bool:
    """Return whether a number with an unclear mark ends in 0, such as 1,200."""
    return any(digits.endswith("0") for group in ambiguous for digits in column.groups[group][1])


def _continue_integers(column: ScannedColumn, groups: list[NumberText], unclear: list[NumberText]) -> bool:
    """Return whether numbers such as 1.121 continue integers below 1,000: 73, 904, 380 and at least seven others.

    Read as fractions, each of them would have three digits behind the point, though no other number has any.
    """
    plain = [group for group in groups if group not in unclear]
    if any(group.decimal or group.thousands or group.clock for group in plain) or _holds_typed_numbers(column):
        return False
    integers = [int(digits) for group in plain for digits in column.groups[group][1] if digits.isdigit()]
    large = [float(re.sub("[.,]", "", digits)) for group in unclear for digits in column.groups[group][1]]
    return len(integers) >= _FEW_INTEGERS and 200 <= max(integers) < 1000 <= min(large) and max(large) < 1e5


def _convert(digits: list[str], group: NumberText, form: NumberFormat) -> Floats:
    """Return the numbers of the digits of a group."""
    text = "\n".join(digits)
    if group.unit != TIME:
        for mark in " ',.":
            text = text if mark == form.decimal else text.replace(mark, "")
        text = text.replace(",", ".")
    values = np.array(text.split("\n"), dtype=np.float64)
    if form.unit == TIME and group.unit not in (TIME, ""):
        values *= DURATION_UNITS["min" if group.unit == "m" else group.unit.lower()]
    elif not form.unit and group.unit:
        values *= 10.0 ** POWERS_OF_10[group.unit]
    if form.marks == HOURS:
        values *= 60
    return -values if group.negative else values


def _question(column: ScannedColumn, groups: list[NumberText], values: Floats, form: NumberFormat, doubt: str) -> str:
    """Return what was guessed about a column, with an example; empty if there is no other way to read it."""
    shown, guess = groups[0], doubt
    thousands = next((group for group in groups if group.thousands in (" ", "'")), None)
    guessed = next((group for group in groups if group.guess), None)
    power = next((group for group in groups if group.unit and not form.unit), None)
    if power is not None:
        shown, guess = power, f"numbers with {power.unit} for a power of 10"
    elif doubt:
        shown = next((group for group in groups if group.clock or (group.unclear and form.unit != TIME)), shown)
    elif thousands is not None:
        shown, guess = thousands, f"numbers with {_MARK_NAMES[thousands.thousands]} for thousands"
    elif guessed is not None:
        shown, guess = guessed, guessed.guess
    elif form.unit and form.unit != TIME and _is_doubtful_unit(column, groups, form.unit):
        guess = f"numbers in the unit {form.unit!r}"
    if not guess:
        return ""
    place = column.groups[shown][0][0]
    value = float(values[place])
    return (
        f"{guess}: {quote_cell(column.cells[place])} is {format_clock(value) if form.unit == TIME else f'{value:.12g}'}"
    )


def _is_doubtful_unit(column: ScannedColumn, groups: list[NumberText], unit: str) -> bool:
    """Return whether a word may not be a unit.

    A doubtful word is unknown, or a single letter (t may be tonnes or thousands), or follows few different integers
    without a blank.
    """
    if not is_known_unit(unit) or (len(unit) == 1 and unit.isalpha()):
        return True
    n_different = sum(len(column.groups[group][0]) for group in groups)
    return not is_symbol(unit) and all(group.glued and not group.decimal for group in groups) and n_different <= 20


def unreadable_numbers(name: str, cells: Any, column: NumberColumn) -> ValueError:
    """Return the error for a column whose numbers cannot be read together."""
    assert column.problem is not None
    row, shown = cells.tolist().index(column.problem.text), quote_cell(column.problem.text)
    return ValueError(
        f"row {row + 1} of the column {name!r} holds {shown}: {column.problem.reason}, or name the column in "
        "categorical or drop"
    )


def words_and_odd_row(cells: Any, column: NumberColumn) -> tuple[list[str], int | None]:
    """Return the words in a column of numbers, and the first row with any other odd cell, or None.

    Words are texts without a digit, and errors of a spreadsheet such as #DIV/0!.
    """
    words: dict[str, None] = {}
    for row in np.flatnonzero(column.odd).tolist():
        item = cells[row]
        if not isinstance(item, str) or (any(letter.isdigit() for letter in item) and item != _DIVISION_BY_0):
            return list(words), row
        words[item] = None
    return list(words), None
