"""Texts as counts of their words: each count times ln((1 + n)/(1 + rows with the word)) + 1, each text to length 1."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from mercer.tables.cells import Cells

_WORD: Final = re.compile(r"\w+")
_FEWEST_ROWS: Final = 2  # of a word worth a column: one that a single row has says nothing of others


def vocabulary(cells: Cells) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The words of at least two texts, in order, and how much a count of each weighs."""
    rows = Counter(word for item in cells.tolist() for word in set(_words(item)))
    words = sorted(word for word, count in rows.items() if count >= _FEWEST_ROWS)
    return tuple(words), tuple(float(np.log((1 + len(cells)) / (1 + rows[word])) + 1) for word in words)


def counted(cells: Cells, words: tuple[str, ...], weights: tuple[float, ...]) -> Any:
    """A CSR row per text and a column per word."""
    place = {word: j for j, word in enumerate(words)}
    data: list[float] = []
    indices: list[int] = []
    ends = [0]
    for item in cells.tolist():
        counts = Counter(place[word] for word in _words(item) if word in place)
        entries = {j: counts[j] * weights[j] for j in sorted(counts)}
        length = float(np.sqrt(sum(value * value for value in entries.values())))
        indices += entries
        data += [value / length for value in entries.values()]
        ends.append(len(indices))
    parts = (np.array(data, dtype=np.float64), np.array(indices, dtype=np.int32), np.array(ends, dtype=np.int32))
    return sp.csr_array(parts, shape=(len(cells), len(words)))


def _words(item: Any) -> list[str]:
    return [] if item is None else _WORD.findall(str(item).lower())
