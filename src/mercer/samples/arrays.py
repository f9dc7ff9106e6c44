"""Type aliases for arrays, and small functions of arrays and samples that several folders need."""

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

from mercer.samples.engine import EngineSamples, in_same_place, to_engine

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
# Argument of a kernel: rows of an array or of a CSR matrix, a sequence of strings, or `EngineSamples`. A union would
# not help type checkers, since no common type has the methods of both arrays and CSR matrices.
Samples = Any
# Samples as users give them: rows of an array or a data frame, sparse rows, a kernel matrix, or strings.
Data = ArrayLike | sp.sparray | sp.spmatrix | Sequence[str]
Weights = ArrayLike | None
# Kernel values in float32 or float64.
Values = NDArray[np.floating[Any]]
# Precision of kernel values: float32, float64, or the name of another precision that a Gram offers.
Precision = type[np.floating[Any]] | np.dtype[Any] | str

# Memory of one step of a loop over rows: large enough for BLAS to run at full speed, and small enough that Ctrl-C,
# which Python notices only between two steps, takes effect within a tenth of a second.
BLOCK_BYTES = 16 << 20
# Size of one step of a loop over matrix products, for the same reason: 0.03 s at 20 · 10⁹ multiplications a second, the
# speed of one core with AVX2. The number of rows is small enough to leave many columns; BLAS is slower with few.
_PRODUCT_MULTIPLICATIONS, _PRODUCT_ROWS = 1 << 29, 1024
# OpenBLAS starts threads above the second number, and on a busy host waits milliseconds for them. Products of few
# columns up to the first number, about a millisecond, are split into smaller ones (3,000 × 20: 0.08 ms, against 0.25 ms
# on an idle host and 17 ms on a busy one).
_SPLIT_MULTIPLICATIONS, _SERIAL_MULTIPLICATIONS, _FEW_COLUMNS = 1 << 23, 1 << 18, 64

# Size from which `pick` copies no rows; below it a copy is faster than indirect access.
PICKED_BYTES = BLOCK_BYTES
# Bytes of a row from which linear machines are as fast on picked rows as on a copy of them (measured on whole fits of
# 60 MB); with half as many bytes they took up to 50 % longer.
_LONG_ROW_BYTES = 2048


def _core() -> Any:
    """Return the compiled core if it was imported, else None: kernels alone work without it, in one thread."""
    return sys.modules.get("mercer._core")


def _check_stop() -> None:
    """Raise if the current thread was asked to stop."""
    core = _core()
    if core is not None:
        core.check_stop()


def megabytes(size: float) -> str:
    """Format a number of bytes in MB for a message, with two digits for small sizes."""
    return f"{size / 1e6:.0f} MB" if size >= 1e7 else f"{size / 1e6:.2g} MB"


def row_blocks(n: int, row_bytes: int) -> Iterator[slice]:
    """Split n rows of `row_bytes` each into ranges of about BLOCK_BYTES; raise if the current thread is to stop."""
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    for start in range(0, n, step):
        _check_stop()
        yield slice(start, min(n, start + step))


def is_sparse(X: Any) -> bool:
    """Return whether zeros are not stored: scipy's issparse, but without narrowing the type for type checkers."""
    return type(X) is not np.ndarray and bool(X.sparse if isinstance(X, EngineSamples) else sp.issparse(X))


def are_strings(X: Any) -> bool:
    """Return whether a sample is a string, not a row of numbers."""
    return not hasattr(X, "shape") or (isinstance(X, EngineSamples) and len(X.shape) == 1)


def n_entries(X: Any) -> int:
    """Return the number of stored entries of an array or a CSR matrix."""
    return X.n_entries if isinstance(X, EngineSamples) else int(X.size)


