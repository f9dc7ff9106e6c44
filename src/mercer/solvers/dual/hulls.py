"""Find the nearest points of two (reduced) convex hulls, and from them the hard margin.

The solver runs until the hulls are proven apart, or touch within rounding. The dual value is −½‖w‖² with w the
difference of the two points, and no feasible point has a dual value above `primal`. So −2·primal is a lower bound on
the squared distance of the hulls, and ‖w‖² an upper one. The hulls are proven apart once the lower bound exceeds the
‖w‖² that rounding can give two equal points. They touch, within float64, once ‖w‖² itself is below that. Reduced hulls
also count as touching if the solver cannot lower a ‖w‖² that is nearly as small.

The hard margin minimises ½‖w‖² subject to y_i f(x_i) ≥ 1; its dual bounds only the signs of the multipliers:

    with a bias     the nearest points of the two classes' hulls, divided by ρ = ½‖w‖²
    without one     the soft margin with a C that no multiplier reaches, which has the same solution; C grows until then

The dual value of a soft margin is a lower bound on ½‖w‖² of the hard margin, for every C. So the solver ends with
"no margin" once this value shows that the margin is below √eps·max √k(x, x), the resolution of float64.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.hulls import Centring, hard_margin_certificate, hard_margin_through_origin, widen_for_division
from mercer.places.gram import Gram
from mercer.problems.classification import hulls, rho_and_b, soft_margin
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, inner
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.solution import Solution, Solve, Stop
from mercer.solvers.solver import Solver

# Largest ‖w‖² that rounding can give two equal points, as a share of (Σ|β_i|√K_ii)², and the largest that a solver may
# be unable to lower because of rounding.
_ROUNDING_SHARE = 16 * float(np.finfo(float).eps)
_TOUCHING_SHARE = 1e-10
# First tolerance, as a share of mass times a typical K_ii, and the smallest factor from one tolerance to the next.
_FIRST_TOL_SHARE = 1e-2
_TOL_FACTOR = 1e-2
# Guess of ρ for reduced hulls, as a share of its largest possible value. Usually ρ is larger, and then one solve is
# enough (seven sets at ν = 0.1 and 0.3: 106 of 110 pairs, for a tenth more pair steps).
_LIKELY_RHO = 0.25
# Last tolerance, in the same unit: smaller gradients are rounding.
_LEAST_TOL_SHARE = float(np.finfo(float).eps)
# Smaller numbers have fewer digits, and a tolerance below it has no meaning.
_SMALLEST_NORMAL = float(np.finfo(float).tiny)
# First C of the hard margin through the origin, in units of 1/max k(x, x), and the factor from one C to the next.
_FIRST_C = 1e3
_C_FACTOR = 100.0
NOT_CENTRED = Centring()


def _hull_relation(gram: Gram, beta: Floats, certificate: Certificate) -> tuple[bool, bool, bool]:
    """Return whether the certificate proves the hulls apart, whether they meet, and whether they nearly meet.

    The unit of length depends on the samples with a nonzero coefficient only.
    """
    size = inner(np.sqrt(np.abs(gram.diagonal)), np.abs(beta))
    unit = size * size
    if not np.isfinite(unit):
        raise FloatingPointError(
            f"weights that add up to {np.abs(beta).sum():.3g} overflow with kernel values up to "
            f"{np.abs(gram.diagonal).max():.3g}; scale them"
        )
    highest_dual = certificate.dual + certificate.gap  # at least primal; the gap includes rounding
    # Bounds on the squared distance.
    lower, upper = (max(0.0, -2.0 * value) for value in (highest_dual, certificate.dual))
    are_apart = lower > _ROUNDING_SHARE * unit
    return are_apart, upper <= _ROUNDING_SHARE * unit, not are_apart and upper <= _TOUCHING_SHARE * unit


def _rho(problem: DualProblem, certificate: Certificate, reduced: bool) -> float:
    """Return ρ, by which the coefficients of the hulls will be divided.

    For the hard margin it is ½‖w‖², accurate to the gap and not only to the violation. For reduced hulls it is at most
    the bound of one sample, because LIBSVM applies its tolerance before the division.
    """
    return min(rho_and_b(certificate.b)[0], largest_rho(problem)) if reduced else -certificate.dual


def largest_rho(problem: DualProblem) -> float:
    """Return the largest ρ of reduced hulls that the tolerance takes into account: the bound of one sample."""
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
    """Find the nearest points of two hulls, until these are proven apart and margins are accurate to `stop.tol`.

    The machine's coefficients are those of the hulls divided by ρ, so a violation v of this problem is v/ρ for the
    machine. The certificate of `reduced` hulls includes the roundings of this division, which the caller makes.
    """
    solve = partial(inner_solver, shrinking=shrinking)
    solution, certificate = _nearest_points(problem, gram, stop, start, solve, reduced)
    if not reduced:
        return solution, certificate
    proof = widen_for_division(certificate, problem, gram.proof, solution.beta)
    if solution.stop_reason == "converged" and proof.violation > stop.tol * _rho(problem, certificate, reduced):
        solution = dataclasses.replace(solution, stop_reason="rounding floor")
    return solution, proof


def _nearest_points(
    problem: DualProblem, gram: Gram, stop: Stop, start: Floats | None, solve: Solve, reduced: bool
) -> tuple[Solution, Certificate]:
    """Solve the hull problem with smaller and smaller tolerances, until it is decided whether the hulls meet."""
    # 1. Choose the first and the last tolerance, in units of mass times a typical K_ii.
    steps = 0
    lengths = np.abs(gram.diagonal)
    typical_length = largest = float(lengths.max())
    if lengths.min() < largest:  # not constant, as it is for a Gaussian
        typical_length = float(np.median(lengths)) or largest
    mass = float(np.abs(problem.totals).max())
    tol, least = (
        _FIRST_TOL_SHARE * mass * typical_length or stop.tol,
        max(_LEAST_TOL_SHARE * mass * typical_length, _SMALLEST_NORMAL),
    )
    if reduced:
        tol = min(tol, _LIKELY_RHO * stop.tol * largest_rho(problem))
    while True:
        # 2. Solve to the present tolerance.
        inner_stop = dataclasses.replace(stop.after(steps), tol=tol)
        solution, certificate = solve(problem, gram, inner_stop, start)
        start, steps = solution.beta, steps + solution.steps
        solution = dataclasses.replace(solution, steps=steps)
        # 3. Stop if the hulls meet, or are proven apart with a violation that is small enough relative to ρ.
        are_apart, do_meet, nearly_meet = _hull_relation(gram, solution.beta, certificate)
        goal = stop.tol * _rho(problem, certificate, reduced)
        if do_meet:
            return dataclasses.replace(solution, stop_reason="no margin"), certificate
        if are_apart and certificate.violation <= goal:
            return dataclasses.replace(solution, stop_reason="converged"), certificate
        reason = solution.stop_reason if solution.stop_reason != "converged" or tol > least else "rounding floor"
        # Reduced hulls this close count as meeting (the remedy is a larger ν); full hulls need a proof.
        if reason in ("stalled", "rounding floor") and nearly_meet and reduced:
            return dataclasses.replace(solution, stop_reason="no margin"), certificate
        if reason != "converged":
            return dataclasses.replace(solution, stop_reason=reason), certificate
        # 4. Lower the tolerance by a limited factor: the required one is zero for hulls that touch.
        tol = max(goal, _TOL_FACTOR * tol) if goal < certificate.violation else _TOL_FACTOR * tol


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
    """Solve the hard margin: a solution with margins at ±1 and a certificate for ½‖w‖².

    If there is no margin, the stop reason is "no margin" and the certificate holds the bound that was proven.
    `centring` describes how the samples were shifted; if the rounding error of b exceeds the tolerance, the stop reason
    is "rounding floor".
    """
    if not len(problem.totals):
        return _solve_through_origin(problem.p, gram, stop, start, partial(inner_solver, shrinking=shrinking))
    hull_problem = hulls(problem.p)
    if start is not None:
        half_sum = 0.5 * float(np.abs(start).sum())
        start = hull_problem.nearest_feasible(start / half_sum) if half_sum > 0 else None
    solution, certificate = solve_hulls(hull_problem, gram, stop, start, shrinking=shrinking, inner_solver=inner_solver)
    rho = -certificate.dual
    if not rho > np.finfo(float).tiny:  # too small to divide by
        proof = hard_margin_certificate(certificate, 1.0, 0.0, centring.moved)
        return dataclasses.replace(solution, stop_reason="rounding floor" if rho > 0 else "no margin"), proof
    assert solution.u is not None
    beta, longest = solution.beta / rho, float(np.sqrt(np.abs(gram.diagonal).max()))
    tilt = centring.tilt(float(np.sqrt(2 * rho)) / rho, longest, abs(math.fsum(beta.tolist())))
    proof = hard_margin_certificate(certificate, rho, rho_and_b(certificate.b)[1] / rho, centring.moved, tilt)
    reason = solution.stop_reason
    if reason == "converged" and proof.violation > max(stop.tol, certificate.violation / rho):
        reason = "rounding floor"
    return dataclasses.replace(solution, beta=beta, u=solution.u / rho, stop_reason=reason), proof


def _solve_through_origin(
    y: Floats, gram: Gram, stop: Stop, start: Floats | None, inner_solver: Solver
) -> tuple[Solution, Certificate]:
    """Solve the soft margin without a bias for larger and larger C, until no multiplier reaches C."""
    largest, steps = float(np.abs(gram.diagonal).max()), 0
    # ½‖w‖² of a margin at the size of rounding, √eps·max √k(x, x).
    hopeless_C = 0.5 / (float(np.finfo(float).eps) * largest) if largest > 0 else 0.0
    C = _FIRST_C / largest if largest > 0 else 1.0
    while True:
        soft = soft_margin(y, np.full(len(y), C)).without_bias()
        clipped_start = None if start is None else soft.nearest_feasible(start)
        solution, certificate = inner_solver(soft, gram, stop.after(steps), clipped_start)
        start, steps = solution.beta, steps + solution.steps
        proof = hard_margin_through_origin(certificate, gram.proof, y, solution.beta)
        reaches_bound = bool((np.abs(solution.beta) >= C).any())
        solution = dataclasses.replace(solution, steps=steps)
        if proof.dual >= hopeless_C:
            return dataclasses.replace(solution, stop_reason="no margin"), proof
        if not reaches_bound or solution.stop_reason in ("max_iter", "max_time"):
            return solution, proof
        C *= _C_FACTOR
