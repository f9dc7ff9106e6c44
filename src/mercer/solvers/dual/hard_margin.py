"""The hard margin, ½‖w‖² with y_i f(x_i) ≥ 1, for a problem whose only bounds are those of signs.

    with a bias     the nearest points of the two classes' hulls, divided by ρ = ½‖w‖²
    without one     the soft margin at a C that no multiplier reaches, which is the same; C grows until then

A soft margin of price C has a dual value that no hard margin can undercut. So a margin is refused once this value says
that it would be below what float64 resolves, √eps·max √k(x, x).
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.hulls import Centring, hard_margin_certificate, hard_margin_through_origin
from mercer.gram.gram import Gram
from mercer.problems.classification import hulls, rho_and_b, soft_margin
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.hulls import solve_hulls
from mercer.solvers.solver import Solver

# The first C in units of 1/max k(x, x), and its growth.
_FIRST_C = 1e3
_C_FACTOR = 100.0
NOT_CENTRED = Centring()


def solve_hard_margin(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    report: Report | None = None,
    *,
    shrinking: bool = True,
    inner_solver: Solver = solve_certified,
    centring: Centring = NOT_CENTRED,
) -> tuple[Solution, Certificate]:
    """The solution with margins at ±1 and the proof of ½‖w‖², or the stop "no margin" and the bound that was proven.

    `centring` says what was done to the samples; a b whose rounding exceeds the tolerance is a "rounding floor".
    """
    if not len(problem.totals):
        inner = partial(inner_solver, report=report, shrinking=shrinking)
        return _through_origin(problem.p, gram, stop, start, inner)
    two = hulls(problem.p)
    if start is not None:
        half = 0.5 * float(np.abs(start).sum())
        start = two.nearest_feasible(start / half) if half > 0 else None
    solution, certificate = solve_hulls(two, gram, stop, start, report, shrinking=shrinking, inner_solver=inner_solver)
    rho = -certificate.dual
    if not rho > np.finfo(float).tiny:  # nothing can be divided by it
        proof = hard_margin_certificate(certificate, 1.0, 0.0, centring.moved)
        return dataclasses.replace(solution, stop_reason="rounding floor" if rho > 0 else "no margin"), proof
    assert solution.u is not None
    beta, reach = solution.beta / rho, float(np.sqrt(np.abs(gram.diagonal).max()))
    tilt = centring.tilt(float(np.sqrt(2 * rho)) / rho, reach, abs(math.fsum(beta.tolist())))
    proof = hard_margin_certificate(certificate, rho, rho_and_b(certificate.b)[1] / rho, centring.moved, tilt)
    reason = solution.stop_reason
    if reason == "converged" and proof.violation > max(stop.tol, certificate.violation / rho):
        reason = "rounding floor"
    return dataclasses.replace(solution, beta=beta, u=solution.u / rho, stop_reason=reason), proof


def _through_origin(
    y: Floats, gram: Gram, stop: Stop, start: Floats | None, inner_solver: Solver
) -> tuple[Solution, Certificate]:
    """The soft margin with larger and larger C, until no multiplier reaches it."""
    largest, steps = float(np.abs(gram.diagonal).max()), 0
    # ½‖w‖² of a margin that is rounding: ρ = √eps·max √k(x, x).
    hopeless = 0.5 / (float(np.finfo(float).eps) * largest) if largest > 0 else 0.0
    C = _FIRST_C / largest if largest > 0 else 1.0
    while True:
        soft = soft_margin(y, np.full(len(y), C)).without_bias()
        begin = None if start is None else soft.nearest_feasible(start)
        solution, certificate = inner_solver(soft, gram, stop.after(steps), begin)
        start, steps = solution.beta, steps + solution.steps
        proof = hard_margin_through_origin(certificate, gram.proof, y, solution.beta)
        bounded = bool((np.abs(solution.beta) >= C).any())
        solution = dataclasses.replace(solution, steps=steps)
        if proof.dual >= hopeless:
            return dataclasses.replace(solution, stop_reason="no margin"), proof
        if not bounded or solution.stop_reason in ("max_iter", "max_time"):
            return solution, proof
        C *= _C_FACTOR
