"""Samples in the core's form for a recipe, dense or sparse, prepared once per precision.

The data are centred if the kernel depends only on differences, and scaled so that the recipe's ending is cheap
(src/core/simd/endings.hpp). A Gram, an expansion and a cross matrix all use such samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer.kernels import Kernel
from mercer.kernels.recipe import Recipe
from mercer.places.rounding import DOUBLE, Rounding
from mercer.samples.arrays import Floats, Indices, PickedRows, Precision, is_sparse, row_blocks, sums_by, take
from mercer.samples.matrices import positions_among, unit_rows, used_columns, width

# Number of samples prepared at a time, if not all at once: their copies stay small compared with all samples.
CHUNK_ROWS = 8192

_LOG2E = math.log2(math.e)
_ENDINGS = ("identity", "gaussian", "polynomial", "sigmoid", "laplacian")
_DIFFERENCE_ENDINGS = {"gaussian": 5, "laplacian": 6}
# Name of the precision of float64 values that are computed without cancellation.
EXACT = "exact"
# Norms of samples that are not prepared as a whole are computed in blocks smaller than usual by this factor, because
# memory is scarce then.
_NORM_BLOCKS = 16
# Error of an exponent in float64 above which values are computed from differences, which takes 1.7 times as long.
CANCELLED_EXPONENT = 1e-11
# CSR samples up to this size are laid out as dense rows if only differences are exact enough.
_LARGEST_DENSE_BYTES = 64 << 20
# Dense data with at most this fraction of nonzero entries are faster as CSR, where an entry costs about twice as much.
# The fraction is estimated from about _SPARSE_ROWS rows, if there are at least _SPARSE_FEATURES features.
SPARSE_SHARE = 0.3
_SPARSE_ROWS = 1000
_SPARSE_FEATURES = 16
# Squared lengths must stay far below the largest number of their precision (the tests are written so that NaN fails).
_LARGEST = {np.dtype(np.float32): 1e30, np.dtype(np.float64): 1e280}
# If all samples are shorter than this, their squared lengths in float32 are too coarse for bounds.
_SMALLEST_LENGTH = 1e-20


class PreparedSamples:
    """Samples X prepared for a recipe in each precision; None for a precision in which their numbers are too large.

    A precision is float32, float64, or EXACT: float64 values computed without cancellation for any data. Float64 values
    are computed in that way too if the norms of X show that they would lose digits.
    """

    def __init__(self, recipe: Recipe, X: Any, n_threads: int, centre: Floats | None = None) -> None:
        self.lowering = Lowering.of(recipe, X, centre)
        self._X, self._n_threads = X, n_threads
        self._all_samples: dict[Any, _core.Samples | None] = {}
        self._kept_rows: dict[Any, tuple[Indices, _core.Samples | None]] = {}
        self._norms: Floats | None = None

    @classmethod
    def of(cls, kernel: Kernel, X: Any, n_threads: int, centre: Floats | None = None) -> PreparedSamples | None:
        """Prepare samples about their mean, or about `centre`; None if the core does not compute this kernel."""
        recipe = kernel.recipe() if kernel.accepts == "vectors" else None
        if recipe is None:
            return None
        prepared = cls(recipe, X, n_threads, centre)
        return None if prepared._mapped_cancels else prepared

    def all_samples(self, precision: Precision) -> _core.Samples | None:
        """Return all samples, prepared at the first call; threads that call it at once prepare the same numbers."""
        precision = _precision_key(precision)
        if precision not in self._all_samples:
            self._all_samples[precision] = self._prepare_all(precision)
        return self._all_samples[precision]

    def prepare_rows(self, rows: Indices, precision: Precision) -> tuple[_core.Samples | None, Indices]:
        """Return prepared samples that include these rows, and the rows' positions in them.

        The result holds all samples if they are already prepared, and only the given rows otherwise.
        """
        precision = _precision_key(precision)
        if precision in self._all_samples:
            return self._all_samples[precision], rows
        if precision in self._kept_rows:
            kept_rows, samples = self._kept_rows[precision]
            positions = np.minimum(np.searchsorted(kept_rows, rows), len(kept_rows) - 1)
            if np.array_equal(kept_rows[positions], rows):
                return samples, positions
        return self.prepare(self._rows(rows), precision), np.arange(len(rows))

    def keep_rows(self, rows: Indices, precision: Precision) -> None:
        """Prepare these rows, in ascending order, once for all later calls of `prepare_rows` with a subset of them."""
        precision = _precision_key(precision)
        if precision not in self._all_samples and len(rows):
            self._kept_rows[precision] = rows, self.prepare(self._rows(rows), precision)

    def _rows(self, rows: Indices) -> Any:
        """Return the given samples; rows of an array are copied only when they are prepared."""
        X = self._X
        if isinstance(X, PickedRows):
            return PickedRows(X.X, X.rows[rows], X.n_threads)
        has_plain_layout = (
            isinstance(X, np.ndarray) and X.flags.c_contiguous and X.flags.aligned and X.dtype.char in "fd"
        )
        return PickedRows(X, rows, self._n_threads) if has_plain_layout else take(X, rows)

    def prepare(self, X: Any, precision: Precision) -> _core.Samples | None:
        """Prepare other samples so that the core can compare them with these."""
        precision = _precision_key(precision)
        exact = self._exact if precision == EXACT or (precision == np.float64 and self.cancels) else None
        dtype = np.dtype(np.float64) if precision == EXACT else precision
        return (exact or self.lowering).prepare(X, dtype, self._n_threads)[0]

    def _prepare_all(self, precision: Precision) -> _core.Samples | None:
        """Prepare all samples, without cancellation if that is needed."""
        if precision != EXACT:
            samples, norms = self.lowering.prepare(self._X, precision, self._n_threads)
            if self._norms is None:
                self._norms = norms
            if precision != np.float64 or not self.cancels:
                return samples
        return self.prepare(self._X, EXACT)

    @property
    def norms(self) -> Floats:
        """Terms that the core combines with inner products: half the squared length of each centred sample, or |x|₁."""
        if self._norms is None:
            self._norms = self._float64_norms()
        return self._norms

    def _float64_norms(self) -> Floats:
        """Compute the `norms` in float64, a block of samples at a time."""
        return np.concatenate(
            [
                self.lowering.prepare(self._X[block], np.dtype(np.float64), self._n_threads)[1]
                for block in row_blocks(self._X.shape[0], _NORM_BLOCKS * 8 * width(self._X))
            ]
        )

    @cached_property
    def sizes(self) -> Floats:
        """Norms for error bounds; if a factor is applied, they are computed from the absolute values of the terms."""
        if self.lowering.recipe.factor is None:
            norms = self.norms
            if norms.dtype == np.float32 and np.max(norms, initial=0.0) < _SMALLEST_LENGTH:
                norms = self._float64_norms()
            return norms.astype(np.float64) + float(np.finfo(norms.dtype).smallest_subnormal)
        parts = row_blocks(self._X.shape[0], 8 * self._X.shape[1])
        return np.concatenate([self.sizes_of(self._X[block]) for block in parts])

    def sizes_of(self, X: Any) -> Floats:
        """Return the `sizes` of other samples."""
        factor = self.lowering.recipe.factor
        if factor is None:
            norms = self.lowering.prepare(X, np.dtype(np.float64), self._n_threads)[1]
            return np.asarray(norms, dtype=np.float64)
        X = X.toarray() if is_sparse(X) else X
        mapped = self.lowering.scale * (np.abs(X - self.lowering.centre) @ np.abs(factor))
        return np.asarray(0.5 * np.einsum("ij,ij->i", mapped, mapped))

    @cached_property
    def cancels(self) -> bool:
        """True if float64 values of k, computed from norms, would lose significant digits."""
        if not self.has_exact:
            return False
        if self.lowering.recipe.ending == "laplacian" and not self.lowering.sparse:
            return True  # differences of unscaled rows cost no more
        largest = float(self.norms.max(initial=0.0))
        return not DOUBLE * (self.rounding.terms + 10) * largest <= CANCELLED_EXPONENT  # also true for NaN

    @property
    def _mapped_cancels(self) -> bool:
        """True if values lose digits after a factor is applied; then the kernel itself takes differences before it."""
        factor = self.lowering.recipe.factor
        if factor is None or self.lowering.recipe.inner == "dot":
            return False
        largest = float(np.max(self.sizes, initial=0.0))
        return not DOUBLE * (sum(factor.shape) + 10) * largest <= CANCELLED_EXPONENT

    @property
    def has_exact(self) -> bool:
        """True if values can be computed without cancellation."""
        return self.lowering.of_differences

    @cached_property
    def exact_sizes(self) -> Floats:
        """Norms of uncentred sparse samples, scaled like exponents; 0 if values are computed from differences."""
        if self._exact is None or not self._exact.doubled:
            return np.zeros(self._X.shape[0])
        factor = (1.0 if self.lowering.recipe.inner == "l1" else 2.0) * self.lowering.recipe.numbers[0] * _LOG2E
        blocks = row_blocks(self._X.shape[0], _NORM_BLOCKS * 8 * width(self._X))
        norms = [self._exact.prepare(self._X[block], np.float64, self._n_threads)[1] for block in blocks]
        return np.asarray(factor * np.concatenate(norms))

    @cached_property
    def _exact(self) -> Lowering | None:
        """Preparation for values without cancellation: dense differences, or sparse sums in twice the precision."""
        exact = self.lowering.by_differences()
        if exact is None or not is_sparse(self._X):
            return exact
        longest, largest = (float(np.max(sizes, initial=0.0)) for sizes in (self.row_terms, self.norms))
        trace = 3 * (2 * DOUBLE * (longest + 4)) ** 2 * largest  # error that remains in twice the precision
        fits_dense = 8 * math.prod(self._X.shape) <= _LARGEST_DENSE_BYTES
        return exact if fits_dense and not trace <= CANCELLED_EXPONENT else replace(self.lowering, doubled=True)

    @cached_property
    def row_terms(self) -> Any:
        """Largest number of non-zero terms in the inner products of each row."""
        X = self._X
        if not self.lowering.sparse:
            return X.shape[1]
        if is_sparse(X):
            n_stored = np.diff(X.indptr)
        else:
            blocks = row_blocks(X.shape[0], 8 * X.shape[1])
            n_stored = np.concatenate([np.count_nonzero(X[block], axis=1) for block in blocks])
        return np.minimum(X.shape[1], n_stored + int(np.count_nonzero(self.lowering.centre)))

    def errors(
        self, rows: Indices | None, columns: Indices, coefficients: Floats, level: Precision, in_sequence: int = 0
    ) -> Floats:
        """Return error bounds for products of these rows, or of all, with these columns (`Rounding.errors`)."""
        level = self._level(level)
        sizes = self.exact_sizes if level == EXACT else self.sizes
        row_sizes = sizes if rows is None else sizes[rows]
        return self.rounding.errors(row_sizes, sizes[columns], coefficients, level, in_sequence=in_sequence)

    def unit_errors(self, n_columns: int) -> Floats:
        """Return error bounds for float64 products with any coefficients of ‖β‖₁ = 1 on this number of columns."""
        level = self._level(np.float64)
        sizes = self.exact_sizes if level == EXACT else self.sizes
        return self.rounding.errors(sizes, np.array([sizes.max(initial=0.0)]), np.ones(1), level, n_columns)

    def _level(self, level: Precision) -> Precision:
        """Return the level that is used if this one is requested."""
        if not self.has_exact:
            return np.float64 if level == EXACT else level
        return EXACT if level == np.float64 and self.cancels else level

    @cached_property
    def rounding(self) -> Rounding:
        """Error bounds for products with these samples."""
        lowering, X = self.lowering, self._X
        factor, terms = lowering.recipe.factor, X.shape[1]
        if factor is not None:
            terms = factor.shape[1]
        elif lowering.sparse:  # a difference of two rows has the entries of both
            longest = int(np.max(self.row_terms, initial=0))
            has_differences = self._exact is not None and not self._exact.doubled
            terms = min(X.shape[1], (2 if has_differences else 1) * longest)
        return Rounding(lowering.recipe, terms, lowering.sparse, 0 if factor is None else factor.shape[0])


@dataclass(frozen=True, eq=False)
class Lowering:
    """Preparation of samples for a recipe: shift, scale, and the ending's numbers."""

    recipe: Recipe
    centre: Floats  # centre of every column, or of the `full` columns of sparse samples
    scale: float
    ending: int
    numbers: Floats
    sparse: bool
    full: Any = None  # columns of sparse samples that have no zero: only these are centred, so that samples stay sparse
    used: Any = None  # columns in which CSR samples have an entry: only these are laid out
    doubled: bool = False  # True for uncentred sparse samples that are summed in twice the precision of float64

    @classmethod
    def of(cls, recipe: Recipe, X: Any, requested_centre: Floats | None = None) -> Lowering:
        """Build the preparation: centred if the kernel depends only on differences, and sparse if that is faster.

        The centre is the mean of X, or `requested_centre` if it is given; then sparse samples are not centred.
        """
        gamma, coef0, degree = (*recipe.numbers, 0.0, 0.0, 0.0)[:3]
        scale = {"gaussian": math.sqrt(2 * gamma * _LOG2E), "laplacian": gamma * _LOG2E}.get(recipe.ending, 1.0)
        sparse = recipe.factor is None and (is_sparse(X) or _is_mostly_zero(X))
        full, used = None, used_columns(X) if sparse and is_sparse(X) else None
        if recipe.inner == "dot" or (sparse and requested_centre is not None):
            full, centre = (np.empty(0, np.intp), np.empty(0)) if sparse else (None, np.zeros(X.shape[1]))
        elif requested_centre is not None:
            centre = requested_centre
        elif used is not None:
            full, centre = _full_columns(X, used)
        else:
            with np.errstate(over="ignore"):
                centre = _column_sums(X) / X.shape[0]
            if sparse:
                blocks = row_blocks(X.shape[0], 8 * X.shape[1])
                full = np.flatnonzero(sum(np.count_nonzero(X[block], axis=0) for block in blocks) == X.shape[0])
                centre = centre[full]
        numbers = np.array([recipe.scale, gamma, coef0, degree])
        return cls(recipe, centre, scale, _ENDINGS.index(recipe.ending), numbers, sparse, full, used)

    @property
    def of_differences(self) -> bool:
        """True if k is a function of the differences of features."""
        return self.recipe.ending in _DIFFERENCE_ENDINGS and self.recipe.factor is None

    def by_differences(self) -> Lowering | None:
        """Return the preparation for differences of uncentred dense rows; None for a recipe of inner products."""
        recipe = self.recipe
        if not self.of_differences:
            return None
        numbers = np.array([recipe.scale, recipe.numbers[0] * _LOG2E, 0.0, 0.0])
        return Lowering(recipe, np.zeros(0), 1.0, _DIFFERENCE_ENDINGS[recipe.ending], numbers, sparse=False)

    def prepare(self, X: Any, dtype: Precision, n_threads: int) -> tuple[_core.Samples | None, Floats]:
        """Return the samples of X in the core's form, None if numbers are out of range, and their norms."""
        if self.doubled:
            return self._prepare_doubled(X, n_threads)
        if self.ending in _DIFFERENCE_ENDINGS.values():
            X = X[:] if isinstance(X, PickedRows) else X.toarray() if is_sparse(X) else X
            rows = np.ascontiguousarray(X, dtype=np.float64)
            norms = np.zeros(len(rows))
            samples: _core.Samples | None = _core.dense_samples(rows, norms, self.ending, self.numbers, n_threads)
        else:
            samples, norms = (self._prepare_sparse if self.sparse else self._prepare_dense)(
                X, np.dtype(dtype), n_threads
            )
            if np.dtype(dtype) == np.float32 and not self._fits_float32:
                samples = None
        return self._plus_constant(samples), norms

    @property
    def _fits_float32(self) -> bool:
        """True if the numbers that the ending multiplies by and adds are far inside float32's range."""
        factors = (self.recipe.scale, *(self.recipe.numbers[:2] if self.recipe.inner == "dot" else ()))
        largest = _LARGEST[np.dtype(np.float32)]
        return all(number == 0 or 1 / largest <= abs(number) <= largest for number in factors)

    def _plus_constant(self, samples: _core.Samples | None) -> _core.Samples | None:
        """Return samples whose kernel values include the constant of the recipe."""
        if samples is None or self.recipe.constant == 0:
            return samples
        return cast(_core.Samples, _ShiftedSamples(samples, self.recipe.constant))

    def _prepare_dense(self, X: Any, dtype: np.dtype[Any], n_threads: int) -> tuple[_core.Samples | None, Floats]:
        """Return samples as dense rows in the core's form, and their norms."""
        recipe, centre, picked_rows = self.recipe, self.centre, None
        if is_sparse(X):
            X = X.toarray()
        if isinstance(X, PickedRows):
            X, picked_rows = (X.X, X.rows) if recipe.factor is None and not recipe.normalise else (X[:], None)
        if recipe.factor is not None:
            X = (X - centre) @ recipe.factor
            centre = np.zeros(X.shape[1])
        if recipe.normalise:
            X = unit_rows(X)
        X = np.ascontiguousarray(X)
        n = len(X) if picked_rows is None else len(picked_rows)
        rows, norms = np.empty((n, X.shape[1]), dtype), np.empty(n, dtype)
        _core.prepare(X, centre, self.scale, rows, norms, n_threads, picked_rows)
        if not norms.max(initial=0.0) < _LARGEST[dtype]:
            return None, norms
        return _core.dense_samples(rows, norms, self.ending, self.numbers, n_threads), norms

    def _prepare_sparse(self, X: Any, dtype: np.dtype[Any], n_threads: int) -> tuple[_core.Samples | None, Floats]:
        """Return samples as sparse rows in the core's form, and their norms."""
        if not is_sparse(X) and not self.recipe.normalise and self.used is None:
            l1, is_float32, centre = self.recipe.inner == "l1", dtype == np.float32, np.zeros(X.shape[1])
            centre[self.full] = self.centre
            X, picked_rows = (X.X, X.rows) if isinstance(X, PickedRows) else (np.ascontiguousarray(X), None)
            entries = _core.prepare_sparse(X, centre, self.scale, l1, is_float32, n_threads, picked_rows)
            values, indices, starts, norms = entries
            return self._from_entries(values, indices, starts, X.shape[1], norms, n_threads)
        X = sp.csr_array(X[:] if isinstance(X, PickedRows) else X)
        if len(self.full):
            X = sp.csr_array(X + _in_columns(np.tile(-self.centre, (X.shape[0], 1)), self.full, X.shape[1]))
        values = unit_rows(X).data if self.recipe.normalise else X.data.astype(np.float64)
        with np.errstate(over="ignore"):
            scaled = (values * self.scale).astype(dtype)
            sizes = np.abs(scaled) if self.recipe.inner == "l1" else 0.5 * scaled.astype(np.float64) ** 2
            rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            norms = sums_by(rows, sizes, X.shape[0]).astype(dtype)
        return self._from_entries(scaled, *self._core_indices(X), norms, n_threads)

    def _prepare_doubled(self, X: Any, n_threads: int) -> tuple[_core.Samples | None, Floats]:
        """Return uncentred samples for values without cancellation (src/core/simd/sparse_sums.hpp), and their norms.

        Such samples can only be compared with each other.
        """
        X = sp.csr_array(X[:] if isinstance(X, PickedRows) else X)
        values = unit_rows(X).data if self.recipe.normalise else X.data.astype(np.float64)
        indices, starts, d = self._core_indices(X)
        norms, lows = _core.exact_norms(values, starts, self.recipe.inner == "l1", n_threads)
        if not np.max(norms, initial=0.0) < _LARGEST[norms.dtype]:
            return None, norms
        samples = _core.exact_sparse_samples(
            values, indices, starts, norms, lows, d, self.ending, self.numbers, n_threads
        )
        return self._plus_constant(samples), norms

    def _core_indices(self, X: Any) -> tuple[Any, Any, int]:
        """Return column indices and row starts of CSR samples, and the number of columns, in the core's numbering."""
        d, starts = X.shape[1], X.indptr.astype(np.int64)
        if self.used is None:
            return X.indices.astype(np.int32), starts, d
        # All unused columns become one more column, in which the samples that X is compared with have no entry.
        return positions_among(self.used, X.indices, d), starts, len(self.used) + 1

    def _from_entries(
        self, values: Any, indices: Any, starts: Any, d: int, norms: Any, n_threads: int
    ) -> tuple[_core.Samples | None, Floats]:
        """Return sparse samples made from the arrays of a CSR matrix (None if norms are too large), and the norms."""
        if not np.max(norms, initial=0.0) < _LARGEST[norms.dtype]:
            return None, norms
        return _core.sparse_samples(values, indices, starts, norms, d, self.ending, self.numbers, n_threads), norms


