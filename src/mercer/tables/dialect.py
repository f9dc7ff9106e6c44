"""The dialect of a CSV file: its encoding, separator, decimal mark, and units of numbers.

Each setting comes from a command-line flag, else from the file, else from the training table. If none of them decides,
the error names the flag. $1,200, 12 % and 1.234,50 € are numbers if a whole column has the same unit; the model
remembers the unit, and a table in another unit is refused.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

# Texts that stand for a missing value, as in pandas.
MISSING: Final = frozenset(
    {"", "#N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NULL", "null", "None", "NaN", "nan", "-nan"}
)
INTEGER: Final = re.compile(r"[+-]?(0|[1-9][0-9]*)")
NUMBER: Final = re.compile(r"[+-]?(([0-9]+\.?[0-9]*)|(\.[0-9]+))([eE][+-]?[0-9]+)?")
PADDED: Final = re.compile(r"[+-]?0[0-9]")  # a code such as 007
# Numbers with this decimal mark, and perhaps the other mark between thousands.
WITH_COMMA: Final = re.compile(r"[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)(,[0-9]+)?([eE][+-]?[0-9]+)?")
WITH_POINT: Final = re.compile(r"[+-]?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_UNIT: Final = r"[$€£¥₹₩₽₪%‰]|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|kr|zł)\b"
BLANK: Final = "[ \u00a0\u202f]"
# Blanks and apostrophes may group digits by three.
_DIGITS: Final = rf"[0-9]{{1,3}}(?:(?:{BLANK}|['’])[0-9]{{3}})+(?:[.,][0-9]+)?|[0-9][0-9.,]*"
WITH_UNIT: Final = re.compile(
    rf"([+−-]?)(?:({_UNIT}){BLANK}?([+−-]?)({_DIGITS})|({_DIGITS}){BLANK}?({_UNIT}))", re.UNICODE
)
# Any short word after a number may be a unit, if a whole column has it: km, °C, m², km/h, bpm.
_MEASURED: Final = re.compile(rf"([+−-]?)({_DIGITS}){BLANK}?(°?[^\W\d_]{{1,3}}(?:[²³]|/[^\W\d_]{{1,3}})?)", re.UNICODE)
_CLOCK: Final = re.compile(r"([0-9]{1,3}):([0-5][0-9])(?::([0-5][0-9]))?")  # 7:30, 1:05:32
TIME: Final = ":"  # the unit of clock times
_SEPARATORS: Final = (",", ";", "\t", "|")
# Signs other than letters that Western tables contain; other signs suggest that the encoding is not cp1252.
_WESTERN_SIGNS: Final = frozenset("€£§°²³½–—‘’“”„…´«»©®")
_GROUPS: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}([.,][0-9]{3})+")
_GROUPING: Final = re.compile(rf"(?<=[0-9])(?:{BLANK}|['’])(?=[0-9])")

Units = dict[str, str]


def looks_numeric(text: str) -> bool:
    """Return whether a person would read the text as a number: with a decimal comma, thousands marks, or a unit."""
    return not PADDED.match(text) and any(form.fullmatch(text) for form in (NUMBER, WITH_COMMA, WITH_POINT, WITH_UNIT))


@dataclass(frozen=True)
class Dialect:
    """Settings of a CSV file; None means unknown."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    units: str | None = None  # of columns of numbers: a line for each column, the unit first
    na: str | None = None  # marks of missing values besides MISSING, one on each line

    def to_dict(self) -> dict[str, str]:
        """Return the known settings."""
        return {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) is not None}


UNKNOWN: Final = Dialect()


def stored_dialect(read: Mapping[str, str]) -> Dialect:
    """Return the dialect of the training table, as a model file stores it."""
    return Dialect(**{one.name: read.get(one.name) for one in fields(Dialect)})


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


def decode_text(content: bytes, name: str, requested: str | None, before: str | None) -> tuple[str, str]:
    """Return the text of a file and its encoding: UTF-8, UTF-16 with a byte order mark, or Windows' cp1252."""
    encoding, remedy = requested or "utf-8", "name another with --encoding"
    if requested is None and content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif requested is None and not _is_utf_8(content):
        if before not in (None, "utf-8", "utf-16"):
            encoding = str(before)
        elif _looks_western(content):
            encoding = "cp1252"
        else:
            remedy = "name the encoding with --encoding, such as cp1250, cp1251, shift_jis or gbk"
    try:
        return content.decode(encoding).removeprefix("\ufeff"), encoding
    except LookupError:
        raise ValueError(f"Python knows no encoding {encoding!r}; --encoding takes names such as latin-1") from None
    except UnicodeDecodeError as error:
        line, shown = content.count(b"\n", 0, error.start) + 1, encoding.replace("utf", "UTF")
        raise ValueError(f"{name}:{line}: byte 0x{content[error.start]:02x} is not {shown}; {remedy}") from None


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
    return all((one.isalpha() and one not in "ªºµ") or one in _WESTERN_SIGNS for one in high)


