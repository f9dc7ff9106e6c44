"""Verbs: pure functions that run on one chunk of rows, where it is stored.

`selection` gives the rows of the chunk that a verb uses, in ascending order. Kernel values and their error bounds are
those of a `KernelMatrix` of these rows and the rows that they are compared with, with one centre for all chunks. Verbs
in `ON_DEVICE` also take `EngineSamples`, and then use the `Gram` of their engine, whose bounds hold for any centre.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from mercer.kernels import Kernel
from mercer.places.ball import Ball
from mercer.places.choose import evaluation_for, gram_for
from mercer.places.factor import add_whitened
from mercer.places.gram import Gram
from mercer.places.host.cross import HostCross
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.places.host.prepared import EXACT, PreparedSamples
from mercer.places.protocols import ErrorTotals, Totals
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Flags, Floats, Indices, Precision, is_sparse, row_blocks, stack, take
from mercer.samples.chunks import Chunk
from mercer.samples.engine import EngineSamples
from mercer.samples.matrices import dense, squared_lengths
from mercer.samples.merging import hash_samples

T = TypeVar("T")
# Number of rows that are copied at a time for a product; a verb needs memory for a few such copies.
_STRIP_ROWS = 65_536
# Budget in bytes of a chunk's Gram, which streams and stores no row of K.
_BUDGET = 1 << 30
# Selection of rows of a chunk: None for all, a few by their indices, or many by a bit for each.
RowSelection = NDArray[np.int32] | NDArray[np.uint8] | None


def pack_mask(mask: Flags) -> RowSelection:
    """Pack a mask of a chunk's rows into few bytes."""
    count = int(np.count_nonzero(mask))
    if count == len(mask):
        return None
    return np.flatnonzero(mask).astype(np.int32) if 32 * count < len(mask) else np.packbits(mask)


def unpack_rows(selection: RowSelection, n: int) -> Indices:
    """Return the indices of the selected rows of a chunk of n rows."""
    if selection is None:
        return np.arange(n)
    if selection.dtype == np.uint8:
        return np.flatnonzero(np.unpackbits(selection.view(np.uint8), count=n))
    return selection.astype(np.intp)


def rows(X: Any, selection: RowSelection) -> Any:
    """Return copies of the selected rows in host memory, or the chunk itself if it is there and all are selected."""
    if isinstance(X, EngineSamples):
        return X.host(unpack_rows(selection, X.shape[0]))
    return take(X, unpack_rows(selection, X.shape[0])) if selection is not None else X


@cache
def _libraries() -> ThreadpoolController:
    """Return the thread pools of this process."""
    return ThreadpoolController()  # finding the libraries takes long, so that it is done once


class _OneThread:
    """A context that limits BLAS to one thread in the whole process.

    Tasks in several threads overlap: the first one sets the limit, and the last one restores the previous one. Both are
    done in threads that end at once, since threadpoolctl lets no thread change a limit that another live one has set.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._n_inside += 1
            if self._n_inside == 1:
                _in_a_thread(self._set_limit)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                _in_a_thread(self._limit.restore_original_limits)

    def _set_limit(self) -> None:
        """Limit BLAS to one thread, and remember the previous limit."""
        self._limit = _libraries().limit(limits=1, user_api="blas")  # OpenMP has a limit for each thread


def _in_a_thread(call: Callable[[], object]) -> None:
    """Make a call in a new thread, and wait for its end."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


_one_thread = _OneThread()


def on_one_thread(verb: Callable[..., T], *arguments: Any) -> T:
    """Return verb(*arguments), computed without BLAS threads: a worker has one core for each of its tasks."""
    with _one_thread:
        return verb(*arguments)


# --- facts ------------------------------------------------------------------------------------------------------------


def chunk_format(X: Any) -> tuple[tuple[int, ...], str, bool, int]:
    """Return shape, dtype, whether the chunk is sparse, and the number of stored entries."""
    return X.shape, np.dtype(X.dtype).str, is_sparse(X), int(X.nnz if is_sparse(X) else X.size)


def first_not_finite(X: Any, selection: RowSelection) -> tuple[int, int, float, int] | None:
    """Return row, column and value of the first entry that is not finite, and the number of such entries; else None."""
    X = rows(X, selection)
    values = X.data if is_sparse(X) else X
    if np.isfinite(values.sum(dtype=np.float64)) and np.isfinite(values).all():
        return None
    if is_sparse(X):
        entries = np.flatnonzero(~np.isfinite(X.data))
        row = int(np.searchsorted(X.indptr, entries[0], side="right")) - 1
        in_row = entries[entries < X.indptr[row + 1]]
        first = in_row[np.argmin(X.indices[in_row])]
        return row, int(X.indices[first]), float(X.data[first]), len(entries)
    bad = np.argwhere(~np.isfinite(X))
    return int(bad[0, 0]), int(bad[0, 1]), float(X[tuple(bad[0])]), len(bad)


def hashes(X: Any, selection: RowSelection) -> NDArray[np.uint64]:
    """Return a hash of each row."""
    return hash_samples(rows(X, selection), 1)


