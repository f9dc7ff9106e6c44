"""One-class machines, solved until the violation is small relative to the values of f.

The coefficients of such a machine add up to a mass that ν and the weights fix, and f = Kβ + b grows with it: with
ν = 10⁻⁶ no f is as large as tol. So tol is measured in

    min(1, spread, mean),   spread = Σβ_i k(x_i, x_i) − β'Kβ/mass,   mean = β'Kβ/mass

`spread` is the mass times the mean squared distance of the support vectors from their mean, and measures how much f can
vary. `mean` is the mean of ⟨w, φ(x)⟩ over the support vectors. It is used only if p = 0: then the gap is at most mass
times the violation, and the dual value is ½ mass·mean. Both depend on the solution alone, not on the samples' order.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.novelty import with_best_bias
from mercer.places.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, inner
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.solution import Solution, Stop
from mercer.solvers.solver import Solver

# Smallest spread and mean, as shares of mass times the largest k(x, x). A smaller spread is rounding; a smaller
# mean belongs to samples around the origin, for which w = 0 is the solution.
_LEAST_SPREAD, _LEAST_MEAN = 1e-9, 1e-4
# Smallest factor from one tolerance to the next; the factor if only the gap is too large, and its largest number of
# uses.
_TOL_FACTOR = 1e-2
_GAP_FACTOR, _MOST_GAP_ROUNDS = 0.1, 3


def solve_one_class(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    *,
    shrinking: bool = True,
    inner_solver: Solver = solve_certified,
) -> tuple[Solution, Certificate]:
    """Solve until the violation is at most `stop.tol` in the unit of the module docstring.

    The gap should then be at most `stop.tol` times the larger of twice the dual value and mass·unit.
    """
    mass = float(problem.totals[0])
    scale = mass * float(np.abs(gram.diagonal).max())
    tol, steps, gap_rounds = stop.tol * min(1.0, scale) or stop.tol, 0, 0
    while True:
        # 1. Solve to the present tolerance, and compute the unit of the solution.
        inner_stop = dataclasses.replace(stop.after(steps), tol=tol)
        solution, certificate = inner_solver(problem, gram, inner_stop, start, shrinking=shrinking)
        start, steps = solution.beta, steps + solution.steps
        solution = dataclasses.replace(solution, steps=steps)
        unit = _unit(problem, gram, solution, mass, scale)
        goal, reason = stop.tol * unit, solution.stop_reason
        # 2. Lower the tolerance if the violation is too large in this unit.
        if certificate.violation > goal:
            if reason != "converged" or not tol > goal:  # no smaller tolerance can be met
                return solution, certificate
            tol = max(goal, _TOL_FACTOR * tol)
            continue
        # 3. Lower the tolerance, a few times, if the gap is too large even with the best bias.
        gap_goal = stop.tol * max(2 * abs(certificate.dual), mass * unit)
        if certificate.gap > gap_goal:
            certificate = with_best_bias(problem, gram.proof, solution.beta, certificate)
        if certificate.gap > gap_goal and reason == "converged" and gap_rounds < _MOST_GAP_ROUNDS:
            tol, gap_rounds = _GAP_FACTOR * min(tol, goal), gap_rounds + 1
            continue
        if reason in ("rounding floor", "stalled") and stop.met(certificate):
            solution = dataclasses.replace(solution, stop_reason="converged")
        return solution, certificate


def _unit(problem: DualProblem, gram: Gram, solution: Solution, mass: float, scale: float) -> float:
    """Return the unit of tol, min(1, spread, mean) of the module docstring, which is small if f is small."""
    beta, u = solution.beta, solution.u
    if not scale > 0 or u is None:
        return 1.0
    mean = inner(beta, u) / mass
    spread = max(inner(beta, gram.diagonal) - mean, _LEAST_SPREAD * scale)
    return min(1.0, spread, np.inf if problem.p.any() else max(mean, _LEAST_MEAN * scale))
