"""The rows of a linear machine's data for the core: products and sums in float64, whatever the precision of X."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, PickedRows, add_gram, gamma, is_sparse
from mercer.gram.ball import Ball


def _narrow(X: Any) -> Any:
    """The CSR matrix X with columns that are numbered by int32, as the core wants them."""
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X has {X.shape[1]} columns: linear machines have a weight for each, of at most 2³¹ − 1")
    if X.indices.dtype == np.int32:
        return X
    narrow = type(X)(X.shape, dtype=X.dtype)
    narrow.data, narrow.indices, narrow.indptr = X.data, X.indices.astype(np.int32), X.indptr
    return narrow


class LinearRows:
    """Dense or CSR rows; of those only columns numbered by int64 are copied, once.

    `which` selects rows, in any order. `origin` is the length of a vector that was subtracted from all.
    """

    def __init__(self, X: Any, n_threads: int, which: Indices | None = None, origin: float = 0.0) -> None:
        if isinstance(X, PickedRows):
            X, which = X.X, X.which if which is None else X.which[which]
        self.n: int = X.shape[0] if which is None else len(which)
        self.d: int = X.shape[1]
        self.sparse = is_sparse(X)
        self.core: Any
        if self.sparse:
            X = _narrow(X)
            indptr = X.indptr.astype(np.int64, copy=False)
            starts, ends = (indptr[:-1], indptr[1:]) if which is None else (indptr[which], indptr[which + 1])
            self.core = _core.csr_rows(np.ascontiguousarray(X.data), X.indices, starts, ends, self.d, n_threads)
            self.stored = int((ends - starts).sum())
        else:
            self.core = _core.dense_rows(X, n_threads, which)
            self.stored = self.n * self.d
        self.X, self.n_threads, self._which, self.origin = X, n_threads, which, origin

    def first(self, m: int) -> LinearRows:
        """The first m rows, sharing memory."""
        if self._which is not None:
            return LinearRows(self.X, self.n_threads, self._which[:m], self.origin)
        return LinearRows(self.X[:m], self.n_threads, origin=self.origin)

    def some(self, which: Indices) -> LinearRows:
        """The rows `which`, sharing memory; those of arrays that are in order are copied."""
        if self.sparse or self._which is not None:
            return LinearRows(self.X, self.n_threads, which if self._which is None else self._which[which], self.origin)
        return LinearRows(self.X[which], self.n_threads, origin=self.origin)

    def gram(self, which: Indices, others: Indices) -> Floats:
        """The inner products of the rows `which` with the rows `others`, in float64."""
        chosen = (some if self._which is None else self._which[some] for some in (which, others))
        X, Z = (self.X[some].astype(np.float64, copy=False) for some in chosen)
        return np.asarray((X @ Z.T).toarray() if self.sparse else X @ Z.T)

    def product(self, w: Floats, shift: float = 0.0) -> Floats:
        """Xw + shift."""
        out = np.empty(self.n)
        self.core.product(w, shift, out)
        return out

    def transposed(self, c: Floats) -> Floats:
        """X'c; rows whose c is 0 cost nothing."""
        out = np.empty(self.d)
        self.core.transposed(c, out)
        return out

    def doubled_transposed(self, c: Floats) -> tuple[Floats, Floats]:
        """X'c in twice the precision of float64, as a sum of two vectors."""
        hi, lo = np.empty(self.d), np.empty(self.d)
        self.core.doubled_transposed(c, hi, lo)
        return hi, lo

    def doubled_product(self, hi: Floats, lo: Floats) -> Floats:
        """X(hi + lo), summed in twice the precision of float64 and rounded once."""
        out = np.empty(self.n)
        self.core.doubled_product(hi, lo, out)
        return out

    def gram_product(self, c: Floats) -> Ball:
        """XX'c in twice the precision of float64, and a bound on its error: one rounding, unless 10³² cancel."""
        u = self.doubled_product(*self.doubled_transposed(c))
        lengths = np.sqrt(self.lengths)
        terms = gamma(self.n + self.d + 8)
        return Ball(u, gamma(4) * np.abs(u) + 2 * terms**2 * float(np.abs(c) @ lengths) * lengths)

    def outer(self, which: Indices, c: Floats) -> Floats:
        """Σ c z z' over the rows `which`, z = (x, 1); only the lower triangle is valid."""
        out = np.empty((self.d + 1, self.d + 1))
        if self.sparse or len(which) * self.d * self.d < 1 << 20:
            self.core.outer(which.astype(np.int64, copy=False), c, out)
            return out
        # BLAS is faster from about a million products on. It gets blocks of 2²¹ entries (16 MB), so that a float32 X is
        # never converted as a whole.
        out[:] = 0.0
        step = max(1, (1 << 21) // (self.d + 1))
        for k in range(0, len(which), step):
            Z = np.ones((len(which[k : k + step]), self.d + 1))
            some = which[k : k + step]
            Z[:, : self.d] = self.X[some if self._which is None else self._which[some]]
            Z *= np.sqrt(c[k : k + step, None])
            add_gram(out, Z)
        return out

    @cached_property
    def lengths(self) -> Floats:
        """The squared length of every row."""
        found = np.empty(self.n)
        self.core.lengths(found)
        return found


def weight_vectors(vectors: Any, coefficients: Any) -> Floats:
    """Σ_j c_j x_j for every column of coefficients, each sum rounded once; one column per output."""
    rows = LinearRows(vectors if is_sparse(vectors) else np.ascontiguousarray(vectors), 1)
    table = coefficients.tocsc() if is_sparse(coefficients) else coefficients
    out = np.empty((rows.d, coefficients.shape[1]))
    for k in range(out.shape[1]):
        column = table[:, [k]].toarray().ravel() if is_sparse(table) else np.ascontiguousarray(table[:, k])
        out[:, k] = np.add(*rows.doubled_transposed(column))
    return out
