"""Newton's method on the free variables of a block: one factorisation can replace a hundred thousand pair steps.

Where β is free (F), and nowhere else, it moves to the optimum of

    maximise  h'δ − ½δ'Aδ   subject to  E'δ = 0,  low ≤ δ ≤ high,   A = K_FF + diag d_F   (E: each variable's group)

Without the box that is δ = Mh, M = A⁻¹ − A⁻¹E(E'A⁻¹E)⁻¹E'A⁻¹. The bounds of a few variables W matter, at first of those
that it takes outside. With these held, δ = Mh − M_W μ, where M_WW μ = (Mh)_W − bound_W. Then those whose force μ points
out of the box are let go, and those that are outside now are held, until nothing changes (a primal-dual active set).

A ridge far below the kernel's size makes every system solvable. In directions in which K is flat it only makes the step
long, and the box limits it. The step itself is searched exactly, with K as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import _core
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, Values
from mercer.solvers.ridge_factor import Factor, growing, ridge_factor

# The most free variables that are factored, and the multiplications after which a climb ends: a few hundredths of a
# second, for one large factor or many small ones.
MAX_FREE = 2048
MAX_MULTIPLICATIONS = 6e8
# If the budget allows this many factorisations, refactor after every bound that is hit; otherwise solve the box by an
# active set (505 free variables of covtype: 5 ms by the active set, 31 ms by 13 factorisations).
_MANY = 64
# Rounds of bounds; three are enough where the face is nearly right (letter at C=100).
_ROUNDS = 12


def climb_face(problem: DualProblem, J: Indices, K: Values, h: Floats, beta: Floats, n_threads: int = 1) -> Floats:
    """β on the block J moved to the optimum of a face of the box, or on the way there; K and h are the block's."""
    lower, upper, d, group = problem.lower[J], problem.upper[J], problem.d[J], problem.group[J]
    beta, h = beta.copy(), h.copy()
    F = np.flatnonzero((beta > lower) & (beta < upper))
    work = 0.0
    while 0 < len(F) <= MAX_FREE and work < MAX_MULTIPLICATIONS:
        work += len(F) ** 3 / 3 + len(J) * len(F)
        face = _Face.of(K[np.ix_(F, F)], d[F], group[F], n_threads)
        if face is None:
            break
        low, high, step = lower[F] - beta[F], upper[F] - beta[F], np.zeros(len(J))
        step[F] = delta = face.best(h[F], low, high)
        change = d * step
        _core.add_table(change, K, step, n_threads)
        slope, curvature = float(h[F] @ delta), float(delta @ change[F])
        if not (slope > 0 and np.isfinite(curvature)):
            break
        with np.errstate(divide="ignore"):
            room = np.where(delta > 0, high, -low) / np.abs(delta)
        limit = float(room.min())
        length = min(limit, slope / curvature if curvature > 0 else np.inf)
        if not np.isfinite(length):
            break
        h -= length * change
        beta[F] += length * delta
        hit = room <= length * (1 + 1e-14)
        beta[F[hit]] = np.where(delta[hit] > 0, upper[F[hit]], lower[F[hit]])
        if length < limit or limit == 1.0:  # 1, to the last bit, where bounds were held
            break
        F = F[~hit]
    return beta


@dataclass(frozen=True, eq=False)
class _Face:
    """M, by the factor of A and by A⁻¹E."""

    factor: Factor
    E: Floats
    solved_E: Floats

    @classmethod
    def of(cls, K: Values, d: Floats, group: np.ndarray, n_threads: int) -> _Face | None:
        """None if A cannot be factored."""
        diagonal = np.diagonal(K) + d
        unit = float(diagonal.max())
        factor = ridge_factor(K, ridges(K.dtype), n_threads, unit=unit, diagonal=diagonal, dtype=K.dtype)
        if factor is None:
            return None
        E = (group[:, None] == np.unique(group[group >= 0])).astype(np.float64)
        return cls(factor, E, factor.solve(E))

    def apply(self, B: Floats) -> Floats:
        """MB."""
        E, solved = self.E, self.factor.solve(B)
        if E.shape[1]:
            sums, excess = E.T @ self.solved_E, E.T @ solved
            if not (np.isfinite(sums).all() and np.isfinite(excess).all()):  # LAPACK would print about it
                raise np.linalg.LinAlgError("numbers overflowed")
            solved -= self.solved_E @ np.linalg.lstsq(sums, excess, rcond=None)[0]
        return solved

    def best(self, h: Floats, low: Floats, high: Floats) -> Floats:
        """δ, inside the box or nearly so; not finite where A is too near to singular."""
        try:
            return self._inside(h, low, high)
        except np.linalg.LinAlgError:  # numbers overflowed on the way
            return np.full(len(h), np.nan)

    def _inside(self, h: Floats, low: Floats, high: Floats) -> Floats:
        n = len(h)
        without = self.apply(h[:, None])[:, 0]
        delta, force = self._balanced(without, np.empty(0, dtype=np.intp)), np.zeros(n)
        place, M_B = np.full(n, -1), np.empty((n, 0))  # where in M_B the column of a variable is
        for _ in range(_ROUNDS if _MANY * n**3 / 3 > MAX_MULTIPLICATIONS else 0):
            above, below = (delta > high) | (force > 0), (delta < low) | (force < 0)
            held = np.flatnonzero(above | below)
            new = held[place[held] < 0]
            work = n**2 * (M_B.shape[1] + len(new))
            if np.array_equal(held, np.flatnonzero(force)) or work > MAX_MULTIPLICATIONS:
                break
            units = np.zeros((n, len(new)))
            units[new, np.arange(len(new))] = 1.0
            place[new] = M_B.shape[1] + np.arange(len(new))
            M_B = np.hstack([M_B, self.apply(units)])
            M_W, bound = M_B[:, place[held]], np.where(above, high, low)[held]
            between = ridge_factor(M_W[held], ridges(np.dtype(np.float64)), self.factor.n_threads, unit=M_W.max())
            if between is None:
                break
            mu = between.solve((without[held] - bound)[:, None])[:, 0]
            with_bounds = without - M_W @ mu
            with_bounds[held] = bound
            with_bounds = self._balanced(with_bounds, held)
            if not np.isfinite(with_bounds).all():
                break
            delta, force = with_bounds, np.zeros(n)
            # A bound is held only by a force that points into the box.
            force[held] = np.where(np.sign(mu) == np.where(above[held], 1.0, -1.0), mu, 0.0)
        return delta

    def _balanced(self, delta: Floats, held: Indices) -> Floats:
        """The equalities to the last bits: what rounding adds to a sum is subtracted evenly where δ is not held.

        Not finite where all variables of a group are held.
        """
        movable = self.E.copy()
        movable[held] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(delta - movable @ ((self.E.T @ delta) / movable.sum(axis=0)))


def ridges(dtype: np.dtype[Any]) -> Iterator[float]:
    """Ridges as shares of the largest diagonal entry, from the rounding of the kernel values up to 1e-4."""
    return growing(1e-6 if dtype == np.float32 else 1e-12, 100, 1e-3)
