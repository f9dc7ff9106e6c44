"""Chunks on a Dask cluster: tasks that depend on a chunk run where it is, and what is lost is computed again.

A chunk is a task of the user's graph, never data that were scattered, and a worker has no state beside it. So the
scheduler replaces a worker that died by computing its chunks again, and only tasks that died too often are asked again
here.
"""

from __future__ import annotations

import asyncio
import pickle
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, wait
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

import mercer
from mercer import _core
from mercer.places.chunked import verbs
from mercer.places.chunked.chunks import Account, Chunks, tree
from mercer.places.chunked.conversion import as_float64, as_rows
from mercer.runtime.optional import require
from mercer.samples.arrays import is_sparse
from mercer.samples.merging import hash_samples

distributed = require("distributed", "computing on a Dask cluster")

# Times that tasks may be lost during one step before the fit gives up.
_DEATHS = 12
# Seconds without any worker until a fit gives up, where none is coming and where some are; between looks at the
# workers, and at Ctrl-C and max_time; and for a worker's nanny to answer.
_GONE_SECONDS, _SLOW_SECONDS, _LOOK_SECONDS, _WAKE_SECONDS, _ANSWER_SECONDS = 30.0, 300.0, 2.0, 0.1, 5.0
# What all tasks of a step are sent is a task of its own from this size on: workers hand it on to each other, and it is
# in no message twice. (Dask keeps the last thousand messages.)
_SHARED_BYTES = 1 << 13
_BAD = ("error", "cancelled", "lost")
_LOST = "the Dask client is closed or has lost its scheduler; make a new Client, and persisted arrays once more"


def open_client() -> Any:
    """The client that this process has."""
    try:
        client = distributed.default_client()
    except ValueError as error:
        raise RuntimeError(
            "there is no Dask client in this process; make one first: distributed.Client('tcp://ADDRESS:8786'), "
            "or distributed.Client() for a cluster of this machine's processes"
        ) from error
    expect_open(client)
    return client


def connected(address: str) -> Any:
    """A client of the scheduler at this address."""
    try:
        return distributed.Client(address)
    except (OSError, ValueError) as error:
        raise ValueError(f"there is no Dask scheduler at {address!r} ({error}); see `dask scheduler`") from error


def expect_open(client: Any) -> None:
    if client.status != "running":
        raise RuntimeError(_LOST)


def task(client: Any, name: str, *call: Any) -> Any:
    """Its own result, whatever was asked before."""
    return client.submit(*call, key=f"mercer-{name}-{uuid.uuid4().hex}", pure=False)


# Dask hands arrays on as they lie in its messages, where the core cannot read them if they are not aligned. So
# everything but chunks travels as bytes.


def sealed(value: Any) -> bytes:
    return bytes(distributed.protocol.pickle.dumps(value))


class _Fact(NamedTuple):
    """Result of the first look at a chunk: shape, type, whether zeros are not stored, and how many numbers are."""

    facts: tuple[tuple[int, ...], str, bool, int]
    ready: bool  # whether the chunk is rows of float32 or float64 as it comes
    mark: bytes  # equal for equal rows


def look(block: Any, version: str) -> bytes:
    """A task: the fact of a chunk, or the error that refuses it. An error that is raised would be logged for each."""
    _expect_version(version)
    try:
        rows = as_rows(block)
    except (ValueError, TypeError) as error:
        return sealed(error)
    return sealed(_Fact(verbs.facts(rows), rows is block, _mark(_aligned(rows))))


def work(X: Any, verb: Callable[..., Any], own: bytes, common: bytes, mark: bytes, version: str) -> bytes:
    """A task: a verb on its chunk, if that still holds the rows that it held at first."""
    _expect_version(version)
    rows = _aligned(X)
    _expect_unchanged(X, rows, mark)
    return sealed(verbs.on_one_thread(verb, rows, *pickle.loads(own), *pickle.loads(common)))


def _aligned(X: Any) -> Any:
    parts = (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)
    return X if all(part.flags.aligned for part in parts) else X.copy()


def _mark(rows: Any) -> bytes:
    """Sixteen bytes that differ where rows do."""
    return blake2b(verbs.on_one_thread(hash_samples, rows, 1).tobytes(), digest_size=16).digest()


# Chunks that this worker has compared, by their addresses, as long as they live: each is read once for that.
_compared: dict[int, tuple[Any, bytes]] = {}


def _expect_unchanged(X: Any, rows: Any, mark: bytes) -> None:
    """Raise if a chunk that was lost has been made again with other rows: targets and proofs belong to the first."""
    known, at = _compared.get(id(X)), id(X)
    if known is not None and known[0]() is X and known[1] == mark:
        return
    if _mark(rows) != mark:
        raise RuntimeError(
            "a chunk of X was lost and made again with other rows than it had when the fit began; whatever loads a "
            "chunk must return the same rows each time (a query needs ORDER BY, a file must not be replaced, random "
            "numbers need a seed). Write the rows to files first, and read these"
        )
    _compared[at] = (weakref.ref(X, lambda _: _compared.pop(at, None)), mark)


