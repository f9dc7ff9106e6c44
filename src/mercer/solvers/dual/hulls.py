"""The nearest points of two (reduced) convex hulls, solved until they are proven apart, or meet to rounding.

The dual value is −½‖w‖² with w the difference of the two points, and no feasible point has a larger one than `primal`:
so −2·primal bounds the squared distance from below, ‖w‖² from above. Apart is proven once −2·primal > 0. The hulls
meet, as far as float64 can tell, once ‖w‖² is below 1e-10 of the largest it could be.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.dual.certified import solve_certified

# The largest ‖w‖², relative to mass²·max K_ii, that rounding can leave of points that coincide.
_MEETING = 1e-10
# The first tolerance of the hard margin, in units of mass·max K_ii, and the least factor from one to the next.
_FIRST_TOL = 1e-2
_TOL_FACTOR = 1e-2


@dataclasses.dataclass(frozen=True)
class Distance:
    """What a certificate says about the distance of the hulls: two bounds on its square, and the unit of both."""

    below: float
    above: float
    unit: float

    @property
    def meet(self) -> bool:
        return self.above <= _MEETING * self.unit  # both are 0 where K is


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
) -> tuple[Solution, Certificate]:
    """Solve until the functional margins of the hard-margin machine are right to `stop.tol`.

    Its coefficients are those of the hulls divided by ρ = ½‖w‖², so a violation v of this problem is one of v/ρ there.
    """
    return _tighten(problem, gram, stop, start, report, shrinking, relative=True)


def solve_reduced_hulls(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    report: Report | None = None,
    *,
    shrinking: bool = True,
) -> tuple[Solution, Certificate]:
    """Solve to a violation of `stop.tol` and until the reduced hulls are proven apart."""
    return _tighten(problem, gram, stop, start, report, shrinking, relative=False)


def _tighten(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None,
    report: Report | None,
    shrinking: bool,
    relative: bool,
) -> tuple[Solution, Certificate]:
    steps, largest = 0, float(np.abs(gram.diagonal).max())
    tol = _FIRST_TOL * _mass(problem) * largest if relative else stop.tol
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
        # Not straight to what is wanted, which is zero for hulls that meet.
        tol = max(wanted, _TOL_FACTOR * tol) if wanted < certificate.violation else _TOL_FACTOR * tol


def _mass(problem: DualProblem) -> float:
    return float(np.abs(problem.totals).max())
