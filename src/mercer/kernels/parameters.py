"""Checks of kernel parameters: each names the parameter, what was given and what is allowed."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def check_finite(name: str, value: Any) -> None:
    """A finite number."""
    if not _is_number(value) or not math.isfinite(value):
        raise ValueError(f"{name}={value!r} must be a finite number")


def check_positive(name: str, value: Any) -> None:
    """A finite number > 0."""
    if not _is_number(value) or not 0 < value < math.inf:
        raise ValueError(f"{name}={value!r} must be a finite number > 0")


def check_not_negative(name: str, value: Any) -> None:
    """A finite number ≥ 0."""
    if not _is_number(value) or not 0 <= value < math.inf:
        raise ValueError(f"{name}={value!r} must be a finite number ≥ 0")


def check_integer(name: str, value: Any, least: int, why: str) -> None:
    """An integer no smaller than ``least``; a float is none, even 2.0."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer ≥ {least}: {why}")


def check_callable(name: str, value: Any) -> None:
    """A function."""
    if not callable(value):
        raise TypeError(f"{name}={value!r} must be a function of the samples, not {type(value).__name__}")


def check_domain(accepts: Any) -> None:
    """What a user's function of the samples may take."""
    if accepts not in ("vectors", "sequences"):
        raise ValueError(f"accepts={accepts!r} must be 'vectors' or 'sequences': what a sample is")


def name_of(function: Any) -> str:
    """A function's name, for messages."""
    return str(getattr(function, "__qualname__", None) or repr(function))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
