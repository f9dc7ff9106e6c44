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
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from typing import Any

from mercer import _core
from mercer.arrays import is_sparse
from mercer.engines.chunked import verbs
from mercer.engines.chunked.chunks import Account, Chunks, tree
from mercer.runtime.optional import require

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


def work(X: Any, verb: Callable[..., Any], own: bytes, common: bytes) -> bytes:
    """A task: a verb on its chunk."""
    parts = (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)
    X = X if all(part.flags.aligned for part in parts) else X.copy()
    return sealed(verbs.on_one_thread(verb, X, *pickle.loads(own), *pickle.loads(common)))


def same(value: bytes) -> bytes:
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


async def _filled(cluster: Any) -> None:
    """A cluster that has started all workers that it should have, or has failed to."""
    await cluster


class DaskChunks(Chunks):
    """Rows that are results of tasks."""

    def __init__(
        self, client: Any, make: Callable[[], list[Any]], account: Account | None = None, futures: Any = None
    ) -> None:
        self.client, self._make, self._watch = client, make, _Watch(client)
        self.account = Account() if account is None else account
        # The scheduler never forgets a group of tasks that has ended, so that each verb's goes on until the fit ends.
        self._last: dict[str, Any] = {}
        self.futures: list[Any] = make() if futures is None else futures
        facts = self._results(lambda k: self._submit(verbs.facts, k, (), self._shared(())), range(len(self.futures)))
        super().__init__(facts)

    def _submit(self, verb: Callable[..., Any], k: int, own: Any, common: _Task) -> Any:
        own = own.now() if isinstance(own, _Task) else sealed(own)
        future = task(self.client, verb.__name__, work, self.futures[k], verb, own, common.now())
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
        futures = [*self.futures, *others.futures]
        return DaskChunks(self.client, lambda: [*one(), *other()], self.account, futures)

    # --- results, whatever happens to workers ------------------------------------------------------------------------

    def _results(self, ask: Callable[[int], Any], which: Sequence[int]) -> list[Any]:
        """The results of these tasks, asked again where workers have died."""
        found: dict[int, Any] = {}
        losses = 0
        while len(found) < len(which):
            expect_open(self.client)
            futures = {k: ask(k) for k in which if k not in found}
            try:
                self._wait(list(futures.values()))
                done = {k: future for k, future in futures.items() if future.status == "finished"}
                got = map(pickle.loads, self.client.gather(list(done.values())))
                found |= dict(zip(done, got, strict=True))
                failed = next((future for k, future in futures.items() if k not in found), None)
                if failed is not None:
                    failed.result()
            except (distributed.KilledWorker, CancelledError) as error:
                expect_open(self.client)
                losses += 1
                if losses > _DEATHS:
                    raise RuntimeError(
                        f"workers were lost {losses} times during one step ({error}); if they were killed for want of "
                        "memory, give smaller chunks or larger workers, and see distributed.scheduler.allowed-failures"
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

    def _renew(self) -> None:
        """Make chunks again whose tasks have failed, which the scheduler does not do by itself."""
        bad = [k for k, future in enumerate(self.futures) if future.status in _BAD]
        if bad:
            time.sleep(_WAKE_SECONDS)
            fresh = self._make()
            for k in bad:
                self.futures[k] = fresh[k]

    def _cancel(self, futures: list[Any]) -> None:
        if self.client.status == "running":
            self.client.cancel(futures)
