"""Samples in the form that the fused core takes for a recipe, dense or sparse, in float32 or float64.

A recipe says which inner value and ending; here the data are centred where only differences count, and scaled so that the
ending is cheap (src/core/endings.hpp). Blocks are then stored, or summed against coefficients without keeping K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer.arrays import Floats, Indices
from mercer.kernels import Recipe

_LOG2E = math.log2(math.e)
_ENDINGS = ("identity", "gaussian", "polynomial", "sigmoid", "laplacian")
# Dense data this sparse are faster as CSR: a stored entry costs about what two and a half features do.
_SPARSE_SHARE = 0.3
# Squared lengths stay far from the largest number of either precision.
_LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e140}


@dataclass(frozen=True, eq=False)
class Lowering:
    """How samples are prepared for a recipe: shift, scale, and the ending's numbers."""

    recipe: Recipe
    centre: Floats
    scale: float
    ending: int
    numbers: Floats
    sparse: bool

    @classmethod
    def of(cls, recipe: Recipe, X: Any) -> Lowering:
        """Centred at the mean of X where the kernel sees differences only, and sparse where that is faster."""
        gamma, coef0, degree = (*recipe.numbers, 0.0, 0.0, 0.0)[:3]
        scale = {"gaussian": math.sqrt(2 * gamma * _LOG2E), "laplacian": gamma * _LOG2E}.get(recipe.ending, 1.0)
        sparse = sp.issparse(X) or _is_sparse(X)
        sparse = sparse and recipe.factor is None
        d = X.shape[1] if recipe.factor is None else recipe.factor.shape[1]
        centre = np.zeros(d)
        if not sparse and recipe.inner != "dot" and X.shape[0]:
            mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
            centre = mean if recipe.factor is None else mean @ recipe.factor
        numbers = np.array([recipe.scale, gamma, coef0, degree])
        return cls(recipe, centre, scale, _ENDINGS.index(recipe.ending), numbers, sparse)

    def prepare(self, X: Any, dtype: Any, n_threads: int) -> DenseSamples | SparseSamples | None:
        """The samples of X, or None where their numbers are too large for this precision."""
        make = SparseSamples if self.sparse else DenseSamples
        samples = make(self, X, np.dtype(dtype), n_threads)
        return samples if samples.largest < _LARGEST[samples.dtype] else None


