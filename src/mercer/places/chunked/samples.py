"""Samples that are rows in chunks, or a selection of them in any order: the host keeps only their positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.places.chunked import verbs
from mercer.places.chunked.chunks import Chunks
from mercer.samples.arrays import Flags, Floats, Indices, megabytes, physical_memory, row_blocks
from mercer.samples.engine import EngineSamples

if TYPE_CHECKING:
    from mercer.kernels import Kernel
    from mercer.places.chunked.engine import ChunkedEngine


class ChunkedSamples(EngineSamples):
    """Samples that are the rows of chunks at the given positions, or all of them."""

    engine: ChunkedEngine

    def __init__(
        self,
        engine: ChunkedEngine,
        chunks: Chunks,
        positions: Indices | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        self.engine, self.chunks, self.positions, self.names = engine, chunks, positions, names
        self.shape = (chunks.n if positions is None else len(positions), chunks.d)
        self.dtype, self.sparse = chunks.dtype, chunks.sparse

    @property
    def n_entries(self) -> int:
        return int(self.chunks.stored * (self.shape[0] / max(1, self.chunks.n)))

    @property
    def nbytes(self) -> int:
        return max(1, self.shape[0] * self.chunks.bytes_per_row)

    @property
    def report(self) -> dict[str, dict[str, float]]:
        return self.chunks.statistics.report()

    def positions_of(self, rows: Indices | None) -> Indices | None:
        """Return the positions of the given samples in the chunks."""
        if rows is None:
            return self.positions
        return rows if self.positions is None else self.positions[rows]

    def take(self, rows: Indices) -> ChunkedSamples:
        return ChunkedSamples(self.engine, self.chunks, self.positions_of(np.asarray(rows)), self.names)

    def joined(self, others: EngineSamples) -> ChunkedSamples:
        """Return these samples followed by the others."""
        assert isinstance(others, ChunkedSamples)
        if others.chunks is self.chunks:
            return ChunkedSamples(self.engine, self.chunks, np.concatenate([self._all, others._all]), self.names)
        chunks = self.chunks.joined(others.chunks)
        return ChunkedSamples(self.engine, chunks, np.concatenate([self._all, self.chunks.n + others._all]), self.names)

    @property
    def _all(self) -> Indices:
        """Positions of all samples in the chunks."""
        return np.arange(self.shape[0]) if self.positions is None else self.positions

    def host(self, rows: Indices | None = None) -> Any:
        """Return a copy of all samples, or of the given rows, in host memory."""
        size = (self.shape[0] if rows is None else len(rows)) * self.chunks.bytes_per_row
        if size > physical_memory() / 2:
            raise MemoryError(
                f"{megabytes(size)} of samples would be copied to the host, more than half of its memory; use a kernel "
                "and a machine that are computed where the samples are, or fewer samples"
            )
        return self.chunks.rows(self._all if rows is None else self._all[rows])

    def first_not_finite(self) -> tuple[int, int, float, int] | None:
        """Return row, column and value of the first entry that is not finite, and their number; None if all are."""
        results = self.chunks.map(verbs.first_not_finite, self.chunks.selections(self.positions))
        bad = [(k, first) for k, first in results if first is not None]
        if not bad:
            return None
        if self.positions is not None:  # only the host knows the order of the rows
            return verbs.first_not_finite(self.host(), None)
        k, (row, column, value, _) = bad[0]
        return int(self.chunks.ends[k]) + row, column, value, sum(first[3] for _, first in bad)

    def _per_row(self, verb: Callable[..., Any], *common: Any) -> Any:
        """Return the result of a verb for each sample."""
        return self.chunks.per_row(verb, self.positions, common)

    def hash(self) -> NDArray[np.uint64]:
        return np.asarray(self._per_row(verbs.hashes))

    def equal(self, left: Indices, right: Indices) -> Flags:
        """Return for each k whether sample left[k] equals sample right[k]."""
        out = np.empty(len(left), dtype=bool)
        for block in row_blocks(len(left), 2 * self.chunks.bytes_per_row):
            left_rows, right_rows = self.host(left[block]), self.host(right[block])
            if self.sparse:
                out[block] = np.asarray((left_rows != right_rows).sum(axis=1)).ravel() == 0
            else:
                out[block] = (left_rows == right_rows).all(axis=1)
        return out

    def _column_sums(self, weight: Floats, centre: Floats) -> tuple[Floats, Floats]:
        """Return Σ w (x − centre) and Σ w (x − centre)² of every column."""
        weights = self.chunks.weights(self.positions, weight)
        sums = self.chunks.sum(verbs.column_sums, weights, (centre,), _add_pairs)
        return sums if sums is not None else (np.zeros(self.chunks.d), np.zeros(self.chunks.d))

    def moments(self) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of every column."""
        n, weight = self.shape[0], np.ones(self.shape[0])
        mean = self._column_sums(weight, np.zeros(self.chunks.d))[0] / n
        return mean, np.sqrt(self._column_sums(weight, mean)[1] / n)

    def sums_about(self, centre: float, weight: Floats) -> tuple[float, float]:
        """Return Σ_i w_i Σ_j (x_ij − centre) and Σ_i w_i Σ_j (x_ij − centre)² over all entries."""
        first, second = self._column_sums(weight, np.full(self.chunks.d, float(centre)))
        return float(first.sum()), float(second.sum())

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry."""
        extremes = [part for _, part in self.chunks.map(verbs.extremes, self.chunks.selections(self.positions))]
        return min(low for low, _ in extremes), max(high for _, high in extremes)

    def squared_lengths(self) -> Floats:
        return np.asarray(self._per_row(verbs.lengths))

    def values(self, kernel: Kernel, others: EngineSamples | None = None) -> Floats:
        """Return the matrix k(x_i, z_j); without others the matrix k(x_i, x_j)."""
        if others is None:
            return kernel(self.host())
        return np.asarray(self._per_row(verbs.values, kernel, others.host()))

    def diagonal(self, kernel: Kernel) -> Floats:
        """Return k(x_i, x_i) for every sample."""
        if kernel.unit_diagonal == "yes":
            return np.ones(self.shape[0])
        return np.asarray(self._per_row(verbs.diagonal, kernel))

    # A kernel matrix, which has as many columns as there are samples, is copied to the host.

    def entries(self, rows: Indices, columns: Indices) -> Floats:
        return np.asarray(self.host()[rows, columns], dtype=np.float64)

    def columns(self, indices: Indices) -> EngineSamples:
        return self.engine.samples(np.ascontiguousarray(self.host()[:, indices]))

    def asymmetry(self) -> float:
        """Return the largest |K_ij − K_ji|."""
        K = self.host()
        return float(np.abs(K - K.T).max())


def _add_pairs(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return the sums of the first and of the second arrays."""
    return a[0] + b[0], a[1] + b[1]
