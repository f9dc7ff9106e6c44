"""f(x) = Σ_j β_j k(x_j, x) + b: what a trained machine is once training is over.

Immutable, and free of anything training needed. Several outputs (the pairs of a multi-class machine) share the vectors:
one block of kernel values serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, freeze, is_sparse, take
from mercer.gram.lowering import Lowering
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
        if self.coefficients.shape[0]:
            kept = len(self.b) > 1 or self._lowering is None  # values in a block, rather than summed as they come
            step = max(1, _BLOCK_BYTES // (8 * (self.coefficients.shape[0] if kept else X.shape[1])))
            for start in range(0, n, step):
                rows = np.arange(start, min(n, start + step))
                self._add(out[start : start + step], take(X, rows), n_threads)
        return out

    def norms(self) -> Floats:
        """‖f − b‖ = √(β'Kβ) of each output, 0 where an indefinite kernel makes that square negative."""
        n, squares = self.coefficients.shape[0], np.zeros(len(self.b))
        step = max(1, _BLOCK_BYTES // (8 * max(1, n)))
        for start in range(0, n, step):
            rows = np.arange(start, min(n, start + step))
            values = np.asarray(self.kernel(take(self.vectors, rows), self.vectors) @ self.coefficients)
            part = self.coefficients[rows]
            squares += np.sum((part.toarray() if is_sparse(part) else part) * values, axis=0)
        return np.sqrt(np.maximum(squares, 0.0))

    def _add(self, out: Floats, X: Any, n_threads: int) -> None:
        """out += K(X, vectors) @ coefficients."""
        vectors = others = None
        if self._lowering is not None:
            vectors = self._samples(X.dtype, n_threads)
            others = self._lowering.prepare(X, X.dtype, n_threads)
        if vectors is not None and others is not None:
            columns, rows = others.columns(np.arange(X.shape[0])), np.arange(self.coefficients.shape[0])
            if len(self.b) == 1:
                total = np.zeros(X.shape[0])
                vectors.add(total, columns, rows, self.coefficients[:, 0])
                out[:, 0] += total
                return
            values = vectors.block(rows, columns)
            if vectors.dense:  # BLAS would start its threads for each class, and on a busy machine wait for them
                self._combinations.add(out, values, n_threads)
                return
            K = values.T
        else:
            K = X[:, self.columns] if self.columns is not None else self.kernel(X, self.vectors)
        for part, outputs, coefficients in self._segments:
            out[:, outputs] += np.asarray(K[:, part], dtype=np.float64) @ coefficients

    @cached_property
    def _segments(self) -> list[tuple[slice, Indices, Floats]]:
        """Runs of vectors that serve the same few outputs, with their coefficients dense.

        With several classes a vector of one class serves only the pairs that this class is in, and the vectors come
        class by class: a dense product per class does the work of a sparse one several times faster.
        """
        if not is_sparse(self.coefficients):
            return [(slice(0, len(self.coefficients)), np.arange(len(self.b)), self.coefficients)]
        table, n = self.coefficients, self.coefficients.shape[0]
        served = [set(table.indices[a:b].tolist()) for a, b in pairwise(table.indptr)]
        limit = max(isqrt(2 * len(self.b)), *(len(outputs) for outputs in served))
        segments, start, outputs = [], 0, set[int]()
        for row in range(n + 1):
            if row == n or len(outputs | served[row]) > limit:
                some = np.array(sorted(outputs), dtype=np.intp)
                segments.append((slice(start, row), some, table[start:row].toarray()[:, some]))
                start, outputs = row, set()
            if row < n:
                outputs |= served[row]
        return segments

    @cached_property
    def _combinations(self) -> _core.Combinations:
        """The same, laid out for the core."""
        packed = _core.Combinations()
        for part, outputs, coefficients in self._segments:
            packed.append((part.start, part.stop), outputs, np.ascontiguousarray(coefficients))
        return packed

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
