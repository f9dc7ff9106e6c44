"""The engine of Dask collections: arrays and frames whose row chunks lie on a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import is_sparse
from mercer.engine import PlacedSamples
from mercer.engines.chunked.engine import ChunkedEngine
from mercer.engines.chunked.samples import ChunkedSamples
from mercer.engines.dask.cluster import DaskChunks, open_client, task
from mercer.runtime.optional import require

dask = require("dask", "computing on a Dask cluster")
core, delayed = require("dask.core", "its arrays"), require("dask.delayed", "its arrays")

# Rows of this machine that are sent as one chunk.
_CHUNK_BYTES = 8 << 20


class DaskEngine(ChunkedEngine):
    """Collections of Dask, and data of this machine under `config_context(device="dask")`."""

    devices = ("dask",)

    def accepts(self, X: Any) -> bool:
        return dask.is_dask_collection(X) and type(X).__module__.startswith(("dask.array", "dask.dataframe"))

    def samples(self, X: Any) -> PlacedSamples:
        if isinstance(X, ChunkedSamples) and X.engine is self:
            return X
        client = open_client()
        blocks = partial(client.compute, _row_blocks(X)) if self.accepts(X) else _pieces(client, X)

        def make(convert: Callable[[Any], Any] = as_rows) -> list[Any]:
            return [task(client, "rows", convert, block) for block in blocks()]

        chunks = DaskChunks(client, make)
        if len(chunks.types) > 1:  # float32 beside float64: all are float64 then
            chunks = DaskChunks(client, partial(make, as_float64))
        return ChunkedSamples(self, chunks)

    def vector(self, values: Any) -> Any:
        return np.asarray(open_client().compute(values).result())

    def given(self, values: Any, like: Any) -> Any:
        array = require("dask.array", "an answer as a Dask array")
        sizes = like.chunks[0] if hasattr(like, "chunks") else (len(values),)
        known = not any(map(math.isnan, sizes)) and sum(sizes) == len(values)
        rows = sizes if known else (len(values),)
        return array.from_array(values, chunks=(rows, *((size,) for size in values.shape[1:])))

    def later(self, X: Any, answer: Callable[[Any], Any]) -> Any:
        """answer(X) as a Dask array that has X's chunks of rows, computed when it is asked for."""
        like = answer(np.zeros((1, X.shape[1])))
        if hasattr(X, "chunks"):
            shape: Any = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], (like.shape[1],))}
            meta = np.empty((0,) * like.ndim, like.dtype)
            return _in_rows(X).map_blocks(answered, answer=answer, dtype=like.dtype, meta=meta, **shape)
        array, ask = require("dask.array", "an answer as a Dask array"), dask.delayed(answered, pure=False)
        held = dask.delayed(answer, pure=False)
        shape = (math.nan, *like.shape[1:])
        parts = [array.from_delayed(ask(block, answer=held), shape=shape, dtype=like.dtype) for block in _row_blocks(X)]
        return array.concatenate(parts, axis=0)


def answered(block: Any, answer: Callable[[Any], Any]) -> Any:
    """A task: the answer about a chunk, which may have no rows."""
    rows = as_rows(block)
    return answer(rows) if rows.shape[0] else answer(np.zeros((1, rows.shape[1])))[:0]


def _in_rows(X: Any) -> Any:
    """A matrix whose chunks have all columns."""
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix with a row per sample, but it has {X.ndim} dimensions")
    return X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X


def _row_blocks(X: Any) -> list[Any]:
    """The chunks of rows of a collection, as delayed objects."""
    if hasattr(X, "chunks"):
        X = _in_rows(X)
        if not hasattr(X, "to_delayed"):  # an expression
            keys, graph = core.flatten(X.__dask_keys__()), X.__dask_graph__()
            return [delayed.Delayed(key, graph) for key in keys]
        return list(X.to_delayed().ravel())
    return list(X.to_delayed())


def _pieces(client: Any, X: Any) -> Callable[[], Iterable[Any]]:
    """Rows of this machine, or of its files, some at a time: as arguments of tasks they can be sent again."""
    if hasattr(X, "sources"):
        return lambda: (source.load() for source in X.sources)
    if isinstance(X, list):
        raise TypeError("strings are not computed on a cluster; do it here: mercer.config_context(device='cpu')")
    rows = as_rows(X.host() if isinstance(X, PlacedSamples) else X)
    n, size = rows.shape[0], rows.data.nbytes
    parts = max(1, min(n, max(sum(client.nthreads().values()), -(-size // _CHUNK_BYTES))))
    ends = np.linspace(0, n, parts + 1).astype(int).tolist()
    return lambda: (rows[begin:end] for begin, end in pairwise(ends))


def as_float64(block: Any) -> Any:
    return as_rows(block).astype(np.float64)


def as_rows(block: Any) -> Any:
    """A chunk as rows of float32 or float64, or as a CSR matrix; an error for what is no number."""
    if hasattr(block, "dtypes") and hasattr(block, "columns"):
        for name, dtype in zip(block.columns, block.dtypes, strict=True):
            if getattr(dtype, "kind", "O") not in "fiub":
                raise ValueError(
                    f"column {name!r} of X holds {dtype}, which is no number; encode it, for instance with "
                    "dask.dataframe.get_dummies, or leave it out"
                )
        single = all(dtype == np.float32 for dtype in block.dtypes)
        block = block.to_numpy(np.float32 if single else np.float64, na_value=math.nan)
    if is_sparse(block):
        rows = sp.csr_array(block)
        rows.sum_duplicates()
        return rows if rows.dtype.char in "fd" else rows.astype(np.float64)
    if isinstance(block, np.ma.MaskedArray):
        raise ValueError("X holds masked arrays; fill or drop what is masked, so that nothing is guessed")
    block = np.asarray(block)
    if block.dtype.kind not in "fiub" or block.dtype.char in "eg":
        raise ValueError(f"X holds {block.dtype}; give float32, float64 or integers: X.astype(float)")
    if block.dtype.kind in "iu" and block.size and max(abs(int(block.max())), abs(int(block.min()))) > 2**53:
        raise ValueError("X holds integers beyond 2**53, which float64 rounds; scale them yourself, then convert them")
    return np.ascontiguousarray(block, dtype=block.dtype if block.dtype.char in "fd" else np.float64)
