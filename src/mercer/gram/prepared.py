"""Samples in the form that the fused core needs for a recipe, dense or sparse, prepared once per precision.

The data are centred if the kernel depends only on differences, and scaled so that the recipe's ending is cheap
(src/core/simd/endings.hpp). A Gram, an expansion and a cross matrix all use such samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer.arrays import Floats, Indices, is_sparse, sums_by, take
from mercer.kernels import Kernel, Recipe
from mercer.kernels.matrices import unit_rows
from mercer.kernels.used_columns import places_among, used_columns

# Samples that are prepared at a time, if not all at once: their copies stay small compared with all samples.
CHUNK_ROWS = 8192

_LOG2E = math.log2(math.e)
_ENDINGS = ("identity", "gaussian", "polynomial", "sigmoid", "laplacian")
# Dense data with at most this share of nonzero entries are faster as CSR, where an entry costs about twice as much. The
# share is estimated from about this many rows, if there are at least this many features.
_SPARSE_SHARE = 0.3
_SPARSE_ROWS = 1000
_SPARSE_FEATURES = 16
# Squared lengths must stay far below the largest number of their precision (the tests are written so that NaN fails).
_LARGEST = {np.dtype(np.float32): 1e30, np.dtype(np.float64): 1e280}


class PreparedSamples:
    """The samples X for a recipe; None in a precision for which their numbers are too large."""

    def __init__(self, recipe: Recipe, X: Any, n_threads: int) -> None:
        self.lowering = Lowering.of(recipe, X)
        self._X, self._n_threads = X, n_threads
        self._whole: dict[np.dtype[Any], _core.Samples | None] = {}

    @classmethod
    def of(cls, kernel: Kernel, X: Any, n_threads: int) -> PreparedSamples | None:
        """None if the core does not compute this kernel."""
        recipe = kernel.recipe() if kernel.accepts == "vectors" else None
        return None if recipe is None else cls(recipe, X, n_threads)

    def whole(self, dtype: Any) -> _core.Samples | None:
        """All samples, prepared at the first call; two threads that call it at once prepare the same numbers."""
        dtype = np.dtype(dtype)
        if dtype not in self._whole:
            self._whole[dtype] = self.prepare(self._X, dtype)
        return self._whole[dtype]

    def prepare_rows(self, rows: Indices, dtype: Any) -> tuple[_core.Samples | None, Indices]:
        """Prepared samples that include these rows, and the rows' places: all samples if prepared, or only these."""
        dtype = np.dtype(dtype)
        if dtype in self._whole:
            return self._whole[dtype], rows
        return self.prepare(take(self._X, rows), dtype), np.arange(len(rows))

    def prepare(self, X: Any, dtype: Any) -> _core.Samples | None:
        """Other samples, in the form in which the core can compare them with these."""
        return self.lowering.prepare(X, dtype, self._n_threads)


