"""Split a text into the parts of a number as people write it: "1 234,50 €", "(1,200.5)", "1:30:05", "2 h 15 min"."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from mercer.tables.time_text import TimeText, split_hour, split_time
from mercer.tables.units import POWERS_OF_10, TIME, is_currency, is_symbol

# Signs of Unicode, and digits and marks of other scripts, which `normalise` replaces by those of ASCII.
_BLANKS: Final = "\t\u00a0\u2007\u2009\u202f\u3000"
_PLAIN_BLANKS: Final = str.maketrans(dict.fromkeys(_BLANKS, " "))
_APOSTROPHES: Final = "’ʼ′´`٬"  # the last one separates thousands in Arabic
_MINUS_SIGNS: Final = "−–—‒－"
_INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_ZEROS: Final = "\u0660\u06f0\u0966\u09e6\u0e50\uff10"  # Arabic, Persian, Devanagari, Bengali, Thai, wide
_NORMAL: Final = str.maketrans(
    {
        **dict.fromkeys(_BLANKS, " "),
        **dict.fromkeys(_APOSTROPHES, "'"),
        **dict.fromkeys(_MINUS_SIGNS, "-"),
        **dict.fromkeys(_INVISIBLE, ""),
        **{chr(ord(zero) + digit): str(digit) for zero in _ZEROS for digit in range(10)},
        **dict(zip("″”＋．，％٫μ", '""+.,%.µ', strict=True)),
    }
)
_SUPERSCRIPTS: Final = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_POWER: Final = re.compile(r"(?<=m)\^?([23])(?![0-9a-zA-Z])|(?<=[a-z])\^([23])(?![0-9])")  # m2, m^2, s^2
_PER_100_KM: Final = re.compile(r"/ ?100 ?km\b")
_HUNDRED_KM: Final = "/hkm"  # stands for "/100 km", since a unit must have no digits
_EIGHTHS: Final = "⅛¼⅜½⅝¾⅞"
_MIXED: Final = re.compile(rf"(?P<whole>[0-9]{{0,4}}) ?(?P<eighths>[{_EIGHTHS}])")  # 2½
_RATIO: Final = re.compile(r"(?P<whole>[0-9]{1,4}) (?P<top>[1-7])/(?P<bottom>[248])(?![0-9])")  # 2 1/2
_FEET: Final = re.compile(
    r"(?P<feet>[0-9]{1,2}) ?(?:'|ft\.?|feet) ?(?P<inches>[0-9]|1[01])(?P<fraction>\.[0-9]+)? ?"
    r"(?:\"|''|in\.?|inch(?:es)?)?"
)
_OUT_OF: Final = re.compile(r"(?P<points>[0-9]{1,3}(?:[.,][0-9]{1,2})?) ?/ ?(?P<most>5|10|20|100)")  # 4.5/5
_RANK: Final = re.compile(
    r"(?:#|№|N[or]\.?|N°) ?(?P<number>0|[1-9][0-9]{0,6})|(?P<ordinal>[1-9][0-9]{0,2})(?:st|nd|rd|th)"
)
_WORD: Final = r"[^\W\d_]{1,12}"
_POWERS: Final = "⁻?[¹²³⁴]"
_SYMBOL: Final = r"(?:(?:[A-Z]{1,3} ?)?[$£¥￥]|[\u20a0-\u20c0฿¢%‰])"
_FACTOR: Final = rf"{_WORD}(?:{_POWERS})?"
_UNIT: Final = rf"(?:{_SYMBOL}(?:/{_FACTOR})?|°?{_FACTOR}(?:[/·]{_FACTOR})*(?:/\((?:[^\W\d_]|[²³·]){{1,12}}\))?|[°\"])"
_DIGITS: Final = r"(?:[0-9][0-9.,' ]*(?:[0-9]|\.(?!-))|[0-9]|[.,][0-9]+)"
_EXPONENT: Final = r"(?:[eE][+-]?[0-9]{1,3}| ?[x×·*] ?10(?:\^[+-]?[0-9]{1,3}|[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}))"
_DASHES: Final = r"(?:[.,]--?|/-)"  # for cents that are zero: 12,- and 12.-- and Rs. 12/-
_ABOUT: Final = r"(?:(?P<about>[~≈]|(?:ca|approx)\.?|circa|about) ?)?"
_UNCERTAINTY: Final = r"(?P<uncertainty> ?(?:±|\+/-) ?[0-9]+(?:[.,][0-9]+)?)?"  # 63.0 ± 7.0
_NOTES: Final = r"(?P<notes> ?(?:\[[0-9a-z]{1,2}\])+|[*†‡]{1,3})?"
_CELL: Final = re.compile(
    rf"{_ABOUT}(?P<open>\()?(?P<sign>[+-])? ?(?:(?P<front>{_UNIT})\.? ?)?(?P<inner>[+-])?(?P<open_inside>\()?"
    rf"(?P<digits>{_DIGITS})(?:(?P<exponent>{_EXPONENT})|(?P<dashes>{_DASHES}))?{_UNCERTAINTY}(?P<gap> )?"
    rf"(?P<back>{_UNIT})?\.?(?P<trailing>-)?(?P<close>\))?(?: ?(?P<after>{_SYMBOL}|(?<=[ .])[A-Z]{{3}}))?{_NOTES}"
)
_NEGATIVE: Final = "numbers that are negative in parentheses"
_APPROXIMATE: Final = "numbers, though some are approximate"
_ANNOTATED: Final = "numbers with notes behind them"
_UNCERTAIN: Final = "numbers, without the uncertainties behind them"
RANK_GUESSES: Final = ("numbers with a sign before them", "ordinal numbers")
_GROUPED: Final = re.compile(r"[1-9][0-9]{0,2}([ '.,])[0-9]{3}(?:\1[0-9]{3})*(?:([.,])[0-9]*)?")
_INDIAN: Final = re.compile(r"[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]*)?")  # 12,34,567.5
_FRACTION: Final = re.compile(r"[0-9]*([.,])[0-9]+|[0-9]+(\.)")
_PADDED: Final = re.compile(r"0[0-9]")  # a code such as 007


class NumberText(NamedTuple):
    """Parts of a number's text; `thousands`, `decimal` and `unclear` are the marks among its digits."""

    negative: bool
    digits: str  # with their marks and exponent, such as 1.234,5 or 1,5e3; seconds if the unit is TIME
    unit: str
    thousands: str = ""
    decimal: str = ""
    unclear: str = ""  # a mark that separates either thousands or decimals, as in 1,234
    guess: str = ""  # how the text was read, if it may be meant otherwise
    clock: str = ""  # "m:ss" for a time of two parts, "mm:ss" if the first has two digits and may be an hour
    glued: bool = False  # no blank between digits and unit


