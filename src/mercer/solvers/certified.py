"""Solve, certify, and go on from the certificate's own numbers until it agrees that the tolerance is met."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.certificate import Certificate, certify, single_suffices
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.decomposition import FLOOR, decompose, rounding_noise
from mercer.solvers.start import start

# A return to the solver that lowers the true violation by less than this factor is not worth another in that precision.
_PROGRESS = 1 / 3

# From β and u = Kβ (None: a feasible start, unknown), in some precision of kernel values, to a solution.
Inner = Callable[[Floats | None, Floats | None, Any, Stop], Solution]


def solve_certified(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    beta: Floats | None = None,
    report: Report | None = None,
    shrinking: bool = True,
    inner: Inner | None = None,
) -> tuple[Solution, Certificate]:
    """A solution whose certificate, not the solver's running numbers, says that `stop` is met, or why it is not.

    Each return to the solver starts from the certificate's own u: iterative refinement. When that stops helping, the
    next precision takes over. `inner` solves in place of block decomposition on the whole problem.
    """
    precisions = list(gram.precisions)
    beta = start(problem, gram) if beta is None else beta
    tol, u, steps, last = stop.tol, None, 0, np.inf
    while True:
        asked = dataclasses.replace(stop, tol=tol, max_iter=stop.max_iter - steps)
        if inner is None:
            field = gram.field(problem, beta, u, precisions[0])
            solution = decompose(field, asked, report, shrinking)
        else:
            solution = inner(beta, u, precisions[0], asked)
        beta, steps = solution.beta, steps + solution.steps
        if not solution.whole and not single_suffices(gram, problem.row_coefficients(beta, gram.n), tol):
            # The certificate will be dear: first see, in the solver's precision, whether it has a chance.
            field.unshrink()
            solution = decompose(field, dataclasses.replace(asked, max_iter=stop.max_iter - steps), report, shrinking)
            beta, steps = solution.beta, steps + solution.steps
        certificate, u = certify(problem, gram, beta, tol)
        reason = solution.stop_reason
        reached = certificate.violation <= tol
        if reached and (stop.gap_tol == np.inf or certificate.gap <= stop.gap_tol * abs(certificate.dual)):
            reason = "converged"
        elif reason in ("converged", "stalled"):
            if reached:
                tol *= min(0.5, 0.5 * stop.gap_tol * abs(certificate.dual) / certificate.gap)
                last = np.inf
                continue
            progress = certificate.violation <= _PROGRESS * last
            if progress or not solution.whole:
                # Variables dropped too early are back now. Where that does not help, none is dropped any more.
                shrinking = shrinking and progress
                last = certificate.violation
                continue
            if len(precisions) > 1:
                del precisions[0]
                last = certificate.violation
                continue
            floor = FLOOR * rounding_noise(gram, problem, beta)
            reason = "rounding floor" if certificate.violation <= floor else "stalled"
        return Solution(beta, steps, reason, u=u), certificate
