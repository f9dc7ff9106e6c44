"""From one solution of a family of problems to another, one event after the other.

While the set F of free variables stays the same, β and b solve linear equations whose right sides are affine in t, and
so are β, b and the residuals ρ = p − Kβ − dβ − b. The next event is where a free variable reaches a bound, or where the
residual of a bounded one would change its sign:

    β at its lower bound: ρ ≤ 0        free: ρ = 0        β at its upper bound: ρ ≥ 0

A variable that would make the equations singular never joins F (Sentelle, Anagnostopoulos and Georgiopoulos, 2016).
Its row is a combination of the free ones' rows. Moving it, and the free ones against it, changes no residual; it moves
until it, or one of them, has reached a bound, and then takes that one's place. Values follow from the sets alone, by a
fresh solve after every event, so that errors do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Flags, Floats, sums_by
from mercer.solvers.active_set.family import Family
from mercer.solvers.active_set.free_system import FreeSystem
from mercer.solvers.active_set.kernel_rows import KernelRows

LOWER, FREE, UPPER = -1, 0, 1

# What is left of a variable's k(x, x) beside the free ones, as a share of the terms that cancelled, below which it
# depends on them: some hundred roundings of float64.
_DEPENDENT_SHARE = 3e-14
# Slacks and residuals within this of zero are ties, in units of f.
_TIE = 1e-12
# Slopes below this share of the largest possible one are rounding.
_FLAT_SHARE = 1e-14
# A dependent variable's residual that would change by less than this, in units of f, over all of t is not followed.
_STILL = 1e-11
_EPS = float(np.finfo(float).eps)


class Stalled(Exception):
    """More events at one t than degeneracy explains: rounding decides."""


@dataclass(frozen=True, eq=False)
class Segment:
    """β of the free variables, b and all residuals from `t` on: a column with the values there, and one with slopes."""

    t: float
    x: Floats
    b: Floats
    rho: Floats

    def free_at(self, t: float) -> Floats:
        return np.asarray(self.x[:, 0] + (t - self.t) * self.x[:, 1])

    def rho_at(self, t: float) -> Floats:
        return np.asarray(self.rho[:, 0] + (t - self.t) * self.rho[:, 1])

    def b_at(self, t: float) -> float:
        return float(self.b[0] + (t - self.t) * self.b[1])


class Walk:
    """The sets of variables at some t, and how they change with t."""

    def __init__(self, family: Family, K: KernelRows, side: NDArray[np.int8], t: float) -> None:
        """`side` says at which bound each variable is; those that are free must not depend on one another."""
        self.family, self.K, self.t = family, K, t
        self.side = side.copy()
        self.order: list[int] = np.flatnonzero(side == FREE).tolist()
        self.log: list[tuple[float, int, int]] = []  # t, variable and where it went
        self.steps = 0
        kappa = K.diagonal[family.row] + family.d
        self.unit = float(kappa.max(initial=0.0)) or 1.0
        self.kappa = np.where(kappa > 1e-8 * self.unit, kappa, self.unit)
        self.system = FreeSystem(self.unit if family.total is not None else 0.0)
        same = (family.lower.start == family.upper.start) & (family.lower.slope == family.upper.slope)
        self.fixed: Flags = np.asarray(same)
        self._still = np.zeros(family.n, dtype=np.bool_)
        self._rows = np.empty((32 + 2 * len(self.order), K.n))
        if self.order:
            rows, m = family.row[self.order], len(self.order)
            self._rows[:m] = K.rows(rows)
            self.system.fill(self._rows[:m, rows] + np.diag(family.d[self.order]))
        moves = np.abs(family.upper.slope) + np.abs(family.lower.slope)
        self._flat = _FLAT_SHARE * (self.unit * float(moves.sum()) + float(np.abs(family.p.slope).max(initial=0.0)))
        self.restart()

    # --- where things are -------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Recompute what the bounded variables add to Kβ and Σβ."""
        family, bounded = self.family, self.side != FREE
        upper = self.side == UPPER
        self._at = np.zeros((family.n, 2))
        for column, part in enumerate(("start", "slope")):
            high, low = getattr(family.upper, part), getattr(family.lower, part)
            self._at[:, column] = np.where(bounded, np.where(upper, high, low), 0.0)
        self._u = np.empty((self.K.n, 2))
        for column in range(2):
            coefficients = sums_by(family.row, self._at[:, column], self.K.n)
            self._u[:, column] = self.K.product(coefficients) if coefficients.any() else 0.0
        self._sum = self._at.sum(axis=0)

    def fork(self, family: Family) -> Walk:
        """A copy at t = 0 of a family that begins where this one is, and differs in the bounds of few variables.

        Whoever asks puts those of these variables that are bounded onto their bounds again.
        """
        other = object.__new__(Walk)
        other.__dict__.update(vars(self))
        other.family, other.t, other.log, other.steps = family, 0.0, [], 0
        for name in ("side", "order", "_at", "_u", "_sum", "_still", "_rows"):
            setattr(other, name, getattr(self, name).copy())
        other.system = self.system.copy()
        moves = np.abs(family.upper.slope) + np.abs(family.lower.slope)
        other._flat = _FLAT_SHARE * self.unit * float(moves.sum())
        return other

    def with_family(self, family: Family, t: float) -> Walk:
        """The same sets on the way of another family of problems with the same matrix."""
        return Walk(family, self.K, self.side, t)

    def segment(self) -> Segment:
        """The values as long as the sets stay the same."""
        family, F, first = self.family, self.order, self.system.first
        if first and not F:
            return self._resting()
        # At t and in t: the values at t = 0 may be huge, and cancel.
        here = np.array([[1.0, 0.0], [self.t, 1.0]])
        p = np.column_stack([family.p.start, family.p.slope]) @ here
        bounded = self._u @ here
        right = np.empty((self.system.size, 2))
        if family.total is not None:
            right[0] = self.unit * (np.array([family.total.start, family.total.slope]) - self._sum) @ here
        right[first:] = p[F] - bounded[family.row[F]]
        x = self.system.solve(right)
        b = self.unit * x[0] if first else np.zeros(2)
        u = bounded + self._rows[: len(F)].T @ x[first:] if F else bounded
        rho = p - u[family.row] - b
        if family.d.any():
            beta = self._at @ here
            beta[F] = x[first:]
            rho -= family.d[:, None] * beta
        return Segment(self.t, x[first:], b, rho)

    def _resting(self) -> Segment:
        """No variable is free, and b is in the middle of its interval at this t."""
        h = self._gradient()
        now = h[:, 0] + self.t * h[:, 1]
        below, above = now[(self.side == LOWER) & ~self.fixed], now[(self.side == UPPER) & ~self.fixed]
        ends = [end for end in (below.max(initial=-np.inf), above.min(initial=np.inf)) if np.isfinite(end)]
        b = np.array([float(np.mean(ends)) if ends else 0.0, 0.0])
        return Segment(self.t, np.empty((0, 2)), b, np.column_stack([now, h[:, 1]]) - b)

    def _gradient(self) -> Floats:
        """p − Kβ − dβ where no variable is free."""
        p = np.column_stack([self.family.p.start, self.family.p.slope])
        return np.asarray(p - self._u[self.family.row] - self.family.d[:, None] * self._at)

    def beta(self, t: float, segment: Segment | None = None) -> Floats:
        """β at t, in the box."""
        segment = segment or self.segment()
        beta = self._at[:, 0] + t * self._at[:, 1] if math.isfinite(t) else self._at[:, 0].copy()
        beta[self.order] = segment.free_at(t)
        return np.clip(beta, self.family.lower(t), self.family.upper(t))

    def energy(self, t: float, segment: Segment) -> float:
        """β'Kβ at t."""
        bounded, u = self._at[:, 0] + t * self._at[:, 1], self._u[:, 0] + t * self._u[:, 1]
        row, F = self.family.row, self.order
        x = segment.free_at(t)
        # (Kβ)_F from the equations of the free variables
        total = self.family.p(t)[F] - self.family.d[F] * x - segment.b_at(t)
        return max(0.0, float(bounded @ u[row] + x @ (u[row[F]] + total)))

    # --- moving -----------------------------------------------------------------------------------------------------

    def walk(self, end: float, seen: Callable[[Walk, Segment], bool] | None = None) -> None:
        """Follow t up to `end`; `seen` is called at every event, before the sets change, and may end the walk."""
        at_once, most = 0, 4 * self.family.n + 200
        random = np.random.default_rng(0)
        while True:
            before = self.t
            if self.system.first and not self.order:
                found = self._meeting(end)
                if found is None:
                    self.t = end
                    return
                self.t, v = found
                if seen is not None and seen(self, self._resting()):
                    return
                self.let_in(v)
            else:
                segment = self.segment()
                event = self._next(segment, end, random if at_once > self.family.n + 50 else None)
                if event is None:
                    self.t = end
                    return
                self.t, v, hit = event
                if seen is not None and seen(self, segment):
                    return
                if self.side[v] == FREE:
                    self.let_go(v, hit)
                else:
                    self._enter(v, segment, end)
            self.steps += 1
            at_once = 0 if self.t > before + 1e-13 * abs(before) else at_once + 1
            if at_once > most:
                raise Stalled(f"{at_once} events at t={self.t}")

    def _next(self, segment: Segment, end: float, random: np.random.Generator | None) -> tuple[float, int, int] | None:
        """The next event's t, variable and, for a free one, the bound it reaches."""
        family, t, F = self.family, self.t, self.order
        x, scale = segment.free_at(t), self.kappa[F]
        low = scale * (x - (family.lower.start[F] + t * family.lower.slope[F]))
        high = scale * (family.upper.start[F] + t * family.upper.slope[F] - x)
        low_slope = scale * (segment.x[:, 1] - family.lower.slope[F])
        high_slope = scale * (family.upper.slope[F] - segment.x[:, 1])
        room = self.side * segment.rho_at(t)
        room_slope = self.side * segment.rho[:, 1]
        room_slope[self.fixed | self._still] = 0.0
        room = np.concatenate([low, high, room])
        slope = np.concatenate([low_slope, high_slope, room_slope])
        falls = np.flatnonzero(slope < -self._flat)
        if len(falls) == 0:
            return None
        room, slope = np.maximum(room[falls], 0.0), -slope[falls]
        tie = _TIE + 2 * _EPS * self.unit * float(np.abs(self._at[:, 0] + t * self._at[:, 1]).sum() + np.abs(x).sum())
        steps = room / slope
        latest = float(((room + tie) / slope).min())
        among = np.flatnonzero(steps <= latest)
        k = among[np.argmax(slope[among])] if random is None else random.choice(among)
        step = float(steps[k])
        if t + step >= end:
            return None
        place = int(falls[k])
        if place < 2 * len(F):
            return t + step, F[place % len(F)], LOWER if place < len(F) else UPPER
        return t + step, place - 2 * len(F), FREE

    def _meeting(self, end: float) -> tuple[float, int] | None:
        """With no free variable b lies in an interval. Where that closes, a variable at its end becomes free."""
        family, t = self.family, self.t
        assert family.total is not None
        h = self._gradient()
        below = np.flatnonzero((self.side == LOWER) & ~self.fixed)
        above = np.flatnonzero((self.side == UPPER) & ~self.fixed)
        drift = float(family.total.slope - self._sum[1])
        if abs(drift) > self._flat / self.unit:  # the sum must change, so that b is at the end that allows it
            movers = below if drift > 0 else above
            if len(movers) == 0:
                raise Stalled(f"no variable can take up the sum at t={t}")
            now = h[movers, 0] + t * h[movers, 1]
            return t, int(movers[np.argmax(now) if drift > 0 else np.argmin(now)])
        if len(below) == 0 or len(above) == 0:
            return None

        def ends(at: float) -> tuple[int, int]:
            if math.isinf(at):
                return int(below[np.argmax(h[below, 1])]), int(above[np.argmin(h[above, 1])])
            return (
                int(below[np.argmax(h[below, 0] + at * h[below, 1])]),
                int(above[np.argmin(h[above, 0] + at * h[above, 1])]),
            )

        at = end
        while True:  # Newton's method from the right, on a convex function of t
            i, j = ends(at)
            start, slope = h[i] - h[j]
            if slope <= self._flat or (math.isfinite(at) and start + at * slope <= 0):
                return None if at == end else (max(t, at), i)
            root = -start / slope
            if root <= t:
                return t, i
            if not root < at:
                return at, i
            at = root

    def _enter(self, v: int, segment: Segment, end: float) -> None:
        z = self.combination(v)
        if z is None:
            self.let_in(v)
            return
        reach = end - self.t if math.isfinite(end) else max(abs(self.t), 1.0)
        if abs(float(segment.rho[v, 1])) * reach <= _STILL:
            self._still[v] = True
            return
        self._exchange(v, z, segment)

    def combination(self, v: int) -> Floats | None:
        """The combination of the free variables that v equals, or None where v is independent of them."""
        if not self.order:
            own = float(self.K.diagonal[self.family.row[v]] + self.family.d[v])
            return None if self.system.first or own > _DEPENDENT_SHARE * self.unit else np.empty(0)
        column = self.system.column(self._rows[: len(self.order), self.family.row[v]])
        z = self.system.solve(column)
        own = float(self.K.diagonal[self.family.row[v]] + self.family.d[v])
        left = own - float(column @ z)
        # z solves its equations up to rounding, and what is left is wrong by z'|M|z roundings.
        sizes, M = np.abs(z), self.system.matrix
        terms = own + float(np.diagonal(M).max()) + float(sizes @ (np.abs(M) @ sizes))
        return None if left > _DEPENDENT_SHARE * terms else z[self.system.first :]

    def _exchange(self, v: int, z: Floats, segment: Segment) -> None:
        """v moves into its box, and the free ones against it, until one of them has reached a bound."""
        family, t, F = self.family, self.t, np.array(self.order, dtype=np.intp)
        inward = -self.side[v]
        moves = -inward * z
        x = segment.free_at(t)
        ends = np.where(moves > 0, family.upper(t)[F], family.lower(t)[F])
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(np.abs(moves) > 1e-9, np.maximum((ends - x) / moves, 0.0), np.inf)
        own = float((family.upper(t) - family.lower(t))[v])
        least = float(steps.min(initial=np.inf))
        if own <= least:
            self.put(v, int(-self.side[v]))
            return
        among = np.flatnonzero(steps <= least * (1 + 1e-12))
        k = int(among[np.argmax(np.abs(moves[among]))])
        self.let_go(int(F[k]), UPPER if moves[k] > 0 else LOWER)
        self.let_in(v)

    # --- the sets ---------------------------------------------------------------------------------------------------

    def let_in(self, v: int) -> None:
        """Make a variable free; it must not depend on those that are."""
        family, m = self.family, len(self.order)
        row = self.K.row(int(family.row[v]))
        self._leave_bound(v, row)
        self.side[v] = FREE
        if m == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        column = self.system.column(self._rows[:m, family.row[v]])
        self.system.add(column, float(self.K.diagonal[family.row[v]] + family.d[v]))
        self._rows[m] = row
        self.order.append(v)
        self.log.append((self.t, v, FREE))

    def let_go(self, v: int, side: int) -> None:
        """Put a free variable onto a bound."""
        k, last = self.order.index(v), len(self.order) - 1
        self._join_bound(v, side, self._rows[k])
        self.system.remove(k)
        self._rows[k] = self._rows[last]
        self.order[k] = self.order[last]
        self.order.pop()
        self._still[:] = False

    def put(self, v: int, side: int) -> None:
        """Put a variable that is not free onto a bound."""
        row = self.K.row(int(self.family.row[v]))
        self._leave_bound(v, row)
        self._join_bound(v, side, row)

    def _leave_bound(self, v: int, row: Floats) -> None:
        at = self._at[v]
        if at.any():
            self._u -= np.multiply.outer(row, at)
            self._sum -= at
            self._at[v] = 0.0

    def _join_bound(self, v: int, side: int, row: Floats) -> None:
        bound = self.family.upper if side == UPPER else self.family.lower
        at = np.array([bound.start[v], bound.slope[v]])
        self.side[v] = side
        self._at[v] = at
        self.log.append((self.t, v, side))
        if at.any():
            self._u += np.multiply.outer(row, at)
            self._sum += at
