"""The exact solution without a sample, or with less of it: its bounds shrink to zero, or by its share of a weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.arrays import Floats
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.active_set.family import Family, Line
from mercer.solvers.active_set.segment import Segment
from mercer.solvers.active_set.sets import FREE, LOWER, UPPER
from mercer.solvers.active_set.settle import settled
from mercer.solvers.active_set.walk import Stalled, Walk


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
