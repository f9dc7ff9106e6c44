"""Wide sparse data by the columns that they use, renumbered, so that nothing takes memory for columns that are empty.

Hashed text has a million columns and more, of which a few thousand rows use a small part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Indices, is_sparse, physical_memory

# A table with an element per column is made if it has at most this many elements per stored entry. Looking up in it
# takes a tenth of the time that sorting and searching take.
_COLUMNS_PER_ENTRY = 4


def used_columns(*matrices: Any) -> Indices:
    """The columns in which some of these CSR matrices has an entry, in ascending order."""
    indices = matrices[0].indices if len(matrices) == 1 else np.concatenate([X.indices for X in matrices])
    d = matrices[0].shape[1]
    if d <= _COLUMNS_PER_ENTRY * len(indices):
        used = np.zeros(d, dtype=bool)
        used[indices] = True
        return np.flatnonzero(used)
    return np.unique(indices).astype(np.intp, copy=False)


def places_among(used: Indices, indices: Any, d: int) -> NDArray[np.int32]:
    """The place of each of these columns, of d, among the used ones; one past the last for a column that is not used.

    The order of columns stays the same.
    """
    if d <= _COLUMNS_PER_ENTRY * len(indices):
        table = np.full(d, len(used), dtype=np.int32)
        table[used] = np.arange(len(used), dtype=np.int32)
        return np.asarray(table[indices])
    places = np.searchsorted(used, indices).astype(np.int32)
    known = np.append(used, -1)[places] == indices
    return np.where(known, places, np.int32(len(used)))


def narrowed(X: Any, Z: Any) -> tuple[Any, Any]:
    """Two matrices without the columns that are empty in both, if both are CSR and have more columns than entries."""
    if not (is_sparse(X) and is_sparse(Z) and X.shape[1] > X.nnz + Z.nnz):
        return X, Z
    used = used_columns(X) if X is Z else used_columns(X, Z)
    x = _in_places(X, used)
    return x, x if X is Z else _in_places(Z, used)


def without_empty_columns(X: Any) -> tuple[Any, Indices | None]:
    """X by the columns it uses, and which these are, if it is CSR with more columns than entries; else X and None.

    What is found for these is `widened` in the end, so that a weight for every column must have room.
    """
    if not (is_sparse(X) and X.shape[1] > X.nnz):
        return X, None
    expect_room(X.shape[1])
    used = used_columns(X)
    return _in_places(X, used), used


def expect_room(d: int, numbers: int = 1) -> None:
    """MemoryError where `numbers` for each of d columns are more than this computer can hold.

    To try is no answer: many systems promise any memory, and end the process that uses it.
    """
    needed, present = 8.0 * numbers * d, physical_memory()
    if needed > present:
        raise MemoryError(
            f"X has {d:,} columns, for which weights need {needed / 1e9:.0f} GB, but this computer has "
            f"{present / 1e9:.0f} GB; number the features that occur anew, or hash them into fewer columns"
        )


def widened(W: Any, used: Indices | None, d: int) -> Any:
    """Numbers for the used columns, in the last axis, as numbers for all d columns; those of the others are zero."""
    if used is None:
        return W
    wide = np.zeros((*W.shape[:-1], d))
    wide[..., used] = W
    return wide


def _in_places(X: Any, used: Indices) -> Any:
    indices = places_among(used, X.indices, X.shape[1])
    made = type(X)((X.data, indices, X.indptr), shape=(X.shape[0], len(used)), copy=False)
    made.has_canonical_format = X.has_canonical_format
    return made
