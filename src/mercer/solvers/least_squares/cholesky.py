"""(K + diag d)C + 1b' = Y, 1'C = 0: one Cholesky factor for all outputs, corrected by true residuals.

Rows and columns are scaled to the diagonal 1 first, so that neither the scale of K nor weights of any size change more
than rounding. The factor overwrites the only copy of the matrix. It is float32 first: a correction needs nothing but
the residual, and that comes from fresh float64 kernel values, so the answer is the float64 one as soon as the residual
is (iterative refinement). Corrections end where the bound on a residual's rounding exceeds the residual. Where it stops
shrinking before, the float64 factor takes over. Without bias the last column and the condition on sums are left out;
with bias b is eliminated exactly (bordered system).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from mercer import _core
from mercer.arrays import Floats, gamma, row_blocks
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import certify_solution, is_exact
from mercer.gram.gram import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Report, Stop
from mercer.solvers.deadline import in_time
from mercer.solvers.least_squares.solution import LeastSquaresSolution, factor_bytes, memory_error, residual_share
from mercer.solvers.least_squares.spectrum import solve_eigen

# Below this many rows a float64 factor takes less than a millisecond.
_FLOAT64_ROWS = 500


def solve_cholesky(
    problem: LeastSquares, gram: Gram, stop: Stop, start: object = None, report: Report | None = None
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution to rounding, whatever `stop` asks for; through eigenvalues where the matrix is singular."""
    n, lam = problem.n, problem.lam
    if lam == 0:
        return solve_eigen(problem, gram, stop, start, report)
    if factor_bytes(n, np.float32) > gram.budget:
        raise memory_error(f"the kernel matrix of {n:,} samples", factor_bytes(n, np.float32), gram.budget)
    for dtype in _precisions(gram):
        if factor_bytes(n, dtype) > gram.budget:
            raise memory_error(
                f"a float64 factor of {n:,} samples, which lam={lam:g} needs,",
                factor_bytes(n, dtype),
                gram.budget,
                "a larger lam, for which float32 suffices, or NystromRLS",
            )
        if report is not None:
            report(partial("{} factor of {:,} samples".format, np.dtype(dtype).name, n))
        found = solve_in_precision(problem, gram, dtype, stop)
        if found is not None:
            beta, certificate = certify_solution(problem, gram.proof, found.C, found.U, found.errors)
            solution = LeastSquaresSolution(
                b=np.array(certificate.b) if problem.bias else found.b,
                solver="cholesky",
                rank=n,
                C=found.C,
                beta=beta,
                precision=np.dtype(dtype).name,
                steps=found.corrections,
                stop_reason="converged" if is_exact(problem, certificate) else stop.limit(0) or "rounding floor",
            )
            return solution, certificate
    return solve_eigen(problem, gram, stop, start, report)


def _precisions(gram: Gram) -> tuple[DTypeLike, ...]:
    """The factor's precisions to try, in order; float64 alone where kernel values are slow to recompute."""
    single = gram.n > _FLOAT64_ROWS and gram.recomputes_cheaply
    return (np.float32, np.float64) if single else (np.float64,)


class Corrected(NamedTuple):
    """C and b, and the freshly computed U = KC with what bounds its errors."""

    C: Floats
    b: Floats
    U: Floats
    errors: Floats
    corrections: int


def solve_in_precision(problem: LeastSquares, gram: Gram, dtype: DTypeLike, stop: Stop) -> Corrected | None:
    """The solution through a factor of this precision, or None where it does not reach float64's answer."""
    with in_time(stop):
        factor = _Factor.of(problem, gram, np.dtype(dtype), stop.n_threads)
    if factor is None:
        return None
    single = dtype == np.float32
    Y = problem.mean
    C, b, R, last = np.zeros_like(Y), np.zeros(Y.shape[1]), Y, np.inf
    best: Corrected | None = None
    for corrections in range(1, 31):  # each is one pass of kernel values, a few hundredths of a factorisation
        step, shift = factor.solve(R, C)
        C, b = C + step, b + shift
        if not np.isfinite(C).all():
            return best
        U, errors = factor.products(gram, C)
        R, left = residual_share(problem, C, b, U, errors)
        stalled = not left <= 0.5 * last
        if stalled and best is not None and left > last:
            return None if single and last > 1 else best
        best = Corrected(C, b, U, errors, corrections)
        # A float32 factor goes on to what a float64 one typically leaves, which is less than its bound by √n.
        if left <= (1 / np.sqrt(gram.n) if single and not stalled else 1):
            return best
        if stalled or stop.seconds == 0:
            return None if single and stalled else best
        last = left
    return best


