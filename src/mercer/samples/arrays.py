"""Names for array types, and small functions of arrays and samples that several rooms need."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mercer.samples.engine import PlacedSamples, placed, together

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
# What a kernel compares: rows of an array or of a CSR matrix, a sequence of strings, or an engine's `PlacedSamples`. A
# union would say too little: whoever computes has an array or a CSR matrix, and no type that a checker knows is both.
Samples = Any
# Samples as users hand them over: rows of numbers, also a frame's, sparse rows, a kernel matrix, or strings.
Data = ArrayLike | sp.sparray | sp.spmatrix | Sequence[str]
Weights = ArrayLike | None
# Kernel values of float32 or float64.
Values = NDArray[np.floating[Any]]
# Of kernel values: float32, float64, or the name of a level that a Gram has beside them.
Precision = type[np.floating[Any]] | np.dtype[Any] | str

# Memory of one step of a loop over rows: large enough for BLAS to run at full speed, and small enough that Ctrl-C,
# which Python notices only between two steps, takes effect within a tenth of a second.
BLOCK_BYTES = 16 << 20
# One step of a loop over matrix products, for the same reason: 0.03 s at 20 · 10⁹ multiplications a second, which one
# core with AVX2 does. Its rows are few enough to leave many columns, without which BLAS is slower.
_PRODUCT_MULTIPLICATIONS, _PRODUCT_ROWS = 1 << 29, 1024
# OpenBLAS starts threads above the second number, and on a busy machine waits milliseconds for them. Products of few
# columns up to the first number, about a millisecond, are made of smaller ones (3,000 × 20: 0.25 ms on an idle machine
# and 17 ms on a busy one, against 0.08 ms).
_ALONE_MULTIPLICATIONS, _SERIAL_MULTIPLICATIONS, _FEW_COLUMNS = 1 << 23, 1 << 18, 64

# Fewer bytes than this are sooner copied than read where they are; from there on `pick` copies nothing.
PICKED_BYTES = BLOCK_BYTES
# Bytes of a row from which linear machines take as long on rows that are picked as on a copy of them (measured on
# whole fits of 60 MB); with half as many they took up to half as long again.
_LONG_ROW_BYTES = 2048


def _core() -> Any:
    """The core if it was imported: kernels alone work without it, and have no threads."""
    return sys.modules.get("mercer._core")


def _check_stop() -> None:
    """Raise where a thread is to stop."""
    core = _core()
    if core is not None:
        core.check_stop()


def megabytes(size: float) -> str:
    """Bytes as a message tells them, with enough digits for a small budget."""
    return f"{size / 1e6:.0f} MB" if size >= 1e7 else f"{size / 1e6:.2g} MB"


def row_blocks(n: int, row_bytes: int) -> Iterator[slice]:
    """Ranges of n rows of `row_bytes` each that take about BLOCK_BYTES; raises where a thread is to stop."""
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    for start in range(0, n, step):
        _check_stop()
        yield slice(start, min(n, start + step))


def is_sparse(X: Any) -> bool:
    """Whether zeros are not stored: scipy's issparse, without narrowing the type that a checker sees."""
    return type(X) is not np.ndarray and bool(X.sparse if isinstance(X, PlacedSamples) else sp.issparse(X))


def are_strings(X: Any) -> bool:
    """Whether a sample is a string, not a row of numbers."""
    return not hasattr(X, "shape") or (isinstance(X, PlacedSamples) and len(X.shape) == 1)


def n_entries(X: Any) -> int:
    """How many numbers are stored of vectors; zeros of a CSR matrix are not."""
    return X.n_entries if isinstance(X, PlacedSamples) else int(X.size)