def normalise(text: str) -> str:
    """Replace signs, fractions and digits of Unicode by those of ASCII, and digits in units such as m2."""
    text = text.translate(_NORMAL)
    if "^" in text or "m2" in text or "m3" in text:
        text = _POWER.sub(lambda match: "²" if "2" in match[0] else "³", text)
    if not text.isascii():
        text = _MIXED.sub(_eighths_as_decimal, text)
    return _PER_100_KM.sub(_HUNDRED_KM, text) if "100" in text and "/" in text else text


def quote_cell(cell: Any) -> str:
    """Quote a cell for a message; no-break and thin blanks are written as plain ones, and not as \\xa0 or \\u202f."""
    return repr(cell.translate(_PLAIN_BLANKS) if isinstance(cell, str) else cell)[:40]


def split_number(text: str) -> NumberText | None:
    """Split a text into the parts of a number; return None if it is not a number.

    >>> split_number("-1 234,5 km")[:5]
    (True, '1 234,5', 'km', ' ', ',')
    """
    text = _without_quotes(normalise(text).strip())
    time = split_hour(text)  # 7 pm, which could be 7 picometres too
    if time is not None:
        return _time_text(time)
    if "/" in text:
        text = _RATIO.sub(_ratio_as_decimal, text, count=1)
    return _split_rank(text) or _split_quantity(text) or _split_other(text)


def _without_quotes(text: str) -> str:
    """Remove quotation marks around a text, or the apostrophe by which a spreadsheet marks a cell as text."""
    if text[:1] not in ("'", '"'):
        return text
    return text[1:-1] if len(text) > 1 and text[-1] == text[0] else text.removeprefix("'")


def _split_rank(text: str) -> NumberText | None:
    """Split #15, No. 15, № 15 or 15th."""
    match = _RANK.fullmatch(text)
    if match is None:
        return None
    guess = RANK_GUESSES[match["ordinal"] is not None]
    return NumberText(False, match["number"] or match["ordinal"], "", guess=guess)


