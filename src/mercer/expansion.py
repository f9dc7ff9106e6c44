"""f(x) = Σ_j β_j k(x_j, x) + b: what a trained machine is once training is over.

Immutable, and free of anything training needed. Several outputs (the pairs of a multi-class machine) share the vectors:
one block of kernel values serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, freeze, take
from mercer.gram.lowered import Lowering
from mercer.kernels import Kernel

_BLOCK_BYTES = 16 << 20


@dataclass(frozen=True, eq=False)
class Expansion:
    """Kernel, vectors, one column of coefficients and one b per output.

    For a precomputed kernel there are no vectors: `columns` says which training samples' columns count, out of
    `n_columns`.
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

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __call__(self, X: Any, n_threads: int = 1) -> Floats:
        """f at every sample of X, one column per output; kernel values are as precise as X."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        out = np.tile(self.b, (n, 1))
        n_vectors = self.coefficients.shape[0]
        if n_vectors:
            step = max(1, _BLOCK_BYTES // (8 * n_vectors))
            for start in range(0, n, step):
                rows = np.arange(start, min(n, start + step))
                out[rows] += self._values(take(X, rows), n_threads)
        return out

    def _values(self, X: Any, n_threads: int) -> Floats:
        if self.columns is not None:
            return np.asarray(np.asarray(X[:, self.columns], dtype=np.float64) @ self.coefficients)
        vectors = others = None
        if self._lowering is not None:
            vectors = self._samples(X.dtype, n_threads)
            others = self._lowering.prepare(X, X.dtype, n_threads)
        if vectors is not None and others is not None:
            rows, columns = np.arange(self.coefficients.shape[0]), others.columns(np.arange(X.shape[0]))
            if len(self.b) == 1:
                total = np.zeros(X.shape[0])
                vectors.add(total, columns, rows, self.coefficients[:, 0])
                return total[:, None]
            return np.asarray(vectors.block(rows, columns).T.astype(np.float64) @ self.coefficients)
        return np.asarray(self.kernel(X, self.vectors) @ self.coefficients)

    @cached_property
    def _lowering(self) -> Lowering | None:
        """The kernel's fused form, centred at the vectors, where it has one."""
        recipe = self.kernel.recipe() if self.kernel.accepts == "vectors" else None
        return None if recipe is None else Lowering.of(recipe, self.vectors)

    def _samples(self, dtype: Any, n_threads: int) -> _core.Samples | None:
        """The vectors packed for a precision, once: two threads that come first at once pack the same numbers."""
        packed: dict[Any, _core.Samples | None] = self.__dict__.setdefault("_packed", {})
        key = (np.dtype(dtype), n_threads)
        if key not in packed and self._lowering is not None:
            packed[key] = self._lowering.prepare(self.vectors, *key)
        return packed.get(key)
