"""Which encoding each column gets: by what its cells hold, what it is called, and what was asked for."""

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
    holes,
    level,
    number,
    seconds,
    truth,
    words_among,
)
from mercer.tables.dialect import looks_numeric
from mercer.tables.encodings import (
    CYCLES,
    Dates,
    Encoding,
    LeftOut,
    Levels,
    Numbers,
    Words,
    finite_or_hole,
    moments,
    vocabulary,
    words_of,
)
from mercer.tables.frame import Frame

# An index that a frame or a spreadsheet wrote, or a column that says that it is one: id, customer_id, CustomerID, nr.
_IDENTIFIER: Final = re.compile(r"(?i:|unnamed.*|index|idx|row|no|(.*[_ .-])?(nr|id)([_ .-].*)?)|.*[a-z0-9](Id|ID|Nr)")
# Numbers of which no sum makes sense: zip, zip_code, PLZ, country code, ProductCode.
_CODE: Final = re.compile(
    r"(?i:(.*[_ .-])?(zip|plz|postleitzahl|((zip|post|postal)[_ .-]?)?code)([_ .-].*)?)|.*[a-z0-9](Code|Zip|Plz|PLZ)"
)
_COMMA: Final = re.compile(r"[+-]?\d+(,\d+)?")
# Up to this many different numbers, a column that also holds words is a category: 4, 6, 8 and rotary cylinders.
_FEW: Final = 10

WISHES: Final = ("drop", "only", "categorical", "numeric", "text")


@dataclass(frozen=True)
class Wishes:
    """What was asked for: columns to leave out, to take alone, to read as categories or numbers, to count words of."""

    drop: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    standardise: bool = True

    @property
    def named(self) -> set[str]:
        """Columns that are asked for, and so not left out on a guess."""
        return {*(self.only or ()), *self.categorical, *self.numeric, *self.text}

    def check(self, names: list[str]) -> None:
        """Raise ValueError for a column that the table has not, or that is asked for and left out at once."""
        for word in WISHES:
            unknown = [name for name in getattr(self, word) or () if name not in names]
            if unknown:
                known = ", ".join(map(repr, names))
                raise ValueError(f"{word} names the column {unknown[0]!r}, which the table has not; it has {known}")
        kinds = Counter(name for each in (self.categorical, self.numeric, self.text) for name in set(each))
        both = set(self.drop) & self.named or {name for name, count in kinds.items() if count > 1}
        if both:
            raise ValueError(f"the column {min(both)!r} is asked for in two ways that exclude each other")


def encodings_for(frame: Frame, wishes: Wishes, weight: Floats) -> list[Encoding]:
    """One encoding for each column; ValueError where nothing is left to learn from."""
    wishes.check(frame.names)
    declared = frame.categories - {*wishes.text, *wishes.numeric}
    asked = replace(wishes, categorical=(*wishes.categorical, *declared))
    found = [_encoding(name, column, asked, weight) for name, column in zip(frame.names, frame.columns, strict=True)]
    if all(isinstance(one, LeftOut) for one in found):
        told = "; ".join(f"{one.name!r}: {one.description}" for one in found)
        raise ValueError(
            f"with n_samples={len(frame)} no column is left to learn from ({told}); what is named in only, "
            "categorical or text is not left out"
        )
    return found


def _encoding(name: str, cells: Cells, wishes: Wishes, weight: Floats) -> Encoding:
    if name in wishes.drop or (wishes.only is not None and name not in wishes.only):
        return LeftOut(name, "as asked", guessed=False)
    if name in wishes.text:
        words, weights = vocabulary(cells)
        return Words(name, words, weights) if words else LeftOut(name, "no word stands in two rows", guessed=False)
    empty = holes(cells)
    if empty.all():
        return LeftOut(name, "empty in every row", guessed=False)
    if name in wishes.categorical:
        return _levels(name, cells)
    if cells.dtype.kind == "M":
        return _dates(name, cells, "ISO", weight)
    if cells.dtype.kind in "iuf":
        return _levels(name, cells) if _is_code(name, cells, wishes) else _numbers(name, cells, wishes, weight)
    return _of_objects(name, cells, wishes, weight)


