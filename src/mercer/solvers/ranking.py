"""Ranking by Newton's method on a smoothed hinge of pairs, smoothed less and less.

With smoothing width δ and the difference m = f(x_i) − f(x_j), a pair's multiplier is α = C_ij·min(1, max(0, (1 −
m)/δ)). The pairs with 1 − δ ≤ m < 1 form the zone. Let A be the matrix of their differences, D = diag(C_ij/δ), and β_F
the part of β from the pairs below the zone. A Newton step goes to

    c = β_F + A'α,    (D⁻¹ + AKA')α = 1 − AKβ_F,    by this system, or that of I + A'DAK if it is smaller

1. Start with a δ for which all pairs are in the zone.
2. Take Newton steps with a line search until the problem of this δ is solved.
3. Lower δ, by a step at the new δ with the pairs of the present zone, and go back to 2.

As δ falls, the zone becomes the set of pairs whose α is free, about as many as there are samples, and c becomes the
solution for the hinge itself. While δ is large and a zone has too many pairs to store, the system is computed from sums
over them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dgetrf, dgetrs

from mercer import _core
from mercer.certificates.certificate import Certificate
from mercer.certificates.ranking import certify_ranking
from mercer.places.gram import Gram
from mercer.problems.ranking import RankDual, RankProblem
from mercer.runtime.long_calls import call_interruptibly
from mercer.samples.arrays import Floats, inner, megabytes
from mercer.solvers.conjugate_gradient import iteration_line
from mercer.solvers.deadline import enforce_deadline
from mercer.solvers.ridge_factor import RidgeFactor, ridge_factor, rounding_shares
from mercer.solvers.solution import Stop, StopReason

# First width δ, with all pairs in the zone (f = 0 has m = 0). Each next width is _NEXT_SHARE of the last one; if the
# step to the narrower zone fails, the square root of the share is tried, and so on up to _LARGEST_SHARE.
_FIRST_WIDTH, _NEXT_SHARE, _LARGEST_SHARE = 2.0, 0.2, 0.6
# A step that promises less than this share of the smoothing cost is the last of its width.
_SETTLED_SHARE = 0.01
# A line search may end where the slope is this share of the first slope.
_FLAT_SHARE = 0.1
# Steps with a small enough smoothing cost after which rounding is taken to be the cause of the remaining gap.
_PATIENCE = 25
# Zones wider than _WIDE_ZONE store at most _KEPT_PAIRS pairs per sample. In narrower ones sums over pairs would cancel.
_KEPT_PAIRS, _WIDE_ZONE = 30, 1e-2
# Bytes of work space per pair.
_PAIR_BYTES = 100
# The system of the pairs is solved if it has at most this many times the rows of the other one.
_MANY_PAIRS = 1.2
# Largest number of refinements of a system's solution, each of which must halve the residual.
_REFINEMENTS = 10


@dataclass(frozen=True, eq=False)
class RankSolution:
    """Solution of a ranking problem: coefficients β of f, multipliers α, the number of steps and the stop reason."""

    beta: Floats
    dual: RankDual
    steps: int
    stop_reason: StopReason


def solve_ranking(
    problem: RankProblem, gram: Gram, stop: Stop, start: object = None
) -> tuple[RankSolution, Certificate]:
    """Solve a ranking problem to a relative duality gap of `stop.tol`, and certify the solution."""
    with enforce_deadline(stop, "the kernel matrix was not factored before. Raise max_time, or use fewer samples"):
        search = _NewtonSearch(problem, _RankingSystem(gram, stop), stop)
    try:
        with _core.TimeLimit(stop.seconds):
            reason = search.run()
    except _core.OutOfTime:
        reason = "max_time"
    beta, dual, _ = search.best_so_far()
    certificate = certify_ranking(problem, gram.proof, beta, dual, stop.tol)
    if reason == "converged" and not certificate.relative_gap <= stop.tol:
        reason = "rounding floor"
    return RankSolution(beta, dual, search.steps, reason), certificate


class _NewtonSearch:
    """State of Newton's method: c, u = Kc and its zone, and the best multipliers so far with β and relative gap."""

    def __init__(self, problem: RankProblem, system: _RankingSystem, stop: Stop) -> None:
        self._problem, self._system, self._stop = problem, system, stop
        n = len(problem.weight)
        self._c, self._u, self.steps = np.zeros(n), np.zeros(n), 0
        self._zone = self._zone_at(self._u, _FIRST_WIDTH)
        # α = 0, written as the multipliers of an f for which every pair has m ≥ 1.
        self.best = np.zeros(n), RankDual(2.0 * problem.level.astype(np.float64), 1.0, np.empty(0)), np.inf

    def run(self) -> StopReason:
        """Take steps until the gap is small enough or a limit ends them; return the stop reason."""
        patience = _PATIENCE
        while True:
            # 1. Compute a Newton step, and the gap of its multipliers.
            zone, tol = self._zone, self._stop.tol
            change, K_change, alpha = self._system.newton(zone, zone.width, self._c)
            if alpha is not None:
                self._keep_if_better(zone, alpha)
                self._keep_if_better(zone, zone.alpha)
            self._stop.report_progress(partial(iteration_line, self.steps, self.best[2] / tol), self.best[2] / tol)
            if self.best[2] <= 0.5 * tol:
                return "converged"
            limit = self._stop.limit(self.steps)
            if limit is not None:
                return limit
            # 2. Take the step with a line search.
            value = self._value(self._c, self._u, zone)
            promised_gain = 0.5 * inner(zone.beta - self._c, K_change)
            has_stepped = self._step(change, K_change, -2 * promised_gain, value)
            zone_is_cheap = self._zone.cost <= 0.3 * tol * abs(value)
            patience -= zone_is_cheap
            if not patience:
                return "converged" if self.best[2] <= tol else "rounding floor"
            # 3. Make the zone narrower once the problem that is smoothed over it is solved.
            zone_is_solved = promised_gain <= _SETTLED_SHARE * self._zone.cost and (
                not zone_is_cheap or patience % 5 == 0
            )
            if (zone_is_solved or not has_stepped) and not self._narrow_zone():
                return "converged" if self.best[2] <= tol else "rounding floor"

    def best_so_far(self) -> tuple[Floats, RankDual, float]:
        """Return β, the multipliers and the gap: the best so far; before the first step, those of the current zone."""
        if self.best[2] == np.inf:
            zone = Zone(self._problem, self._u, self._zone.width, self._system.max_pairs)
            if zone.pairs is not None:
                self._keep_if_better(zone, zone.alpha)
        return self.best

    def _zone_at(self, u: Floats, width: float) -> Zone:
        """Return the sums over pairs at u for hinges that are smoothed over this width.

        A wide zone lists its pairs only if there are few of them per sample.
        """
        max_pairs = self._system.max_pairs
        if width >= _WIDE_ZONE:
            max_pairs = min(max_pairs, _KEPT_PAIRS * len(u))
        return Zone(self._problem, u, width, max_pairs)

    @staticmethod
    def _value(c: Floats, u: Floats, zone: Zone) -> float:
        """Return the smoothed objective ½c'Kc + Σ losses."""
        return 0.5 * inner(c, u) + zone.loss

    def _step(self, change: Floats, K_change: Floats, slope: float, value: float) -> bool:
        """Move along `change` to a slope near zero if that lowers the objective, and return whether it does."""
        self.steps += 1
        low, high, t, slopes = 0.0, 1.0, 1.0, [slope, np.inf]
        for _ in range(30):
            zone = self._zone_at(self._u + t * K_change, self._zone.width)
            slope_t = inner(self._c + t * change - zone.beta, K_change)
            if slope_t <= -_FLAT_SHARE * slope and (t == 1.0 or slope_t >= _FLAT_SHARE * slope):
                break
            low, high, slopes = (low, t, [slopes[0], slope_t]) if slope_t > 0 else (t, high, [slope_t, slopes[1]])
            share = slopes[0] / (slopes[0] - slopes[1]) if slopes[0] < slopes[1] < np.inf else 0.5
            t = low + (high - low) * min(0.9, max(0.1, share))
        c, u = self._c + t * change, self._u + t * K_change
        if not self._value(c, u, zone) < value:
            return False
        self._c, self._u, self._zone = c, u, zone
        return True

    def _narrow_zone(self) -> bool:
        """Continue with a smaller width; return False if differences of u that small are rounding."""
        zone, share = self._zone, _NEXT_SHARE
        while True:
            width = share * zone.width
            old_zone = self._zone_at(self._u, width)
            change, K_change, alpha = self._system.newton(zone, width, self._c)
            if alpha is not None:
                self._keep_if_better(zone, alpha)
            c, u = self._c + change, self._u + K_change
            new_zone = self._zone_at(u, width)
            self.steps += 1
            if self._value(c, u, new_zone) < self._value(self._c, self._u, old_zone):
                self._c, self._u, self._zone = c, u, new_zone
                break
            if share > _LARGEST_SHARE:
                self._zone = old_zone
                break
            share = share**0.5
        return self._zone.width > float(np.finfo(float).eps) * max(1.0, float(np.abs(self._u).max()))

    def _keep_if_better(self, zone: Zone, alpha: Floats) -> None:
        """Store these multipliers of a zone, clipped to their bounds, if their gap is the smallest so far."""
        problem = self._problem
        alpha = np.clip(alpha, 0.0, zone.bound)
        beta = zone.beta_below + zone.row_coefficients(alpha)
        u = self._system.product(beta)
        w = problem.weight
        partner_weight, sums_of_u = problem.sums(u, u - 1.0, w[:, None] * np.column_stack([np.ones(len(u)), u]))[0].T
        primal = 0.5 * inner(beta, u) + problem.C * inner(w, (1 - u) * partner_weight + sums_of_u)
        dual = zone.gain + float(alpha.sum()) - 0.5 * inner(beta, u)
        gap = (primal - dual) / max(abs(dual), float(np.finfo(float).tiny))
        if gap < self.best[2]:
            self.best = beta, RankDual(zone.u, 1.0 - zone.width, alpha), gap


