"""The nearest points of two (reduced) convex hulls, and the hard margin, which rests on them.

Hulls are solved until they are proven apart, or touch to rounding. The dual value is −½‖w‖² with w the difference of
the two points, and no feasible point has a larger one than `primal`. So −2·primal bounds the squared distance from
below, and ‖w‖² from above. The hulls are proven apart once that bound exceeds what rounding can leave of two equal
points. They touch, as far as float64 can tell, once ‖w‖² is below that; reduced hulls also if the solver cannot lower a
‖w‖² that is nearly as small.

The hard margin, ½‖w‖² with y_i f(x_i) ≥ 1, for a problem whose only bounds are those of signs:

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

from mercer.certificates.certificate import Certificate
from mercer.certificates.hulls import Centring, before_division, hard_margin_certificate, hard_margin_through_origin
from mercer.places.gram import Gram
from mercer.problems.classification import hulls, rho_and_b, soft_margin
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, inner
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.solution import Solution, Solve, Stop
from mercer.solvers.solver import Solver

# The largest ‖w‖² that rounding can give two equal points, as a share of (Σ|β_i|√K_ii)², and the largest that a solver
# may be unable to lower for rounding.
_ROUNDING_SHARE = 16 * float(np.finfo(float).eps)
_TOUCHING_SHARE = 1e-10
# The first tolerance, as a share of mass times a typical K_ii, and the smallest factor from one to the next.
_FIRST_TOL_SHARE = 1e-2
_TOL_FACTOR = 1e-2
# ρ of reduced hulls as a share of the most that it can be: usually it is more, and then the first solve is the last
# (seven sets at ν = 0.1 and 0.3: 106 of 110 pairs, for a tenth more pair steps).
_LIKELY_RHO = 0.25
# The last tolerance, in the same unit: gradients have no digits below it.
_LEAST_TOL_SHARE = float(np.finfo(float).eps)
# Below it, numbers lose digits, and a tolerance of them has no meaning.
_SMALLEST = float(np.finfo(float).tiny)
# The first C of the hard margin through the origin in units of 1/max k(x, x), and its growth.
_FIRST_C = 1e3
_C_FACTOR = 100.0
NOT_CENTRED = Centring()


def _distance(gram: Gram, beta: Floats, certificate: Certificate) -> tuple[bool, bool, bool]:
    """Whether a certificate of a hull problem proves the hulls apart at β, whether they meet, and whether nearly so.

    Samples that take no part do not count.
    """
    size = inner(np.sqrt(np.abs(gram.diagonal)), np.abs(beta))
    unit = size * size
    if not np.isfinite(unit):
        raise FloatingPointError(
            f"weights that add up to {np.abs(beta).sum():.3g} overflow with kernel values up to "
            f"{np.abs(gram.diagonal).max():.3g}; scale them"
        )
    most = certificate.dual + certificate.gap  # no less than primal, and with what rounding may hide
    below, above = (max(0.0, -2.0 * value) for value in (most, certificate.dual))  # bounds on its square
    apart = below > _ROUNDING_SHARE * unit
    return apart, above <= _ROUNDING_SHARE * unit, not apart and above <= _TOUCHING_SHARE * unit


def _rho(problem: DualProblem, certificate: Certificate, reduced: bool) -> float:
    """What the coefficients of the hulls will be divided by.

    That is ½‖w‖² for the hard margin: right to the gap, not only to the violation. Of reduced hulls it counts for at
    most the bound of one sample: LIBSVM's tolerance is before the division.
    """
    return min(rho_and_b(certificate.b)[0], largest_rho(problem)) if reduced else -certificate.dual


def largest_rho(problem: DualProblem) -> float:
    """The bound of one sample."""
    bound = problem.upper - problem.lower
    return min(max(1.0, float(bound.min())), float(bound.max()))


def solve_hulls(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    *,
    shrinking: bool = True,
    inner_solver: Solver = solve_certified,
    reduced: bool = False,
) -> tuple[Solution, Certificate]:
    """Solve until the hulls are proven apart and functional margins are right to `stop.tol`.

    The machine's coefficients are those of the hulls divided by ρ, so a violation v here is one of v/ρ there. The proof
    of `reduced` hulls counts the roundings of that division, which comes later.
    """
    solve = partial(inner_solver, shrinking=shrinking)
    solution, certificate = _nearest_points(problem, gram, stop, start, solve, reduced)
    if not reduced:
        return solution, certificate
    proof = before_division(certificate, problem, gram.proof, solution.beta)
    if solution.stop_reason == "converged" and proof.violation > stop.tol * _rho(problem, certificate, reduced):
        solution = dataclasses.replace(solution, stop_reason="rounding floor")
    return solution, proof


def _nearest_points(
    problem: DualProblem, gram: Gram, stop: Stop, start: Floats | None, solve: Solve, reduced: bool
) -> tuple[Solution, Certificate]:
    steps = 0
    lengths = np.abs(gram.diagonal)
    typical = largest = float(lengths.max())
    if lengths.min() < largest:  # not the same for all, as for a Gaussian
        typical = float(np.median(lengths)) or largest
    mass = float(np.abs(problem.totals).max())
    tol, least = _FIRST_TOL_SHARE * mass * typical or stop.tol, max(_LEAST_TOL_SHARE * mass * typical, _SMALLEST)
    if reduced:
        tol = min(tol, _LIKELY_RHO * stop.tol * largest_rho(problem))
    while True:
        asked = dataclasses.replace(stop.after(steps), tol=tol)
        solution, certificate = solve(problem, gram, asked, start)
        start, steps = solution.beta, steps + solution.steps
        solution = dataclasses.replace(solution, steps=steps)
        apart, meet, hardly_apart = _distance(gram, solution.beta, certificate)
        wanted = stop.tol * _rho(problem, certificate, reduced)
        if meet:
            return dataclasses.replace(solution, stop_reason="no margin"), certificate
        if apart and certificate.violation <= wanted:
            return dataclasses.replace(solution, stop_reason="converged"), certificate
        reason = solution.stop_reason if solution.stop_reason != "converged" or tol > least else "rounding floor"
        # Of reduced hulls, a larger ν is then of use. That hulls of all samples meet would have to be known.
        if reason in ("stalled", "rounding floor") and hardly_apart and reduced:
            return dataclasses.replace(solution, stop_reason="no margin"), certificate
        if reason != "converged":
            return dataclasses.replace(solution, stop_reason=reason), certificate
        # Not at once what is wanted, which is zero for hulls that touch.
        tol = max(wanted, _TOL_FACTOR * tol) if wanted < certificate.violation else _TOL_FACTOR * tol


# --- the hard margin ----------------------------------------------------------------------------------------------


def solve_hard_margin(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    *,
    shrinking: bool = True,
    inner_solver: Solver = solve_certified,
    centring: Centring = NOT_CENTRED,
) -> tuple[Solution, Certificate]:
    """The solution with margins at ±1 and the proof of ½‖w‖², or the stop "no margin" and the bound that was proven.

    `centring` says what was done to the samples; a b whose rounding exceeds the tolerance is a "rounding floor".
    """
    if not len(problem.totals):
        return _through_origin(problem.p, gram, stop, start, partial(inner_solver, shrinking=shrinking))
    two = hulls(problem.p)
    if start is not None:
        half = 0.5 * float(np.abs(start).sum())
        start = two.nearest_feasible(start / half) if half > 0 else None
    solution, certificate = solve_hulls(two, gram, stop, start, shrinking=shrinking, inner_solver=inner_solver)
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
