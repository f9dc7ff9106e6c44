"""Distances between rows, accurate for data far from 0: squared Euclidean ones (never negative) and L1.

    ‖x − z‖² = ‖x − c‖² + ‖z − c‖² − 2⟨x − c, z − c⟩  for any centre c

The centre is the mean of Z, so that a prediction does not depend on the batch it is made in. Where the three terms
cancel, as for equal samples, the distance is computed from the difference x − z instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from mercer.arrays import Flags, Floats, is_sparse
from mercer.kernels.matrices import (
    check_same_width,
    dense,
    dot,
    squared_lengths,
    strips,
    widened,
    width,
    with_data,
)

# Below this share of ‖x − c‖² + ‖z − c‖² fewer than twelve digits of a difference of float64 numbers are correct.
_CANCELLED_SHARE = 1e-4
# Differences of rows are held in blocks of this size.
_GATHER_BYTES = 4 << 20
# If more than this share of the pairs must be recomputed, recomputing all of them without gathering rows is faster.
_GATHER_SHARE = 0.05


def squared_distances(X: Any, Z: Any, factor: Floats | None = None) -> Floats:
    """‖x_i − z_j‖², or ‖(x_i − z_j)ᵀF‖² with a matrix F = ``factor``; dense and CSR in any combination."""
    check_same_width(X, Z)
    same = X is Z
    X = widened(X)
    Z = X if same else widened(Z)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = _centre(X, Z)
        from_x = _centred(X, centre, factor)
        from_z = from_x if same else _centred(Z, centre, factor)
        squares_x = squared_lengths(from_x)
        squares_z = squares_x if same else squared_lengths(from_z)
        out = dot(from_x, from_z)
        for rows in strips(out):
            strip = out[rows]
            size = squares_x[rows, None] + squares_z
            strip *= -2.0
            strip += size
            size *= _CANCELLED_SHARE
            cancelled = ~(strip > size)  # also true for NaN, the result of an overflow
            if cancelled.any():
                _from_differences(strip, cancelled, X[rows], Z, factor)
        np.maximum(out, 0.0, out=out)
    return out


def _centre(X: Any, Z: Any) -> Floats:
    """Column means of Z; 0 for columns in which a CSR matrix has implicit zeros, to keep it sparse."""
    full = np.ones(Z.shape[1], dtype=np.bool_)
    for matrix in (X, Z):
        if is_sparse(matrix):
            full &= np.bincount(matrix.indices, minlength=matrix.shape[1]) == matrix.shape[0]
    if not full.any():
        return np.zeros(Z.shape[1])
    centre = np.asarray(Z.mean(axis=0), dtype=np.float64).ravel()
    return np.where(full & np.isfinite(centre), centre, 0.0)


def _centred(X: Any, centre: Floats, factor: Floats | None) -> Any:
    if centre.any():
        X = with_data(X, X.data - centre[X.indices]) if is_sparse(X) else X - centre
    return X if factor is None else X @ factor


def _from_differences(out: Floats, chosen: Flags, X: Any, Z: Any, factor: Floats | None) -> None:
    """Replace the chosen entries of ``out`` by ‖x − z‖², computed without cancellation."""
    rows, columns = np.divmod(np.flatnonzero(chosen), out.shape[1])
    sparse = is_sparse(X) or is_sparse(Z)
    if not sparse and factor is None and len(rows) > _GATHER_SHARE * out.size:
        out[chosen] = cdist(X, Z, "sqeuclidean")[chosen]
        return
    alike = is_sparse(X) == is_sparse(Z)
    step = max(1, _GATHER_BYTES // (8 * (width(X) + width(Z) if alike else X.shape[1])))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        difference = X[i] - Z[j] if alike else dense(X[i]) - dense(Z[j])
        out[i, j] = squared_lengths(difference if factor is None else difference @ factor)


def l1_distances(X: Any, Z: Any) -> Floats:
    """Σ_f |x_if − z_jf|."""
    return by_dense_blocks(lambda x, z: cdist(x, z, "cityblock"), X, Z)


def by_dense_blocks(function: Callable[[Floats, Floats], Floats], X: Any, Z: Any) -> Floats:
    """``function(x, z)`` of dense blocks; columns that are zero in both must contribute nothing to it."""
    check_same_width(X, Z)
    if not is_sparse(X) and not is_sparse(Z):
        return np.ascontiguousarray(function(widened(X), widened(Z)), dtype=np.float64)
    if is_sparse(X) and is_sparse(Z):
        used = np.union1d(X.indices, Z.indices)
        X, Z = X[:, used], Z[:, used]
    out = np.empty((X.shape[0], Z.shape[0]))
    step = max(1, _GATHER_BYTES // (8 * max(1, X.shape[1])))
    for left in range(0, Z.shape[0], step):
        z = widened(dense(Z[left : left + step]))
        for top in range(0, X.shape[0], step):
            x = widened(dense(X[top : top + step]))
            out[top : top + step, left : left + step] = function(x, z)
    return out
