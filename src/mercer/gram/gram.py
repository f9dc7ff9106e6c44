"""K for a kernel and data: its diagonal, blocks and products, never the whole matrix unless it was given or fits.

A Gram is the seam between mathematics and machines: solvers see rows and numbers, kernels see blocks of samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, is_sparse, take
from mercer.gram.field import Field
from mercer.gram.lowered import Lowering
from mercer.gram.tiled_field import TiledField
from mercer.kernels import Kernel

if TYPE_CHECKING:
    from mercer.problems.dual_problem import DualProblem

# Blocks are cut so that one of them takes about this many bytes: large enough for BLAS, small enough that Ctrl-C, which
# Python sees between two blocks, is answered within a tenth of a second.
_BLOCK_BYTES = 16 << 20

# Samples that the core lays out at a time: what it packs stays small beside the samples themselves.
_CHUNK = 8192

# Views that overlap share one stored matrix up to this many rows (128 MB); beyond, they recompute.
_STORE_ROWS = 4000

# Below this many rows float64 costs nothing that anyone could measure.
_SMALL = 1000


class Gram:
    """The kernel matrix of `X` under a bound kernel.

    Parameters
    ----------
    kernel : Kernel
        With its data-dependent parameters resolved (`Kernel.bind`).
    X : array, CSR matrix or sequence of samples
        For a precomputed kernel, the matrix itself.
    budget : int
        Bytes that this Gram and its fields may use beyond the data.
    n_threads : int
    """

    def __init__(self, kernel: Kernel, X: Any, budget: int = 1_000_000_000, n_threads: int = 1) -> None:
        self.kernel = kernel
        self.X = X
        self.budget = budget
        self.evaluations = 0
        self._streamed = False
        self._rows: Indices | None = None
        self._matrix = X if kernel.accepts == "gram" else None
        self.diagonal: Floats = _diagonal(kernel, X)
        self._engine = _Engine(kernel, X, n_threads)

    @property
    def n(self) -> int:
        return len(self.diagonal)

    @property
    def positive_definite(self) -> str:
        """What is known about K: what the kernel states about itself, or "no" once a counterexample was seen."""
        return "no" if self._engine.refuted else self.kernel.positive_definite

    def looks_positive_definite(self) -> bool:
        """Whether a principal minor of up to 200 rows spread over the samples shows no negative eigenvalue.

        A kernel that is known to be positive definite is not asked; any other can only be refuted here, never proven.
        """
        if self.kernel.positive_definite == "yes":
            return True
        negative = np.flatnonzero(self.diagonal < 0)
        some = np.unique(np.concatenate([negative[:1], np.linspace(0, self.n - 1, min(self.n, 200)).astype(np.intp)]))
        K = self.block(some, some)
        K = 0.5 * (K + K.T)
        # With a little on the diagonal, more than rounding could take away, a factor exists or there is such a value.
        K[np.diag_indices(len(K))] += 1e-8 * max(1e-300, float(np.abs(K).max())) * len(K)
        self._engine.refuted = _core.cholesky(K, 1) >= 0
        return not self._engine.refuted

    def refute(self) -> None:
        """Take note of a counterexample that a solver met: from now on K, and every view of it, is not definite."""
        self._engine.refuted = True

    @property
    def n_threads(self) -> int:
        return self._engine.n_threads

    @property
    def fused(self) -> bool:
        """Whether the core computes the kernel values itself."""
        return self._engine.lowering is not None and not self.stored

    @property
    def stored(self) -> bool:
        """Whether blocks are looked up rather than computed."""
        return self._matrix is not None

    def view(self, rows: Indices) -> Gram:
        """The Gram matrix of a subset of rows, sharing data and storage."""
        part = object.__new__(Gram)
        part.kernel, part.X, part.budget, part._matrix = self.kernel, self.X, self.budget, self._matrix
        part.evaluations, part._engine, part._streamed = 0, self._engine, self._streamed
        part._rows = rows if self._rows is None else self._rows[rows]
        part.diagonal = self.diagonal[rows]
        return part

    def streamed(self) -> Gram:
        """The same matrix for products only: samples are prepared as they are met, and never all of them at once."""
        part = self.view(np.arange(self.n))
        part._streamed = True
        return part

    def copied(self, rows: Indices, budget: int) -> Gram:
        """The Gram matrix of a subset with samples of its own: what it prepares is as large as the subset."""
        if self.stored:
            return self.view(rows)
        part = Gram(self.kernel, take(self.X, self._global(rows)), budget, self.n_threads)
        part._engine.refuted = self._engine.refuted
        return part

    @property
    def bytes_per_row(self) -> float:
        """What one sample takes in memory; of strings, about."""
        if is_sparse(self.X):
            return float(12 * self.X.nnz / max(1, self.X.shape[0]) + 8)
        return float(8 * self.X.shape[1]) if hasattr(self.X, "shape") else 200.0

    def share(self) -> None:
        """Compute once what views that overlap (the pairs of a multi-class problem) would compute each for itself.

        That is the samples' float64 form where the core computes kernel values, and the matrix where it does not, as
        far as they fit.
        """
        if self.fused:
            if 64 * self.X.shape[0] * self.X.shape[1] <= self.budget:
                self._engine.samples(np.float64)
        elif self._matrix is None and self.n <= _STORE_ROWS and 16 * self.n**2 <= self.budget:
            everything = np.arange(self.n)
            self._matrix = self.block(everything, everything)

    def block(self, I: Indices, J: Indices) -> Floats:
        """K[I, J] in float64."""
        out = np.empty((len(I), len(J)))
        step = max(1, _BLOCK_BYTES // (8 * max(1, len(J))))
        for start in range(0, len(I), step):
            out[start : start + step] = self._evaluate(I[start : start + step], J)
        return out

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Any = np.float64) -> Floats:
        """K[rows] @ coefficients, summed in float64, from the columns whose coefficient is not zero.

        Kernel values themselves are float64, or float32 where that is asked for and the kernel has a fused form.
        """
        rows = np.arange(self.n) if rows is None else rows
        J = np.flatnonzero(coefficients)
        out = np.zeros(len(rows))
        if len(J) == 0 or len(rows) == 0:
            return out
        if self.fused:
            fused = self._fused_product(coefficients[J], J, rows, dtype)
            if fused is not None:
                return fused
        wide = max(1, _BLOCK_BYTES // (8 * min(len(rows), 2048)))
        for left in range(0, len(J), wide):
            columns = J[left : left + wide]
            tall = max(1, _BLOCK_BYTES // (8 * len(columns)))
            for top in range(0, len(rows), tall):
                some = slice(top, top + tall)
                out[some] += self._evaluate(rows[some], columns) @ coefficients[columns]
        return out

    def _fused_product(self, coefficients: Floats, J: Indices, rows: Indices, dtype: Any) -> Floats | None:
        """The same through the core, chunk by chunk; None where numbers are too large for it."""
        out = np.zeros(len(rows))
        chunk = _CHUNK
        if self._streamed:  # two chunks are held at a time, each as copied, as prepared and as laid out
            chunk = int(max(64, min(_CHUNK, self.budget / (16 * self.bytes_per_row))))
        for left in range(0, len(J), chunk):
            part = slice(left, left + chunk)
            vectors, which = self._engine.some(self._global(J[part]), dtype)
            for top in range(0, len(rows), chunk):
                others, these = self._engine.some(self._global(rows[top : top + chunk]), dtype)
                if vectors is None or others is None:
                    return None
                vectors.add(out[top : top + chunk], others.columns(these), which, coefficients[part])
        self.evaluations += len(rows) * len(J)
        return out

    @property
    def precisions(self) -> tuple[Any, ...]:
        """The precisions in which kernel values can be had for solving, fastest first."""
        single = self.n > _SMALL and self.fused and (self._streamed or self._engine.samples(np.float32) is not None)
        return (np.float32, np.float64) if single else (np.float64,)

    def field(
        self, problem: DualProblem, beta: Floats | None = None, u: Floats | None = None, dtype: Any = np.float64
    ) -> Field:
        """The state of a solve on this matrix, started at β, or a feasible point (and at u = Kβ where it is known)."""
        beta = problem.feasible_start() if beta is None else beta
        samples = None if self.stored else self._engine.samples(dtype)
        if u is None:
            u = self.product(problem.row_coefficients(beta, self.n), dtype=dtype)
        if samples is None:
            return Field(self, problem, beta, u)
        return TiledField(self, problem, beta, u, samples, self._global(np.arange(self.n)))

    def prepared(self, rows: Indices, dtype: Any, whole: bool = False) -> tuple[Any, Indices]:
        """The core's samples, these rows or the `whole` data, and where the rows are in them; else None."""
        if not self.fused:
            return None, rows
        rows = self._global(rows)
        return (self._engine.samples(dtype), rows) if whole else self._engine.some(rows, dtype)

    def _global(self, rows: Indices) -> Indices:
        return rows if self._rows is None else self._rows[rows]

    def _evaluate(self, I: Indices, J: Indices) -> Floats:
        I, J = self._global(I), self._global(J)
        if self._matrix is not None:
            return np.asarray(self._matrix[np.ix_(I, J)], dtype=np.float64)
        self.evaluations += len(I) * len(J)
        return _finite(self.kernel(take(self.X, I), take(self.X, J)), self.kernel)


