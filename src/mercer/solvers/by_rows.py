"""The linear kernel's machines solved on the rows themselves, for whoever expects the solution of a kernel machine.

K = XX' makes a DualProblem with one variable per sample and at most one equality, Σβ = 0, the dual of a LinearProblem
whose bias is free, or absent. So β is the same, and its certificate too: u = X(X'β) costs two products with X instead
of a pass over K.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.certificate import Certificate, certificate_of
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.certified import solve_certified
from mercer.solvers.linear import LinearSolution, solve_linear
from mercer.solvers.linear_rows import LinearRows

# Newton's w is not quite X'β: where the certificate of β alone asks for more, the goal is lowered so often and so much.
_ROUNDS, _LOWER = 6, 0.2


def is_linear_problem(problem: DualProblem) -> bool:
    """Whether, with K = XX', the problem is that of a linear machine."""
    simple = np.array_equal(problem.row, np.arange(len(problem.p)))
    free = len(problem.totals) == 0 or (len(problem.totals) == 1 and problem.totals[0] == 0)
    bounded = bool((np.isfinite(problem.upper - problem.lower) | (problem.d > 0)).all())
    return simple and free and bounded


def by_rows(X: Any, n_threads: int) -> Callable[..., tuple[Solution, Certificate]]:
    """A function with the signature of `solve_certified` for problems whose Gram matrix is XX'."""

    def solve(
        problem: DualProblem,
        gram: Gram,
        stop: Stop,
        beta: Floats | None = None,
        report: Report | None = None,
        shrinking: bool = True,
    ) -> tuple[Solution, Certificate]:
        rows = LinearRows(X, n_threads)
        bias = np.inf if len(problem.totals) else 0.0
        linear = LinearProblem(problem.p, problem.lower, problem.upper, problem.d, np.zeros(rows.n), bias)
        asked, steps = stop, 0
        start = None if beta is None else LinearSolution(rows.transposed(beta), 0.0, beta, 0, "converged", "")
        for _ in range(_ROUNDS):
            start, _ = solve_linear(linear, rows, asked, start=start, shrinking=shrinking)
            steps = max(steps, start.steps)
            u = rows.product(rows.transposed(start.beta))
            certificate = certificate_of(problem, start.beta, u, "optimality", "float64")
            small = stop.gap_tol == np.inf or certificate.gap <= stop.gap_tol * abs(certificate.dual)
            if certificate.violation <= stop.tol and small:
                return Solution(start.beta, steps, "converged", u=u), certificate
            if start.stop_reason in ("max_iter", "max_time"):
                return Solution(start.beta, steps, start.stop_reason, u=u), certificate
            asked = dataclasses.replace(asked, tol=_LOWER * asked.tol, gap_tol=_LOWER * asked.gap_tol)
        # Rounding, or a problem that steps in w do not settle: the kernel machine goes on from here.
        return solve_certified(problem, gram, stop, None if start is None else start.beta, report, shrinking)

    return solve
