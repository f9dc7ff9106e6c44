"""Newton's method on the free variables of a block: one factorisation can replace ten thousand pair steps.

On the face of the box where β is free (F), the optimum solves

    (K_FF + diag d_F) δ + E ν = h_F,   E'δ = 0      (E: which group each variable is in)

A step that would leave the box stops at the first bound. That variable is fixed there, and the others continue until a
full step stays inside: then the optimum of the face is reached. A ridge far below the kernel's size makes every system
solvable; in directions in which K is flat it only makes the step long, and the box limits it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.ridge_factor import growing, ridge_factor

# The most free variables that are factored, and the multiplications after which a climb ends: a few hundredths of a
# second, for one large factor or many small ones.
MAX_FREE = 2048
MAX_MULTIPLICATIONS = 6e8


def climb_face(problem: DualProblem, J: Indices, K: Any, h: Floats, beta: Floats, n_threads: int = 1) -> Floats:
    """β on the block J moved to the optimum of its face, or as near as the box allows; K and h are the block's."""
    lower, upper, d, group = problem.lower[J], problem.upper[J], problem.d[J], problem.group[J]
    beta, h = beta.copy(), h.copy()
    F = np.flatnonzero((beta > lower) & (beta < upper))
    work = 0.0
    while 0 < len(F) <= MAX_FREE and work < MAX_MULTIPLICATIONS:
        work += len(F) ** 3 / 3 + len(J) * len(F)
        delta = _direction(K[np.ix_(F, F)], d[F], group[F], h[F], n_threads)
        if delta is None:
            break
        change = K[:, F] @ delta
        change[F] += d[F] * delta
        slope, curvature = float(h[F] @ delta), float(delta @ change[F])
        if not slope > 0:
            break
        with np.errstate(divide="ignore"):
            room = np.where(delta > 0, upper[F] - beta[F], beta[F] - lower[F]) / np.abs(delta)
        limit = float(room.min())
        step = slope / curvature if curvature > 0 else np.inf
        if not np.isfinite(min(step, limit)):
            break
        h -= min(step, limit) * change
        beta[F] += min(step, limit) * delta
        if step < limit:
            break
        hit = room <= limit * (1 + 1e-14)
        beta[F[hit]] = np.where(delta[hit] > 0, upper[F[hit]], lower[F[hit]])
        F = F[~hit]
        beta[F] = np.clip(beta[F], lower[F], upper[F])
    return beta


def _direction(K: Any, d: Floats, group: Any, h: Floats, n_threads: int) -> Floats | None:
    """The Newton direction that keeps each group's sum; None if no ridge is enough, or it overflows."""
    groups = np.unique(group[group >= 0])
    E = (group[:, None] == groups).astype(np.float64)
    diagonal = np.diagonal(K) + d
    factor = ridge_factor(K, ridges(K.dtype), n_threads, unit=float(diagonal.max()), diagonal=diagonal)
    if factor is None:
        return None
    solved = factor.solve(np.column_stack([h, E]))
    if not np.isfinite(solved).all():
        return None
    free, held = solved[:, 0], solved[:, 1:]
    delta = free - held @ np.linalg.lstsq(E.T @ held, E.T @ free, rcond=None)[0] if E.shape[1] else free
    # A direction must keep the equalities: what rounding adds to a sum is subtracted evenly.
    for k in range(E.shape[1]):
        member = E[:, k] > 0
        delta[member] -= delta[member].mean()
    return delta if np.isfinite(delta).all() else None


def ridges(dtype: np.dtype[Any]) -> Iterator[float]:
    """Ridges as shares of the largest diagonal entry, from the rounding of the kernel values up to 1e-4."""
    return growing(1e-6 if dtype == np.float32 else 1e-12, 100, 1e-3)
