"""Choose an encoding for each column of a table, from its cells, its name and the user's options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from mercer.samples.arrays import Flags, Floats, rounded_sums_by, weighted_median
from mercer.tables.cells import (
    Cells,
    are_truth_values,
    as_seconds,
    date_forms,
    level_name,
    missing_values,
    parse_seconds,
    parse_truth_or_digit,
)
from mercer.tables.encodings import (
    BEGINS_WITH_DIGITS,
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
    with_padded_integers,
)
from mercer.tables.frame import Frame
from mercer.tables.number_column import NumberColumn, NumberFormat, unreadable_numbers, words_and_odd_row
from mercer.tables.number_text import quote_cell

# Names of identifier columns: the index of a frame or spreadsheet, id, customer_id, CustomerID, nr.
_IDENTIFIER: Final = re.compile(r"(?i:|unnamed.*|index|idx|row|no|(.*[_ .-])?(nr|id)([_ .-].*)?)|.*[a-z0-9](Id|ID|Nr)")
# Names of numbers of rows, if the values lie densely side by side too: num_client, client_no, Kundennummer, order_key.
_NUMBERING: Final = re.compile(
    r"(?i:(.*[_ .-])?(num|no|key|ref|nummer|number|num[eé]ro|n[uú]mero)([_ .-].*)?|.*nummer)"
    r"|.*[a-z0-9](Num|No|Key|Number)"
)
# Names of columns whose numbers are codes, so that sums make no sense: zip, zip_code, PLZ, country code, ProductCode.
_CODE: Final = re.compile(
    r"(?i:(.*[_ .-])?(zip|plz|postleitzahl|((zip|post|postal)[_ .-]?)?code)([_ .-].*)?)|.*[a-z0-9](Code|Zip|Plz|PLZ)"
)
# A column of numbers and words is a category if it has at most this many different numbers: 4, 6, 8 and "rotary".
_FEW: Final = 10
_MOST_LEVELS: Final = 100  # levels of a category that the user has not named; further levels share a column
_MOST_CODES: Final = 20  # different codes in a column whose name does not suggest codes

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
        kinds = Counter(name for parameter in (self.categorical, self.numeric, self.text) for name in set(parameter))
        conflicting = set(self.drop) & self.named or {name for name, count in kinds.items() if count > 1}
        if conflicting:
            raise ValueError(f"the column {min(conflicting)!r} is named in two options that exclude each other")


def encodings_for(frame: Frame, options: ColumnOptions, weight: Floats) -> list[Encoding]:
    """Return one encoding for each column; raise ValueError if all columns are dropped."""
    options.check(frame.names)
    declared_categories = frame.categories - {*options.text, *options.numeric}
    options = replace(options, categorical=(*options.categorical, *declared_categories))
    encodings = [_choose_encoding(name, frame, options, weight) for name in frame.names]
    if all(isinstance(encoding, DroppedColumn) for encoding in encodings):
        reasons = "; ".join(f"{encoding.name!r}: {encoding.description}" for encoding in encodings)
        raise ValueError(
            f"with n_samples={len(frame)} no column is left to learn from ({reasons}); columns named in only, "
            "categorical or text are kept"
        )
    return encodings


def _choose_encoding(name: str, frame: Frame, options: ColumnOptions, weight: Floats) -> Encoding:
    """Return the encoding of one column, from its cells, its name and the options."""
    cells = frame[name]
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
        return _levels_encoding(name, cells, weight, keep_all=True)
    if cells.dtype.kind == "M":
        return _dates_encoding(name, cells, "ISO", weight)
    if cells.dtype.kind in "iuf":
        values = cells.astype(np.float64)
        return _choose_for_numbers(name, cells, values, NumberFormat(), options, weight)
    return _choose_for_objects(name, cells, frame.number_column(name), options, weight)


def _choose_for_objects(
    name: str, cells: Cells, column: NumberColumn, options: ColumnOptions, weight: Floats
) -> Encoding:
    """Return the encoding of a column of texts, or of cells of several types."""
    items = [item for item in cells.tolist() if item is not None]
    if are_truth_values(items):
        return _truth_encoding(name, cells)
    distinct = len({level_name(item) for item in items})
    if name in options.numeric:
        column = with_padded_integers(cells, column)
    if column.problem is not None:
        raise unreadable_numbers(name, cells, column)
    are_numbers = ~column.odd[~missing_values(cells)]
    if column.is_complete:
        return _choose_for_numbers(name, cells, column.values, column.format, options, weight)
    if 2 * are_numbers.sum() > len(items) and words_and_odd_row(cells, column)[1] is None:
        few = len(np.unique(column.values[~np.isnan(column.values)])) <= _FEW and 2 * distinct <= len(items)
        if few and name not in options.numeric:
            return _levels_encoding(name, cells, weight)
        if column.mostly_numbers or name in options.numeric:
            return _numbers_encoding(name, column.values, column.format, options, weight)
    if not _are_codes_of_digits(items):
        only_words = words_and_odd_row(cells, column)[1] is None
        _expect_one_kind(name, cells, are_numbers, "numbers", "numeric, categorical" if only_words else "categorical")
    forms = date_forms(items)
    if len(forms) > 1:
        return DroppedColumn(
            name,
            f"dates such as {items[0]} may begin with the day or the month; write {_iso_date(items[0])}",
            guessed=True,
        )
    if forms:
        return _dates_encoding(name, cells, forms[0], weight)
    _expect_one_kind(name, cells, np.array([parse_seconds(item, "ISO") is not None for item in items]), "dates")
    # In a table with few rows, a category may be different in every row.
    if distinct > max(20, len(items) / 2) and name not in options.named:
        return _choose_for_texts(name, cells, items, distinct)
    return _levels_encoding(name, cells, weight)


def _choose_for_texts(name: str, cells: Cells, items: list[Any], distinct: int) -> Encoding:
    """Encode sentences, whose words recur in some rows but not in all, and drop identifiers, names and addresses."""
    words_by_row = [set(split_words(item)) for item in items]
    words, weights = vocabulary(cells)
    rows = Counter(word for row_words in words_by_row for word in row_words)
    beginning_with_digits = [str(item) for item in items if str(item)[:1].isdigit()]
    if _are_codes_of_digits(items):
        code = next((item for item in items if item.startswith("0")), items[0])
        return DroppedColumn(name, f"{BEGINS_WITH_DIGITS} but codes, such as {quote_cell(code)}", guessed=True)
    if 2 * len(beginning_with_digits) > len(items) and 2 * sum(map(_has_word, items)) <= len(items):
        return DroppedColumn(name, f"{BEGINS_WITH_DIGITS}: {quote_cell(beginning_with_digits[0])}", guessed=True)
    informative = [word for word in words if rows[word] < len(items)]
    recurring = sum(rows[word] for word in words)
    if recurring >= 3 * len(items) and 2 * recurring >= sum(map(len, words_by_row)) and len(informative) >= _FEW:
        return Words(name, words, weights)
    if 2 * len(beginning_with_digits) > len(items):
        return DroppedColumn(name, f"{BEGINS_WITH_DIGITS}: {quote_cell(beginning_with_digits[0])}", guessed=True)
    if distinct == len(items) and not any(" " in str(item) for item in items):
        return DroppedColumn(name, "an identifier, different in every row", guessed=True)
    return DroppedColumn(name, f"{distinct:,} different texts in {len(items):,} rows", guessed=True)


def _are_codes_of_digits(items: list[Any]) -> bool:
    """Return whether all cells are digits; if the column is not read as numbers, some begin with 0."""
    return all(isinstance(item, str) and item.isdecimal() for item in items)


def _has_word(item: Any) -> bool:
    return re.search(r"[^\W\d_]{2}", str(item)) is not None


def _choose_for_numbers(
    name: str, cells: Cells, values: Floats, form: NumberFormat, options: ColumnOptions, weight: Floats
) -> Encoding:
    """Return the encoding of a column of numbers."""
    if name not in options.numeric and not form.unit and _are_codes(name, values[~np.isnan(values)]):
        return _levels_encoding(name, cells, weight)
    return _numbers_encoding(name, values, form, options, weight)


def _are_codes(name: str, known: Floats) -> bool:
    """Return whether numbers are codes: integers that repeat, with a name such as zip or a look such as 5411, 5812."""
    if not np.isfinite(known).all() or (known % 1 != 0).any():
        return False
    distinct = np.unique(known)
    if _CODE.fullmatch(name.strip()) is not None:
        return 2 < len(distinct) <= max(20, len(known) / 2)
    return _look_like_codes(distinct, len(known))


def _look_like_codes(distinct: Floats, n_rows: int) -> bool:
    """Return whether integers look like codes: few, of equal length from three digits on, uneven and far apart.

    Amounts and settings are mostly round; counts, years and scores lie side by side.
    """
    low, high = distinct[0], distinct[-1]
    if not 2 < len(distinct) <= _MOST_CODES or n_rows < 10 * len(distinct) or low < 100:
        return False
    have_same_length = len(str(int(low))) == len(str(int(high)))
    are_round = np.mean(distinct % 5 == 0) > 0.5
    may_be_years = low >= 1800 and high <= 2100
    gaps = np.diff(distinct)
    are_side_by_side = high - low < 4 * len(distinct)
    return bool(
        have_same_length
        and not are_round
        and not may_be_years
        and not are_side_by_side
        and gaps.max() >= 2 * gaps.min()
    )


READ_AS_MISSING: Final = "read as missing values"


def _quote_words(words: list[str]) -> str:
    return ", ".join(map(quote_cell, words[:3])) + (f" and {len(words) - 3} more" if len(words) > 3 else "")


def unexpected_words(encoding: Numbers, frame: Frame) -> str | None:
    """Return a warning about words in a column that held numbers and no missing values in training, or None."""
    cells = frame[encoding.name]
    if cells.dtype != object:
        return None
    words = words_and_odd_row(cells, frame.number_column(encoding.name, NumberFormat(encoding.marks, encoding.unit)))[0]
    return (
        f"the column {encoding.name!r} holds {_quote_words(words)} beside numbers: {READ_AS_MISSING}" if words else None
    )


def guesses_in(frame: Frame, options: ColumnOptions, source: str) -> dict[str, str]:
    """Return the `guesses` about a table; errors begin with its source and count rows in its order."""
    try:
        return guesses(frame, encodings_for(frame, options, np.ones(len(frame))), options)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def guesses(frame: Frame, encodings: list[Encoding], options: ColumnOptions) -> dict[str, str]:
    """Return a message for each column whose kind was guessed and may be meant otherwise."""
    messages = {
        new: f"the column {old!r} occurs more than once: this one is called {new!r}; rename it, or name it in drop"
        for new, old in frame.renamed.items()
        if new not in options.drop
    }
    for encoding in encodings:
        text = (
            None
            if encoding.name in {*options.categorical, *frame.categories}
            else _describe_guess(encoding, frame, options)
        )
        if text is not None:
            messages[encoding.name] = text
    return messages


def target_guesses(y: Any, name: str) -> dict[str, str]:
    """Return a message if two classes differ in capital letters alone, such as OUI and oui."""
    classes = {*np.asarray(y).ravel().tolist()} if np.asarray(y).dtype.kind in "OU" else set()
    pair = next(iter(_equal_but_for_case(sorted(label for label in classes if isinstance(label, str)))), None)
    if pair is None:
        return {}
    return {name: f"{name!r} holds {pair[0]!r} and {pair[1]!r}, two classes; write them alike if they are one"}


def _describe_guess(encoding: Encoding, frame: Frame, options: ColumnOptions) -> str | None:
    """Return what was guessed about a column, with the remedy; None if nothing was."""
    the_column = f"the column {encoding.name!r}"
    if isinstance(encoding, DroppedColumn):
        others = "only, categorical or text"
        if _are_codes_of_digits([item for item in frame[encoding.name].tolist() if item is not None]):
            others = "numeric, categorical or text"
        remedy = f"name it in drop if that is right, else in {others}"
        return f"{the_column} is {encoding.description}; {remedy}" if encoding.guessed else None
    if isinstance(encoding, Words):
        remedy = "name it in text if that is right, else in drop"
        return (
            None if encoding.name in options.text else f"{the_column} is read as text, since its words recur; {remedy}"
        )
    cells = frame[encoding.name]
    if isinstance(encoding, Numbers):
        return None if encoding.name in options.numeric else _describe_numbers(encoding, frame)
    if not isinstance(encoding, Levels):
        return None
    remedy = "name it in categorical if that is right, else in"
    if encoding.n_rare:
        keep_text = "name it in categorical to give each level a column, or in drop"
        rare_text = f"{encoding.n_rare:,} rare levels beside the {len(encoding.levels)} most frequent"
        return f"{the_column} has {rare_text}: they share one column; {keep_text}"
    known_cells = cells[~missing_values(cells)]
    if not encoding.truth_values and (known_cells.dtype.kind in "iuf" or _holds_numbers(frame, encoding.name)):
        return f"{the_column} holds numbers and is read as a category; {remedy} numeric"
    pair = next(iter(_equal_but_for_case(encoding.levels)), None)
    if pair is not None:
        return f"{the_column} holds {pair[0]!r} and {pair[1]!r}, two levels; write them alike if they are one"
    if len(encoding.levels) > _FEW and _may_be_numbers(encoding.levels):
        shown = f"its {len(encoding.levels)} levels hold numbers, such as {quote_cell(encoding.levels[0])}"
        return f"{the_column} is read as a category, though {shown}; {remedy} drop"
    return None


def _may_be_numbers(levels: Sequence[str]) -> bool:
    """Return whether most levels begin with a digit, or all have one text around a number; codes such as 007 do not."""
    if all(level.isdecimal() for level in levels):
        return False
    if 2 * sum(re.match(r"\W{0,2}[0-9]", level) is not None for level in levels) > len(levels):
        return True
    return len({re.sub(r"[0-9]+([.,][0-9]+)?", "1", level, count=1) for level in levels}) == 1


def _holds_numbers(frame: Frame, name: str) -> bool:
    return not np.isnan(frame.number_column(name).values).all()


def _describe_numbers(encoding: Numbers, frame: Frame) -> str | None:
    """Return what was guessed about a column of numbers: the meaning of words among them, of marks, a unit or dates."""
    cells = frame[encoding.name]
    values = frame.number_column(encoding.name).values if cells.dtype == object else cells.astype(np.float64)
    date = _first_packed_date(values)
    if date is not None:
        return (
            f"the column {encoding.name!r} is read as numbers, though all of them are dates such as "
            f"{date.replace('-', '')}; name it in numeric if that is right, else write {date}"
        )
    if cells.dtype != object:
        return None
    column = frame.number_column(encoding.name)
    remedy = f"name it in numeric if that is right, else {column.remedy}"
    words = words_and_odd_row(cells, column)[0]
    if words:
        guess = f" (read as {column.question})" if column.question else ""
        return (
            f"the column {encoding.name!r} holds {_quote_words(words)} beside numbers{guess}: "
            f"{READ_AS_MISSING}; {remedy}"
        )
    return f"read {encoding.name!r} as {column.question}; {remedy}" if column.question else None


def _first_packed_date(values: Floats) -> str | None:
    """Return the first of numbers that all are dates from 1900 to 2100 such as 20210305, as 2021-03-05; else None."""
    known = values[~np.isnan(values)]
    if not ((known % 1 == 0) & (known >= 19000101) & (known <= 21001231)).all():
        return None
    months, day = np.divmod(known.astype(np.int64), 100)
    year, month = np.divmod(months, 100)
    if not ((month >= 1) & (month <= 12) & (day >= 1)).all():
        return None
    first_days = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    dates = first_days.astype("datetime64[D]") + (day - 1)
    return str(dates[0]) if (dates.astype("datetime64[M]") == first_days).all() else None


def _equal_but_for_case(levels: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of levels that differ in capital letters alone."""
    first: dict[str, str] = {}
    return [
        (first_spelling, level)
        for level in levels
        if (first_spelling := first.setdefault(level.casefold(), level)) != level
    ]


