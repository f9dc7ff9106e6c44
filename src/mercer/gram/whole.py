"""The whole kernel matrix in one array, and its product with several columns at once.

Least squares factors K, so it must hold it once; what it multiplies by K afterwards is recomputed tile by tile, so that
the factor may overwrite the matrix and the products are independent of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.gram.gram import Gram
from mercer.gram.square import Square

_BLOCK_BYTES = 16 << 20


def whole_matrix(gram: Gram, dtype: Any) -> Any:
    """K as a fresh array with contiguous rows; numbers too large for `dtype` are infinite."""
    everything = np.arange(gram.n)
    if gram.fused:
        samples = gram._engine.samples(dtype)
        if samples is not None:
            return Square(samples)(gram._global(everything), gram.diagonal)
    K = np.empty((gram.n, gram.n), dtype)
    for rows in _strips(gram.n):
        with np.errstate(over="ignore"):
            K[rows] = gram.block(everything[rows], everything)
    return K


def products(gram: Any, C: Floats) -> Floats:
    """K @ C from fresh float64 kernel values, one column per output."""
    if C.shape[1] == 1:
        return np.asarray(gram.product(C[:, 0])[:, None])
    if not isinstance(gram, Gram):
        return np.column_stack([gram.product(column) for column in C.T])
    out = np.empty_like(C)
    everything = np.arange(gram.n)
    samples = gram._engine.samples(np.float64) if gram.fused else None
    columns = None if samples is None else samples.columns(gram._global(everything))
    for rows in _strips(gram.n):
        if samples is None or columns is None:
            out[rows] = gram.block(everything[rows], everything) @ C
        else:
            out[rows] = samples.block(gram._global(everything[rows]), columns) @ C
            gram.evaluations += gram.n * (rows.stop - rows.start)
    return out


def _strips(n: int) -> list[slice]:
    step = max(1, _BLOCK_BYTES // (8 * max(1, n)))
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]
