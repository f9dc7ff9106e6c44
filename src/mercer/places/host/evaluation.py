"""Prediction: K(X, vectors) @ coefficients for new samples X, a block at a time.

Several outputs share the vectors, so that one block of kernel values serves them all.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from mercer import _core
from mercer.kernels import Kernel
from mercer.places.host.linear_gram import linear_scale
from mercer.places.host.prepared import PreparedSamples
from mercer.places.host.rows import weight_vectors
from mercer.places.rounding import SINGLE, Rounding
from mercer.samples.arrays import Flags, Floats, Indices, Precision, host, is_sparse, row_blocks, rows_between, take

# A sample is predicted in float64 if float32 kernel values would change f by more than this, or by more than this
# fraction of f's typical size if that is below 1. It is a tenth of the default tol.
_FLOAT32_ERROR = 1e-4
# Number of vectors that are used to estimate whether all point in one direction.
_FEW_VECTORS = 48


class Float32Check:
    """Choice of the samples that may be predicted from float32 kernel values, on the host and on engines."""

    def __init__(self, vectors: Any, coefficients: Any) -> None:
        self._vectors, self._n_vectors = vectors, coefficients.shape[0]
        self._squares = coefficients.power(2) if is_sparse(coefficients) else coefficients**2

    def too_coarse(self, sizes: Floats, sources: Floats, rounding: Rounding) -> tuple[Flags, Floats]:
        """Return a mask of the samples that need float64, and the largest |f| of each other sample that float32 allows.

        `sizes` and `sources` hold half the squared length of each sample and of each vector. The roundings of different
        values are taken to be independent. The relative error that all values of a sample share grows with f.
        """
        estimated_errors = rounding.estimated_errors(sizes, sources, self._squares, lambda: self._aligned)
        # If targets are in a large unit, f is small, and so is its acceptable error.
        unit = min(1.0, rounding.typical_value(sources, float(np.sqrt(np.max(self._squares.sum(axis=0), initial=0.0)))))
        common_error = np.maximum(rounding.common_error(sizes) - 2 * SINGLE, np.finfo(float).tiny)
        return np.asarray(~(estimated_errors <= _FLOAT32_ERROR * unit)), _FLOAT32_ERROR * unit / common_error

    @cached_property
    def _aligned(self) -> float:
        """Largest mean of cos² between some of the vectors and any one direction: 1 if all vectors are parallel."""
        sample = host(self._vectors, np.linspace(0, self._n_vectors - 1, _FEW_VECTORS).astype(np.intp))
        sample = sample.astype(np.float64) / (float(abs(sample).max()) or 1.0)  # so that squares do not overflow
        products = sample @ sample.T
        products = products.toarray() if is_sparse(products) else products
        lengths = np.sqrt(np.diagonal(products))
        lengths = np.where(lengths > 0, lengths, 1.0)
        return float(np.linalg.eigvalsh(products / np.outer(lengths, lengths))[-1]) / len(products)


class BlockEvaluation:
    """An `Evaluation` on the host, through the fused core if the kernel has a recipe."""

    def __init__(self, kernel: Kernel, vectors: Any, coefficients: Any, columns: Indices | None) -> None:
        self._kernel, self._vectors, self._coefficients, self._columns = kernel, vectors, coefficients, columns
        self._prepared: dict[int, PreparedSamples | None] = {}

    def add(self, out: Floats, X: Any, n_threads: int) -> None:
        """Add K(X, vectors) @ coefficients to `out`; float32 samples use float32 where it is accurate enough."""
        n_vectors, n_outputs = self._coefficients.shape
        if n_vectors == 0:
            return
        if self._weights is not None:
            for block in row_blocks(len(out), 8 * X.shape[1]):
                out[block] += X[block] @ self._weights
            return
        if n_threads not in self._prepared:
            self._prepared[n_threads] = PreparedSamples.of(self._kernel, self._vectors, n_threads)
        prepared = self._prepared[n_threads]
        # If true, a block of kernel values is stored, not summed as it is computed.
        stores_values = n_outputs > 1 or prepared is None
        row_bytes = (
            8 * n_vectors if stores_values else 12 * X.nnz // max(1, len(out)) if is_sparse(X) else 8 * X.shape[1]
        )
        for block in row_blocks(len(out), row_bytes):
            part = rows_between(X, block)
            if prepared is None or X.dtype != np.float32:
                self._add(out[block], part, prepared, np.float64, n_threads)
                continue
            sizes = np.asarray(prepared.lowering.prepare(part, np.float32, 1)[1], dtype=np.float64)
            needs_float64, limit = self._float32_check.too_coarse(sizes, prepared.sizes, prepared.rounding)
            rows = np.flatnonzero(~needs_float64)
            values = self._values(part, rows, prepared, np.float32, n_threads)
            is_accurate = np.abs(values).max(axis=1, initial=0.0) <= limit[rows]
            out[block.start + rows[is_accurate]] += values[is_accurate]
            needs_float64[rows[~is_accurate]] = True
            rows = np.flatnonzero(needs_float64)
            out[block.start + rows] += self._values(part, rows, prepared, np.float64, n_threads)

    def _values(self, X: Any, rows: Indices, prepared: PreparedSamples, precision: Precision, n_threads: int) -> Floats:
        """Return f at the given rows of X, one column per output."""
        out = np.zeros((len(rows), self._coefficients.shape[1]))
        if len(rows):
            self._add(out, X if len(rows) == X.shape[0] else take(X, rows), prepared, precision, n_threads)
        return out

    def _add(self, out: Floats, X: Any, prepared: PreparedSamples | None, precision: Precision, n_threads: int) -> None:
        """Add K(X, vectors) @ coefficients to `out`, with kernel values of this precision."""
        vectors = prepared_X = None
        if prepared is not None:
            vectors = prepared.all_samples(precision)
            prepared_X = prepared.prepare(X, precision)
        if vectors is not None and prepared_X is not None:
            columns, rows = prepared_X.columns(np.arange(X.shape[0])), np.arange(self._coefficients.shape[0])
            if out.shape[1] == 1:
                total = np.zeros(X.shape[0])
                vectors.add(total, columns, rows, np.ascontiguousarray(self._coefficients[:, 0]))
                out[:, 0] += total
                return
            values = vectors.block(rows, columns)
            if vectors.dense:  # BLAS would start its threads once per class, and wait for them on a busy host
                self._combinations.add(out, values, n_threads)
                return
            K = values.T
        else:
            K = X[:, self._columns] if self._columns is not None else self._kernel(X, self._vectors)
        for segment, outputs, coefficients in self._segments:
            out[:, outputs] += np.asarray(K[:, segment], dtype=np.float64) @ coefficients

    @cached_property
    def _float32_check(self) -> Float32Check:
        return Float32Check(self._vectors, self._coefficients)

    @cached_property
    def _weights(self) -> Floats | None:
        """Weights w of a linear kernel, a column per output, summed in twice the precision; None for other kernels."""
        scale = linear_scale(self._kernel)
        if is_sparse(self._vectors) and self._vectors.shape[1] > self._vectors.nnz:
            return None  # w would take more memory than the vectors
        return None if scale is None else scale * weight_vectors(self._vectors, self._coefficients)

    @cached_property
    def _segments(self) -> list[tuple[slice, Indices, Floats]]:
        """Runs of vectors with coefficients in the same few outputs, and these coefficients as dense arrays.

        With several classes, a vector is used only by the pairs that its class is in, and vectors are sorted by class:
        one dense product per class is several times faster than a sparse one.
        """
        table, (n, n_outputs) = self._coefficients, self._coefficients.shape
        if not is_sparse(table):
            return [(slice(0, n), np.arange(n_outputs), table)]
        outputs_of_vectors = [table.indices[a:b] for a, b in pairwise(table.indptr)]
        limit = max(isqrt(2 * n_outputs), *map(len, outputs_of_vectors))
        segments, start, outputs = [], 0, np.empty(0, dtype=np.intp)
        for row in range(n + 1):
            union = outputs if row == n else np.union1d(outputs, outputs_of_vectors[row])
            if row == n or len(union) > limit:
                values = np.zeros((row - start, len(outputs)))
                for k in range(start, row):
                    values[k - start, np.searchsorted(outputs, outputs_of_vectors[k])] = table.data[
                        table.indptr[k] : table.indptr[k + 1]
                    ]
                segments.append((slice(start, row), outputs.astype(np.intp), values))
                start, union = row, union if row == n else np.unique(outputs_of_vectors[row])
            outputs = union
        return segments

    @cached_property
    def _combinations(self) -> _core.Combinations:
        """The `_segments` in the core's form."""
        combinations = _core.Combinations()
        for part, outputs, coefficients in self._segments:
            combinations.append((part.start, part.stop), outputs, np.ascontiguousarray(coefficients))
        return combinations