def _numbers_encoding(
    name: str, values: Floats, form: NumberFormat, options: ColumnOptions, weight: Floats
) -> Encoding:
    """Return the encoding of a column of numbers; drop constant columns and identifiers."""
    expect_no_infinity(values, name)
    empty = np.isnan(values)
    known_numbers, n_missing = values[~empty], int(empty.sum())
    if known_numbers.min() == known_numbers.max() and not n_missing:
        return DroppedColumn(name, f"{known_numbers[0]:g} in every row", guessed=False)
    if name not in options.named and _is_identifier(name, known_numbers):
        return DroppedColumn(name, "an identifier, judging by its name and its different values", guessed=True)
    fill = weighted_median(known_numbers, weight[~empty])
    centre, scale = moments(np.where(empty, fill, values), weight) if options.standardise else (0.0, 1.0)
    return Numbers(name, fill, centre, scale, n_missing, options.standardise, form.unit, form.marks)


def _is_identifier(name: str, known: Floats) -> bool:
    """Return whether whole numbers are identifiers, by their name and because most or all of them differ."""
    if (known % 1 != 0).any():
        return False
    n_different = len(np.unique(known))
    if _IDENTIFIER.fullmatch(name.strip()) is not None:
        return 2 * n_different > len(known)
    dense = bool(np.ptp(known) < 10 * len(known))
    return _NUMBERING.fullmatch(name.strip()) is not None and dense and n_different == len(known) > _FEW


