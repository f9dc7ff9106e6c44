"""Data larger than memory: rows in files, read a chunk at a time by every machine, whatever they were given as."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Floats, is_sparse
from mercer.data.chunks import is_stream, unpack
from mercer.engines.processes.engine import FileRows
from mercer.engines.processes.pool import MappedCSR, Scratch
from mercer.files.libsvm_text import content_of, read_libsvm
from mercer.runtime.optional import require

# Of text that is read at a time, and of the rows of a chunk.
_TEXT_BYTES: Final = 64 << 20
_CHUNK_BYTES: Final = 32 << 20
_PACKED: Final = (".gz", ".bz2", ".xz")


class StoredRows:
    """Samples in files: `X` and `y` for `fit`, and chunks of both for whoever reads them one after another.

    It is a callable that opens the chunks (X, y) again, as `NystromRLS` takes one, and an iterable of them, as
    `PegasosSVC.fit_stream` takes one. `stored_rows` makes it.
    """

    def __init__(self, X: FileRows, y: NDArray[Any] | None, weight: Floats | None) -> None:
        self.X, self.y, self.sample_weight = X, y, weight

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        if self.y is None:
            raise ValueError("these rows have no targets, and chunks come with theirs; use fit(rows.X, y)")
        ends = np.cumsum([0, *(source.load().shape[0] for source in self.X.sources)])
        for source, (begin, end) in zip(self.X.sources, pairwise(ends.tolist()), strict=True):
            rows = source.load()
            part = rows if is_sparse(rows) else np.array(rows)
            if self.sample_weight is None:
                yield part, self.y[begin:end]
            else:
                yield part, self.y[begin:end], self.sample_weight[begin:end]

    __iter__ = __call__


def stored_rows(source: Any, *, target: str | None = None, n_features: int | None = None) -> StoredRows:
    """Samples in files, for data that do not fit into memory.

    Every machine is trained on ``rows.X`` by processes of this machine that read a chunk at a time; β and a few other
    numbers per sample are kept in memory. Text, Parquet files and iterators are copied once to a folder of temporary
    files, which is removed with the object.

    Parameters
    ----------
    source : path, memory-mapped array, callable or iterable
        A ``.npy`` file or a memory-mapped array, which stay where they are; a LIBSVM text or a Parquet file; a folder
        of any of these; or chunks (X, y) or (X, y, sample_weight), or a callable that returns an iterable of them.
    target : str, optional
        The column of Parquet files that holds y; all others are features.
    n_features : int, optional
        Columns of LIBSVM texts; without it, as many as the largest index asks for.

    Returns
    -------
    StoredRows
        With ``X``, ``y`` (None where files have none) and ``sample_weight``.

    Examples
    --------
    >>> import numpy as np, mercer
    >>> X = np.arange(40.0).reshape(20, 2)
    >>> rows = mercer.stored_rows([(X[:10], X[:10, 0] > 9), (X[10:], X[10:, 0] > 9)])
    >>> rows.X.shape, rows.y.shape
    ((20, 2), (20,))
    """
    scratch, parts = Scratch(), []
    if isinstance(source, np.ndarray):
        parts = [(chunk, None, None) for chunk in _mapped(source, scratch)]
    elif isinstance(source, str | os.PathLike):
        for path in _files(Path(source)):
            parts += _read(path, scratch, target, n_features)
    elif is_stream(source) or isinstance(source, Iterable):
        for number, item in enumerate(source() if callable(source) else source):
            X, y, weight = unpack(item, number)
            X = X if is_sparse(X) else np.asarray(X)
            parts.append((scratch.stored(X if X.dtype.char in "fd" else X.astype(np.float64)), y, weight))
    else:
        raise TypeError(f"source is {type(source).__name__}; give a path, a memory-mapped array or chunks of samples")
    if not parts:
        raise ValueError(f"{source!r} holds no samples")
    widest = n_features or max((part.width for part, *_ in parts if isinstance(part, MappedCSR)), default=0)
    sources = [replace(part, width=widest) if isinstance(part, MappedCSR) else part for part, *_ in parts]
    return StoredRows(FileRows(sources, scratch), *(_joined([part[k] for part in parts]) for k in (1, 2)))


def _joined(parts: list[Any]) -> Any:
    """Targets or weights of all chunks, if all have them."""
    missing = [part is None for part in parts]
    if any(missing) and not all(missing):
        raise ValueError("some chunks have targets or weights, and others have none; give them with all, or with none")
    return None if all(missing) else np.concatenate([np.asarray(part) for part in parts])


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}")
    if not path.is_dir():
        return [path]
    found = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith((".", "_")))
    kinds = {_kind(one) for one in found}
    if len(kinds) != 1:
        raise ValueError(f"the folder {str(path)!r} holds {' and '.join(sorted(kinds)) or 'no files'}; give one kind")
    return found


def _kind(path: Path) -> str:
    return {".npy": "NumPy files", ".parquet": "Parquet files"}.get(path.suffix, "LIBSVM texts")


def _read(path: Path, scratch: Scratch, target: str | None, n_features: int | None) -> list[tuple[Any, Any, Any]]:
    """The chunks of one file."""
    if path.suffix == ".npy":
        return [(chunk, None, None) for chunk in _mapped(np.load(path, mmap_mode="r"), scratch)]
    read: Callable[..., Iterator[tuple[Any, Any]]] = _parquet if path.suffix == ".parquet" else _text
    return [(scratch.stored(X), y, None) for X, y in read(path, target if read is _parquet else n_features)]


def _mapped(X: NDArray[Any], scratch: Scratch) -> list[Any]:
    if X.ndim != 2 or X.dtype.char not in "fd" or not X.dtype.isnative:
        raise ValueError(f"rows in files are matrices of float32 or float64; these are {X.ndim}-dimensional {X.dtype}")
    return FileRows.of(X, 1, scratch).sources


def _text(path: Path, n_features: int | None) -> Iterator[tuple[Any, Any]]:
    if path.suffix in _PACKED:
        yield read_libsvm(BytesIO(content_of(path)), n_features=n_features)
        return
    with open(path, "rb") as file:
        while piece := file.read(_TEXT_BYTES):
            yield read_libsvm(BytesIO(piece + file.readline()), n_features=n_features)


def _parquet(path: Path, target: str | None) -> Iterator[tuple[Any, Any]]:
    polars = require("polars", "reading Parquet files")
    frame = polars.scan_parquet(path)
    names = frame.collect_schema().names()
    if target is not None and target not in names:
        raise ValueError(f"{str(path)!r} has no column {target!r}; there are {', '.join(names)}")
    features = [name for name in names if name != target]
    n, step = frame.select(polars.len()).collect().item(), max(1, _CHUNK_BYTES // (8 * max(1, len(features))))
    for begin in range(0, n, step):
        part = frame.slice(begin, step).collect()
        strange = [name for name in features if not part.schema[name].is_numeric()]
        if strange:
            raise ValueError(f"column {strange[0]!r} of {str(path)!r} holds no numbers; encode it or leave it out")
        X = part.select(features).to_numpy().astype(np.float64, order="C")
        yield X, None if target is None else part[target].to_numpy()
