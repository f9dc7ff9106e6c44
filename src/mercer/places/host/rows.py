"""The rows of a linear machine's data in this machine's memory: products and sums by the core.

Bounds: a sum of k products, in any order, is off by at most γ_k times the sum of their absolute values (Higham,
"Accuracy and stability of numerical algorithms", 3.1), in twice the precision by γ_k² of it (Ogita, Rump and Oishi,
"Accurate sum and dot product"). That sum is at most the product of two lengths (Cauchy–Schwarz). Every product may lose
LEAST more, below the normal numbers.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.places.ball import LEAST, Ball
from mercer.samples.arrays import Floats, Indices, PickedRows, add_gram, gamma, inner, is_sparse


def _narrow(X: Any) -> Any:
    """The CSR matrix X with columns that are numbered by int32, as the core wants them."""
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X has {X.shape[1]} columns: linear machines have a weight for each, of at most 2³¹ − 1")
    if X.indices.dtype == np.int32:
        return X
    narrow = type(X)(X.shape, dtype=X.dtype)
    narrow.data, narrow.indices, narrow.indptr = X.data, X.indices.astype(np.int32), X.indptr
    return narrow


class HostRows:
    """`Rows` of an array or a CSR matrix; of that only columns numbered by int64 are copied, once.

    `which` selects rows, in any order. `origin` is the length of a vector that was taken off all rows
    before; where there was one, no sum is better than the rounding of that.
    """

    def __init__(self, X: Any, n_threads: int, which: Indices | None = None, origin: float = 0.0) -> None:
        if isinstance(X, PickedRows):
            X, which = X.X, X.which if which is None else X.which[which]
        self.n: int = X.shape[0] if which is None else len(which)
        self.d: int = X.shape[1]
        self._sparse = is_sparse(X)
        self._core: _core.LinearRows
        if self._sparse:
            X = _narrow(X)
            indptr = X.indptr.astype(np.int64, copy=False)
            starts, ends = (indptr[:-1], indptr[1:]) if which is None else (indptr[which], indptr[which + 1])
            self._core = _core.csr_rows(np.ascontiguousarray(X.data), X.indices, starts, ends, self.d, n_threads)
            self.stored = int((ends - starts).sum())
        else:
            self._core = _core.dense_rows(X, n_threads, which)
            self.stored = self.n * self.d
        self._X, self._n_threads, self._which, self.origin = X, n_threads, which, origin

    @property
    def descent(self) -> _core.LinearRows:
        return self._core

    @cached_property
    def lengths(self) -> Floats:
        found = np.empty(self.n)
        self._core.lengths(found)
        return found

    def first(self, m: int) -> HostRows:
        if self._which is not None:
            return HostRows(self._X, self._n_threads, self._which[:m], self.origin)
        return HostRows(self._X[:m], self._n_threads, origin=self.origin)

    def some(self, which: Indices) -> HostRows:
        """The rows `which`, sharing memory; those of an array that is in order are copied."""
        if self._sparse or self._which is not None:
            which = which if self._which is None else self._which[which]
            return HostRows(self._X, self._n_threads, which, self.origin)
        return HostRows(self._X[which], self._n_threads, origin=self.origin)

    def product(self, w: Floats, shift: float = 0.0) -> Floats:
        out = np.empty(self.n)
        self._core.product(w, shift, out)
        return out

    def transposed(self, c: Floats) -> Floats:
        out = np.empty(self.d)
        self._core.transposed(c, out)
        return out

    def gram(self, which: Indices, others: Indices) -> Floats:
        chosen = (some if self._which is None else self._which[some] for some in (which, others))
        X, Z = (self._X[some].astype(np.float64, copy=False) for some in chosen)
        return np.asarray((X @ Z.T).toarray() if self._sparse else X @ Z.T)

    def outer(self, which: Indices, c: Floats) -> Floats:
        out = np.empty((self.d + 1, self.d + 1))
        if self._sparse or len(which) * self.d * self.d < 1 << 20:
            self._core.outer(which.astype(np.int64, copy=False), c, out)
            return out
        # BLAS is faster from about a million products on. It gets blocks of 2²¹ entries (16 MB), so that a float32 X is
        # never converted as a whole.
        out[:] = 0.0
        step = max(1, (1 << 21) // (self.d + 1))
        for k in range(0, len(which), step):
            Z = np.ones((len(which[k : k + step]), self.d + 1))
            some = which[k : k + step]
            Z[:, : self.d] = self._X[some if self._which is None else self._which[some]]
            Z *= np.sqrt(c[k : k + step, None])
            add_gram(out, Z)
        return out

    # --- proofs -------------------------------------------------------------------------------------------------

    def product_bound(self, w: Floats, shift: float = 0.0) -> Ball:
        error = gamma(self.d + 6) * (self._lengths * _length(w) + abs(shift)) + (self.d + 2) * LEAST
        return Ball(self.product(w, shift), error).finite()

    def precise_product(self, w: Floats) -> Ball:
        """Xw, rounded once unless 10³² cancel."""
        return self.doubled_product(w, np.zeros(self.d))

    def doubled_product(self, hi: Floats, lo: Floats) -> Ball:
        """X(hi + lo), rounded once unless 10³² cancel."""
        f = np.empty(self.n)
        self._core.doubled_product(hi, lo, f)
        return self._rounded_once(f, self._lengths * (_length(hi) + _length(lo)), 0.0)

    def combination(self, c: Floats, enough: float = 0.0) -> tuple[Floats, Floats, float]:
        """X'c in twice the precision of float64, if float64 alone is not enough."""
        size, lost = self._mass(c), 4 * self.n * self.d * LEAST
        error = gamma(self.n + 8) * size + lost
        if error <= enough:
            return self.transposed(c), np.zeros(self.d), error
        return *self.doubled_transposed(c), (gamma(self.n + 8) ** 2 + self._taken_off) * size + lost

    def gram_product(self, c: Floats) -> Ball:
        """XX'c in twice the precision of float64, rounded once unless 10³² cancel."""
        u = np.empty(self.n)
        self._core.doubled_product(*self.doubled_transposed(c), u)
        return self._rounded_once(u, self._mass(c) * self._lengths, 4 * self.n * LEAST)

    def doubled_transposed(self, c: Floats) -> tuple[Floats, Floats]:
        """X'c in twice the precision of float64, as a sum of two vectors."""
        hi, lo = np.empty(self.d), np.empty(self.d)
        self._core.doubled_transposed(c, hi, lo)
        return hi, lo

    def _rounded_once(self, f: Floats, size: Floats, lost: float) -> Ball:
        """Sums in twice the precision, whose terms add up to `size`, of factors that are off by `lost` each."""
        share = 2 * gamma(self.n + self.d + 8) ** 2 + 2 * self._taken_off
        error = gamma(4) * np.abs(f) + share * size + self.d * (self._lengths * lost + 8 * LEAST)
        return Ball(f, error).finite()

    @property
    def _taken_off(self) -> float:
        """The rounding of each number where a vector was taken off the rows."""
        return gamma(2) if self.origin else 0.0

    @cached_property
    def _lengths(self) -> Floats:
        """The lengths of the rows, none of which is 0: squares below the smallest number are none."""
        return np.asarray(np.sqrt(self.lengths + self.d * LEAST))

    def _mass(self, c: Floats) -> float:
        """Σ|c_i|‖x_i‖, infinite where that is not known."""
        mass = float(np.abs(c) @ self._lengths)
        return mass if math.isfinite(mass) else math.inf


def _length(w: Floats) -> float:
    """The length of w, above 0 as `_lengths` are."""
    return math.sqrt(inner(w, w) + len(w) * LEAST)


def weight_vectors(vectors: Any, coefficients: Any) -> Floats:
    """Σ_j c_j x_j for every column of coefficients, each sum rounded once; one column per output."""
    rows = HostRows(vectors if is_sparse(vectors) else np.ascontiguousarray(vectors), 1)
    table = coefficients.tocsc() if is_sparse(coefficients) else coefficients
    out = np.empty((rows.d, coefficients.shape[1]))
    for k in range(out.shape[1]):
        column = table[:, [k]].toarray().ravel() if is_sparse(table) else np.ascontiguousarray(table[:, k])
        out[:, k] = np.add(*rows.doubled_transposed(column))
    return out
