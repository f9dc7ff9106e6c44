"""Rows in files that are mapped into memory a chunk at a time, and a temporary folder for copies of rows."""

from __future__ import annotations

import math
import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.samples.arrays import is_sparse, megabytes

try:
    import fcntl
except ImportError:  # Windows: folders of killed processes are not removed there
    fcntl = None  # type: ignore[assignment]  # Windows has no such module


@dataclass(frozen=True)
class MappedArray:
    """Array in a file that starts at a byte offset; `load` maps it into memory."""

    path: str
    dtype: str
    offset: int
    shape: tuple[int, ...]

    def load(self) -> Any:
        if 0 in self.shape:  # an empty array cannot be mapped
            return np.empty(self.shape, self.dtype)
        return np.asarray(np.memmap(self.path, self.dtype, "r", self.offset, self.shape))

    @classmethod
    def of(cls, X: Any) -> MappedArray | None:
        """Describe an array that is part of a memory-mapped file; None for any other array."""
        base = X
        while base is not None and not (isinstance(base, np.memmap) and isinstance(base.base, mmap.mmap)):
            base = getattr(base, "base", None)
        if base is None or base.filename is None or base.mode not in ("r", "r+") or not X.flags.c_contiguous:
            return None
        return cls(str(base.filename), X.dtype.str, base.offset + X.ctypes.data - base.ctypes.data, X.shape)

    def part(self, begin: int, end: int) -> MappedArray:
        """Return rows `begin` to `end` − 1, which stay in the file."""
        row_bytes = np.dtype(self.dtype).itemsize * math.prod(self.shape[1:])
        return replace(self, offset=self.offset + begin * row_bytes, shape=(end - begin, *self.shape[1:]))


@dataclass(frozen=True)
class MappedCSR:
    """Rows of a CSR matrix whose three arrays are in files."""

    data: MappedArray
    indices: MappedArray
    starts: MappedArray
    width: int

    def load(self) -> Any:
        starts = self.starts.load()
        data, indices = (part.part(int(starts[0]), int(starts[-1])).load() for part in (self.data, self.indices))
        return sp.csr_array((data, indices, starts - starts[0]), shape=(len(starts) - 1, self.width))

    def part(self, begin: int, end: int) -> MappedCSR:
        """Return rows `begin` to `end` − 1, which stay in the files."""
        return replace(self, starts=self.starts.part(begin, end + 1))


class Scratch:
    """Temporary folder for files, removed with this object and at the end of this process.

    A process that is killed cannot remove its folder. The folder is locked while its process lives, so that the next
    process that makes such a folder removes those that are not locked.
    """

    def __init__(self) -> None:
        _remove_orphans(Path(tempfile.gettempdir()))
        # Other processes ignore this name until the folder is locked.
        temporary = tempfile.mkdtemp(prefix=".mercer-rows-")
        self._lock = _lock(temporary)
        self.path = Path(temporary).with_name(Path(temporary).name[1:])
        os.rename(temporary, self.path)
        self._count = 0
        self.remove = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())

    def new_path(self) -> str:
        """Return the path of a new file in the folder."""
        self._count += 1
        return str(self.path / str(self._count))

    def store(self, X: Any) -> MappedArray | MappedCSR:
        """Write rows to new files, and return where they are."""
        if is_sparse(X):
            X = sp.csr_array(X)
            return MappedCSR(
                self._write_array(X.data), self._write_array(X.indices), self._write_array(X.indptr), X.shape[1]
            )
        return self._write_array(X)

    def _write_array(self, X: Any) -> MappedArray:
        """Write an array to a new file, and return where it is."""
        path = self.new_path()
        with _explain_write_errors(path, X.nbytes):
            np.ascontiguousarray(X).tofile(path)
        return MappedArray(path, X.dtype.str, 0, X.shape)


@contextmanager
def _explain_write_errors(path: str, size: int) -> Iterator[None]:
    """Add the folder, its free space and the size of the file to the error if a file cannot be written."""
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
    """Lock a folder until this process ends, and return the lock; None if the folder cannot be locked."""
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
def _remove_orphans(folder: Path) -> None:
    """Remove folders of killed processes, which are not locked; once, since listing `folder` may be slow."""
    if fcntl is None:
        return
    for orphan in folder.glob("mercer-rows-*"):
        with suppress(OSError):
            if orphan.stat().st_uid == os.getuid() and (descriptor := _lock(str(orphan))) is not None:
                _remove(orphan, descriptor, os.getpid())


def _remove(path: Path, lock: int | None, process: int) -> None:
    """Remove a folder that the given process owns, and unlock it; a forked process leaves it to its parent."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
    if lock is not None:
        os.close(lock)
