"""Data in LIBSVM's and SVMlight's text format: ``label [qid:n] index:value index:value ... # comment`` per row."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import _core
from mercer.files.atomic_write import replacing
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Floats, is_sparse

_OPENERS: Final[dict[str, Callable[..., Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_ROWS_AT_ONCE = 4096

Source = str | os.PathLike[str] | BinaryIO


class TextFormatError(ValueError):
    """Error in a LIBSVM or SVMlight text; the message begins with file, line and column."""


@dataclass(frozen=True, eq=False)
class LabelledText:
    """Content of a text: CSR rows, labels, and queries (None if no line has a ``qid:``)."""

    X: sp.csr_array
    y: Floats
    queries: NDArray[np.int64] | None
    largest_index: int  # as written in the text; −1 if no line has an index:value pair


@overload
def read_libsvm(
    source: Source,
    *,
    n_features: int | None = ...,
    first_index: int = ...,
    query_id: Literal[False] = ...,
    n_jobs: int | None = ...,
) -> tuple[sp.csr_array, Floats]: ...
@overload
def read_libsvm(
    source: Source,
    *,
    n_features: int | None = ...,
    first_index: int = ...,
    query_id: Literal[True],
    n_jobs: int | None = ...,
) -> tuple[sp.csr_array, Floats, NDArray[np.int64]]: ...
def read_libsvm(
    source: Source,
    *,
    n_features: int | None = None,
    first_index: int = 1,
    query_id: bool = False,
    n_jobs: int | None = None,
) -> tuple[sp.csr_array, Floats] | tuple[sp.csr_array, Floats, NDArray[np.int64]]:
    """Read a LIBSVM or SVMlight text as a CSR matrix and its labels.

    Every number is the float64 nearest to its text, whatever the locale. A line that breaks the format, a ``nan``, an
    ``inf``, an overflow or indices that do not ascend raise TextFormatError with file, line and column. Files that end
    in .gz, .bz2 or .xz are decompressed.

    Parameters
    ----------
    source : path or binary file
        Text to read.
    n_features : int, optional
        Number of columns of X; by default the largest index determines it.
    first_index : {1, 0}, default=1
        Index of the first column. LIBSVM counts from 1 and reserves 0 for the row numbers of precomputed kernels.
    query_id : bool, default=False
        Return the ``qid`` of each row too, for ranking, as scikit-learn's `load_svmlight_file` does.
    n_jobs : int, optional
        Number of threads; None uses as many as BLAS would.

    Returns
    -------
    X : csr_array of float64
    y : float64 array
    query_id : int64 array
        Only with query_id=True.

    Examples
    --------
    >>> import io
    >>> from mercer.cli.libsvm import read_libsvm
    >>> X, y = read_libsvm(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1  # a comment\\n"))
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1., -1.])
    """
    text = read_labelled_text(source, n_features=n_features, first_index=first_index, n_jobs=n_jobs)
    if query_id:
        if text.queries is None:
            raise ValueError(f"{_name(source)} has no qid: fields, but query_id=True was given")
        return text.X, text.y, text.queries
    if text.queries is not None:
        raise ValueError(
            f"{_name(source)} has qid: fields, which group rows for ranking; read_libsvm(…, query_id=True) returns them"
        )
    return text.X, text.y


def read_labelled_text(
    source: Source, *, n_features: int | None = None, first_index: int = 1, n_jobs: int | None = None
) -> LabelledText:
    """Read a LIBSVM or SVMlight text with the queries of a ranking data set.

    Parameters
    ----------
    source : path or binary file
        Text to read.
    n_features : int, optional
        Number of columns of X; by default the largest index determines it.
    first_index : {1, 0}, default=1
        Index of the first column.
    n_jobs : int, optional
        Number of threads; None uses as many as BLAS would.
    """
    if first_index not in (0, 1):
        raise ValueError(f"first_index={first_index!r} must be 0 or 1")
    n_threads = effective_n_threads(n_jobs)
    content = _bytes(source)
    if content[:3].tobytes() == codecs.BOM_UTF8:  # as editors on Windows write it
        content = content[3:]
    text = _core.Text(content, n_threads)
    labels = np.empty(text.rows)
    starts = np.empty(text.rows + 1, dtype=np.int64)
    queries = np.empty(text.rows, dtype=np.int64)
    indices = np.empty(text.entries, dtype=np.int32)
    values = np.empty(text.entries)
    rows, entries, least, largest, n_queries, fault = text.parse(labels, starts, queries, indices, values, n_threads)
    if fault is not None:
        line, column, message = fault
        raise TextFormatError(f"{_name(source)}:{line}:{column}: {message}")
    if entries and least < first_index:
        raise TextFormatError(
            f"{_name(source)} uses index {least}, but indices count from {first_index}: add 1 to every index, or read "
            "it in Python with first_index=0; LIBSVM itself reserves 0 for precomputed kernels (-t 4)"
        )
    if n_queries not in (0, rows):
        raise TextFormatError(
            f"{_name(source)}: {n_queries} of {rows} lines have a qid:; either all lines must have one, or none"
        )
    n_columns = int(largest) + 1 - first_index if entries else 0
    if n_features is None:
        n_features = n_columns
    elif n_columns > n_features:
        raise ValueError(f"{_name(source)} uses index {largest}, but n_features={n_features} was given")
    columns = indices[:entries]
    columns -= first_index
    ends = starts[: rows + 1]
    if entries <= np.iinfo(np.int32).max:  # SciPy needs one type for indices and ends; other libraries need int32
        ends = ends.astype(np.int32)
    X = sp.csr_array((values[:entries], columns, ends), shape=(rows, n_features))
    return LabelledText(X, labels[:rows], queries[:rows] if n_queries else None, int(largest))


def write_libsvm(
    X: Any, y: Any, target: str | os.PathLike[str] | BinaryIO, *, first_index: int = 1, zeros: bool = False
) -> None:
    """Write rows and labels as LIBSVM text, which reads back as the same float64 values.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Rows.
    y : array of shape (n_samples,)
        Labels or targets, which must be numbers.
    target : path or binary file
        File to write; a path appears only when the file is complete.
    first_index : {1, 0}, default=1
        Index of the first column.
    zeros : bool, default=False
        Whether zeros are written too.
    """
    if not is_sparse(X):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must be a table of rows and columns, but its shape is {X.shape}")
    y = np.asarray(y)
    if y.ndim != 1 or len(y) != X.shape[0] or y.dtype.kind not in "biuf":
        raise ValueError(
            f"y must be one number for each of {X.shape[0]} rows, not {y.dtype} of shape {y.shape}; "
            "the format has no class names"
        )
    all_finite = np.isfinite(X.data if is_sparse(X) else X).all() and np.isfinite(y).all()
    if not all_finite:
        raise ValueError("X and y must be finite: the format has no nan and no infinity")
    if hasattr(target, "write"):
        _write_rows(target, X, y, first_index, zeros)
        return
    with replacing(target) as file:
        _write_rows(file, X, y, first_index, zeros)


def _write_rows(file: Any, X: Any, y: Any, first_index: int, zeros: bool) -> None:
    """Write rows to an open file, in blocks."""
    rows = X.tocsr() if is_sparse(X) else X
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE]
        if is_sparse(block) and not zeros:
            block = block.copy()
            block.sort_indices()
            block.eliminate_zeros()
        elif zeros:
            block = _full_csr(block.toarray() if is_sparse(block) else block)
        else:
            block = sp.csr_array(block)
        lines = []
        labels = [decimal(label) for label in y[start : start + _ROWS_AT_ONCE].tolist()]
        columns, values, ends = (block.indices + first_index).tolist(), block.data.tolist(), block.indptr.tolist()
        for row, label in enumerate(labels):
            span = range(ends[row], ends[row + 1])
            lines.append(" ".join([label, *(f"{columns[k]}:{decimal(values[k])}" for k in span)]) + "\n")
        file.write("".join(lines).encode("ascii"))


def _full_csr(table: Any) -> sp.csr_array:
    """Return a CSR matrix that stores every entry of an array, zeros too."""
    n, d = table.shape
    return sp.csr_array((np.ravel(table), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=(n, d))


def decimal(value: float) -> str:
    """Return the shortest text that reads back as the same float64, without a trailing ``.0``."""
    text = repr(value) if isinstance(value, float) else str(int(value))
    return text.removesuffix(".0")


def _bytes(source: Any) -> NDArray[np.uint8]:
    """Read a path or a binary file as an array of bytes."""
    if hasattr(source, "read"):
        content = source.read()
        if not isinstance(content, bytes):
            raise TypeError("give a file opened in binary mode, 'rb'")
        return np.frombuffer(content, dtype=np.uint8)
    return np.frombuffer(read_bytes_unpacked(source), dtype=np.uint8)


def read_bytes_unpacked(path: str | os.PathLike[str]) -> bytes:
    """Read the bytes of a file, decompressed if it ends in .gz, .bz2 or .xz."""
    opener = _OPENERS.get(Path(path).suffix.lower())
    if opener is not None:
        with opener(path, "rb") as file:
            content: bytes = file.read()
            return content
    # Not memory-mapped: a file that shrinks while it is mapped crashes the process. Not np.fromfile: it seeks, which a
    # pipe does not support.
    return Path(path).read_bytes()


def _name(source: Any) -> str:
    """Return the name of a path or a file for messages."""
    return str(getattr(source, "name", "the text")) if hasattr(source, "read") else os.fspath(source)