def _expect_version(version: str) -> None:
    if version != mercer.__version__:
        raise RuntimeError(
            f"this client has mercer {version}, but a worker has {mercer.__version__}; install the same on all, since "
            "what a worker computes is a part of the client's proof"
        )


def same(value: Any) -> Any:
    """A task whose result is known: workers hand it on to each other."""
    return value


def combined(add: Callable[[Any, Any], Any], a: bytes, b: bytes) -> bytes:
    """A task: the sum of two others."""
    return sealed(add(pickle.loads(a), pickle.loads(b)))


class _Task:
    """Bytes that tasks are sent: if many, as the result of a task, which is made again where it was lost."""

    def __init__(self, value: bytes, make: Callable[[bytes], Any]) -> None:
        self._value, self._make = value, make
        self._future: Any = None

    def now(self) -> Any:
        if len(self._value) < _SHARED_BYTES:
            return self._value
        if self._future is None or self._future.status in _BAD:
            self._future = self._make(self._value)
        return self._future


class _Watch:
    """Whether somebody works on the tasks, or will: a worker that died takes long to come back on a busy machine."""

    def __init__(self, client: Any) -> None:
        self._client, self._nannies = client, list[str]()
        self.begin()

    def begin(self) -> None:
        self._looked = self._worked = self._hoped = time.monotonic()
        self._filled: Any = None

    def look(self) -> None:
        """An error where nobody does, and nobody will."""
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        expect_open(self._client)
        workers = self._client.scheduler_info()["workers"]
        self._looked = time.monotonic()
        if workers:
            self._nannies = [one["nanny"] for one in workers.values() if one.get("nanny")]
            self._worked, self._filled = self._looked, None
        if workers or self._coming():
            self._hoped = self._looked
        gone, slow = self._looked - self._hoped > _GONE_SECONDS, self._looked - self._worked > _SLOW_SECONDS
        if gone or slow:
            raise RuntimeError(
                f"the Dask cluster has had no worker for {self._looked - self._worked:.0f} s, and "
                f"{'none is coming' if gone else 'those that it starts do not connect'}; start some, and fit again"
            )

    def _coming(self) -> bool:
        """A cluster of this process gives workers up that are not back after 15 s: it is asked for them once more."""
        cluster = self._client.cluster
        if not hasattr(cluster, "worker_spec"):  # elsewhere a nanny that answers starts its worker again
            return bool(self._client.sync(self._answers))
        alive = [one for one in cluster.workers.values() if one.status.name not in ("closing", "closed", "failed")]
        if not alive and self._filled is None:
            self._filled = asyncio.run_coroutine_threadsafe(_filled(cluster), cluster.loop.asyncio_loop)
        return bool(alive) or not self._filled.done()

    async def _answers(self) -> bool:
        asked = [asyncio.wait_for(self._client.rpc(one).identity(), _ANSWER_SECONDS) for one in self._nannies[:8]]
        return any(isinstance(found, dict) for found in await asyncio.gather(*asked, return_exceptions=True))


async def _some_end(futures: list[Any]) -> None:
    """One of these has ended, or a moment has passed: a TimeoutError outside would hold on to all that waits for it."""
    with suppress(TimeoutError):
        await distributed.wait(futures, timeout=_WAKE_SECONDS, return_when="FIRST_COMPLETED")


async def _gather(client: Any, futures: list[Any]) -> list[Any]:
    found: list[Any] = await client.gather(futures, asynchronous=True)
    return found


async def _filled(cluster: Any) -> None:
    """A cluster that has started all workers that it should have, or has failed to."""
    await cluster


