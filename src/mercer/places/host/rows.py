"""Rows of a linear machine's data on the host: products and sums by the core.

Bounds: a sum of k products, in any order, has an error of at most γ_k times the sum of their absolute values (Higham,
"Accuracy and stability of numerical algorithms", 3.1), and in twice the precision of γ_k² times that sum (Ogita, Rump
and Oishi, "Accurate sum and dot product"). The sum is at most the product of two lengths (Cauchy–Schwarz). Every
product may lose LEAST more by underflow.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.places.ball import LEAST, Ball
from mercer.samples.arrays import Floats, Indices, PickedRows, add_gram, gamma, inner, is_sparse


def _with_int32_columns(X: Any) -> Any:
    """Return the CSR matrix X with int32 column indices, which the core requires."""
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X has {X.shape[1]} columns, but linear machines take at most 2³¹ − 1")
    if X.indices.dtype == np.int32:
        return X
    out = type(X)(X.shape, dtype=X.dtype)
    out.data, out.indices, out.indptr = X.data, X.indices.astype(np.int32), X.indptr
    return out


class HostRows:
    """`Rows` of an array or a CSR matrix, which is not copied except for int64 column indices.

    `selected` are indices of rows, in any order. `origin` is the length of a centre that was subtracted from all rows
    before, or 0; the rounding of that difference limits the accuracy of all sums.
    """

    def __init__(self, X: Any, n_threads: int, selected: Indices | None = None, origin: float = 0.0) -> None:
        if isinstance(X, PickedRows):
            X, selected = X.X, X.rows if selected is None else X.rows[selected]
        self.n: int = X.shape[0] if selected is None else len(selected)
        self.d: int = X.shape[1]
        self._is_sparse = is_sparse(X)
        self._core: _core.LinearRows
        if self._is_sparse:
            X = _with_int32_columns(X)
            indptr = X.indptr.astype(np.int64, copy=False)
            starts, ends = (indptr[:-1], indptr[1:]) if selected is None else (indptr[selected], indptr[selected + 1])
            self._core = _core.csr_rows(np.ascontiguousarray(X.data), X.indices, starts, ends, self.d, n_threads)
            self.stored = int((ends - starts).sum())
        else:
            self._core = _core.dense_rows(X, n_threads, selected)
            self.stored = self.n * self.d
        self._X, self._n_threads, self._selected_rows, self.origin = X, n_threads, selected, origin

    @property
    def descent(self) -> _core.LinearRows:
        return self._core

    @cached_property
    def squared_lengths(self) -> Floats:
        """Squared length of every row."""
        out = np.empty(self.n)
        self._core.lengths(out)
        return out

    def first(self, m: int) -> HostRows:
        """Return the first m rows."""
        if self._selected_rows is not None:
            return HostRows(self._X, self._n_threads, self._selected_rows[:m], self.origin)
        return HostRows(self._X[:m], self._n_threads, origin=self.origin)

    def take(self, rows: Indices) -> HostRows:
        """Return the given rows; they share memory, except that rows of an array without a selection are copied."""
        if self._is_sparse or self._selected_rows is not None:
            rows = rows if self._selected_rows is None else self._selected_rows[rows]
            return HostRows(self._X, self._n_threads, rows, self.origin)
        return HostRows(self._X[rows], self._n_threads, origin=self.origin)

    def product(self, w: Floats, shift: float = 0.0) -> Floats:
        """Return Xw + shift."""
        out = np.empty(self.n)
        self._core.product(w, shift, out)
        return out

    def transposed(self, c: Floats) -> Floats:
        """Return X'c."""
        out = np.empty(self.d)
        self._core.transposed(c, out)
        return out

    def gram(self, rows: Indices, others: Indices) -> Floats:
        """Return the inner products of the given rows with the rows `others`."""
        row_indices = (index if self._selected_rows is None else self._selected_rows[index] for index in (rows, others))
        X, Z = (self._X[index].astype(np.float64, copy=False) for index in row_indices)
        return np.asarray((X @ Z.T).toarray() if self._is_sparse else X @ Z.T)

    def outer(self, rows: Indices, c: Floats) -> Floats:
        """Return Σ c z z' over the given rows, z = (x, 1) and c ≥ 0; only the lower triangle is valid."""
        out = np.empty((self.d + 1, self.d + 1))
        if self._is_sparse or len(rows) * self.d * self.d < 1 << 20:
            self._core.outer(rows.astype(np.int64, copy=False), c, out)
            return out
        # BLAS is faster from about a million products on. It gets blocks of 2²¹ entries (16 MB), so that a float32 X is
        # never converted as a whole.
        out[:] = 0.0
        step = max(1, (1 << 21) // (self.d + 1))
        for k in range(0, len(rows), step):
            Z = np.ones((len(rows[k : k + step]), self.d + 1))
            block = rows[k : k + step]
            Z[:, : self.d] = self._X[block if self._selected_rows is None else self._selected_rows[block]]
            Z *= np.sqrt(c[k : k + step, None])
            add_gram(out, Z)
        return out

    # --- proofs -------------------------------------------------------------------------------------------------

    def product_bound(self, w: Floats, shift: float = 0.0) -> Ball:
        """Return Xw + shift with a bound on the error of each number."""
        error = gamma(self.d + 6) * (self._lengths * _length(w) + abs(shift)) + (self.d + 2) * LEAST
        return Ball(self.product(w, shift), error).finite()

    def precise_product(self, w: Floats) -> Ball:
        """Return Xw, rounded once unless terms cancel by a factor of 10³²."""
        return self.doubled_product(w, np.zeros(self.d))

    def doubled_product(self, hi: Floats, lo: Floats) -> Ball:
        """Return X(hi + lo), rounded once unless terms cancel by a factor of 10³²."""
        f = np.empty(self.n)
        self._core.doubled_product(hi, lo, f)
        return self._rounded_once(f, self._lengths * (_length(hi) + _length(lo)), 0.0)

    def combination(self, c: Floats, tolerance: float = 0.0) -> tuple[Floats, Floats, float]:
        """Return X'c as the sum of two vectors, and a bound on the length of its error (`Rows.combination`).

        The sums have twice the precision of float64 if float64 alone would exceed the `tolerance`.
        """
        size, underflow = self._sum_of_lengths(c), 4 * self.n * self.d * LEAST
        error = gamma(self.n + 8) * size + underflow
        if error <= tolerance:
            return self.transposed(c), np.zeros(self.d), error
        return *self.doubled_transposed(c), (gamma(self.n + 8) ** 2 + self._centring_error) * size + underflow

    def gram_product(self, c: Floats) -> Ball:
        """Return XX'c in twice the precision of float64, rounded once unless terms cancel by a factor of 10³²."""
        u = np.empty(self.n)
        self._core.doubled_product(*self.doubled_transposed(c), u)
        return self._rounded_once(u, self._sum_of_lengths(c) * self._lengths, 4 * self.n * LEAST)

    def doubled_transposed(self, c: Floats) -> tuple[Floats, Floats]:
        """Return X'c in twice the precision of float64, as a sum of two vectors."""
        hi, lo = np.empty(self.d), np.empty(self.d)
        self._core.doubled_transposed(c, hi, lo)
        return hi, lo

    def _rounded_once(self, f: Floats, size: Floats, factor_error: float) -> Ball:
        """Return bounds for sums f in twice the precision; `size` is Σ|terms|, whose factors err by `factor_error`."""
        share = 2 * gamma(self.n + self.d + 8) ** 2 + 2 * self._centring_error
        error = gamma(4) * np.abs(f) + share * size + self.d * (self._lengths * factor_error + 8 * LEAST)
        return Ball(f, error).finite()

    @property
    def _centring_error(self) -> float:
        """Relative rounding error of each number if a centre was subtracted from the rows."""
        return gamma(2) if self.origin else 0.0

    @cached_property
    def _lengths(self) -> Floats:
        """Length of each row, kept positive where squares underflow."""
        return np.asarray(np.sqrt(self.squared_lengths + self.d * LEAST))

    def _sum_of_lengths(self, c: Floats) -> float:
        """Return Σ|c_i|‖x_i‖, infinite if it overflows or is NaN."""
        mass = float(np.abs(c) @ self._lengths)
        return mass if math.isfinite(mass) else math.inf


def _length(w: Floats) -> float:
    """Return the length of w, kept positive where squares underflow."""
    return math.sqrt(inner(w, w) + len(w) * LEAST)


def weight_vectors(vectors: Any, coefficients: Any) -> Floats:
    """Return Σ_j c_j x_j for every column of coefficients, each sum rounded once; one column per output."""
    rows = HostRows(vectors if is_sparse(vectors) else np.ascontiguousarray(vectors), 1)
    table = coefficients.tocsc() if is_sparse(coefficients) else coefficients
    out = np.empty((rows.d, coefficients.shape[1]))
    for k in range(out.shape[1]):
        column = table[:, [k]].toarray().ravel() if is_sparse(table) else np.ascontiguousarray(table[:, k])
        out[:, k] = np.add(*rows.doubled_transposed(column))
    return out
