"""Names for array types, and small functions of arrays and samples that several rooms need."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]

# Memory of one step of a loop over rows: large enough for BLAS to run at full speed, and small enough that Ctrl-C,
# which Python notices only between two steps, takes effect within a tenth of a second.
BLOCK_BYTES = 16 << 20


def row_blocks(n: int, row_bytes: int) -> Iterator[slice]:
    """Ranges of n rows of `row_bytes` each that take about BLOCK_BYTES."""
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def is_sparse(X: Any) -> bool:
    """scipy's issparse, without narrowing the type that a checker sees."""
    return bool(sp.issparse(X))


def n_samples(X: Any) -> int:
    """The number of samples in an array, a CSR matrix or a sequence."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take(X: Any, rows: Indices) -> Any:
    """Rows of a data set: arrays and CSR by indexing, sequences element by element."""
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


def stack(first: Any, second: Any) -> Any:
    """The rows of two data sets, one after the other: CSR where either is sparse, a list of sequences."""
    if not hasattr(second, "shape"):
        return [*first, *second]
    if is_sparse(first) or is_sparse(second):
        return sp.csr_array(sp.vstack([sp.csr_array(first), sp.csr_array(second)]))
    return np.concatenate([first, second])


def inner(a: Floats, b: Floats) -> float:
    """Σ a_i b_i by NumPy's own summation.

    BLAS starts its threads for ten thousand numbers, and on a busy machine waits milliseconds for them to finish.
    """
    return float(np.sum(a * b))


def norm(a: Floats) -> float:
    """√Σ a_i², summed as by `inner`."""
    return math.sqrt(inner(a, a))


def gamma(roundings: int) -> float:
    """γ_k = ku/(1 − ku), u = 2⁻⁵³: the relative error of k roundings one after the other (Higham, lemma 3.1)."""
    share = roundings * 2.0**-53
    return share / (1.0 - share) if share < 1 else math.inf


def sums_by(index: Any, values: Floats, n: int) -> Floats:
    """The values summed over equal indices, for each index from 0 to n − 1."""
    return np.bincount(index, weights=values, minlength=n).astype(np.float64, copy=False)


def freeze(array: Any) -> Any:
    """Make an array, or the parts of a CSR matrix, read-only; anything else is left alone."""
    parts = (array.data, array.indices, array.indptr) if is_sparse(array) else (array,)
    for part in parts:
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return array
