"""Solvers for least squares by name, and the choice of one for a problem."""

from __future__ import annotations

from functools import partial

import numpy as np

from mercer.places.gram import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.least_squares.cg import solve_cg
from mercer.solvers.least_squares.cholesky import solve_cholesky
from mercer.solvers.least_squares.linear import solve_covariance, solve_lsqr
from mercer.solvers.least_squares.solution import Proven, covariance_bytes, factor_bytes
from mercer.solvers.least_squares.spectrum import solve_eigen
from mercer.solvers.qp import NAMES, solve_ridge_by_qp
from mercer.solvers.solution import Stop
from mercer.solvers.solver import Solver

METHODS: dict[str, Solver] = {
    "cholesky": solve_cholesky,
    "eigen": solve_eigen,
    "cg": solve_cg,
    "covariance": solve_covariance,
    "lsqr": solve_lsqr,
    **{name: partial(solve_ridge_by_qp, package=package) for name, package in NAMES.items()},
}
SOLVERS = ("auto", *METHODS)


def solve_least_squares(
    problem: LeastSquares, gram: Gram, stop: Stop, start: object = None, *, solver: str = "auto"
) -> Proven:
    """Solve least squares by the named solver; "auto" chooses one for the problem."""
    return METHODS[_choose(problem, gram) if solver == "auto" else solver](problem, gram, stop)


def _choose(problem: LeastSquares, gram: Gram) -> str:
    """Return the name of the solver that suits the problem and the memory budget."""
    n, has_ridge = problem.n, problem.lam > 0
    linear = gram.linear
    if linear is not None:
        d = linear.d
        # The covariance of sparse samples is dense: with thousands of features, products with X are cheaper.
        is_moderate = covariance_bytes(d) <= gram.budget and (d <= 5000 or not linear.sparse)
        if d < n and is_moderate:
            return "covariance"
        if factor_bytes(n, np.float64) > gram.budget and has_ridge:
            return "lsqr"
    if has_ridge and factor_bytes(n, np.float32) > gram.budget and gram.kernel.positive_definite == "yes":
        return "cg"
    return "cholesky" if has_ridge else "eigen"
