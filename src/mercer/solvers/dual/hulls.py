"""The nearest points of two (reduced) convex hulls, solved until the hulls are proven apart, or touch to rounding.

The dual value is −½‖w‖² with w the difference of the two points, and no feasible point has a larger one than `primal`.
So −2·primal bounds the squared distance from below, and ‖w‖² from above. The hulls are proven apart once −2·primal > 0.
They touch, as far as float64 can tell, once ‖w‖² is below 1e-10 of the largest value it could have.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.dual.certified import solve_certified

# The largest ‖w‖² that rounding can give two equal points, as a share of mass²·max K_ii.
_TOUCHING_SHARE = 1e-10
# The first tolerance of the hard margin, as a share of mass·max K_ii, and the smallest factor from one to the next.
_FIRST_TOL_SHARE = 1e-2
_TOL_FACTOR = 1e-2


@dataclasses.dataclass(frozen=True)
class Distance:
    """What a certificate says about the distance of the hulls: two bounds on its square, and the unit of both."""

    below: float
    above: float
    unit: float

    @property
    def meet(self) -> bool:
        return self.above <= _TOUCHING_SHARE * self.unit  # both are 0 if K is


def distance_of(problem: DualProblem, largest: float, certificate: Certificate) -> Distance:
    """The bounds that a certificate of a hull problem proves; `largest` is max K_ii."""
    mass = _mass(problem)
    unit = mass * mass * largest
    if not np.isfinite(unit):
        raise FloatingPointError(
            f"weights that add up to {mass:.3g} overflow with kernel values up to {largest:.3g}; scale them"
        )
    return Distance(max(0.0, -2.0 * certificate.primal), max(0.0, -2.0 * certificate.dual), unit)


def solve_hulls(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    report: Report | None = None,
    *,
    shrinking: bool = True,
    relative: bool = True,
) -> tuple[Solution, Certificate]:
    """Solve until the hulls are proven apart and the violation is small enough.

    With `relative`, functional margins of the hard-margin machine are right to `stop.tol`. Its coefficients are those
    of the hulls divided by ρ = ½‖w‖², so a violation v of this problem is one of v/ρ there. Else v ≤ `stop.tol`.
    """
    steps, largest = 0, float(np.abs(gram.diagonal).max())
    tol = _FIRST_TOL_SHARE * _mass(problem) * largest if relative else stop.tol
    while True:
        asked = dataclasses.replace(stop.after(steps), tol=tol)
        solution, certificate = solve_certified(problem, gram, asked, start, report, shrinking=shrinking)
        start, steps = solution.beta, steps + solution.steps
        solution = dataclasses.replace(solution, steps=steps)
        found = distance_of(problem, largest, certificate)
        wanted = stop.tol * 0.5 * found.above if relative else stop.tol
        if found.meet:
            return dataclasses.replace(solution, stop_reason="no margin"), certificate
        if solution.stop_reason != "converged" or (certificate.violation <= wanted and found.below > 0.0):
            return solution, certificate
        # Not at once what is wanted, which is zero for hulls that touch.
        tol = max(wanted, _TOL_FACTOR * tol) if wanted < certificate.violation else _TOL_FACTOR * tol


solve_reduced_hulls = partial(solve_hulls, relative=False)


def _mass(problem: DualProblem) -> float:
    return float(np.abs(problem.totals).max())