class DaskChunks(Chunks):
    """Rows that are results of tasks."""

    def __init__(self, client: Any, make: Callable[[], list[Any]], joins: tuple[DaskChunks, DaskChunks] | None = None):
        """Take the blocks that `make` submits as chunks, or the chunks of two others, one after another.

        A block that is rows already is used as it is: a second key would be held, spilled and read beside the first.
        """
        self.client, self._make, self._watch = client, make, _Watch(client)
        self.account = Account() if joins is None else joins[0].account
        # The scheduler never forgets a group of tasks that has ended, so that each verb's goes on until the fit ends.
        self._last: dict[str, Any] = {}
        self.futures: list[Any] = []
        self._known: list[_Fact] = []
        self._convert: list[Callable[[Any], Any] | None] = []
        if joins is not None:
            one, other = joins
            self.futures = [*one.futures, *other.futures]
            self._known, self._convert = [*one._known, *other._known], [*one._convert, *other._convert]
        else:
            self.futures = make()
            self._known = self._looked_at()
            mixed = len({fact.facts[1] for fact in self._known}) > 1  # float32 beside float64: all are float64 then
            for k, fact in enumerate(self._known):
                shape, dtype, sparse, stored = fact.facts
                if mixed and np.dtype(dtype) == np.float32:
                    self._convert.append(as_float64)
                    self._known[k] = fact._replace(facts=(shape, np.dtype(np.float64).str, sparse, stored))
                else:
                    self._convert.append(None if fact.ready else as_rows)
                self.futures[k] = self._converted(k, self.futures[k])
        super().__init__([fact.facts for fact in self._known])

    def _looked_at(self) -> list[_Fact]:
        def ask(k: int) -> Any:
            return task(self.client, "look", look, self.futures[k], mercer.__version__)

        found: list[Any] = self._results(ask, range(len(self.futures)))
        refused = next((one for one in found if isinstance(one, Exception)), None)
        if refused is not None:
            raise refused
        return found

    def _converted(self, k: int, block: Any) -> Any:
        convert = self._convert[k]
        return block if convert is None else task(self.client, "rows", convert, block)

    def _submit(self, verb: Callable[..., Any], k: int, own: Any, common: _Task) -> Any:
        own, known = own.now() if isinstance(own, _Task) else sealed(own), (self._known[k].mark, mercer.__version__)
        future = task(self.client, verb.__name__, work, self.futures[k], verb, own, common.now(), *known)
        self._last[verb.__name__] = future
        return future

    def _shared(self, value: Any) -> _Task:
        return _Task(sealed(value), lambda made: task(self.client, "rows", same, made))

    def call(self, verb: Any, which: Sequence[int], each: Sequence[Any], common: Any) -> list[Any]:
        shared = self._shared(common)
        return self._results(lambda i: self._submit(verb, which[i], each[i], shared), range(len(which)))

    def reduce(self, verb: Any, which: Sequence[int], each: Sequence[Any], common: Any, add: Any) -> Any:
        shared = self._shared(common)

        def total(_: int) -> Any:
            parts = [self._submit(verb, k, own, shared) for k, own in zip(which, each, strict=True)]
            return tree(parts, partial(task, self.client, verb.__name__, combined, add))

        return self._results(total, [0])[0]

    def hold(self, each: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [self._shared(own) for own in each]

    def joined(self, others: Chunks) -> DaskChunks:
        assert isinstance(others, DaskChunks)
        one, other = self._make, others._make
        return DaskChunks(self.client, lambda: [*one(), *other()], (self, others))

    # --- results, whatever happens to workers ------------------------------------------------------------------------

    def _results(self, ask: Callable[[int], Any], which: Sequence[int]) -> list[Any]:
        """The results of these tasks, asked again where workers have died."""
        found: dict[int, Any] = {}
        losses, without_memory = 0, 0
        while len(found) < len(which):
            expect_open(self.client)
            _core.check_stop()
            futures = {k: ask(k) for k in which if k not in found}
            try:
                self._wait(list(futures.values()))
                done = {k: future for k, future in futures.items() if future.status == "finished"}
                got = map(pickle.loads, self._gathered(list(done.values())))
                found |= dict(zip(done, got, strict=True))
                failed = next((future for k, future in futures.items() if k not in found), None)
                if failed is not None:
                    failed.result()
            except (distributed.KilledWorker, CancelledError) as error:
                expect_open(self.client)
                losses, before, without_memory = losses + 1, without_memory, self._ends_by_memory()
                if losses > 1 and without_memory > before:
                    raise RuntimeError(
                        f"workers were ended for want of memory again and again during one step ({error}); give "
                        "smaller chunks, X.rechunk, or workers with more memory"
                    ) from error
                if losses > _DEATHS:
                    raise RuntimeError(
                        f"workers were lost {losses} times during one step ({error}); see their logs, and "
                        "distributed.scheduler.allowed-failures"
                    ) from error
                self._renew()
            except distributed.comm.CommClosedError as error:
                raise RuntimeError(_LOST) from error
            except BaseException:
                self._cancel(list(futures.values()))
                raise
        return [found[k] for k in which]

    def _wait(self, futures: list[Any]) -> None:
        self._watch.begin()
        while waiting := [future for future in futures if not future.done()]:
            if any(future.done() and future.status != "finished" for future in futures):
                return
            _core.check_stop()
            self.client.sync(_some_end, waiting)
            self._watch.look()

    def _gathered(self, futures: list[Any]) -> list[Any]:
        """Fetch results of tasks that have ended; max_time ends the wait for a worker that has them and is stuck."""
        asked = asyncio.run_coroutine_threadsafe(_gather(self.client, futures), self.client.loop.asyncio_loop)
        try:
            while True:
                wait([asked], _WAKE_SECONDS)
                if asked.done():
                    return asked.result()
                _core.check_stop()
                self._watch.look()
        finally:
            asked.cancel()

    def _ends_by_memory(self) -> int:
        """Workers that their nannies have ended so far because they took more memory than they may."""
        return len(self.client.get_events("worker-restart-memory"))

    def _renew(self) -> None:
        """Make chunks again whose tasks have failed, which the scheduler does not do by itself."""
        bad = [k for k, future in enumerate(self.futures) if future.status in _BAD]
        if bad:
            time.sleep(_WAKE_SECONDS)
            fresh = self._make()
            for k in bad:
                self.futures[k] = self._converted(k, fresh[k])

    def _cancel(self, futures: list[Any]) -> None:
        if self.client.status == "running":
            self.client.cancel(futures)
