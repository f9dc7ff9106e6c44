"""The dialect of a CSV file: its encoding, separator, and marks of missing values.

Each setting comes from a command-line option, else from the file, else from the training table. If none of them
decides, the error names the option.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from mercer.tables.number_text import split_number
from mercer.tables.units import TIME as TIME  # reports import these from here
from mercer.tables.units import describe_units as describe_units
from mercer.tables.units import format_clock as format_clock
from mercer.tables.units import format_quantity as format_quantity
from mercer.tables.units import is_known_unit
from mercer.tables.units import units_from_text as units_from_text
from mercer.tables.units import units_to_text as units_to_text

# Texts that stand for a missing value, as in pandas.
MISSING: Final = frozenset(
    {"", "#N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NULL", "null", "None", "NaN", "nan", "-nan"}
)
INTEGER: Final = re.compile(r"[+-]?(0|[1-9][0-9]*)")
NUMBER: Final = re.compile(r"[+-]?(([0-9]+\.?[0-9]*)|(\.[0-9]+))([eE][+-]?[0-9]+)?")  # as Python writes it
PADDED: Final = re.compile(r"[+-]?0[0-9]")  # a code such as 007
_EXCEL: Final = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
# Formats of tables, by the ending of the file.
TABLE_FORMATS: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "arrow"),
    **dict.fromkeys(_EXCEL, "excel"),
}
_SEPARATORS: Final = (",", ";", "\t", "|")
# Signs other than letters that Western tables contain; other signs suggest that the encoding is not cp1252.
_WESTERN_SIGNS: Final = frozenset("€£§°²³½–—‘’“”„…´«»©®")
_GROUPS: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")  # 1.234: perhaps a point between thousands


def looks_numeric(text: str) -> bool:
    """Return whether a person would read the text as a number: with a decimal comma, thousands marks, or a unit."""
    number = split_number(text)
    return number is not None and (not number.unit or is_known_unit(number.unit))


@dataclass(frozen=True)
class Dialect:
    """Settings of a CSV file; None means unknown."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    units: str | None = None  # units of columns of numbers: a line for each column, the unit first
    na: str | None = None  # marks of missing values besides MISSING, one on each line

    def to_dict(self) -> dict[str, str]:
        """Return the known settings."""
        return {
            setting.name: getattr(self, setting.name)
            for setting in fields(self)
            if getattr(self, setting.name) is not None
        }


UNKNOWN: Final = Dialect()


def stored_dialect(read: Mapping[str, str]) -> Dialect:
    """Return the dialect of the training table, as a model file stores it."""
    return Dialect(**{setting.name: read.get(setting.name) for setting in fields(Dialect)})


def blank_marked_cells(columns: list[Any], na: str | None) -> list[Any]:
    """Return the columns with empty texts in place of cells that hold one of these marks."""
    marks = frozenset((na or "").splitlines())
    if not marks:
        return columns
    return [
        column
        if getattr(getattr(column, "dtype", None), "kind", "O") in "biufmM"  # a Parquet file's numbers and dates
        else ["" if isinstance(cell, str) and cell.strip() in marks else cell for cell in column]
        for column in columns
    ]


def decode_text(content: bytes, name: str, requested: str | None, fallback: str | None) -> tuple[str, str]:
    """Return the text of a file and its encoding: UTF-8, UTF-16 with a byte order mark, or Windows' cp1252."""
    encoding, remedy = requested or "utf-8", "name another with --encoding"
    if requested is None and content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif requested is None and content.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"  # so that a table written in this dialect has the mark too, by which Excel knows UTF-8
    elif requested is None and not _is_utf_8(content):
        if fallback not in (None, "utf-8", "utf-8-sig", "utf-16"):
            encoding = str(fallback)
        elif _looks_western(content):
            encoding = "cp1252"
        else:
            remedy = "name the encoding with --encoding, such as cp1250, cp1251, shift_jis or gbk"
    try:
        return content.decode(encoding).removeprefix("\ufeff"), encoding
    except LookupError:
        raise ValueError(f"Python knows no encoding {encoding!r}; --encoding takes names such as latin-1") from None
    except UnicodeDecodeError as error:
        line, encoding_name = content.count(b"\n", 0, error.start) + 1, encoding.replace("utf", "UTF")
        raise ValueError(f"{name}:{line}: byte 0x{content[error.start]:02x} is not {encoding_name}; {remedy}") from None


def _is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _looks_western(content: bytes) -> bool:
    """Return whether at most two bytes in a row are not ASCII, and all are letters or signs of cp1252.

    Other alphabets have longer runs of high bytes.
    """
    if re.search(rb"[\x80-\xff]{3}", content) is not None:
        return False
    try:
        high = {character for character in content.decode("cp1252") if ord(character) > 127}
    except UnicodeDecodeError:
        return False
    return all((letter.isalpha() and letter not in "ªºµ") or letter in _WESTERN_SIGNS for letter in high)


def detect_separator(text: str, name: str, fallback: str | None) -> str:
    """Return the mark that splits every line into the same number of cells, more than one."""
    head = text[: 1 << 16]  # enough lines to see whether they have the same number of cells
    if len(head) < len(text):
        head = head[: head.rfind("\n") + 1]
    cells = {mark: split for mark in _SEPARATORS if (split := _cells_if_even(head, mark)) is not None}
    marks = list(cells)
    if len(marks) > 1:  # a wrong mark cuts quoted cells in two
        marks = [mark for mark in marks if not any('"' in cell for cell in cells[mark])] or marks
    if len(marks) == 1:
        return marks[0]
    if fallback is not None and (not marks or fallback in marks):
        return fallback
    if marks:
        marks_text = " or ".join(map(repr, marks))
        raise ValueError(f"{name} may be separated by {marks_text}; say which with --separator")
    first = text.partition("\n")[0]
    return next((mark for mark in _SEPARATORS if mark in first), ",")


def _cells_if_even(head: str, mark: str) -> list[str] | None:
    """Return all cells if every line has the same number of them, more than one; else None."""
    try:
        rows = [row for row in csv.reader(io.StringIO(head, newline=""), delimiter=mark) if row]
    except csv.Error:
        return None
    lengths = {len(row) for row in rows}
    return [cell for row in rows for cell in row] if len(lengths) == 1 and lengths != {1} else None


def point_in_numbers(texts: Sequence[str]) -> str:
    """Return the meaning of points in a column of plain numbers: "." is decimal, "1.234" may separate thousands.

    Return "" if no cell has a point.
    """
    texts_with_point = (text.strip() for text in texts if "." in text)
    first = next(texts_with_point, None)
    if first is None:
        return ""
    return "1.234" if _GROUPS.fullmatch(first) and all(_GROUPS.fullmatch(text) for text in texts_with_point) else "."