def _levels_encoding(name: str, cells: Cells, weight: Floats, keep_all: bool = False) -> Encoding:
    """Encode a category; beyond `_MOST_LEVELS`, levels with little weight share a column unless `keep_all`."""
    empty = missing_values(cells)
    level_names = np.array([level_name(item) for item in cells[~empty].tolist()], dtype=object)
    levels, index = np.unique(level_names, return_inverse=True)
    if len(levels) == 1 and not empty.any():
        return DroppedColumn(name, f"{levels[0]} in every row", guessed=False)
    n_rare = 0
    if len(levels) > _MOST_LEVELS and not keep_all:
        frequent = np.argsort(-rounded_sums_by(index, weight[~empty], len(levels)), kind="stable")[:_MOST_LEVELS]
        n_rare = len(levels) - _MOST_LEVELS
        levels = levels[np.sort(frequent)]
    return Levels(name, tuple(levels.tolist()), int(empty.sum()), False, n_rare)


def _truth_encoding(name: str, cells: Cells) -> Encoding:
    """Encode truth values; each level is named by its most frequent word, such as oui for oui, Oui, OUI and 1."""
    counts = Counter(level_name(item) for item in cells.tolist() if item is not None)
    by_truth: dict[bool | None, str] = {}
    for word in sorted(counts, key=lambda word: (word.isdigit(), -counts[word], word)):
        truth = parse_truth_or_digit(word)
        by_truth.setdefault(truth, str(truth) if word.lower() in ("true", "false") else word)
    n_missing = int(missing_values(cells).sum())
    if len(by_truth) == 1 and not n_missing:
        return DroppedColumn(name, f"{next(iter(by_truth.values()))} in every row", guessed=False)
    return Levels(name, tuple(sorted(by_truth.values())), n_missing, True)


