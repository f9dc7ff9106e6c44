"""Sparse matrices as users give them: refused if they are damaged, and made canonical without changing them.

A user who changes the arrays of a matrix can make indices point outside its shape. scipy does not check that, and
converting such a matrix reads and writes foreign memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def check_sparse(X: Any) -> None:
    """Refuse a matrix whose arrays do not belong together."""
    if X.ndim != 2:
        return  # scikit-learn raises the error for that
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X)
    elif X.format == "coo":
        _expect(X, X.row.shape == X.col.shape == X.data.shape, "row, col and data differ in length")
        for name, index, size in (("row", X.row, X.shape[0]), ("col", X.col, X.shape[1])):
            _check_range(X, name, index, size)
    elif X.format == "dia":
        _expect(X, X.data.ndim == 2 and len(X.data) == len(X.offsets), "data must have one row for each of offsets")
        _expect(X, X.offsets.dtype.kind in "iu", f"offsets must be integers, not {X.offsets.dtype}")


def canonical_csr(X: Any) -> Any:
    """Sorted, without duplicates or stored zeros; the caller's matrix is never changed."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if (X.data == 0).any():
        X = X.copy()
        X.eliminate_zeros()
    return X


def _check_compressed(X: Any) -> None:
    rows, columns = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format == "bsr":
        rows, columns = rows // X.blocksize[0], columns // X.blocksize[1]
    ends, stored = X.indptr, len(X.indices)
    whole = ends.dtype.kind in "iu" and X.indices.dtype.kind in "iu"
    _expect(X, whole, f"indices and indptr must be integers, not {X.indices.dtype} and {ends.dtype}")
    _expect(X, len(X.data) == stored, f"indices holds {stored} entries, but data holds {len(X.data)}")
    rising = len(ends) == rows + 1 and ends[0] == 0 and ends[-1] <= stored and not (np.diff(ends) < 0).any()
    _expect(X, rising, f"indptr must rise from 0 to at most {stored} in {rows + 1} entries")
    _check_range(X, "indices", X.indices[: ends[-1]], columns)


def _check_range(X: Any, name: str, index: Any, size: int) -> None:
    _expect(X, index.dtype.kind in "iu", f"{name} must hold integers, not {index.dtype}")
    for wrong in (index.min(initial=0), index.max(initial=0)):
        within = 0 <= wrong < max(size, 1)
        _expect(X, within, f"{name} holds {wrong}, but its shape is {X.shape} and only 0 to {size - 1} exist")


def _expect(X: Any, sound: bool, otherwise: str) -> None:
    if not sound:
        raise ValueError(f"X is a damaged {X.format.upper()} matrix: its {otherwise}")
