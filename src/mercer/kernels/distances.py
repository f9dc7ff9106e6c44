"""Distances between rows that survive offsets: squared Euclidean ones centred and clamped at 0, and L1.

‖x − z‖² = ‖x − c‖² + ‖z − c‖² − 2⟨x − c, z − c⟩ for any centre c. The centre is the mean of Z, so that a prediction does not
depend on the batch it is made in. Where the three terms cancel, the distance is taken from the difference x − z instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from mercer.arrays import Floats
from mercer.kernels.matrices import check_same_width, dot, squared_lengths, strips, widened, with_data

# Below this share of ‖x − c‖² + ‖z − c‖² fewer than eight digits are left of a difference of float64 numbers.
_CANCELLED = 1e-8
# Pairs computed from their difference are gathered this many bytes at a time.
_GATHER_BYTES = 4 << 20


def squared_distances(X: Any, Z: Any, factor: Floats | None = None) -> Floats:
    """‖x_i − z_j‖², or ‖(x_i − z_j) F‖² with a matrix F = ``factor``; dense and CSR in any combination."""
    check_same_width(X, Z)
    with np.errstate(over="ignore", invalid="ignore"):
        same = X is Z
        X = widened(X)
        Z = X if same else widened(Z)
        centre = _centre(X, Z)
        from_x = _centred(X, centre, factor)
        from_z = from_x if same else _centred(Z, centre, factor)
        squares_x = squared_lengths(from_x)
        squares_z = squares_x if same else squared_lengths(from_z)
        out = dot(from_x, from_z)
        for rows in strips(*out.shape):
            size = squares_x[rows, None] + squares_z
            strip = out[rows]
            strip *= -2.0
            strip += size
            size *= _CANCELLED
            cancelled = ~(strip > size)  # and where infinities made NaN
            if cancelled.any():
                _from_differences(strip, cancelled, X[rows], Z, factor)
        np.maximum(out, 0.0, out=out)
    return out


def _centre(X: Any, Z: Any) -> Floats:
    """Column means of Z; 0 where a CSR matrix has implicit zeros, which shifting would fill in."""
    centre = np.asarray(Z.mean(axis=0), dtype=np.float64).ravel() if Z.shape[0] else np.zeros(Z.shape[1])
    for matrix in (X, Z):
        if sp.issparse(matrix):
            full = np.bincount(matrix.indices, minlength=matrix.shape[1]) == matrix.shape[0]
            centre = np.where(full, centre, 0.0)
    return np.where(np.isfinite(centre), centre, 0.0)


def _centred(X: Any, centre: Floats, factor: Floats | None) -> Any:
    if sp.issparse(X):
        X = with_data(X, X.data - centre[X.indices]) if centre.any() else X
    else:
        X = X - centre
    return X if factor is None else X @ factor


def _from_differences(out: Floats, chosen: Any, X: Any, Z: Any, factor: Floats | None) -> None:
    """Recompute the chosen entries of ``out``, a strip of rows, as ‖x − z‖²."""
    rows, columns = np.nonzero(chosen)
    sparse = sp.issparse(X) and sp.issparse(Z)
    if (
        not sparse
        and not sp.issparse(Z)
        and not sp.issparse(X)
        and len(rows) > 0.05 * out.size
        and factor is None
    ):
        out[...] = np.where(chosen, cdist(X, Z, "sqeuclidean"), out)
        return
    step = max(1, _GATHER_BYTES // (8 * max(1, X.shape[1])))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        if sparse:
            difference = X[i] - Z[j]
        else:
            difference = _dense(X[i]) - _dense(Z[j])
        if factor is not None:
            difference = difference @ factor
        out[i, j] = squared_lengths(difference)


def l1_distances(X: Any, Z: Any) -> Floats:
    """Σ_f |x_if − z_jf|."""
    return by_dense_blocks(lambda x, z: cdist(x, z, "cityblock"), X, Z)


def by_dense_blocks(function: Callable[[Floats, Floats], Floats], X: Any, Z: Any) -> Floats:
    """``function(x, z)`` of dense blocks, where columns that are zero in both contribute nothing."""
    check_same_width(X, Z)
    if not sp.issparse(X) and not sp.issparse(Z):
        return np.ascontiguousarray(function(widened(X), widened(Z)), dtype=np.float64)
    if sp.issparse(X) and sp.issparse(Z):
        used = np.union1d(X.indices, Z.indices)
        X, Z = X[:, used], Z[:, used]
    out = np.empty((X.shape[0], Z.shape[0]))
    for columns in strips(Z.shape[0], Z.shape[1]):
        z = widened(_dense(Z[columns]))
        for rows in strips(X.shape[0], X.shape[1]):
            out[rows, columns] = function(widened(_dense(X[rows])), z)
    return out


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X
