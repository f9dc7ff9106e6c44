"""Rows of a linear machine on a device, and K = scale·XXᵀ through them.

Sums run over a strip of rows and then over strips, in any order: bounds are those of places/host/rows.py and
places/host/linear_gram.py. Results that need more than float64 are computed on the host, from a copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from mercer.places.ball import LEAST, Ball
from mercer.places.choose import rows_for
from mercer.places.protocols import LinearGram, Rows
from mercer.places.sums import Sums
from mercer.places.torch.memory import in_strips
from mercer.places.torch.numbers import floats, index_tensor, to_device, to_host, torch
from mercer.places.torch.samples import TorchSamples
from mercer.places.torch.sparse import SparseRows, largest_entries, products, squared_lengths, times
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, Indices, gamma, inner, mirror, norm

# Rows of one partial sum over the samples: the number of rows plus the number of partial sums bounds the rounding.
_SUM_ROWS = 2048


class Strips:
    """X − 1c' in float64, a strip of rows at a time."""

    def __init__(self, X: Any, centre: Floats | None) -> None:
        self.X, self.centre = X, None if centre is None else to_device(centre, X)
        self.n_partial_sums = 0  # number of partial sums in the last sum over all rows

    def part(self, block: Any) -> Any:
        """Return a block of rows."""
        rows = self.X[block].double()
        return rows if self.centre is None else rows - self.centre

    def times(self, W: Any) -> Any:
        """Return (X − 1c')W."""
        out = torch.empty((len(self.X), W.shape[1]), dtype=torch.float64, device=self.X.device)

        def work(block: slice) -> None:
            out[block] = times(self.part(block), W)

        in_strips(len(self.X), 8 * (self._width + W.shape[1]), work)
        return out

    def transposed(self, C: Any, *, absolute: bool = False) -> Any:
        """Return (X − 1c')ᵀC, or |X − 1c'|ᵀC; partial sums over `_SUM_ROWS` rows are added up."""
        if isinstance(self.X, SparseRows):
            rows = self.X.transposed.double()
            return (rows.abs() if absolute else rows).times(C)
        out = torch.zeros((self.X.shape[1], C.shape[1]), dtype=torch.float64, device=self.X.device)

        def work(block: slice) -> None:
            part, total = self.part(block), torch.zeros_like(out)
            part = part.abs() if absolute else part
            for start in range(0, len(part), _SUM_ROWS):
                rows = slice(start, start + _SUM_ROWS)
                total += part[rows].T @ C[block][rows]
            out.add_(total)
            self.n_partial_sums += 1 + len(part) // _SUM_ROWS

        self.n_partial_sums = 0
        in_strips(len(self.X), 8 * self._width, work)
        return out

    def squares(self, weight: Any) -> Any:
        """Return Σ w (x − c)(x − c)' for w ≥ 0."""
        d = self.X.shape[1]
        out = torch.zeros((d, d), dtype=torch.float64, device=self.X.device)

        def work(block: slice) -> None:
            part = self.part(block)
            part = (part.dense() if isinstance(part, SparseRows) else part) * weight[block, None].sqrt()
            out.add_(part.T @ part)

        in_strips(len(self.X), 16 * d, work)
        return out

    @property
    def _width(self) -> int:
        return 1 + (len(self.X.values) // max(1, len(self.X)) if isinstance(self.X, SparseRows) else self.X.shape[1])


class TorchRows:
    """`Rows` on a torch device, without coordinate descent: steps on single rows would cost too much."""

    descent = None

    def __init__(self, samples: TorchSamples, n_threads: int, centre: Floats | None) -> None:
        self._samples, self._n_threads, self._centre = samples, n_threads, centre
        self._strips = Strips(samples.rows, centre)
        self.n, self.d = samples.shape
        self.stored, self.origin = samples.n_entries, 0.0 if centre is None else norm(centre)

    @cached_property
    def squared_lengths(self) -> Floats:
        """Squared length of every row."""
        out = torch.empty(self.n, dtype=torch.float64, device=self._samples.rows.device)

        def work(block: slice) -> None:
            out[block] = squared_lengths(self._strips.part(block))

        in_strips(self.n, 16 * self.d, work)
        return np.array(floats(out))

    def first(self, m: int) -> Rows:
        """Return the first m rows."""
        return TorchRows(
            type(self._samples)(self._samples.engine, self._samples.rows[:m]), self._n_threads, self._centre
        )

    def take(self, rows: Indices) -> Rows:
        return TorchRows(self._samples.take(rows), self._n_threads, self._centre)

    def product(self, w: Floats, shift: float = 0.0) -> Floats:
        return floats(self._strips.times(self._to_device(w)))[:, 0] + shift

    def transposed(self, c: Floats) -> Floats:
        """Return X'c; if few c are not 0, only their rows are read."""
        support = np.flatnonzero(c)
        if 2 * len(support) > self.n:
            return np.array(floats(self._strips.transposed(self._to_device(c)))[:, 0])
        part = Strips(self._samples.rows[index_tensor(support, self._samples.rows)], self._centre)
        return np.array(floats(part.transposed(self._to_device(c[support])))[:, 0])

    def gram(self, rows: Indices, others: Indices) -> Floats:
        """Return the inner products of the given rows with the rows `others`."""
        left, right = (self._strips.part(index_tensor(index, self._samples.rows)) for index in (rows, others))
        return np.array(floats(products(left, right)))

    def outer(self, rows: Indices, c: Floats) -> Floats:
        """Return Σ c z z' over the given rows, z = (x, 1) and c ≥ 0; only the lower triangle is valid."""
        part = Strips(self._samples.rows[index_tensor(rows, self._samples.rows)], self._centre)
        out, weight = np.empty((self.d + 1, self.d + 1)), self._to_device(c)
        out[: self.d, : self.d] = floats(part.squares(weight[:, 0]))
        out[self.d, : self.d] = floats(part.transposed(weight))[:, 0]
        out[self.d, self.d] = c.sum()
        return out

    def _to_device(self, vector: Floats) -> Any:
        return to_device(np.ascontiguousarray(vector), self._samples.rows)[:, None]

    # --- proofs -------------------------------------------------------------------------------------------------

    def product_bound(self, w: Floats, shift: float = 0.0) -> Ball:
        """Return Xw + shift with a bound on the error of each number."""
        size = math.sqrt(inner(w, w) + len(w) * LEAST)
        error = gamma(self.d + 8) * (self._lengths * size + abs(shift)) + (self.d + 2) * LEAST
        return Ball(self.product(w, shift), error).finite()

    def combination(self, c: Floats, tolerance: float = 0.0) -> tuple[Floats, Floats, float]:
        """Return X'c as the sum of two vectors, and a bound on the length of its error (`Rows.combination`)."""
        mass = float(np.abs(c) @ self._lengths)
        error = gamma(self.n + 8) * mass + 4 * self.n * self.d * LEAST
        if error <= tolerance:  # false for NaN
            return self.transposed(c), np.zeros(self.d), error
        return self._on_host.combination(c, tolerance)

    def precise_product(self, w: Floats) -> Ball:
        return self._on_host.precise_product(w)

    def gram_product(self, c: Floats) -> Ball:
        return self._on_host.gram_product(c)

    @cached_property
    def _on_host(self) -> Rows:
        return rows_for(self._samples.host(), self._n_threads, None, self._centre)

    @property
    def _lengths(self) -> Floats:
        return np.asarray(np.sqrt(self.squared_lengths + self.d * LEAST))


class TorchLinearGram:
    """`LinearGram` on a torch device."""

    def __init__(self, samples: TorchSamples, scale: float) -> None:
        self._samples, self.scale, self.sparse = samples, scale, samples.sparse
        self.n, self.d = samples.shape

    @property
    def norm_bound(self) -> float:
        """Upper bound on √k(x, x), from the largest length, scaled so that no square overflows."""
        longest = 0.0

        def work(block: slice) -> None:
            nonlocal longest
            rows = self._samples.rows[block].double()
            size = largest_entries(rows)
            unit = torch.where(size > 0, size, 1.0)
            longest = max(longest, float((size[:, 0] * squared_lengths(rows / unit).sqrt()).max()))

        in_strips(self.n, 16 * self.d, work)
        return math.sqrt(self.scale) * (longest + self.d * LEAST) * (1 + gamma(self.d + 12)) + LEAST

    def times(self, W: Floats, centre: Floats | None = None) -> Floats:
        """Return (X − 1c')W for several columns, or one vector."""
        out = floats(self._strips(centre).times(self._to_device(W)))
        return np.array(out[:, 0] if W.ndim == 1 else out)

    def transposed(self, C: Floats, centre: Floats | None = None) -> Floats:
        """Return (X − 1c')ᵀC for several columns, or one vector."""
        out = floats(self._strips(centre).transposed(self._to_device(C)))
        return np.array(out[:, 0] if C.ndim == 1 else out)

    def times_bound(self, W: Ball, centre: Floats | None = None) -> Ball:
        """Return (X − 1c')W with a bound on the error of each number."""
        entry_errors = gamma(self.d + 2) * np.abs(W.value) + 2 * W.error + LEAST
        strips, factors = self._strips(centre), [self._to_device(part) for part in (W.value, entry_errors)]
        out = [torch.empty((self.n, W.value.shape[1]), dtype=torch.float64, device=part.device) for part in factors]

        def work(block: slice) -> None:
            part = strips.part(block)
            for result, rows, factor in zip(out, (part, part.abs()), factors, strict=True):
                result[block] = times(rows, factor)

        in_strips(self.n, 24 * self.d, work)
        return Ball(np.array(floats(out[0])), np.array(floats(out[1])) + 2 * self.d * LEAST).finite()

    def transposed_bound(self, C: Ball, size: Floats, centre: Floats | None = None) -> Ball:
        """Return (X − 1c')ᵀC with a bound on the error of each number, where `size` ≥ |C|."""
        strips = self._strips(centre)
        values = strips.transposed(self._to_device(C.value))
        # Sparse rows are summed one after another, dense rows in partial sums.
        terms = self.n if self.sparse else min(self.n, _SUM_ROWS) + 2 * strips.n_partial_sums
        entry_errors = gamma(terms + 3) * size + 2 * C.error + LEAST
        errors = strips.transposed(self._to_device(entry_errors), absolute=True)
        return Ball(np.array(floats(values)), np.array(floats(errors)) + 2 * self.n * LEAST).finite()

    def transposed_squares(self, weight: Floats, centre: Floats | None = None) -> Floats:
        """Return Σ w_i (x_ij − c_j)² for each feature j."""
        strips, w = self._strips(centre), self._to_device(weight)
        out = torch.zeros(self.d, dtype=torch.float64, device=w.device)

        def work(block: slice) -> None:
            part = strips.part(block)
            if isinstance(part, SparseRows):
                entries = part.values.square() * torch.repeat_interleave(w[block, 0], part.counts)
                out.add_(part.over_columns(entries))
            else:
                out.add_((part.square() * w[block]).sum(dim=0))

        in_strips(self.n, 24 * self.d, work)
        return np.array(floats(out))

    def sums(self, problem: LeastSquares) -> Sums:
        """Return the sums over the samples, each with its weight and targets."""

        def products_about(x: Floats, Y: Floats) -> tuple[Floats, Floats, Floats]:
            strips = self._strips(None if self.sparse else x)
            products_and_sums = strips.transposed(self._to_device(np.column_stack([Y, problem.total])))
            xx, products_and_sums = (
                floats(strips.squares(self._to_device(problem.total)[:, 0])),
                np.array(floats(products_and_sums)),
            )
            xx = np.array(xx)
            mirror(xx)
            return xx, products_and_sums[:, :-1], products_and_sums[:, -1]

        return Sums.gathered(problem, self.d, self.sparse, self.transposed, products_about)

    def dense_blocks(self, centre: Floats | None = None) -> Iterator[tuple[slice, Floats]]:
        """Yield X − 1c' as dense host arrays, a block of rows at a time, each with its slice."""
        for rows, part in self._samples.parts():
            dense = np.array(floats(part.dense() if isinstance(part, SparseRows) else part))
            yield rows, dense if centre is None else dense - centre

    def without_empty_columns(self) -> tuple[LinearGram, Indices | None]:
        """Return K from the non-empty features, and their indices, if that is faster; otherwise itself and None."""
        if not self.sparse or self.d <= self._samples.n_entries:
            return self, None
        rows = self._samples.rows
        columns = torch.unique(rows.columns)
        narrow_rows = SparseRows(rows.values, torch.searchsorted(columns, rows.columns), rows.starts, len(columns))
        return TorchLinearGram(type(self._samples)(self._samples.engine, narrow_rows), self.scale), to_host(columns)

    def _strips(self, centre: Floats | None) -> Strips:
        return Strips(self._samples.rows, centre)

    def _to_device(self, values: Floats) -> Any:
        """Copy a vector or a matrix to the device, a vector as one column."""
        tensor = to_device(np.ascontiguousarray(values), self._samples.rows)
        return tensor[:, None] if values.ndim == 1 else tensor
