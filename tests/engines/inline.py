"""An engine of chunks without processes: its workers are this thread, which sees nothing but what was sent to it."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
from joblib.externals.loky.backend.reduction import dumps

import mercer
from mercer.arrays import is_sparse
from mercer.engine import PlacedSamples, register
from mercer.engines.chunked import gram
from mercer.engines.chunked.engine import ChunkedEngine
from mercer.engines.chunked.samples import ChunkedSamples
from mercer.engines.processes.pool import Scratch, StoredChunks, work


class Kept:
    """A chunk in memory."""

    def __init__(self, rows):
        self.rows = rows

    def load(self):
        return self.rows


class HerePool:
    """Calls verbs in this thread, on copies of everything."""

    size = 1

    def call(self, asks):
        return [pickle.loads(dumps(work(*pickle.loads(dumps(ask))))) for ask in asks]


class HereChunks(StoredChunks):
    """What is sent more than once is not written to a file."""

    def call(self, verb, which, each, common):
        return self._pool.call([(self._sources[k], verb, own, common) for k, own in zip(which, each, strict=True)])

    def hold(self, each):
        return list(each)


class InlineEngine(ChunkedEngine):
    """Rows of this machine in chunks whose sizes repeat."""

    devices = ("inline",)
    sizes = (1_000_000,)

    def accepts(self, X):
        return False

    def vector(self, values):
        return values

    def samples(self, X):
        if isinstance(X, ChunkedSamples):
            return X
        X = X.host() if isinstance(X, PlacedSamples) else X
        if isinstance(X, list):
            raise TypeError("no strings")
        X = X if is_sparse(X) else np.asarray(X)
        sources, begin = [], 0
        while begin < X.shape[0] or not sources:
            for size in self.sizes:
                sources.append(Kept(X[begin : begin + size]))
                begin += size
        return ChunkedSamples(self, HereChunks(sources, Scratch(), HerePool()))


ENGINE = InlineEngine()
register(ENGINE)


@contextmanager
def in_chunks(sizes, outer_rows=16_384):
    """Data of this machine go to chunks of these sizes, and working sets have so many variables."""
    with (
        patch.object(InlineEngine, "sizes", sizes),
        patch.object(gram, "OUTER_ROWS", outer_rows),
        mercer.config_context(device="inline"),
    ):
        yield
