"""Newton's method on the free multipliers of a joint machine's block, used if steps on single samples are slow.

With unit vectors 1_k, a free multiplier α_ik moves its sample's β along D = 1_{y_i} − 1_k. If a Crammer–Singer sample
is at its bound, it moves against the sample's largest multiplier m, D = 1_m − 1_k. With t the lengths of the moves and
e the excess, the optimum of the face solves

    [(K_ij + shift) ⟨D_v, D_w⟩] t = −⟨D_v, e_i⟩      for moves v of sample i and w of sample j

and is approached as in `climb_face`: a step that would leave the face stops at the first bound.
"""

from __future__ import annotations

import numpy as np

from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Flags, Floats, Indices, Values
from mercer.solvers.dual.newton import MAX_FREE, MAX_MULTIPLICATIONS, ridges
from mercer.solvers.ridge_factor import ridge_factor


def climb_joint_face(
    problem: JointProblem, J: Indices, K: Values, e: Floats, beta: Floats, n_threads: int = 1, most: int = MAX_FREE
) -> Floats:
    """β on the block J moved to the optimum of its face, or as near as the bounds allow; K and e are the block's.

    A face with more than `most` free multipliers is left as it is: matrices of its size are made.
    """
    y, C = problem.y[J], problem.C[J]
    beta, e = beta.copy(), e.copy()
    work = 0.0
    while work < MAX_MULTIPLICATIONS:
        sample, moves = _moves(problem.shared, y, C, beta)
        if not 0 < len(sample) <= min(most, MAX_FREE):
            break
        work += len(sample) ** 3 / 3 + len(J) * len(sample) * 2
        values = np.asarray(K[np.ix_(sample, sample)], dtype=np.float64) + problem.shift
        slopes = -(moves * e[sample]).sum(axis=1)
        values *= moves @ moves.T
        factor = ridge_factor(values, ridges(K.dtype), n_threads, unit=float(np.diagonal(values).max()))
        if factor is None:
            break
        lengths = factor.solve(slopes[:, None])[:, 0]
        if not np.isfinite(lengths).all():
            break
        delta = np.zeros_like(beta)
        np.add.at(delta, sample, lengths[:, None] * moves)
        touched = np.unique(sample)
        change = np.asarray(K[:, touched], dtype=np.float64) @ delta[touched] + problem.shift * delta.sum(axis=0)
        slope, curvature = float(slopes @ lengths), float((delta * change).sum())
        room = _room(problem.shared, y[touched], C[touched], beta[touched], delta[touched])
        limit = float(room.min())
        step = slope / curvature if curvature > 0 else np.inf
        if not slope > 0 or not np.isfinite(min(step, limit)):
            break
        moved = beta[touched] + min(step, limit) * delta[touched]
        hit = room <= limit * (1 + 1e-14) if limit <= step else np.zeros(room.shape, dtype=bool)
        moved = _onto_bounds(problem, J[touched], moved, hit)
        if np.array_equal(moved, beta[touched]):  # by less than its rounding
            break
        beta[touched] = moved
        e += min(step, limit) * change
        if step < limit:
            break
    return beta


def _moves(shared: bool, y: Indices, C: Floats, beta: Floats) -> tuple[Indices, Floats]:
    """The sample of each move and its direction among the classes."""
    inside = beta < 0
    own = np.arange(len(y)), y
    inside[own] = False
    if not shared:
        inside &= beta > -C[:, None]
    against = y.copy()
    if shared:
        spent = beta[own] >= C
        against[spent] = np.argmin(beta[spent], axis=1)
        inside[np.flatnonzero(spent), against[spent]] = False
    sample, k = np.nonzero(inside)
    moves = np.zeros((len(sample), beta.shape[1]))
    moves[np.arange(len(sample)), against[sample]] = 1.0
    moves[np.arange(len(sample)), k] -= 1.0
    return sample, moves


def _room(shared: bool, y: Indices, C: Floats, beta: Floats, delta: Floats) -> Floats:
    """How many times delta fits before each β reaches its bound."""
    own = np.arange(len(y)), y
    upper = np.zeros_like(beta)
    upper[own] = C if shared else np.inf
    lower = np.full_like(beta, -np.inf) if shared else np.repeat(-C[:, None], beta.shape[1], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(delta > 0, upper - beta, beta - lower) / np.abs(delta)
    room[delta == 0] = np.inf
    return np.maximum(room, 0.0)


def _onto_bounds(problem: JointProblem, rows: Indices, beta: Floats, hit: Flags) -> Floats:
    """β of these samples with multipliers that reached a bound exactly on it, and feasible again."""
    bound = 0.0 if problem.shared else np.where(beta > -0.5 * problem.C[rows, None], 0.0, -problem.C[rows, None])
    return problem.within_bounds(np.where(hit, bound, beta), rows)