def n_samples(X: Any) -> int:
    """Return the number of samples in an array, a CSR matrix or a sequence."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


class PickedRows:
    """View of selected rows of a float32 or float64 array, in any order; blocks are copied only when they are read.

    It has the shape and dtype of an array. Indexing returns a new array, copied by the threads of the core.
    """

    ndim = 2

    def __init__(self, X: NDArray[Any], rows: Indices, n_threads: int) -> None:
        self.X, self.rows, self.n_threads = X, rows, n_threads
        self.shape, self.dtype = (len(rows), X.shape[1]), X.dtype
        self.size = len(rows) * X.shape[1]
        self.nbytes = self.size * X.itemsize

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | Indices) -> NDArray[Any]:
        return _copy_rows(self.X, self.rows[rows], self.n_threads)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        rows = self[:]
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a PickedRows has no rows in memory to iterate over; index blocks of rows instead")

    def row_moments(self, centre: float) -> tuple[Floats, Floats]:
        """Return the sums of x − centre and of (x − centre)² over each row, in float64."""
        if 2 * len(self.rows) < len(self.X):
            moments: tuple[Floats, Floats] = _core().row_moments(self.X, self.rows, centre, self.n_threads)
            return moments
        sums, squares = _core().row_moments(self.X, None, centre, self.n_threads)  # reading all in order is faster
        return sums[self.rows], squares[self.rows]

    def column_moments(self, centre: Floats) -> tuple[Floats, Floats]:
        """Return the sums of x − centre and of (x − centre)² over each column, in float64."""
        moments: tuple[Floats, Floats] = _core().column_moments(self.X, self.rows, centre, self.n_threads)
        return moments


def row_moments(X: Any, centre: float) -> tuple[Floats, Floats] | None:
    """Return the sums of x − centre and of (x − centre)² over each row; None unless the core can read X."""
    core, is_readable = _core(), isinstance(X, np.ndarray) and X.dtype.char in "fd"
    if core is None or not (is_readable and X.flags.c_contiguous and X.flags.aligned):
        return None
    moments: tuple[Floats, Floats] = core.row_moments(X, None, centre, 1)
    return moments


def take(X: Any, rows: Indices, n_threads: int = 1) -> Any:
    """Return a copy of these rows of an array, a CSR matrix, a sequence or an engine's samples."""
    if isinstance(X, EngineSamples):
        return X.take(rows)
    if not hasattr(X, "shape"):
        return [X[i] for i in rows]
    is_large = isinstance(X, np.ndarray) and X.nbytes >= BLOCK_BYTES
    return _copy_rows(X, rows, n_threads) if is_large else X[rows]


def pick(X: Any, rows: Indices, n_threads: int) -> Any:
    """Return these rows like `take`, but as `PickedRows`, without a copy, if the array is large."""
    if not isinstance(X, np.ndarray) or len(rows) * X.nbytes < PICKED_BYTES * len(X) or X.dtype.char not in "fd":
        return take(X, rows)
    return PickedRows(X, rows, n_threads)


