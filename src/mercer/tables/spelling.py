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
