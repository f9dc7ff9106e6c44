"""Parsing shared by the text formats of models: strict numbers, header lines, and support vectors."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer.runtime.errors import ModelFormatError
from mercer.samples.arrays import Floats

_FLOAT: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_INTEGER: Final = re.compile(r"[-+]?\d+", re.ASCII)


def as_float(text: str, where: str) -> float:
    """Parse a finite decimal number; Python's nan, inf and 1_000 are refused."""
    value = float(text) if _FLOAT.fullmatch(text) else np.nan
    if not np.isfinite(value):
        raise ModelFormatError(f"{where}: {text!r:.40} is not a finite number")
    return value


def as_integer(text: str, where: str) -> int:
    """Parse a 32-bit integer, as LIBSVM uses them."""
    value = int(text) if _INTEGER.fullmatch(text) and len(text) < 20 else None
    if value is None or not -(2**31) <= value < 2**31:
        raise ModelFormatError(f"{where}: {text!r:.40} is not a 32-bit integer")
    return value


class Header:
    """Header lines ``key value value ...``, each of which is read once; `end` is the number of the next line."""

    def __init__(self, name: str, lines: list[str], keys: tuple[str, ...]) -> None:
        self._name, self.end = name, len(lines) + 1
        self._lines: dict[str, list[str]] = {}
        for number, line in enumerate(lines, 1):
            key, *values = line.split() or [""]
            if key not in keys:
                raise ModelFormatError(f"{name}:{number}: unknown text in model file: [{key:.40}]")
            if key in self._lines:
                raise ModelFormatError(f"{name}:{number}: {key} occurs twice")
            self._lines[key] = values

    def has(self, key: str) -> bool:
        """Return True if the header has the key and it was not read yet."""
        return key in self._lines

    def word(self, key: str, allowed: tuple[str, ...]) -> str:
        """Read one word that must be among those allowed."""
        (word,) = self._values(key, 1)
        if word not in allowed:
            raise ModelFormatError(f"{self._name}: {key} {word!r:.40} is none of {', '.join(allowed)}")
        return word

    def floats(self, key: str, count: int) -> Floats:
        """Read `count` finite numbers."""
        values = self._values(key, count)
        return np.array([as_float(value, f"{self._name}: {key}") for value in values], dtype=np.float64)

    def integers(self, key: str, count: int) -> list[int]:
        """Read `count` integers."""
        return [as_integer(value, f"{self._name}: {key}") for value in self._values(key, count)]

    def labels(self, count: int) -> tuple[int, ...]:
        """Read the class labels, which must differ."""
        label = tuple(self.integers("label", count))
        if len(set(label)) != count:
            raise ModelFormatError(f"{self._name}: a label occurs twice in {label}")
        return label

    def _values(self, key: str, count: int) -> list[str]:
        """Remove a line and return its `count` values; raise if the line is missing or has another number of them."""
        if key not in self._lines:
            raise ModelFormatError(f"{self._name}: the header has no {key}")
        values = self._lines.pop(key)
        if len(values) != count:
            raise ModelFormatError(f"{self._name}: {key} must have {count} values, not {len(values)}")
        return values

    def finish(self) -> None:
        """Raise ModelFormatError if a line was not read."""
        if self._lines:
            raise ModelFormatError(f"{self._name}: {', '.join(self._lines)} cannot occur for this machine")


def split_header(
    mark: str, content: bytes, name: str, program: str, keys: tuple[str, ...]
) -> tuple[Header, list[bytes]]:
    """Split a file at the line ``mark`` into the header before it and the lines after it."""
    lines = content.split(b"\n")
    position = next((i for i, line in enumerate(lines) if line.strip() == mark.encode()), None)
    if position is None:
        raise ModelFormatError(f"{name} is not a {program} model, or is truncated: it has no line {mark!r}")
    tail = lines[position + 1 :]
    while tail and not tail[-1].strip():
        tail.pop()
    return Header(name, [line.decode("ascii", "backslashreplace") for line in lines[:position]], keys), tail


def header_line(key: str, values: Any) -> str:
    """Return a line of a header; numbers that are not integers have 17 digits."""
    return " ".join([key, *(str(value) if isinstance(value, int) else f"{value:.17g}" for value in values)])


def read_vectors(
    lines: list[bytes], count: int, width: int, name: str, first_line: int, announced: str
) -> tuple[Floats, sp.csr_array]:
    """Parse lines of ``width`` coefficients and a support vector; return the coefficients and the vectors.

    The vectors have a column for each index, 0 included. ``count`` is the number of lines that the header announces
    under the name ``announced``; ``first_line`` is the line number of the first vector.
    """
    if count < 0 or len(lines) != count:
        raise ModelFormatError(
            f"{name} is truncated or damaged: {announced} says {count} support vectors, but {len(lines)} lines follow"
        )
    coefficients = np.empty((count, width))
    pairs = []
    for i, line in enumerate(lines):
        where = f"{name}:{first_line + i}"
        if b"#" in line or b"q" in line:  # comments and queries, which only data files have
            raise ModelFormatError(f"{where}: {line[:40]!r} is not a support vector")
        words = line.split(None, width)
        if len(words) < width:
            raise ModelFormatError(f"{where}: expected {width} coefficients and index:value pairs, found {line[:40]!r}")
        coefficients[i] = [as_float(word.decode("ascii", "backslashreplace"), where) for word in words[:width]]
        pairs.append(b" ".join([b"0", *words[width:]]))
    content = np.frombuffer(b"\n".join(pairs), dtype=np.uint8)
    text = _core.Text(content, 1)
    labels, starts, queries = np.empty(text.rows), np.empty(text.rows + 1, np.int64), np.empty(text.rows, np.int64)
    indices, values = np.empty(text.entries, np.int32), np.empty(text.entries)
    rows, entries, _, largest, _, fault = text.parse(labels, starts, queries, indices, values, 1)
    if fault is not None:
        raise ModelFormatError(f"{name}:{first_line + fault[0] - 1}: {fault[2]}")
    shape = (rows, largest + 1 if entries else 1)
    vectors = sp.csr_array((values[:entries], indices[:entries], starts[: rows + 1].astype(np.int32)), shape=shape)
    return coefficients, vectors


def zero_based_columns(vectors: sp.csr_array, name: str) -> sp.csr_array:
    """Return the vectors with indices from 1 shifted to columns from 0."""
    if len(vectors.indices) and not vectors.indices.all():
        raise ModelFormatError(f"{name}: a support vector has index 0, which only precomputed kernels use")
    shape = (vectors.shape[0], max(vectors.shape[1] - 1, 0))
    return sp.csr_array((vectors.data, vectors.indices - np.int32(1), vectors.indptr), shape=shape)
