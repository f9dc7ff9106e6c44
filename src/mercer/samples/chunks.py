"""Samples that come in chunks: a callable that opens them again for every pass, or an iterator that is read once.

Every chunk is a pair (X, y) or a triple (X, y, sample_weight), checked like the arguments of `fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mercer.samples import checks as samples
from mercer.samples.arrays import Floats

Target = Callable[[Any], Floats]


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some of the samples: rows of X, their targets (one column per output) and weights.

    `kept` belongs to samples that stay in memory, and holds what was prepared of them.
    """

    X: Any
    Y: Floats
    weight: Floats
    kept: dict[Any, Any] | None = None

    @property
    def n(self) -> int:
        return len(self.weight)


def is_stream(X: Any) -> bool:
    """Whether X is no data set but something that hands out chunks of one."""
    return not hasattr(X, "shape") and (callable(X) or hasattr(X, "__next__"))


def unpack(item: Any, number: int) -> tuple[Any, Any, Any]:
    """X, y and the weights, or None, of a stream's item."""
    if not isinstance(item, tuple) or len(item) not in (2, 3):
        raise ValueError(
            f"chunk {number} of the stream is {type(item).__name__}; give tuples (X, y) or (X, y, sample_weight)"
        )
    return item[0], item[1], item[2] if len(item) == 3 else None


class Stream:
    """The checked chunks of a stream; `target` turns labels into numbers, one column per output."""

    def __init__(self, estimator: Any, source: Any, target: Target) -> None:
        self._estimator, self._source, self._target = estimator, source, target
        self.once = not callable(source)
        self._first = True
        self.seen = (0, 0.0)  # samples, and their weight, of the last whole pass

    def chunks(self) -> Iterator[Chunk]:
        """All chunks, from the beginning where that can be had."""
        opened = self._source if self.once else self._source()
        if not hasattr(opened, "__iter__"):
            raise TypeError(
                f"X() returned {type(opened).__name__}, but must return a fresh iterator of (X, y) or "
                "(X, y, sample_weight) chunks each time it is called"
            )
        n, weight = 0, 0.0
        for number, item in enumerate(opened):
            chunk = self._checked(item, number)
            n, weight = n + chunk.n, weight + float(chunk.weight.sum())
            yield chunk
        if n == 0 or not weight > 0:
            raise ValueError("the stream holds no sample of positive weight; give at least one chunk with samples")
        if not self.once and self.seen not in ((0, 0.0), (n, weight)):
            raise ValueError(
                f"X() handed out {n} samples this time and {self.seen[0]} before: it must open "
                "the same samples for every pass. For an iterator that can be read once, give the iterator itself"
            )
        self.seen = (n, weight)

    def _checked(self, item: Any, number: int) -> Chunk:
        X, y, weight = unpack(item, number)
        try:
            X = samples.vectors(self._estimator, X, reset=self._first)
            self._first = False
            Y = self._target(y)
            if len(Y) != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} samples, but y has {len(Y)}")
            weight = samples.weights(weight, len(Y))
        except ValueError as error:
            raise ValueError(f"chunk {number} of the stream: {error}") from error
        return Chunk(X, Y, weight)


def first_chunks(chunks: Iterator[Chunk], rows: int) -> list[Chunk]:
    """The first of these, with at least this many rows in all if there are as many; the iterator goes on after them."""
    first: list[Chunk] = []
    while sum(chunk.n for chunk in first) < rows and (chunk := next(chunks, None)) is not None:
        first.append(chunk)
    return first
