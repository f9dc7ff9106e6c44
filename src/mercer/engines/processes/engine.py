"""The engine of processes: arrays of this machine, or rows in files, in chunks for as many processes as are asked."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from mercer.arrays import is_sparse
from mercer.config import get_config
from mercer.engine import PlacedSamples
from mercer.engines.chunked.engine import ChunkedEngine
from mercer.engines.chunked.samples import ChunkedSamples
from mercer.engines.processes.pool import Mapped, Pool, Scratch, StoredChunks, default_size

# Rows of a chunk: at least this many, and no more bytes than that, so that processes share the work evenly and each
# needs little memory.
_FEWEST_ROWS, _CHUNK_BYTES = 2048, 32 << 20


class ProcessEngine(ChunkedEngine):
    """Asked for by `config_context(device="processes")`, or "processes:4" for four of them."""

    devices = ("processes",)

    def __init__(self) -> None:
        self._pools: dict[int, Pool] = {}

    def pool(self) -> Pool:
        """The pool of the configured size."""
        name, _, number = get_config()["device"].partition(":")
        if name == "processes" and number and (not number.isdecimal() or int(number) < 1):
            raise ValueError(f"device='processes:{number}': after the colon stands how many processes, at least 1")
        size = int(number) if name == "processes" and number else default_size()
        return self._pools.setdefault(size, Pool(size))

    def close(self) -> None:
        """End all processes; they are started again when they are needed."""
        for pool in self._pools.values():
            pool.close()

    def forget(self) -> None:
        """Start processes of its own in a forked process."""
        self._pools.clear()

    def accepts(self, X: Any) -> bool:
        return isinstance(X, FileRows)

    def vector(self, values: Any) -> Any:
        return self.samples(values).host()

    def samples(self, X: Any) -> PlacedSamples:
        if isinstance(X, ChunkedSamples) and X.engine is self:
            return X
        names = getattr(X, "names", None)
        X = X.host() if isinstance(X, PlacedSamples) else X
        if isinstance(X, list):
            raise TypeError("strings are not computed in processes; do it here: mercer.config_context(device='cpu')")
        if not isinstance(X, FileRows):
            X = FileRows.of(X, 2 * self.pool().size)
        return ChunkedSamples(self, StoredChunks(X.sources, X.scratch, self.pool()), names=names)


class FileRows:
    """Rows in files, in chunks that processes map into memory: what this engine takes for an array.

    `names` are those of the columns, where the files have some.
    """

    def __init__(self, sources: list[Any], scratch: Scratch, names: tuple[str, ...] | None = None) -> None:
        self.sources, self.scratch, self.names = sources, scratch, names
        first = sources[0].load()
        self.shape: tuple[int, int] = (sum(source.load().shape[0] for source in sources), first.shape[1])
        self.dtype = first.dtype

    @classmethod
    def of(cls, X: Any, least: int, scratch: Scratch | None = None) -> FileRows:
        """An array or a CSR matrix, in at least so many chunks; one that is a part of a file stays there."""
        X = X if is_sparse(X) else np.asarray(X)
        if X.dtype.char not in "fd":
            X = X.astype(np.float64)
        scratch, n = scratch or Scratch(), X.shape[0]
        size = max(1, X.data.nbytes if is_sparse(X) else X.nbytes)
        parts = max(1, min(-(-n // _FEWEST_ROWS), max(least, -(-size // _CHUNK_BYTES))))
        whole = (None if is_sparse(X) else Mapped.of(X)) or scratch.stored(X)
        ends = np.linspace(0, n, parts + 1).astype(int).tolist()
        return cls([whole.part(begin, end) for begin, end in pairwise(ends)], scratch)

    def __len__(self) -> int:
        return self.shape[0]