def _precision_key(precision: Precision) -> Precision:
    """Return the precision as a key: EXACT or a dtype."""
    return EXACT if isinstance(precision, str) and precision == EXACT else np.dtype(precision)


def _column_sums(X: Any) -> Floats:
    """Return the float64 sum of every column."""
    if isinstance(X, PickedRows):
        return X.column_moments(np.zeros(X.shape[1]))[0]
    # np.mean takes three times as long on a small array, because of its checks.
    total = X.sum(axis=0, dtype=np.float64) if is_sparse(X) else np.add.reduce(X, axis=0, dtype=np.float64)
    return np.asarray(total).ravel()


def _full_columns(X: Any, used: Indices) -> tuple[Indices, Floats]:
    """Return the columns of a CSR matrix that have an entry in every row, and their means."""
    positions = positions_among(used, X.indices, X.shape[1])
    is_full = np.bincount(positions, minlength=len(used)) == X.shape[0]
    with np.errstate(over="ignore"):
        sums = sums_by(positions, X.data.astype(np.float64), len(used))
    return used[is_full], sums[is_full] / X.shape[0]


def _is_mostly_zero(X: Any) -> bool:
    """Return whether a dense array has few enough nonzero entries, estimated from rows spread over it."""
    if X.shape[1] < _SPARSE_FEATURES:
        return False
    sample = X[:: max(1, len(X) // _SPARSE_ROWS)]
    return bool(np.count_nonzero(sample) <= SPARSE_SHARE * sample.size)


def _in_columns(values: Floats, columns: Indices, d: int) -> Any:
    """Build a CSR matrix of d columns that holds the columns of `values` at the positions `columns`."""
    n, m = values.shape
    return sp.csr_array((values.ravel(), np.tile(columns, n), np.arange(0, n * m + 1, m)), shape=(n, d))


class _ShiftedSamples:
    """Samples for k + c: the core computes k, and the constant is added in float64."""

    def __init__(self, samples: _core.Samples, constant: float) -> None:
        self._samples, self._constant = samples, constant

    def columns(self, positions: Indices) -> _core.Columns:
        return self._samples.columns(positions)

    def add(self, total: Floats, columns: _core.Columns, positions: Indices, coefficients: Floats) -> None:
        self._samples.add(total, columns, positions, coefficients)
        total += self._constant * float(coefficients.sum())

    def add_two(self, totals: Floats, columns: _core.Columns, positions: Indices, coefficients: Floats) -> None:
        self._samples.add_two(totals, columns, positions, coefficients)
        totals[0] += self._constant * float(coefficients[0].sum())

    def add_several(self, totals: Floats, columns: _core.Columns, positions: Indices, coefficients: Floats) -> None:
        self._samples.add_several(totals, columns, positions, coefficients)
        totals += self._constant * coefficients.sum(axis=1)[:, None]

    def add_square(self, total: Floats, positions: Indices, coefficients: Floats) -> None:
        self._samples.add_square(total, positions, coefficients)
        total += self._constant * float(coefficients.sum())

    def block(self, positions: Indices, columns: _core.Columns) -> Any:
        values = self._samples.block(positions, columns)
        values += self._constant
        return values

    def table(self, rows: Indices, positions: Indices, n_extra_rows: int = 0) -> Any:
        values = self._samples.table(rows, positions, n_extra_rows)
        values[: len(rows)] += self._constant
        return values

    def square(self, positions: Indices, out: Any) -> None:
        self._samples.square(positions, out)
        out[: len(positions), : len(positions)] += self._constant

    @property
    def expensive(self) -> bool:
        return self._samples.expensive

    @property
    def dense(self) -> bool:
        return self._samples.dense

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._samples.dtype
