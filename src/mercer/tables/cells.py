"""What the cells of a column are: holes, numbers, truth values, dates, or texts."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from numbers import Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mercer.samples.arrays import Flags, Floats
from mercer.tables.dialect import MISSING, NUMBER, PADDED

# Holes among features only: as a label, a question mark may be a class.
_UNKNOWN: Final = "?"
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?")
_PARTS: Final = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[T ](\d{1,2}):(\d\d)(?::(\d\d))?)?")
# The places of year, month and day among the three numbers of a date.
_ORDERS: Final = {"year first": (0, 1, 2), "day first": (2, 1, 0), "month first": (2, 0, 1)}
DATE_FORMS: Final = ("ISO", *_ORDERS)
_EPOCH: Final = datetime.datetime(1970, 1, 1)

Cells = NDArray[Any]
_PADDED_CELL: Final = re.compile(r"\n[+-]?0[0-9]")
_OF_NUMBERS: Final = b"0123456789+-.eE\n"
_HOLES: Final = MISSING | {_UNKNOWN}
_OF_HOLES: Final = frozenset("".join(_HOLES).encode() + b" ")


def plain_numbers(texts: Sequence[str]) -> Floats | None:
    """A column of texts as numbers, NaN in its holes; None unless every cell is a number as `number` has it, or a hole.

    Cells that are written plainly are looked at all at once, and only others one by one.
    """
    joined = "\n" + "\n".join(texts)
    if not joined.isascii() or _PADDED_CELL.search(joined):
        return None
    others = frozenset(joined.encode().translate(None, _OF_NUMBERS))
    if others - _OF_HOLES:
        return None
    # What is left to float() is the grammar of NUMBER, but for spellings of NaN, which are counted.
    known = texts if not others and "" not in texts else ["nan" if text in _HOLES else text for text in texts]
    try:
        values = np.array(known, dtype=np.float64)
        n_holes = int(np.isnan(values).sum())
        if n_holes == (0 if known is texts else known.count("nan")):
            return values if n_holes < len(values) else None
    except ValueError:
        pass  # blanks around a cell, or a date
    values, wrong = as_numbers(cells_of(texts))
    return None if wrong is not None or np.isnan(values).all() else values


def is_missing(item: Any) -> bool:
    """Whether a cell holds nothing: blank, NA or the like, None, NaN, or a frame's own mark."""
    if isinstance(item, str):
        return item.strip() in MISSING
    if item is None or type(item).__name__ == "NAType":
        return True
    return bool(item != item)  # NaN, and pandas' and NumPy's NaT


def cells_of(column: Any) -> Cells:
    """A column in its plain form: an array of numbers or dates, or objects, stripped, with None for a hole."""
    values = column if isinstance(column, np.ndarray) else np.array(column, dtype=object)
    if values.dtype.kind in "iufM":
        return values
    if values.dtype.kind == "m":
        return np.asarray(values / np.timedelta64(1, "s"))
    out = np.empty(len(values), dtype=object)
    for row, item in enumerate(values.tolist()):
        if isinstance(item, str):
            item = item.strip()
            if item in MISSING or item == _UNKNOWN:
                item = None
        elif is_missing(item):
            item = None
        out[row] = item
    return out


def holes(cells: Cells) -> Flags:
    """Which cells are empty."""
    if cells.dtype.kind in "iu":
        return np.zeros(len(cells), dtype=bool)
    if cells.dtype.kind == "f":
        return np.isnan(cells)
    if cells.dtype.kind == "M":
        return np.isnat(cells)
    return np.array([item is None for item in cells], dtype=bool)


def level(item: Any) -> str:
    """A value as the name of a category: 3, 3.0 and "3" are the same."""
    if isinstance(item, Real) and not isinstance(item, (bool, np.bool_)):
        number = float(item)
        if math.isfinite(number) and number == int(number):
            return str(int(number))
    return str(item)


def number(item: Any) -> float | None:
    """A cell's number; None where it holds none. 007 is a code, and 1_000 Python's spelling, not a table's."""
    if isinstance(item, str):
        return float(item) if NUMBER.fullmatch(item) and not PADDED.match(item) else None
    if isinstance(item, (bool, np.bool_)) or not hasattr(item, "__float__"):
        return None
    return float(item)


def truth(item: Any) -> bool | None:
    """A cell's truth value; None where it holds none."""
    if isinstance(item, (bool, np.bool_)):
        return bool(item)
    return {"true": True, "false": False}.get(item.lower()) if isinstance(item, str) else None


def seconds(item: Any, form: str) -> float | None:
    """A cell's date, written in one of `DATE_FORMS`, in seconds since 1970; None where it holds none."""
    found = _date(item, form)
    if found is None:
        return None
    if found.tzinfo is not None:
        found = found.astimezone(datetime.UTC).replace(tzinfo=None)
    return (found - _EPOCH).total_seconds()


def _date(item: Any, form: str) -> datetime.datetime | None:
    if isinstance(item, datetime.datetime):
        return item
    if isinstance(item, datetime.date):
        return datetime.datetime(item.year, item.month, item.day)
    if not isinstance(item, str):
        return None
    try:
        if _ISO.fullmatch(item):  # which has no second reading, whatever form the others have
            return datetime.datetime.fromisoformat(item)
        match = _PARTS.fullmatch(item)
        if match is None or form == "ISO":
            return None
        order = _ORDERS[form]
        parts = [match[1], match[3], match[4]]
        if len(parts[order[0]]) != 4:
            return None
        year, month, day = (int(parts[place]) for place in order)
        hour, minute, second = (int(match[k] or 0) for k in (5, 6, 7))
        return datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:  # the 31st of April
        return None


def date_forms(items: list[Any]) -> list[str]:
    """The forms in which every item, of which there are some, is a date; 03/04/2024 may be written in two."""
    found = [form for form in DATE_FORMS if all(seconds(item, form) is not None for item in items)]
    if "day first" in found and any(isinstance(item, str) and "." in item for item in items):
        return ["day first"]  # nobody puts points after a month that stands first
    return found if not found or found[0] != "ISO" else ["ISO"]


def as_numbers(cells: Cells) -> tuple[Floats, int | None]:
    """The numbers of a column, NaN in its holes; and the first row whose cell is something else, or None."""
    if cells.dtype.kind in "iuf":
        return cells.astype(np.float64), None
    return _converted(cells, number)


def as_seconds(cells: Cells, form: str) -> tuple[Floats, int | None]:
    """The dates of a column in seconds, NaN in its holes; and the first row whose cell is something else, or None."""
    if cells.dtype.kind == "M":
        out = cells.astype("datetime64[us]").astype(np.int64) / 1e6
        out[np.isnat(cells)] = np.nan
        return out, None
    return _converted(cells, lambda item: seconds(item, form))


def _converted(cells: Cells, convert: Any) -> tuple[Floats, int | None]:
    out = np.full(len(cells), np.nan)
    wrong = None
    for row, item in enumerate(cells.tolist()):
        if item is None:
            continue
        value = convert(item)
        if value is not None:
            out[row] = value
        elif wrong is None:
            wrong = row
    return out, wrong


def words_among(cells: Cells) -> tuple[list[str], int | None]:
    """The texts without a digit in a column of numbers; and the first row that holds something else, or None."""
    words: dict[str, None] = {}
    for row, item in enumerate(cells.tolist()):
        if item is None or number(item) is not None:
            continue
        if not isinstance(item, str) or any(letter.isdigit() for letter in item):
            return list(words), row
        words[item] = None
    return list(words), None
