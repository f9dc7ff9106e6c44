"""Split a text into the parts of a time or duration: "7:30 pm", "1:30:05", "2 h 15 min", "PT4M13S"."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from mercer.tables.units import DURATION_UNITS

_WORD: Final = r"[^\W\d_]{1,12}"
_CLOCK: Final = re.compile(
    r"(?P<sign>[+-])?(?:(?P<days>[0-9]+) days?,? )?(?P<first>[0-9]{1,3}):(?P<second>[0-5][0-9])"
    r"(?::(?P<third>[0-5][0-9]))?(?P<fraction>[.,][0-9]{1,9})?"
    r"(?: ?(?:(?P<half>[aApP])\.?[mM]\.?|(?P<hours>Uhr|h)))?"
)
_HOUR: Final = re.compile(r"(?P<hour>[0-9]{1,2})(?:\.(?P<minute>[0-5][0-9]))? ?(?P<kind>[aApP]\.?[mM]\.?|Uhr)")
_DURATION: Final = re.compile(rf"([0-9]+(?:[.,][0-9]{{1,2}})?) ?({_WORD})\.?(?:,? |$)?")
_LAST_PART: Final = re.compile(r"(?P<parts>.*[^\W\d_]\.? ?)(?P<last>[0-9]{1,2})")  # 2h15
_ISO_DURATION: Final = re.compile(
    r"(?P<sign>-)?P(?=[0-9T])(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+(?:[.,][0-9]+)?)S)?)?"
)
_NEXT_SMALLER: Final = {86400.0: 3600.0, 3600.0: 60.0, 60.0: 1.0}


class TimeText(NamedTuple):
    """Parts of a time's text."""

    negative: bool
    seconds: str
    clock: str = ""  # "m:ss" for a time of two parts, "mm:ss" if the first has two digits and may be an hour


def split_hour(text: str) -> TimeText | None:
    """Split a time of day without a colon: 7 pm, 7.30 p.m., 8 Uhr or 8.30 Uhr; return None for any other text."""
    match = _HOUR.fullmatch(text)
    if match is None or int(match["hour"]) > 24:
        return None
    return _split_clock(f"{match['hour']}:{match['minute'] or '00'} {match['kind']}")


def split_time(text: str) -> TimeText | None:
    """Split a time of day or duration; return None for any other text."""
    return _split_clock(text) or _split_iso_duration(text) or _split_duration(text)


def _split_clock(text: str) -> TimeText | None:
    """Split 7:30, 1:05:32, 2 days 3:04:05, 7:30 pm or 7:30 Uhr; 7:30 alone counts as minutes and seconds."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    first, second, third = int(match["first"]), int(match["second"]), match["third"]
    seconds = 3600 * first + 60 * second + int(third or 0)
    clock = ""
    if match["half"]:  # 12:30 am is half past midnight
        if not 1 <= first <= 12 or match["sign"] or match["days"]:
            return None
        seconds += 43200 * ((match["half"] in "pP") - (first == 12))
    elif match["days"] or match["hours"] or third:
        seconds += 86400 * int(match["days"] or 0)
    else:
        seconds = 60 * first + second
        clock = "mm:ss" if len(match["first"]) == 2 and first < 24 and not match["fraction"] else "m:ss"
    fraction = (match["fraction"] or "").replace(",", ".")
    return TimeText(match["sign"] == "-", f"{seconds}{fraction}", clock)


def _split_iso_duration(text: str) -> TimeText | None:
    """Split a duration of ISO 8601, such as PT4M13S or P1DT12H."""
    match = _ISO_DURATION.fullmatch(text)
    if match is None:
        return None
    whole = 86400 * int(match["days"] or 0) + 3600 * int(match["hours"] or 0) + 60 * int(match["minutes"] or 0)
    return TimeText(
        match["sign"] is not None, _format_seconds(whole + float((match["seconds"] or "0").replace(",", ".")))
    )


def _split_duration(text: str) -> TimeText | None:
    """Split a duration such as 2 h 15 min, 1h30 or 3 days 4 hours; return None if its units do not become smaller."""
    is_negative, rest = text.startswith("-"), text.removeprefix("-").lstrip()
    last = _LAST_PART.fullmatch(rest)
    rest = rest if last is None else last["parts"].rstrip()
    seconds, unit = 0.0, math.inf  # the unit of the part before, in seconds
    while rest:
        part = _DURATION.match(rest)
        if part is None:
            return None
        size = 60.0 if part[2] == "m" and unit == 3600 else DURATION_UNITS.get(part[2].lower(), math.inf)
        if not size < unit:
            return None
        seconds, unit, rest = seconds + float(part[1].replace(",", ".")) * size, size, rest[part.end() :]
    if last is not None:
        if unit not in _NEXT_SMALLER or int(last["last"]) >= 60:
            return None
        seconds += int(last["last"]) * _NEXT_SMALLER[unit]
    return TimeText(is_negative, _format_seconds(seconds))


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds % 1 == 0 else repr(seconds)