def _split_quantity(text: str) -> NumberText | None:
    """Split a number with its signs and unit."""
    match = _CELL.fullmatch(text)
    if match is None:
        return None
    units = [match[name] for name in ("front", "back", "after") if match[name]]
    opened = [match[name] for name in ("open", "open_inside") if match[name]]
    signs = [match[name] for name in ("sign", "inner", "trailing") if match[name]]
    power, unit = _join_units(units)
    if unit is None or len(opened) != bool(match["close"]) or len(signs) + len(opened) > 1:
        return None
    digits, exponent = match["digits"], _exponent(match["exponent"])
    fraction = f"{match['dashes'][0]}0" if match["dashes"] and match["dashes"] != "/-" else ""  # 12,- is 12,0
    marks = _split_marks(digits + fraction, match["exponent"] is not None)
    if marks is None or (match["front"] and not is_currency(unit)) or (_PADDED.match(digits) and not unit):
        return None
    if (match["trailing"] and not marks[1]) or (power and exponent):
        return None  # 2- is a school grade, 1.234,50- an amount of accounting
    glued = match["back"] is not None and match["gap"] is None
    negative = "-" in signs or bool(opened)
    digits += exponent or (f"e{power}" if power else "")
    signs_of_doubt = {
        _NEGATIVE: opened,
        _APPROXIMATE: match["about"],
        _UNCERTAIN: match["uncertainty"],
        _ANNOTATED: match["notes"],
    }
    guess = next((meaning for meaning, sign in signs_of_doubt.items() if sign), "")
    return NumberText(negative, digits, unit.replace(_HUNDRED_KM, "/100 km"), *marks, guess, "", glued)


def _join_units(units: list[str]) -> tuple[int, str | None]:
    """Return the power of 10 and the unit of the words around a number: (6, "€") for 3 Mio. €; None if they conflict.

    A power of 10 alone, as in 3 Mio., is a unit here, since only the other cells show whether m is million or metre.
    """
    if len(units) < 2:
        return 0, "".join(units)
    first, second = units
    if is_currency(first) and second in POWERS_OF_10:  # $1.2bn
        return POWERS_OF_10[second], first
    if is_currency(second) and first in POWERS_OF_10:  # 1,2 Mrd. €
        return POWERS_OF_10[first], second
    if is_symbol(first) and is_currency(second) and not is_symbol(second):  # $12 MXN
        return 0, second
    return 0, None


def _split_other(text: str) -> NumberText | None:
    """Split a time, a height in feet and inches, or points out of 5, 10, 20 or 100."""
    time = split_time(text)
    if time is not None:
        return _time_text(time)
    feet = _FEET.fullmatch(text)
    if feet is not None:
        inches = 12 * int(feet["feet"]) + int(feet["inches"])
        return NumberText(False, f"{inches}{feet['fraction'] or ''}", "in", decimal="." if feet["fraction"] else "")
    rating = _OUT_OF.fullmatch(text)
    if rating is None or float(rating["points"].replace(",", ".")) > float(rating["most"]):
        return None
    mark = "".join({".", ","} & {*rating["points"]})
    return NumberText(False, rating["points"], f"/{rating['most']}", decimal=mark)


def _time_text(time: TimeText) -> NumberText:
    return NumberText(time.negative, time.seconds, TIME, clock=time.clock)


def _eighths_as_decimal(match: re.Match[str]) -> str:
    """Write 2½ as 2500e-3, without a decimal mark."""
    return f"{1000 * int(match['whole'] or 0) + 125 * (_EIGHTHS.index(match['eighths']) + 1)}e-3"


def _ratio_as_decimal(match: re.Match[str]) -> str:
    """Write 2 1/2 as 2500e-3."""
    top, bottom = int(match["top"]), int(match["bottom"])
    return f"{1000 * int(match['whole']) + 1000 * top // bottom}e-3" if top < bottom else match[0]


def _split_marks(digits: str, has_exponent: bool) -> tuple[str, str, str] | None:
    """Return the mark between thousands, the decimal mark and the unclear mark; None if digits are grouped wrongly.

    >>> _split_marks("1 234,5", False), _split_marks("1,234", False), _split_marks("1.2.3", False)
    ((' ', ',', ''), ('', '', ','), None)
    """
    if digits.isdigit():
        return "", "", ""
    match = _GROUPED.fullmatch(digits)
    if match is not None:
        mark, decimal = match[1], match[2] or ""
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
