"""(K + diag d)C + 1b' = Y, 1'C = 0: one Cholesky factor for all outputs, corrected by true residuals.

The factor is float32 first: a correction needs nothing but the residual, and that comes from fresh float64 kernel
values, so the answer is the float64 one as soon as the residual is (iterative refinement). Corrections end where the
bound on a residual's rounding exceeds the residual. Where it stops shrinking before, the float64 factor takes over.
Without bias the last column and the condition on sums are left out; with bias b is eliminated exactly.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from mercer.certificates.least_squares import certify_solution, is_exact
from mercer.places.ball import Ball
from mercer.places.gram import Factor, Gram, Kept
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, Precision, gamma
from mercer.solvers.deadline import in_time
from mercer.solvers.least_squares.solution import (
    LeastSquaresSolution,
    Proven,
    factor_bytes,
    memory_error,
    residual_share,
)
from mercer.solvers.least_squares.spectrum import solve_eigen
from mercer.solvers.solution import Stop

# Below this many rows a float64 factor takes less than a millisecond.
_FLOAT64_ROWS = 500


def solve_cholesky(problem: LeastSquares, gram: Gram, stop: Stop, start: object = None) -> Proven:
    """The solution to rounding, whatever `stop` asks for; through eigenvalues where the matrix is singular."""
    n, lam = problem.n, problem.lam
    if lam == 0:
        return solve_eigen(problem, gram, stop)
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
        stop.tell(partial("{} factor of {:,} samples".format, np.dtype(dtype).name, n))
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
    return solve_eigen(problem, gram, stop)


def _precisions(gram: Gram) -> tuple[Precision, ...]:
    """The factor's precisions to try, in order; float64 alone where kernel values are slow to recompute.

    K must stay far from the largest and smallest numbers of float32 to be computed in it.
    """
    single = gram.n > _FLOAT64_ROWS and gram.recomputes_cheaply
    single = single and 1e-25 < float(np.abs(gram.diagonal).max()) < 1e25
    return (np.float32, np.float64) if single else (np.float64,)


class Corrected(NamedTuple):
    """C and b, and the freshly computed U = KC with what bounds its errors."""

    C: Floats
    b: Floats
    U: Floats
    errors: Floats
    corrections: int


def solve_in_precision(problem: LeastSquares, gram: Gram, dtype: Precision, stop: Stop) -> Corrected | None:
    """The solution through a factor of this precision, or None where it does not reach float64's answer."""
    with in_time(stop):
        system = _System.of(problem, gram, dtype, stop.n_threads)
    if system is None:
        return None
    single = dtype == np.float32
    Y = problem.mean
    C, b, R, last = np.zeros_like(Y), np.zeros(Y.shape[1]), Y, np.inf
    best: Corrected | None = None
    for corrections in range(1, 31):  # each is one pass of kernel values, a few hundredths of a factorisation
        step, shift = system.solve(R, C)
        C, b = C + step, b + shift
        if not np.isfinite(C).all():
            return best
        U, errors = system.products(C)
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


class _System:
    """K + diag d in factors and, with a bias, its answer to 1; K itself where it is small."""

    def __init__(self, gram: Gram, factor: Factor, bias: bool, kept: Kept | None) -> None:
        self._gram, self._factor, self._bias, self._kept = gram, factor, bias, kept
        self._ones: Floats | None = None

    @classmethod
    def of(cls, problem: LeastSquares, gram: Gram, dtype: Precision, n_threads: int) -> _System | None:
        d = problem.lam / problem.total
        proven = gram.positive_definite == "yes" and gram.proof is gram
        kept = gram.kept(n_threads) if gram.n <= _FLOAT64_ROWS and dtype == np.float64 and proven else None
        factor = gram.factor(d, dtype, n_threads) if kept is None else kept.factor(d)
        if factor is None:
            return None
        pivots = factor.pivots / np.sqrt(gram.diagonal + d)
        # The squared ratio bounds the reciprocal of the condition number from above.
        if dtype == np.float64 and (pivots.min() / pivots.max()) ** 2 <= gram.n * np.finfo(np.float64).eps:
            return None
        return cls(gram, factor, problem.bias, kept)

    def products(self, C: Floats) -> Ball:
        """KC and bounds of its errors; the values of a small K, which is kept beside the factor, serve again."""
        gram = self._gram
        if self._kept is None:
            return gram.proof.product_bound(C)
        reach = gram.reach
        errors = np.column_stack([gram.errors(column) for column in C.T])
        return Ball(self._kept.products(C), errors + gamma(gram.n + 4) * np.outer(reach, reach @ np.abs(C)))

    def solve(self, R: Floats, C: Floats) -> tuple[Floats, Floats]:
        """The change of C and b that removes the residual R, and what is left of 1'C."""
        if not self._bias:
            return self._factor.solve(R), np.zeros(R.shape[1])
        if self._ones is None:
            Z = self._factor.solve(np.column_stack([R, np.ones(len(R))]))
            Z, self._ones = Z[:, :-1], Z[:, -1:]
        else:
            Z = self._factor.solve(R)
        shift = (Z.sum(axis=0) + C.sum(axis=0)) / self._ones.sum()
        return Z - self._ones * shift, shift
