"""(K + diag d)C + 1b' = Y, 1'C = 0: one Cholesky factor for all outputs, corrected by true residuals.

The factor overwrites the only copy of the matrix. It is float32 first: a correction needs nothing but the residual, and
that comes from fresh float64 kernel values, so the answer is the float64 one as soon as the residual is (iterative
refinement; the stopping rule is that of LAPACK's dsposv). Where it stops shrinking before, the float64 factor takes
over. Without bias the last column and the condition on sums are left out; with bias b is eliminated exactly (bordered
system).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mercer import _core
from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import certify_outputs
from mercer.gram.gram import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Report, Stop
from mercer.solvers.least_squares.eigen import solve_eigen
from mercer.solvers.least_squares.in_time import in_time
from mercer.solvers.least_squares.memory import factor_bytes, memory_error
from mercer.solvers.least_squares.solution import LeastSquaresSolution

# Below this many rows a float64 factor takes less than a millisecond.
_FLOAT64_ROWS = 500
# Corrections with one factor; each is one pass of kernel values, a few hundredths of a factorisation.
_MOST_CORRECTIONS = 30
# A float32 matrix must stay far from the largest and smallest numbers of its type.
_FLOAT32_RANGE = (1e-25, 1e25)


def solve_cholesky(
    problem: LeastSquares, gram: Gram, stop: Stop, start: Any = None, report: Report | None = None
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
            beta = problem.split(found.C)
            certificate = certify_outputs(problem, gram, beta, found.U)
            solution = LeastSquaresSolution(
                b=np.array(certificate.b) if problem.bias else found.b,
                solver="cholesky",
                rank=n,
                C=found.C,
                beta=beta,
                precision=np.dtype(dtype).name,
                steps=found.corrections,
                stop_reason="converged" if found.reached else stop.limit(0) or "rounding floor",
            )
            return solution, certificate
    return solve_eigen(problem, gram, stop, start, report)


def _precisions(gram: Gram) -> tuple[Any, ...]:
    """The factor's precisions to try, in order; float64 alone where kernel values are slow to recompute."""
    cheap = gram.fused or gram.stored
    return (np.float32, np.float64) if gram.n > _FLOAT64_ROWS and cheap else (np.float64,)


class Corrected(NamedTuple):
    """C and b, the freshly computed U = KC, and whether the residual is that of rounding."""

    C: Floats
    b: Floats
    U: Floats
    corrections: int
    reached: bool


def solve_in_precision(problem: LeastSquares, gram: Gram, dtype: Any, stop: Stop) -> Corrected | None:
    """The solution through a factor of this precision, or None where it does not reach float64's answer."""
    with in_time(stop):
        factor = _Factor.of(problem, gram, np.dtype(dtype))
    if factor is None:
        return None
    single = dtype == np.float32
    Y, d = problem.mean, _ridge(problem)[:, None]
    C, b, U = np.zeros_like(Y), np.zeros(Y.shape[1]), np.zeros_like(Y)
    R, last = Y, np.full(Y.shape[1], np.inf)
    for corrections in range(1, _MOST_CORRECTIONS + 1):
        step, shift = factor.solve(R, C)
        C, b = C + step, b + shift
        if not np.isfinite(C).all():
            return None
        U = gram.products(C)
        R = Y - U - d * C - b
        size, floor = np.abs(R).max(axis=0), _floor(problem, gram, C, b)
        stalled = bool((size > 0.5 * last).any())
        # A float32 factor goes on to what a float64 one typically leaves, which is less than its bound by √n.
        if (size <= (floor / np.sqrt(gram.n) if single and not stalled else floor)).all():
            return Corrected(C, b, U, corrections, True)
        if stalled or (not single and corrections > 1):
            return None if single else Corrected(C, b, U, corrections, False)
        if stop.seconds == 0:
            return Corrected(C, b, U, corrections, False)
        last = size
    return None


def _ridge(problem: LeastSquares) -> Floats:
    """What is added to K's diagonal."""
    return np.asarray(problem.lam / problem.total)


def _floor(problem: LeastSquares, gram: Gram, C: Floats, b: Floats) -> Floats:
    """√n · eps · (‖K + diag d‖ ‖C‖ + ‖Y‖) per output: the residual that rounding leaves a float64 factor with."""
    root = np.sqrt(np.abs(gram.diagonal))
    terms = root.max() * (root @ np.abs(C)) + (_ridge(problem)[:, None] * np.abs(C)).max(axis=0)
    size = terms + np.abs(problem.mean).max(axis=0) + np.abs(b)
    return np.asarray(np.sqrt(gram.n) * np.finfo(np.float64).eps * size)


class _Factor:
    """L with LLᵀ = K + diag d, and with a bias its answer to 1."""

    def __init__(self, L: Any, bias: bool, n_threads: int) -> None:
        self.L, self.n_threads = L, n_threads
        self.ones = self._solve(np.ones((len(L), 1))) if bias else None

    @classmethod
    def of(cls, problem: LeastSquares, gram: Gram, dtype: np.dtype[Any]) -> _Factor | None:
        diagonal = gram.diagonal + _ridge(problem)
        low, high = _FLOAT32_RANGE
        if dtype == np.float32 and not (diagonal.min() > low and diagonal.max() < high):
            return None
        A = gram.full(dtype)
        np.einsum("ii->i", A)[...] = diagonal
        if _core.cholesky(A, gram.n_threads) >= 0:  # an infinite entry ends here too
            return None
        pivots = np.einsum("ii->i", A).astype(np.float64)
        # The squared ratio bounds the reciprocal of the condition number from above.
        if dtype == np.float64 and (pivots.min() / pivots.max()) ** 2 <= len(A) * np.finfo(np.float64).eps:
            return None
        return cls(A, problem.bias, gram.n_threads)

    def solve(self, R: Floats, C: Floats) -> tuple[Floats, Floats]:
        """The change of C and b that removes the residual R, and what is left of 1'C."""
        Z = self._solve(R)
        if self.ones is None:
            return Z, np.zeros(R.shape[1])
        shift = (Z.sum(axis=0) + C.sum(axis=0)) / self.ones.sum()
        return Z - self.ones * shift, shift

    def _solve(self, R: Floats) -> Floats:
        size = np.abs(R).max(axis=0)
        size[size == 0] = 1.0
        Z = np.ascontiguousarray(R / size, dtype=self.L.dtype)
        _core.cholesky_solve(self.L, Z, self.n_threads)
        return np.asarray(Z * size, dtype=np.float64)
