"""f(x) = Σ_j β_j k(x_j, x) + b: what a trained machine is once training is over.

Immutable, and free of anything training needed. Several outputs (the pairs of a multi-class machine) share the vectors:
one block of kernel values serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, freeze, take
from mercer.kernels import Kernel

_BLOCK_BYTES = 16 << 20


@dataclass(frozen=True, eq=False)
class Expansion:
    """Kernel, vectors, one column of coefficients and one b per output.

    For a precomputed kernel there are no vectors: `columns` says which training samples' columns count, out of `n_columns`.
    """

    kernel: Kernel
    vectors: Any
    coefficients: Any  # float64 array, or CSR where each vector serves few of the outputs
    b: Floats
    columns: Indices | None = None
    n_columns: int = 0

    def __post_init__(self) -> None:
        for array in (self.coefficients, self.b, self.columns):
            freeze(array)

    def __call__(self, X: Any) -> Floats:
        """f at every sample of X, one column per output."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        out = np.tile(self.b, (n, 1))
        n_vectors = self.coefficients.shape[0]
        if n_vectors:
            step = max(1, _BLOCK_BYTES // (8 * n_vectors))
            for start in range(0, n, step):
                rows = np.arange(start, min(n, start + step))
                out[rows] += self._block(take(X, rows)) @ self.coefficients
        return out

    def _block(self, X: Any) -> Floats:
        if self.columns is not None:
            return np.asarray(X[:, self.columns], dtype=np.float64)
        return self.kernel(X, self.vectors)