def n_samples(X: Any) -> int:
    """The number of samples in an array, a CSR matrix or a sequence."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


class PickedRows:
    """Some rows of a float32 or float64 array, in any order: copied where they are read, and never as a whole.

    It has an array's shape and type. What indexing returns is an array of its own, made by the core's threads.
    """

    ndim = 2

    def __init__(self, X: NDArray[Any], which: Indices, n_threads: int) -> None:
        self.X, self.which, self.n_threads = X, which, n_threads
        self.shape, self.dtype = (len(which), X.shape[1]), X.dtype
        self.size = len(which) * X.shape[1]
        self.nbytes = self.size * X.itemsize

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, rows: slice | Indices) -> NDArray[Any]:
        return _copied(self.X, self.which[rows], self.n_threads)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("these rows are not in memory of their own; take blocks of them")

    def row_moments(self, centre: float) -> tuple[Floats, Floats]:
        """The sums of x − centre and of its squares over each row, in float64."""
        if 2 * len(self.which) < len(self.X):
            found: tuple[Floats, Floats] = _core().row_moments(self.X, self.which, centre, self.n_threads)
            return found
        sums, squares = _core().row_moments(self.X, None, centre, self.n_threads)  # one after another is faster
        return sums[self.which], squares[self.which]

    def column_moments(self, centre: Floats) -> tuple[Floats, Floats]:
        """The same over each column."""
        found: tuple[Floats, Floats] = _core().column_moments(self.X, self.which, centre, self.n_threads)
        return found


def take(X: Any, rows: Indices, n_threads: int = 1) -> Any:
    """Rows of a data set, as a copy: by indexing, of sequences element by element, an engine's by the engine."""
    if isinstance(X, PlacedSamples):
        return X.take(rows)
    if not hasattr(X, "shape"):
        return [X[i] for i in rows]
    large = isinstance(X, np.ndarray) and X.nbytes >= BLOCK_BYTES
    return _copied(X, rows, n_threads) if large else X[rows]


def pick(X: Any, rows: Indices, n_threads: int) -> Any:
    """`take` without the copy where an array is large."""
    if not isinstance(X, np.ndarray) or len(rows) * X.nbytes < PICKED_BYTES * len(X) or X.dtype.char not in "fd":
        return take(X, rows)
    return PickedRows(X, rows, n_threads)


