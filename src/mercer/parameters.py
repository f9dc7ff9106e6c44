"""Checks of plain parameters: what was given, why it cannot be, what to do."""

from __future__ import annotations

import math
import numbers
from typing import Any


def positive(name: str, value: Any, hint: str = "") -> float:
    """A finite number above zero."""
    number = real(name, value)
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{name}={value!r} must be a finite number above 0{'; ' + hint if hint else ''}")
    return number


def not_negative(name: str, value: Any, hint: str = "") -> float:
    """A finite number of at least zero."""
    number = real(name, value)
    if not (number >= 0 and math.isfinite(number)):
        raise ValueError(f"{name}={value!r} must be a finite number of at least 0{'; ' + hint if hint else ''}")
    return number


def share(name: str, value: Any, hint: str = "", *, whole: bool = False) -> float:
    """A number between 0 and 1, both excluded, or 1 included for a `whole`."""
    number = real(name, value)
    if not (0 < number < 1 or (whole and number == 1)):
        end = "above 0 and at most 1" if whole else "strictly between 0 and 1"
        raise ValueError(f"{name}={value!r} must be a number {end}{'; ' + hint if hint else ''}")
    return number


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}")
    return value


def iterations(name: str, value: Any, default: int) -> int:
    """A count, where −1 stands for the finite default."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < -1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 0, or -1 for the default of {default}")
    return default if value == -1 else int(value)


def real(name: str, value: Any) -> float:
    """Any real number; True and False are none."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} must be a number, not {type(value).__name__}")
    return float(value)
