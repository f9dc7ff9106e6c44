"""Functions of dense or CSR matrices: conversion, products, norms, read-only views, used columns, extreme entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.samples.arrays import (
    Flags,
    Floats,
    Indices,
    Samples,
    freeze,
    is_sparse,
    moments,
    n_samples,
    physical_memory,
)
from mercer.samples.engine import EngineSamples, to_engine

# A block of CSR rows is made dense for a product if its dense form is at most this large and more than this share of
# its entries is stored: with 5 % of 1,000 × 1,000 entries both forms are equally fast, with 20 % the dense one is twice
# as fast.
_DENSE_BYTES = 32 << 20
_DENSE_SHARE = 0.05


def as_matrix(X: Samples) -> Samples:
    """Return X as a 2-D float32 or float64 array, a canonical CSR matrix or an engine's samples; itself if possible."""
    X = to_engine(X)
    if isinstance(X, EngineSamples):
        return X
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


def _as_csr(X: Samples) -> Samples:
    """Return a sparse matrix as a canonical CSR matrix of float32 or float64."""
    X = X.tocsr()
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _as_numbers(X: Samples) -> Samples:
    """Return an array of other numbers in float64; raise ValueError if it holds no real numbers."""
    try:
        if X.dtype.kind not in "biufO":
            raise TypeError
        return X.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"this kernel compares vectors of real numbers, not {X.dtype}; for strings there is Spectrum, and "
            "FromFunction(f, accepts='sequences')"
        ) from None


def check_same_width(X: Samples, Z: Samples) -> None:
    """Raise an error unless X and Z have the same number of features."""
    if X.shape[1] != Z.shape[1]:
        raise ValueError(
            f"samples with {X.shape[1]} features cannot be compared with samples with {Z.shape[1]} features"
        )


def dot(X: Samples, Z: Samples) -> Floats:
    """Return the matrix of inner products ⟨x_i, z_j⟩ in float64, C-ordered."""
    check_same_width(X, Z)
    X, Z = drop_shared_empty_columns(as_float64(X), as_float64(Z))
    if is_sparse(X) and is_sparse(Z) and _is_crowded(Z):
        Z = Z.toarray()
    with np.errstate(over="ignore", invalid="ignore"):
        product = X @ Z.T
    return np.ascontiguousarray(dense(product))


def _is_crowded(Z: Samples) -> bool:
    """Return whether a CSR block is so small and full that products with its dense form are faster."""
    entries = Z.shape[0] * Z.shape[1]
    return bool(8 * entries <= _DENSE_BYTES and Z.nnz > _DENSE_SHARE * entries)


def as_float64(X: Samples) -> Samples:
    """Return X in float64; X itself if it is float64 already."""
    return X if X.dtype == np.float64 else X.astype(np.float64)


def dense(X: Samples) -> Samples:
    """Return X as a dense array."""
    return X.toarray() if is_sparse(X) else X


def combined(weights: Floats, Z: Samples) -> Floats:
    """Return the linear combinations Σ_j weights_ij z_j of the rows of Z in float64."""
    return np.asarray(weights @ as_float64(Z), dtype=np.float64)


def weighted_differences(weights: Floats, X: Samples, Z: Samples) -> Floats:
    """Return Σ_j weights_ij (x_i − z_j); for dense arrays from the differences, to avoid cancellation."""
    check_same_width(X, Z)
    if is_sparse(X) or is_sparse(Z):
        return np.asarray(weights.sum(axis=1)[:, None] * dense(as_float64(X)) - combined(weights, Z))
    out = np.zeros(X.shape)
    for i, rows, x, z in rows_with_blocks(X, Z):
        out[i] += weights[i, rows] @ (x - z)
    return out


def rows_with_blocks(X: Samples, Z: Samples) -> Iterator[tuple[int, slice, Floats, Floats]]:
    """Yield (i, rows, x_i, Z[rows]) in float64 for each row x_i of X and each block `rows` of Z of about a megabyte."""
    for rows in pieces(Z.shape[0], X.shape[1]):
        z = as_float64(dense(Z[rows]))
        for i in range(X.shape[0]):
            yield i, rows, as_float64(dense(X[i : i + 1]))[0], z