class Zone:
    """Sums over the pairs at one u, and the pairs of the zone themselves if they are few enough.

    `beta_below` is β_F, the part of β from the pairs below the zone, and `gain` is their Σα. `beta` is β_F + A'α with
    the α of u; the problem of this width is solved where c = `beta`. `loss` is the sum of all smoothed hinges, and
    `cost` the gap that smoothing causes.
    """

    def __init__(self, problem: RankProblem, u: Floats, width: float, max_pairs: int) -> None:
        self._problem, self.u, self.width = problem, u, width
        w, C, low = problem.weight, problem.C, 1.0 - width
        V = w[:, None] * np.column_stack([np.ones_like(u), u, u * u])
        better_sums, worse_sums = problem.sums(u, u - low, V[:, :2])
        self.gain = C * inner(w, better_sums[:, 0])
        self.beta_below = C * w * (better_sums[:, 0] - worse_sums[:, 0])
        loss_below = C * inner(w, (1 - 0.5 * width - u) * better_sums[:, 0] + better_sums[:, 1])
        self.pairs = problem.pairs(u, low, 1.0) if problem.count(u, low, 1.0) <= max_pairs else None
        if self.pairs is not None:
            i, j = self.pairs
            self.bound, shortfall = problem.bound(self.pairs), 1.0 - (u[i] - u[j])
            ones, squares = inner(self.bound, shortfall), inner(self.bound, shortfall * shortfall)
            self.alpha = self.bound * (shortfall / width)
            self.beta = self.beta_below + problem.row_coefficients(self.pairs, self.alpha)
        else:
            winner_sums, loser_sums = self._sums_in_zone(V)
            (n0, n1, n2), (f0, f1, _) = winner_sums.T, loser_sums.T
            ones = C * inner(w, (1 - u) * n0 + n1)
            squares = C * inner(w, (1 - u) ** 2 * n0 + 2 * (1 - u) * n1 + n2)
            self.beta = self.beta_below + C / width * w * ((1 - u) * n0 + n1 - (1 + u) * f0 + f1)
        self.loss = loss_below + squares / (2 * width)
        self.cost = max(0.0, ones - squares / width)

    def _sums_in_zone(self, V: Floats) -> tuple[Floats, Floats]:
        """Return `RankProblem.sums` over the pairs of the zone."""
        inner_sums, outer_sums = (self._problem.sums(self.u, self.u - t, V) for t in (1.0, 1.0 - self.width))
        return inner_sums[0] - outer_sums[0], inner_sums[1] - outer_sums[1]

    def row_coefficients(self, alpha: Floats) -> Floats:
        """Return A'α: the part of β from the pairs of the zone."""
        assert self.pairs is not None
        return self._problem.row_coefficients(self.pairs, alpha)

    def times_curvature(self, V: Floats) -> Floats:
        """Return A'DAV, the Hessian of the smoothed losses in u times V.

        A maps u to the differences u_i − u_j of the zone's pairs, and D holds their bounds divided by the width.
        """
        w, n = self._problem.weight[:, None], len(V)
        if self.pairs is None:
            better_sums, worse_sums = self._sums_in_zone(w * np.column_stack([np.ones(n), V]))
            total = better_sums + worse_sums
            return np.asarray(self._problem.C / self.width * w * (total[:, :1] * V - total[:, 1:]))
        (i, j), d = self.pairs, self.bound / self.width
        degree = np.bincount(i, d, n) + np.bincount(j, d, n)
        pair_weights: Any = sp.csr_array((d, (i, j)), shape=(n, n))
        pair_weights = pair_weights + pair_weights.T
        if V.shape[1] > 1 and pair_weights.nnz > 0.05 * n * n:
            pair_weights = pair_weights.toarray()
        return np.asarray(degree[:, None] * V - pair_weights @ V)


