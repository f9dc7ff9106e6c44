"""Least squares for the λ that leave-one-out or generalised cross-validation finds best, from one decomposition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.arrays import Floats, is_sparse
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import is_exact
from mercer.certificates.weights import certify_weights
from mercer.gram.gram import Gram
from mercer.gram.linear_gram import LinearGram
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.deadline import in_time
from mercer.solvers.least_squares.covariance import refined_weights, solve_covariance
from mercer.solvers.least_squares.eigen import Judge, PathValues, SpectralFit, solution_of
from mercer.solvers.least_squares.solution import (
    LeastSquaresSolution,
    linear_spectrum_bytes,
    memory_error,
    spectrum_bytes,
)
from mercer.solvers.least_squares.spectrum import lams_from, linear_spectrum_of, spectrum_of

# What is minimised over λ, one number for each.
Score = Callable[[LeastSquares, PathValues], Floats]


@dataclass(frozen=True, eq=False)
class PathSolution:
    """The values of every λ, which of them is best, and the solution there."""

    lams: Floats
    values: PathValues
    scores: Floats
    loo: Floats  # rows × outputs: leave-one-out residuals at the best λ
    best: LeastSquaresSolution

    @property
    def steps(self) -> int:
        return self.best.steps

    @property
    def stop_reason(self) -> StopReason:
        return self.best.stop_reason


def solve_path(
    problem: LeastSquares,
    gram: Gram,
    stop: Stop,
    start: Any = None,
    report: Report | None = None,
    *,
    lams: Floats | int,
    score: Score,
    judge: Judge | None = None,
) -> tuple[PathSolution, Certificate]:
    """The solution for the λ of least score, among those given or as many as are asked for.

    The problem's own λ plays no part. `judge` makes one more number of each λ's leave-one-out residuals, for `score`.
    """
    n, linear = problem.n, gram.linear
    if linear is not None and linear.X.shape[1] >= n:
        linear = None
    needed = spectrum_bytes(n) if linear is None else linear_spectrum_bytes(*linear.X.shape)
    if needed > gram.budget:
        raise memory_error(f"decomposing the matrix of {n:,} samples", needed, gram.budget)
    if report is not None:
        report(partial("eigenvalues of {:,} samples".format, n))
    with in_time(stop):
        if linear is None:
            spectrum = spectrum_of(gram, problem, stop)
        else:
            spectrum = linear_spectrum_of(linear.X, linear.scale, problem, stop)
        fit = SpectralFit(problem, spectrum)
        lams = lams_from(spectrum, lams) if isinstance(lams, int) else lams
        values = fit.path(lams, judge)
    scores = score(problem, values)
    lam = float(lams[best_of(scores)])
    chosen = replace(problem, lam=lam)
    if linear is not None:
        solution, certificate = _from_svd(chosen, gram, linear, fit)
    else:
        solution, certificate = solution_of(chosen, gram, fit)
    return PathSolution(lams, values, scores, fit.loo_residuals(lam), solution), certificate


def best_of(scores: Floats) -> int:
    """The index of the best λ of increasing ones: of equally good ones the largest, which gives the simplest f."""
    return int(np.flatnonzero(scores == scores.min())[-1])


def _from_svd(
    problem: LeastSquares, gram: Gram, linear: LinearGram, fit: SpectralFit
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution for the problem's λ in the features; its solver is named by what was decomposed."""
    sparse, mass = is_sparse(linear.X), problem.mass
    x, y = np.zeros(linear.X.shape[1]), np.zeros(problem.n_outputs)
    if problem.bias:
        x, y = linear.transposed(problem.total[:, None])[:, 0] / mass, problem.weight @ problem.Y / mass
    W = refined_weights(problem, linear, x, y, fit.weights(problem.lam), partial(fit.feature_inverse, problem.lam))
    centre = x if problem.bias and not sparse else None
    # The mean of what is left, not of what was there, is the best bias to the last digit.
    left = problem.total @ (problem.mean - linear.times(W, centre) - y)
    b = y + left / mass - x @ W if problem.bias else y
    beta, certificate = certify_weights(problem, linear, W, b, centre)
    if not is_exact(problem, certificate):  # a decomposition of all features together does not resolve each
        found, certificate = solve_covariance(problem, gram, Stop(tol=0.0, max_iter=1))
        return replace(found, sums=None), certificate
    return LeastSquaresSolution(
        b, "covariance" if sparse else "svd", len(fit.spectrum.values), W=W, beta=beta
    ), certificate