def column_sums(X: Any, weight: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """Return Σ w (x − centre) and Σ w (x − centre)² of every column."""
    first, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for part, positions in _strips(X, None):
        centred = dense(part).astype(np.float64, copy=False) - centre
        first += weight[positions] @ centred
        with np.errstate(over="ignore"):
            second += weight[positions] @ centred**2
    return first, second


def extremes(X: Any, selection: RowSelection) -> tuple[float, float]:
    """Return the smallest and the largest entry of the selected rows."""
    part = rows(X, selection)
    return float(part.min()), float(part.max())


def lengths(X: Any, selection: RowSelection) -> Floats:
    """Return the squared length of each row."""
    return squared_lengths(rows(X, selection))


def diagonal(X: Any, selection: RowSelection, kernel: Kernel) -> Floats:
    return np.asarray(kernel.diag(rows(X, selection)))


def values(X: Any, selection: RowSelection, kernel: Kernel, others: Any) -> Floats:
    return kernel(rows(X, selection), others)


def _strips(X: Any, selection: RowSelection) -> Any:
    """Yield the selected rows strip by strip, each with the slice of the selection that it covers."""
    is_selected = unpack_rows(selection, X.shape[0])
    for start in range(0, len(is_selected), _STRIP_ROWS):
        positions = slice(start, min(len(is_selected), start + _STRIP_ROWS))
        takes_all = selection is None and not isinstance(X, EngineSamples)
        yield X[positions] if takes_all else take(X, is_selected[positions]), positions


def _gram(kernel: Kernel, part: Any, Z: Any, centre: Floats, n_threads: int) -> Gram:
    """Build the Gram of a strip of rows and of the rows Z, where the strip is."""
    if isinstance(part, EngineSamples):
        return gram_for(kernel, part.joined(part.engine.samples(Z)), _BUDGET, n_threads)
    return KernelMatrix.of(kernel, stack(part, Z), _BUDGET, n_threads, centre=centre).streamed()


# --- products with K --------------------------------------------------------------------------------------------------


def products(
    X: Any,
    selection: RowSelection,
    kernel: Kernel,
    centre: Floats,
    refuted: bool,
    Z: Any,
    C: Floats,
    level: Precision,
    proven: bool,
    n_threads: int,
) -> tuple[Floats, Floats | None, float]:
    """Return K(rows, Z) @ C, error bounds if `proven`, and the largest entry bound of a K that may be indefinite."""
    n, m = len(unpack_rows(selection, X.shape[0])), len(C)
    value, error = np.zeros((n, *C.shape[1:])), np.zeros((n, *C.shape[1:])) if proven else None
    largest_bound = 0.0
    for part, positions in _strips(X, selection):
        gram = _gram(kernel, part, Z, centre, n_threads)
        if refuted:
            gram.refute()
        n_rows = positions.stop - positions.start
        strip, c = np.arange(n_rows), np.concatenate([np.zeros((n_rows, *C.shape[1:])), C])
        if error is not None:
            value[positions], error[positions] = gram.product_bound(c, strip, level)
        else:
            value[positions] = (gram.product if c.ndim == 1 else gram.products)(c, strip, level)
        if gram.positive_definite != "yes" and m:
            largest_bound = max(largest_bound, float(gram.entry_bounds.max()))
    return value, error, largest_bound


def errors(
    X: Any, selection: RowSelection, kernel: Kernel, centre: Floats, Z: Any, c: Floats, level: Precision, n_threads: int
) -> Floats:
    """Return bounds on the errors of K(rows, Z) @ c; they hold however K is computed with this centre."""
    out = np.empty(len(unpack_rows(selection, X.shape[0])))
    for part, positions in _strips(X, selection):
        all_rows, n_rows = stack(part, Z), positions.stop - positions.start
        prepared = PreparedSamples.of(kernel, all_rows, n_threads, centre)
        if prepared is None or level == EXACT:
            gram = KernelMatrix.of(kernel, all_rows, _BUDGET, n_threads, centre=centre).streamed()
            out[positions] = gram.errors(np.concatenate([np.zeros(n_rows), c]), np.arange(n_rows), level)
        else:
            sizes = prepared.sizes
            out[positions] = prepared.rounding.errors(sizes[:n_rows], sizes[n_rows:], c, level)
    return out


def whitened_gram(X: Any, weight: Floats, kernel: Kernel, centre: Floats, Z: Any, L: Floats, n_threads: int) -> Floats:
    """Return the lower triangle of FᵀWF with F = k(rows, Z)L⁻ᵀ, for the weights W of all rows of the chunk."""
    lower, used, m = np.zeros(L.shape), np.flatnonzero(weight), len(L)
    for block in row_blocks(len(used), 8 * m):
        in_block = used[block]
        gram = _gram(kernel, take(X, in_block), Z, centre, n_threads)
        add_whitened(lower, L, gram.block(np.arange(len(in_block)), len(in_block) + np.arange(m)), weight[in_block])
    return lower


def entry_bounds(
    X: Any, selection: RowSelection, kernel: Kernel, centre: Floats, refuted: bool, n_threads: int
) -> Floats:
    """Return the `entry_bounds` of K at the rows."""
    parts = []
    for part, _ in _strips(X, selection):
        gram = KernelMatrix.of(kernel, part, _BUDGET, n_threads, centre=centre)
        if refuted:
            gram.refute()
        parts.append(gram.entry_bounds)
    return np.concatenate([np.empty(0), *parts])


def evaluate(
    X: Any,
    selection: RowSelection,
    kernel: Kernel,
    vectors: Any,
    coefficients: Any,
    columns: Indices | None,
    n_threads: int,
) -> Floats:
    """Return f at the rows, with a column for each output."""
    engine = X.engine if isinstance(X, EngineSamples) else None
    part = rows(X, selection) if engine is None else take(X, unpack_rows(selection, X.shape[0]))
    out = np.zeros((part.shape[0], coefficients.shape[1]))
    evaluation_for(kernel, vectors, coefficients, columns, engine).add(out, part, n_threads)
    return out


# Verbs that compute on a device if the chunk, or its worker, has one; all others take rows in host memory.
ON_DEVICE = (rows, products, whitened_gram, evaluate)


# --- rows of a linear machine, through `Rows` or `LinearGram` of the host ---------------------------------------------


def row_products(X: Any, selection: RowSelection, make: Callable[[Any], Any], name: str, *options: Any) -> Any:
    """Return the attribute or method result `name` of make(rows); a Ball becomes columns of values and of errors."""
    result = getattr(make(rows(X, selection)), name)
    result = result(*options) if callable(result) else result
    return np.column_stack([result.value, result.error]) if isinstance(result, Ball) else result


def row_sums(X: Any, selection: RowSelection, C: Any, make: Callable[[Any], Any], name: str, *options: Any) -> Any:
    """Return the sum over the rows that the method `name` of make(rows) computes from the numbers C of each row."""
    return getattr(make(rows(X, selection)), name)(*C, *options)


def gram_products(
    X: Any, selection: RowSelection, make: Callable[[Any], Any], hi: Floats, lo: Floats, error: float
) -> Floats:
    """Return X(hi + lo) with bounds, where the error of hi + lo has at most the length `error`."""
    linear_rows = make(rows(X, selection))
    ball = linear_rows.doubled_product(hi, lo)
    lengths = np.sqrt(linear_rows.squared_lengths) * (1 + 2e-16 * (linear_rows.d + 4)) + 1e-150
    return np.column_stack([ball.value, ball.error + 1.0001 * error * lengths])


def weighted_sum(X: Any, c: Floats, make: Callable[[Any], Any], name: str, *options: Any) -> Any:
    """Return the sum over the rows with c ≠ 0 that the method `name` of make(rows) computes from c."""
    nonzero = np.flatnonzero(c)
    linear_rows = make(X if len(nonzero) == len(c) else take(X, nonzero))
    return (
        linear_rows.outer(np.arange(len(nonzero)), c[nonzero])
        if name == "outer"
        else getattr(linear_rows, name)(c[nonzero], *options)
    )


def least_squares(X: Any, selection: RowSelection, problem: LeastSquares) -> Sums:
    """Return the sums over the rows that linear least squares needs."""
    return Sums.of(rows(X, selection), problem)


# --- K between samples and landmarks ----------------------------------------------------------------------------------


def cross(
    X: Any,
    selection: RowSelection,
    Y: Floats,
    weight: Floats,
    kernel: Kernel,
    landmarks: Any,
    K_MM: Any,
    n_threads: int,
    name: str,
    *options: Any,
) -> Any:
    """Return the result of the method `name` of a `Cross` of these samples alone."""
    chunk = Chunk(rows(X, selection), Y, weight)
    return getattr(HostCross(kernel, landmarks, lambda: [chunk], 0, n_threads, K_MM), name)(*options)


def add_totals(a: Totals, b: Totals) -> Totals:
    """Return the totals over the union of two sets of samples."""
    return Totals(
        a.residual + b.residual,
        a.bias_column + b.bias_column,
        a.weight + b.weight,
        a.error_sum + b.error_sum,
        a.squares + b.squares,
        a.n + b.n,
    )


def add_error_totals(a: tuple[Totals, ErrorTotals], b: tuple[Totals, ErrorTotals]) -> tuple[Totals, ErrorTotals]:
    """Return the totals of the union, and bounds on their errors, including the rounding of this addition."""
    (totals_a, errors_a), (totals_b, errors_b) = a, b
    totals = add_totals(totals_a, totals_b)
    rounding = 2.0**-52 * (np.abs(totals_a.residual) + np.abs(totals_b.residual))
    errors = ErrorTotals(
        (errors_a.residual + errors_b.residual) * (1 + 2.0**-50) + rounding,
        (errors_a.squares + errors_b.squares) * (1 + 2.0**-50),
        (errors_a.trace + errors_b.trace) * (1 + 2.0**-50),
        max(errors_a.terms, errors_b.terms) + 1,
    )
    return totals, errors
