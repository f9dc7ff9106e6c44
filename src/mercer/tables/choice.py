"""Choose an encoding for each column of a table, from its cells, its name and the user's options."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from mercer.samples.arrays import Floats, weighted_median
from mercer.tables.cells import (
    Cells,
    as_numbers,
    as_seconds,
    date_forms,
    level_name,
    missing_values,
    parse_number,
    parse_seconds,
    parse_truth,
    words_among_numbers,
)
from mercer.tables.dialect import looks_numeric
from mercer.tables.encodings import (
    CYCLES,
    Dates,
    DroppedColumn,
    Encoding,
    Levels,
    Numbers,
    Words,
    expect_no_infinity,
    moments,
    split_words,
    vocabulary,
)
from mercer.tables.frame import Frame

# Names of identifier columns: the index of a frame or spreadsheet, id, customer_id, CustomerID, nr.
_IDENTIFIER: Final = re.compile(r"(?i:|unnamed.*|index|idx|row|no|(.*[_ .-])?(nr|id)([_ .-].*)?)|.*[a-z0-9](Id|ID|Nr)")
# Names of columns whose numbers are codes, so that sums make no sense: zip, zip_code, PLZ, country code, ProductCode.
_CODE: Final = re.compile(
    r"(?i:(.*[_ .-])?(zip|plz|postleitzahl|((zip|post|postal)[_ .-]?)?code)([_ .-].*)?)|.*[a-z0-9](Code|Zip|Plz|PLZ)"
)
_COMMA: Final = re.compile(r"[+-]?\d+(,\d+)?")
# A column of numbers and words is a category if it has at most this many different numbers: 4, 6, 8 and "rotary".
_FEW: Final = 10

COLUMN_OPTIONS: Final = ("drop", "only", "categorical", "numeric", "text")


@dataclass(frozen=True)
class ColumnOptions:
    """User options of `Tabular`: columns to drop, to keep alone, or to read as categories, numbers or text."""

    drop: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    standardise: bool = True

    @property
    def named(self) -> set[str]:
        """Columns that the user names, and that are therefore not dropped on a guess."""
        return {*(self.only or ()), *self.categorical, *self.numeric, *self.text}

    def check(self, names: list[str]) -> None:
        """Raise ValueError for a column that the table lacks, or that two options treat in different ways."""
        for word in COLUMN_OPTIONS:
            unknown = [name for name in getattr(self, word) or () if name not in names]
            if unknown:
                known = ", ".join(map(repr, names))
                raise ValueError(f"{word} names the column {unknown[0]!r}, which the table lacks; it has {known}")
        kinds = Counter(name for each in (self.categorical, self.numeric, self.text) for name in set(each))
        both = set(self.drop) & self.named or {name for name, count in kinds.items() if count > 1}
        if both:
            raise ValueError(f"the column {min(both)!r} is named in two options that exclude each other")


def encodings_for(frame: Frame, options: ColumnOptions, weight: Floats) -> list[Encoding]:
    """Return one encoding for each column; raise ValueError if all columns are dropped."""
    options.check(frame.names)
    declared = frame.categories - {*options.text, *options.numeric}
    options = replace(options, categorical=(*options.categorical, *declared))
    encodings = [
        _choose_encoding(name, column, options, weight) for name, column in zip(frame.names, frame.columns, strict=True)
    ]
    if all(isinstance(one, DroppedColumn) for one in encodings):
        reasons = "; ".join(f"{one.name!r}: {one.description}" for one in encodings)
        raise ValueError(
            f"with n_samples={len(frame)} no column is left to learn from ({reasons}); columns named in only, "
            "categorical or text are kept"
        )
    return encodings


def _choose_encoding(name: str, cells: Cells, options: ColumnOptions, weight: Floats) -> Encoding:
    if name in options.drop or (options.only is not None and name not in options.only):
        return DroppedColumn(name, "as requested", guessed=False)
    if name in options.text:
        words, weights = vocabulary(cells)
        return (
            Words(name, words, weights) if words else DroppedColumn(name, "no word occurs in two rows", guessed=False)
        )
    if missing_values(cells).all():
        return DroppedColumn(name, "empty in every row", guessed=False)
    if name in options.categorical:
        return _levels(name, cells)
    if cells.dtype.kind == "M":
        return _dates(name, cells, "ISO", weight)
    if cells.dtype.kind in "iuf":
        return _levels(name, cells) if _is_code(name, cells, options) else _numbers(name, cells, options, weight)
    return _choose_for_objects(name, cells, options, weight)


def _choose_for_objects(name: str, cells: Cells, options: ColumnOptions, weight: Floats) -> Encoding:
    items = [item for item in cells.tolist() if item is not None]
    if all(parse_truth(item) is not None for item in items):
        spelt = [None if item is None else str(parse_truth(item)) for item in cells]
        return _levels(name, np.array(spelt, dtype=object), truth_values=True)
    are_numbers = [parse_number(item) is not None for item in items]
    if all(are_numbers):
        return _levels(name, cells) if _is_code(name, cells, options) else _numbers(name, cells, options, weight)
    distinct = len({level_name(item) for item in items})
    if _are_numbers_and_words(cells, are_numbers):
        numbers = {parse_number(item) for item in items} - {None}
        few = len(numbers) <= _FEW and 2 * distinct <= len(items) and name not in options.numeric
        return _levels(name, cells) if few else _numbers(name, cells, options, weight)
    if not all(isinstance(item, str) and item.isdecimal() for item in items):  # else codes, some with a leading zero
        _expect_one_kind(name, cells, are_numbers, "numbers")
        _expect_plain_numbers(name, cells)
    forms = date_forms(items)
    if len(forms) > 1:
        return DroppedColumn(
            name, f"dates such as {items[0]} may begin with the day or the month; write {_iso(items[0])}", guessed=True
        )
    if forms:
        return _dates(name, cells, forms[0], weight)
    _expect_one_kind(name, cells, [parse_seconds(item, "ISO") is not None for item in items], "dates")
    # In a table with few rows, a category may be different in every row.
    if distinct > max(20, len(items) / 2) and name not in options.named:
        return _choose_for_texts(name, cells, items, distinct)
    return _levels(name, cells)


def _choose_for_texts(name: str, cells: Cells, items: list[Any], distinct: int) -> Encoding:
    """Encode sentences, whose words recur in some rows but not in all, and drop identifiers, names and addresses."""
    words_by_row = [set(split_words(item)) for item in items]
    words, weights = vocabulary(cells)
    rows = Counter(word for each in words_by_row for word in each)
    informative = [word for word in words if rows[word] < len(items)]
    recurring = sum(rows[word] for word in words)
    if recurring >= 3 * len(items) and 2 * recurring >= sum(map(len, words_by_row)) and len(informative) >= _FEW:
        return Words(name, words, weights)
    if distinct == len(items) and not any(" " in str(item) for item in items):
        return DroppedColumn(name, "an identifier, different in every row", guessed=True)
    return DroppedColumn(name, f"{distinct:,} different texts in {len(items):,} rows", guessed=True)


def _are_numbers_and_words(cells: Cells, are_numbers: list[bool]) -> bool:
    """Return whether at least four of five cells are numbers, and the others words such as unknown, k.A. or a dash."""
    return 5 * sum(are_numbers) >= 4 * len(are_numbers) and words_among_numbers(cells)[1] is None


def _is_code(name: str, cells: Cells, options: ColumnOptions) -> bool:
    """Return whether numbers are codes: the name suggests it, and they are integers that repeat."""
    if name in options.numeric or _CODE.fullmatch(name.strip()) is None:
        return False
    values = as_numbers(cells)[0]
    known = values[~np.isnan(values)]
    return bool((known % 1 == 0).all()) and 2 < len(np.unique(known)) <= max(20, len(known) / 2)


READ_AS_MISSING: Final = "read as missing values"


def _first_words(words: list[str]) -> str:
    return ", ".join(map(repr, words[:3])) + (f" and {len(words) - 3} more" if len(words) > 3 else "")


def unexpected_words(one: Encoding, cells: Cells) -> str | None:
    """Return a warning about words in a column that held numbers and no missing values in training, or None."""
    look = isinstance(one, Numbers) and cells.dtype == object and not one.n_holes
    words = words_among_numbers(cells)[0] if look else []
    return f"the column {one.name!r} holds {_first_words(words)} beside numbers: {READ_AS_MISSING}" if words else None


def guesses_in(frame: Frame, options: ColumnOptions, source: str) -> dict[str, str]:
    """Return the `guesses` about a table; errors begin with its source and count rows in its order."""
    try:
        return guesses(frame, encodings_for(frame, options, np.ones(len(frame))), options)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def guesses(frame: Frame, encodings: list[Encoding], options: ColumnOptions) -> dict[str, str]:
    """Return a message for each column whose kind was guessed and may be meant otherwise."""
    messages = {}
    for one, cells in zip(encodings, frame.columns, strict=True):
        text = None if one.name in {*options.categorical, *frame.categories} else _describe_guess(one, cells, options)
        if text is not None:
            messages[one.name] = f"the column {one.name!r} {text}"
    return messages


def _describe_guess(one: Encoding, cells: Cells, options: ColumnOptions) -> str | None:
    if isinstance(one, DroppedColumn):
        remedy = "name it in drop if that is right, else in only, categorical or text"
        return f"is {one.description}; {remedy}" if one.guessed else None
    if isinstance(one, Words):
        remedy = "name it in text if that is right, else in drop"
        return None if one.name in options.text else f"is read as text, since its words recur; {remedy}"
    if isinstance(one, Numbers) and cells.dtype == object:
        words = words_among_numbers(cells)[0]
        if not words or one.name in options.numeric:
            return None
        remedy = "name it in numeric if that is right, else in categorical"
        return f"holds {_first_words(words)} beside numbers: {READ_AS_MISSING}; {remedy}"
    if isinstance(one, Levels) and any(
        parse_number(item) is not None for item in cells[~missing_values(cells)].tolist()
    ):
        return "holds numbers and is read as a category; name it in categorical if that is right, else in numeric"
    return None


def _numbers(name: str, cells: Cells, options: ColumnOptions, weight: Floats) -> Encoding:
    values = as_numbers(cells)[0]
    expect_no_infinity(values, name)
    empty = np.isnan(values)
    known, n_missing = values[~empty], int(empty.sum())
    if known.min() == known.max() and not n_missing:
        return DroppedColumn(name, f"{known[0]:g} in every row", guessed=False)
    if name not in options.named and _is_identifier(name, known):
        return DroppedColumn(name, "an identifier, by its name and its different values", guessed=True)
    fill = weighted_median(known, weight[~empty])
    centre, scale = moments(np.where(empty, fill, values), weight) if options.standardise else (0.0, 1.0)
    return Numbers(name, fill, centre, scale, n_missing, options.standardise)


def _is_identifier(name: str, known: Floats) -> bool:
    named_so = _IDENTIFIER.fullmatch(name.strip()) is not None
    return named_so and bool((known % 1 == 0).all()) and 2 * len(np.unique(known)) > len(known)


def _levels(name: str, cells: Cells, truth_values: bool = False) -> Encoding:
    empty = missing_values(cells)
    levels = sorted({level_name(item) for item in cells[~empty].tolist()})
    if len(levels) == 1 and not empty.any():
        return DroppedColumn(name, f"{levels[0]} in every row", guessed=False)
    return Levels(name, tuple(levels), int(empty.sum()), truth_values)


def _dates(name: str, cells: Cells, form: str, weight: Floats) -> Encoding:
    values, _ = as_seconds(cells, form)
    empty = np.isnan(values)
    known, n_missing = values[~empty], int(empty.sum())
    if known.min() == known.max() and not n_missing:
        return DroppedColumn(name, "the same date in every row", guessed=False)
    has_times = bool((known % CYCLES["time of day"] != 0).any())
    spans_years = bool(np.ptp(known) > CYCLES["time of year"])
    cycles = tuple(cycle for cycle, wanted in zip(CYCLES, (has_times, spans_years), strict=True) if wanted)
    fill = weighted_median(known, weight[~empty])
    return Dates(name, form, fill, *moments(np.where(empty, fill, values), weight), n_missing, cycles)


def _expect_one_kind(name: str, cells: Cells, are: list[bool], kind: str) -> None:
    """Raise ValueError if most cells are of one kind and a few are not: these are mistakes, or the cells are codes."""
    if 2 * sum(are) <= len(are):
        return
    rows = np.flatnonzero(~missing_values(cells))[~np.array(are)]
    more = f" (and {len(rows) - 1:,} more such rows)" if len(rows) > 1 else ""
    raise ValueError(
        f"row {rows[0] + 1} of the column {name!r} holds {cells[rows[0]]!r:.40}{more}, but {sum(are):,} rows hold "
        f"{kind}; correct or empty the cell, or name the column in categorical or drop"
    )


def _expect_plain_numbers(name: str, cells: Cells) -> None:
    """Raise ValueError if most cells look like numbers but not all can be parsed, such as 57,9 and 1 200 €."""
    known = np.flatnonzero(~missing_values(cells))
    spelt = [row for row in known if isinstance(cells[row], str) and looks_numeric(cells[row])]
    if 2 * len(spelt) <= len(known):
        return
    row = next(row for row in spelt if parse_number(cells[row]) is None)
    where = f"row {row + 1} of the column {name!r} holds {cells[row]!r:.40}"
    if all(_COMMA.fullmatch(cells[row]) for row in spelt):  # in a file, the decimal mark would have been detected
        raise ValueError(
            f"{where}: in a frame, numbers with a comma are texts; read the file with decimal=',' or thousands=',' "
            "(pandas.read_csv), or name the column in categorical or drop"
        )
    raise ValueError(
        f"{where}, and {len(spelt):,} of {len(known):,} rows hold numbers, but their spellings differ; write "
        "all with one decimal mark and one unit (a frame: as numbers), or name the column in "
        "categorical or drop"
    )


def _iso(item: Any) -> str:
    seconds = parse_seconds(item, "day first")
    return str(np.datetime64(int(seconds or 0), "s").astype("datetime64[D]"))
