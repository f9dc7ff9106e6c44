"""A test of some rows of K: whether they show that it is not positive semi-definite."""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.gram.gram import Gram


def has_negative_direction(gram: Gram) -> bool:
    """Whether a principal minor of rows spread over the samples has a negative eigenvalue."""
    negative = np.flatnonzero(gram.diagonal < 0)
    spread = np.linspace(0, gram.n - 1, min(gram.n, 200)).astype(np.intp)
    some = np.unique(np.concatenate([negative[:1], spread]))
    K = gram.block(some, some)
    K = 0.5 * (K + K.T)
    # The ridge is larger than any rounding error: Cholesky's method fails only if K has a negative eigenvalue.
    K[np.diag_indices(len(K))] += 1e-8 * max(1e-300, float(np.abs(K).max())) * len(K)
    return _core.cholesky(K, 1) >= 0
