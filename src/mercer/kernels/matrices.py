"""Blocks of vectors, dense or CSR alike: float64 rows, inner products, lengths, and views that cannot be written to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats

# Temporaries of a row-by-row pass stay in the second-level cache.
_STRIP_BYTES = 1 << 20


def as_matrix(X: Any) -> Any:
    """A 2-D float32 or float64 array, or a canonical CSR matrix; a copy only where X is neither."""
    if sp.issparse(X):
        return _as_csr(X)
    X = np.asarray(X)
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
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


def check_same_width(X: Any, Z: Any) -> None:
    """X and Z must have the same features."""
    if X.shape[1] != Z.shape[1]:
        raise ValueError(
            f"samples with {X.shape[1]} features cannot be compared with samples with {Z.shape[1]} features"
        )


def dot(X: Any, Z: Any) -> Floats:
    """The matrix ⟨x_i, z_j⟩ in float64, C-ordered."""
    check_same_width(X, Z)
    X, Z = widened(X), widened(Z)
    with np.errstate(over="ignore", invalid="ignore"):
        product = X @ Z.T
    return np.ascontiguousarray(product.toarray() if sp.issparse(product) else product)


def widened(X: Any) -> Any:
    """X in float64; X itself where it is already."""
    return X if X.dtype == np.float64 else X.astype(np.float64)


def squared_lengths(X: Any) -> Floats:
    """‖x_i‖² in float64, without a float64 copy of all of X."""
    out = np.empty(X.shape[0])
    with np.errstate(over="ignore"):
        for rows in strips(X.shape[0], X.shape[1]):
            block = widened(X[rows])
            if sp.issparse(block):
                out[rows] = row_sums(block.data**2, block)
            else:
                out[rows] = np.einsum("ij,ij->i", block, block)
    return out


def row_sums(values: Floats, X: Any) -> Floats:
    """Sums over each row of a CSR matrix, of one value per stored entry."""
    totals = np.zeros(X.shape[0])
    filled = np.flatnonzero(np.diff(X.indptr))
    if len(filled):
        totals[filled] = np.add.reduceat(values, X.indptr[filled])
    return totals


def unit_rows(X: Any) -> Any:
    """Rows scaled to length 1, in float64; zero rows stay zero. Squares neither overflow nor underflow."""
    X = widened(X)
    if sp.issparse(X):
        largest = np.asarray(abs(X).max(axis=1).todense()).ravel() if X.shape[1] else np.zeros(X.shape[0])
        per_row = np.diff(X.indptr)
        data = X.data / np.repeat(np.where(largest > 0, largest, 1.0), per_row)
        length = np.sqrt(row_sums(data**2, X))
        data /= np.repeat(np.where(length > 0, length, 1.0), per_row)
        return with_data(X, data)
    largest = np.abs(X).max(axis=1, initial=0.0)
    X = X / np.where(largest > 0, largest, 1.0)[:, None]
    length = np.sqrt(np.einsum("ij,ij->i", X, X))
    X /= np.where(length > 0, length, 1.0)[:, None]
    return X


def with_data(X: Any, data: Floats) -> Any:
    """A CSR matrix with the pattern of X and other values."""
    made = type(X)((data, X.indices, X.indptr), shape=X.shape, copy=False)
    made.has_canonical_format = True
    return made


def strips(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Row ranges whose float64 values take about a megabyte."""
    step = max(1, _STRIP_BYTES // (8 * max(1, n_columns)))
    for start in range(0, n_rows, step):
        yield slice(start, min(n_rows, start + step))


def read_only(X: Any) -> Any:
    """The same samples for a user's function, which gets an error when it writes to them."""
    if sp.issparse(X):
        parts = [part.view() for part in (X.data, X.indices, X.indptr)]
        view = type(X)(tuple(parts), shape=X.shape, copy=False)
        for part in (view.data, view.indices, view.indptr):
            part.flags.writeable = False
        return view
    if isinstance(X, np.ndarray):
        view = X.view()
        view.flags.writeable = False
        return view
    return list(X)


def n_samples(X: Any) -> int:
    """The number of samples in an array, a CSR matrix or a sequence."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
