"""A pool of processes that survives the death of any of them: what was lost is asked again.

Everything that is sent more than once, and every chunk, is a file that processes map into memory.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.externals.loky import process_executor

from mercer import _core
from mercer.arrays import is_sparse
from mercer.engines.chunked import verbs
from mercer.engines.chunked.chunks import Account, Chunks

# Times that a pool may lose a process during one call before the fit gives up.
_DEATHS = 8
# Seconds after which idle processes end, and after which a wait looks around.
_IDLE_SECONDS, _WAKE_SECONDS = 120, 0.05
_EXECUTOR = process_executor.ProcessPoolExecutor


@dataclass(frozen=True)
class Stored:
    """Rows of a file: `load` maps them into memory, those of a CSR matrix from three files."""

    path: str
    begin: int
    end: int
    sparse: bool = False
    width: int = 0

    def load(self) -> Any:
        if not self.sparse:
            return np.load(self.path, mmap_mode="r")[self.begin : self.end]
        starts = np.load(self.path + ".starts.npy", mmap_mode="r")[self.begin : self.end + 1]
        some = slice(int(starts[0]), int(starts[-1]))
        data, indices = (np.load(self.path + f".{name}.npy", mmap_mode="r")[some] for name in ("data", "indices"))
        return sp.csr_array((data, indices, starts - starts[0]), shape=(self.end - self.begin, self.width))


@dataclass(frozen=True)
class Pickled:
    """Something in a file, which a process reads when it needs it."""

    path: str

    def load(self) -> Any:
        with open(self.path, "rb") as file:
            return pickle.load(file)


def work(source: Any, verb: Callable[..., Any], own: tuple[Any, ...], common: Any) -> Any:
    """What a process of the pool does: a verb on its chunk."""
    own = own.load() if isinstance(own, Pickled) else own
    common = common.load() if isinstance(common, Pickled) else common
    return verbs.on_one_thread(verb, source.load(), *own, *common)


class Scratch:
    """A folder for files, removed with this object and with this process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="mercer-"))
        self._count = 0
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def name(self) -> str:
        self._count += 1
        return str(self.path / str(self._count))

    def pickled(self, value: Any) -> Pickled:
        path = self.name()
        with open(path, "wb") as file:
            pickle.dump(value, file, protocol=5)
        return Pickled(path)

    def stored(self, X: Any) -> Stored:
        """Rows as a file of their own."""
        path = self.name()
        if not is_sparse(X):
            np.save(path + ".npy", np.ascontiguousarray(X))
            return Stored(path + ".npy", 0, len(X))
        X = sp.csr_array(X)
        for name, part in (("data", X.data), ("indices", X.indices), ("starts", X.indptr)):
            np.save(f"{path}.{name}.npy", part)
        return Stored(path, 0, X.shape[0], True, X.shape[1])


class Pool:
    """Processes that are started when they are needed, and again when they have died."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._executor: Any = None
        self._lock = threading.Lock()

    def _started(self) -> Any:
        with self._lock:
            if self._executor is None:
                one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
                one["MERCER_DEVICE"] = "cpu"
                self._executor = _EXECUTOR(max_workers=self.size, timeout=_IDLE_SECONDS, env=one)
            return self._executor

    def _forget(self, executor: Any) -> None:
        with self._lock:
            if self._executor is executor:
                self._executor = None
        executor.shutdown(wait=False, kill_workers=True)

    def close(self) -> None:
        """End the processes; the next call starts others."""
        if self._executor is not None:
            self._forget(self._executor)

    def call(self, asks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """work(*ask) of each, in this order. What a process that died was asked is asked again."""
        found: dict[int, Any] = {}
        deaths = 0
        while len(found) < len(asks):
            executor = self._started()
            futures: dict[Future[Any], int] = {}
            try:
                for k, ask in enumerate(asks):
                    if k not in found:
                        futures[executor.submit(work, *ask)] = k
                self._collect(futures, found)
            except BrokenProcessPool as error:
                deaths += 1
                self._forget(executor)
                if deaths > _DEATHS:
                    raise RuntimeError(
                        f"processes of the pool died {deaths} times during one step; if they were killed for want of "
                        "memory, use smaller chunks, or fewer processes: device='processes:1'"
                    ) from error
                time.sleep(0.1 * deaths)
            except BaseException:
                # What has begun cannot be called back: it ends with its process.
                if not all(future.cancel() or future.done() for future in futures):
                    self._forget(executor)
                raise
        return [found[k] for k in range(len(asks))]

    @staticmethod
    def _collect(futures: dict[Future[Any], int], found: dict[int, Any]) -> None:
        waiting = set(futures)
        while waiting:
            _core.check_stop()
            done, waiting = wait(waiting, timeout=_WAKE_SECONDS, return_when=FIRST_COMPLETED)
            broken = None
            for future in done:
                try:
                    found[futures[future]] = future.result()
                except BrokenProcessPool as error:
                    broken = error
            if broken is not None:
                raise broken


def default_size() -> int:
    """As many processes as there are processors for this one."""
    return int(os.environ.get("MERCER_NUM_THREADS") or joblib.cpu_count())


class StoredChunks(Chunks):
    """Rows in files, each chunk computed on by whichever process is free."""

    def __init__(self, sources: Sequence[Any], scratch: Scratch, pool: Pool, account: Account | None = None) -> None:
        self._sources, self._scratch, self._pool = list(sources), scratch, pool
        self.account = Account() if account is None else account
        super().__init__([verbs.facts(source.load()) for source in self._sources])

    def call(self, verb: Any, which: Sequence[int], each: Sequence[Any], common: Any) -> list[Any]:
        shared = self._scratch.pickled(common)
        try:
            asks = [(self._sources[k], verb, own, shared) for k, own in zip(which, each, strict=True)]
            return self._pool.call(asks)
        finally:
            Path(shared.path).unlink(missing_ok=True)

    def hold(self, each: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [self._scratch.pickled(own) for own in each]

    def joined(self, others: Chunks) -> StoredChunks:
        assert isinstance(others, StoredChunks)
        both = StoredChunks([*self._sources, *others._sources], self._scratch, self._pool, self.account)
        both._kept_alive = others._scratch
        return both

    _kept_alive: Scratch | None = None