class _RankingSystem:
    """Newton systems with K, or, for a linear kernel with fewer columns than rows, with the samples F, K = FF'."""

    def __init__(self, gram: Gram, stop: Stop) -> None:
        n, linear, self._n_threads = gram.n, gram.linear, stop.n_threads
        self._F = None
        if linear is not None and linear.d < n:
            self._F = np.sqrt(linear.scale) * linear.times(np.eye(linear.d))
            self._F -= self._F.mean(axis=0)  # centred: as Σβ = 0, differences of f stay the same, and cancel less
        self._rows = n if self._F is None else self._F.shape[1]
        size = 32 * n * self._rows
        if size > gram.budget:
            raise MemoryError(
                f"ranking {n:,} samples takes {megabytes(size)} beside the data, but cache_size allows "
                f"{megabytes(gram.budget)}; raise it, or use a linear kernel, on mercer.features.Nystrom for another"
            )
        self.max_pairs = max(n, (gram.budget - size) // _PAIR_BYTES)
        self._K = gram.full() if self._F is None else np.empty((0, 0))

    def product(self, v: Floats) -> Floats:
        """Return Kv."""
        return np.asarray(self._K @ v if self._F is None else self._F @ (self._F.T @ v))

    def newton(self, zone: Zone, width: float, c: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Return the change of c and of u = Kc by a Newton step, and its α if the zone stores its pairs, else None.

        The step is for the smoothing width `width` with the pairs of `zone`, whose own width may be larger.
        """
        stretch = zone.width / width
        if zone.pairs is None:
            rho = zone.beta_below + stretch * (zone.beta - zone.beta_below) - c
            change = rho - stretch * zone.times_curvature(self._output_solver(zone, stretch)(rho)[:, None])[:, 0]
            return change, self.product(change), None
        i, j = zone.pairs
        solve, alpha, d = self._pair_solver(zone, width), zone.alpha, zone.bound / width
        last = np.inf
        for _ in range(_REFINEMENTS):
            u = self.product(zone.beta_below + zone.row_coefficients(alpha))
            residual = 1.0 - (u[i] - u[j]) - alpha / d
            largest = float(np.abs(residual).max(initial=0.0))
            if not largest < 0.5 * last:
                break
            last, alpha = largest, alpha + solve(residual)
        change = zone.beta_below + zone.row_coefficients(alpha) - c
        return change, self.product(change), alpha

    def _output_solver(self, zone: Zone, stretch: float) -> Callable[[Floats], Floats]:
        """Return the function that maps ρ to u = Kc with c = (I + A'DAK)⁻¹ρ."""
        if self._F is None:
            M = stretch * zone.times_curvature(self._K)
            M.flat[:: len(M) + 1] += 1.0
            # Transposed, in the order of LAPACK. If rounding makes M singular, the step is not finite, and not taken.
            lu, pivots, _ = call_interruptibly(dgetrf, M.T, overwrite_a=True)
            return lambda rho: self.product(dgetrs(lu, pivots, rho, trans=1)[0])
        F, H = self._F, self._F.T @ zone.times_curvature(self._F)
        factor = self._factor(stretch * 0.5 * (H + H.T), 1.0)
        return lambda rho: np.asarray(F @ factor.solve((F.T @ rho)[:, None])[:, 0])

    def _pair_solver(self, zone: Zone, width: float) -> Callable[[Floats], Floats]:
        """Return the function that maps a right-hand side r to the α with (D⁻¹ + AKA')α = r."""
        assert zone.pairs is not None
        (i, j), d = zone.pairs, zone.bound / width
        if len(i) <= _MANY_PAIRS * self._rows:
            rows = self._K[i] - self._K[j] if self._F is None else self._F[i] - self._F[j]
            factor = self._factor(rows[:, i] - rows[:, j] if self._F is None else rows @ rows.T, 1.0 / d)
            return lambda rhs: factor.solve(rhs[:, None])[:, 0]
        outputs = self._output_solver(zone, zone.width / width)

        def solve(rhs: Floats) -> Floats:
            u = outputs(zone.row_coefficients(d * rhs))
            return np.asarray(d * (rhs - (u[i] - u[j])))

        return solve

    def _factor(self, A: Floats, diagonal: Floats | float) -> RidgeFactor:
        """Factor A + diag(diagonal); raise ValueError if A is indefinite beyond rounding."""
        A.flat[:: len(A) + 1] += diagonal
        factor = ridge_factor(A, rounding_shares(10, 1e-6), self._n_threads, unit=np.diagonal(A).copy())
        if factor is None:
            raise ValueError(
                "the kernel matrix is not positive semi-definite, and ranking has no minimum then; use a positive "
                "definite kernel, or, where this is one, scale the features: rounding broke it"
            )
        return factor
