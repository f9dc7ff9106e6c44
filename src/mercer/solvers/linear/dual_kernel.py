"""Solve a kernel machine with the linear kernel on the rows of X, and return the solution of the kernel machine.

With K = XX', a DualProblem with one variable per sample (or the two twins of an ε-tube) and at most one equality Σβ = 0
is the dual of a LinearProblem whose bias is free or absent. So β and its certificate are the same, and u = X(X'β) costs
two products with X instead of a pass over K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certificate_of
from mercer.certificates.linear import row_length_bounds
from mercer.places.gram import Gram
from mercer.places.protocols import Rows
from mercer.problems.dual_problem import DualProblem
from mercer.problems.linear_problem import LinearProblem
from mercer.samples.arrays import Floats
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.linear.choose import solve_linear
from mercer.solvers.linear.referee import LinearSolution
from mercer.solvers.solution import Solution, Stop

# Newton's w is not quite X'β, and its gap contains ½‖w − X'β‖². The first round solves to a relative gap of
# `_FIRST_GAP`; while the certificate of the corrected β does not meet `stop`, each next round solves to `_GAP_FACTOR`
# times the last gap, in at most `_ROUNDS` rounds.
_FIRST_GAP, _GAP_FACTOR, _ROUNDS = 1e-4, 1e-2, 6
# Below _MANY_VARIABLES variables decomposition comes first: where it is quick, its β has fewer nonzeros. Problems that
# need more than _PAIR_STEPS_PER_VARIABLE (large C, columns with few nonzeros) would need a hundred times as many. With
# few variables, pair steps may change at least _FEWEST_CHANGES gradients, which takes less time than one Newton step in
# w.
_MANY_VARIABLES, _PAIR_STEPS_PER_VARIABLE, _FEWEST_CHANGES = 2000, 10, 2_000_000


def linear_problem(problem: DualProblem) -> LinearProblem | None:
    """Return the LinearProblem of which this is the dual for K = XX', or None if there is none."""
    n, bias_is_free = len(problem.p), len(problem.totals) == 1
    if len(problem.totals) > 1 or problem.totals.any():
        return None
    bias = np.inf if bias_is_free else 0.0
    if np.array_equal(problem.row, np.arange(n)):
        linear = LinearProblem(problem.p, problem.lower, problem.upper, problem.d, np.zeros(n), bias)
    else:
        positive_side, negative_side = np.arange(n // 2), np.arange(n // 2, n)
        linear = LinearProblem(
            p=0.5 * (problem.p[positive_side] + problem.p[negative_side]),
            lower=problem.lower[negative_side],
            upper=problem.upper[positive_side],
            d=problem.d[positive_side],
            epsilon=0.5 * (problem.p[negative_side] - problem.p[positive_side]),
            bias=bias,
        )
        twins = linear.dual
        has_same_twins = len(twins.p) == n and all(
            np.array_equal(getattr(twins, name), getattr(problem, name)) for name in ("lower", "upper", "d", "row")
        )
        if not has_same_twins or linear.epsilon.min(initial=0.0) < 0:
            return None
    is_bounded = np.isfinite(linear.upper - linear.lower) | (linear.d > 0)
    return linear if bool(is_bounded.all()) else None


def solve_by_rows(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    *,
    linear: LinearProblem,
    rows_of: Callable[[], Rows],
    shrinking: bool = True,
) -> tuple[Solution, Certificate]:
    """Solve and certify a problem that is the dual of `linear`; `rows_of` returns X when it is needed."""
    # 1. Try pair steps on few variables.
    if problem.n_variables < _MANY_VARIABLES:
        n = problem.n_variables
        most_steps = max(_PAIR_STEPS_PER_VARIABLE * n, _FEWEST_CHANGES // max(1, n))
        short_stop = replace(stop, max_iter=min(stop.max_iter, most_steps))
        first, certificate = solve_certified(problem, gram, short_stop, start, shrinking=shrinking)
        # A violation of tol leaves a gap of at most tol·width. A larger gap is rounding, and products with X have less.
        width = float((problem.upper - problem.lower).sum())
        if first.stop_reason == "converged" and certificate.gap > stop.tol * width:
            rows = rows_of()
            u = rows.gram_product(problem.row_coefficients(first.beta, gram.n))
            proof = certificate_of(problem, first.beta, u, row_length_bounds(rows), "optimality", "float64")
            return (replace(first, u=u.value), proof) if stop.met(proof) else (first, certificate)
        if first.stop_reason in ("converged", "max_time") or short_stop.max_iter == stop.max_iter:
            return first, certificate
    # 2. Solve in w to smaller and smaller gaps, until the certificate of β meets `stop`.
    rows = rows_of()
    point = None
    if start is not None:
        beta = problem.row_coefficients(start, rows.n)
        point = LinearSolution(rows.transposed(beta), 0.0, beta, 0, "converged", "")
    inner_stop, steps, least_violation = replace(stop, gap_tol=min(stop.gap_tol, _FIRST_GAP)), 0, np.inf
    for _ in range(_ROUNDS):
        point, _ = solve_linear(linear, rows, inner_stop, point, shrinking=shrinking)
        steps = max(steps, point.steps)
        out_of_time = point.stop_reason == "max_time"  # no time for a correction
        corrected_beta = linear.balanced(point.beta) if out_of_time else move_towards(linear, rows, point.w, point.beta)
        beta, u = linear.dual_variables(corrected_beta), rows.gram_product(corrected_beta)
        certificate = certificate_of(problem, beta, u, row_length_bounds(rows), "optimality", "float64")
        if stop.met(certificate):
            return Solution(beta, steps, "converged", u=u.value), certificate
        if point.stop_reason in ("max_iter", "max_time"):
            return Solution(beta, steps, point.stop_reason, u=u.value), certificate
        if certificate.violation < least_violation:
            start, least_violation = beta, certificate.violation
        if point.stop_reason == "stalled":
            break
        inner_stop = replace(inner_stop, gap_tol=_GAP_FACTOR * inner_stop.gap_tol)
    # 3. Rounding, or a problem that steps in w do not solve: the kernel machine's solver continues from here.
    return solve_certified(problem, gram, stop, start, shrinking=shrinking)


def move_towards(problem: LinearProblem, rows: Rows, w: Floats, beta: Floats) -> Floats:
    """Move β inside its box so that X'β comes closer to w, and Σβ to zero if b is free.

    With D the squared distances of β to its bounds, the change δ with X'δ = w − X'β that is smallest in the norm δ'D⁻¹δ
    is D(Xz + z₀), where z solves the normal equations. This step is repeated a few times, because the box may cut it.
    """
    beta = beta.copy()
    for _ in range(3):
        distance = np.minimum(beta - problem.lower, problem.upper - beta)
        # For samples with an ε-tube β = 0 is a bound too.
        distance = np.where(problem.epsilon > 0, np.minimum(distance, np.abs(beta)), distance)
        free = np.flatnonzero((distance > 0) & np.isfinite(distance))
        gap = np.append(w - rows.transposed(beta), -beta.sum() if problem.exact_bias else 0.0)
        if len(free) == 0 or not gap.any():
            break
        weight = (distance / distance[free].max()) ** 2  # only proportions matter, and squares of a large C overflow
        lower = np.tril(rows.outer(free, weight[free]))
        normal = lower + np.tril(lower, -1).T
        if not problem.exact_bias:
            normal[-1, :], normal[:, -1] = 0.0, 0.0
        if not (np.isfinite(normal).all() and np.isfinite(gap).all()):
            break
        z = np.linalg.lstsq(normal, gap, rcond=1e-14)[0]
        change = np.zeros(rows.n)
        change[free] = (weight * rows.product(z[:-1], float(z[-1])))[free]
        with np.errstate(divide="ignore"):
            limit = np.abs(distance[free] / change[free]).min(initial=np.inf)
        beta += min(1.0, 0.9 * limit) * change
    return beta
