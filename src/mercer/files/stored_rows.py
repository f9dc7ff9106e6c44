"""Data larger than memory: rows in files, which machines read a chunk at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mercer.files.libsvm_text import read_bytes_unpacked, read_libsvm
from mercer.places.chunked.conversion import as_float64, as_rows
from mercer.places.chunked.stored.engine import FileRows
from mercer.places.chunked.stored.files import MappedArray, MappedCSR, Scratch
from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, is_sparse
from mercer.samples.chunks import is_stream, unpack
from mercer.samples.column_names import Names, column_names, column_positions

# Bytes of text that are read at once, and bytes of the rows in a chunk.
_TEXT_BYTES: Final = 64 << 20
_CHUNK_BYTES: Final = 32 << 20
_COMPRESSED: Final = (".gz", ".bz2", ".xz")


class StoredRows:
    """Samples in files: `X` and `y` for `fit`, and an iterator over chunks of both.

    A call returns a new iterator over the chunks (X, y), as `NystromRLS` needs it. The object can also be iterated over
    itself, as `PegasosSVC.fit_stream` needs it. `stored_rows` creates it.
    """

    def __init__(self, X: FileRows, y: NDArray[Any] | None, weight: Floats | None) -> None:
        self.X, self.y, self.sample_weight = X, y, weight

    @property
    def names(self) -> Names | None:
        """Names of the columns, if the files or the chunks have any."""
        return self.X.names

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        if self.y is None:
            raise ValueError("these rows have no targets, which chunks (X, y) need; use fit(rows.X, y)")
        ends = np.cumsum([0, *(source.load().shape[0] for source in self.X.sources)])
        for source, (begin, end) in zip(self.X.sources, pairwise(ends.tolist()), strict=True):
            rows = source.load()
            part = rows if is_sparse(rows) else np.array(rows)
            if self.sample_weight is None:
                yield part, self.y[begin:end]
            else:
                yield part, self.y[begin:end], self.sample_weight[begin:end]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self()


def stored_rows(source: Any, *, target: str | None = None, n_features: int | None = None) -> StoredRows:
    """Open samples in files, for data that do not fit into memory.

    Every machine can be trained on ``rows.X`` in this process; it reads a chunk at a time and keeps β and a few other
    numbers per sample in memory. Text, Parquet files and iterators are copied once to a folder of temporary files,
    which is removed with the object.

    Parameters
    ----------
    source : path, memory-mapped array, callable or iterable
        A ``.npy`` file or a memory-mapped array, which stay where they are; a LIBSVM text or a Parquet file; a folder
        of any of these; or chunks (X, y) or (X, y, sample_weight), or a callable that returns an iterable of them.
        The files of a folder are read in the order of their names, with numbers in them compared as numbers
        (``part.2`` before ``part.10``); files whose names begin with a dot or an underscore, such as Spark's
        ``_SUCCESS``, are skipped. A folder with folders in it is refused.
    target : str, optional
        Column of Parquet files with y; all others are features.
    n_features : int, optional
        Number of columns of LIBSVM texts; by default the largest index determines it.

    Returns
    -------
    StoredRows
        Object with ``X``, ``y`` (None if the files have none), ``sample_weight`` and ``names``, the column names of
        Parquet files and of chunks that are frames. The first file or chunk defines the names and their order; columns
        of the others are matched by name, and other names are refused. A machine stores them as ``feature_names_in_``.

    Examples
    --------
    >>> import numpy as np, mercer
    >>> X = np.arange(40.0).reshape(20, 2)
    >>> rows = mercer.stored_rows([(X[:10], X[:10, 0] > 9), (X[10:], X[10:, 0] > 9)])
    >>> rows.X.shape, rows.y.shape
    ((20, 2), (20,))
    """
    scratch, parts = Scratch(), list[_Part]()
    if isinstance(source, np.ndarray):
        parts = [_Part(chunk) for chunk in _map_chunks(source, scratch, "the array")]
    elif isinstance(source, str | os.PathLike):
        for path in _files_in(Path(source)):
            parts += _read(path, scratch, target, n_features, parts[0] if parts else None)
    elif is_stream(source) or isinstance(source, Iterable):
        for number, item in enumerate(source() if callable(source) else source):
            parts.append(_store_chunk(item, number, scratch, parts[0] if parts else None))
    else:
        raise TypeError(f"source is {type(source).__name__}; give a path, a memory-mapped array or chunks of samples")
    if not parts:
        raise ValueError(f"{source!r} holds no samples")
    widest = n_features or max((part.rows.width for part in parts if isinstance(part.rows, MappedCSR)), default=0)
    sources = [replace(part.rows, width=widest) if isinstance(part.rows, MappedCSR) else part.rows for part in parts]
    if len({_dtype(rows) for rows in sources}) > 1:  # float32 and float64 mixed: convert all to float64
        sources = [rows if _dtype(rows) == np.float64 else scratch.store(as_float64(rows.load())) for rows in sources]
    rows = FileRows(sources, scratch, parts[0].names)
    return StoredRows(rows, _concatenate([part.y for part in parts]), _concatenate([part.weight for part in parts]))


@dataclass(frozen=True)
class _Part:
    """Chunk in files, with its source, and targets, weights and column names if it has any."""

    rows: MappedArray | MappedCSR
    y: Any = None
    weight: Any = None
    names: Names | None = None
    source: str = ""


def _dtype(rows: MappedArray | MappedCSR) -> np.dtype[Any]:
    """Return the type of the numbers in a chunk."""
    return np.dtype((rows.data if isinstance(rows, MappedCSR) else rows).dtype)


def _store_chunk(item: Any, number: int, scratch: Scratch, first: _Part | None) -> _Part:
    """Store a chunk of an iterator, with its columns in the order of the first chunk."""
    X, y, weight = unpack(item, number)
    source = f"chunk {number}"
    names, rows = column_names(X), as_rows(X, source)
    if first is not None and (names is None) != (first.names is None):
        problem, others = ("has no column names", "have them") if names is None else ("has column names", "have none")
        raise ValueError(f"{source} {problem}, but the chunks before it {others}; give all chunks names, or none")
    if names is not None:
        first_names, first_source = (
            (names, source) if first is None or first.names is None else (first.names, first.source)
        )
        positions = column_positions(names, first_names, source, first_source)
        names, rows = first_names, rows if positions == list(range(len(names))) else rows[:, positions]
    return _Part(scratch.store(rows), y, weight, names, source)


def _concatenate(parts: list[Any]) -> Any:
    """Concatenate the targets or weights of all chunks; None if no chunk has any. Raise if only some chunks do."""
    missing = [part is None for part in parts]
    if any(missing) and not all(missing):
        raise ValueError("some chunks have targets or weights and others do not; give them for all chunks or for none")
    return None if all(missing) else np.concatenate([np.asarray(part) for part in parts])


def _files_in(path: Path) -> list[Path]:
    """Return the file, or the files of a folder in the order of their names."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}")
    if not path.is_dir():
        return [path]
    entries = [entry for entry in path.iterdir() if not entry.name.startswith((".", "_"))]
    folders = sorted(entry.name for entry in entries if entry.is_dir())
    if folders:
        raise ValueError(
            f"the folder {str(path)!r} contains the folder {folders[0]!r}, whose files would be ignored; use a folder "
            "that contains only files. A partition such as year=2024 stores a column in its name: read it with "
            f"polars.scan_parquet({str(path)!r}), and pass its frames as chunks (X, y), or write them to one folder"
        )
    entries.sort(key=_natural_key)
    kinds = {_kind(entry) for entry in entries}
    if len(kinds) != 1:
        raise ValueError(
            f"the folder {str(path)!r} contains {' and '.join(sorted(kinds)) or 'no files'}; it must contain one kind"
        )
    return entries


