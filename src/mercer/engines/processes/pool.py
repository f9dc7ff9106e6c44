"""A pool of processes that survives the death of any of them: what was lost is asked again.

Everything that is sent more than once, and every chunk, is a file that processes map into memory.
"""

from __future__ import annotations

import math
import mmap
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.externals.loky.backend.reduction import dumps  # by value, where a process could not import it

from mercer import _core
from mercer.arrays import is_sparse, megabytes
from mercer.engines.chunked import verbs
from mercer.engines.chunked.chunks import Account, Chunks

try:
    import fcntl
except ImportError:  # Windows, where the system removes no folder either
    fcntl = None  # type: ignore[assignment]

# Times that processes may die on one chunk before the fit gives up.
_DEATHS = 8
# Seconds after which a wait looks around for Ctrl-C and max_time.
_WAKE_SECONDS = 0.05


@dataclass(frozen=True)
class Mapped:
    """Numbers of a file that begin at this byte, rows of equal length: `load` maps them into memory."""

    path: str
    dtype: str
    offset: int
    shape: tuple[int, ...]

    def load(self) -> Any:
        if 0 in self.shape:  # which cannot be mapped
            return np.empty(self.shape, self.dtype)
        return np.asarray(np.memmap(self.path, self.dtype, "r", self.offset, self.shape))

    @classmethod
    def of(cls, X: Any) -> Mapped | None:
        """An array that is a part of a memory-mapped file; None for any other."""
        base = X
        while base is not None and not (isinstance(base, np.memmap) and isinstance(base.base, mmap.mmap)):
            base = getattr(base, "base", None)
        if base is None or base.filename is None or base.mode not in ("r", "r+") or not X.flags.c_contiguous:
            return None
        return cls(str(base.filename), X.dtype.str, base.offset + X.ctypes.data - base.ctypes.data, X.shape)

    def part(self, begin: int, end: int) -> Mapped:
        row = np.dtype(self.dtype).itemsize * math.prod(self.shape[1:])
        return replace(self, offset=self.offset + begin * row, shape=(end - begin, *self.shape[1:]))


@dataclass(frozen=True)
class MappedCSR:
    """Rows of a CSR matrix whose three arrays are in files."""

    data: Mapped
    indices: Mapped
    starts: Mapped
    width: int

    def load(self) -> Any:
        starts = self.starts.load()
        data, indices = (part.part(int(starts[0]), int(starts[-1])).load() for part in (self.data, self.indices))
        return sp.csr_array((data, indices, starts - starts[0]), shape=(len(starts) - 1, self.width))

    def part(self, begin: int, end: int) -> MappedCSR:
        return replace(self, starts=self.starts.part(begin, end + 1))


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
    """A folder for files, removed with this object and with this process.

    A process that is killed cannot remove its own. The folder is locked as long as its process lives, so that the next
    one that makes such a folder removes those that nobody holds.
    """

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        made = tempfile.mkdtemp(prefix=".mercer-rows-")  # nobody sweeps it before it is locked and has its name
        self._lock = _lock(made)
        self.path = Path(made).with_name(Path(made).name[1:])
        os.rename(made, self.path)
        self._count = 0
        self.remove = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())

    def name(self) -> str:
        self._count += 1
        return str(self.path / str(self._count))

    def pickled(self, value: Any) -> Pickled:
        path, content = self.name(), dumps(value)
        with _writing(path, len(content)), open(path, "wb") as file:
            file.write(content)
        return Pickled(path)

    def stored(self, X: Any) -> Mapped | MappedCSR:
        """Rows as files of their own."""
        if is_sparse(X):
            X = sp.csr_array(X)
            return MappedCSR(self._mapped(X.data), self._mapped(X.indices), self._mapped(X.indptr), X.shape[1])
        return self._mapped(X)

    def _mapped(self, X: Any) -> Mapped:
        path = self.name()
        with _writing(path, X.nbytes):
            np.ascontiguousarray(X).tofile(path)
        return Mapped(path, X.dtype.str, 0, X.shape)


@contextmanager
def _writing(path: str, size: int) -> Iterator[None]:
    """Say which folder has no space, and for how much, where a file cannot be written."""
    try:
        yield
    except OSError as error:
        folder = os.path.dirname(path)
        free = shutil.disk_usage(folder).free
        raise OSError(
            error.errno,
            f"a copy of rows, {megabytes(size)}, could not be written to {folder!r}, where {megabytes(free)} are free "
            f"({error}); name a folder with more space in the environment variable TMPDIR before Python starts, or "
            "give .npy files or a memory-mapped array, which are not copied",
        ) from error


