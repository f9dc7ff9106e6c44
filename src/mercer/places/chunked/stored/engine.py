"""The engine of rows in files: each chunk is mapped into memory, computed on in this process, and let go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import _core
from mercer.places.chunked import verbs
from mercer.places.chunked.chunks import Account, Chunks
from mercer.places.chunked.engine import ChunkedEngine
from mercer.places.chunked.samples import ChunkedSamples
from mercer.places.chunked.stored.files import Scratch
from mercer.samples.arrays import is_sparse
from mercer.samples.engine import PlacedSamples


class FileRows:
    """Rows in files, in chunks that are mapped into memory one at a time: what this engine takes for an array.

    `names` are those of the columns, where the files have some.
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
    """A chunk that is in memory already."""

    rows: Any

    def load(self) -> Any:
        return self.rows


class StoredChunks(Chunks):
    """Chunks that are loaded one after another; `owners` keep the files that they are loaded from."""

    def __init__(self, sources: Sequence[Any], owners: tuple[Any, ...] = (), account: Account | None = None) -> None:
        self._sources, self._owners = list(sources), owners
        self.account = Account() if account is None else account
        super().__init__([verbs.facts(source.load()) for source in self._sources])

    def threads(self, n_threads: int) -> int:
        return n_threads

    def call(self, verb: Any, which: Sequence[int], each: Sequence[Any], common: Any) -> list[Any]:
        found = []
        for k, own in zip(which, each, strict=True):
            _core.check_stop()
            found.append(verb(self._sources[k].load(), *own, *common))
        return found

    def hold(self, each: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return list(each)

    def joined(self, others: Chunks) -> StoredChunks:
        assert isinstance(others, StoredChunks)
        sources, owners = [*self._sources, *others._sources], (*self._owners, *others._owners)
        return StoredChunks(sources, owners, self.account)


class StoredEngine(ChunkedEngine):
    """Chosen by the type of X alone: no device has its name."""

    devices = ()

    def accepts(self, X: Any) -> bool:
        return isinstance(X, FileRows)

    def vector(self, values: Any) -> Any:
        return self.samples(values).host()

    def samples(self, X: Any) -> PlacedSamples:
        if isinstance(X, ChunkedSamples) and X.engine is self:
            return X
        names = getattr(X, "names", None)
        if isinstance(X, FileRows):
            return ChunkedSamples(self, StoredChunks(X.sources, (X.scratch,)), names=names)
        X = X.host() if isinstance(X, PlacedSamples) else X
        if isinstance(X, list):
            raise TypeError("strings do not go with rows in files; give rows of numbers")
        X = X if is_sparse(X) else np.asarray(X)
        X = X if X.dtype.char in "fd" else X.astype(np.float64)
        return ChunkedSamples(self, StoredChunks([Resident(X)]), names=names)
