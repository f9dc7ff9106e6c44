"""Rows in chunks for linear machines: products per row, and sums over rows in a fixed order, with bounds for both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, partial
from operator import add
from typing import Any

import numpy as np

from mercer.places.ball import LEAST, Ball
from mercer.places.choose import rows_for
from mercer.places.chunked import verbs
from mercer.places.chunked.chunks import group_by_owner
from mercer.places.chunked.samples import ChunkedSamples
from mercer.places.host.linear_gram import HostLinearGram
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, Indices, gamma, norm, row_blocks
from mercer.samples.matrices import dense


class ChunkedRows:
    """`Rows` in chunks, minus a centre that the workers subtract."""

    descent = None

    def __init__(self, X: ChunkedSamples, n_threads: int, centre: Floats | None = None) -> None:
        self._X, self._n_threads, self._centre = X, n_threads, centre
        self._make_rows = partial(rows_for, n_threads=X.chunks.threads(n_threads), centre=centre)
        self.n, self.d = X.shape
        self.stored = X.n_entries
        self.origin = 0.0 if centre is None else norm(centre)

    def first(self, m: int) -> ChunkedRows:
        return self.take(np.arange(m))

    def take(self, rows: Indices) -> ChunkedRows:
        return ChunkedRows(self._X.take(rows), self._n_threads, self._centre)

    def _per_row(self, name: str, *options: Any) -> Any:
        """Return the method or attribute `name` of `Rows`, computed per row by the workers."""
        return self._X.chunks.per_row(verbs.row_products, self._X.positions, (self._make_rows, name, *options))

    @cached_property
    def squared_lengths(self) -> Floats:
        return np.asarray(self._per_row("squared_lengths"))

    def product(self, w: Floats, shift: float = 0.0) -> Floats:
        return np.asarray(self._per_row("product", w, shift))

    def transposed(self, c: Floats) -> Floats:
        """Return X'c; rows whose c is 0 cost nothing."""
        total = self._sum("transposed", c, add)
        return np.zeros(self.d) if total is None else total

    def _sum(self, name: str, c: Floats, combine: Any, *options: Any) -> Any:
        """Return the sum over all chunks of the method `name` of `Rows`, called with the coefficients c."""
        chunks = self._X.chunks
        return chunks.sum(
            verbs.weighted_sum, chunks.weights(self._X.positions, c), (self._make_rows, name, *options), combine
        )

    def gram(self, left: Indices, others: Indices) -> Floats:
        """Return the inner products of the given rows with the rows `others`."""
        union = np.union1d(left, others)
        rows = rows_for(self._X.host(union), self._n_threads, None, self._centre)
        return rows.gram(np.searchsorted(union, left), np.searchsorted(union, others))

    def outer(self, rows: Indices, c: Floats) -> Floats:
        """Return Σ c z z' over the given rows, z = (x, 1) and c ≥ 0; only the lower triangle is valid."""
        weight = np.zeros(self.n)
        weight[rows] = c
        total = self._sum("outer", weight, add)
        return np.zeros((self.d + 1, self.d + 1)) if total is None else total

    def product_bound(self, w: Floats, shift: float = 0.0) -> Ball:
        return _ball(self._per_row("product_bound", w, shift))

    def precise_product(self, w: Floats) -> Ball:
        return _ball(self._per_row("precise_product", w))

    def combination(self, c: Floats, tolerance: float = 0.0) -> tuple[Floats, Floats, float]:
        """Return X'c as the sum of two vectors, and a bound on the length of its error (`Rows.combination`)."""
        parts = max(1, len(self._X.chunks.sizes))
        total = self._sum("combination", c, _add_doubled, tolerance / (2 * parts))
        return (np.zeros(self.d), np.zeros(self.d), 0.0) if total is None else total

    def gram_product(self, c: Floats) -> Ball:
        """Return XX'c with bounds on the errors."""
        hi, lo, error = self.combination(c)
        columns = self._X.chunks.per_row(verbs.gram_products, self._X.positions, (self._make_rows, hi, lo, error))
        return _ball(columns).finite()


def _ball(columns: Floats) -> Ball:
    """Build balls from a column of values and a column of errors."""
    return Ball(np.ascontiguousarray(columns[:, 0]), np.ascontiguousarray(columns[:, 1]))


def _add_doubled(a: tuple[Floats, Floats, float], b: tuple[Floats, Floats, float]) -> tuple[Floats, Floats, float]:
    """Add two unevaluated sums hi + lo, each with a bound on its error: what rounding takes from hi is added to lo.

    hi + lost is exact (Knuth's TwoSum), so that only the sums of small parts are rounded.
    """
    hi = a[0] + b[0]
    b_hi = hi - a[0]
    rounding_of_hi = (a[0] - (hi - b_hi)) + (b[0] - b_hi)
    lo = a[1] + b[1] + rounding_of_hi
    rounding = gamma(4) * norm(np.abs(a[1]) + np.abs(b[1]) + np.abs(rounding_of_hi)) + len(hi) * LEAST
    error = (a[2] + b[2] + rounding) * (1 + 2.0**-40)
    return hi, lo, error if math.isfinite(error) and np.isfinite(hi).all() else math.inf


