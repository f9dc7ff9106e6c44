"""K between samples in chunks and landmarks on a device, in float64: a strip of K at a time, never K as a whole.

Error bounds are those of places/host/cross.py. For kernels of several recipes the host computes the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.places.host.cross import HostCross
from mercer.places.host.prepared import EXACT
from mercer.places.host.source import check_finite_values
from mercer.places.protocols import ErrorTotals, Totals
from mercer.places.rounding import Rounding
from mercer.places.torch.formula import Formula
from mercer.places.torch.memory import in_strips
from mercer.places.torch.numbers import floats, index_tensor, to_device, torch
from mercer.places.torch.samples import TorchSamples
from mercer.places.torch.sparse import SparseRows
from mercer.samples.arrays import Floats, Indices, gamma, mirror
from mercer.samples.chunks import Chunk

# Rows of one partial sum of a proof: the number of rows plus the number of partial sums bounds the rounding.
_PROOF_ROWS = 1024
# Roundings of one term, in addition to those of the sums.
_FEW_ROUNDINGS = 12


class TorchCross:
    """`Cross` of samples on a torch device."""

    recomputes_cheaply = True

    def __init__(
        self,
        kernel: Kernel,
        landmarks: Any,
        chunks: Callable[[], Iterable[Chunk]],
        budget: int,
        n_threads: int,
        K_MM: Floats | None,
    ) -> None:
        self.kernel, self._chunks, self._given_K_MM = kernel, chunks, K_MM
        self._budget, self._n_threads = budget, n_threads
        self._columns: Indices | None = None
        if kernel.accepts == "gram":
            self._columns, self.m = np.asarray(landmarks), len(landmarks)
        else:
            assert isinstance(landmarks, TorchSamples)
            self._points, self.m = landmarks, landmarks.shape[0]
            self._formula = Formula.of(kernel, landmarks.rows)
            self._landmarks = self._formula.rows(landmarks.rows, torch.float64)

    # --- facts ---------------------------------------------------------------------------------------------------

    @cached_property
    def K_MM(self) -> Floats:
        """Kernel matrix of the landmarks, as an array of the host."""
        if self._given_K_MM is not None:
            return self._given_K_MM
        if self._formula.rounding is None:
            return self._on_host.K_MM
        formula, rows = self._landmark_formula, self._points.rows
        K = np.array(floats(formula.block(*2 * [formula.rows(rows, torch.float64)], proven=True)))
        check_finite_values(K, self.kernel)
        mirror(K)
        return K

    @cached_property
    def _landmark_formula(self) -> Formula:
        """Formula of K_MM, from differences: K_MM is inverted, and its M² values cost little."""
        return Formula.of(self.kernel, self._points.rows, of_differences=True)

    @cached_property
    def value_error(self) -> float:
        """Bound on the error of a value of K_MM, in units of √(k_ii k_jj); given values count as exact."""
        if self._columns is not None:
            return 0.0
        rounding = self._formula.rounding
        if rounding is None:
            return self._on_host.value_error
        root, sizes = np.sqrt(np.abs(self.K_MM.diagonal())), self._landmark_formula.sizes(self._points.rows)
        level = EXACT if self._landmark_formula.differences else np.float64
        longest = int(np.argmax(sizes))
        errors = rounding.errors(sizes, sizes[[longest]], np.ones(1), level)
        scale = root * root[longest]
        return float(np.divide(errors, scale, out=np.zeros(self.m), where=scale > 0).max())

    # --- passes --------------------------------------------------------------------------------------------------

    def normal(self, C: Floats) -> Floats:
        return self._total(C.shape, lambda K, C, Y, w: K.T @ (w * (K @ C)), C)

    def residual(self, C: Floats, b: Floats) -> Totals:
        """Return K_nMᵀ W (Y − K_nM C − b) and the other totals of the pass; `bias_column` only if C = 0."""
        out, C_is_zero = Totals(np.zeros(C.shape), np.zeros(self.m)), not C.any()
        for chunk in self._chunks():
            self._add(out, chunk, C, b, with_bias_column=C_is_zero)
        return out

    def gather(self, sample: Chunk | None = None) -> tuple[Floats, Totals]:
        """Return K_nMᵀ W K_nM over one chunk or all of them, and the totals of this pass at C = 0 and b = 0."""

        def weighted(K: Any, _: Any, Y: Any, w: Any) -> Any:
            half = w.sqrt() * K
            return half.T @ half

        chunks = None if sample is None else [sample]
        G = self._total((self.m, self.m), weighted, None, chunks)
        mirror(G)
        out: Totals | None = None
        for chunk in self._chunks() if chunks is None else chunks:
            outputs = chunk.Y.shape[1]
            out = out or Totals(np.zeros((self.m, outputs)), np.zeros(self.m))
            self._add(out, chunk, np.zeros((self.m, outputs)), np.zeros(outputs), with_bias_column=True)
        return G, out or Totals(np.zeros((self.m, 0)), np.zeros(self.m))

    def _add(self, out: Totals, chunk: Chunk, C: Floats, b: Floats, *, with_bias_column: bool) -> None:
        """Add a chunk to the totals."""
        E, X = chunk.Y - b, chunk.X.rows
        if C.any():
            E = E - self._forward(chunk, C)
        weighted = chunk.weight[:, None] * E
        columns = to_device(np.column_stack([weighted, chunk.weight]) if with_bias_column else weighted, X)
        product = torch.zeros((self.m, columns.shape[1]), dtype=torch.float64, device=X.device)

        def work(block: slice) -> None:
            product.add_(self._values(X, block).T @ columns[block])

        in_strips(len(X), self._row_bytes, work, device=X.device)
        sums = floats(product)
        out.residual += sums[:, : C.shape[1]]
        if with_bias_column:
            out.bias_column += sums[:, -1]
        out.add(chunk.weight, E, weighted)

    def _forward(self, chunk: Chunk, C: Floats) -> Floats:
        """Return K_nM C of a chunk."""
        X = chunk.X.rows
        coefficients = to_device(C, X)
        out = torch.empty((len(X), C.shape[1]), dtype=torch.float64, device=X.device)

        def work(block: slice) -> None:
            out[block] = self._values(X, block) @ coefficients

        in_strips(len(X), self._row_bytes, work, device=X.device)
        return floats(out)

    def _total(
        self,
        shape: tuple[int, ...],
        term: Callable[[Any, Any, Any, Any], Any],
        C: Floats | None,
        chunks: Iterable[Chunk] | None = None,
    ) -> Floats:
        """Return the sum of `one(K, C, Y, w)` over all blocks of samples."""
        total = np.zeros(shape)
        for chunk in self._chunks() if chunks is None else chunks:
            X = chunk.X.rows
            out = torch.zeros(shape, dtype=torch.float64, device=X.device)
            Y, w = (to_device(part, X) for part in (chunk.Y, chunk.weight[:, None]))
            coefficients = None if C is None else to_device(C, X)

            def work(
                block: slice, X: Any = X, Y: Any = Y, w: Any = w, coefficients: Any = coefficients, out: Any = out
            ) -> None:
                out.add_(term(self._values(X, block), coefficients, Y[block], w[block]))

            in_strips(len(X), 2 * self._row_bytes, work, device=X.device)
            total += floats(out)
        return total

    @property
    def _row_bytes(self) -> int:
        """Bytes of work space per sample."""
        features = 0 if self._columns is not None else self._points.shape[1]
        return 8 * (2 * self.m + 2 * features)

    def _values(self, X: Any, block: slice, *, proven: bool = False) -> Any:
        """Return a block of rows of K_nM."""
        if self._columns is not None:
            return X[block][:, index_tensor(self._columns, X)].double()
        landmarks = self._on(X.device)
        return self._formula.block(self._formula.rows(X[block], torch.float64), landmarks, proven=proven)

    def _on(self, device: Any) -> Any:
        return self._landmarks if self._landmarks.device == device else self._landmarks.to(device)

    # --- proof ---------------------------------------------------------------------------------------------------

    def proof(self, C: Floats, b: Floats) -> tuple[Totals, ErrorTotals]:
        """Return the totals of `residual`, and bounds on their rounding errors."""
        if self._columns is None and self._formula.rounding is None:
            return self._on_host.proof(C, b)
        out, errors = Totals(np.zeros(C.shape), np.zeros(self.m)), ErrorTotals(np.zeros(C.shape), np.zeros(C.shape[1]))
        sums, size = np.zeros(C.shape), np.abs(C)
        features = 1 if self._columns is not None else self._points.shape[1]
        share = gamma(self.m + features + _FEW_ROUNDINGS)
        for chunk, block, X in self._proof_strips():
            Y, weight = chunk.Y[block], chunk.weight[block]
            K = self._values(X, block, proven=True)
            forward_error, transposed_error = self._value_errors(X[block])
            E = Y - floats(K @ to_device(C, X)) - b
            weighted = weight[:, None] * E
            out.residual += floats(K.T @ to_device(weighted, X))
            out.add(weight, E, weighted)
            K = K.abs_()
            f_error = forward_error(C) + share * (floats(K @ to_device(size, X)) + np.abs(Y) + np.abs(b))
            sums += floats(K.T @ to_device(np.abs(weighted), X))
            errors.terms += 1
            errors.residual += transposed_error(weighted)
            errors.squares += np.sum(weight[:, None] * f_error * f_error, axis=0)
            errors.trace += float(weight @ self._diagonal(X[block]))
        errors.terms += _PROOF_ROWS
        errors.residual += gamma(errors.terms + features + _FEW_ROUNDINGS) * sums
        return out, errors

    def _proof_strips(self) -> Iterator[tuple[Chunk, slice, Any]]:
        """Yield each chunk with the slice of one strip of its samples, and the tensor of all its samples."""
        for chunk in self._chunks():
            for start in range(0, chunk.n, _PROOF_ROWS):
                yield chunk, slice(start, min(chunk.n, start + _PROOF_ROWS)), chunk.X.rows

    def _value_errors(self, X: Any) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
        """Return two functions of C that bound the errors of K @ C and Kᵀ @ C due to errors in K = K(X, landmarks)."""
        if self._columns is not None:
            n = len(X)
            return lambda C: np.zeros((n, C.shape[1])), lambda C: np.zeros((self.m, C.shape[1]))
        formula, rounding = self._formula, self._formula.rounding
        assert rounding is not None
        if isinstance(X, SparseRows):  # rows may have more entries than any landmark
            rounding = replace(rounding, terms=max(rounding.terms, min(X.shape[1], 2 * X.longest)))
        level = EXACT if formula.differences else np.float64
        row_sizes, landmark_sizes = formula.sizes(X), self._sizes
        return _product_errors(rounding, row_sizes, landmark_sizes, level), _product_errors(
            rounding, landmark_sizes, row_sizes, level
        )

    @cached_property
    def _sizes(self) -> Floats:
        return self._formula.sizes(self._points.rows)

    def _diagonal(self, X: Any) -> Floats:
        """Return |k(x, x)| of each sample; for a precomputed kernel, where it is unknown, the largest of landmarks."""
        if self._columns is not None:
            return np.full(len(X), float(np.abs(self.K_MM.diagonal()).max()))
        return np.abs(floats(self._formula.diagonal(X)))

    @cached_property
    def _on_host(self) -> HostCross:
        """This matrix on the host, from copies of the chunks."""

        def host_chunks() -> Iterator[Chunk]:
            return (replace(chunk, X=chunk.X.host(), kept=None) for chunk in self._chunks())

        points: Any = self._points.host() if self._columns is None else self._columns
        return HostCross(self.kernel, points, host_chunks, self._budget, self._n_threads, self._given_K_MM)


def _product_errors(rounding: Rounding, rows: Floats, columns: Floats, level: Any) -> Callable[[Floats], Floats]:
    return lambda C: np.column_stack([rounding.errors(rows, columns, c, level) for c in C.T])
