"""Units beside the numbers of a table: $1,200, 12 % and 1.234,50 € are numbers if a whole column has the same unit.

The unit is remembered with the model, so that a table in another one is refused.
"""

from __future__ import annotations

import re
from typing import Any, Final

from mercer.tables.spelling import BLANK, MISSING, WITH_UNIT, looks_numeric

_GROUPING: Final = re.compile(rf"(?<=[0-9])(?:{BLANK}|['’])(?=[0-9])")

Units = dict[str, str]


def without_units(header: list[str], columns: list[Any], name: str, before: Units) -> tuple[list[Any], Units]:
    """The columns, numbers without their units where all of a column's numbers have the same; and the units.

    Cells that are no numbers stay as they are, if fewer than half. ValueError where a unit is another than `before`.
    """
    out, units = [], {}
    for title, column in zip(header, columns, strict=True):
        found = [_parted(text.strip()) for text in column]
        known = {part[1] for part in found if part is not None}
        others = [text.strip() for text, part in zip(column, found, strict=True) if part is None]
        odd = [text for text in others if text not in MISSING]
        if len(known) != 1 or 2 * len(odd) >= len(odd) + len(column) - len(others) or any(map(looks_numeric, odd)):
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
    found = WITH_UNIT.fullmatch(text)
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