def _natural_key(path: Path) -> list[tuple[int, str]]:
    """Return a sort key for file names that compares numbers in them by value."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def _kind(path: Path) -> str:
    """Return the kind of a file by its suffix, as messages name it."""
    return {".npy": "NumPy files", ".parquet": "Parquet files"}.get(path.suffix, "LIBSVM texts")


def _read(path: Path, scratch: Scratch, target: str | None, n_features: int | None, first: _Part | None) -> list[_Part]:
    """Read the chunks of one file, with its columns in the order of the first file."""
    if path.suffix == ".npy":
        return [_Part(chunk) for chunk in _map_chunks(np.load(path, mmap_mode="r"), scratch, str(path))]
    if path.suffix == ".parquet":
        return list(_parquet_chunks(path, scratch, target, first))
    return [_Part(scratch.store(X), y) for X, y in _text_chunks(path, n_features)]


def _map_chunks(X: NDArray[Any], scratch: Scratch, source: str) -> list[Any]:
    """Return chunks of a memory map, which are not copied unless their numbers have to be converted."""
    if X.ndim != 2:
        raise ValueError(
            f"rows in files must be matrices of float32, float64 or integers, but {source} is {X.ndim}-dimensional"
        )
    step = max(1, _CHUNK_BYTES // (8 * max(1, X.shape[1])))
    mapped = MappedArray.of(X) if X.dtype.char in "fd" and X.dtype.isnative else None
    if mapped is None:
        return [scratch.store(as_rows(X[k : k + step], source)) for k in range(0, len(X), step)]
    return [mapped.part(k, min(len(X), k + step)) for k in range(0, len(X), step)]


def _text_chunks(path: Path, n_features: int | None) -> Iterator[tuple[Any, Any]]:
    """Yield chunks (X, y) of a LIBSVM text."""
    if path.suffix in _COMPRESSED:
        yield read_libsvm(_named_file(read_bytes_unpacked(path), str(path)), n_features=n_features)
        return
    with open(path, "rb") as file:
        lines = 0
        while piece := file.read(_TEXT_BYTES):
            piece += file.readline()
            name = f"{path} below line {lines:,}" if lines else str(path)
            yield read_libsvm(_named_file(piece, name), n_features=n_features)
            lines += piece.count(b"\n")


def _named_file(content: bytes, name: str) -> BytesIO:
    """Return a file in memory with a name for error messages."""
    file = BytesIO(content)
    file.name = name
    return file


def _parquet_chunks(path: Path, scratch: Scratch, target: str | None, first: _Part | None) -> Iterator[_Part]:
    """Yield the chunks of a Parquet file."""
    polars = require("polars", "reading Parquet files")
    frame = polars.scan_parquet(path)
    header = frame.collect_schema().names()
    if target is not None and target not in header:
        raise ValueError(f"{str(path)!r} has no column {target!r}; it has {', '.join(header)}")
    names: Names = tuple(name for name in header if name != target)
    if first is not None and first.names is not None:
        column_positions(names, first.names, repr(str(path)), first.source)
        names = first.names
    n, step = frame.select(polars.len()).collect().item(), max(1, _CHUNK_BYTES // (8 * max(1, len(names))))
    for begin in range(0, n, step):
        part = frame.slice(begin, step).collect()
        X = as_rows(part.select(names), repr(str(path))).astype(np.float64, copy=False)
        y = None if target is None else part[target].to_numpy()
        yield _Part(scratch.store(X), y, names=names, source=repr(str(path)))
