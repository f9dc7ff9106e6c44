"""What each way to solve least squares needs beyond the data, counted before it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

REMEDY = "a smaller subsample, NystromRLS, or a linear kernel"


def factor_bytes(n: int, dtype: Any) -> int:
    """A Cholesky factor of n rows: the matrix, and the core's panels beside it."""
    return int(np.dtype(dtype).itemsize * (n * (n + 32) + 2 * 320 * n))


def spectrum_bytes(n: int) -> int:
    """The eigenvalues of an n × n matrix: the matrix, its eigenvectors, and LAPACK's work space."""
    return 8 * n * (3 * n + 64)


def linear_spectrum_bytes(n: int, d: int) -> int:
    """The singular values of n samples of d features: two n × d matrices and four d × d ones."""
    return 8 * (2 * n * d + 4 * d * d)


def covariance_bytes(d: int) -> int:
    """Sums over samples of d features: the covariance, its factor, and a copy while that is made."""
    return 24 * d * d


def memory_error(what: str, needed: float, budget: float, instead: str = REMEDY) -> MemoryError:
    """The error for what would not fit."""
    return MemoryError(
        f"{what} needs {needed / 1e6:,.0f} MB, but a fit may use {budget / 1e6:,.0f} MB: raise cache_size (which is "
        f"limited to half of this machine's memory), or use {instead}"
    )