def _of_objects(name: str, cells: Cells, wishes: Wishes, weight: Floats) -> Encoding:
    items = [item for item in cells.tolist() if item is not None]
    if all(truth(item) is not None for item in items):
        spelt = [None if item is None else str(truth(item)) for item in cells]
        return _levels(name, np.array(spelt, dtype=object), truth_values=True)
    are_numbers = [number(item) is not None for item in items]
    if all(are_numbers):
        return _levels(name, cells) if _is_code(name, cells, wishes) else _numbers(name, cells, wishes, weight)
    distinct = len({level(item) for item in items})
    if _are_numbers_and_words(cells, are_numbers):
        numbers = {number(item) for item in items} - {None}
        few = len(numbers) <= _FEW and 2 * distinct <= len(items) and name not in wishes.numeric
        return _levels(name, cells) if few else _numbers(name, cells, wishes, weight)
    if not all(isinstance(item, str) and item.isdecimal() for item in items):  # but codes, some with a leading zero
        _expect_one_kind(name, cells, are_numbers, "numbers")
        _expect_plain_numbers(name, cells)
    forms = date_forms(items)
    if len(forms) > 1:
        return LeftOut(
            name, f"dates such as {items[0]} may begin with the day or the month; write {_iso(items[0])}", guessed=True
        )
    if forms:
        return _dates(name, cells, forms[0], weight)
    _expect_one_kind(name, cells, [seconds(item, "ISO") is not None for item in items], "dates")
    # In a table of few rows every text may be different and yet a category.
    if distinct > max(20, len(items) / 2) and name not in wishes.named:
        return _of_many_texts(name, cells, items, distinct)
    return _levels(name, cells)


def _of_many_texts(name: str, cells: Cells, items: list[Any], distinct: int) -> Encoding:
    """Sentences, whose words recur in some rows and not in others; or an identifier, names, addresses."""
    found = [set(words_of(item)) for item in items]
    words, weights = vocabulary(cells)
    rows = Counter(word for each in found for word in each)
    telling = [word for word in words if rows[word] < len(items)]
    recurring = sum(rows[word] for word in words)
    if recurring >= 3 * len(items) and 2 * recurring >= sum(map(len, found)) and len(telling) >= _FEW:
        return Words(name, words, weights)
    if distinct == len(items) and not any(" " in str(item) for item in items):
        return LeftOut(name, "an identifier, different in every row", guessed=True)
    return LeftOut(name, f"{distinct:,} different texts in {len(items):,} rows", guessed=True)


def _are_numbers_and_words(cells: Cells, are_numbers: list[bool]) -> bool:
    """Whether at least four of five cells are numbers, and the others words, such as unknown, k.A. or a dash."""
    return 5 * sum(are_numbers) >= 4 * len(are_numbers) and words_among(cells)[1] is None


def _is_code(name: str, cells: Cells, wishes: Wishes) -> bool:
    """Whether a column of numbers is one of codes: by its name, and since they are whole and most stand there twice."""
    if name in wishes.numeric or _CODE.fullmatch(name.strip()) is None:
        return False
    values = as_numbers(cells)[0]
    known = values[~np.isnan(values)]
    return bool((known % 1 == 0).all()) and 2 < len(np.unique(known)) <= max(20, len(known) / 2)


READ_AS_MISSING: Final = "read as missing values"


def _some(words: list[str]) -> str:
    return ", ".join(map(repr, words[:3])) + (f" and {len(words) - 3} more" if len(words) > 3 else "")


def strange_words(one: Encoding, cells: Cells) -> str | None:
    """Message about words in a table to predict where the training table had numbers, and no missing values."""
    words = words_among(cells)[0] if isinstance(one, Numbers) and cells.dtype == object and not one.n_holes else []
    return f"the column {one.name!r} holds {_some(words)} beside numbers: {READ_AS_MISSING}" if words else None


def guesses_in(frame: Frame, wishes: Wishes, source: str) -> dict[str, str]:
    """What is guessed of a table; an error names its source, and rows as it counts them, before any are shuffled."""
    try:
        return guesses(frame, encodings_for(frame, wishes, np.ones(len(frame))), wishes)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def guesses(frame: Frame, encodings: list[Encoding], wishes: Wishes) -> dict[str, str]:
    """Of each column where it was guessed what it holds, and somebody may have meant otherwise: a sentence to ask."""
    found = {}
    for one, cells in zip(encodings, frame.columns, strict=True):
        what = None if one.name in {*wishes.categorical, *frame.categories} else _guess(one, cells, wishes)
        if what is not None:
            found[one.name] = f"the column {one.name!r} {what}"
    return found


