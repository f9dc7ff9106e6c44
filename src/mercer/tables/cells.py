"""Read single cells of a column: missing values, numbers, truth values, dates, or texts."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from numbers import Real
from types import NoneType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mercer.samples.arrays import Flags, Floats
from mercer.tables.dialect import MISSING, NUMBER, PADDED

# A missing value in a feature column only: as a label, a question mark may be a class.
_QUESTION_MARK: Final = "?"
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?")
_PARTS: Final = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[T ](\d{1,2}):(\d\d)(?::(\d\d))?)?")
# 16 Feb 2024, 16-Feb-2024, 16. März 2024, 5 de marzo de 2024, Feb 16, 2024 and Mon, 16 Feb 2024 10:30
_MONTH_NAMED: Final = re.compile(
    r"(?:[^\W\d_]{2,10}\.?,? )??"
    r"(?:(?P<day>\d{1,2})(?:\.|st|nd|rd|th)?[ -](?:de )?(?P<month>[^\W\d_]{3,10})\.?[ -](?:de )?"
    r"|(?P<first_month>[^\W\d_]{3,10})\.? (?P<second_day>\d{1,2})(?:st|nd|rd|th)?,? )(?P<year>\d{4})"
    r"(?:,? (?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?)?"
)
# Names of months in English, German, French, Spanish, Italian, Portuguese and Dutch, in small letters; many share one.
_MONTH_NAMES: Final = (
    "january januar jänner janvier enero gennaio janeiro januari jan ene gen",
    "february februar février febrero febbraio fevereiro februari feb febr fev fév févr",
    "march märz mars marzo março maart mar mär mrz mrt",
    "april avril abril aprile apr avr abr",
    "may mai mayo maggio maio mei mag",
    "june juni juin junio giugno junho jun giu",
    "july juli juillet julio luglio julho jul juil lug",
    "august août agosto augustus aug aoû ago",
    "september septembre septiembre settembre setembro sep sept set",
    "october oktober octobre octubre ottobre outubro oct okt ott out",
    "november novembre noviembre novembro nov",
    "december dezember décembre diciembre dicembre dezembro dec dez déc dic",
)
_MONTHS: Final = {word: k for k, words in enumerate(_MONTH_NAMES, 1) for word in words.split()}
# Positions of year, month and day among the three numbers of a date.
_ORDERS: Final = {"year first": (0, 1, 2), "day first": (2, 1, 0), "month first": (2, 0, 1)}
DATE_FORMS: Final = ("ISO", *_ORDERS)
_EPOCH: Final = datetime.datetime(1970, 1, 1)
# Words for true and false in European languages, in small letters.
_TRUE: Final = (
    "true yes wahr ja vrai oui verdadero sí si vero sì waar verdadeiro sim sant sand tak prawda ano kyllä igen evet "
    "doğru да истина так"
)
_FALSE: Final = (
    "false no falsch nein faux non falso onwaar nee não nao nej nei falskt falsk usant nie fałsz ne ei nem hayır hayir "
    "yanlış нет ложь ні"
)
TRUTH_WORDS: Final = {**dict.fromkeys(_TRUE.split(), True), **dict.fromkeys(_FALSE.split(), False)}

Cells = NDArray[Any]
_PADDED_CELL: Final = re.compile(r"\n[+-]?0[0-9]")
_NUMBER_BYTES: Final = b"0123456789+-.eE\n"
_MISSING_MARKS: Final = MISSING | {_QUESTION_MARK}
_MISSING_BYTES: Final = frozenset("".join(_MISSING_MARKS).encode() + b" ")


def plain_numbers(texts: Sequence[str]) -> Floats | None:
    """Convert a column of texts to numbers as Python writes them, with NaN for missing values.

    Return None if a cell is neither a number (as `parse_number` reads it) nor a missing value, or if all are missing.
    A column without blanks around its cells is converted in one call.
    """
    joined_texts = "\n" + "\n".join(texts)
    if not joined_texts.isascii() or _PADDED_CELL.search(joined_texts):
        return None
    other_bytes = frozenset(joined_texts.encode().translate(None, _NUMBER_BYTES))
    if other_bytes - _MISSING_BYTES:
        return None
    # The remaining texts that float() accepts match NUMBER, except for spellings of NaN, which are counted below.
    number_texts = (
        texts if not other_bytes and "" not in texts else ["nan" if text in _MISSING_MARKS else text for text in texts]
    )
    try:
        values = np.array(number_texts, dtype=np.float64)
        n_missing = int(np.isnan(values).sum())
        if n_missing == (0 if number_texts is texts else number_texts.count("nan")):
            return values if n_missing < len(values) else None
    except ValueError:
        pass  # blanks around a cell, or a date
    numbers = [None if cell is None else parse_number(cell) for cell in cells_of(texts).tolist()]
    n_missing = sum(text.strip() in _MISSING_MARKS for text in texts)
    if numbers.count(None) != n_missing or n_missing == len(numbers):
        return None
    return np.array([np.nan if number is None else number for number in numbers])


def is_missing(item: Any) -> bool:
    """Return whether a cell has no value: it is blank, NA or the like, None, NaN, NaT or pandas.NA."""
    if isinstance(item, str):
        return item.strip() in MISSING
    if item is None or type(item).__name__ == "NAType":
        return True
    return bool(item != item)  # NaN, and pandas' and NumPy's NaT


def cells_of(column: Any) -> Cells:
    """Convert a column to an array of numbers or dates, or of objects: texts stripped, None for missing values."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "iufM":
            return column
        if column.dtype.kind == "m":
            return np.asarray(column / np.timedelta64(1, "s"))
    items = column.tolist() if isinstance(column, np.ndarray) else list(column)
    out = np.empty(len(items), dtype=object)
    if {*map(type, items)} <= {str, NoneType} and 4 * len(different := {*items}) <= len(items):
        text_of = {item: _without_mark(item) for item in different}  # 1, 1.0 and True would be one key
        out[:] = list(map(text_of.__getitem__, items))
    else:
        out[:] = list(map(_without_mark, items))
    return out


