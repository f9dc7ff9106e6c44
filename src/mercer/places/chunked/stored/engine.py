"""The engine for rows in files: each chunk is mapped into memory, processed in this process, and released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import _core
from mercer.places.chunked import verbs
from mercer.places.chunked.chunks import CallStatistics, Chunks
from mercer.places.chunked.engine import ChunkedEngine
from mercer.places.chunked.samples import ChunkedSamples
from mercer.places.chunked.stored.files import Scratch
from mercer.samples.arrays import is_sparse
from mercer.samples.engine import EngineSamples


class FileRows:
    """Rows in files, in chunks that are mapped into memory one at a time: the array type of this engine.

    `names` are the column names if the files have them.
    """

    def __init__(self, sources: list[Any], scratch: Scratch, names: tuple[str, ...] | None = None) -> None:
        self.sources, self.scratch, self.names = sources, scratch, names
        first = sources[0].load()
        self.shape: tuple[int, int] = (sum(source.load().shape[0] for source in sources), first.shape[1])
        self.dtype = first.dtype

    def __len__(self) -> int:
        return self.shape[0]


@dataclass(frozen=True)
class Resident:
    """A chunk that is already in memory."""

    rows: Any

    def load(self) -> Any:
        return self.rows


class StoredChunks(Chunks):
    """Chunks that are loaded one after another; `owners` are referenced so that their files are not removed."""

    def __init__(
        self, sources: Sequence[Any], owners: tuple[Any, ...] = (), statistics: CallStatistics | None = None
    ) -> None:
        self._sources, self._owners = list(sources), owners
        self.statistics = CallStatistics() if statistics is None else statistics
        super().__init__([verbs.chunk_format(source.load()) for source in self._sources])

    def threads(self, n_threads: int) -> int:
        return n_threads

    def call(self, verb: Any, chunk_numbers: Sequence[int], chunk_arguments: Sequence[Any], common: Any) -> list[Any]:
        """Return the results of a verb on these chunks, each with its own arguments and the common ones."""
        results = []
        for k, arguments in zip(chunk_numbers, chunk_arguments, strict=True):
            _core.check_stop()
            results.append(verb(self._sources[k].load(), *arguments, *common))
        return results

    def hold(self, chunk_arguments: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return list(chunk_arguments)

    def joined(self, others: Chunks) -> StoredChunks:
        """Return these chunks followed by the others."""
        assert isinstance(others, StoredChunks)
        sources, owners = [*self._sources, *others._sources], (*self._owners, *others._owners)
        return StoredChunks(sources, owners, self.statistics)


class StoredEngine(ChunkedEngine):
    """The engine for rows in files, selected by the type of X alone: it has no device name."""

    devices = ()

    def accepts(self, X: Any) -> bool:
        return isinstance(X, FileRows)

    def vector(self, values: Any) -> Any:
        return self.samples(values).host()

    def samples(self, X: Any) -> EngineSamples:
        """Return an array, or host data, as samples of this engine."""
        if isinstance(X, ChunkedSamples) and X.engine is self:
            return X
        names = getattr(X, "names", None)
        if isinstance(X, FileRows):
            return ChunkedSamples(self, StoredChunks(X.sources, (X.scratch,)), names=names)
        X = X.host() if isinstance(X, EngineSamples) else X
        if isinstance(X, list):
            raise TypeError("strings cannot be combined with rows in files; give rows of numbers")
        X = X if is_sparse(X) else np.asarray(X)
        X = X if X.dtype.char in "fd" else X.astype(np.float64)
        return ChunkedSamples(self, StoredChunks([Resident(X)]), names=names)
