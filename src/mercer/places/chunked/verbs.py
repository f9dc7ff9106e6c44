"""Verbs on a chunk of rows: pure functions of the chunk and of what is sent along.

`some` says which of the chunk's rows are meant, in ascending order. Kernel values, and the bounds on their errors, are
those of `KernelMatrix` on these rows and the ones they are multiplied with, about one centre for all chunks.
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
from mercer.places.host.cross import HostCross
from mercer.places.host.evaluation import BlockEvaluation
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.places.host.prepared import EXACT, PreparedSamples
from mercer.places.protocols import Doubt, Totals
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Flags, Floats, Indices, Precision, is_sparse, stack, take
from mercer.samples.chunks import Chunk
from mercer.samples.matrices import dense, squared_lengths
from mercer.samples.merging import hash_samples

T = TypeVar("T")
# Rows that are copied beside the others of a product at a time; a verb needs memory for a few such copies.
_STRIP_ROWS = 65_536
# Bytes that a chunk's Gram may plan with: it streams, and keeps no row of K.
_BUDGET = 1 << 30
# Which rows of a chunk: all, a few by their numbers, or many by a bit for each.
Some = NDArray[np.int32] | NDArray[np.uint8] | None


def packed(mask: Flags) -> Some:
    """Flags of a chunk's rows in few bytes."""
    count = int(np.count_nonzero(mask))
    if count == len(mask):
        return None
    return np.flatnonzero(mask).astype(np.int32) if 32 * count < len(mask) else np.packbits(mask)


def unpacked(some: Some, n: int) -> Indices:
    if some is None:
        return np.arange(n)
    if some.dtype == np.uint8:
        return np.flatnonzero(np.unpackbits(some.view(np.uint8), count=n))
    return some.astype(np.intp)


def rows(X: Any, some: Some) -> Any:
    """Copies of the rows."""
    return take(X, unpacked(some, X.shape[0])) if some is not None else X


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # which takes long to find them


class _OneThread:
    """A context without the threads of BLAS and of the core, in this process as a whole.

    Tasks in several threads overlap: the first one sets the limit, and the last one restores what was before. Both are
    done in threads that end at once, since threadpoolctl lets no thread change what another one that lives has set.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                _in_a_thread(self._set)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _in_a_thread(self._limit.restore_original_limits)

    def _set(self) -> None:
        self._limit = _libraries().limit(limits=1, user_api="blas")  # OpenMP has a limit for each thread


def _in_a_thread(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


_one_thread = _OneThread()


def on_one_thread(verb: Callable[..., T], *given: Any) -> T:
    """verb(*given), without the threads of BLAS: a worker has one core for each of its tasks."""
    with _one_thread:
        return verb(*given)


# --- facts ------------------------------------------------------------------------------------------------------------


def facts(X: Any) -> tuple[tuple[int, ...], str, bool, int]:
    """Shape, type, whether zeros are not stored, and how many numbers are."""
    return X.shape, np.dtype(X.dtype).str, is_sparse(X), int(X.nnz if is_sparse(X) else X.size)


def first_not_finite(X: Any, some: Some) -> tuple[int, int, float, int] | None:
    X = rows(X, some)
    values = X.data if is_sparse(X) else X
    if np.isfinite(values.sum(dtype=np.float64)) and np.isfinite(values).all():
        return None
    if is_sparse(X):
        at = np.flatnonzero(~np.isfinite(X.data))
        row = int(np.searchsorted(X.indptr, at[0], side="right")) - 1
        own = at[at < X.indptr[row + 1]]
        first = own[np.argmin(X.indices[own])]
        return row, int(X.indices[first]), float(X.data[first]), len(at)
    bad = np.argwhere(~np.isfinite(X))
    return int(bad[0, 0]), int(bad[0, 1]), float(X[tuple(bad[0])]), len(bad)


def hashes(X: Any, some: Some) -> NDArray[np.uint64]:
    return hash_samples(rows(X, some), 1)


def column_sums(X: Any, weight: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """Σ w (x − centre) of every column, and the sum of the squares."""
    first, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for part, at in _strips(X, None):
        less = dense(part).astype(np.float64, copy=False) - centre
        first += weight[at] @ less
        with np.errstate(over="ignore"):
            second += weight[at] @ less**2
    return first, second


def extremes(X: Any, some: Some) -> tuple[float, float]:
    part = rows(X, some)
    return float(part.min()), float(part.max())


def lengths(X: Any, some: Some) -> Floats:
    return squared_lengths(rows(X, some))


def diagonal(X: Any, some: Some, kernel: Kernel) -> Floats:
    return np.asarray(kernel.diag(rows(X, some)))


def values(X: Any, some: Some, kernel: Kernel, others: Any) -> Floats:
    return kernel(rows(X, some), others)


def _strips(X: Any, some: Some) -> Any:
    """Some rows at a time, as samples of their own, and where they are among those that were asked for."""
    which = unpacked(some, X.shape[0])
    for start in range(0, len(which), _STRIP_ROWS):
        at = slice(start, min(len(which), start + _STRIP_ROWS))
        part = X[at] if some is None else take(X, which[at])
        yield part, at


# --- products with K --------------------------------------------------------------------------------------------------


def products(
    X: Any,
    some: Some,
    kernel: Kernel,
    centre: Floats,
    refuted: bool,
    Z: Any,
    C: Floats,
    level: Precision,
    proven: bool,
    n_threads: int,
) -> tuple[Floats, Floats | None, float]:
    """K(rows, Z) @ C, with bounds where it is to be `proven`, and the largest reach seen of a K that is in doubt."""
    n, m = len(unpacked(some, X.shape[0])), len(C)
    value, error = np.zeros((n, *C.shape[1:])), np.zeros((n, *C.shape[1:])) if proven else None
    reached = 0.0
    for part, at in _strips(X, some):
        gram = KernelMatrix.of(kernel, stack(part, Z), _BUDGET, n_threads, centre=centre).streamed()
        if refuted:
            gram.refute()
        here = at.stop - at.start
        own, c = np.arange(here), np.concatenate([np.zeros((here, *C.shape[1:])), C])
        if error is not None:
            value[at], error[at] = gram.product_bound(c, own, level)
        else:
            value[at] = (gram.product if c.ndim == 1 else gram.products)(c, own, level)
        if gram.positive_definite != "yes" and m:
            reached = max(reached, float(gram.reach.max()))
    return value, error, reached


def errors(
    X: Any, some: Some, kernel: Kernel, centre: Floats, Z: Any, c: Floats, level: Precision, n_threads: int
) -> Floats:
    """Bounds that hold for values of every matrix about this centre, whichever way it computes them."""
    out = np.empty(len(unpacked(some, X.shape[0])))
    for part, at in _strips(X, some):
        both, here = stack(part, Z), at.stop - at.start
        prepared = PreparedSamples.of(kernel, both, n_threads, centre)
        if prepared is None or level == EXACT:
            gram = KernelMatrix.of(kernel, both, _BUDGET, n_threads, centre=centre).streamed()
            out[at] = gram.errors(np.concatenate([np.zeros(here), c]), np.arange(here), level)
        else:
            sizes = prepared.sizes
            out[at] = prepared.rounding.errors(sizes[:here], sizes[here:], c, level)
    return out


def reach(X: Any, some: Some, kernel: Kernel, centre: Floats, refuted: bool, n_threads: int) -> Floats:
    parts = []
    for part, _ in _strips(X, some):
        gram = KernelMatrix.of(kernel, part, _BUDGET, n_threads, centre=centre)
        if refuted:
            gram.refute()
        parts.append(gram.reach)
    return np.concatenate([np.empty(0), *parts])


def evaluate(
    X: Any, some: Some, kernel: Kernel, vectors: Any, coefficients: Any, columns: Indices | None, n_threads: int
) -> Floats:
    """f of the rows, a column for each output."""
    part = rows(X, some)
    out = np.zeros((part.shape[0], coefficients.shape[1]))
    BlockEvaluation(kernel, vectors, coefficients, columns).add(out, part, n_threads)
    return out


# --- places of this machine on the rows of a linear machine -----------------------------------------------------------


def row_products(X: Any, some: Some, place: Callable[[Any], Any], name: str, *options: Any) -> Any:
    """What a place of this machine's says of the rows; of balls the values and then the errors, as columns."""
    found = getattr(place(rows(X, some)), name)
    found = found(*options) if callable(found) else found
    return np.column_stack([found.value, found.error]) if isinstance(found, Ball) else found


