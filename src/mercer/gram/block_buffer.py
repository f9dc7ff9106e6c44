"""K on a working set, computed into memory that is reused: fresh memory would cost as much time as the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices

# The size is rounded up to a multiple of every instruction set's tile.
_TILE_MULTIPLE = 192
# Extra entries per row: rows that are a power of two bytes apart would compete for the same few cache sets.
_PADDING_ENTRIES = 16


class BlockBuffer:
    """A buffer for K[J, J], which the next one overwrites."""

    def __init__(self, samples: _core.Samples) -> None:
        self._samples = samples
        self._buffer: Any = np.empty((0, 0))

    def __call__(
        self, which: Indices, diagonal: Floats, known: Callable[[Any], None] | None = None, n_threads: int = 1
    ) -> Any:
        """K between some of the samples, in their precision; the diagonal is given.

        If the diagonal is longer than `which`, `known` fills in the remaining columns: it gets their memory.
        """
        n, new = len(diagonal), len(which)
        size = -(-n // _TILE_MULTIPLE) * _TILE_MULTIPLE
        if len(self._buffer) < size:
            self._buffer = np.empty((size, size + _PADDING_ENTRIES), self._samples.dtype)
        if new:
            self._samples.square(which, self._buffer)
        K = self._buffer[:n, :n]
        if known is not None:
            known(K[:, new:])
            _core.transpose(K[:new, new:], K[new:, :new], n_threads)
        step = self._buffer.shape[1] + 1
        self._buffer.ravel()[: n * step : step] = diagonal
        return K
