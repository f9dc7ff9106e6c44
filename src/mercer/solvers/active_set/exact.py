"""A solution made exact: from the one that another solver has found to the one whose equations hold to rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Solve, Stop
from mercer.solvers.active_set.kernel_rows import KernelRows
from mercer.solvers.active_set.settle import settled
from mercer.solvers.active_set.walk import Stalled

# Free variables up to which their equations are solved: the inverse of 2,000 takes about a second.
_MOST_FREE = 2000


def exactly(solve: Solve) -> Solve:
    """A solver whose solution is made exact where that is possible and its certificate is the better for it."""

    def solved(
        problem: DualProblem, gram: Gram, stop: Stop, start: object = None, report: Report | None = None, /
    ) -> tuple[Solution, Certificate]:
        solution, certificate = solve(problem, gram, stop, start, report)
        if solution.stop_reason != "converged" or not _can_settle(problem, gram, solution):
            return solution, certificate
        try:
            walk = settled(problem, KernelRows(gram, keep=False), solution.beta)
        except (Stalled, np.linalg.LinAlgError):
            return solution, certificate
        beta = problem.nearest_feasible(walk.beta(walk.t))
        proof, u = certify(problem, gram, beta, stop.tol)
        if not proof.violation <= certificate.violation:
            return solution, certificate
        return replace(solution, beta=beta, u=u, steps=solution.steps + walk.steps), proof

    return solved


def _can_settle(problem: DualProblem, gram: Gram, solution: Solution) -> bool:
    """One b at most, a positive semi-definite matrix, and few enough free variables."""
    up, low = problem.movable(solution.beta)
    return len(problem.totals) <= 1 and gram.positive_definite != "no" and int((up & low).sum()) <= _MOST_FREE