def _without_mark(item: Any) -> Any:
    """Return a text without blanks around it, None for a missing value, and any other cell as it is."""
    if isinstance(item, str):
        item = item.strip()
        return None if item in _MISSING_MARKS else item
    return None if is_missing(item) else item


def missing_values(cells: Cells) -> Flags:
    """Return a mask of the missing cells of a column made by `cells_of`."""
    if cells.dtype.kind in "iu":
        return np.zeros(len(cells), dtype=bool)
    if cells.dtype.kind == "f":
        return np.isnan(cells)
    if cells.dtype.kind == "M":
        return np.isnat(cells)
    return np.array([item is None for item in cells], dtype=bool)


def level_name(item: Any) -> str:
    """Return the name of a category; 3, 3.0 and "3" have the same name."""
    if isinstance(item, Real) and not isinstance(item, (bool, np.bool_)):
        number = float(item)
        if math.isfinite(number) and number == int(number):
            return str(int(number))
    return str(item)


def parse_number(item: Any) -> float | None:
    """Return a cell's number, or None. 007 is a code, and 1_000 is Python syntax: neither is a number in a table."""
    if isinstance(item, str):
        return float(item) if NUMBER.fullmatch(item) and not PADDED.match(item) else None
    if isinstance(item, (bool, np.bool_)) or not hasattr(item, "__float__"):
        return None
    return float(item)


def parse_truth(item: Any) -> bool | None:
    """Return the truth value of a cell: a bool, or one of `TRUTH_WORDS` in small or capital letters; else None."""
    if isinstance(item, (bool, np.bool_)):
        return bool(item)
    return TRUTH_WORDS.get(item.lower()) if isinstance(item, str) else None


def parse_truth_or_digit(item: Any) -> bool | None:
    """Return the truth value of a cell as `parse_truth` does, and also that of 1 and 0."""
    truth = parse_truth(item)
    return truth if truth is not None else {"1": True, "0": False}.get(level_name(item))


def are_truth_values(items: Sequence[Any]) -> bool:
    """Return whether all cells are truth values; 1 and 0 are if other cells are words such as TRUE."""
    if not all(parse_truth_or_digit(item) is not None for item in items):
        return False
    return any(parse_truth(item) is not None for item in items)


def parse_seconds(item: Any, form: str) -> float | None:
    """Return a cell's date, written in one of `DATE_FORMS`, in seconds since 1970; None if it is not a date."""
    date = _parse_date(item, form)
    if date is None:
        return None
    if date.tzinfo is not None:
        date = date.astimezone(datetime.UTC).replace(tzinfo=None)
    return (date - _EPOCH).total_seconds()


def _parse_date(item: Any, form: str) -> datetime.datetime | None:
    """Return the date that a text spells in this form; None if it is not a date."""
    if isinstance(item, datetime.datetime):
        return item
    if isinstance(item, datetime.date):
        return datetime.datetime(item.year, item.month, item.day)
    if not isinstance(item, str):
        return None
    try:
        if _ISO.fullmatch(item):  # unambiguous, whatever the form of the other cells; so are names of months
            return datetime.datetime.fromisoformat(item)
        if item[-4:].isdecimal() or item[-3:-2] == ":":
            named = _MONTH_NAMED.fullmatch(item)
            month = named and _MONTHS.get((named["month"] or named["first_month"]).lower())
            if named and month:
                day = int(named["day"] or named["second_day"])
                hour, minute, second = (int(named[part] or 0) for part in ("hour", "minute", "second"))
                return datetime.datetime(int(named["year"]), month, day, hour, minute, second)
        match = _PARTS.fullmatch(item)
        if match is None or form == "ISO":
            return None
        order = _ORDERS[form]
        parts = [match[1], match[3], match[4]]
        if len(parts[order[0]]) != 4:
            return None
        year, month, day = (int(parts[k]) for k in order)
        hour, minute, second = (int(match[k] or 0) for k in (5, 6, 7))
        return datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:  # the 31st of April
        return None


def date_forms(items: list[Any]) -> list[str]:
    """Return the date forms in which every item is a date; 03/04/2024 has two. The list of items is not empty."""
    forms = [form for form in DATE_FORMS if all(parse_seconds(item, form) is not None for item in items)]
    if "day first" in forms and any(isinstance(item, str) and "." in item for item in items):
        return ["day first"]  # dates with points are never written month first
    return forms if not forms or forms[0] != "ISO" else ["ISO"]


def as_seconds(cells: Cells, form: str) -> tuple[Floats, int | None]:
    """Return the dates of a column in seconds, NaN where missing, and the first row that holds no date, or None."""
    if cells.dtype.kind == "M":
        out = cells.astype("datetime64[us]").astype(np.int64) / 1e6
        out[np.isnat(cells)] = np.nan
        return out, None
    out = np.full(len(cells), np.nan)
    first_odd_row = None
    for row, item in enumerate(cells.tolist()):
        seconds = None if item is None else parse_seconds(item, form)
        if seconds is not None:
            out[row] = seconds
        elif item is not None and first_odd_row is None:
            first_odd_row = row
    return out, first_odd_row
