"""Chunks on a Dask cluster: tasks that depend on a chunk run where it is stored, and lost results are computed again.

A chunk is a task of the user's graph, never scattered data, and a worker has no other state. If a worker dies, the
scheduler computes its chunks again on others; only tasks that died too often are submitted again by this module.
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
from mercer.places.chunked.chunks import CallStatistics, Chunks, tree_sum
from mercer.places.chunked.conversion import as_float64, as_rows
from mercer.places.chunked.worker_device import host_rows, on_worker_device
from mercer.runtime.config import get_config
from mercer.runtime.optional import require
from mercer.samples.arrays import is_sparse
from mercer.samples.engine import EngineSamples
from mercer.samples.merging import hash_samples

distributed = require("distributed", "computing on a Dask cluster")

# The fit gives up if tasks are lost more often than this during one step.
_MOST_DEATHS = 12
# A fit gives up after this many seconds without a worker, if no worker is expected or if some are.
_GONE_SECONDS, _SLOW_SECONDS = 30.0, 300.0
# Seconds between checks of the workers, and between checks of Ctrl-C and max_time.
_LOOK_SECONDS, _WAKE_SECONDS = 2.0, 0.1
# Seconds that a worker's nanny has to answer.
_ANSWER_SECONDS = 5.0
# Size in bytes from which on the common arguments of a step become a task: workers pass its result on to each other,
# and no message contains it twice. (Dask keeps the last thousand messages.)
_SHARED_BYTES = 1 << 13
_FAILED_STATES = ("error", "cancelled", "lost")
_LOST_MESSAGE = "the Dask client is closed or has lost its scheduler; make a new Client, and persisted arrays once more"


def open_client() -> Any:
    """Return the Dask client of `config_context`, or else the current one; raise RuntimeError without one."""
    client = get_config()["client"]
    try:
        client = distributed.default_client() if client is None else client
    except ValueError as error:
        raise RuntimeError(
            "there is no Dask client in this process; make one first: distributed.Client('tcp://ADDRESS:8786'), "
            "or distributed.Client() for a cluster of local processes"
        ) from error
    expect_open(client)
    return client


def connected(address: str) -> Any:
    """Return a client of the scheduler at this address."""
    try:
        return distributed.Client(address)
    except (OSError, ValueError) as error:
        raise ValueError(f"there is no Dask scheduler at {address!r} ({error}); see `dask scheduler`") from error


def expect_open(client: Any) -> None:
    """Raise RuntimeError if the client is closed or has lost its scheduler."""
    if client.status != "running":
        raise RuntimeError(_LOST_MESSAGE)


def task(client: Any, name: str, *call: Any) -> Any:
    """Submit a call as a task under a unique key, so that no earlier result is reused."""
    return client.submit(*call, key=f"mercer-{name}-{uuid.uuid4().hex}", pure=False)


# Dask passes arrays on as they are in its messages, and the core cannot read them if they are not aligned. Therefore
# everything except chunks is sent as bytes.


def pickle_value(value: Any) -> bytes:
    """Return the value as bytes, pickled as Dask does it."""
    return bytes(distributed.protocol.pickle.dumps(value))


class _InspectedChunk(NamedTuple):
    """Result of the first inspection of a chunk."""

    format: tuple[tuple[int, ...], str, bool, int]  # shape, dtype, whether it is sparse, number of stored entries
    has_row_form: bool  # True if the chunk already has the form of float32 or float64 rows
    digest: bytes  # equal for equal rows


def inspect_chunk(block: Any, version: str) -> bytes:
    """Return, in a task, the format of a chunk or the error that refuses it: Dask would log each raised error."""
    _expect_version(version)
    try:
        rows = as_rows(block)
    except (ValueError, TypeError) as error:
        return pickle_value(error)
    on_host = _align(host_rows(rows))
    return pickle_value(_InspectedChunk(verbs.chunk_format(on_host), rows is block, _digest(on_host)))


def run_verb(X: Any, verb: Callable[..., Any], arguments: bytes, common: bytes, digest: bytes, version: str) -> bytes:
    """Run a verb, a function of verbs.py, on a chunk in a task; raise if the rows of the chunk have changed."""
    _expect_version(version)
    _expect_unchanged(X, digest)
    rows = on_worker_device(X) if verb in verbs.ON_DEVICE else host_rows(X)
    rows = rows if isinstance(rows, EngineSamples) else _align(rows)
    return pickle_value(verbs.on_one_thread(verb, rows, *pickle.loads(arguments), *pickle.loads(common)))


def _align(X: Any) -> Any:
    """Return the rows in aligned memory, as a copy if they are not."""
    parts = (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)
    return X if all(part.flags.aligned for part in parts) else X.copy()


def _digest(rows: Any) -> bytes:
    """Return a 16-byte hash of the rows."""
    return blake2b(verbs.on_one_thread(hash_samples, rows, 1).tobytes(), digest_size=16).digest()


# Chunks that this worker has checked, by address, while they are alive: a chunk is read only once for its digest.
_checked_digests: dict[int, tuple[Any, bytes]] = {}


def _expect_unchanged(X: Any, digest: bytes) -> None:
    """Raise if a lost chunk was computed again with other rows: targets and proofs belong to the first rows."""
    checked, address = _checked_digests.get(id(X)), id(X)
    if checked is not None and checked[0]() is X and checked[1] == digest:
        return
    if _digest(_align(host_rows(X))) != digest:
        raise RuntimeError(
            "a chunk of X was lost and computed again with other rows than it had when the fit began; the code that "
            "loads a chunk must return the same rows each time (a query needs ORDER BY, a file must not be replaced, "
            "random numbers need a seed). Write the rows to files first, and read these"
        )
    _checked_digests[address] = (weakref.ref(X, lambda _: _checked_digests.pop(address, None)), digest)


def _expect_version(version: str) -> None:
    """Raise RuntimeError if a worker has another version of mercer than the client."""
    if version != mercer.__version__:
        raise RuntimeError(
            f"this client has mercer {version}, but a worker has {mercer.__version__}; install the same version on "
            "all, since a worker's results are part of the client's proof"
        )


def identity(value: Any) -> Any:
    """Return the value, in a task whose result workers pass on to each other."""
    return value


def add_results(add: Callable[[Any, Any], Any], a: bytes, b: bytes) -> bytes:
    """Return the sum of the results of two tasks, in a task."""
    return pickle_value(add(pickle.loads(a), pickle.loads(b)))


class _SharedBytes:
    """Bytes for tasks; if large, they are sent as the result of a task, which is submitted again if it is lost."""

    def __init__(self, value: bytes, make: Callable[[bytes], Any]) -> None:
        self._value, self._make_future = value, make
        self._future: Any = None

    def current(self) -> Any:
        """Return the bytes, or the future of the task that has them."""
        if len(self._value) < _SHARED_BYTES:
            return self._value
        if self._future is None or self._future.status in _FAILED_STATES:
            self._future = self._make_future(self._value)
        return self._future


class _WorkerMonitor:
    """Monitor of the cluster's workers, which may take long to restart on a busy host."""

    def __init__(self, client: Any) -> None:
        self._client, self._nannies = client, list[str]()
        self.begin()

    def begin(self) -> None:
        """Begin a new wait: measure the times without workers from now on."""
        self._last_look = self._last_worker = self._last_expected = time.monotonic()
        self._restart: Any = None

    def look(self) -> None:
        """Raise RuntimeError if no worker is left and none is expected."""
        if time.monotonic() - self._last_look < _LOOK_SECONDS:
            return
        expect_open(self._client)
        workers = self._client.scheduler_info()["workers"]
        self._last_look = time.monotonic()
        if workers:
            self._nannies = [worker["nanny"] for worker in workers.values() if worker.get("nanny")]
            self._last_worker, self._restart = self._last_look, None
        if workers or self._workers_expected():
            self._last_expected = self._last_look
        is_gone = self._last_look - self._last_expected > _GONE_SECONDS
        is_slow = self._last_look - self._last_worker > _SLOW_SECONDS
        if is_gone or is_slow:
            raise RuntimeError(
                f"the Dask cluster has had no worker for {self._last_look - self._last_worker:.0f} s, and "
                f"{'none is expected' if is_gone else 'workers that it starts do not connect'}; start workers, and fit "
                "again"
            )

    def _workers_expected(self) -> bool:
        """Return whether workers are expected; a local cluster that gave up after 15 s starts them again."""
        cluster = self._client.cluster
        if not hasattr(cluster, "worker_spec"):  # a remote cluster, where a nanny that answers restarts its worker
            return bool(self._client.sync(self._nanny_answers))
        alive = [
            worker for worker in cluster.workers.values() if worker.status.name not in ("closing", "closed", "failed")
        ]
        if not alive and self._restart is None:
            self._restart = asyncio.run_coroutine_threadsafe(_wait_until_filled(cluster), cluster.loop.asyncio_loop)
        return bool(alive) or not self._restart.done()

    async def _nanny_answers(self) -> bool:
        """Return whether one of the nannies answers."""
        calls = [asyncio.wait_for(self._client.rpc(nanny).identity(), _ANSWER_SECONDS) for nanny in self._nannies[:8]]
        return any(isinstance(answer, dict) for answer in await asyncio.gather(*calls, return_exceptions=True))


