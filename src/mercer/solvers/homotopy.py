"""Exact solutions of dual problems along a homotopy, whose events the core follows (src/core/solve/homotopy.hpp).

    maximise  p(t)'β − ½ β'(K + diag d)β   subject to  lower(t) ≤ β ≤ upper(t),  Σβ = total(t)

with affine functions of t. With bounds t·C_i this is the path in C (`in_bounds`). The solution of another solver
becomes one whose equations hold to rounding (`settled`, `exactly`). Without a sample, or with less of it, its bounds
shrink to zero, or by its share of a weight (`without`).
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

LOWER, FREE, UPPER = -1, 0, 1

# The most free variables of a solution that is made exact: their inverse takes about a second.
_MOST_FREE = 2000


class KernelRows:
    """K of n samples: all of it where that fits into the budget, else rows as they are asked for.

    Without `keep` no more is computed than what is asked for.
    """

    def __init__(self, gram: Gram, *, keep: bool = True) -> None:
        self.gram, self._keep = gram, keep
        self.n = gram.n
        self.diagonal: Floats = np.ascontiguousarray(gram.diagonal, dtype=np.float64)
        self._everything = np.arange(gram.n)

    @cached_property
    def whole(self) -> Floats | None:
        """All of K if it fits; the rest of the budget is for the rows and the system of the free variables."""
        if not self._keep or 8 * self.n**2 > 0.6 * self.gram.budget:
            return None
        return np.ascontiguousarray(self.gram.full(np.float64), dtype=np.float64)

    def rows(self, which: Indices) -> Floats:
        """K[which]."""
        found = self.gram.block(which, self._everything) if self.whole is None else self.whole[which]
        return np.ascontiguousarray(found)

    def product(self, coefficients: Floats) -> Floats:
        """K times one column."""
        if self.whole is None:
            return np.ascontiguousarray(self.gram.product(coefficients))
        used = np.flatnonzero(coefficients)
        if 2 * len(used) > self.n:
            return np.asarray(self.whole @ coefficients)
        return np.asarray(coefficients[used] @ self.whole[used])

    def matrix(self, problem: DualProblem) -> _core.HomotopyMatrix:
        """K + diag d for the core."""
        return _core.HomotopyMatrix(self.diagonal, problem.d, problem.row, self.whole, self.rows, self.product)


def lines(start: Floats, slope: Floats | None = None) -> Floats:
    """start + t·slope as the core takes it; constant without a slope."""
    return np.stack([start, np.zeros(len(start)) if slope is None else slope])


def constant(problem: DualProblem) -> Family:
    """This problem for every t."""
    total = (float(problem.totals[0]), 0.0) if len(problem.totals) else None
    return Family(lines(problem.p), lines(problem.lower), lines(problem.upper), total)


def in_bounds(problem: DualProblem) -> Family:
    """This problem with all its bounds, and its total, multiplied by t."""
    zero = np.zeros(problem.n_variables)
    total = (0.0, float(problem.totals[0])) if len(problem.totals) else None
    return Family(lines(problem.p), lines(zero, problem.lower), lines(zero, problem.upper), total)


def path_at(problem: DualProblem, K: KernelRows, side: NDArray[np.int8], C: float) -> Homotopy:
    """The path in C of a problem at C = 1, at C, where its variables are on these sides."""
    return Homotopy(K.matrix(problem), in_bounds(problem), side, C)


def follow(homotopy: Homotopy, end: float, observe: Callable[[Homotopy], bool]) -> None:
    """Follow t up to `end`; `observe` is called at every event, before the sets change, and may end it."""
    while homotopy.advance(end, recompute_far=True):
        if observe(homotopy):
            return
        homotopy.apply()


def settled(problem: DualProblem, K: KernelRows, beta: Floats) -> Homotopy:
    """The exact solution of a problem with at most one equality, at t = 1, from a β in the box."""
    return _core.settle(K.matrix(problem), constant(problem), beta)


def exactly(solve: Solve) -> Solve:
    """A solver whose solution is made exact where that is possible and its certificate is the better for it."""

    def solved(problem: DualProblem, gram: Gram, stop: Stop, start: object = None, /) -> tuple[Solution, Certificate]:
        solution, certificate = solve(problem, gram, stop, start)
        if solution.stop_reason != "converged" or not _can_settle(problem, gram, solution):
            return solution, certificate
        try:
            exact = settled(problem, KernelRows(gram, keep=False), solution.beta)
            beta = problem.nearest_feasible(exact.beta(exact.t))
        except Stalled:
            return solution, certificate
        proof, u = certify_dual(problem, gram.proof, beta, stop.tol)
        if not proof.violation <= certificate.violation:
            return solution, certificate
        return replace(solution, beta=beta, u=u, steps=solution.steps + exact.steps), proof

    return solved


def _can_settle(problem: DualProblem, gram: Gram, solution: Solution) -> bool:
    """Return whether there is one b at most, a positive semi-definite matrix, and not too many free variables.

    A hard margin, without bounds, has a proof of its own, that of its hulls.
    """
    up, low = problem.movable(solution.beta)
    hard = bool((np.isinf(problem.upper - problem.lower) & (problem.d == 0)).any())
    few = int((up & low).sum()) <= _MOST_FREE
    return len(problem.totals) <= 1 and not hard and gram.positive_definite != "no" and few


def without(
    problem: DualProblem, K: KernelRows, exact: Homotopy, beta: Floats, variables: Sequence[int], share: float
) -> Homotopy:
    """The exact solution with these variables' bounds reduced by a share, at t = 1; `exact` has that of `problem`, β.

    `share` is 1 unless d = 0: a penalty per square changes with the weight, and not along a line.
    """
    lower, upper = problem.lower.copy(), problem.upper.copy()
    for bound in (lower, upper):
        bound[variables] = 0.0 if share == 1 else (1 - share) * bound[variables]
    starts, slopes = (lower.copy(), upper.copy()), np.zeros((2, len(lower)))
    leaving: list[tuple[int, int]] = []
    for v in variables:
        now = float(beta[v])
        for k, target, side in ((0, lower, LOWER), (1, upper, UPPER)):
            if (now < target[v]) if side == LOWER else (now > target[v]):
                starts[k][v], slopes[k, v] = now, target[v] - now
                leaving.append((v, side))
    if not leaving:
        return exact
    total = (float(problem.totals[0]), 0.0) if len(problem.totals) else None
    moved = Family(lines(problem.p), lines(starts[0], slopes[0]), lines(starts[1], slopes[1]), total)
    try:
        fork = exact.with_family(moved, 0.0)
        for v, side in leaving:
            fork.fix(v, side)
        fork.follow(1.0)
    except Stalled:
        less = replace(problem, lower=lower, upper=upper)
        return settled(less, K, np.clip(beta, lower, upper))
    return fork
