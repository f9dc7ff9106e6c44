"""The engine for Dask collections: arrays and frames whose row chunks are on a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.places.chunked.conversion import as_rows
from mercer.places.chunked.dask.cluster import DaskChunks, distributed, identity, open_client, task
from mercer.places.chunked.engine import ChunkedEngine
from mercer.places.chunked.samples import ChunkedSamples
from mercer.runtime.optional import require
from mercer.samples.column_names import column_names
from mercer.samples.engine import EngineSamples, on_host

dask = require("dask", "computing on a Dask cluster")
core, delayed = require("dask.core", "its arrays"), require("dask.delayed", "its arrays")

# Bytes of host rows that are sent as one chunk.
_CHUNK_BYTES = 8 << 20


class DaskEngine(ChunkedEngine):
    """The engine for Dask collections, and for host data under `config_context(device="dask")`."""

    devices = ("dask",)

    def accepts(self, X: Any) -> bool:
        return dask.is_dask_collection(X) and type(X).__module__.startswith(("dask.array", "dask.dataframe"))

    def samples(self, X: Any) -> EngineSamples:
        """Return an array, or host data, as samples of this engine."""
        if isinstance(X, ChunkedSamples) and X.engine is self:
            return X
        client = open_client()
        if not self.accepts(X):
            names, pieces = getattr(X, "names", None), _pieces(client, X)
            return ChunkedSamples(
                self,
                DaskChunks(client, lambda: [task(client, "rows", identity, piece) for piece in pieces()]),
                names=names,
            )
        _expect_same_cluster(client, X)
        chunks = DaskChunks(client, partial(client.compute, _row_blocks(X)))
        return ChunkedSamples(self, chunks, names=column_names(X))

    def vector(self, values: Any) -> Any:
        return np.asarray(on_host(open_client().compute(values).result()))

    def given(self, values: Any, like: Any) -> Any:
        """Return an array of the host in the array type of `like`."""
        array = require("dask.array", "an answer as a Dask array")
        sizes = like.chunks[0] if hasattr(like, "chunks") else (len(values),)
        sizes_known = not any(map(math.isnan, sizes)) and sum(sizes) == len(values)
        rows = sizes if sizes_known else (len(values),)
        return array.from_array(values, chunks=(rows, *((size,) for size in values.shape[1:])))

    def lazy_result(self, X: Any, answer: Callable[[Any], Any]) -> Any:
        """Return answer(X) as a lazy Dask array with X's chunks of rows.

        The columns of X are checked against the model's at once, by computing the answer for one row of zeros.
        """
        example = answer(_zeros(X))
        array = require("dask.array", "an answer as a Dask array")
        compute, model, blocks = (
            dask.delayed(answer_block, pure=False),
            dask.delayed(answer, pure=False),
            _row_blocks(X),
        )
        sizes = X.chunks[0] if hasattr(X, "chunks") else (math.nan,) * len(blocks)
        parts = [
            array.from_delayed(compute(block, answer=model), shape=(size, *example.shape[1:]), dtype=example.dtype)
            for block, size in zip(blocks, sizes, strict=True)
        ]
        return array.concatenate(parts, axis=0)


def answer_block(block: Any, answer: Callable[[Any], Any]) -> Any:
    """Return the answer for a chunk as a NumPy array, in a task; a frame keeps its column names."""
    rows = as_rows(block)
    if not rows.shape[0]:
        return on_host(answer(_zeros(block)))[:0]
    return on_host(answer(type(block)(rows, columns=block.columns) if column_names(block) is not None else rows))


def _zeros(X: Any) -> Any:
    """Return one row of zeros with the columns of X, and with their names if X is a frame."""
    zeros, meta = np.zeros((1, X.shape[1])), getattr(X, "_meta", X)
    return zeros if column_names(X) is None else type(meta)(zeros, columns=list(X.columns))


def _expect_same_cluster(client: Any, X: Any) -> None:
    """Raise ValueError if parts of X are on another cluster than the client's."""
    other = next((future.client for future in distributed.client.futures_of(X) if future.client is not client), None)
    if other is not None and other.scheduler.address != client.scheduler.address:
        raise ValueError(
            f"X was persisted on the cluster at {other.scheduler.address}, but the current Dask client is for "
            f"{client.scheduler.address}; compute where X is: `with client.as_current():` around the call"
        )


def _in_rows(X: Any) -> Any:
    """Return X as a matrix whose chunks have all columns."""
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix with a row per sample, but it has {X.ndim} dimensions")
    return X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X


def _row_blocks(X: Any) -> list[Any]:
    """Return the row chunks of a collection, as delayed objects."""
    if hasattr(X, "chunks"):
        X = _in_rows(X)
        if not hasattr(X, "to_delayed"):  # an expression
            keys, graph = core.flatten(X.__dask_keys__()), X.__dask_graph__()
            return [delayed.Delayed(key, graph) for key in keys]
        return list(X.to_delayed().ravel())
    return list(X.to_delayed())


def _pieces(client: Any, X: Any) -> Callable[[], Iterable[Any]]:
    """Return a function that yields host rows, or rows of files, in pieces, which can be sent to tasks repeatedly."""
    if hasattr(X, "sources"):
        return lambda: (source.load() for source in X.sources)
    if isinstance(X, list):
        raise TypeError("strings are not supported on a cluster; use the host: mercer.config_context(device='cpu')")
    rows = as_rows(X.host() if isinstance(X, EngineSamples) else X)
    n, size = rows.shape[0], rows.data.nbytes
    parts = max(1, min(n, max(sum(client.nthreads().values()), -(-size // _CHUNK_BYTES))))
    ends = np.linspace(0, n, parts + 1).astype(int).tolist()
    return lambda: (rows[begin:end] for begin, end in pairwise(ends))
