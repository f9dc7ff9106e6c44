"""Streams of samples in chunks: a callable that returns a fresh iterator for every pass, or an iterator read once.

Every chunk is a pair (X, y) or a triple (X, y, sample_weight), checked like the arguments of `fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mercer.samples import checks
from mercer.samples.arrays import Floats

Target = Callable[[Any], Floats]


@dataclass(frozen=True, eq=False)
class Chunk:
    """Block of samples: rows of X, their targets (one column per output) and weights.

    `kept` caches results computed from the samples if these stay in memory between passes; otherwise it is None.
    """

    X: Any
    Y: Floats
    weight: Floats
    kept: dict[Any, Any] | None = None

    @property
    def n(self) -> int:
        return len(self.weight)


def is_stream(X: Any) -> bool:
    """Return whether X is a stream of chunks, not a data set."""
    return not hasattr(X, "shape") and (callable(X) or hasattr(X, "__next__"))


def unpack(item: Any, number: int) -> tuple[Any, Any, Any]:
    """Return X, y and the sample weights (or None) of chunk `number` of a stream."""
    if not isinstance(item, tuple) or len(item) not in (2, 3):
        raise ValueError(
            f"chunk {number} of the stream is {type(item).__name__}; give tuples (X, y) or (X, y, sample_weight)"
        )
    return item[0], item[1], item[2] if len(item) == 3 else None


class Stream:
    """Iterable over the checked chunks of a stream; `target` converts labels to numbers, one column per output."""

    def __init__(self, estimator: Any, source: Any, target: Target) -> None:
        self._estimator, self._source, self._target = estimator, source, target
        self.single_pass = not callable(source)  # an iterator, which can be read only once
        self._is_first = True
        self.seen = (0, 0.0)  # number of samples and total weight of the last complete pass

    def chunks(self) -> Iterator[Chunk]:
        """Yield all chunks: from the beginning for a callable, from the current position for an iterator."""
        opened = self._source if self.single_pass else self._source()
        if not hasattr(opened, "__iter__"):
            raise TypeError(
                f"X() returned {type(opened).__name__}, but must return a fresh iterator of (X, y) or "
                "(X, y, sample_weight) chunks each time it is called"
            )
        n, weight = 0, 0.0
        for number, item in enumerate(opened):
            chunk = self._check(item, number)
            n, weight = n + chunk.n, weight + float(chunk.weight.sum())
            yield chunk
        if n == 0 or not weight > 0:
            raise ValueError("the stream holds no sample of positive weight; give at least one chunk with samples")
        if not self.single_pass and self.seen not in ((0, 0.0), (n, weight)):
            raise ValueError(
                f"X() returned {n} samples this time and {self.seen[0]} before: it must return "
                "the same samples for every pass. For an iterator that can be read once, give the iterator itself"
            )
        self.seen = (n, weight)

    def _check(self, item: Any, number: int) -> Chunk:
        """Return chunk `number` with its samples, targets and weights checked."""
        X, y, weight = unpack(item, number)
        try:
            X = checks.vectors(self._estimator, X, reset=self._is_first)
            self._is_first = False
            Y = self._target(y)
            if len(Y) != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} samples, but y has {len(Y)}")
            weight = checks.weights(weight, len(Y))
        except ValueError as error:
            raise ValueError(f"chunk {number} of the stream: {error}") from error
        return Chunk(X, Y, weight)


def first_chunks(chunks: Iterator[Chunk], n_rows: int) -> list[Chunk]:
    """Take chunks from an iterator until they have at least this many rows in all, or it ends."""
    first: list[Chunk] = []
    while sum(chunk.n for chunk in first) < n_rows and (chunk := next(chunks, None)) is not None:
        first.append(chunk)
    return first