@dataclass(frozen=True, eq=False)
class Lowering:
    """How samples are prepared for a recipe: shift, scale, and the ending's numbers."""

    recipe: Recipe
    centre: Floats  # of every column, or of the `full` ones of sparse samples
    scale: float
    ending: int
    numbers: Floats
    sparse: bool
    full: Any = None  # the columns of sparse samples that have no zero: the others stay as they are, to stay sparse
    used: Any = None  # the columns in which CSR samples have an entry: only these are laid out

    @classmethod
    def of(cls, recipe: Recipe, X: Any) -> Lowering:
        """Centred at the mean of X if the kernel depends only on differences, and sparse if that is faster."""
        gamma, coef0, degree = (*recipe.numbers, 0.0, 0.0, 0.0)[:3]
        scale = {"gaussian": math.sqrt(2 * gamma * _LOG2E), "laplacian": gamma * _LOG2E}.get(recipe.ending, 1.0)
        sparse = recipe.factor is None and (is_sparse(X) or _is_mostly_zero(X))
        full, used = None, used_columns(X) if sparse and is_sparse(X) else None
        if recipe.inner == "dot":
            full, centre = (np.empty(0, np.intp), np.empty(0)) if sparse else (None, np.zeros(X.shape[1]))
        elif used is not None:
            full, centre = _full_columns(X, used)
        else:
            centre = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
            if sparse:
                full = np.flatnonzero(np.count_nonzero(X, axis=0) == X.shape[0])
                centre = centre[full]
        if recipe.factor is not None:
            centre = centre @ recipe.factor
        numbers = np.array([recipe.scale, gamma, coef0, degree])
        return cls(recipe, centre, scale, _ENDINGS.index(recipe.ending), numbers, sparse, full, used)

    def prepare(self, X: Any, dtype: Any, n_threads: int) -> _core.Samples | None:
        """The samples of X for the core; None if their numbers are too large for this precision."""
        return self._plus_constant((self._sparse if self.sparse else self._dense)(X, np.dtype(dtype), n_threads))

    def _plus_constant(self, samples: _core.Samples | None) -> _core.Samples | None:
        if samples is None or self.recipe.constant == 0:
            return samples
        return cast(_core.Samples, _Shifted(samples, self.recipe.constant))

    def _dense(self, X: Any, dtype: np.dtype[Any], n_threads: int) -> _core.Samples | None:
        recipe = self.recipe
        if is_sparse(X):
            X = X.toarray()
        if recipe.factor is not None:
            X = X @ recipe.factor
        if recipe.normalise:
            length = np.linalg.norm(X, axis=1, keepdims=True)
            X = X / np.where(length > 0, length, 1.0)
        X = np.ascontiguousarray(X)
        rows, norms = np.empty(X.shape, dtype), np.empty(len(X), dtype)
        _core.prepare(X, self.centre, self.scale, rows, norms, n_threads)
        if not np.max(norms, initial=0.0) < _LARGEST[dtype]:
            return None
        return _core.dense_samples(rows, norms, self.ending, self.numbers, n_threads)

    def _sparse(self, X: Any, dtype: np.dtype[Any], n_threads: int) -> _core.Samples | None:
        if not is_sparse(X) and not self.recipe.normalise and self.used is None:
            l1, single, centre = self.recipe.inner == "l1", dtype == np.float32, np.zeros(X.shape[1])
            centre[self.full] = self.centre
            entries = _core.prepare_sparse(np.ascontiguousarray(X), centre, self.scale, l1, single, n_threads)
            return self._from_entries(*entries, X.shape[1], n_threads)
        X = sp.csr_array(X)
        if len(self.full):
            X = sp.csr_array(X + _in_columns(np.tile(-self.centre, (X.shape[0], 1)), self.full, X.shape[1]))
        values = X.data.astype(np.float64)
        if self.recipe.normalise:
            length = np.sqrt(_row_sums(values**2, X.indptr))
            values /= np.repeat(np.where(length > 0, length, 1.0), np.diff(X.indptr))
        with np.errstate(over="ignore"):
            stored = (values * self.scale).astype(dtype)
            sizes = np.abs(stored) if self.recipe.inner == "l1" else 0.5 * stored.astype(np.float64) ** 2
            norms = _row_sums(sizes, X.indptr).astype(dtype)
        d, starts = X.shape[1], X.indptr.astype(np.int64)
        if self.used is None:
            return self._from_entries(stored, X.indices.astype(np.int32), starts, norms, d, n_threads)
        # All other columns are one more, in which the samples that X is compared with have no entry.
        indices = places_among(self.used, X.indices, d)
        return self._from_entries(stored, indices, starts, norms, len(self.used) + 1, n_threads)

    def exact_sparse(self, X: Any, n_threads: int) -> _core.Samples | None:
        """The samples of X as they are, for values that do not cancel (src/core/simd/sparse_sums.hpp); float64 only.

        They can be compared with each other, not with those of `prepare`.
        """
        X = sp.csr_array(X)
        values, starts = X.data.astype(np.float64), X.indptr.astype(np.int64)
        if self.recipe.normalise:
            values = unit_rows(X).data
        norms, lows = _core.exact_norms(values, starts, self.recipe.inner == "l1", n_threads)
        if not np.max(norms, initial=0.0) < _LARGEST[norms.dtype]:
            return None
        d = X.shape[1]
        indices = X.indices.astype(np.int32) if self.used is None else places_among(self.used, X.indices, d)
        d = d if self.used is None else len(self.used) + 1
        return self._plus_constant(
            _core.exact_sparse_samples(values, indices, starts, norms, lows, d, self.ending, self.numbers, n_threads)
        )

    def _from_entries(
        self, values: Any, indices: Any, starts: Any, norms: Any, d: int, n_threads: int
    ) -> _core.Samples | None:
        if not np.max(norms, initial=0.0) < _LARGEST[norms.dtype]:
            return None
        return _core.sparse_samples(values, indices, starts, norms, d, self.ending, self.numbers, n_threads)


class _Shifted:
    """Samples for k + c: the core computes k, and the constant is added in float64."""

    def __init__(self, samples: _core.Samples, constant: float) -> None:
        self._samples, self._constant = samples, constant

    def columns(self, which: Indices) -> _core.Columns:
        return self._samples.columns(which)

    def add(self, total: Floats, columns: _core.Columns, which: Indices, coefficients: Floats) -> None:
        self._samples.add(total, columns, which, coefficients)
        total += self._constant * float(coefficients.sum())

    def block(self, which: Indices, columns: _core.Columns) -> Any:
        values = self._samples.block(which, columns)
        values += self._constant
        return values

    def table(self, rows: Indices, which: Indices) -> Any:
        values = self._samples.table(rows, which)
        values += self._constant
        return values

    def square(self, which: Indices, out: Any) -> None:
        self._samples.square(which, out)
        out[: len(which), : len(which)] += self._constant

    @property
    def dear(self) -> bool:
        return self._samples.dear

    @property
    def dense(self) -> bool:
        return self._samples.dense

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._samples.dtype


def _row_sums(values: Floats, indptr: Any) -> Floats:
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return sums_by(rows, values, len(indptr) - 1)


def _full_columns(X: Any, used: Indices) -> tuple[Indices, Floats]:
    """The columns of a CSR matrix that have an entry in every row, and their means."""
    places = places_among(used, X.indices, X.shape[1])
    full = np.bincount(places, minlength=len(used)) == X.shape[0]
    sums = sums_by(places, X.data.astype(np.float64), len(used))
    return used[full], sums[full] / X.shape[0]


def _is_mostly_zero(X: Any) -> bool:
    """Whether a dense array has few enough nonzero entries, estimated from rows spread over it."""
    some = X[:: max(1, len(X) // _SPARSE_ROWS)]
    return bool(X.shape[1] >= _SPARSE_FEATURES and np.count_nonzero(some) <= _SPARSE_SHARE * some.size)


def _in_columns(values: Floats, columns: Indices, d: int) -> Any:
    """A CSR matrix of d columns that holds `values` in some of them."""
    n, m = values.shape
    return sp.csr_array((values.ravel(), np.tile(columns, n), np.arange(0, n * m + 1, m)), shape=(n, d))
