"""The hinge in representer form, by the dual solver: without a second derivative it is out of Newton's reach.

    λ‖f‖² + Σ w_i max(0, 1 − y_if(x_i))  =  2λ · [½‖f‖² + Σ C_i max(0, 1 − y_if(x_i))],    C_i = w_i/2λ

and what stands in brackets is the soft margin, whose signed duals β are the coefficients of f.
"""

from __future__ import annotations

from dataclasses import replace

from mercer.certificates.certificate import Certificate
from mercer.certificates.representer import scale_certificate
from mercer.gram.gram import Gram
from mercer.problems.classification import soft_margin
from mercer.problems.representer import RepresenterProblem
from mercer.solution import Report, Stop
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.representer import RepresenterSolution

# `stop` counts Newton steps and bounds the relative gap. The dual solver counts other steps and wants a violation to
# reach as well: SVC's defaults for both.
_VIOLATION = 1e-3
_STEPS = 10_000_000


def solve_hinge(
    problem: RepresenterProblem,
    gram: Gram,
    stop: Stop,
    start: RepresenterSolution | None = None,
    report: Report | None = None,
) -> tuple[RepresenterSolution, Certificate]:
    """The minimiser to a relative duality gap of `stop.tol`; the problem's loss is taken to be the hinge."""
    dual = soft_margin(problem.y, problem.weight / (2 * problem.lam))
    if not problem.bias:
        dual = dual.without_bias()
    asked = replace(stop, tol=_VIOLATION, max_iter=_STEPS, gap_tol=stop.tol)
    solution, proof = solve_certified(dual, gram, asked, None if start is None else start.c, report)
    b = proof.b[0] if problem.bias else 0.0
    certificate = scale_certificate(proof, 2 * problem.lam, b)
    return RepresenterSolution(solution.beta, b, solution.steps, solution.stop_reason), certificate
