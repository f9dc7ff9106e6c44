"""Newton's method on the free variables of a block: one factorisation can replace a hundred thousand pair steps.

The free variables F move to the optimum of

    maximise  h'δ − ½δ'Aδ   subject to  E'δ = 0,  low ≤ δ ≤ high,   A = K_FF + diag d_F   (E: each variable's group)

and all other variables stay. The steps are those of a primal-dual active set method (Hintermüller, Ito and Kunisch
2002):

1. Without the box, δ = Mh with M = A⁻¹ − A⁻¹E(E'A⁻¹E)⁻¹E'A⁻¹.
2. Let W be the variables outside the box. With these held at their bounds, δ = Mh − M_W μ, where
   M_WW μ = (Mh)_W − bound_W.
3. Release the variables of W whose multiplier μ has the wrong sign, add to W the variables that are outside the box
   now, and repeat 2 until W does not change.
4. Go along δ by an exact line search with the true K, at most to the first bound.

A ridge that is small beside the kernel's values makes every system solvable. In directions in which K is flat it only
makes the step long, and the box limits the step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import _core
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, Values
from mercer.solvers.ridge_factor import RidgeFactor, growing, ridge_factor

# Largest number of free variables that are factored, and the multiplications after which the method ends: a few
# hundredths of a second, for one large factor or many small ones.
MAX_FREE = 2048
MAX_MULTIPLICATIONS = 6e8
# If the budget allows this many factorisations, refactor after every bound that is hit; otherwise solve the box by an
# active set (505 free variables of covtype: 5 ms by the active set, 31 ms by 13 factorisations).
_MANY_FACTORS = 64
# Rounds of the active set method; three are enough if the free variables are nearly right (letter at C=100).
_ROUNDS = 12


def newton_on_face(problem: DualProblem, J: Indices, K: Values, h: Floats, beta: Floats, n_threads: int = 1) -> Floats:
    """Return β on the block J, moved towards the optimum of a face of the box; K and h are those of the block."""
    lower, upper, d, group = problem.lower[J], problem.upper[J], problem.d[J], problem.group[J]
    beta, h = beta.copy(), h.copy()
    F = np.flatnonzero((beta > lower) & (beta < upper))
    work = 0.0
    while 0 < len(F) <= MAX_FREE and work < MAX_MULTIPLICATIONS:
        work += len(F) ** 3 / 3 + len(J) * len(F)
        # 1. Factor A on the free variables and find the best δ inside the box.
        face = _Face.of(K[np.ix_(F, F)], d[F], group[F], n_threads)
        if face is None:
            break
        low, high, step = lower[F] - beta[F], upper[F] - beta[F], np.zeros(len(J))
        step[F] = delta = face.best_step(h[F], low, high)
        change = d * step
        _core.add_table(change, K, step, n_threads)
        # 2. Go to the maximum along δ, at most to the first bound.
        slope, curvature = float(h[F] @ delta), float(delta @ change[F])
        if not (slope > 0 and np.isfinite(curvature)):
            break
        with np.errstate(divide="ignore"):
            distance = np.where(delta > 0, high, -low) / np.abs(delta)
        limit = float(distance.min())
        length = min(limit, slope / curvature if curvature > 0 else np.inf)
        if not np.isfinite(length):
            break
        h -= length * change
        beta[F] += length * delta
        is_hit = distance <= length * (1 + 1e-14)
        beta[F[is_hit]] = np.where(delta[is_hit] > 0, upper[F[is_hit]], lower[F[is_hit]])
        # 3. Fix the variables that reached a bound, and repeat on the others.
        if length < limit or limit == 1.0:  # exactly 1 where δ already holds bounds
            break
        F = F[~is_hit]
    return beta


@dataclass(frozen=True, eq=False)
class _Face:
    """Operator M of one face, stored as the factor of A, E and A⁻¹E."""

    factor: RidgeFactor
    E: Floats
    solved_E: Floats

    @classmethod
    def of(cls, K: Values, d: Floats, group: np.ndarray, n_threads: int) -> _Face | None:
        """Factor A = K + diag d; None if no ridge makes that possible."""
        diagonal = np.diagonal(K) + d
        unit = float(diagonal.max())
        factor = ridge_factor(K, ridges(K.dtype), n_threads, unit=unit, diagonal=diagonal, dtype=K.dtype)
        if factor is None:
            return None
        E = (group[:, None] == np.unique(group[group >= 0])).astype(np.float64)
        return cls(factor, E, factor.solve(E))

    def apply(self, B: Floats) -> Floats:
        """Return MB."""
        E, solution = self.E, self.factor.solve(B)
        if E.shape[1]:
            sums, excess = E.T @ self.solved_E, E.T @ solution
            if not (np.isfinite(sums).all() and np.isfinite(excess).all()):  # LAPACK would print a message
                raise np.linalg.LinAlgError("numbers overflowed")
            solution -= self.solved_E @ np.linalg.lstsq(sums, excess, rcond=None)[0]
        return solution

    def best_step(self, h: Floats, low: Floats, high: Floats) -> Floats:
        """Return the best δ inside the box, up to rounding; NaN if A is too close to singular."""
        try:
            return self._solve_box(h, low, high)
        except np.linalg.LinAlgError:  # numbers overflowed on the way
            return np.full(len(h), np.nan)

    def _solve_box(self, h: Floats, low: Floats, high: Floats) -> Floats:
        """Return δ by the active set method of the module docstring."""
        n = len(h)
        unbounded_delta = self.apply(h[:, None])[:, 0]
        delta, multipliers = self._balance(unbounded_delta, np.empty(0, dtype=np.intp)), np.zeros(n)
        column, M_B = np.full(n, -1), np.empty((n, 0))  # index of a variable's column of M in M_B, -1 if not there
        for _ in range(_ROUNDS if _MANY_FACTORS * n**3 / 3 > MAX_MULTIPLICATIONS else 0):
            is_above, is_below = (delta > high) | (multipliers > 0), (delta < low) | (multipliers < 0)
            held_variables = np.flatnonzero(is_above | is_below)
            new_variables = held_variables[column[held_variables] < 0]
            work = n**2 * (M_B.shape[1] + len(new_variables))
            if np.array_equal(held_variables, np.flatnonzero(multipliers)) or work > MAX_MULTIPLICATIONS:
                break
            units = np.zeros((n, len(new_variables)))
            units[new_variables, np.arange(len(new_variables))] = 1.0
            column[new_variables] = M_B.shape[1] + np.arange(len(new_variables))
            M_B = np.hstack([M_B, self.apply(units)])
            M_W, bound = M_B[:, column[held_variables]], np.where(is_above, high, low)[held_variables]
            factor_W = ridge_factor(
                M_W[held_variables], ridges(np.dtype(np.float64)), self.factor.n_threads, unit=M_W.max()
            )
            if factor_W is None:
                break
            mu = factor_W.solve((unbounded_delta[held_variables] - bound)[:, None])[:, 0]
            with_bounds = unbounded_delta - M_W @ mu
            with_bounds[held_variables] = bound
            with_bounds = self._balance(with_bounds, held_variables)
            if not np.isfinite(with_bounds).all():
                break
            delta, multipliers = with_bounds, np.zeros(n)
            # A variable stays at its bound only if its multiplier has the right sign.
            multipliers[held_variables] = np.where(
                np.sign(mu) == np.where(is_above[held_variables], 1.0, -1.0), mu, 0.0
            )
        return delta

    def _balance(self, delta: Floats, held_variables: Indices) -> Floats:
        """Return δ with E'δ = 0 to the last bits: the rounding error of each sum is spread over its free variables.

        The result is not finite if all variables of a group are held.
        """
        movable = self.E.copy()
        movable[held_variables] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(delta - movable @ ((self.E.T @ delta) / movable.sum(axis=0)))


def ridges(dtype: np.dtype[Any]) -> Iterator[float]:
    """Yield ridges to try, as shares of the largest diagonal entry, from the rounding of kernel values up to 1e-4."""
    return growing(1e-6 if dtype == np.float32 else 1e-12, 100, 1e-3)
