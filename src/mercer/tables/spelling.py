"""How numbers and missing values are spelt in the cells of a table."""

from __future__ import annotations

import re
from typing import Final

# What pandas takes for a missing value, too.
MISSING: Final = frozenset(
    {"", "#N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NULL", "null", "None", "NaN", "nan", "-nan"}
)
INTEGER: Final = re.compile(r"[+-]?(0|[1-9][0-9]*)")
NUMBER: Final = re.compile(r"[+-]?(([0-9]+\.?[0-9]*)|(\.[0-9]+))([eE][+-]?[0-9]+)?")
PADDED: Final = re.compile(r"[+-]?0[0-9]")  # a code such as 007
# With one mark for fractions and the other, perhaps, between thousands.
WITH_COMMA: Final = re.compile(r"[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)(,[0-9]+)?([eE][+-]?[0-9]+)?")
WITH_POINT: Final = re.compile(r"[+-]?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_UNIT: Final = r"[$€£¥₹₩₽₪%‰]|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|kr|zł)\b"
BLANK: Final = "[ \u00a0\u202f]"
# Blanks and apostrophes may group digits by three.
_DIGITS: Final = rf"[0-9]{{1,3}}(?:(?:{BLANK}|['’])[0-9]{{3}})+(?:[.,][0-9]+)?|[0-9][0-9.,]*"
WITH_UNIT: Final = re.compile(
    rf"([+−-]?)(?:({_UNIT}){BLANK}?([+−-]?)({_DIGITS})|({_DIGITS}){BLANK}?({_UNIT}))", re.UNICODE
)


def looks_numeric(text: str) -> bool:
    """Whether a person takes the text for a number: with a decimal comma, marks for thousands, or a unit."""
    return not PADDED.match(text) and any(form.fullmatch(text) for form in (NUMBER, WITH_COMMA, WITH_POINT, WITH_UNIT))
