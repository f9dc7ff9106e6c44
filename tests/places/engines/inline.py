"""An engine of chunks whose workers are this thread, which sees nothing but copies of what was sent to it."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
from joblib.externals.loky.backend.reduction import dumps

import mercer
from mercer.places.chunked import gram, verbs
from mercer.places.chunked.engine import ChunkedEngine
from mercer.places.chunked.samples import ChunkedSamples
from mercer.places.chunked.stored.engine import Resident, StoredChunks
from mercer.samples.arrays import is_sparse
from mercer.samples.engine import EngineSamples, register


class HereChunks(StoredChunks):
    """Calls verbs in this thread as a worker with one core would, on copies of everything."""

    def threads(self, n_threads):
        return 1

    def call(self, verb, which, each, common):
        return [copied(work, self._sources[k], verb, own, common) for k, own in zip(which, each, strict=True)]


def copied(call, *given):
    """call(*given) with copies of what is given, and a copy of what it returns."""
    return pickle.loads(dumps(call(*pickle.loads(dumps(given)))))


def work(source, verb, own, common):
    return verbs.on_one_thread(verb, source.load(), *own, *common)


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
        X = X.host() if isinstance(X, EngineSamples) else X
        if isinstance(X, list):
            raise TypeError("no strings")
        X = X if is_sparse(X) else np.asarray(X)
        sources, begin = [], 0
        while begin < X.shape[0] or not sources:
            for size in self.sizes:
                sources.append(Resident(X[begin : begin + size]))
                begin += size
        return ChunkedSamples(self, HereChunks(sources))


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