def _copied(X: NDArray[Any], rows: Indices, n_threads: int) -> NDArray[Any]:
    out = np.empty((len(rows), *X.shape[1:]), X.dtype)
    core = _core() if X.ndim == 2 and X.dtype.char in "fd" and X.flags.c_contiguous and X.flags.aligned else None
    if core is not None:
        core.copy_rows(X, np.ascontiguousarray(rows, dtype=np.int64), out, n_threads)
        return out
    for some in row_blocks(len(rows), out.nbytes // max(1, len(rows))):
        out[some] = X[rows[some]]
    return out


def rows_between(X: Any, some: slice) -> Any:
    """Rows of a data set that follow one another; of an array they share its memory."""
    return X.take(np.arange(some.start, min(some.stop, X.shape[0]))) if isinstance(X, PlacedSamples) else X[some]


def host(X: Any, rows: Indices | None = None) -> Any:
    """Samples of this machine: X itself, or a copy of what lives with an engine; only some rows, if they are given."""
    X = placed(X)
    if isinstance(X, PlacedSamples):
        return X.host(rows)
    return X if rows is None else take(X, rows)


def matrix_entries(K: Any, rows: Indices, columns: Indices) -> Floats:
    """K[rows[k], columns[k]] of a kernel matrix, in float64."""
    if isinstance(K, PlacedSamples):
        return K.entries(rows, columns)
    return np.asarray(K[rows, columns], dtype=np.float64)


def matrix_part(K: Any, rows: Indices) -> Any:
    """K[rows, rows] of a kernel matrix."""
    return matrix_columns(K.take(rows), rows) if isinstance(K, PlacedSamples) else K[np.ix_(rows, rows)]


def matrix_columns(K: Any, which: Indices) -> Any:
    """K[:, which] of a kernel matrix."""
    return K.columns(which) if isinstance(K, PlacedSamples) else K[:, which]


def in_order(X: Any) -> Any:
    """X for many passes over its rows: short ones that are picked are copied, since they would be slow to reach."""
    return X[:] if isinstance(X, PickedRows) and X.nbytes < _LONG_ROW_BYTES * len(X) else X


def moments(X: Any) -> tuple[Floats, Floats]:
    """The mean and the standard deviation of every column of an array, in float64."""
    if isinstance(X, PlacedSamples):
        return X.moments()
    if isinstance(X, PickedRows):
        mean = X.column_moments(np.zeros(X.shape[1]))[0] / len(X)
        return mean, np.sqrt(X.column_moments(mean)[1] / len(X))
    mean, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for rows in row_blocks(len(X), 8 * X.shape[1]):
        mean += X[rows].sum(axis=0, dtype=np.float64)
    mean /= len(X)
    for rows in row_blocks(len(X), 8 * X.shape[1]):
        with np.errstate(over="ignore"):  # infinite is far enough, and what overflows is told elsewhere
            square += ((X[rows] - mean) ** 2).sum(axis=0)
    return mean, np.sqrt(square / len(X))


def add_gram(lower: Floats, A: Floats) -> None:
    """lower += AᵀA; what lies above its diagonal has no meaning until `mirror`."""
    columns = A.shape[1]
    if columns <= _FEW_COLUMNS and len(A) * columns * columns <= _ALONE_MULTIPLICATIONS:
        step = max(1, _SERIAL_MULTIPLICATIONS // max(1, columns * columns))
        for top in range(0, len(A), step):
            own = A[top : top + step]
            lower += own.T @ own
        return
    rows = max(_PRODUCT_ROWS, _PRODUCT_MULTIPLICATIONS // max(1, columns * columns))
    wide = max(64, _PRODUCT_MULTIPLICATIONS // (rows * max(1, columns)))
    for top in range(0, len(A), rows):
        for left in range(0, columns, wide):
            _check_stop()
            right = min(columns, left + wide)
            own, below = A[top : top + rows, left:right], A[top : top + rows, right:]
            lower[left:right, left:right] += own.T @ own  # BLAS computes one half
            if right < columns:
                lower[right:, left:right] += below.T @ own


def mirror(lower: Floats) -> None:
    """Copy what lies below the diagonal to above it."""
    for left in range(0, len(lower), 64):
        own = slice(left, left + 64)
        lower[own, left + 64 :] = lower[left + 64 :, own].T
        square = np.tril(lower[own, own])
        lower[own, own] = square + np.tril(square, -1).T


def stack(first: Any, second: Any) -> Any:
    """The rows of two data sets, one after the other: CSR where either is sparse, a list of sequences."""
    if isinstance(first, PlacedSamples) or isinstance(second, PlacedSamples):
        first, second = together(first, second) if isinstance(first, PlacedSamples) else together(second, first)[::-1]
        return first.joined(second)
    if not hasattr(second, "shape"):
        return [*first, *second]
    if is_sparse(first) or is_sparse(second):
        return sp.csr_array(sp.vstack([sp.csr_array(first), sp.csr_array(second)]))
    return np.concatenate([first, second])


def inner(a: Floats, b: Floats) -> float:
    """Σ a_i b_i by NumPy's own summation.

    BLAS starts its threads for ten thousand numbers, and on a busy machine waits milliseconds for them to finish.
    """
    return float((a * b).sum())


def norm(a: Floats) -> float:
    """√Σ a_i², summed as by `inner`."""
    return math.sqrt(inner(a, a))


def gamma(roundings: int) -> float:
    """γ_k = ku/(1 − ku), u = 2⁻⁵³: the relative error of k roundings one after the other (Higham, lemma 3.1)."""
    share = roundings * 2.0**-53
    return share / (1.0 - share) if share < 1 else math.inf


def sums_by(index: Any, values: Floats, n: int) -> Floats:
    """The values summed over equal indices, for each index from 0 to n − 1."""
    return np.bincount(index, weights=values, minlength=n).astype(np.float64, copy=False)


def rounded_sums_by(index: Indices, values: Floats, n: int) -> Floats:
    """The values summed over equal indices, for each index from 0 to n − 1, each sum rounded once.

    So the order of the values has no effect. Sums of whole numbers are exact as they are.
    """
    sums = sums_by(index, values, n)
    if float(sums.max(initial=0.0)) < 2.0**53 and (np.rint(values) == values).all() and values.min(initial=0.0) >= 0:
        return sums
    ends = np.cumsum(np.bincount(index, minlength=n)).tolist()
    ordered, begin = values[np.argsort(index, kind="stable")].tolist(), 0
    for k, end in enumerate(ends):
        if end - begin > 2:  # a sum of two is rounded once
            sums[k] = math.fsum(ordered[begin:end])
        begin = end
    return sums


def rounded_sum(values: Floats) -> float:
    """The sum of numbers ≥ 0, rounded once."""
    try:
        return math.fsum(values.tolist())
    except OverflowError:
        return math.inf


def weighted_median(values: Floats, weight: Floats) -> float:
    """The median of values that count as their weights say; between two values if half lies on each side.

    Sums of weights are rounded: half is what differs from it by less than that.
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    half, rounding = 0.5 * below[-1], 1e-11 * below[-1]
    lower = int(np.searchsorted(below, half - rounding, side="left"))
    upper = min(int(np.searchsorted(below, half + rounding, side="right")), len(order) - 1)
    return float(0.5 * values[order[lower]] + 0.5 * values[order[upper]])


def freeze(array: Any) -> Any:
    """Make an array, or the parts of a CSR matrix, read-only; anything else is left alone."""
    if isinstance(array, PlacedSamples):
        return array
    parts = (array.data, array.indices, array.indptr) if is_sparse(array) else (array,)
    for part in parts:
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
    return array


@cache
def physical_memory() -> float:
    """Bytes of memory in this computer; infinite where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return math.inf