def row_sums(X: Any, some: Some, C: Any, place: Callable[[Any], Any], name: str, *options: Any) -> Any:
    """A sum over the rows, of which C are numbers per row."""
    return getattr(place(rows(X, some)), name)(*C, *options)


def gram_products(X: Any, some: Some, place: Callable[[Any], Any], hi: Floats, lo: Floats, off: float) -> Floats:
    """X(hi + lo), where that sum is off by a vector of the length `off`."""
    own = place(rows(X, some))
    ball = own.doubled_product(hi, lo)
    long = np.sqrt(own.lengths) * (1 + 2e-16 * (own.d + 4)) + 1e-150
    return np.column_stack([ball.value, ball.error + 1.0001 * off * long])


def weighted_sum(X: Any, c: Floats, place: Callable[[Any], Any], name: str, *options: Any) -> Any:
    """A sum over the rows that c does not leave out."""
    which = np.flatnonzero(c)
    own = place(X if len(which) == len(c) else take(X, which))
    return own.outer(np.arange(len(which)), c[which]) if name == "outer" else getattr(own, name)(c[which], *options)


def least_squares(X: Any, some: Some, problem: LeastSquares) -> Sums:
    return Sums.of(rows(X, some), problem)


# --- K between samples and landmarks ----------------------------------------------------------------------------------


def cross(
    X: Any,
    some: Some,
    Y: Floats,
    weight: Floats,
    kernel: Kernel,
    landmarks: Any,
    K_MM: Any,
    n_threads: int,
    name: str,
    *options: Any,
) -> Any:
    """A verb of `Cross` on these samples alone."""
    chunk = Chunk(rows(X, some), Y, weight)
    return getattr(HostCross(kernel, landmarks, lambda: [chunk], 0, n_threads, K_MM), name)(*options)


def add_totals(a: Totals, b: Totals) -> Totals:
    """The totals of both sets of samples."""
    return Totals(
        a.residual + b.residual, a.pull + b.pull, a.weight + b.weight, a.mean + b.mean, a.squares + b.squares, a.n + b.n
    )


def add_doubts(a: tuple[Totals, Doubt], b: tuple[Totals, Doubt]) -> tuple[Totals, Doubt]:
    """Totals of both sets, and what bounds their rounding, that of adding them included."""
    (left, one), (right, other) = a, b
    both = add_totals(left, right)
    rounded = 2.0**-52 * (np.abs(left.residual) + np.abs(right.residual))
    doubt = Doubt(
        (one.residual + other.residual) * (1 + 2.0**-50) + rounded,
        (one.squares + other.squares) * (1 + 2.0**-50),
        (one.trace + other.trace) * (1 + 2.0**-50),
        max(one.terms, other.terms) + 1,
    )
    return both, doubt
