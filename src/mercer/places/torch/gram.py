"""K on a device: blocks, products with proven errors, factors, and the state of a solve."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.places.ball import Ball
from mercer.places.factor import has_negative_direction
from mercer.places.gram import BoundedProducts, Eigensystem, Factor, Field, Float64Matrix, Gram, LandmarkFactor
from mercer.places.host.joint_field import HostJointField
from mercer.places.host.linear_gram import linear_scale, linear_terms
from mercer.places.host.pair_place import Layout, PairPlace
from mercer.places.host.prepared import EXACT
from mercer.places.protocols import LinearGram
from mercer.places.rounding import DOUBLE
from mercer.places.torch import fused, square_sums
from mercer.places.torch.factor import (
    TorchFloat64Matrix,
    add_gram,
    eigensystem_of,
    factor_of,
    jittered_factor,
    landmark_factor_of,
)
from mercer.places.torch.field import TorchField
from mercer.places.torch.formula import PreparedRows
from mercer.places.torch.memory import explain_matrix_shortage, explain_shortage, in_strips, tile_bytes
from mercer.places.torch.numbers import dtype_of, floats, index_tensor, matmul, to_device, to_host, torch
from mercer.places.torch.rows import TorchLinearGram
from mercer.places.torch.samples import TorchSamples
from mercer.places.torch.shared_samples import TorchSharedSamples
from mercer.places.torch.stored import TorchFloat32Matrix
from mercer.problems.dual_problem import DualProblem
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices, Precision

# Columns of one partial sum, whose number bounds the rounding.
_SUMMED_COLUMNS = 2048
# Number of values of K between two checks for Ctrl-C: 0.1 s on a slow device. If a fused kernel sums over all columns,
# a strip has at least _STRIP_ROWS rows: fewer would not fill a large device.
_STRIP_VALUES, _STRIP_ROWS = 1 << 29, 1 << 16
# Bytes of whitened rows of K between samples and landmarks, each strip of which is added to an m × m matrix: with fewer
# rows in a strip, memory limits that.
_WHITENED_BYTES = 1 << 30
# Number of rows from which on working sets are nested, with an eighth of the variables or at most _OUTER_ROWS: the
# fixed cost of a round grows with the rows (benchmarks/compare_gpu.py).
_NESTED_ROWS, _OUTER_ROWS = 100_000, 65_536
# Up to this number of rows no difference in time between float32 and float64 can be measured.
_FLOAT64_ROWS = 1000


class TorchGram:
    """The kernel matrix of samples on a torch device, or a view of a subset of its rows."""

    recomputes_cheaply, concurrent = True, False

    def __init__(self, source: TorchSharedSamples, rows: Indices | None, diagonal: Floats, budget: int) -> None:
        self._source, self._rows, self.diagonal, self.budget = source, rows, diagonal, budget
        self.kernel, self.evaluations, self.n = source.kernel, 0, len(diagonal)

    @classmethod
    def of(cls, kernel: Kernel, X: TorchSamples, budget: int, n_threads: int, constant: float) -> TorchGram:
        """Build the Gram of all samples under a bound kernel; a constant is added to the values of a given matrix."""
        if constant and kernel.accepts != "gram":
            kernel, constant = kernel + constant, 0.0
        if kernel.accepts == "gram":
            diagonal = floats(torch.diagonal(X.rows)) + constant
        else:
            diagonal = X.diagonal(kernel)
            if not np.isfinite(diagonal).all():
                raise FloatingPointError(f"k(x, x) overflows with {kernel!r}; scale the features")
        return cls(TorchSharedSamples(kernel, X, budget, n_threads, constant), None, diagonal, budget)

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
    def precisions(self) -> tuple[Precision, ...]:
        formula = self._source.formula
        has_float32 = self.n > _FLOAT64_ROWS and formula is not None and not formula.cancels
        return (np.float32, np.float64) if has_float32 else (np.float64,)

    @property
    def outer_rows(self) -> int:
        """Number of variables of an outer working set; 0 if working sets are not nested."""
        fuses = fused.available(self.like) and self.precisions[0] == np.float32
        return min(self.n // 8, _OUTER_ROWS) if self.n >= _NESTED_ROWS and not fuses else 0

    @property
    def chunk_rows(self) -> int:
        X = self._source.X
        return int(self.budget / (40 * max(1, X.n_entries // max(1, X.shape[0]))))

    @property
    def linear(self) -> LinearGram | None:
        if not self._is_linear:
            return None
        scale = linear_scale(self.kernel)
        assert scale is not None
        return TorchLinearGram(self._source.X if self._rows is None else self._source.X.take(self._rows), scale)

    @property
    def _is_linear(self) -> bool:
        recipe = self._source.formula.recipe if self._source.formula is not None else None
        return recipe is not None and recipe.linear

    @property
    def _on_host(self) -> Gram:
        whole_gram = self._source.on_host
        return whole_gram if self._rows is None else whole_gram.view(self._rows)

    @property
    def proof(self) -> BoundedProducts:
        return self if self._source.rounding is not None else self._on_host

    @property
    def entry_bounds(self) -> Floats:
        """Numbers r with |K_ij| ≤ r_i r_j."""
        rounding = self._source.rounding
        if rounding is None:
            return self._on_host.entry_bounds
        sizes = self._source.sizes
        if rounding.recipe.ending in ("gaussian", "laplacian"):
            return np.sqrt(self.diagonal) * (1 + 8 * DOUBLE)
        return rounding.entry_bounds(sizes if self._rows is None else sizes[self._rows])

    @property
    def levels(self) -> tuple[Precision, ...]:
        """Levels that `product_bound` accepts, fastest first."""
        rounding = self._source.rounding
        if rounding is None:
            return self._on_host.levels
        is_radial = rounding.recipe.ending in ("gaussian", "laplacian") and rounding.recipe.factor is None
        return (np.float64, EXACT) if is_radial or linear_terms(self.kernel) is not None else (np.float64,)

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Ball:
        """Return K[rows] @ coefficients with a bound on the error of each number."""
        if self._source.rounding is None or level == EXACT:
            return self._exact.product_bound(coefficients, rows, self._exact_level(level))
        if coefficients.ndim == 2:
            bounds = [self.product_bound(column, rows, level) for column in coefficients.T]
            return Ball(*map(np.column_stack, zip(*bounds, strict=True)))
        return Ball(
            self._product(coefficients, rows, torch.float64, proven=True), self.errors(coefficients, rows, level)
        )

    def errors(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Floats:
        """Return a bound on the error of each number of `product_bound`, for one vector of coefficients."""
        rounding = self._source.rounding
        if rounding is None or level == EXACT:
            return self._exact.errors(coefficients, rows, self._exact_level(level))
        J, sizes = np.flatnonzero(coefficients), self._source.sizes
        index = slice(None) if rows is None and self._rows is None else self._global(rows)
        formula = self._source.formula
        assert formula is not None
        in_call = None
        if formula.fuses or formula.fuses_differences:
            in_call = fused.successive_additions(self.features, of_differences=formula.fuses_differences)
        in_sequence = (in_call or _SUMMED_COLUMNS) + len(J) // _SUMMED_COLUMNS + 8  # square_sums adds up fewer calls
        level = EXACT if formula.differences else np.float64
        return rounding.errors(sizes[index], sizes[self._global(J)], coefficients[J], level, in_sequence=in_sequence)

    @property
    def _exact(self) -> BoundedProducts:
        """A matrix with tighter bounds than float64 values here: the device from differences, or the host."""
        source = self._source.exact
        return self._on_host if source is None else TorchGram(source, self._rows, self.diagonal, self.budget)

    def _exact_level(self, level: Precision) -> Precision:
        return level if self._source.exact is None else np.float64

    # --- values -----------------------------------------------------------------------------------------------------

    def block(self, I: Indices, J: Indices) -> Floats:
        return floats(self._block(I, J, torch.float64))

    def full(self, dtype: Precision = np.float64) -> Any:
        """Return K as a new array of the host."""
        out = np.empty((self.n, self.n), dtype=np.dtype(dtype))
        all_rows = np.arange(self.n)

        def work(block: slice) -> None:
            out[block] = to_host(self._block(all_rows[block], all_rows, dtype_of(dtype)))

        in_strips(self.n, 8 * self.n, work, self._tile)
        return out

    def float32_matrix(self) -> TorchFloat32Matrix:
        """Return all of K on the device, computed in float64 and rounded to float32."""
        with explain_matrix_shortage(self.n, torch.float32, self.like.device):
            K = torch.empty((self.n, self.n), dtype=torch.float32, device=self.like.device)
        all_rows = np.arange(self.n)

        def work(block: slice) -> None:
            strip = self._block(all_rows[block], all_rows[block.start :], torch.float64)
            square = strip[:, : len(strip)]
            strip[:, : len(strip)] = square.triu() + square.triu(1).T
            K[block, block.start :] = strip
            K[block.start :, block] = strip.T

        in_strips(self.n, 8 * self.n, work, self._tile)
        K.diagonal().copy_(to_device(self.diagonal, K))
        return TorchFloat32Matrix(K)

    def device_full(self, dtype: Any) -> Any:
        """Return all of K on the device."""
        with explain_matrix_shortage(self.n, dtype, self.like.device):
            out = torch.empty((self.n, self.n), dtype=dtype, device=self.like.device)
        all_rows = np.arange(self.n)

        def work(block: slice) -> None:
            out[block] = self._block(all_rows[block], all_rows, dtype)

        in_strips(self.n, 8 * self.n, work, self._tile)
        return out

    @property
    def _tile(self) -> int:
        return tile_bytes(self.budget)

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        return self._product(coefficients, rows, dtype_of(dtype))

    def products(self, C: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        return self._product(C, rows, dtype_of(dtype))

    def _product(self, C: Floats, rows: Indices | None, dtype: Any, *, proven: bool = False) -> Floats:
        """Return K C, with the rows split among the samples' devices, each of which has a copy of the samples."""
        J = np.flatnonzero(C if C.ndim == 1 else C.any(axis=1))
        n_all = self._source.X.shape[0]
        others = [TorchGram(source, None, np.empty(n_all), self.budget) for source in self._source.on_other_devices]
        if not others:
            return floats(self.device_product(C, J, rows, dtype, proven))
        global_rows = self._global(rows)
        shares = np.array_split(global_rows, 1 + len(others))
        whole_gram = self if self._rows is None else TorchGram(self._source, None, np.empty(n_all), self.budget)
        C_all = np.zeros((n_all, *C.shape[1:]))
        C_all[self._global(J)] = C[J]
        J = np.sort(self._global(J))
        pending = [
            gram.device_product(C_all, J, share, dtype, proven)
            for gram, share in zip([whole_gram, *others], shares, strict=True)
        ]
        return np.concatenate([floats(part) for part in pending])

    def device_product(self, C: Floats, J: Indices, rows: Indices | None, dtype: Any, proven: bool) -> Any:
        """Return K C on this device; only the rows J of C are not 0."""
        left = self.prepared_rows(None if rows is None else index_tensor(rows, self.like), dtype)
        are_all = len(J) == self.n
        right = self.prepared_rows(None if are_all else index_tensor(J, self.like), dtype)
        return self.device_sums(left, right, to_device(C if are_all else C[J], self.like), dtype, proven=proven)

    def _block(self, I: Indices, J: Indices, dtype: Any) -> Any:
        left, right = (self.prepared_rows(index_tensor(rows, self.like), dtype) for rows in (I, J))
        return self.device_block(left, right, dtype)

    @property
    def n_threads(self) -> int:
        """Number of host threads."""
        return self._source.n_threads

    @property
    def features(self) -> int:
        """Number of features of the samples."""
        return self._source.X.shape[1]

    @property
    def like(self) -> Any:
        """The samples' tensor, whose device other tensors are created on."""
        return self._source.X.rows

    @cached_property
    def _view_rows(self) -> Any:
        """Rows of a view in the whole matrix, as a tensor on the device; None for the whole matrix."""
        return None if self._rows is None else index_tensor(self._rows, self.like)

    def prepared_rows(self, positions: Any, dtype: Any) -> Any:
        """Return the given samples of this Gram, or all, in the form that `device_block` and `device_sums` take."""
        if self._view_rows is not None:
            positions = self._view_rows if positions is None else self._view_rows[positions]
        if self._source.precomputed:
            return torch.arange(self._source.X.shape[0], device=self.like.device) if positions is None else positions
        rows = self._source.prepared(dtype)
        return rows if positions is None else rows[positions]

    def device_block(self, left: Any, right: Any, dtype: Any, proven: bool = False) -> Any:
        """Return K between prepared rows."""
        source = self._source
        if source.precomputed:
            values = self.like[left][:, right].double()
            return (values + source.constant if source.constant else values).to(dtype)
        assert source.formula is not None
        self.evaluations += left.n * right.n
        left, right = left.prepare(), right.prepare()
        if dtype == torch.float32 and source.formula.fuses and fused.narrow(left.parts[0][0]):
            values = fused.tile32(*left.parts[0], *right.parts[0])
            return values if self.scale == 1.0 else values.mul_(self.scale)
        return source.formula.block(left, right, proven=proven)

    def device_sums(self, left: Any, right: Any, weights: Any, dtype: Any, *, proven: bool = False) -> Any:
        """Return K between prepared rows times weights: partial sums over columns, added up in float64."""
        n, m = (len(left), len(right)) if self._source.precomputed else (left.n, right.n)
        weights = weights.to(dtype)
        out = torch.empty((n, *weights.shape[1:]), dtype=torch.float64, device=weights.device)

        def work(block: slice) -> None:
            rows = left[block] if self._source.precomputed else left[block].prepare()
            out[block] = self._sums_of(rows, right, weights, dtype, proven, is_fused)

        outputs = weights.shape[1] if weights.ndim == 2 else 1
        if self.fuses and isinstance(left, PreparedRows) and left is right:
            x, norms = left.parts[0]
            if square_sums.halves(x, weights):
                self.evaluations += n * m // 2
                return self.scale * square_sums.square_sums(x, norms, weights)
        is_fused = self._adds_differences(dtype) or (self.fuses and fused.adds_fast(dtype, self.features, outputs))
        row_bytes = weights.element_size() * min(_SUMMED_COLUMNS, max(1, m))
        row_bytes = max(row_bytes, self._tile * m // _STRIP_VALUES)
        if is_fused and isinstance(left, PreparedRows) and self._adds_all(left):  # K is not stored
            row_bytes = 1 if dtype == torch.float32 else min(row_bytes, max(1, self._tile // _STRIP_ROWS))
        in_strips(n, row_bytes, work, self._tile, out.device)
        return out

    def _sums_of(self, left: Any, right: Any, weights: Any, dtype: Any, proven: bool, is_fused: bool) -> Any:
        """Return one strip of rows of `device_sums`, computed by fused kernels if `is_fused`."""
        m = len(weights)
        adds_all = is_fused and isinstance(right, PreparedRows) and self._adds_all(left)
        columns_at_once = m if adds_all else _SUMMED_COLUMNS
        n = len(left) if self._source.precomputed else left.n
        total = torch.zeros((n, *weights.shape[1:]), dtype=torch.float64, device=weights.device)
        for start in range(0, m, max(1, columns_at_once)):
            part = slice(start, min(m, start + columns_at_once))
            if is_fused:
                (x, x_norms), (z, z_norms) = left.parts[0], right[part].prepare().parts[0]
                self.evaluations += n * len(z)
                if self._adds_differences(dtype):
                    assert self._source.formula is not None
                    sums = fused.sums_of_differences(x, z, self._source.formula.exponent_factor, weights[part])
                else:
                    sums = fused.sums(x, x_norms, z, z_norms, weights[part])
                total += self.scale * sums
            else:
                total += matmul(self.device_block(left, right[part], dtype, proven), weights[part])
        return total

    def _adds_differences(self, dtype: Any) -> bool:
        """Return whether a fused Triton kernel sums values that are computed from differences."""
        formula = self._source.formula
        return dtype == torch.float64 and formula is not None and formula.fuses_differences

    def _adds_all(self, rows: PreparedRows) -> bool:
        """Return whether one call of a fused kernel sums over any number of columns of these rows."""
        x = rows.parts[0][0]
        return self._adds_differences(x.dtype) or fused.adds_all(x)

    @property
    def fuses(self) -> bool:
        """True if fused Triton kernels compute the values."""
        return self._source.formula is not None and self._source.formula.fuses

    @property
    def scale(self) -> float:
        """Factor of the values that fused kernels compute."""
        assert self._source.formula is not None
        return self._source.formula.scale

    def _global(self, rows: Indices | None) -> Indices:
        """Return the positions of these rows, or of all, in the whole matrix."""
        view = self._rows
        if rows is None:
            return np.arange(self.n) if view is None else view
        return rows if view is None else view[rows]

    def factor(self, d: Floats, dtype: Precision = np.float64, n_threads: int = 1) -> Factor | None:
        return factor_of(self.device_full(dtype_of(dtype)), self.diagonal + d)

    def landmark_factor(self, landmarks: Indices, weight: Floats, n_threads: int = 1) -> LandmarkFactor:
        """Factor K_JJ + K_nJᵀ diag(weight) K_nJ for the rows J = `landmarks`."""
        weighted_rows = np.flatnonzero(weight)
        right = self.prepared_rows(index_tensor(landmarks, self.like), torch.float64)
        left = self.prepared_rows(index_tensor(weighted_rows, self.like), torch.float64)
        root, m = to_device(np.sqrt(weight[weighted_rows])[:, None], self.like), len(landmarks)
        with explain_shortage("a preconditioner", 32 * m * m, self.like.device, "lower cache_size for a smaller one"):
            L = jittered_factor(self.device_block(right, right, torch.float64))
            lower = torch.zeros((m, m), dtype=torch.float64, device=L.device)

            def work(block: slice) -> None:
                K = self.device_block(left[block], right, torch.float64).mul_(root[block])
                add_gram(lower, torch.linalg.solve_triangular(L, K.T, upper=False).T)

            tile = max(self._tile, min(_WHITENED_BYTES, self.budget // 8))
            in_strips(len(weighted_rows), 16 * m, work, tile, L.device)
            return landmark_factor_of(L, lower)

    def float64_matrix(self, n_threads: int = 1) -> Float64Matrix:
        return TorchFloat64Matrix(self.device_full(torch.float64), self.diagonal)

    def eigh(self, scale: Floats, centred: bool, deadline: float = math.inf) -> Eigensystem:
        return eigensystem_of(self.device_full(torch.float64), scale, centred)

    def view(self, rows: Indices) -> Gram:
        return TorchGram(self._source, self._global(rows), self.diagonal[rows], self.budget)

    def streamed(self) -> Gram:
        return self

    def copied(self, rows: Indices, budget: int) -> Gram:
        """Return the Gram of a subset with its own copy of the samples."""
        positions, source = self._global(rows), self._source
        X = source.X.take(positions)
        if source.precomputed:
            X = X.columns(positions)
        gram = TorchGram.of(self.kernel, X, budget, source.n_threads, source.constant if source.precomputed else 0.0)
        gram._source.refuted = source.refuted
        return gram

    def share(self) -> None:
        pass

    def field(
        self, problem: DualProblem, beta: Floats | None = None, u: Floats | None = None, dtype: Precision = np.float64
    ) -> Field:
        beta = problem.feasible_start() if beta is None else beta
        if u is None:
            u = self.product(problem.row_coefficients(beta, self.n), dtype=dtype)
        return TorchField(self, problem, beta, u, dtype)

    def joint_field(
        self, problem: JointProblem, beta: Floats, u: Floats, dtype: Precision = np.float64
    ) -> HostJointField:
        return HostJointField(self, problem, beta, u, dtype)

    def pairs(self, layout: Layout, n_threads: int) -> PairPlace | None:
        return None