def _guess(one: Encoding, cells: Cells, wishes: Wishes) -> str | None:
    if isinstance(one, LeftOut):
        told = "name it in drop if that is right, else in only, categorical or text"
        return f"is {one.description}; {told}" if one.guessed else None
    if isinstance(one, Words):
        told = "name it in text if that is right, else in drop"
        return None if one.name in wishes.text else f"is read as text, since its words recur; {told}"
    if isinstance(one, Numbers) and cells.dtype == object:
        words = words_among(cells)[0]
        if not words or one.name in wishes.numeric:
            return None
        told = "name it in numeric if that is right, else in categorical"
        return f"holds {_some(words)} beside numbers: {READ_AS_MISSING}; {told}"
    if isinstance(one, Levels) and any(number(item) is not None for item in cells[~holes(cells)].tolist()):
        return "holds numbers, and is read as a category; name it in categorical if that is right, else in numeric"
    return None


def _numbers(name: str, cells: Cells, wishes: Wishes, weight: Floats) -> Encoding:
    values = as_numbers(cells)[0]
    finite_or_hole(values, name)
    empty = np.isnan(values)
    known, n_holes = values[~empty], int(empty.sum())
    if known.min() == known.max() and not n_holes:
        return LeftOut(name, f"{known[0]:g} in every row", guessed=False)
    if name not in wishes.named and _is_identifier(name, known):
        return LeftOut(name, "an identifier, by its name and since most rows have their own", guessed=True)
    fill = weighted_median(known, weight[~empty])
    centre, scale = moments(np.where(empty, fill, values), weight) if wishes.standardise else (0.0, 1.0)
    return Numbers(name, fill, centre, scale, n_holes, wishes.standardise)


def _is_identifier(name: str, known: Floats) -> bool:
    called = _IDENTIFIER.fullmatch(name.strip()) is not None
    return called and bool((known % 1 == 0).all()) and 2 * len(np.unique(known)) > len(known)


def _levels(name: str, cells: Cells, truth_values: bool = False) -> Encoding:
    empty = holes(cells)
    levels = sorted({level(item) for item, hole in zip(cells.tolist(), empty, strict=True) if not hole})
    if len(levels) == 1 and not empty.any():
        return LeftOut(name, f"{levels[0]} in every row", guessed=False)
    return Levels(name, tuple(levels), int(empty.sum()), truth_values)


def _dates(name: str, cells: Cells, form: str, weight: Floats) -> Encoding:
    values, _ = as_seconds(cells, form)
    empty = np.isnan(values)
    known, n_holes = values[~empty], int(empty.sum())
    if known.min() == known.max() and not n_holes:
        return LeftOut(name, "the same date in every row", guessed=False)
    has_times = bool((known % CYCLES["time of day"] != 0).any())
    spans_years = bool(np.ptp(known) > CYCLES["time of year"])
    cycles = tuple(cycle for cycle, wanted in zip(CYCLES, (has_times, spans_years), strict=True) if wanted)
    fill = weighted_median(known, weight[~empty])
    return Dates(name, form, fill, *moments(np.where(empty, fill, values), weight), n_holes, cycles)


def _expect_one_kind(name: str, cells: Cells, are: list[bool], kind: str) -> None:
    """Raise ValueError where most of the cells are of one kind, and some are not: those are mistakes, or codes."""
    if 2 * sum(are) <= len(are):
        return
    rows = np.flatnonzero(~holes(cells))[~np.array(are)]
    more = f" (and {len(rows) - 1:,} more such rows)" if len(rows) > 1 else ""
    raise ValueError(
        f"row {rows[0] + 1} of the column {name!r} holds {cells[rows[0]]!r:.40}{more}, but {sum(are):,} rows hold "
        f"{kind}; correct or empty the cell, or name the column in categorical or drop"
    )


def _expect_plain_numbers(name: str, cells: Cells) -> None:
    """Raise ValueError where most of the cells are numbers to a person, but not all to a program: 57,9 and 1 200 €."""
    known = np.flatnonzero(~holes(cells))
    spelt = [row for row in known if isinstance(cells[row], str) and looks_numeric(cells[row])]
    if 2 * len(spelt) <= len(known):
        return
    row = next(row for row in spelt if number(cells[row]) is None)
    said = f"row {row + 1} of the column {name!r} holds {cells[row]!r:.40}"
    if all(_COMMA.fullmatch(cells[row]) for row in spelt):  # of a file it would have been read off
        raise ValueError(
            f"{said}: in a frame, numbers with a comma are texts; read the file with decimal=',' or thousands=',' "
            "(pandas.read_csv), or name the column in categorical or drop"
        )
    raise ValueError(
        f"{said}, and {len(spelt):,} of {len(known):,} rows hold numbers, but in spellings that cannot be read "
        "together; write all with one decimal mark and one unit (a frame: as numbers), or name the column in "
        "categorical or drop"
    )


def _iso(item: Any) -> str:
    found = seconds(item, "day first")
    return str(np.datetime64(int(found or 0), "s").astype("datetime64[D]"))