def _lock(folder: str) -> int | None:
    """A lock on a folder that is held until this process ends; None where the folder cannot be locked."""
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@cache
def _sweep(folder: Path) -> None:
    """Remove folders of processes that were killed, whose locks nobody holds; once, since a folder may be long."""
    if fcntl is None:
        return
    for left in folder.glob("mercer-rows-*"):
        with suppress(OSError):
            if left.stat().st_uid == os.getuid() and (descriptor := _lock(str(left))) is not None:
                _remove(left, descriptor, os.getpid())


def _remove(path: Path, lock: int | None, process: int) -> None:
    """Remove a folder of this process; a forked one leaves it to its parent."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
    if lock is not None:
        os.close(lock)


class Worker:
    """A process that does one thing after another; started when it is needed, and again when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, ask: tuple[Any, ...], stop: threading.Event) -> Any:
        """work(*ask) in the process; where that dies it is asked again, unless it was to stop."""
        sent = dumps(ask)
        for _ in range(_DEATHS):
            if stop.is_set():
                break
            kind, value = self._answer(sent)
            if kind == "done":
                return value
            if kind == "failed":
                raise value
        raise RuntimeError(
            f"processes died {_DEATHS} times on one chunk; if they were killed for want of memory, use smaller chunks, "
            "or fewer processes: device='processes:1'"
        )

    def _answer(self, sent: bytes) -> tuple[str, Any]:
        if self._process is None or self._process.poll() is not None:
            self.kill()
            self._process = _start()
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        try:
            send(pipe_in, sent)
            found: tuple[str, Any] = pickle.loads(receive(pipe_out))
        except (EOFError, OSError):
            self.kill()
            return "died", None
        return found

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]  # both are pipes


def _start() -> subprocess.Popen[bytes]:
    """A process with this one's paths, which need not import its main program."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from mercer.engines.processes.pool import serve; serve()"
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **one, "MERCER_DEVICE": "cpu"}
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )


def serve() -> None:
    """What such a process does until its pipe is closed. Ctrl-C is its parent's to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as out, os.fdopen(os.dup(0), "rb") as asked:
        os.dup2(2, 1)  # what a kernel of the user's prints
        while True:
            try:
                ask = receive(asked)
            except EOFError:
                return
            try:
                answer = dumps(("done", work(*pickle.loads(ask))))
            except Exception as error:  # whatever it is, it belongs to the caller
                try:
                    answer = dumps(("failed", error))
                    pickle.loads(answer)
                except Exception:
                    answer = dumps(("failed", RuntimeError(f"{type(error).__name__}: {error}")))
            send(out, answer)


def send(pipe: Any, message: bytes) -> None:
    pipe.write(len(message).to_bytes(8, "little"))
    pipe.write(message)
    pipe.flush()


def receive(pipe: Any) -> bytes:
    size = pipe.read(8)
    message = pipe.read(int.from_bytes(size, "little")) if len(size) == 8 else b""
    if len(size) < 8 or len(message) < int.from_bytes(size, "little"):
        raise EOFError
    return bytes(message)


class Pool:
    """Some such processes, and a thread for each that waits for it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.workers = [Worker() for _ in range(size)]
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self.workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="mercer-pool")

    def close(self) -> None:
        """End the processes; the next call starts others."""
        for worker in self.workers:
            worker.kill()

    def call(self, asks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """work(*ask) of each, in this order."""
        stop, busy = threading.Event(), set[Worker]()

        def one(ask: tuple[Any, ...]) -> Any:
            worker = self._idle.get()
            busy.add(worker)
            try:
                return worker.ask(ask, stop)
            finally:
                busy.discard(worker)
                self._idle.put(worker)

        futures = [self._threads.submit(one, ask) for ask in asks]
        try:
            waiting = set(futures)
            while waiting and not any(future.done() and future.exception() for future in futures):
                _core.check_stop()
                _, waiting = wait(waiting, timeout=_WAKE_SECONDS, return_when=FIRST_COMPLETED)
        except BaseException:
            stop.set()
            for worker in list(busy):  # what has begun ends with its process
                worker.kill()
            raise
        finally:
            for future in futures:
                future.cancel()
            wait(futures)
        return [future.result() for future in futures if not future.cancelled()]


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