class _Factor:
    """L with LLᵀ = D⁻¹(K + diag d)D⁻¹, where D² is that matrix's diagonal, and with a bias its answer to 1."""

    def __init__(self, L: Any, unit: Floats, bias: bool, n_threads: int, K: Any = None) -> None:
        self._K = K
        self.L, self.unit, self.bias, self.n_threads = L, unit[:, None], bias, n_threads
        self._ones: Floats | None = None

    @classmethod
    def of(cls, problem: LeastSquares, gram: Gram, dtype: np.dtype[Any], n_threads: int) -> _Factor | None:
        diagonal = gram.diagonal + problem.lam / problem.total
        if not diagonal.min() > 0 or not np.isfinite(diagonal).all():
            return None
        # K must stay far from the largest and smallest numbers of float32 to be computed in it.
        if dtype == np.float32 and not 1e-25 < float(np.abs(gram.diagonal).max()) < 1e25:
            return None
        unit = 1.0 / np.sqrt(diagonal)
        A = gram.full(dtype)
        proven = gram.positive_definite == "yes" and gram.proof is gram
        K = A.copy() if gram.n <= _FLOAT64_ROWS and proven else None
        for rows in row_blocks(len(A), 8 * len(A)):
            A[rows] *= unit[rows, None]
            A[rows] *= unit
        np.einsum("ii->i", A)[...] = 1.0
        if _core.cholesky(A, n_threads) >= 0:  # an infinite entry ends here too
            return None
        pivots = np.einsum("ii->i", A).astype(np.float64)
        # The squared ratio bounds the reciprocal of the condition number from above.
        if dtype == np.float64 and (pivots.min() / pivots.max()) ** 2 <= len(A) * np.finfo(np.float64).eps:
            return None
        return cls(A, unit, problem.bias, n_threads, K)

    def products(self, gram: Gram, C: Floats) -> tuple[Floats, Floats]:
        """KC and bounds of its errors; the values of a small K, which is kept beside the factor, serve again.

        No value is larger than the roots of its diagonal elements, and a sum has n of them.
        """
        if self._K is None:
            return gram.proof.product_bound(C)
        root, U = np.sqrt(gram.diagonal), np.zeros(C.shape[::-1])
        for u, column in zip(U, C.T, strict=True):
            _core.add_table(u, self._K, np.ascontiguousarray(column), 1)
        errors = np.column_stack([gram.errors(column) for column in C.T])
        return U.T, errors + gamma(gram.n + 4) * np.outer(root, root @ np.abs(C))

    def solve(self, R: Floats, C: Floats) -> tuple[Floats, Floats]:
        """The change of C and b that removes the residual R, and what is left of 1'C."""
        if not self.bias:
            return self._solve(R), np.zeros(R.shape[1])
        if self._ones is None:
            Z = self._solve(np.column_stack([R, np.ones(len(R))]))
            Z, self._ones = Z[:, :-1], Z[:, -1:]
        else:
            Z = self._solve(R)
        shift = (Z.sum(axis=0) + C.sum(axis=0)) / self._ones.sum()
        return Z - self._ones * shift, shift

    def _solve(self, R: Floats) -> Floats:
        R = self.unit * R
        size = np.abs(R).max(axis=0)
        size[size == 0] = 1.0
        Z = np.ascontiguousarray(R / size, dtype=self.L.dtype)
        _core.cholesky_solve(self.L, Z, self.n_threads)
        return np.asarray(self.unit * np.asarray(Z, dtype=np.float64) * size)