class ChunkedLinearGram:
    """`LinearGram` of rows in chunks."""

    def __init__(self, X: ChunkedSamples, scale: float) -> None:
        self._X, self.scale, self.sparse = X, scale, X.sparse
        self.n, self.d = X.shape

    @property
    def norm_bound(self) -> float:
        """Upper bound on √k(x, x) over all samples."""
        chunks = self._X.chunks
        largest = chunks.sum(
            verbs.row_products, chunks.selections(self._X.positions), (HostLinearGram, "norm_bound"), max
        )
        return math.sqrt(self.scale) * (0.0 if largest is None else largest) * (1 + 2.0**-50) + LEAST

    def times(self, W: Floats, centre: Floats | None = None) -> Floats:
        return np.asarray(self._per_row("times", W, centre))

    def times_bound(self, W: Ball, centre: Floats | None = None) -> Ball:
        return Ball(*np.split(self._per_row("times_bound", W, centre), 2, axis=1))

    def _per_row(self, *call: Any) -> Any:
        """Return the result of a method of `HostLinearGram`, computed per row by the workers."""
        return self._X.chunks.per_row(verbs.row_products, self._X.positions, (HostLinearGram, *call))

    def _sum(
        self, name: str, per_sample: tuple[Floats, ...], centre: Floats | None, combine: Any, ball: bool = False
    ) -> Any:
        """Combine the results of the method `name` of `HostLinearGram` for each chunk.

        The arrays of `per_sample` are its arguments; with `ball`, the first two are the values and errors of a Ball. A
        row that is selected twice counts twice.
        """

        def of_chunk(members: Indices, selection: verbs.RowSelection) -> tuple[Any, ...]:
            arguments = tuple(values[members] for values in per_sample)
            return selection, (Ball(*arguments[:2]), *arguments[2:]) if ball else arguments

        members = self._X.chunks.members(self._X.positions)
        chunk_arguments = [None if member is None else of_chunk(*member) for member in members]
        return self._X.chunks.sum(verbs.row_sums, chunk_arguments, (HostLinearGram, name, centre), combine)

    def transposed(self, C: Floats, centre: Floats | None = None) -> Floats:
        return np.asarray(self._sum("transposed", (C,), centre, add))

    def transposed_bound(self, C: Ball, size: Floats, centre: Floats | None = None) -> Ball:
        """Return (X − 1c')ᵀC with a bound on the error of each number, where `size` ≥ |C|."""
        total: Ball = self._sum("transposed_bound", (C.value, C.error, size), centre, add, ball=True)
        return total.finite()

    def transposed_squares(self, weight: Floats, centre: Floats | None = None) -> Floats:
        return np.asarray(self._sum("transposed_squares", (weight,), centre, add))

    def sums(self, problem: LeastSquares) -> Sums:
        """Return the sums over the samples, each with its weight and targets."""
        chunks, members = self._X.chunks, self._X.chunks.members(self._X.positions)
        owner, local = np.empty(self.n, dtype=np.intp), np.empty(self.n, dtype=np.intp)
        for k, member in enumerate(members):
            if member is not None:
                owner[member[0]], local[member[0]] = k, np.arange(len(member[0]))

        def arguments_of(samples: Indices, selection: verbs.RowSelection, targets: Indices) -> tuple[Any, ...]:
            Y, weight, member = problem.Y[targets], problem.weight[targets], local[problem.member[targets]]
            return selection, LeastSquares(Y, weight, member, len(samples), problem.bias, problem.lam)

        parts = group_by_owner(owner[problem.member], len(members))
        chunk_arguments = [
            None if m is None else arguments_of(*m, targets) for m, targets in zip(members, parts, strict=True)
        ]
        total: Sums = chunks.sum(verbs.least_squares, chunk_arguments, (), Sums.plus)  # type: ignore[assignment]  # there is a chunk
        return total

    def dense_blocks(self, centre: Floats | None = None) -> Iterator[tuple[slice, Floats]]:
        """Yield X − 1c' as dense host arrays, a block of rows at a time, each with its slice."""
        for rows in row_blocks(self.n, 8 * self.d):
            part = dense(self._X.host(np.arange(rows.start, rows.stop))).astype(np.float64, copy=False)
            yield rows, part if centre is None else part - centre

    def without_empty_columns(self) -> tuple[ChunkedLinearGram, None]:
        return self, None
