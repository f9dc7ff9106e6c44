"""Grams, rows, cross matrices and evaluations of samples in chunks, for all engines that store rows in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.places import Cross, Evaluation, Gram, Rows, gram_for
from mercer.places.chunked import verbs
from mercer.places.chunked.gram import ChunkedGram
from mercer.places.chunked.linear import ChunkedRows
from mercer.places.chunked.samples import ChunkedSamples
from mercer.places.host.cross import HostCross
from mercer.places.protocols import ErrorTotals, Totals
from mercer.samples.arrays import Floats, Indices, host
from mercer.samples.chunks import Chunk
from mercer.samples.engine import Engine, EngineSamples


class ChunkedEngine(Engine):
    """Base of engines for rows in chunks; a subclass adds the arrays that it accepts and its `Chunks`."""

    def given(self, values: Any, like: Any) -> Any:
        return values

    def gram(self, kernel: Kernel, X: EngineSamples, budget: int, n_threads: int, constant: float) -> Gram:
        if kernel.accepts == "gram":  # a given matrix of n² numbers is computed on the host
            return gram_for(kernel, X.host(), budget, n_threads, constant=constant)
        assert isinstance(X, ChunkedSamples)
        return ChunkedGram(kernel + constant if constant else kernel, X, budget, n_threads)

    def rows(self, X: EngineSamples, n_threads: int, selected: Indices | None, centre: Floats | None) -> Rows:
        assert isinstance(X, ChunkedSamples)
        return ChunkedRows(X if selected is None else X.take(selected), n_threads, centre)

    def cross(
        self,
        kernel: Kernel,
        landmarks: Any,
        chunks: Callable[[], Iterable[Chunk]],
        budget: int,
        n_threads: int,
        K_MM: Floats | None,
    ) -> Cross:
        return ChunkedCross(kernel, host(landmarks), chunks, n_threads, K_MM)

    def evaluation(
        self, kernel: Kernel, vectors: EngineSamples | None, coefficients: Any, columns: Indices | None
    ) -> Evaluation:
        return ChunkedEvaluation(kernel, None if vectors is None else vectors.host(), coefficients, columns)


class ChunkedEvaluation:
    """An `Evaluation` at rows in chunks, computed by the workers that have them."""

    def __init__(self, kernel: Kernel, vectors: Any, coefficients: Any, columns: Indices | None) -> None:
        self._common_arguments = kernel, vectors, coefficients, columns

    def add(self, out: Floats, X: Any, n_threads: int) -> None:
        """Add K(X, vectors) @ coefficients to `out`, computed by the workers."""
        if len(out):
            out += X.chunks.per_row(verbs.evaluate, X.positions, (*self._common_arguments, X.chunks.threads(n_threads)))


class ChunkedCross:
    """`Cross` of rows in chunks: each chunk returns its sums, which are added in a fixed order."""

    def __init__(
        self,
        kernel: Kernel,
        landmarks: Any,
        chunks: Callable[[], Iterable[Chunk]],
        n_threads: int,
        K_MM: Floats | None,
    ) -> None:
        self._on_host = HostCross(kernel, landmarks, list, 0, n_threads, K_MM)  # for results on landmarks alone
        self.kernel, self.m = kernel, self._on_host.m
        self._chunks, self._landmarks, self._n_threads = chunks, landmarks, n_threads
        self._held_chunks: list[tuple[Any, Any]] | None = None

    @property
    def K_MM(self) -> Floats:
        return self._on_host.K_MM

    @property
    def value_error(self) -> float:
        return self._on_host.value_error

    @property
    def recomputes_cheaply(self) -> bool:
        return self._on_host.recomputes_cheaply

    def normal(self, C: Floats) -> Floats:
        return np.asarray(self._sum("normal", _add, C))

    def residual(self, C: Floats, b: Floats) -> Totals:
        """Return K_nMᵀ W (Y − K_nM C − b) and the other totals of the pass, summed over the workers."""
        totals: Totals = self._sum("residual", verbs.add_totals, C, b)
        return totals

    def proof(self, C: Floats, b: Floats) -> tuple[Totals, ErrorTotals]:
        """Return the totals of `residual`, and bounds on their rounding errors."""
        totals: tuple[Totals, ErrorTotals] = self._sum("proof", verbs.add_error_totals, C, b)
        return totals

    def gather(self, sample: Chunk | None = None) -> tuple[Floats, Totals]:
        """Return K_nMᵀ W K_nM over one chunk or all of them, and the totals of this pass at C = 0 and b = 0."""
        handles = None if sample is None else [_hold_on_workers(sample)]
        sums: tuple[Floats, Totals] = self._sum("gather", _add_gathered, handles=handles)
        return sums

    def _sum(self, name: str, combine: Any, *options: Any, handles: Any = None) -> Any:
        """Return the sum over all chunks of the results of the method `name` of each worker's `Cross`."""
        if handles is None:
            self._held_chunks = self._held_chunks or [_hold_on_workers(chunk) for chunk in self._chunks()]
            handles = self._held_chunks
        K_MM = self._on_host.K_MM if self.kernel.accepts == "gram" else None
        common, call = (self.kernel, self._landmarks, K_MM), (name, *options)
        parts = [
            chunks.sum(verbs.cross, chunk_arguments, (*common, chunks.threads(self._n_threads), *call), combine)
            for chunks, chunk_arguments in handles
        ]
        total = parts[0]
        for part in parts[1:]:
            total = combine(total, part)
        return total


def _hold_on_workers(chunk: Chunk) -> tuple[Any, list[tuple[Any, ...] | None]]:
    """Send each chunk its selection, targets and weights, which workers keep; return the chunks and their handles."""
    chunks, positions = chunk.X.chunks, chunk.X.positions
    members = [(k, *member) for k, member in enumerate(chunks.members(positions)) if member is not None]
    parts = [(selection, chunk.Y[indices], chunk.weight[indices]) for _, indices, selection in members]
    chunk_arguments: list[tuple[Any, ...] | None] = [None] * len(chunks.sizes)
    for (k, *_), handles in zip(members, chunks.hold(parts), strict=True):
        chunk_arguments[k] = handles
    return chunks, chunk_arguments


def _add(a: Floats, b: Floats) -> Floats:
    return a + b


def _add_gathered(a: tuple[Floats, Totals], b: tuple[Floats, Totals]) -> tuple[Floats, Totals]:
    """Return the sums of two results of `Cross.gather`."""
    return a[0] + b[0], verbs.add_totals(a[1], b[1])
