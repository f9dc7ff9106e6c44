"""Solve (K + diag d)C + 1b' = Y, 1'C = 0 by one Cholesky factor for all outputs, with iterative refinement.

1. Factor K + diag d, in float32 first.
2. Correct C by the true residual, computed from fresh float64 kernel values; the limit is the float64 solution.
3. Stop when the residual is below the bound on its rounding error. If it stops shrinking before that, repeat with a
   float64 factor.

Without a bias, 1b' and the condition 1'C = 0 are left out; with one, b is eliminated exactly.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from mercer.certificates.least_squares import certify_solution, is_exact
from mercer.places.ball import Ball
from mercer.places.gram import Factor, Float64Matrix, Gram
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, Precision, gamma
from mercer.solvers.deadline import enforce_deadline
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
    """Solve to rounding, whatever the tolerance of `stop`; by eigenvalues if the matrix is singular."""
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
        stop.report_progress(partial("{} factor of {:,} samples".format, np.dtype(dtype).name, n))
        corrected_solution = solve_in_precision(problem, gram, dtype, stop)
        if corrected_solution is not None:
            beta, certificate = certify_solution(
                problem, gram.proof, corrected_solution.C, corrected_solution.U, corrected_solution.errors
            )
            solution = LeastSquaresSolution(
                b=np.array(certificate.b) if problem.bias else corrected_solution.b,
                solver="cholesky",
                rank=n,
                C=corrected_solution.C,
                beta=beta,
                precision=np.dtype(dtype).name,
                steps=corrected_solution.corrections,
                stop_reason="converged" if is_exact(problem, certificate) else stop.limit(0) or "rounding floor",
            )
            return solution, certificate
    return solve_eigen(problem, gram, stop)


def _precisions(gram: Gram) -> tuple[Precision, ...]:
    """Return the precisions of the factor to try, in order; float64 alone if kernel values are slow to recompute.

    float32 is tried only if the values of K are far from its largest and smallest numbers.
    """
    single = gram.n > _FLOAT64_ROWS and gram.recomputes_cheaply
    single = single and 1e-25 < float(np.abs(gram.diagonal).max()) < 1e25
    return (np.float32, np.float64) if single else (np.float64,)


class CorrectedSolution(NamedTuple):
    """Solution after corrections: C and b, U = KC in float64, and bounds on the errors of U."""

    C: Floats
    b: Floats
    U: Floats
    errors: Floats
    corrections: int


def solve_in_precision(problem: LeastSquares, gram: Gram, dtype: Precision, stop: Stop) -> CorrectedSolution | None:
    """Solve by a factor of this precision; None if that does not reach the accuracy of float64."""
    with enforce_deadline(stop):
        system = _FactoredSystem.of(problem, gram, dtype, stop.n_threads)
    if system is None:
        return None
    is_float32 = dtype == np.float32
    Y = problem.mean
    C, b, R, last = np.zeros_like(Y), np.zeros(Y.shape[1]), Y, np.inf
    best: CorrectedSolution | None = None
    for corrections in range(1, 31):  # one pass over the kernel values each, a few hundredths of a factorisation
        step, shift = system.solve(R, C)
        C, b = C + step, b + shift
        if not np.isfinite(C).all():
            return best
        U, errors = system.products(C)
        R, ratio = residual_share(problem, C, b, U, errors)
        has_stalled = not ratio <= 0.5 * last
        if has_stalled and best is not None and ratio > last:
            return None if is_float32 and last > 1 else best
        best = CorrectedSolution(C, b, U, errors, corrections)
        # With a float32 factor, continue to the typical residual of a float64 one, a factor √n below its bound.
        if ratio <= (1 / np.sqrt(gram.n) if is_float32 and not has_stalled else 1):
            return best
        if has_stalled or stop.seconds == 0:
            return None if is_float32 and has_stalled else best
        last = ratio
    return best


class _FactoredSystem:
    """Factored K + diag d and, with a bias, its solution for the right-hand side 1; a small K is kept too."""

    def __init__(self, gram: Gram, factor: Factor, bias: bool, stored_K: Float64Matrix | None) -> None:
        self._gram, self._factor, self._bias, self._stored_K = gram, factor, bias, stored_K
        self._ones: Floats | None = None

    @classmethod
    def of(cls, problem: LeastSquares, gram: Gram, dtype: Precision, n_threads: int) -> _FactoredSystem | None:
        """Factor K + diag d; None if it is singular to rounding."""
        d = problem.lam / problem.total
        is_proven = gram.positive_definite == "yes" and gram.proof is gram
        stored_K = (
            gram.float64_matrix(n_threads) if gram.n <= _FLOAT64_ROWS and dtype == np.float64 and is_proven else None
        )
        factor = gram.factor(d, dtype, n_threads) if stored_K is None else stored_K.factor(d)
        if factor is None:
            return None
        pivots = factor.pivots / np.sqrt(gram.diagonal + d)
        # The squared ratio bounds the reciprocal of the condition number from above.
        if dtype == np.float64 and (pivots.min() / pivots.max()) ** 2 <= gram.n * np.finfo(np.float64).eps:
            return None
        return cls(gram, factor, problem.bias, stored_K)

    def products(self, C: Floats) -> Ball:
        """Return KC and bounds on its errors; a small K that is kept beside the factor is used again."""
        gram = self._gram
        if self._stored_K is None:
            return gram.proof.product_bound(C)
        entry_bounds = gram.entry_bounds
        errors = np.column_stack([gram.errors(column) for column in C.T])
        return Ball(
            self._stored_K.products(C), errors + gamma(gram.n + 4) * np.outer(entry_bounds, entry_bounds @ np.abs(C))
        )

    def solve(self, R: Floats, C: Floats) -> tuple[Floats, Floats]:
        """Return the changes of C and b that remove the residual R and the sum 1'C."""
        if not self._bias:
            return self._factor.solve(R), np.zeros(R.shape[1])
        if self._ones is None:
            Z = self._factor.solve(np.column_stack([R, np.ones(len(R))]))
            Z, self._ones = Z[:, :-1], Z[:, -1:]
        else:
            Z = self._factor.solve(R)
        shift = (Z.sum(axis=0) + C.sum(axis=0)) / self._ones.sum()
        return Z - self._ones * shift, shift
