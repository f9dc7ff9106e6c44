"""From any feasible β to the exact solution, through problems that are solved all the way.

With other targets p₀ any β is optimal: those with h = b where β is free, and with a residual of the right sign where it
is not; how large these residuals are is left to chance, so that no two events coincide. Then p₀ is led to p along a
line, and Σβ to its total. The nearer β is to the solution, the fewer events there are on the way.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.active_set.family import Family, Line
from mercer.solvers.active_set.kernel_rows import KernelRows
from mercer.solvers.active_set.sets import FREE, LOWER, UPPER
from mercer.solvers.active_set.walk import Walk


def settled(problem: DualProblem, K: KernelRows, beta: Floats) -> Walk:
    """The sets of the exact solution of a problem with at most one equality, at t = 1, from a β in the box."""
    start, beta = _independent(problem, K, beta)
    u = K.product(problem.row_coefficients(beta, K.n))
    h = problem.gradient(beta, u)
    side, free = start.side, start.side == FREE
    b = 0.0
    if len(problem.totals):
        b = float(h[free].mean()) if free.any() else float(problem.violation_and_offsets(beta, h)[1][0])
    rho = h - b
    wrong = free | ((side == LOWER) & (rho > 0)) | ((side == UPPER) & (rho < 0))
    wrong &= problem.lower < problem.upper
    apart = np.where(free, 0.0, np.random.default_rng(0).uniform(0.1, 1.0, len(rho)))
    p = np.where(wrong, problem.p - rho * (1 + apart), problem.p)
    walk = start.with_family(Family.in_targets(problem, p, float(beta.sum())), 0.0)
    walk.walk(1.0)
    return walk


def _independent(problem: DualProblem, K: KernelRows, beta: Floats) -> tuple[Walk, Floats]:
    """A β with this Kβ, of whose free variables none depends on the others; the rest are on bounds."""
    beta = np.clip(beta, problem.lower, problem.upper)
    side = np.where(beta >= problem.upper, UPPER, np.where(beta <= problem.lower, LOWER, FREE)).astype(np.int8)
    inside = np.flatnonzero(side == FREE)
    held = np.where(side == FREE, LOWER, side).astype(np.int8)
    walk = Walk(_without_values(problem), K, held, 0.0)
    for v in inside.tolist():
        z = walk.combination(v)
        if z is not None:
            F = np.array([*walk.order, v])
            moves = np.append(-z, 1.0)
            up, down = _reach(problem, beta, F, moves), _reach(problem, beta, F, -moves)
            moves = moves if up[0] <= down[0] else -moves
            step, k = min(up, down)
            beta[F] = np.clip(beta[F] + step * moves, problem.lower[F], problem.upper[F])
            hit, at = int(F[k]), UPPER if moves[k] > 0 else LOWER
            beta[hit] = (problem.upper if at == UPPER else problem.lower)[hit]
            if hit == v:
                walk.put(v, at)
                continue
            walk.let_go(hit, at)
        walk.let_in(v)
    return walk, beta


def _without_values(problem: DualProblem) -> Family:
    """Variables that are all zero, for a walk that only tells which of them depend on others."""
    zero = np.zeros(problem.n_variables)
    nothing = Line(zero, zero)
    total = Line(0.0, 0.0) if len(problem.totals) else None
    return Family(nothing, nothing, nothing, total, problem.d, problem.row)


def _reach(problem: DualProblem, beta: Floats, F: np.ndarray, moves: Floats) -> tuple[float, int]:
    """How far β can move until a variable is at its bound, and which."""
    ends = np.where(moves > 0, problem.upper[F], problem.lower[F])
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(np.abs(moves) > 1e-9, (ends - beta[F]) / moves, np.inf)
    k = int(np.argmin(steps))
    return float(steps[k]), k
