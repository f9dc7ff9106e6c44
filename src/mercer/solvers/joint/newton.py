"""Newton's method on the free multipliers of a joint machine's block, for blocks on which single steps are slow.

With unit vectors 1_k, a free multiplier α_ik moves its sample's β along D = 1_{y_i} − 1_k. If a Crammer–Singer sample
is at its bound, it moves against the class m of the sample's largest multiplier, D = 1_m − 1_k. With t the lengths of
the moves and e the excess, the optimum of the face solves

    [(K_ij + shift) ⟨D_v, D_w⟩] t = −⟨D_v, e_i⟩      for moves v of sample i and w of sample j

and is approached as in `newton_on_face`: a step ends at the first bound that it meets.
"""

from __future__ import annotations

import numpy as np

from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Flags, Floats, Indices, Values
from mercer.solvers.dual.newton import MAX_FREE, MAX_MULTIPLICATIONS, ridges
from mercer.solvers.ridge_factor import ridge_factor


def newton_on_joint_face(
    problem: JointProblem, J: Indices, K: Values, e: Floats, beta: Floats, n_threads: int = 1, most_free: int = MAX_FREE
) -> Floats:
    """Return β on the block J, moved towards the optimum of its face; K and e are those of the block.

    β is unchanged if there are more than `most_free` free multipliers, which would make the matrices too large.
    """
    y, C = problem.y[J], problem.C[J]
    beta, e = beta.copy(), e.copy()
    work = 0.0
    while work < MAX_MULTIPLICATIONS:
        sample, moves = _moves(problem.shared, y, C, beta)
        if not 0 < len(sample) <= min(most_free, MAX_FREE):
            break
        # 1. Factor the system of the moves, and solve for their lengths.
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
        # 2. Go to the optimum along the step, at most to the first bound.
        delta = np.zeros_like(beta)
        np.add.at(delta, sample, lengths[:, None] * moves)
        moved_samples = np.unique(sample)
        change = np.asarray(K[:, moved_samples], dtype=np.float64) @ delta[moved_samples] + problem.shift * delta.sum(
            axis=0
        )
        slope, curvature = float(slopes @ lengths), float((delta * change).sum())
        to_bound = _steps_to_bound(
            problem.shared, y[moved_samples], C[moved_samples], beta[moved_samples], delta[moved_samples]
        )
        limit = float(to_bound.min())
        step = slope / curvature if curvature > 0 else np.inf
        if not slope > 0 or not np.isfinite(min(step, limit)):
            break
        # 3. Put multipliers that reached a bound exactly onto it, and repeat on the others.
        moved_values = beta[moved_samples] + min(step, limit) * delta[moved_samples]
        is_hit = to_bound <= limit * (1 + 1e-14) if limit <= step else np.zeros(to_bound.shape, dtype=bool)
        moved_values = _set_to_bounds(problem, J[moved_samples], moved_values, is_hit)
        if np.array_equal(moved_values, beta[moved_samples]):  # the step is below the rounding of β
            break
        beta[moved_samples] = moved_values
        e += min(step, limit) * change
        if step < limit:
            break
    return beta


def _moves(shared: bool, y: Indices, C: Floats, beta: Floats) -> tuple[Indices, Floats]:
    """Return the sample of each move, and its direction D among the classes."""
    is_free = beta < 0
    true_class = np.arange(len(y)), y
    is_free[true_class] = False
    if not shared:
        is_free &= beta > -C[:, None]
    opposite_class = y.copy()
    if shared:
        is_at_bound = beta[true_class] >= C
        opposite_class[is_at_bound] = np.argmin(beta[is_at_bound], axis=1)
        is_free[np.flatnonzero(is_at_bound), opposite_class[is_at_bound]] = False
    sample, k = np.nonzero(is_free)
    moves = np.zeros((len(sample), beta.shape[1]))
    moves[np.arange(len(sample)), opposite_class[sample]] = 1.0
    moves[np.arange(len(sample)), k] -= 1.0
    return sample, moves


def _steps_to_bound(shared: bool, y: Indices, C: Floats, beta: Floats, delta: Floats) -> Floats:
    """Return the step length along delta at which each entry of β reaches its bound."""
    true_class = np.arange(len(y)), y
    upper = np.zeros_like(beta)
    upper[true_class] = C if shared else np.inf
    lower = np.full_like(beta, -np.inf) if shared else np.repeat(-C[:, None], beta.shape[1], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        to_bound = np.where(delta > 0, upper - beta, beta - lower) / np.abs(delta)
    to_bound[delta == 0] = np.inf
    return np.maximum(to_bound, 0.0)


def _set_to_bounds(problem: JointProblem, rows: Indices, beta: Floats, is_hit: Flags) -> Floats:
    """Return β of these samples, feasible and with the multipliers that `is_hit` a bound exactly on it."""
    bound = 0.0 if problem.shared else np.where(beta > -0.5 * problem.C[rows, None], 0.0, -problem.C[rows, None])
    return problem.within_bounds(np.where(is_hit, bound, beta), rows)
