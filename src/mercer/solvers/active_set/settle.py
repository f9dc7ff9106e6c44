"""From any feasible β to the exact solution, through problems that are solved all the way.

With other targets p₀ any β is optimal: those with h = b where β is free, and with a residual of the right sign where it
is not; how large these residuals are is left to chance, so that no two events coincide. Then p₀ is led to p along a
line, and Σβ to its total. The nearer β is to the solution, the fewer events there are on the way.

So a solution that another solver has found becomes one whose equations hold to rounding (`exactly`). Without a sample,
or with less of it, its bounds shrink to zero, or by its share of a weight (`without`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Solve, Stop
from mercer.solvers.active_set.family import Family, Line
from mercer.solvers.active_set.kernel_rows import KernelRows
from mercer.solvers.active_set.sets import FREE, LOWER, UPPER, Segment
from mercer.solvers.active_set.walk import Stalled, Walk


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
    """A walk and a β with this Kβ whose free variables do not depend on each other; the rest are on bounds."""
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


# Free variables up to which their equations are solved: the inverse of 2,000 takes about a second.
_MOST_FREE = 2000


def exactly(solve: Solve) -> Solve:
    """A solver whose solution is made exact where that is possible and its certificate is the better for it."""

    def solved(
        problem: DualProblem, gram: Gram, stop: Stop, start: object = None, report: Report | None = None, /
    ) -> tuple[Solution, Certificate]:
        solution, certificate = solve(problem, gram, stop, start, report)
        if solution.stop_reason != "converged" or not _can_settle(problem, gram, solution):
            return solution, certificate
        try:
            walk = settled(problem, KernelRows(gram, keep=False), solution.beta)
        except (Stalled, np.linalg.LinAlgError):
            return solution, certificate
        beta = problem.nearest_feasible(walk.beta(walk.t))
        proof, u = certify(problem, gram.proof, beta, stop.tol)
        if not proof.violation <= certificate.violation:
            return solution, certificate
        return replace(solution, beta=beta, u=u, steps=solution.steps + walk.steps), proof

    return solved


def _can_settle(problem: DualProblem, gram: Gram, solution: Solution) -> bool:
    """One b at most, a positive semi-definite matrix, and few enough free variables."""
    up, low = problem.movable(solution.beta)
    return len(problem.totals) <= 1 and gram.positive_definite != "no" and int((up & low).sum()) <= _MOST_FREE


def without(problem: DualProblem, walk: Walk, segment: Segment, variables: Sequence[int], share: float) -> Walk:
    """The sets with these variables' bounds reduced by a share, at t = 1; `walk` is at its own t = 1.

    `share` is 1 unless d = 0: a price per square changes with the weight, and not along a line.
    """
    lower, upper = problem.lower.copy(), problem.upper.copy()
    for bound in (lower, upper):
        bound[variables] = 0.0 if share == 1 else (1 - share) * bound[variables]
    start = Line(lower.copy(), np.zeros(len(lower))), Line(upper.copy(), np.zeros(len(upper)))
    x = dict(zip(walk.order, segment.free_at(walk.t).tolist(), strict=True))
    leaving: list[tuple[int, int]] = []
    for v in variables:
        now = x[v] if v in x else float((problem.upper if walk.side[v] == UPPER else problem.lower)[v])
        for line, target, side in ((start[0], lower, LOWER), (start[1], upper, UPPER)):
            if (now < target[v]) if side == LOWER else (now > target[v]):
                line.start[v], line.slope[v] = now, target[v] - now
                leaving.append((v, side))
    if not leaving:
        return walk
    zero = np.zeros(len(lower))
    total = Line(float(problem.totals[0]), 0.0) if len(problem.totals) else None
    fork = walk.fork(Family(Line(problem.p, zero), *start, total, problem.d, problem.row))
    try:
        for v, side in leaving:
            if fork.side[v] == FREE:
                fork.let_go(v, side)
            else:
                fork.put(v, side)
        fork.walk(1.0)
    except (Stalled, np.linalg.LinAlgError):
        less = _with_bounds(problem, lower, upper)
        return settled(less, walk.K, np.clip(walk.beta(walk.t, segment), lower, upper))
    return fork


def _with_bounds(problem: DualProblem, lower: Floats, upper: Floats) -> DualProblem:
    return DualProblem(problem.p, lower, upper, problem.d, problem.row, problem.group, problem.totals)
