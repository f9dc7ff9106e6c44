"""K of rows in chunks: products and their bounds are the workers', working sets are solved on this machine.

β and u = Kβ are kept here. A round brings the rows of a working set here, solves the problem on it, and sends the rows
that moved to all workers, which return what they add to u: eight bytes for each row that can still be chosen. A worker
keeps nothing but its rows, so that one that is lost is replaced by any other that has them.
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
from mercer.places.factor import has_negative_direction
from mercer.places.gram import Eigensystem, Factor, Field, Kept, Provable, Rounded
from mercer.places.host.field import HostField
from mercer.places.host.joint_field import HostJointField
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.places.host.linear_gram import linear_scale, linear_terms
from mercer.places.host.pair_place import Layout
from mercer.places.host.prepared import EXACT, PreparedSamples
from mercer.problems.dual_problem import DualProblem
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices, Precision

# Variables of a working set; a problem that is no larger is solved on this machine as a whole.
OUTER_ROWS = 32_768
# Up to this many rows no difference in time between float32 and float64 can be measured.
_FLOAT64_ROWS = 1000
# Rows that are sent to all workers at a time, in bytes.
_SENT_BYTES = 64 << 20
# Bytes of the budget for each byte of a part that is solved here, as for a matrix of this machine.
_BUDGET_PER_BYTE = 10
# Rows that tell how a kernel is computed, and about what.
_FEW_ROWS = 1024


class ChunkedGram:
    """The kernel matrix of rows in chunks, or of some of them."""

    recomputes_cheaply, concurrent = True, False

    def __init__(
        self,
        kernel: Kernel,
        X: ChunkedSamples,
        budget: int,
        n_threads: int,
        diagonal: Floats | None = None,
        known: dict[str, Any] | None = None,
    ) -> None:
        self.kernel, self.X, self.budget, self.n_threads = kernel, X, budget, n_threads
        self.n, self.evaluations = X.shape[0], 0
        if diagonal is None:
            diagonal = X.diagonal(kernel)
            if not np.isfinite(diagonal).all():
                raise FloatingPointError(f"k(x, x) overflows with {kernel!r}; scale the features")
        self.diagonal = diagonal
        # What views share: whether K was refuted, the largest reach that was seen of a doubtful K, and the centre.
        self._known: dict[str, Any] = {"refuted": False, "reached": 0.0} if known is None else known

    @property
    def _verb_threads(self) -> int:
        return self.X.chunks.threads(self.n_threads)

    @property
    def centre(self) -> Floats:
        """What all workers, and this machine, take rows about, so that their values agree: the mean of some rows.

        Any point among them would do, and this one is the same to the last bit in every layout of chunks.
        """
        if "centre" not in self._known:
            with np.errstate(over="ignore"):
                self._known["centre"] = np.asarray(self._few.mean(axis=0, dtype=np.float64)).ravel()
        centre: Floats = self._known["centre"]
        return centre

    @cached_property
    def _few(self) -> Any:
        """Rows that tell how a kernel is computed."""
        return self.X.host(np.linspace(0, self.n - 1, min(self.n, _FEW_ROWS)).astype(np.intp))

    # --- facts -------------------------------------------------------------------------------------------------------

    @property
    def positive_definite(self) -> str:
        return "no" if self._known["refuted"] else self.kernel.positive_definite

    def looks_positive_definite(self) -> bool:
        if self.kernel.positive_definite == "yes":
            return True
        self._known["refuted"] |= has_negative_direction(self)
        return not self._known["refuted"]

    def refute(self) -> None:
        self._known["refuted"] = True

    @property
    def proof(self) -> Provable:
        return self

    @cached_property
    def _fused(self) -> tuple[bool, bool]:
        """Whether the core computes values, and whether there are some that do not cancel."""
        prepared = PreparedSamples.of(self.kernel, self._few, 1, self.centre)
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
        scale = linear_scale(self.kernel)
        return None if scale is None else ChunkedLinearGram(self.X, scale)

    # --- proofs ------------------------------------------------------------------------------------------------------

    @property
    def reach(self) -> Floats:
        found = self.X.chunks.per_row(
            verbs.reach, self.X.places, (self.kernel, self.centre, bool(self._known["refuted"]), self._verb_threads)
        )
        if self.positive_definite == "yes" or self._fused[0]:
            return np.asarray(found)
        return np.full(self.n, max(float(found.max(initial=0.0)), self._known["reached"]))  # what was seen anywhere

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Ball:
        value, error = self._product(coefficients, rows, level, proven=True)
        assert error is not None
        return Ball(value, error)

    def errors(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Floats:
        J = np.flatnonzero(coefficients)
        if len(J) == 0:
            return np.zeros(self.n if rows is None else len(rows))
        common = self.kernel, self.centre, self.X.host(J), coefficients[J], level, self._verb_threads
        return np.asarray(self.X.chunks.per_row(verbs.errors, self.X.at(rows), common))

    # --- values ------------------------------------------------------------------------------------------------------

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        return self._product(coefficients, rows, dtype)[0]

    def products(self, C: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        return self._product(C, rows, dtype)[0]

    def _product(
        self, C: Floats, rows: Indices | None, level: Precision, *, proven: bool = False
    ) -> tuple[Floats, Floats | None]:
        J, n = np.flatnonzero(C if C.ndim == 1 else C.any(axis=1)), self.n if rows is None else len(rows)
        total = Ball(np.zeros((n, *C.shape[1:])), np.zeros((n, *C.shape[1:])))
        step = max(1, _SENT_BYTES // self.X.chunks.bytes_per_row)
        for start in range(0, len(J) if n else 0, step):
            some = J[start : start + step]
            found = self._some_products(self.X.host(some), C[some], rows, level, proven)
            total = found if start == 0 else total + found
        self.evaluations += n * len(J)
        return total.value, total.error if proven else None

    def _some_products(self, Z: Any, C: Floats, rows: Indices | None, level: Precision, proven: bool) -> Ball:
        chunks, places = self.X.chunks, self.X.at(rows)
        each = chunks.masked(places)
        refuted, C = bool(self._known["refuted"]), np.ascontiguousarray(C)
        common = self.kernel, self.centre, refuted, Z, C, level, proven, self._verb_threads
        found = chunks.map(verbs.products, each, common)
        self._known["reached"] = max([self._known["reached"], *(reached for _, (*_, reached) in found)])
        value = chunks.gathered(each, [(k, part[0]) for k, part in found], places)
        error = chunks.gathered(each, [(k, part[1]) for k, part in found], places) if proven else np.zeros(())
        return Ball(value, error)

    def block(self, I: Indices, J: Indices) -> Floats:
        both = np.union1d(I, J)
        self.evaluations += len(I) * len(J)
        if len(I) == 0 or len(J) == 0:
            return np.zeros((len(I), len(J)))
        return self.local(both).block(np.searchsorted(both, I), np.searchsorted(both, J))

    def local(self, rows: Indices | None, budget: int | None = None) -> KernelMatrix:
        """The same matrix, or a part of it, on this machine."""
        X, budget = self.X.host(rows), self.budget if budget is None else budget
        made = KernelMatrix.of(self.kernel, X, budget, self.n_threads, centre=self.centre)
        if self._known["refuted"]:
            made.refute()
        return made

    @cached_property
    def _here(self) -> KernelMatrix:
        return self.local(None)

    # All of K is made, and decomposed, on this machine: whoever asks for that has memory for n² values.

    def full(self, dtype: Precision = np.float64) -> Any:
        return self._here.full(dtype)

    def rounded(self) -> Rounded:
        return self._here.rounded()

    def factor(self, d: Floats, dtype: Precision = np.float64, n_threads: int = 1) -> Factor | None:
        return self._here.factor(d, dtype, n_threads)

    def kept(self, n_threads: int = 1) -> Kept:
        return self._here.kept(n_threads)

    def eigh(self, scale: Floats, centred: bool, deadline: float = math.inf) -> Eigensystem:
        return self._here.eigh(scale, centred, deadline)

    # --- parts, and the state of a solve -----------------------------------------------------------------------------

    def view(self, rows: Indices) -> ChunkedGram:
        _ = self.centre  # that of all rows, before a part has one of its own
        return ChunkedGram(
            self.kernel, self.X.take(rows), self.budget, self.n_threads, self.diagonal[rows], self._known
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
        beta = problem.feasible_start() if beta is None else beta
        if self.n <= self.outer_rows:
            return self._here.field(problem, beta, u, dtype)
        if u is None:
            u = self.product(problem.row_coefficients(beta, self.n), dtype=dtype)
        return ChunkedField(self, problem, beta, u, dtype)

    def joint_field(
        self, problem: JointProblem, beta: Floats, u: Floats, dtype: Precision = np.float64
    ) -> HostJointField:
        if self.n <= self.outer_rows:
            return self._here.joint_field(problem, beta, u, dtype)
        return HostJointField(self, problem, beta, u, dtype)

    def pairs(self, layout: Layout, n_threads: int) -> None:
        return None


class ChunkedField(HostField):
    """A `Field` whose u the workers bring up to date, and whose working sets are problems of this machine."""

    def __init__(self, gram: ChunkedGram, problem: DualProblem, beta: Floats, u: Floats, dtype: Precision) -> None:
        super().__init__(gram, problem, beta, u, gram.n_threads)
        self._chunked, self._dtype = gram, dtype

    def inside(self, J: Indices) -> Field:
        rows, part = self._inner_problem(J)
        return self._chunked.local(rows).field(part, self.beta[J], np.zeros(len(rows)), self._dtype)

    def _spread(self, sources: Indices, coefficients: Floats, targets: Indices) -> None:
        full = np.zeros(self.gram.n)
        full[sources] = coefficients
        _core.check_stop()
        self.u[targets] += self.gram.product(full, targets, self._dtype)

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        self.u[rows] += self.gram.product(self.problem.row_coefficients(change, self.gram.n), rows, self._dtype)
