"""K of rows in chunks: workers compute products and their bounds, and working sets are solved on the host.

The host keeps β and u = Kβ. A round fetches the rows of a working set, solves the problem on it, and sends the rows
whose coefficients changed to all workers, which return the change of u: eight bytes for each active row. A worker keeps
nothing but its rows, so that any other worker that has them can replace it.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.kernels import Kernel
from mercer.places.ball import Ball
from mercer.places.chunked import verbs
from mercer.places.chunked.linear import ChunkedLinearGram
from mercer.places.chunked.samples import ChunkedSamples
from mercer.places.factor import HostLandmarkFactor, has_negative_direction, jittered_factor
from mercer.places.gram import BoundedProducts, Eigensystem, Factor, Field, Float32Matrix, Float64Matrix, LandmarkFactor
from mercer.places.host.field import HostField
from mercer.places.host.joint_field import HostJointField
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.places.host.linear_gram import linear_scale, linear_terms
from mercer.places.host.pair_place import Layout
from mercer.places.host.prepared import EXACT, PreparedSamples
from mercer.problems.dual_problem import DualProblem
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices, Precision

# Number of variables of a working set; a problem that is no larger is solved on the host as a whole.
OUTER_ROWS = 32_768
# Up to this number of rows no difference in time between float32 and float64 can be measured.
_FLOAT64_ROWS = 1000
# Bytes of rows that are sent to all workers at a time.
_SENT_BYTES = 64 << 20
# Bytes of the budget for each byte of a part that is solved on the host, as in places/host/kernel_matrix.py.
_BUDGET_PER_BYTE = 10
# Number of rows that determine the centre and how a kernel is computed.
_FEW_ROWS = 1024


class ChunkedGram:
    """The kernel matrix of rows in chunks, or of a subset of them."""

    recomputes_cheaply, concurrent = True, False

    def __init__(
        self,
        kernel: Kernel,
        X: ChunkedSamples,
        budget: int,
        n_threads: int,
        diagonal: Floats | None = None,
        shared: dict[str, Any] | None = None,
    ) -> None:
        self.kernel, self.X, self.budget, self.n_threads = kernel, X, budget, n_threads
        self.n, self.evaluations = X.shape[0], 0
        if diagonal is None:
            diagonal = X.diagonal(kernel)
            if not np.isfinite(diagonal).all():
                raise FloatingPointError(f"k(x, x) overflows with {kernel!r}; scale the features")
        self.diagonal = diagonal
        # Data that views share: whether K was refuted, the largest entry bound of a K that may be indefinite, and the
        # centre.
        self._shared: dict[str, Any] = {"refuted": False, "largest_bound": 0.0} if shared is None else shared

    @property
    def _verb_threads(self) -> int:
        """Number of threads of each verb."""
        return self.X.chunks.threads(self.n_threads)

    @property
    def centre(self) -> Floats:
        """Centre that all workers and the host subtract from rows, so that their values agree: the mean of a few rows.

        Any point among the rows would serve; this one is the same to the last bit in every layout of chunks.
        """
        if "centre" not in self._shared:
            with np.errstate(over="ignore"):
                self._shared["centre"] = np.asarray(self._sampled_rows.mean(axis=0, dtype=np.float64)).ravel()
        centre: Floats = self._shared["centre"]
        return centre

    @cached_property
    def _sampled_rows(self) -> Any:
        """A few rows, which determine the centre and how a kernel is computed."""
        return self.X.host(np.linspace(0, self.n - 1, min(self.n, _FEW_ROWS)).astype(np.intp))

    # --- facts -------------------------------------------------------------------------------------------------------

    @property
    def positive_definite(self) -> str:
        return "no" if self._shared["refuted"] else self.kernel.positive_definite

    def looks_positive_definite(self) -> bool:
        """Return whether a principal minor of rows spread over the samples has no negative eigenvalue."""
        if self.kernel.positive_definite == "yes":
            return True
        self._shared["refuted"] |= has_negative_direction(self)
        return not self._shared["refuted"]

    def refute(self) -> None:
        self._shared["refuted"] = True

    @property
    def proof(self) -> BoundedProducts:
        return self

    @cached_property
    def _fused(self) -> tuple[bool, bool]:
        """Return two flags: the core computes kernel values, and it can compute them without cancellation."""
        prepared = PreparedSamples.of(self.kernel, self._sampled_rows, 1, self.centre)
        exact = prepared is not None and (prepared.has_exact or linear_terms(self.kernel) is not None)
        return prepared is not None, exact

    @property
    def precisions(self) -> tuple[Precision, ...]:
        return (np.float32, np.float64) if self.n > _FLOAT64_ROWS and self._fused[0] else (np.float64,)

    @property
    def levels(self) -> tuple[Precision, ...]:
        return (*self.precisions, EXACT) if self._fused[1] else self.precisions

    @property
    def outer_rows(self) -> int:
        return OUTER_ROWS

    @property
    def chunk_rows(self) -> int:
        return int(self.budget / (_BUDGET_PER_BYTE * self.X.chunks.bytes_per_row))

    @property
    def linear(self) -> ChunkedLinearGram | None:
        """K = s·XXᵀ as products with the samples X; None if the kernel is not linear."""
        scale = linear_scale(self.kernel)
        return None if scale is None else ChunkedLinearGram(self.X, scale)

    # --- proofs ------------------------------------------------------------------------------------------------------

    @property
    def entry_bounds(self) -> Floats:
        """Numbers r with |K_ij| ≤ r_i r_j."""
        common = self.kernel, self.centre, bool(self._shared["refuted"]), self._verb_threads
        bounds = self.X.chunks.per_row(verbs.entry_bounds, self.X.positions, common)
        if self.positive_definite == "yes" or self._fused[0]:
            return np.asarray(bounds)
        return np.full(self.n, max(float(bounds.max(initial=0.0)), self._shared["largest_bound"]))

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Ball:
        """Return K[rows] @ coefficients with a bound on the error of each number."""
        value, error = self._product(coefficients, rows, level, proven=True)
        assert error is not None
        return Ball(value, error)

    def errors(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Floats:
        """Return a bound on the error of each number of `product_bound`, for one vector of coefficients."""
        J = np.flatnonzero(coefficients)
        if len(J) == 0:
            return np.zeros(self.n if rows is None else len(rows))
        common = self.kernel, self.centre, self.X.host(J), coefficients[J], level, self._verb_threads
        return np.asarray(self.X.chunks.per_row(verbs.errors, self.X.positions_of(rows), common))

    # --- values ------------------------------------------------------------------------------------------------------

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        return self._product(coefficients, rows, dtype)[0]

    def products(self, C: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        return self._product(C, rows, dtype)[0]

    def _product(
        self, C: Floats, rows: Indices | None, level: Precision, *, proven: bool = False
    ) -> tuple[Floats, Floats | None]:
        """Return K[rows] @ C, and bounds on its errors if `proven`, otherwise None."""
        J, n = np.flatnonzero(C if C.ndim == 1 else C.any(axis=1)), self.n if rows is None else len(rows)
        total = Ball(np.zeros((n, *C.shape[1:])), np.zeros((n, *C.shape[1:])))
        step = max(1, _SENT_BYTES // self.X.chunks.bytes_per_row)
        for start in range(0, len(J) if n else 0, step):
            sources = J[start : start + step]
            part = self._part_of_product(self.X.host(sources), C[sources], rows, level, proven)
            total = part if start == 0 else total + part
        self.evaluations += n * len(J)
        return total.value, total.error if proven else None

    def _part_of_product(self, Z: Any, C: Floats, rows: Indices | None, level: Precision, proven: bool) -> Ball:
        """Return K(samples[rows], Z) @ C; the error is 0, not a bound, unless `proven`."""
        chunks, positions = self.X.chunks, self.X.positions_of(rows)
        selections = chunks.selections(positions)
        is_refuted, C = bool(self._shared["refuted"]), np.ascontiguousarray(C)
        common = self.kernel, self.centre, is_refuted, Z, C, level, proven, self._verb_threads
        results = chunks.map(verbs.products, selections, common)
        self._shared["largest_bound"] = max([self._shared["largest_bound"], *(bound for _, (*_, bound) in results)])
        value = chunks.gather(selections, [(k, part[0]) for k, part in results], positions)
        error = chunks.gather(selections, [(k, part[1]) for k, part in results], positions) if proven else np.zeros(())
        return Ball(value, error)

    def block(self, I: Indices, J: Indices) -> Floats:
        """Return K[I, J] in float64 as a new array."""
        union = np.union1d(I, J)
        self.evaluations += len(I) * len(J)
        if len(I) == 0 or len(J) == 0:
            return np.zeros((len(I), len(J)))
        return self.local(union).block(np.searchsorted(union, I), np.searchsorted(union, J))

    def local(self, rows: Indices | None, budget: int | None = None) -> KernelMatrix:
        """Return the Gram of these rows, or of all, on the host."""
        X, budget = self.X.host(rows), self.budget if budget is None else budget
        gram = KernelMatrix.of(self.kernel, X, budget, self.n_threads, centre=self.centre)
        if self._shared["refuted"]:
            gram.refute()
        return gram

    @cached_property
    def _on_host(self) -> KernelMatrix:
        return self.local(None)

    # All of K is computed and decomposed on the host: callers of these methods have memory for n² values.

    def full(self, dtype: Precision = np.float64) -> Any:
        return self._on_host.full(dtype)

    def float32_matrix(self) -> Float32Matrix:
        return self._on_host.float32_matrix()

    def factor(self, d: Floats, dtype: Precision = np.float64, n_threads: int = 1) -> Factor | None:
        return self._on_host.factor(d, dtype, n_threads)

    def landmark_factor(self, landmarks: Indices, weight: Floats, n_threads: int = 1) -> LandmarkFactor:
        """Factor K_JJ + K_nJᵀ diag(weight) K_nJ for the rows J = `landmarks`."""
        L, _ = jittered_factor(self.block(landmarks, landmarks), n_threads)
        weights = self.X.chunks.weights(self.X.positions, weight)
        common = self.kernel, self.centre, self.X.host(landmarks), L, self._verb_threads
        lower = self.X.chunks.sum(verbs.whitened_gram, weights, common, np.add)
        self.evaluations += int(np.count_nonzero(weight)) * len(landmarks)
        return HostLandmarkFactor.of(L, np.zeros(L.shape) if lower is None else np.array(lower), n_threads)

    def float64_matrix(self, n_threads: int = 1) -> Float64Matrix:
        return self._on_host.float64_matrix(n_threads)

    def eigh(self, scale: Floats, centred: bool, deadline: float = math.inf) -> Eigensystem:
        return self._on_host.eigh(scale, centred, deadline)

    # --- parts, and the state of a solve -----------------------------------------------------------------------------

    def view(self, rows: Indices) -> ChunkedGram:
        _ = self.centre  # computed from all rows before a view could compute it from its own
        return ChunkedGram(
            self.kernel, self.X.take(rows), self.budget, self.n_threads, self.diagonal[rows], self._shared
        )

    def streamed(self) -> ChunkedGram:
        return self

    def copied(self, rows: Indices, budget: int) -> KernelMatrix:
        return self.local(rows, budget)

    def share(self) -> None:
        pass

    def field(
        self, problem: DualProblem, beta: Floats | None = None, u: Floats | None = None, dtype: Precision = np.float64
    ) -> Field:
        """Return the state of a solve on this matrix, started at β or at a feasible point."""
        beta = problem.feasible_start() if beta is None else beta
        if self.n <= self.outer_rows:
            return self._on_host.field(problem, beta, u, dtype)
        if u is None:
            u = self.product(problem.row_coefficients(beta, self.n), dtype=dtype)
        return ChunkedField(self, problem, beta, u, dtype)

    def joint_field(
        self, problem: JointProblem, beta: Floats, u: Floats, dtype: Precision = np.float64
    ) -> HostJointField:
        """Return the state of a joint multi-class solve, started at β with u = Kβ."""
        if self.n <= self.outer_rows:
            return self._on_host.joint_field(problem, beta, u, dtype)
        return HostJointField(self, problem, beta, u, dtype)

    def pairs(self, layout: Layout, n_threads: int) -> None:
        return None


class ChunkedField(HostField):
    """A `Field` whose u the workers update, and whose working sets are solved on the host."""

    def __init__(self, gram: ChunkedGram, problem: DualProblem, beta: Floats, u: Floats, dtype: Precision) -> None:
        super().__init__(gram, problem, beta, u, gram.n_threads)
        self._chunked_gram, self._dtype = gram, dtype

    def inner_field(self, J: Indices) -> Field:
        """Return the state of the problem on J on the host, with all other variables held fixed."""
        rows, part = self._inner_problem(J)
        return self._chunked_gram.local(rows).field(part, self.beta[J], np.zeros(len(rows)), self._dtype)

    def _spread(self, sources: Indices, coefficients: Floats, targets: Indices) -> None:
        """Add K[targets, sources] @ coefficients to u[targets]."""
        all_coefficients = np.zeros(self.gram.n)
        all_coefficients[sources] = coefficients
        _core.check_stop()
        self.u[targets] += self.gram.product(all_coefficients, targets, self._dtype)

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        """Add K[rows] times a change of β to u[rows]."""
        self.u[rows] += self.gram.product(self.problem.row_coefficients(change, self.gram.n), rows, self._dtype)