class DenseSamples:
    """Prepared rows with half their squared lengths."""

    def __init__(self, lowering: Lowering, X: Any, dtype: np.dtype[Any], n_threads: int) -> None:
        self.lowering, self.dtype, self.n_threads = lowering, dtype, n_threads
        recipe = lowering.recipe
        if sp.issparse(X):
            X = X.toarray()
        if recipe.factor is not None:
            X = X @ recipe.factor
        if recipe.normalise:
            length = np.linalg.norm(X, axis=1, keepdims=True)
            X = X / np.where(length > 0, length, 1.0)
        X = np.ascontiguousarray(X)
        self.rows = np.empty(X.shape, dtype)
        self.norms = np.empty(len(X), dtype)
        with np.errstate(over="ignore"):
            _core.prepare(X, lowering.centre, lowering.scale, self.rows, self.norms, n_threads)
        self.height, self.width, _ = _core.tile_shape(dtype == np.float32)

    @property
    def largest(self) -> float:
        return math.sqrt(2 * float(np.max(self.norms, initial=0.0)))

    def columns(self, which: Indices) -> tuple[int, Any, Any]:
        """Some samples laid out as panels, for repeated use as columns."""
        padded = -(-len(which) // self.width) * self.width
        panels = np.empty(padded * self.rows.shape[1], self.dtype)
        norms = np.empty(padded, self.dtype)
        _core.pack(self.rows, self.norms, which, panels, norms, self.n_threads)
        return len(which), panels, norms

    def add(self, total: Floats, columns: tuple[int, Any, Any], which: Indices, coefficients: Floats) -> None:
        """total += K[columns, which] @ coefficients."""
        lowering = self.lowering
        _core.sum_dense(
            columns[1],
            columns[2],
            self.rows,
            self.norms,
            which,
            coefficients,
            lowering.ending,
            lowering.numbers,
            total,
            self.n_threads,
        )

    def block(self, which: Indices, columns: tuple[int, Any, Any]) -> Any:
        """K[which, columns], a view into rows padded to whole tiles."""
        lowering, n = self.lowering, columns[0]
        # A distance between rows that is a power of two would map them onto few cache sets: 16 more elements break it.
        width = -(-n // self.width) * self.width + 16
        out = np.empty((-(-len(which) // self.height) * self.height, width), self.dtype)
        _core.store_dense(
            columns[1],
            columns[2],
            n,
            self.rows,
            self.norms,
            which,
            lowering.ending,
            lowering.numbers,
            out,
            self.n_threads,
        )
        return out[: len(which), :n]


class SparseSamples:
    """Prepared CSR rows with the norm their ending asks for."""

    def __init__(self, lowering: Lowering, X: Any, dtype: np.dtype[Any], n_threads: int) -> None:
        self.lowering, self.dtype, self.n_threads = lowering, dtype, n_threads
        X = sp.csr_array(X)
        values = X.data.astype(np.float64)
        if lowering.recipe.normalise:
            length = np.sqrt(_row_sums(values**2, X.indptr))
            values /= np.repeat(np.where(length > 0, length, 1.0), np.diff(X.indptr))
        with np.errstate(over="ignore"):
            self.values = (values * lowering.scale).astype(dtype)
            stored = self.values.astype(np.float64)
            l1 = lowering.recipe.inner == "l1"
            self.norms = (_row_sums(np.abs(stored) if l1 else 0.5 * stored**2, X.indptr)).astype(dtype)
        self.indices = X.indices.astype(np.int32)
        self.starts = X.indptr.astype(np.int64)
        self.d = X.shape[1]
        self.width = _core.tile_shape(dtype == np.float32)[2]

    @property
    def largest(self) -> float:
        return float(np.max(np.abs(self.values), initial=0.0))

    def columns(self, which: Indices) -> Indices:
        return which

    def add(self, total: Floats, columns: Indices, which: Indices, coefficients: Floats) -> None:
        """total += K[columns, which] @ coefficients."""
        lowering = self.lowering
        _core.sum_sparse(
            *self._arrays(),
            columns,
            which,
            coefficients,
            lowering.ending,
            lowering.numbers,
            total,
            self.n_threads,
        )

    def block(self, which: Indices, columns: Indices) -> Any:
        """K[which, columns]."""
        lowering = self.lowering
        width = -(-len(columns) // self.width) * self.width + 16
        out = np.empty((len(which), width), self.dtype)
        _core.store_sparse(
            *self._arrays(), which, columns, lowering.ending, lowering.numbers, out, self.n_threads
        )
        return out[:, : len(columns)]

    def _arrays(self) -> tuple[Any, ...]:
        return self.values, self.indices, self.starts, self.norms, self.d


def _row_sums(values: Floats, indptr: Any) -> Floats:
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.bincount(rows, weights=values, minlength=len(indptr) - 1)


def _is_sparse(X: Any) -> bool:
    """Whether few enough entries of a dense array are not zero, judged by a thousand rows spread over it."""
    some = X[:: max(1, len(X) // 1000)]
    return bool(X.shape[1] >= 16 and np.count_nonzero(some) <= _SPARSE_SHARE * some.size)


class Vectors:
    """Fixed samples that others are compared with, chunk by chunk: support vectors, in training and afterwards."""

    def __init__(self, lowering: Lowering, X: Any, dtype: Any, n_threads: int) -> None:
        self.lowering, self.dtype, self.n_threads = lowering, np.dtype(dtype), n_threads
        self.X = sp.csr_array(X) if lowering.sparse else X
        self.n = X.shape[0]
        self._samples = None if lowering.sparse else DenseSamples(lowering, X, self.dtype, n_threads)

    def values(self, X: Any, coefficients: Any) -> Floats:
        """K(X, vectors) @ coefficients for one column of coefficients, or for several."""
        samples, vectors, columns = self._meet(X)
        if coefficients.shape[1] == 1:
            total = np.zeros(X.shape[0])
            samples.add(total, columns, vectors, np.ascontiguousarray(coefficients[:, 0]))
            return total[:, None]
        return np.asarray(samples.block(vectors, columns).T.astype(np.float64) @ coefficients)

    def _meet(self, X: Any) -> tuple[Any, Indices, Any]:
        """The samples whose rows are the vectors, those rows, and X as columns."""
        vectors = np.arange(self.n)
        if self._samples is None:
            both = SparseSamples(self.lowering, sp.vstack([self.X, sp.csr_array(X)]), self.dtype, self.n_threads)
            return both, vectors, self.n + np.arange(X.shape[0])
        others = DenseSamples(self.lowering, X, self.dtype, self.n_threads)
        return self._samples, vectors, others.columns(np.arange(X.shape[0]))