def detect_separator(text: str, name: str, before: str | None) -> str:
    """Return the mark that splits every line into the same number of cells, more than one."""
    head = text[: 1 << 16]  # enough lines to see whether they have the same number of cells
    if len(head) < len(text):
        head = head[: head.rfind("\n") + 1]
    cells = {mark: split for mark in _SEPARATORS if (split := _split(head, mark)) is not None}
    marks = list(cells)
    if len(marks) > 1:  # a wrong mark cuts quoted cells in two
        marks = [mark for mark in marks if not any('"' in cell for cell in cells[mark])] or marks
    if len(marks) == 1:
        return marks[0]
    if before is not None and (not marks or before in marks):
        return before
    if marks:
        shown = " or ".join(map(repr, marks))
        raise ValueError(f"{name} may be separated by {shown}; say which with --separator")
    first = text.partition("\n")[0]
    return next((mark for mark in _SEPARATORS if mark in first), ",")


def _split(head: str, mark: str) -> list[str] | None:
    """Return all cells if every line has the same number of them, more than one; else None."""
    try:
        rows = [row for row in csv.reader(io.StringIO(head, newline=""), delimiter=mark) if row]
    except csv.Error:
        return None
    lengths = {len(row) for row in rows}
    return [cell for row in rows for cell in row] if len(lengths) == 1 and lengths != {1} else None


def with_decimal_points(
    header: list[str], columns: list[Any], name: str, requested: str | None, before: str | None, plain: list[bool]
) -> tuple[list[Any], str | None]:
    """Return the columns with decimal points and without thousands marks, and the decimal mark of the file.

    Cells that are no numbers stay as they are. All cells of a `plain` column are known to be numbers with a point, or
    missing values.
    """
    kinds = [
        _kind_of_plain(column) if is_plain else _kind(column) for column, is_plain in zip(columns, plain, strict=True)
    ]
    if requested is not None:
        _expect_mark(requested, header, columns, kinds, name)
    marks = {requested} if requested is not None else {kind for kind in kinds if kind in (",", ".")}
    mark = marks.pop() if len(marks) == 1 else before if not marks else None
    out = []
    for title, column, kind, is_plain in zip(header, columns, kinds, plain, strict=True):
        if kind == "1,234":
            if mark is None:
                example = next(text for text in column if "," in text and WITH_COMMA.fullmatch(text.strip())).strip()
                raise ValueError(
                    f"{name}: {example!r} in the column {title!r} may be a fraction or thousands; say --decimal , or "
                    "--decimal ."
                )
            kind = mark
        elif kind == "1.234":
            kind = "," if mark == "," else ""
        elif requested is not None and kind in (",", ".") and kind != requested:
            kind = ""
        same = not kind or (is_plain and kind == ".")
        out.append(column if same else [_with_point(text, kind) for text in column])
    return out, mark


def _expect_mark(requested: str, header: list[str], columns: list[Any], kinds: list[str], name: str) -> None:
    """Raise ValueError if no number has the requested decimal mark, and a column has the other one."""
    other = "." if requested == "," else ","
    if other not in kinds or {requested, "1,234", "1.234"} & {*kinds}:
        return
    k = kinds.index(other)
    example = next(text.strip() for text in columns[k] if other in text and looks_numeric(text.strip()))
    raise ValueError(
        f"{name}: no number has the mark of --decimal {requested}; the column {header[k]!r} holds {example!r}: "
        f"leave --decimal out, or say --decimal {other}"
    )


def _with_point(text: str, mark: str) -> str:
    """Write a number that has this decimal mark as Python does; return any other text unchanged."""
    if not (WITH_COMMA if mark == "," else WITH_POINT).fullmatch(text.strip()):
        return text
    return text.replace("." if mark == "," else ",", "").replace(",", ".")


def _kind_of_plain(cells: Sequence[str]) -> str:
    """Return `_kind` of a column whose cells are numbers with a point, or missing values."""
    marked = (text.strip() for text in cells if "." in text)
    first = next(marked, None)
    if first is None:
        return ""
    return "1.234" if _GROUPS.fullmatch(first) and all(_GROUPS.fullmatch(text) for text in marked) else "."


