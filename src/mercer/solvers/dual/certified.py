"""Solve, certify, and go on from the certificate's own numbers until it agrees that the tolerance is met.

Each return to the solver starts from the certificate's u: iterative refinement. When that stops helping, the next
precision of kernel values takes over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mercer.arrays import Floats, norm
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify, single_suffices
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.dual.decomposition import FLOOR, decompose, rounding_noise
from mercer.solvers.dual.start import start

# A return to the solver that lowers the true violation by less than this factor is not worth another in that precision.
PROGRESS = 1 / 3

# Goes on from where the last call ended: with kernel values of a precision, until a stop, dropping variables or not.
Attempt = Callable[[Any, Stop, bool], tuple[Solution, Certificate]]
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
    """A solution whose certificate says that `stop` is met, or why it is not.

    `inner` solves in place of block decomposition on the whole problem.
    """
    point: Floats = start(problem, gram) if beta is None else beta
    u: Floats | None = None

    def attempt(precision: Any, asked: Stop, shrinking: bool) -> tuple[Solution, Certificate]:
        nonlocal point, u
        if inner is None:
            solution = _decomposed(problem, gram, point, u, precision, asked, report, shrinking)
        else:
            solution = inner(point, u, precision, asked)
        point = solution.beta
        certificate, u = certify(problem, gram, point, asked.tol)
        return dataclasses.replace(solution, u=u), certificate

    return refine(attempt, gram.precisions, stop, shrinking, lambda beta: FLOOR * rounding_noise(gram, problem, beta))


def _decomposed(
    problem: DualProblem,
    gram: Gram,
    beta: Floats,
    u: Floats | None,
    precision: Any,
    stop: Stop,
    report: Report | None,
    shrinking: bool,
) -> Solution:
    """Block decomposition, on all variables once more at the end where the certificate that follows will be dear."""
    field = gram.field(problem, beta, u, precision)
    first = decompose(field, stop, report, shrinking)
    if first.whole or single_suffices(gram, norm(problem.row_coefficients(first.beta, gram.n)), stop.tol):
        return first
    # In the solver's precision it is cheaper to see whether the certificate has a chance.
    field.unshrink()
    rest = decompose(field, dataclasses.replace(stop, max_iter=stop.max_iter - first.steps), report, shrinking)
    return dataclasses.replace(rest, steps=first.steps + rest.steps)


def refine(
    attempt: Attempt, precisions: Iterable[Any], stop: Stop, shrinking: bool, floor: Callable[[Floats], float]
) -> tuple[Solution, Certificate]:
    """A solution whose certificate, not the solver's running numbers, says that `stop` is met, or why it is not.

    `floor` says how large a violation at β rounding alone can feign.
    """
    precision, *finer = precisions
    tol, steps, last = stop.tol, 0, np.inf
    while True:
        asked = dataclasses.replace(stop, tol=tol, max_iter=stop.max_iter - steps)
        solution, certificate = attempt(precision, asked, shrinking)
        steps += solution.steps
        reason = solution.stop_reason
        reached = certificate.violation <= tol
        if reached and (stop.gap_tol == np.inf or certificate.gap <= stop.gap_tol * abs(certificate.dual)):
            reason = "converged"
        elif reason in ("converged", "stalled"):
            if reached:
                tol *= min(0.5, 0.5 * stop.gap_tol * abs(certificate.dual) / certificate.gap)
                last = np.inf
                continue
            progress = certificate.violation <= PROGRESS * last
            last = certificate.violation
            if progress or not solution.whole:
                # Variables dropped too early are back now. Where that does not help, none is dropped any more.
                shrinking = shrinking and progress
                continue
            if finer:
                precision, *finer = finer
                continue
            reason = "rounding floor" if certificate.violation <= floor(solution.beta) else "stalled"
        return dataclasses.replace(solution, steps=steps, stop_reason=reason), certificate
