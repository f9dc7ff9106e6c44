"""Units beside the numbers of a table: $1,200, 12 % and 1.234,50 € are numbers if a whole column has the same unit.

The unit is remembered with the model, so that a table in another one is refused.
"""

from __future__ import annotations

import re
from typing import Any, Final

from mercer.tables.spelling import MISSING

_UNIT: Final = r"[$€£¥₹₩₽₪%‰]|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|kr|zł)\b"
_BLANK: Final = "[ \u00a0\u202f]"
# Blanks and apostrophes may group digits by three.
_DIGITS: Final = rf"[0-9]{{1,3}}(?:(?:{_BLANK}|['’])[0-9]{{3}})+(?:[.,][0-9]+)?|[0-9][0-9.,]*"
_WITH_UNIT: Final = re.compile(
    rf"([+−-]?)(?:({_UNIT}){_BLANK}?([+−-]?)({_DIGITS})|({_DIGITS}){_BLANK}?({_UNIT}))", re.UNICODE
)
_GROUPING: Final = re.compile(rf"(?<=[0-9])(?:{_BLANK}|['’])(?=[0-9])")

Units = dict[str, str]


def without_units(header: list[str], columns: list[Any], name: str, before: Units) -> tuple[list[Any], Units]:
    """The columns, numbers without their units where all cells have the same; and the units.

    ValueError where it is another than `before`.
    """
    out, units = [], {}
    for title, column in zip(header, columns, strict=True):
        found = [None if text.strip() in MISSING else _parted(text.strip()) for text in column]
        known = {part[1] for part in found if part is not None}
        if len(known) != 1 or any(
            part is None and text.strip() not in MISSING for part, text in zip(found, column, strict=True)
        ):
            out.append(column)
            continue
        units[title] = known.pop()
        if before.get(title, units[title]) != units[title]:
            raise ValueError(
                f"{name}: the column {title!r} is in {units[title]}, but the model was trained on {before[title]}"
            )
        out.append([text if part is None else part[0] for part, text in zip(found, column, strict=True)])
    return out, units


def _parted(text: str) -> tuple[str, str] | None:
    """A number's text and its unit; None where the text is something else."""
    found = _WITH_UNIT.fullmatch(text)
    if found is None:
        return None
    sign, unit_first, second_sign, after, before, unit_last = found.groups()
    if sign and second_sign:
        return None
    sign = "-" if (sign or second_sign or "") in ("-", "−") else ""
    return sign + _GROUPING.sub("", after or before), unit_first or unit_last


def units_told(units: Units) -> str:
    """In words, for a report."""
    return ", ".join(f"{title} in {unit}" for title, unit in units.items())


def to_text(units: Units) -> str | None:
    """As one text, for a file: a line for each column."""
    plain = [f"{unit} {title}" for title, unit in units.items() if len(title.splitlines()) < 2]
    return "\n".join(plain) or None


def from_text(text: str | None) -> Units:
    """The inverse."""
    lines = [line.partition(" ") for line in (text or "").splitlines()]
    return {title: unit for unit, _, title in lines}