def _dates_encoding(name: str, cells: Cells, form: str, weight: Floats) -> Encoding:
    """Return the encoding of dates written in a form; drop a column with the same date in every row."""
    values, _ = as_seconds(cells, form)
    empty = np.isnan(values)
    known_dates, n_missing = values[~empty], int(empty.sum())
    if known_dates.min() == known_dates.max() and not n_missing:
        return DroppedColumn(name, "the same date in every row", guessed=False)
    has_times = bool((known_dates % CYCLES["time of day"] != 0).any())
    spans_years = bool(np.ptp(known_dates) > CYCLES["time of year"])
    cycles = tuple(cycle for cycle, included in zip(CYCLES, (has_times, spans_years), strict=True) if included)
    fill = weighted_median(known_dates, weight[~empty])
    return Dates(name, form, fill, *moments(np.where(empty, fill, values), weight), n_missing, cycles)


def _expect_one_kind(name: str, cells: Cells, matches: Flags, kind: str, options: str = "categorical") -> None:
    """Raise ValueError if most cells are of one kind and a few are not: these are mistakes, or the cells are codes."""
    if 2 * matches.sum() <= len(matches):
        return
    rows = np.flatnonzero(~missing_values(cells))[~matches]
    shown, more = quote_cell(cells[rows[0]]), f" (and {len(rows) - 1:,} more such rows)" if len(rows) > 1 else ""
    raise ValueError(
        f"row {rows[0] + 1} of the column {name!r} holds {shown}{more}, but {matches.sum():,} rows hold "
        f"{kind}; correct or empty the cell, or name the column in {options} or drop"
    )


def _iso_date(item: Any) -> str:
    seconds = parse_seconds(item, "day first")
    return str(np.datetime64(int(seconds or 0), "s").astype("datetime64[D]"))
