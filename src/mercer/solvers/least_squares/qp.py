"""Least squares by an independent solver of quadratic programs, one output after the other: a check for few samples."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import certify_solution, is_exact, joint, products_with_bounds
from mercer.gram.gram import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.dual.qp import point_by_qp, refusal
from mercer.solvers.least_squares.solution import LeastSquaresSolution


def needs_room_and_ridge(problem: LeastSquares, gram: Gram) -> str | None:
    """What a quadratic program needs and the problem lacks."""
    if not problem.lam > 0:
        return "needs lam above 0: without a ridge there is no dual; use solver='eigen'"
    why = refusal(len(problem.weight), gram, "auto")
    return None if why is None else why.removeprefix("solver='qp' ")


def solve_ridge_by_qp(
    problem: LeastSquares,
    gram: Gram,
    stop: Stop,
    start: Any = None,
    report: Report | None = None,
    *,
    package: str,
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution that a package finds, and our certificate of it."""
    if report is not None:
        report(partial("{} on {:,} variables".format, package, len(problem.weight)))
    if stop.limit(0) == "max_time":
        raise TimeoutError("max_time passed before there was a solution: a package has none before it ends")
    K = gram.block(np.arange(gram.n), np.arange(gram.n))
    found = [point_by_qp(package, problem.dual(k), K, problem.member, stop) for k in range(problem.n_outputs)]
    C = joint(problem, np.column_stack([beta for beta, _ in found]))
    U, errors = products_with_bounds(gram, C)
    beta, certificate = certify_solution(problem, gram, C, U, errors)
    words = [answer.reason for _, answer in found]
    reason: StopReason = next((word for word in words if word != "converged"), "rounding floor")
    solution = LeastSquaresSolution(
        b=np.array(certificate.b) if problem.bias else np.zeros(problem.n_outputs),
        solver=f"qp:{package}",
        rank=problem.n,
        C=C,
        beta=beta,
        steps=max(1, *(answer.steps for _, answer in found)),
        stop_reason="converged" if is_exact(problem, certificate) else reason,
    )
    return solution, certificate