def _copy_rows(X: NDArray[Any], rows: Indices, n_threads: int) -> NDArray[Any]:
    """Return a copy of these rows of an array, made by the core's threads if possible."""
    out = np.empty((len(rows), *X.shape[1:]), X.dtype)
    core = _core() if X.ndim == 2 and X.dtype.char in "fd" and X.flags.c_contiguous and X.flags.aligned else None
    if core is not None:
        core.copy_rows(X, np.ascontiguousarray(rows, dtype=np.int64), out, n_threads)
        return out
    for block in row_blocks(len(rows), out.nbytes // max(1, len(rows))):
        out[block] = X[rows[block]]
    return out


def rows_between(X: Any, rows: slice) -> Any:
    """Return a range of consecutive rows; the rows of an array share its memory."""
    return X.take(np.arange(rows.start, min(rows.stop, X.shape[0]))) if isinstance(X, EngineSamples) else X[rows]


def host(X: Any, rows: Indices | None = None) -> Any:
    """Return samples in host memory, all or those of `rows`: X itself, or a copy of an engine's samples."""
    X = to_engine(X)
    if isinstance(X, EngineSamples):
        return X.host(rows)
    return X if rows is None else take(X, rows)


def matrix_entries(K: Any, rows: Indices, columns: Indices) -> Floats:
    """Return the entries K[rows[k], columns[k]] of a kernel matrix, in float64."""
    if isinstance(K, EngineSamples):
        return K.entries(rows, columns)
    return np.asarray(K[rows, columns], dtype=np.float64)


def matrix_part(K: Any, rows: Indices) -> Any:
    """Return the principal submatrix K[rows, rows] of a kernel matrix."""
    return matrix_columns(K.take(rows), rows) if isinstance(K, EngineSamples) else K[np.ix_(rows, rows)]


def matrix_columns(K: Any, columns: Indices) -> Any:
    """Return the columns K[:, columns] of a kernel matrix."""
    return K.columns(columns) if isinstance(K, EngineSamples) else K[:, columns]


def copy_short_rows(X: Any) -> Any:
    """Return X for many passes over its rows: picked rows that are short are copied, since indirect access is slow."""
    return X[:] if isinstance(X, PickedRows) and X.nbytes < _LONG_ROW_BYTES * len(X) else X


def moments(X: Any) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of every column of an array, in float64."""
    if isinstance(X, EngineSamples):
        return X.moments()
    if isinstance(X, PickedRows):
        mean = X.column_moments(np.zeros(X.shape[1]))[0] / len(X)
        return mean, np.sqrt(X.column_moments(mean)[1] / len(X))
    mean, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for rows in row_blocks(len(X), 8 * X.shape[1]):
        mean += X[rows].sum(axis=0, dtype=np.float64)
    mean /= len(X)
    for rows in row_blocks(len(X), 8 * X.shape[1]):
        with np.errstate(over="ignore"):  # an infinite deviation is usable here; other code reports the overflow
            square += ((X[rows] - mean) ** 2).sum(axis=0)
    return mean, np.sqrt(square / len(X))


def add_gram(lower: Floats, A: Floats) -> None:
    """Add AᵀA to the lower triangle of `lower`; entries above the diagonal are undefined until `mirror` is called."""
    columns = A.shape[1]
    if columns <= _FEW_COLUMNS and len(A) * columns * columns <= _SPLIT_MULTIPLICATIONS:
        step = max(1, _SERIAL_MULTIPLICATIONS // max(1, columns * columns))
        for top in range(0, len(A), step):
            block = A[top : top + step]
            lower += block.T @ block
        return
    rows = max(_PRODUCT_ROWS, _PRODUCT_MULTIPLICATIONS // max(1, columns * columns))
    width = max(64, _PRODUCT_MULTIPLICATIONS // (rows * max(1, columns)))
    for top in range(0, len(A), rows):
        for left in range(0, columns, width):
            _check_stop()
            right = min(columns, left + width)
            block, lower_columns = A[top : top + rows, left:right], A[top : top + rows, right:]
            lower[left:right, left:right] += block.T @ block  # BLAS computes one half
            if right < columns:
                lower[right:, left:right] += lower_columns.T @ block


def mirror(lower: Floats) -> None:
    """Copy the lower triangle of a square matrix to its upper triangle, in place."""
    for left in range(0, len(lower), 64):
        block = slice(left, left + 64)
        lower[block, left + 64 :] = lower[left + 64 :, block].T
        square = np.tril(lower[block, block])
        lower[block, block] = square + np.tril(square, -1).T


def stack(first: Any, second: Any) -> Any:
    """Concatenate the rows of two data sets: CSR if either is sparse, a list if they are sequences."""
    if isinstance(first, EngineSamples) or isinstance(second, EngineSamples):
        first, second = (
            in_same_place(first, second) if isinstance(first, EngineSamples) else in_same_place(second, first)[::-1]
        )
        return first.joined(second)
    if not hasattr(second, "shape"):
        return [*first, *second]
    if is_sparse(first) or is_sparse(second):
        return sp.csr_array(sp.vstack([sp.csr_array(first), sp.csr_array(second)]))
    return np.concatenate([first, second])


def inner(a: Floats, b: Floats) -> float:
    """Return the inner product Σ a_i b_i by NumPy's summation.

    BLAS would start its threads for ten thousand numbers, and on a busy host wait milliseconds for them to finish.
    """
    return float((a * b).sum())


def norm(a: Floats) -> float:
    """Return the Euclidean norm √Σ a_i², summed as in `inner`."""
    return math.sqrt(inner(a, a))


def gamma(roundings: int) -> float:
    """Return γ_k = ku/(1 − ku), u = 2⁻⁵³, which bounds the relative error of k roundings (Higham, lemma 3.1)."""
    share = roundings * 2.0**-53
    return share / (1.0 - share) if share < 1 else math.inf


def sums_by(index: Any, values: Floats, n: int) -> Floats:
    """Sum the values over equal indices, for each index from 0 to n − 1."""
    return np.bincount(index, weights=values, minlength=n).astype(np.float64, copy=False)


def rounded_sums_by(index: Indices, values: Floats, n: int) -> Floats:
    """Sum the values over equal indices, for each index from 0 to n − 1, with a single rounding of each sum.

    The result does not depend on the order of the values. Sums of whole numbers are exact in any case.
    """
    sums = sums_by(index, values, n)
    if float(sums.max(initial=0.0)) < 2.0**53 and (np.rint(values) == values).all() and values.min(initial=0.0) >= 0:
        return sums
    ends = np.cumsum(np.bincount(index, minlength=n)).tolist()
    sorted_values, begin = values[np.argsort(index, kind="stable")].tolist(), 0
    for k, end in enumerate(ends):
        if end - begin > 2:  # a sum of two is rounded once anyway
            sums[k] = math.fsum(sorted_values[begin:end])
        begin = end
    return sums


def rounded_sum(values: Floats) -> float:
    """Return the sum of numbers ≥ 0 with a single rounding; infinite if it overflows."""
    try:
        return math.fsum(values.tolist())
    except OverflowError:
        return math.inf


def weighted_median(values: Floats, weight: Floats) -> float:
    """Return the weighted median: the mean of two neighbouring values if half of the weight lies on either side.

    Sums of weights are rounded: a sum that differs from half of the total by rounding only counts as half.
    """
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weight[order])
    half, rounding = 0.5 * cumulative[-1], 1e-11 * cumulative[-1]
    lower = int(np.searchsorted(cumulative, half - rounding, side="left"))
    upper = min(int(np.searchsorted(cumulative, half + rounding, side="right")), len(order) - 1)
    return float(0.5 * values[order[lower]] + 0.5 * values[order[upper]])


def freeze(array: Any) -> Any:
    """Make an array, or the arrays of a CSR matrix, read-only; return anything else unchanged."""
    if isinstance(array, EngineSamples):
        return array
    parts = (array.data, array.indices, array.indptr) if is_sparse(array) else (array,)
    for part in parts:
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
    return array


@cache
def physical_memory() -> float:
    """Return the physical memory of the host in bytes; infinite if the operating system does not report it."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return math.inf
