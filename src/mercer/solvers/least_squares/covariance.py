"""Linear least squares through sums over the samples: what is needed of the data is d × d, whatever n.

(X̃'WX̃ + λI) w = X̃'Wỹ,   b = ȳ − x̄'w,   X̃ = X − 1x̄', ỹ = y − ȳ    (x̄ = 0, ȳ = 0 without bias)
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from mercer.arrays import Floats, is_sparse
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import certify_sums, certify_weights
from mercer.gram.gram import Gram
from mercer.gram.linear_gram import LinearGram, linear_scale
from mercer.gram.sums import Sums
from mercer.problems.least_squares import LeastSquares, RidgeProblem
from mercer.solution import Report, Stop
from mercer.solvers.least_squares.eigen import SpectralFit
from mercer.solvers.least_squares.in_time import in_time
from mercer.solvers.least_squares.memory import covariance_bytes, memory_error
from mercer.solvers.least_squares.solution import LeastSquaresSolution
from mercer.solvers.least_squares.spectrum import linear_spectrum_of
from mercer.solvers.ridge_factor import ridge_factor

# Corrections by what the samples themselves say, since centring sparse samples costs the sums digits.
_CORRECTIONS = 2


def needs_linear_kernel(problem: LeastSquares, gram: Gram) -> str | None:
    """Why a solver in the features cannot be used, if it cannot."""
    linear = linear_scale(gram.kernel) is not None
    return None if linear else f"is for linear kernels, and this one is {gram.kernel!r}; use 'auto'"


def solve_covariance(
    problem: LeastSquares, gram: Gram, stop: Stop, start: Any = None, report: Report | None = None
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution for a linear kernel to rounding, whatever `stop` asks for."""
    linear = LinearGram.of(gram)
    assert linear is not None
    X, d = linear.X, linear.X.shape[1]
    if covariance_bytes(d) > gram.budget:
        raise memory_error(f"the covariance of {d:,} features", covariance_bytes(d), gram.budget, "solver='lsqr'")
    if report is not None:
        report(partial("covariance of {:,} features".format, d))
    with in_time(stop):
        sums = Sums.of(X, problem)
    if problem.lam == 0 and not is_sparse(X):
        # The singular values of X resolve what their squares do not.
        fit = SpectralFit(problem, linear_spectrum_of(X, linear.scale, problem))
        W, rank = fit.weights(0.0), len(fit.spectrum.values)
    else:
        lam = problem.lam / linear.scale
        inverse = RidgeInverse(sums.xx, lam, gram.n_threads)
        W, rank = inverse(sums.xy), inverse.rank
        for _ in range(_CORRECTIONS):
            residual = problem.total[:, None] * (problem.mean - linear.times(W) - (sums.y - sums.x @ W))
            gradient = linear.transposed(residual) - np.outer(sums.x, residual.sum(axis=0)) - lam * W
            W = W + inverse(gradient)
    b = sums.y - sums.x @ W
    beta, certificate = certify_weights(problem, linear, W, b)
    return LeastSquaresSolution(b, "covariance", rank, W=W, beta=beta, sums=sums, dropped=d - rank), certificate


def solve_sums(
    problem: RidgeProblem,
    sums: Sums,
    stop: Stop,
    start: Any = None,
    report: Report | None = None,
    *,
    scale: float = 1.0,
    n_threads: int = 1,
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution for k = scale·⟨x, z⟩ where sums over the samples are all that is left of them."""
    lam = problem.lam / scale
    if report is not None:
        report(partial("covariance of {:,} features".format, len(sums.x)))
    inverse = RidgeInverse(sums.xx, lam, n_threads)
    W = inverse(sums.xy)
    W += inverse(sums.xy - sums.xx @ W - lam * W)
    b, dropped = sums.y - sums.x @ W, len(sums.x) - inverse.rank
    solution = LeastSquaresSolution(b, "covariance", inverse.rank, W=W, sums=sums, dropped=dropped)
    return solution, certify_sums(sums, W, lam)


class RidgeInverse:
    """(X̃'WX̃ + λI)⁻¹ by Cholesky, or through eigenvalues, rounding dropped, where that matrix is singular."""

    def __init__(self, xx: Floats, lam: float, n_threads: int) -> None:
        d, eps = len(xx), float(np.finfo(np.float64).eps)
        self.rank = d
        self._factor = ridge_factor(xx, (lam,), n_threads)
        if self._factor is not None:
            pivots = np.diagonal(self._factor.L)
            # The squared ratio bounds the reciprocal of the condition number from above.
            if (pivots.min(initial=1.0) / pivots.max(initial=1.0)) ** 2 > d * eps:
                return
            self._factor = None
        values, V = scipy.linalg.eigh(xx + lam * np.eye(d), check_finite=False)
        keep = values > d * eps * np.abs(values).max(initial=0.0)
        self._values, self._vectors = values[keep], V[:, keep]
        self.rank = int(keep.sum())

    def __call__(self, B: Floats) -> Floats:
        if self._factor is not None:
            return self._factor.solve(B)
        return np.asarray(self._vectors @ ((self._vectors.T @ B) / self._values[:, None]))
