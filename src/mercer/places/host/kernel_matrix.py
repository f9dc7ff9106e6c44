"""K on the host: blocks computed by the kernel itself, or by the fused core if the kernel has a recipe.

The whole matrix is stored only if it was given or requested, or if it is small and shared by views.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer import _core
from mercer.kernels import Kernel
from mercer.places.ball import Ball
from mercer.places.factor import HostAlgebra, has_negative_direction
from mercer.places.host.field import HostField
from mercer.places.host.fused_sums import fused_sums
from mercer.places.host.joint_field import HostJointField, TiledJointField
from mercer.places.host.linear_gram import HostLinearGram, linear_scale, linear_terms
from mercer.places.host.pair_place import Layout, PairPlace
from mercer.places.host.prepared import CHUNK_ROWS, EXACT
from mercer.places.host.rows import HostRows
from mercer.places.host.source import SharedSamples, check_finite_values, kernel_diagonal, partial_sums
from mercer.places.host.square_sums import SQUARE_ROWS, square_sums
from mercer.places.host.tiled_field import BlockBuffer, TiledField
from mercer.places.rounding import DOUBLE, WeightedSumBound
from mercer.samples.arrays import (
    BLOCK_BYTES,
    Floats,
    Indices,
    Precision,
    Values,
    copy_short_rows,
    gamma,
    is_sparse,
    row_blocks,
    take,
)

if TYPE_CHECKING:
    from mercer.problems.dual_problem import DualProblem
    from mercer.problems.multiclass import JointProblem

# Rows of a block in a product by a generic kernel; BLOCK_BYTES then gives its number of columns.
_BLOCK_ROWS = 2048
# Up to this number of rows (128 MB), overlapping views share one stored matrix; larger ones compute their own values.
_SHARED_MATRIX_ROWS = 4000
# Columns of K in a block that is multiplied by several columns of coefficients: with _BLOCK_ROWS rows, 8 MB.
_PRODUCT_COLUMNS = 512
# Up to this number of outputs, sums are fused, which is faster than values written to memory.
_FUSED_OUTPUTS = 24
# Number of nonzero coefficients of an average row above which fused sums of several outputs share the values.
_SHARED_COEFFICIENTS = 1.5
# Dense values between rows that have coefficients are computed once if these are more than this share of all rows.
_SYMMETRIC_SHARE = 0.1
# Arrays as large as the rows of a square in float64: the prepared rows, both of their layouts, and sums of stripes.
_SQUARE_COPIES = 4
# Up to this number of rows no difference in time between float32 and float64 can be measured.
_FLOAT64_ROWS = 1000
# Number of rows from which on working sets are nested, and number of variables of an outer set: selecting variables and
# laying out rows then cost much beside kernel values (benchmarks/nested_sets.py: 0.9 of the CPU time of one block at
# 100,000 rows, 0.85 at 200,000, for one-class 1.09). No model may depend on the number of threads.
_NESTED_ROWS, _OUTER_ROWS = 150_000, 16_384
# Bytes of the budget for each byte of a part's samples: a copy, both precisions, columns, and as much for rows of K.
_BUDGET_PER_BYTE = 10


class KernelMatrix(HostAlgebra):
    """The Gram of a bound kernel on samples of the host, built by `gram_for`.

    The Gram of all samples and its views of subsets of `rows` share one `source`.
    """

    def __init__(
        self, source: SharedSamples, rows: Indices | None, diagonal: Floats, budget: int, *, streamed: bool = False
    ) -> None:
        self._source, self._rows, self._streamed = source, rows, streamed
        self.kernel, self.n_threads = source.kernel, source.n_threads
        self.diagonal, self.budget, self.evaluations = diagonal, budget, 0

    @classmethod
    def of(
        cls, kernel: Kernel, X: Any, budget: int, n_threads: int, constant: float = 0.0, centre: Floats | None = None
    ) -> KernelMatrix:
        """Build the Gram of all samples of X for a kernel whose data-dependent parameters are resolved (`Kernel.bind`).

        A `constant` is added to the values of a given matrix. `centre` is used in place of the samples' mean.
        """
        # The diagonal comes first: it raises an error for numbers that the samples' preparation could not handle.
        if kernel.accepts == "gram":
            diagonal = X.diagonal().astype(np.float64) + constant
        else:
            diagonal = check_finite_values(kernel_diagonal(kernel, X), kernel)
        return cls(SharedSamples(kernel, X, n_threads, constant, centre), None, diagonal, budget)

    @property
    def n(self) -> int:
        return len(self.diagonal)

    @property
    def positive_definite(self) -> str:
        return "no" if self._source.refuted else self.kernel.positive_definite

    def looks_positive_definite(self) -> bool:
        if self.kernel.positive_definite == "yes":
            return True
        self._source.refuted |= has_negative_direction(self)
        return not self._source.refuted

    def refute(self) -> None:
        self._source.refuted = True

    @property
    def _fused(self) -> bool:
        """True if the core computes the kernel values."""
        return self._source.prepared is not None and self._source.matrix is None

    @property
    def _stored(self) -> bool:
        return self._source.matrix is not None

    @property
    def concurrent(self) -> bool:
        return self._fused

    @property
    def recomputes_cheaply(self) -> bool:
        return self._fused or self._stored

    @property
    def proof(self) -> KernelMatrix:
        return self

    @property
    def _bytes_per_row(self) -> float:
        X = self._source.X
        if is_sparse(X):
            return float(12 * X.nnz / max(1, X.shape[0]) + 8)
        return float(8 * X.shape[1]) if hasattr(X, "shape") else 200.0  # a string, roughly

    @property
    def outer_rows(self) -> int:
        """Number of variables of an outer working set; 0 if working sets are not nested."""
        if self.n < _NESTED_ROWS or not self._fused or self._streamed:
            return 0
        samples = self._all_samples(self.precisions[0])
        return 0 if samples is None or samples.expensive else _OUTER_ROWS

    @property
    def chunk_rows(self) -> int:
        return int(self.budget / (_BUDGET_PER_BYTE * self._bytes_per_row))

    @cached_property
    def linear(self) -> HostLinearGram | None:
        scale = linear_scale(self.kernel)
        return None if scale is None else HostLinearGram(copy_short_rows(self._selected_samples), scale)

    @property
    def _selected_samples(self) -> Any:
        return self._source.X if self._rows is None else take(self._source.X, self._rows)

    @property
    def entry_bounds(self) -> Floats:
        """Numbers r with |K_ij| ≤ r_i r_j."""
        if self.positive_definite == "yes":
            return self._roots
        prepared = self._source.prepared
        if prepared is not None and not self._stored:
            return prepared.rounding.entry_bounds(prepared.sizes if self._rows is None else prepared.sizes[self._rows])
        # For any other K the diagonal bounds nothing.
        bounds = np.full(self.n, max(self._roots.max(initial=0.0), self._source.root_of_largest))
        majorants = self._source.majorants
        return bounds if majorants is None else np.maximum(bounds, majorants[self._global(np.arange(self.n))])

    @cached_property
    def _roots(self) -> Floats:
        """Upper bounds on √k_ii that cover its rounding."""
        return np.sqrt(np.abs(self.diagonal)) * (1 + self._source.value_error + 4 * DOUBLE)

    @property
    def precisions(self) -> tuple[Precision, ...]:
        """Precisions of kernel values that a solver can choose from, fastest first."""
        is_large = self.n > _FLOAT64_ROWS and self._fused
        has_float32 = is_large and (self._streamed or self._all_samples(np.float32) is not None)
        return (np.float32, np.float64) if has_float32 else (np.float64,)

    def view(self, rows: Indices) -> KernelMatrix:
        part = self._global(rows)
        return KernelMatrix(self._source, part, self.diagonal[rows], self.budget, streamed=self._streamed)

    def streamed(self) -> KernelMatrix:
        return KernelMatrix(self._source, self._rows, self.diagonal, self.budget, streamed=True)

    def copied(self, rows: Indices, budget: int) -> KernelMatrix:
        if self._stored:
            return self.view(rows)
        part = KernelMatrix.of(self.kernel, take(self._source.X, self._global(rows)), budget, self.n_threads)
        part._source.refuted = self._source.refuted
        return part

    def share(self) -> None:
        """Prepare or store, as far as memory allows, values that overlapping views would each compute again."""
        source = self._source
        if self._rows is not None:  # a view: only the Gram of all samples prepares shared data
            return
        if self._fused:
            # The samples in float64 may take an eighth of the budget.
            if 64 * source.X.shape[0] * source.X.shape[1] <= self.budget:
                self._all_samples(np.float64)
        elif not self._stored and self.n <= _SHARED_MATRIX_ROWS and 16 * self.n**2 <= self.budget:
            all_rows = np.arange(self.n)
            source.matrix = self.block(all_rows, all_rows)

    # --- values -------------------------------------------------------------------------------------------------

    def block(self, I: Indices, J: Indices) -> Floats:
        out = np.empty((len(I), len(J)))
        columns = self._columns(J, np.float64)
        for block in row_blocks(len(I), 8 * len(J)):
            out[block] = self._values(I[block], J, columns, np.float64)
        return out

    def full(self, dtype: Precision = np.float64) -> Any:
        all_rows = np.arange(self.n)
        samples = self._all_samples(dtype) if self._fused else None
        if samples is not None:
            self.evaluations += self.n**2
            return BlockBuffer(samples)(self._global(all_rows), self.diagonal)
        K = np.empty((self.n, self.n), dtype)
        for block in row_blocks(self.n, 8 * self.n):
            with np.errstate(over="ignore"):
                K[block] = self._evaluate(all_rows[block], all_rows)
        return K

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        J, all_rows = np.flatnonzero(coefficients), rows is None
        rows = np.arange(self.n) if rows is None else rows
        out = np.zeros(len(rows))
        if all_rows and self.n <= _FLOAT64_ROWS and self._fused and not self._streamed:
            samples = self._all_samples(dtype)
            if samples is not None:
                samples.add(out, samples.columns(self._global(rows)), self._global(J), coefficients[J])
                self.evaluations += self.n * len(J)
                return out
        if len(J) == 0 or len(rows) == 0:
            return out
        if self._fused:
            sums = self._fused_sums(coefficients[np.newaxis, J], J, rows, dtype)
            if sums is not None:
                return np.asarray(sums[0])
        width = max(1, BLOCK_BYTES // (8 * min(len(rows), _BLOCK_ROWS)))
        for left in range(0, len(J), width):
            columns = J[left : left + width]
            for block in row_blocks(len(rows), 8 * len(columns)):
                out[block] += self._evaluate(rows[block], columns) @ coefficients[columns]
        return out

    @property
    def levels(self) -> tuple[Precision, ...]:
        """Levels that `product_bound` accepts, fastest first."""
        prepared = self._source.prepared
        if self._stored:
            return (np.float64, EXACT)
        if prepared is None:
            return (np.float64,)
        has_exact = prepared.has_exact or self._linear_rows is not None
        return (*self.precisions, EXACT) if has_exact else self.precisions

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Ball:
        """Return K[rows] @ coefficients with a bound on the error of each number."""
        if coefficients.ndim == 2:
            return self._several_bounds(coefficients, rows, level)
        if level == EXACT and self._stored:
            rows = np.arange(self.n) if rows is None else rows
            return partial_sums(self._evaluate, coefficients, rows, self._source.value_error, self.entry_bounds)
        if level == EXACT and self._linear_rows is not None:
            return self._doubled_product(coefficients, rows)
        if rows is None and self.n <= 2 * SQUARE_ROWS and level != np.float32:
            return Ball(self.product(coefficients, None, level), self.errors(coefficients, None, level))
        rows = np.arange(self.n) if rows is None else rows
        bounded = self._single_product_bound(coefficients, rows) if level == np.float32 and self._fused else None
        if bounded is not None:
            return bounded
        if self._use_symmetry(coefficients, rows, level):
            u = self._symmetric_product(coefficients, rows)
            if u is not None:
                # A row's values in a stripe (src/core/gram/dense_blocks.cpp), the stripes, and what both sums add.
                in_sequence = SQUARE_ROWS + self.n // 32
                return Ball(u, self.errors(coefficients, rows, level, in_sequence=in_sequence))
        return Ball(self.product(coefficients, rows, level), self.errors(coefficients, rows, level))

    def _several_bounds(self, C: Floats, rows: Indices | None, level: Precision) -> Ball:
        """Return `product_bound` for several columns of C, by one pass over K or, at some levels, one per column."""
        if C.shape[1] == 1 or (level == EXACT and (self._stored or self._linear_rows is not None)):
            bounds_of_columns = [self.product_bound(column, rows, level) for column in C.T]
            return Ball(*map(np.column_stack, zip(*bounds_of_columns, strict=True)))
        errors = np.column_stack([self.errors(column, rows, level) for column in C.T])
        bounds, size = self.entry_bounds, np.abs(C)
        # One matrix product sums all columns, in any order.
        rounding = gamma(int(np.count_nonzero(size.any(axis=1)))) * (bounds @ size)
        row_bounds = bounds if rows is None else bounds[rows]
        return Ball(self.products(C, rows, level), errors + np.outer(row_bounds, rounding))

    def _use_symmetry(self, coefficients: Floats, rows: Indices, level: Precision) -> bool:
        """Return whether to compute values between rows with coefficients once for both: enough rows have one.

        Sparse values are stored first, which takes time of its own.
        """
        if level != np.float64 or not self._fused or self._streamed or len(rows) <= 2 * SQUARE_ROWS:
            return False
        samples = self._source.prepared.all_samples(np.float32) if self._source.prepared is not None else None
        if samples is None or _SQUARE_COPIES * self._bytes_per_row * len(rows) > self.budget:
            return False
        share = int(np.count_nonzero(coefficients[rows])) / len(rows)
        return share > _SYMMETRIC_SHARE if samples.dense else samples.expensive and share > 0.5

    def _symmetric_product(self, coefficients: Floats, rows: Indices) -> Floats | None:
        """Return `product` in float64 with values between these rows computed once; None if numbers are too large."""
        prepared, has_coefficient, is_used = self._source.prepared, coefficients[rows] != 0, coefficients != 0
        assert prepared is not None
        is_used[rows] = True
        prepared.keep_rows(np.sort(self._global(np.flatnonzero(is_used))), np.float64)
        inner_rows, outer_coefficients = rows[has_coefficient], coefficients.copy()
        samples, positions = prepared.prepare_rows(self._global(inner_rows), np.float64)
        if samples is None:
            return None
        part, n_values = square_sums(samples, positions, coefficients[inner_rows])
        self.evaluations += n_values
        outer_coefficients[inner_rows], u = 0.0, np.empty(len(rows))
        u[has_coefficient] = part + self.product(outer_coefficients, inner_rows)
        u[~has_coefficient] = self.product(coefficients, rows[~has_coefficient])
        return u

    def _single_product_bound(self, coefficients: Floats, rows: Indices) -> Ball | None:
        """Return `product_bound` in float32 for a Gaussian kernel, bounded by weighted sums computed along with u."""
        prepared, J = self._source.prepared, np.flatnonzero(coefficients)
        assert prepared is not None
        recipe = prepared.lowering.recipe
        if recipe.ending != "gaussian" or recipe.factor is not None or len(J) == 0:
            return None
        beta, sizes, positions = coefficients[J], prepared.sizes, self._global(rows)
        bound = WeightedSumBound(prepared.rounding, sizes[self._global(J)], beta)
        sums = self._fused_sums(np.stack([beta, bound.coefficients]), J, rows, np.float32)
        if sums is None:
            return None
        terms = prepared.row_terms if np.ndim(prepared.row_terms) == 0 else prepared.row_terms[positions]
        return Ball(sums[0], bound.errors(sizes[positions], sums[1], terms))

    def errors(
        self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64, *, in_sequence: int = 0
    ) -> Floats:
        """Return bounds as in `Gram.errors`, for sums in any order with up to `in_sequence` successive additions."""
        J, prepared = coefficients.nonzero()[0], self._source.prepared
        if prepared is not None and not self._stored:
            index = self._rows if rows is None else self._global(rows)
            return prepared.errors(index, self._global(J), coefficients[J], level, in_sequence)
        bounds = self.entry_bounds
        mass = float(np.abs(coefficients[J]) @ bounds[J])
        return (self._source.value_error + (len(J) + 4) * DOUBLE) * mass * (bounds if rows is None else bounds[rows])

    @cached_property
    def _linear_rows(self) -> HostRows | None:
        """Samples for sums in twice the precision; None unless the kernel is linear up to a constant."""
        return None if linear_terms(self.kernel) is None else HostRows(self._selected_samples, self.n_threads)

    def _doubled_product(self, coefficients: Floats, rows: Indices | None) -> Ball:
        """Return Kβ = sX(X'β) + c Σβ with both parts in twice the precision, since they may cancel."""
        linear, terms = self._linear_rows, linear_terms(self.kernel)
        assert linear is not None
        assert terms is not None
        u, e = (terms[0] * part for part in linear.gram_product(np.ascontiguousarray(coefficients)))
        if terms[1]:
            constant_part = terms[1] * math.fsum(coefficients.tolist())
            e += 6 * DOUBLE * (np.abs(u) + abs(constant_part))
            u += constant_part
        return Ball(u, e) if rows is None else Ball(u[rows], e[rows])

    def _fused_sums(self, coefficients: Floats, J: Indices, rows: Indices, dtype: Precision) -> Floats | None:
        """Return K[rows, J] times each row of coefficients; None if numbers are too large for the core."""
        prepared, chunk = self._source.prepared, CHUNK_ROWS
        assert prepared is not None
        if self._streamed:  # two chunks are in memory at a time, each as a copy, as prepared rows and as columns
            chunk = int(max(64, min(CHUNK_ROWS, self.budget / (16 * self._bytes_per_row))))
        self.evaluations += len(rows) * len(J)
        return fused_sums(prepared, self._global(rows), self._global(J), coefficients, dtype, chunk)

    def products(self, C: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        J = np.flatnonzero(C.any(axis=1))
        if C.shape[1] == 1 or (self._fused and C.shape[1] <= _FUSED_OUTPUTS):
            if C.shape[1] > 1 and np.count_nonzero(C) > _SHARED_COEFFICIENTS * len(J):
                sums = self._fused_sums(C[J].T, J, np.arange(self.n) if rows is None else rows, dtype)
                if sums is not None:
                    return np.ascontiguousarray(sums.T)
            return np.column_stack([self.product(np.ascontiguousarray(column), rows, dtype) for column in C.T])
        rows = np.arange(self.n) if rows is None else rows
        out = np.zeros((len(rows), C.shape[1]))
        for left in range(0, len(J), _PRODUCT_COLUMNS):
            sources = J[left : left + _PRODUCT_COLUMNS]
            columns = self._columns(sources, dtype)
            for top in range(0, len(rows), _BLOCK_ROWS):
                block = slice(top, top + _BLOCK_ROWS)
                K = self._values(rows[block], sources, columns, dtype)
                out[block] += np.asarray(K, dtype=np.float64) @ C[sources]
        return out

    def field(
        self, problem: DualProblem, beta: Floats | None = None, u: Floats | None = None, dtype: Precision = np.float64
    ) -> HostField:
        beta = problem.feasible_start() if beta is None else beta
        samples = self._all_samples(dtype) if self._fused else None
        if u is None:
            u = self.product(problem.row_coefficients(beta, self.n), dtype=dtype)
        if samples is None:
            return HostField(self, problem, beta, u, self.n_threads)
        return TiledField(self, problem, beta, u, samples, self._global(np.arange(self.n)))

    def joint_field(
        self, problem: JointProblem, beta: Floats, u: Floats, dtype: Precision = np.float64
    ) -> HostJointField:
        samples = self._all_samples(dtype) if self._fused else None
        if samples is None:
            return HostJointField(self, problem, beta, u, dtype)
        return TiledJointField(self, problem, beta, u, samples, self._global(np.arange(self.n)))

    def pairs(self, layout: Layout, n_threads: int) -> PairPlace | None:
        if not self._fused or self._rows is not None:
            return None
        # The prepared samples, in both precisions, and the kernel values that the core keeps must fit the budget.
        size = max(np.dtype(self.precisions[0]).itemsize, 8 if is_sparse(self._source.X) else 0)
        if 8 * self.n * self._bytes_per_row + 2 * size * layout.values_kept(n_threads) > self.budget:
            return None
        prepared, float64 = self._source.prepared, self._all_samples(np.float64)
        if prepared is None or not isinstance(float64, _core.Samples):  # numbers are too large, or a constant is added
            return None
        fast_samples = self._all_samples(self.precisions[0]) if float64.dense else float64
        if not isinstance(fast_samples, _core.Samples) or fast_samples.dense != float64.dense:
            return None
        unit_errors = prepared.unit_errors(layout.largest)
        if not float64.dense:
            # Values of sparse samples must come from plain inner products, none of them larger than K's diagonal.
            recipe = self.kernel.recipe()
            if self.positive_definite != "yes" or recipe is None or recipe.ending == "laplacian" or float64.doubled:
                return None
            # Values within a class are added one after another.
            unit_errors = unit_errors + layout.largest * 2 * DOUBLE * float(self.entry_bounds.max()) ** 2
        return PairPlace(self, fast_samples, float64, unit_errors, n_threads)

    def _columns(self, J: Indices, dtype: Precision) -> _core.Columns | None:
        """Lay out the rows J as columns for the core; None if the core does not compute their values."""
        prepared = self._source.prepared
        if prepared is None or self._stored:
            return None
        samples, positions = prepared.prepare_rows(self._global(J), dtype)
        return None if samples is None else samples.columns(positions)

    def _values(self, I: Indices, J: Indices, columns: _core.Columns | None, dtype: Precision) -> Values:
        """Return K[I, J], computed by the core if it has the `columns` J."""
        prepared = self._source.prepared
        if prepared is not None and columns is not None:
            samples, positions = prepared.prepare_rows(self._global(I), dtype)
            if samples is not None:
                self.evaluations += len(I) * len(J)
                return samples.block(positions, columns)
        return self._evaluate(I, J)

    def _all_samples(self, dtype: Precision) -> _core.Samples | None:
        """Return all samples in the core's form; None if the kernel has no recipe or the numbers are too large."""
        prepared = self._source.prepared
        return None if prepared is None else prepared.all_samples(dtype)

    def _global(self, rows: Indices) -> Indices:
        """Return the positions of these rows among all samples."""
        return rows if self._rows is None else self._rows[rows]

    def _evaluate(self, I: Indices, J: Indices) -> Floats:
        """Return K[I, J] from the stored matrix, or computed by the kernel itself."""
        I, J = self._global(I), self._global(J)
        X, matrix = self._source.X, self._source.matrix
        if matrix is not None:
            values = np.asarray(matrix[np.ix_(I, J)], dtype=np.float64)
            if self._source.constant:
                values += self._source.constant
            return values
        self.evaluations += len(I) * len(J)
        values = check_finite_values(self.kernel(take(X, I), take(X, J)), self.kernel)
        if self.positive_definite != "yes":
            self._source.record_largest(values)
        return values