class _Engine:
    """What a Gram and its views share: the kernel's fused form on the data, prepared once per precision."""

    def __init__(self, kernel: Kernel, X: Any, n_threads: int) -> None:
        self.X, self.n_threads = X, n_threads
        recipe = kernel.recipe() if kernel.accepts == "vectors" else None
        self.lowering = None if recipe is None else Lowering.of(recipe, X)
        self._samples: dict[np.dtype[Any], Any] = {}
        self.refuted = False

    def some(self, rows: Indices, dtype: Any) -> tuple[Any, Indices]:
        """Prepared samples that include these rows, and where: all of them if they are at hand, or these alone."""
        if np.dtype(dtype) in self._samples:
            return self._samples[np.dtype(dtype)], rows
        assert self.lowering is not None
        return self.lowering.prepare(take(self.X, rows), dtype, self.n_threads), np.arange(len(rows))

    def samples(self, dtype: Any) -> Any:
        """The prepared samples, or None where the kernel has no fused form or the numbers do not fit."""
        if self.lowering is None:
            return None
        dtype = np.dtype(dtype)
        if dtype not in self._samples:
            self._samples[dtype] = self.lowering.prepare(self.X, dtype, self.n_threads)
        return self._samples[dtype]


def _diagonal(kernel: Kernel, X: Any) -> Floats:
    if kernel.accepts == "gram":
        return np.asarray(X.diagonal(), dtype=np.float64)
    return _finite(kernel.diag(X), kernel)


def _finite(values: Floats, kernel: Kernel) -> Floats:
    if not np.isfinite(values).all():
        raise FloatingPointError(
            f"{kernel!r} produced a non-finite value; its largest finite one here is "
            f"{np.abs(values[np.isfinite(values)]).max(initial=0.0):.3g}. Scale the features, or lower the "
            f"degree, gamma or coef0"
        )
    return values
