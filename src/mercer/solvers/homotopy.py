"""Exact solutions of dual problems by a homotopy, whose events the core computes (src/core/solve/homotopy.hpp).

    maximise  p(t)'β − ½ β'(K + diag d)β   subject to  lower(t) ≤ β ≤ upper(t),  Σβ = total(t)

where p, lower, upper and total are affine functions of t. There are three uses:

1. With the bounds t·C_i, the homotopy is the regularisation path in C (`scaled_bounds`; Hastie et al. 2004).
2. An approximate solution becomes one whose equations hold to rounding (`solve_exactly`, `with_exact_solution`).
3. A sample is removed, or its weight reduced, by shrinking its bounds (`solve_with_smaller_bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer._core import Family, Homotopy, Stalled
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify_dual
from mercer.places.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices
from mercer.solvers.solution import Solution, Solve, Stop

# Where a variable is: at its lower bound, between its bounds, or at its upper bound.
LOWER, FREE, UPPER = -1, 0, 1

# Largest number of free variables of a solution that is made exact: their inverse takes about a second.
_MOST_FREE = 2000


class KernelRows:
    """Rows of K: the whole matrix if it fits into the budget and `keep` is set, otherwise rows computed on request."""

    def __init__(self, gram: Gram, *, keep: bool = True) -> None:
        self.gram, self._stores_matrix = gram, keep
        self.n = gram.n
        self.diagonal: Floats = np.ascontiguousarray(gram.diagonal, dtype=np.float64)
        self._all_rows = np.arange(gram.n)

    @cached_property
    def full_matrix(self) -> Floats | None:
        """Whole matrix K, or None if it takes more than 0.6 of the budget.

        The rest of the budget is for rows and the system of the free variables.
        """
        if not self._stores_matrix or 8 * self.n**2 > 0.6 * self.gram.budget:
            return None
        return np.ascontiguousarray(self.gram.full(np.float64), dtype=np.float64)

    def rows(self, indices: Indices) -> Floats:
        """Return K[indices]."""
        rows = self.gram.block(indices, self._all_rows) if self.full_matrix is None else self.full_matrix[indices]
        return np.ascontiguousarray(rows)

    def product(self, coefficients: Floats) -> Floats:
        """Return K times a vector of coefficients."""
        if self.full_matrix is None:
            return np.ascontiguousarray(self.gram.product(coefficients))
        support = np.flatnonzero(coefficients)
        if 2 * len(support) > self.n:
            return np.asarray(self.full_matrix @ coefficients)
        return np.asarray(coefficients[support] @ self.full_matrix[support])

    def matrix(self, problem: DualProblem) -> _core.HomotopyMatrix:
        """Return K + diag d in the form that the core takes."""
        return _core.HomotopyMatrix(self.diagonal, problem.d, problem.row, self.full_matrix, self.rows, self.product)


def affine(start: Floats, slope: Floats | None = None) -> Floats:
    """Return start + t·slope in the form that the core takes; without a slope it is constant."""
    return np.stack([start, np.zeros(len(start)) if slope is None else slope])


def constant_family(problem: DualProblem) -> Family:
    """Return the family that is this problem for every t."""
    total = (float(problem.totals[0]), 0.0) if len(problem.totals) else None
    return Family(affine(problem.p), affine(problem.lower), affine(problem.upper), total)


def scaled_bounds(problem: DualProblem) -> Family:
    """Return the family of this problem with all bounds, and the total, multiplied by t."""
    zero = np.zeros(problem.n_variables)
    total = (0.0, float(problem.totals[0])) if len(problem.totals) else None
    return Family(affine(problem.p), affine(zero, problem.lower), affine(zero, problem.upper), total)


def path_at(problem: DualProblem, K: KernelRows, side: NDArray[np.int8], C: float) -> Homotopy:
    """Return the path in C, at this C, with each variable free or at a bound as `side` says.

    `problem` is the problem at C = 1.
    """
    return Homotopy(K.matrix(problem), scaled_bounds(problem), side, C)


def follow_path(homotopy: Homotopy, end: float, observe: Callable[[Homotopy], bool]) -> None:
    """Follow the homotopy up to t = `end`, or until `observe` returns True.

    `observe` is called at every event, before a variable changes between free and bounded.
    """
    while homotopy.advance(end, recompute_far=True):
        if observe(homotopy):
            return
        homotopy.apply()


def solve_exactly(problem: DualProblem, K: KernelRows, beta: Floats) -> Homotopy:
    """Return the exact solution of a problem with at most one equality, from a β in the box, as a homotopy at t = 1."""
    return _core.settle(K.matrix(problem), constant_family(problem), beta)


def with_exact_solution(solve: Solve) -> Solve:
    """Wrap a solver: make its solution exact where possible, and keep that if the violation does not grow."""

    def solved(problem: DualProblem, gram: Gram, stop: Stop, start: object = None, /) -> tuple[Solution, Certificate]:
        solution, certificate = solve(problem, gram, stop, start)
        if solution.stop_reason != "converged" or not _can_solve_exactly(problem, gram, solution):
            return solution, certificate
        try:
            exact = solve_exactly(problem, KernelRows(gram, keep=False), solution.beta)
            beta = problem.nearest_feasible(exact.beta(exact.t))
        except Stalled:
            return solution, certificate
        proof, u = certify_dual(problem, gram.proof, beta, stop.tol)
        if not proof.violation <= certificate.violation:
            return solution, certificate
        return replace(solution, beta=beta, u=u, steps=solution.steps + exact.steps), proof

    return solved


def _can_solve_exactly(problem: DualProblem, gram: Gram, solution: Solution) -> bool:
    """Return whether there is at most one b, K is not indefinite, and not too many variables are free.

    A hard margin, which has no bounds, is excluded: its certificate is that of the convex hulls.
    """
    up, low = problem.movable(solution.beta)
    has_infinite_box = bool((np.isinf(problem.upper - problem.lower) & (problem.d == 0)).any())
    few_free = int((up & low).sum()) <= _MOST_FREE
    return len(problem.totals) <= 1 and not has_infinite_box and gram.positive_definite != "no" and few_free


def solve_with_smaller_bounds(
    problem: DualProblem, K: KernelRows, exact: Homotopy, beta: Floats, variables: Sequence[int], share: float
) -> Homotopy:
    """Return the exact solution after the bounds of some variables shrink by a share, as a homotopy at t = 1.

    `exact` is the exact solution β of `problem`. `share` must be 1 unless d = 0, since d is not an affine function of
    the weight.
    """
    # 1. Where β lies outside the reduced box, let its bound move from β to the reduced bound.
    lower, upper = problem.lower.copy(), problem.upper.copy()
    for bound in (lower, upper):
        bound[variables] = 0.0 if share == 1 else (1 - share) * bound[variables]
    starts, slopes = (lower.copy(), upper.copy()), np.zeros((2, len(lower)))
    variables_outside: list[tuple[int, int]] = []
    for v in variables:
        value = float(beta[v])
        for k, target, side in ((0, lower, LOWER), (1, upper, UPPER)):
            if (value < target[v]) if side == LOWER else (value > target[v]):
                starts[k][v], slopes[k, v] = value, target[v] - value
                variables_outside.append((v, side))
    if not variables_outside:
        return exact
    total = (float(problem.totals[0]), 0.0) if len(problem.totals) else None
    family = Family(affine(problem.p), affine(starts[0], slopes[0]), affine(starts[1], slopes[1]), total)
    # 2. Fix these variables at their moving bounds and follow t from 0 to 1.
    try:
        moving_solution = exact.with_family(family, 0.0)
        for v, side in variables_outside:
            moving_solution.fix(v, side)
        moving_solution.follow(1.0)
    except Stalled:  # 3. Otherwise solve the reduced problem from the clipped β.
        reduced_problem = replace(problem, lower=lower, upper=upper)
        return solve_exactly(reduced_problem, K, np.clip(beta, lower, upper))
    return moving_solution
