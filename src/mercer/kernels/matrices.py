"""Blocks of vectors, dense or CSR: float64 rows, inner products, lengths, and read-only views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mercer.arrays import Floats, freeze, is_sparse, n_samples
from mercer.kernels.used_columns import narrowed

# Bytes of the temporaries of a row-by-row pass, which stay in the second-level cache; half or twice changes little.
STRIP_BYTES = 1 << 20
# A block of CSR rows is made dense for a product if its dense form is at most this large, and more than this share of
# its entries is stored: at 5 % of 1,000 × 1,000 entries both forms take as long, at 20 % the dense one half as long.
_DENSE_BYTES = 32 << 20
_DENSE_SHARE = 0.05


def as_matrix(X: Any) -> Any:
    """A 2-D float32 or float64 array, or a canonical CSR matrix; X itself if it is one of these."""
    if is_sparse(X):
        return _as_csr(X)
    X = np.asarray(X)
    if X.dtype not in (np.float64, np.float32):
        X = _as_numbers(X)
    if X.ndim != 2:
        raise ValueError(
            f"samples must be the rows of a two-dimensional array, but the shape is {X.shape}; "
            "reshape(-1, 1) makes one feature of a list of numbers, reshape(1, -1) one sample"
        )
    return X


def _as_csr(X: Any) -> Any:
    X = X.tocsr()
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _as_numbers(X: Any) -> Any:
    try:
        if X.dtype.kind not in "biufO":
            raise TypeError
        return X.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"this kernel compares vectors of real numbers, not {X.dtype}; for strings there is Spectrum, and "
            "FromFunction(f, accepts='sequences')"
        ) from None


def check_same_width(X: Any, Z: Any) -> None:
    """X and Z must have the same features."""
    if X.shape[1] != Z.shape[1]:
        raise ValueError(
            f"samples with {X.shape[1]} features cannot be compared with samples with {Z.shape[1]} features"
        )


def dot(X: Any, Z: Any) -> Floats:
    """The matrix ⟨x_i, z_j⟩ in float64, C-ordered."""
    check_same_width(X, Z)
    X, Z = narrowed(widened(X), widened(Z))
    if is_sparse(X) and is_sparse(Z) and _is_crowded(Z):
        Z = Z.toarray()
    with np.errstate(over="ignore", invalid="ignore"):
        product = X @ Z.T
    return np.ascontiguousarray(dense(product))


def _is_crowded(Z: Any) -> bool:
    """Whether a CSR block is so small and full that products with its dense form are faster."""
    entries = Z.shape[0] * Z.shape[1]
    return bool(8 * entries <= _DENSE_BYTES and Z.nnz > _DENSE_SHARE * entries)


def widened(X: Any) -> Any:
    """X in float64; X itself if it is float64 already."""
    return X if X.dtype == np.float64 else X.astype(np.float64)


def dense(X: Any) -> Any:
    """X as an array."""
    return X.toarray() if is_sparse(X) else X


def combined(weights: Floats, Z: Any) -> Floats:
    """Σ_j weights_ij z_j in float64."""
    return np.asarray(weights @ widened(Z), dtype=np.float64)


def weighted_differences(weights: Floats, X: Any, Z: Any) -> Floats:
    """Σ_j weights_ij (x_i − z_j); from the differences themselves for arrays, which need not cancel."""
    check_same_width(X, Z)
    if is_sparse(X) or is_sparse(Z):
        return np.asarray(weights.sum(axis=1)[:, None] * dense(widened(X)) - combined(weights, Z))
    out = np.zeros(X.shape)
    for i, rows, x, z in row_and_rows(X, Z):
        out[i] += weights[i, rows] @ (x - z)
    return out


def row_and_rows(X: Any, Z: Any) -> Iterator[tuple[int, slice, Floats, Floats]]:
    """Every row of X with about a megabyte of rows of Z at a time: i, which rows of Z, and both as float64 arrays."""
    step = max(1, STRIP_BYTES // (8 * max(1, X.shape[1])))
    for start in range(0, Z.shape[0], step):
        rows = slice(start, min(Z.shape[0], start + step))
        z = widened(dense(Z[rows]))
        for i in range(X.shape[0]):
            yield i, rows, widened(dense(X[i : i + 1]))[0], z


def squared_lengths(X: Any) -> Floats:
    """‖x_i‖² in float64, without a float64 copy of all of X."""
    out = np.empty(X.shape[0])
    with np.errstate(over="ignore"):
        for rows in strips(X):
            block = widened(X[rows])
            if is_sparse(block):
                out[rows] = over_rows(np.add, block.data**2, block)
            else:
                out[rows] = np.einsum("ij,ij->i", block, block)
    return out


def nonzero_rows(X: Any) -> Any:
    """Which rows have an entry other than 0."""
    out = np.empty(X.shape[0], dtype=np.bool_)
    for rows in strips(X):
        block = X[rows]
        out[rows] = (
            over_rows(np.maximum, np.abs(block.data), block) != 0 if is_sparse(block) else (block != 0).any(axis=1)
        )
    return out


def over_rows(reduce: Any, values: Floats, X: Any) -> Floats:
    """A sum or maximum over each row of a CSR matrix, of one value per stored entry; 0 for an empty row."""
    out = np.zeros(X.shape[0])
    filled = np.flatnonzero(np.diff(X.indptr))
    if len(filled):
        out[filled] = reduce.reduceat(values, X.indptr[filled])
    return out


def unit_rows(X: Any) -> Any:
    """Rows scaled to length 1, in float64; zero rows stay zero. Squares neither overflow nor underflow."""
    X = widened(X)
    if is_sparse(X):
        per_row = np.diff(X.indptr)
        data = X.data / np.repeat(_or_one(over_rows(np.maximum, np.abs(X.data), X)), per_row)
        data /= np.repeat(_or_one(np.sqrt(over_rows(np.add, data**2, X))), per_row)
        return with_data(X, data)
    X = X / _or_one(np.abs(X).max(axis=1, initial=0.0))[:, None]
    X /= _or_one(np.sqrt(np.einsum("ij,ij->i", X, X)))[:, None]
    return X


def _or_one(lengths: Floats) -> Floats:
    return np.where(lengths > 0, lengths, 1.0)


def with_data(X: Any, data: Floats) -> Any:
    """A CSR matrix with the pattern of X and other values."""
    made = type(X)((data, X.indices, X.indptr), shape=X.shape, copy=False)
    made.has_canonical_format = True
    return made


def strips(X: Any) -> Iterator[slice]:
    """Ranges of rows whose entries take about a megabyte in float64."""
    n = X.shape[0]
    step = max(1, STRIP_BYTES // (8 * width(X)))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def width(X: Any) -> int:
    """The number of entries in a row; for a CSR matrix, the average number of stored ones."""
    return 1 + X.nnz // max(1, X.shape[0]) if is_sparse(X) else max(1, int(X.shape[1]))


def read_only(X: Any) -> Any:
    """Samples in float64 for a user's function; writing to them is an error."""
    if is_sparse(X):
        X = widened(X)
        parts = tuple(part.view() for part in (X.data, X.indices, X.indptr))
        return freeze(type(X)(parts, shape=X.shape, copy=False))
    if isinstance(X, np.ndarray):
        return freeze((widened(X) if X.dtype == np.float32 else X).view())
    return list(X)


def call(function: Callable[..., Any], *blocks: Any) -> Any:
    """The result of a user's function of blocks of samples, which it cannot change.

    Some compiled code asks for writable memory although it only reads (Cython's memoryviews, as in scikit-learn's
    chi2_kernel). It gets copies.
    """
    try:
        return function(*map(read_only, blocks))
    except ValueError as error:
        if "buffer source array is read-only" not in str(error):
            raise
    return function(*(read_only(block).copy() for block in blocks))


def numbers_of(function: Callable[[Any], Any], X: Any) -> Floats:
    """One number for each sample, as a user's function gives them."""
    values = np.asarray(call(function, X))
    n = n_samples(X)
    if values.shape != (n,) or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise ValueError(
            f"the function {name_of(function)} must give one finite number per sample: an array of shape ({n},), not "
            f"{values.dtype} of shape {values.shape}"
        )
    return values.astype(np.float64)


def name_of(function: Any) -> str:
    """The name of a user's function, for messages."""
    return str(getattr(function, "__qualname__", None) or repr(function))