async def _wait_for_any(client: Any, futures: list[Any]) -> None:
    """Wait until one of the client's futures has ended, for _WAKE_SECONDS at most.

    A TimeoutError that left this coroutine would keep references to everything that waits for it.
    """
    with suppress(TimeoutError), client.as_current():
        await distributed.wait(futures, timeout=_WAKE_SECONDS, return_when="FIRST_COMPLETED")


async def _gather(client: Any, futures: list[Any]) -> list[Any]:
    """Fetch the results of these futures."""
    results: list[Any] = await client.gather(futures, asynchronous=True)
    return results


async def _wait_until_filled(cluster: Any) -> None:
    """Wait until a cluster has started all its workers, or has failed to."""
    await cluster


class DaskChunks(Chunks):
    """Chunks that are results of Dask tasks."""

    def __init__(self, client: Any, make: Callable[[], list[Any]], joins: tuple[DaskChunks, DaskChunks] | None = None):
        """Take the blocks that `make` submits as chunks; or, with `joins`, the chunks of the first and of the second.

        A block that already is a matrix of float32 or float64 rows becomes a chunk without a conversion: the cluster
        would store the converted copy beside it.
        """
        self.client, self._make_futures, self._monitor = client, make, _WorkerMonitor(client)
        self.statistics = CallStatistics() if joins is None else joins[0].statistics
        # The last task of each verb (a function that runs on chunks) is kept until the fit ends: the scheduler never
        # forgets an ended task group.
        self._last_futures: dict[str, Any] = {}
        self.futures: list[Any] = []
        self._inspected_chunks: list[_InspectedChunk] = []
        self._convert: list[Callable[[Any], Any] | None] = []
        if joins is not None:
            first, second = joins
            self.futures = [*first.futures, *second.futures]
            self._inspected_chunks, self._convert = (
                [*first._inspected_chunks, *second._inspected_chunks],
                [*first._convert, *second._convert],
            )
        else:
            self.futures = make()
            self._inspected_chunks = self._inspect_chunks()
            # If some chunks are float32 and others float64, all become float64.
            has_mixed_types = len({chunk.format[1] for chunk in self._inspected_chunks}) > 1
            for k, chunk in enumerate(self._inspected_chunks):
                shape, dtype, sparse, stored = chunk.format
                if has_mixed_types and np.dtype(dtype) == np.float32:
                    self._convert.append(as_float64)
                    self._inspected_chunks[k] = chunk._replace(format=(shape, np.dtype(np.float64).str, sparse, stored))
                else:
                    self._convert.append(None if chunk.has_row_form else as_rows)
                self.futures[k] = self._conversion_task(k, self.futures[k])
        super().__init__([chunk.format for chunk in self._inspected_chunks])

    def _inspect_chunks(self) -> list[_InspectedChunk]:
        """Return the results of inspecting all chunks; raise the error of a chunk that is refused."""

        def submit(k: int) -> Any:
            return task(self.client, "look", inspect_chunk, self.futures[k], mercer.__version__)

        inspected: list[Any] = self._results(submit, range(len(self.futures)))
        error = next((chunk for chunk in inspected if isinstance(chunk, Exception)), None)
        if error is not None:
            raise error
        return inspected

    def _conversion_task(self, k: int, block: Any) -> Any:
        """Return the task that converts chunk k to rows, or the block itself if it has this form."""
        convert = self._convert[k]
        return block if convert is None else task(self.client, "rows", convert, block)

    def _submit(self, verb: Callable[..., Any], k: int, arguments: Any, common: _SharedBytes) -> Any:
        """Submit a verb, a function of verbs.py, for chunk k as a task."""
        sent_arguments = arguments.current() if isinstance(arguments, _SharedBytes) else pickle_value(arguments)
        digest_and_version = self._inspected_chunks[k].digest, mercer.__version__
        future = task(
            self.client,
            verb.__name__,
            run_verb,
            self.futures[k],
            verb,
            sent_arguments,
            common.current(),
            *digest_and_version,
        )
        self._last_futures[verb.__name__] = future
        return future

    def _shared(self, value: Any) -> _SharedBytes:
        return _SharedBytes(pickle_value(value), lambda content: task(self.client, "rows", identity, content))

    def call(self, verb: Any, chunk_numbers: Sequence[int], chunk_arguments: Sequence[Any], common: Any) -> list[Any]:
        """Return the results of a verb on these chunks, each with its own arguments and the common ones."""
        shared_bytes = self._shared(common)
        return self._results(
            lambda i: self._submit(verb, chunk_numbers[i], chunk_arguments[i], shared_bytes), range(len(chunk_numbers))
        )

    def reduce(
        self, verb: Any, chunk_numbers: Sequence[int], chunk_arguments: Sequence[Any], common: Any, add: Any
    ) -> Any:
        """Return the sum, by `add`, of the results of a verb on these chunks, added up on the workers."""
        shared_bytes = self._shared(common)

        def total(_: int) -> Any:
            parts = [
                self._submit(verb, k, arguments, shared_bytes)
                for k, arguments in zip(chunk_numbers, chunk_arguments, strict=True)
            ]
            return tree_sum(parts, partial(task, self.client, verb.__name__, add_results, add))

        return self._results(total, [0])[0]

    def hold(self, chunk_arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [self._shared(arguments) for arguments in chunk_arguments]

    def joined(self, others: Chunks) -> DaskChunks:
        """Return these chunks followed by the others."""
        assert isinstance(others, DaskChunks)
        make, make_others = self._make_futures, others._make_futures
        return DaskChunks(self.client, lambda: [*make(), *make_others()], (self, others))

    # --- results despite lost workers --------------------------------------------------------------------------------

    def _results(self, submit: Callable[[int], Any], chunk_numbers: Sequence[int]) -> list[Any]:
        """Return the results of tasks, which are submitted again if workers have died."""
        results: dict[int, Any] = {}
        n_losses, n_killed = 0, 0
        while len(results) < len(chunk_numbers):
            expect_open(self.client)
            _core.check_stop()
            futures = {k: submit(k) for k in chunk_numbers if k not in results}
            try:
                self._wait(list(futures.values()))
                done_futures = {k: future for k, future in futures.items() if future.status == "finished"}
                values = map(pickle.loads, self._fetch_results(list(done_futures.values())))
                results |= dict(zip(done_futures, values, strict=True))
                failed = next((future for k, future in futures.items() if k not in results), None)
                if failed is not None:
                    failed.result()
            except (distributed.KilledWorker, CancelledError) as error:
                expect_open(self.client)
                n_losses, previous, n_killed = n_losses + 1, n_killed, self._killed_for_memory()
                if n_losses > 1 and n_killed > previous:
                    raise RuntimeError(
                        f"workers were ended for lack of memory repeatedly during one step ({error}); use smaller "
                        "chunks (X.rechunk), or workers with more memory"
                    ) from error
                if n_losses > _MOST_DEATHS:
                    raise RuntimeError(
                        f"workers were lost {n_losses} times during one step ({error}); see their logs, and "
                        "distributed.scheduler.allowed-failures"
                    ) from error
                self._renew()
            except distributed.comm.CommClosedError as error:
                raise RuntimeError(_LOST_MESSAGE) from error
            except BaseException:
                self._cancel(list(futures.values()))
                raise
        return [results[k] for k in chunk_numbers]

    def _wait(self, futures: list[Any]) -> None:
        """Wait until all futures have ended, or one of them has failed."""
        self._monitor.begin()
        while waiting := [future for future in futures if not future.done()]:
            if any(future.done() and future.status != "finished" for future in futures):
                return
            _core.check_stop()
            self.client.sync(_wait_for_any, self.client, waiting)
            self._monitor.look()

    def _fetch_results(self, futures: list[Any]) -> list[Any]:
        """Fetch results of tasks that have ended; max_time ends the wait for a worker that is stuck."""
        pending = asyncio.run_coroutine_threadsafe(_gather(self.client, futures), self.client.loop.asyncio_loop)
        try:
            while True:
                wait([pending], _WAKE_SECONDS)
                if pending.done():
                    return pending.result()
                _core.check_stop()
                self._monitor.look()
        finally:
            pending.cancel()

    def _killed_for_memory(self) -> int:
        """Return the number of workers that their nannies have killed so far for exceeding the memory limit."""
        return len(self.client.get_events("worker-restart-memory"))

    def _renew(self) -> None:
        """Submit the tasks of failed chunks again, which the scheduler does not do by itself."""
        failed = [k for k, future in enumerate(self.futures) if future.status in _FAILED_STATES]
        if failed:
            time.sleep(_WAKE_SECONDS)
            new_futures = self._make_futures()
            for k in failed:
                self.futures[k] = self._conversion_task(k, new_futures[k])

    def _cancel(self, futures: list[Any]) -> None:
        """Cancel tasks if the client is still connected."""
        if self.client.status == "running":
            self.client.cancel(futures)