def _kind(column: Sequence[str]) -> str:
    """Return the decimal mark of a column of numbers, or '1,234' or '1.234' if the mark may separate thousands.

    Return '' if most cells are no numbers, or if they have no mark or not all the same.
    """
    cells = Counter(text.strip() for text in column)  # most columns of texts have few different ones
    known = {text: count for text, count in cells.items() if text not in MISSING}
    comma = {text for text in known if WITH_COMMA.fullmatch(text)}
    point = {text for text in known if WITH_POINT.fullmatch(text) or NUMBER.fullmatch(text)}
    counts = [sum(known[text] for text in texts) for texts in (comma, point)]
    numbers, others = (comma, point) if counts[0] >= counts[1] else (point, comma)
    marked = [text for text in numbers if "," in text or "." in text]
    if 2 * max(counts) <= sum(known.values()) or not marked or not others <= numbers:
        return ""
    if len(others) < len(numbers):
        return "," if numbers is comma else "."
    mark = "," if "," in marked[0] else "."
    return f"1{mark}234" if all(_GROUPS.fullmatch(text) for text in marked) else mark


def strip_units(header: list[str], columns: list[Any], name: str, before: Units) -> tuple[list[Any], Units]:
    """Remove the unit from each column whose numbers all have the same one; return the columns and the units.

    Cells that are no numbers stay as they are if they are fewer than half. Raise ValueError if a unit differs from that
    in `before`.
    """
    out, units = [], {}
    for title, column in zip(header, columns, strict=True):
        counts = Counter(column)
        parts = {text: _split_unit(text.strip()) for text in counts}
        known = {part[1] for part in parts.values() if part is not None}
        odd = [text for text, part in parts.items() if part is None and text.strip() not in MISSING]
        n_odd = sum(counts[text] for text in odd)
        n_with_unit = sum(counts[text] for text, part in parts.items() if part is not None)
        if len(known) != 1 or n_odd >= n_with_unit or any(looks_numeric(text.strip()) for text in odd):
            out.append(column)
            continue
        units[title] = known.pop()
        if before.get(title, units[title]) != units[title]:
            raise ValueError(
                f"{name}: the column {title!r} is in {units[title]}, but the model was trained on {before[title]}"
            )
        plain = {text: text if part is None else part[0] for text, part in parts.items()}
        out.append([plain[text] for text in column])
    return out, units


def _split_unit(text: str) -> tuple[str, str] | None:
    """Split a text into number and unit; return None if it is not of this form."""
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        seconds = 0
        for part in filter(None, clock.groups()):
            seconds = 60 * seconds + int(part)
        return str(seconds), TIME
    measured = _MEASURED.fullmatch(text)
    match = WITH_UNIT.fullmatch(text)
    if match is None and measured is not None and not (NUMBER.fullmatch(text) or PADDED.match(text)):
        return measured[1].replace("−", "-") + _GROUPING.sub("", measured[2]), measured[3]
    if match is None:
        return None
    sign, unit_first, second_sign, after, before, unit_last = match.groups()
    if sign and second_sign:
        return None
    sign = "-" if (sign or second_sign or "") in ("-", "−") else ""
    return sign + _GROUPING.sub("", after or before), unit_first or unit_last


def format_quantity(value: float, unit: str = "") -> str:
    """Write a number with four digits and its unit as people do, 71,310 € or 0.04213, and not 7.131e+04."""
    if not math.isfinite(value):
        return str(value)
    if unit == TIME:
        return format_clock(value)
    size = abs(value)
    if 1e15 > size >= 1e3:
        digits = 3 - math.floor(math.log10(size))
        text = f"{round(value, digits):,.0f}"
    else:
        text = f"{value:.4g}"
    return f"{text} {unit}".rstrip() if unit not in ("$", "£", "¥", "₹") else f"{unit}{text}"


def format_clock(seconds: float) -> str:
    """Write seconds as a clock shows them: 5:32, or 1:05:32 from an hour on."""
    minutes, rest = divmod(round(abs(seconds)), 60)
    shown = f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
    return f"-{shown}" if round(seconds) < 0 else shown


def describe_units(units: Units) -> str:
    """Describe the units of columns in a report."""
    return ", ".join(f"{title} {'as time' if unit == TIME else f'in {unit}'}" for title, unit in units.items())


def units_to_text(units: Units) -> str | None:
    """Write units as one text for a model file, with a line for each column."""
    plain = [f"{unit} {title}" for title, unit in units.items() if len(title.splitlines()) < 2]
    return "\n".join(plain) or None


def units_from_text(text: str | None) -> Units:
    """Read units from the text that `units_to_text` writes."""
    lines = [line.partition(" ") for line in (text or "").splitlines()]
    return {title: unit for unit, _, title in lines}