def row_by_row(function: Callable[[Floats, Floats], Floats], X: Samples, Z: Samples) -> Floats:
    """Return the matrix whose row i is function(x_i, Z), computed for blocks of Z; overflow is not reported."""
    check_same_width(X, Z)
    out = np.empty((X.shape[0], Z.shape[0]))
    with np.errstate(over="ignore", invalid="ignore"):
        for i, rows, x, z in rows_with_blocks(X, Z):
            out[i, rows] = function(x, z)
    return out


def column_spreads(X: Samples) -> Floats:
    """Return each column's standard deviation; for a CSR matrix with more columns than entries, of used columns."""
    if isinstance(X, EngineSamples) or not is_sparse(X):
        return moments(X)[1]
    X, _ = drop_shared_empty_columns(X, X)
    square = np.asarray(X.multiply(X).mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def smallest_entry(X: Samples) -> float:
    """Return the smallest stored entry; 0 if there is none."""
    if isinstance(X, EngineSamples):
        return X.extremes()[0]
    entries = X.data if is_sparse(X) else X
    return float(entries.min()) if entries.size else 0.0


def squared_lengths(X: Samples) -> Floats:
    """Return the squared norms ‖x_i‖² in float64, without a float64 copy of all of X."""
    if isinstance(X, EngineSamples):
        return X.squared_lengths()
    out = np.empty(X.shape[0])
    with np.errstate(over="ignore"):
        for rows in strips(X):
            block = as_float64(X[rows])
            if is_sparse(block):
                out[rows] = reduce_rows(np.add, block.data**2, block)
            else:
                out[rows] = np.einsum("ij,ij->i", block, block)
    return out


def nonzero_rows(X: Samples) -> Flags:
    """Return for each row whether it has an entry other than 0."""
    out = np.empty(X.shape[0], dtype=np.bool_)
    for rows in strips(X):
        block = X[rows]
        out[rows] = (
            reduce_rows(np.maximum, np.abs(block.data), block) != 0 if is_sparse(block) else (block != 0).any(axis=1)
        )
    return out


def reduce_rows(reduce: np.ufunc, values: Floats, X: Samples) -> Floats:
    """Reduce values of the stored entries over each row of a CSR matrix by a sum or a maximum; 0 for an empty row."""
    out = np.zeros(X.shape[0])
    filled_rows = np.flatnonzero(np.diff(X.indptr))
    if len(filled_rows):
        out[filled_rows] = reduce.reduceat(values, X.indptr[filled_rows])
    return out


def unit_rows(X: Samples) -> Samples:
    """Scale rows to length 1, in float64, without overflow or underflow of squares; zero rows stay zero."""
    X = as_float64(X)
    if is_sparse(X):
        per_row = np.diff(X.indptr)
        data = X.data / np.repeat(_replace_zeros(reduce_rows(np.maximum, np.abs(X.data), X)), per_row)
        data /= np.repeat(_replace_zeros(np.sqrt(reduce_rows(np.add, data**2, X))), per_row)
        return with_data(X, data)
    X = X / _replace_zeros(np.abs(X).max(axis=1, initial=0.0))[:, None]
    X /= _replace_zeros(np.sqrt(np.einsum("ij,ij->i", X, X)))[:, None]
    return X


def _replace_zeros(lengths: Floats) -> Floats:
    """Return the lengths with 1 in place of 0, so that rows can be divided by them."""
    return np.where(lengths > 0, lengths, 1.0)


def with_data(X: Samples, data: Floats) -> Samples:
    """Return a CSR matrix with the pattern of X and other values."""
    matrix = type(X)((data, X.indices, X.indptr), shape=X.shape, copy=False)
    matrix.has_canonical_format = True
    return matrix


def strips(X: Samples) -> Iterator[slice]:
    """Split the rows of X into ranges whose entries take about a megabyte in float64."""
    return pieces(X.shape[0], width(X))


def pieces(n: int, width: int) -> Iterator[slice]:
    """Split n rows of `width` numbers into ranges of about a megabyte, which stay in the second-level cache."""
    step = max(1, (1 << 20) // (8 * max(1, width)))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def width(X: Samples) -> int:
    """Return the number of entries of a row; for a CSR matrix, 1 + the average number of stored entries."""
    return 1 + X.nnz // max(1, X.shape[0]) if is_sparse(X) else max(1, int(X.shape[1]))


def read_only(X: Samples) -> Samples:
    """Return read-only float64 samples for a user's function."""
    if is_sparse(X):
        X = as_float64(X)
        parts = tuple(part.view() for part in (X.data, X.indices, X.indptr))
        return freeze(type(X)(parts, shape=X.shape, copy=False))
    if isinstance(X, np.ndarray):
        return freeze((as_float64(X) if X.dtype == np.float32 else X).view())
    return list(X)


def call(function: Callable[..., Any], *blocks: Samples) -> Any:
    """Call a user's function with read-only blocks of samples.

    Some compiled code asks for writable memory although it only reads, for example Cython's memoryviews in
    scikit-learn's chi2_kernel. Such code gets copies.
    """
    try:
        return function(*map(read_only, blocks))
    except ValueError as error:
        if "buffer source array is read-only" not in str(error):
            raise
    return function(*(read_only(block).copy() for block in blocks))


def call_for_numbers(function: Callable[[Samples], ArrayLike], X: Samples) -> Floats:
    """Call a user's function that returns one finite number per sample, and check its result."""
    values = np.asarray(call(function, X))
    n = n_samples(X)
    if values.shape != (n,) or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise ValueError(
            f"the function {function_name(function)} must return one finite number per sample: an array of shape "
            f"({n},), not {values.dtype} of shape {values.shape}"
        )
    return values.astype(np.float64)


def function_name(function: object) -> str:
    """Return the name of a user's function, for messages."""
    return str(getattr(function, "__qualname__", None) or repr(function))


# Hashed text has a million columns and more, of which a few thousand rows use a small part. Such data are reduced to
# the columns that they use, renumbered, so that empty columns take no memory.
#
# A lookup table with an element per column is built if it has at most this many elements per stored entry. A lookup
# takes a tenth of the time of sorting and searching.
_COLUMNS_PER_ENTRY = 4


def used_columns(*matrices: Samples) -> Indices:
    """Return the columns in which any of the CSR matrices has an entry, in ascending order."""
    indices = matrices[0].indices if len(matrices) == 1 else np.concatenate([X.indices for X in matrices])
    d = matrices[0].shape[1]
    if d <= _COLUMNS_PER_ENTRY * len(indices):
        used = np.zeros(d, dtype=bool)
        used[indices] = True
        return np.flatnonzero(used)
    return np.unique(indices).astype(np.intp, copy=False)


def positions_among(used: Indices, indices: NDArray[np.integer[Any]], d: int) -> NDArray[np.int32]:
    """Return the position of each column index, out of d columns, among the used columns; len(used) if it is not used.

    The order of columns stays the same.
    """
    if d <= _COLUMNS_PER_ENTRY * len(indices):
        table = np.full(d, len(used), dtype=np.int32)
        table[used] = np.arange(len(used), dtype=np.int32)
        return np.asarray(table[indices])
    positions = np.searchsorted(used, indices).astype(np.int32)
    is_used = np.append(used, -1)[positions] == indices
    return np.where(is_used, positions, np.int32(len(used)))


def drop_shared_empty_columns(X: Samples, Z: Samples) -> tuple[Samples, Samples]:
    """Drop the columns that are empty in both of two CSR matrices, if these have more columns than entries."""
    if not (is_sparse(X) and is_sparse(Z) and X.shape[1] > X.nnz + Z.nnz):
        return X, Z
    used = used_columns(X) if X is Z else used_columns(X, Z)
    x = _take_columns(X, used)
    return x, x if X is Z else _take_columns(Z, used)


def without_empty_columns(X: Samples) -> tuple[Samples, Indices | None]:
    """Return a CSR matrix without empty columns, and its used columns; X and None unless columns outnumber entries.

    `over_all_columns` later spreads the weights of the used columns over all columns; an error is raised here if these
    weights would not fit into memory.
    """
    if isinstance(X, EngineSamples) or not (is_sparse(X) and X.shape[1] > X.nnz):
        return X, None
    check_column_memory(X.shape[1])
    used = used_columns(X)
    return _take_columns(X, used), used


def check_column_memory(d: int, n_numbers: int = 1) -> None:
    """Raise a MemoryError if `n_numbers` float64 numbers for each of d columns exceed the host's memory.

    Trying the allocation would not show it: many systems grant any amount of memory, and kill the process that uses it.
    """
    needed_bytes, installed_bytes = 8.0 * n_numbers * d, physical_memory()
    if needed_bytes > installed_bytes:
        raise MemoryError(
            f"X has {d:,} columns, whose weights need {needed_bytes / 1e9:.0f} GB, but this computer has "
            f"{installed_bytes / 1e9:.0f} GB; renumber the features that occur, or hash them into fewer columns"
        )


def over_all_columns(W: Floats, used: Indices | None, d: int) -> Floats:
    """Return numbers for all d columns, in the last axis, from those for the used columns; the others are zero."""
    if used is None:
        return W
    out = np.zeros((*W.shape[:-1], d))
    out[..., used] = W
    return out


def _take_columns(X: Samples, used: Indices) -> Samples:
    """Return a CSR matrix with the used columns only, without a copy of the entries."""
    indices = positions_among(used, X.indices, X.shape[1])
    matrix = type(X)((X.data, indices, X.indptr), shape=(X.shape[0], len(used)), copy=False)
    matrix.has_canonical_format = X.has_canonical_format
    return matrix


# Entries whose squares overflow or underflow float64 (below about 10⁻¹⁵⁴ or above 10¹⁵⁴) are scaled by powers of two,
# which is exact. If all entries are of an ordinary size, nothing is done.
#
# If entries are 0 or between these two sizes, their differences are 0 or at least 2⁻⁴³³, since they have 53 bits: no
# square, sum of squares or product of two entries is lost.
_SMALLEST_ENTRY, _LARGEST_ENTRY = 2.0**-380, 2.0**380


def ordinary(*samples: Samples) -> bool:
    """Return whether squares and products of all entries, and squares of differences, have full precision."""
    return all(_is_ordinary(X) for X in samples)


def _is_ordinary(X: Samples) -> bool:
    """Return whether all entries of X are of an ordinary size."""
    if X.dtype == np.float32:  # every float32 is of an ordinary size
        return True
    if is_sparse(X):
        return _are_ordinary(X.data)
    return all(_are_ordinary(X[rows]) for rows in strips(X))


def _are_ordinary(entries: Floats) -> bool:
    """Return whether all numbers are 0 or of an ordinary size."""
    sizes = np.abs(entries)
    return not (((sizes < _SMALLEST_ENTRY) & (sizes != 0)) | (sizes > _LARGEST_ENTRY)).any()


def exponents(X: Samples) -> Indices:
    """Return the exponent e of each row with 2^(e−1) ≤ max |x| < 2^e; 0 for a row of zeros."""
    largest = reduce_rows(np.maximum, np.abs(X.data), X) if is_sparse(X) else np.abs(X).max(axis=1, initial=0.0)
    return np.asarray(np.frexp(largest)[1], dtype=np.intp)


def times_power(X: Samples, exponent: int | Indices) -> Samples:
    """Return X · 2^exponent, with one exponent or one for each row."""
    if not is_sparse(X):
        return np.ldexp(X, np.broadcast_to(np.reshape(exponent, (-1, 1)), X.shape))
    per_entry = np.repeat(np.broadcast_to(exponent, X.shape[0]), np.diff(X.indptr))
    return with_data(X, np.ldexp(X.data, per_entry))


def length_of_differences(X: Samples, Z: Samples) -> Floats:
    """Return the Euclidean distances ‖x_i − z_i‖ of pairs of rows, with entries of any size."""
    difference = dense(X) - dense(Z)
    exponent = exponents(difference)
    difference = times_power(difference, -exponent)
    return np.asarray(np.ldexp(np.sqrt(np.einsum("ij,ij->i", difference, difference)), exponent))
