"""Pieces of C text: tables of constants that read back as the same numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

# Columns of a line.
_WIDTH = 118


def number(value: float, dtype: str) -> str:
    """A constant of type float or double; the shortest text that reads back as the same number."""
    if dtype == "float64":
        return repr(float(value))
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    if not np.isfinite(narrow):
        raise ValueError(f"{value:g} is beyond float32; export with dtype='float64', or scale the features")
    return f"{narrow!s}f"


def floats(name: str, values: Any, dtype: str) -> list[str]:
    """A table of constants, with a row for each row of a matrix."""
    array = np.asarray(values, dtype=np.float64)
    kind = "double" if dtype == "float64" else "float"
    return _table(kind, name, array, [number(value, dtype) for value in array.ravel().tolist()])


def integers(kind: str, name: str, values: Any) -> list[str]:
    """A table of whole numbers; the smallest of 64 bits has no constant of its own in C."""
    array = np.asarray(values)
    return _table(kind, name, array, [str(value) for value in array.ravel().tolist()])


def _table(kind: str, name: str, array: np.ndarray, told: list[str]) -> list[str]:
    sizes = "".join(f"[{size}]" for size in array.shape)
    if array.ndim == 1:
        return [f"static const {kind} {name}{sizes} = {{", *block(told), "};"]
    width = array.shape[1]
    lines = [f"static const {kind} {name}{sizes} = {{"]
    for row in range(array.shape[0]):
        own = block(told[row * width : (row + 1) * width], "   ")
        own[0] = f"  {{{own[0].strip()}"
        own[-1] = f"{own[-1].removesuffix(',')}}},"
        lines += own
    return [*lines, "};"]


def block(told: Iterable[str], indent: str = "  ") -> list[str]:
    """Constants in lines of the usual width."""
    lines, line = [], indent
    for one in told:
        if len(line) + len(one) + 2 > _WIDTH and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += f"{one}, "
    return [*lines, line.rstrip()]


def function(head: str, body: list[str]) -> list[str]:
    """A function's text."""
    return [head, "{", *(f"  {line}" for line in body), "}", ""]


def in_comment(text: str) -> str:
    """Text that cannot end a comment."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return " ".join(plain.replace("\\", "/").replace("*/", "* /").replace("/*", "/ *").split())


def string_literal(text: str) -> str:
    """A string of C with these characters in UTF-8, whatever they are."""
    out = []
    for byte in text.encode("utf-8"):
        character = chr(byte)
        plain = 32 <= byte < 127 and character not in '"\\?'
        out.append(character if plain else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'
