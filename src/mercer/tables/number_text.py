"""Split a text into the parts of a number as people write it: "1 234,50 €", "(1,200.5)", "1:30:05", "2 h 15 min"."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from mercer.tables.units import DURATION_UNITS, TIME, is_currency

# Blanks, apostrophes and minus signs of Unicode, which `NORMAL` replaces by those of ASCII.
_BLANKS: Final = "\t\u00a0\u2007\u2009\u202f"
_APOSTROPHES: Final = "’ʼ′´`"
_MINUS_SIGNS: Final = "−–"
_WRITING_DIRECTION: Final = "\u200e\u200f"
NORMAL: Final = str.maketrans(
    {
        **dict.fromkeys(_BLANKS, " "),
        **dict.fromkeys(_APOSTROPHES, "'"),
        **dict.fromkeys(_MINUS_SIGNS, "-"),
        **dict.fromkeys(_WRITING_DIRECTION, ""),
    }
)
_SUPERSCRIPTS: Final = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_WORD: Final = r"[^\W\d_]{1,12}"
_SYMBOL: Final = r"(?:[$€£¥￥₹₩₽₪₺₴₫฿%‰]|[A-Z]{1,3}[$£¥￥])"
_UNIT: Final = rf"(?:{_SYMBOL}|°?{_WORD}[²³]?(?:[/·]{_WORD}[²³]?)?|[°\"])"
_DIGITS: Final = r"(?:[0-9][0-9.,' ]*[0-9.]|[0-9]|[.,][0-9]+)"
_EXPONENT: Final = r"(?:[eE][+-]?[0-9]{1,3}| ?[x×·*] ?10(?:\^[+-]?[0-9]{1,3}|[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}))"
_CELL: Final = re.compile(
    rf"(?P<open>\()?(?P<sign>[+-])? ?(?:(?P<front>{_UNIT})\.? ?)?(?P<inner>[+-])?(?P<open_inside>\()?"
    rf"(?P<digits>{_DIGITS})(?P<exponent>{_EXPONENT})?(?P<gap> )?(?P<back>{_UNIT})?\.?"
    rf"(?P<trailing>-)?(?P<close>\))?(?: ?(?P<after>{_SYMBOL}))?"
)
_GROUPED: Final = re.compile(r"[1-9][0-9]{0,2}([ '.,])[0-9]{3}(?:\1[0-9]{3})*(?:([.,])[0-9]*)?")
_INDIAN: Final = re.compile(r"[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]*)?")  # 12,34,567.5
_FRACTION: Final = re.compile(r"[0-9]*([.,])[0-9]+|[0-9]+(\.)")
_PADDED: Final = re.compile(r"0[0-9]")  # a code such as 007
_CLOCK: Final = re.compile(
    r"(?P<sign>[+-])?(?:(?P<days>[0-9]+) days?,? )?(?P<first>[0-9]{1,3}):(?P<second>[0-5][0-9])"
    r"(?::(?P<third>[0-5][0-9]))?(?P<fraction>[.,][0-9]{1,9})?"
    r"(?: ?(?:(?P<half>[aApP])\.?[mM]\.?|(?P<hours>Uhr|h)))?"
)
_DURATION: Final = re.compile(rf"([0-9]+(?:[.,][0-9]{{1,2}})?) ?({_WORD})\.?(?:,? |$)?")
_LAST_PART: Final = re.compile(r"(?P<parts>.*[^\W\d_]\.? ?)(?P<last>[0-9]{1,2})")  # 2h15
_NEXT_SMALLER: Final = {86400.0: 3600.0, 3600.0: 60.0, 60.0: 1.0}


class NumberText(NamedTuple):
    """Parts of a number's text; `thousands`, `decimal` and `unclear` are the marks among its digits."""

    negative: bool
    digits: str  # with their marks and exponent, such as 1.234,5 or 1,5e3; seconds if the unit is TIME
    unit: str
    thousands: str = ""
    decimal: str = ""
    unclear: str = ""  # a mark that separates either thousands or decimals, as in 1,234
    in_parentheses: bool = False  # a negative number of accounting
    clock: str = ""  # "m:ss" for a time of two parts, "mm:ss" if the first has two digits and may be an hour
    glued: bool = False  # no blank between digits and unit


def split_number(text: str) -> NumberText | None:
    """Split a text into the parts of a number; return None if it is not a number.

    >>> split_number("-1 234,5 km")[:5]
    (True, '1 234,5', 'km', ' ', ',')
    """
    text = text.translate(NORMAL).strip()
    match = _CELL.fullmatch(text)
    if match is None:
        return _split_clock(text) or _split_duration(text)
    units = [match[name] for name in ("front", "back", "after") if match[name]]
    opened = [match[name] for name in ("open", "open_inside") if match[name]]
    signs = [match[name] for name in ("sign", "inner", "trailing") if match[name]]
    if len(units) > 1 or len(opened) != bool(match["close"]) or len(signs) + len(opened) > 1:
        return None
    digits, unit = match["digits"], units[0] if units else ""
    marks = _split_marks(digits, match["exponent"] is not None)
    if marks is None or (match["front"] and not is_currency(unit)) or (_PADDED.match(digits) and not unit):
        return None
    if match["trailing"] and not marks[1]:  # 2- is a school grade, 1.234,50- an amount of accounting
        return None
    glued = match["back"] is not None and match["gap"] is None
    negative = "-" in signs or bool(opened)
    return NumberText(negative, digits + _exponent(match["exponent"]), unit, *marks, bool(opened), "", glued)


def _split_marks(digits: str, has_exponent: bool) -> tuple[str, str, str] | None:
    """Return the mark between thousands, the decimal mark and the unclear mark; None if digits are grouped wrongly.

    >>> _split_marks("1 234,5", False), _split_marks("1,234", False), _split_marks("1.2.3", False)
    ((' ', ',', ''), ('', '', ','), None)
    """
    if digits.isdigit():
        return "", "", ""
    grouped = _GROUPED.fullmatch(digits)
    if grouped is not None:
        mark, decimal = grouped[1], grouped[2] or ""
        if decimal == mark:
            return None
        if decimal or mark in " '" or digits.count(mark) > 1:
            return mark, decimal, ""
        return ("", mark, "") if has_exponent else ("", "", mark)
    if _INDIAN.fullmatch(digits):
        return ",", "." if "." in digits else "", ""
    fraction = _FRACTION.fullmatch(digits)
    return None if fraction is None else ("", fraction[1] or fraction[2], "")


def _exponent(text: str | None) -> str:
    """Write an exponent as Python does: "e-3" for "E-3", "×10⁻³" and "x 10^-3"."""
    if text is None or text[0] in "eE":
        return text or ""
    return "e" + text.partition("10")[2].lstrip("^").translate(_SUPERSCRIPTS)


def _split_clock(text: str) -> NumberText | None:
    """Read 7:30, 1:05:32, 2 days 3:04:05, 7:30 pm or 7:30 Uhr; 7:30 alone counts as minutes and seconds."""
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
    return NumberText(match["sign"] == "-", f"{seconds}{fraction}", TIME, clock=clock)


def _split_duration(text: str) -> NumberText | None:
    """Read 2 h 15 min, 1h30 or 3 days 4 hours: parts in units that become smaller."""
    negative, rest = text.startswith("-"), text.removeprefix("-").lstrip()
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
    return NumberText(negative, f"{seconds:.0f}" if seconds % 1 == 0 else repr(seconds), TIME)
