"""The ways to solve least squares, what each of them needs, and the one that suits a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.arrays import is_sparse
from mercer.certificates.certificate import Certificate
from mercer.gram.gram import Gram
from mercer.gram.linear_gram import LinearGram
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Report, Stop
from mercer.solvers.least_squares.cg import needs_definite, solve_cg
from mercer.solvers.least_squares.cholesky import solve_cholesky
from mercer.solvers.least_squares.covariance import needs_linear_kernel, solve_covariance
from mercer.solvers.least_squares.eigen import solve_eigen
from mercer.solvers.least_squares.lsqr import solve_lsqr
from mercer.solvers.least_squares.memory import covariance_bytes, factor_bytes
from mercer.solvers.least_squares.solution import LeastSquaresSolution
from mercer.solvers.qp import NAMES, needs_room_and_ridge, solve_ridge_by_qp

# A covariance of sparse samples is dense: beyond this many features products with X are cheaper.
_SPARSE_FEATURES = 5000


@dataclass(frozen=True)
class Way:
    """A solver, and a function that says in words what it needs and a problem does not have."""

    solve: Callable[[LeastSquares, Gram, Stop, Any, Report | None], tuple[LeastSquaresSolution, Certificate]]
    lacks: Callable[[LeastSquares, Gram], str | None] = lambda problem, gram: None


WAYS = {
    "cholesky": Way(solve_cholesky),
    "eigen": Way(solve_eigen),
    "cg": Way(solve_cg, needs_definite),
    "covariance": Way(solve_covariance, needs_linear_kernel),
    "lsqr": Way(solve_lsqr, needs_linear_kernel),
    **{name: Way(partial(solve_ridge_by_qp, package=package), needs_room_and_ridge) for name, package in NAMES.items()},
}
SOLVERS = ("auto", *WAYS)


def solve_least_squares(
    problem: LeastSquares,
    gram: Gram,
    stop: Stop,
    start: Any = None,
    report: Report | None = None,
    *,
    solver: str = "auto",
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution by the named solver, or by the one that suits the problem, as exact as that gets it."""
    way = WAYS[_suited(problem, gram) if solver == "auto" else solver]
    lack = way.lacks(problem, gram)
    if lack is not None:
        raise ValueError(f"solver={solver!r} {lack}")
    return way.solve(problem, gram, stop, start, report)


def _suited(problem: LeastSquares, gram: Gram) -> str:
    n, positive = problem.n, problem.lam > 0
    linear = LinearGram.of(gram)
    if linear is not None:
        d = linear.X.shape[1]
        moderate = covariance_bytes(d) <= gram.budget and (d <= _SPARSE_FEATURES or not is_sparse(linear.X))
        if d < n and moderate:
            return "covariance"
        if factor_bytes(n, np.float64) > gram.budget and positive:
            return "lsqr"
    if positive and factor_bytes(n, np.float32) > gram.budget and gram.kernel.positive_definite == "yes":
        return "cg"
    return "cholesky" if positive else "eigen"
