"""A dual problem that moves along a line; which of its variables are free, which are at a bound, and what follows.

    maximise  p(t)'β − ½ β'(K + diag d)β   subject to  lower(t) ≤ β ≤ upper(t),  Σβ = total(t)

with affine functions of t. With bounds t·C_i this is the path in C. With p(0) chosen so that some β is optimal, and
p(1) the targets themselves, it leads from that β to the solution.

Where F is free, β_F and b solve (K_FF + diag d_F)β_F + b = p_F − K_FB β_B and Σβ = total. A variable that would make
these equations singular depends on the free ones: its row is a combination of theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Flags, Floats, Indices, sums_by
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.active_set.free_system import FreeSystem, by_columns


@dataclass(frozen=True, eq=False)
class Line:
    """start + t·slope, elementwise; an infinite start has the slope zero."""

    start: Any
    slope: Any

    def __call__(self, t: float) -> Any:
        return self.start + t * self.slope


@dataclass(frozen=True, eq=False)
class Family:
    """The problems, with at most one equality for all variables (None: no bias)."""

    p: Line
    lower: Line
    upper: Line
    total: Line | None
    d: Floats
    row: NDArray[np.int64]

    @property
    def n(self) -> int:
        return len(self.d)

    @classmethod
    def in_bounds(cls, problem: DualProblem) -> Family:
        """This problem with all its bounds, and its total, multiplied by t."""
        zero = np.zeros(problem.n_variables)
        total = Line(0.0, float(problem.totals[0])) if len(problem.totals) else None
        bounds = Line(zero, problem.lower), Line(zero, problem.upper)
        return cls(Line(problem.p, zero), *bounds, total, problem.d, problem.row)

    @classmethod
    def in_targets(cls, problem: DualProblem, p: Floats, total: float) -> Family:
        """From other targets and another total at t = 0 to this problem at t = 1."""
        zero = np.zeros(problem.n_variables)
        sums = Line(total, float(problem.totals[0]) - total) if len(problem.totals) else None
        bounds = Line(problem.lower, zero), Line(problem.upper, zero)
        return cls(Line(p, problem.p - p), *bounds, sums, problem.d, problem.row)


class KernelRows:
    """K of n samples, a row at a time; without `keep` all of it is computed when asked for."""

    def __init__(self, gram: Gram, *, keep: bool = True) -> None:
        self.gram, self._keep = gram, keep
        self.n = gram.n
        self.diagonal: Floats = np.asarray(gram.diagonal, dtype=np.float64)
        self._everything = np.arange(gram.n)

    @cached_property
    def whole(self) -> Floats | None:
        """All of K, if there is room: the rest of the budget is for the rows and the system of the free variables."""
        if not self._keep or 8 * self.n**2 > 0.6 * self.gram.budget:
            return None
        return np.asarray(self.gram.full(np.float64), dtype=np.float64)

    def row(self, i: int) -> Floats:
        found: Floats = self.rows(np.array([i]))[0] if self.whole is None else self.whole[i]
        return found

    def rows(self, which: Indices) -> Floats:
        return self.gram.block(which, self._everything) if self.whole is None else self.whole[which]

    def product(self, coefficients: Floats) -> Floats:
        """K times one column."""
        if self.whole is None:
            return self.gram.product(coefficients)
        used = np.flatnonzero(coefficients)
        if 2 * len(used) > self.n:
            return np.asarray(self.whole @ coefficients)
        return np.asarray(coefficients[used] @ self.whole[used])


@dataclass(frozen=True, eq=False)
class Segment:
    """β of the free variables, b and all residuals from `t` on: a column with the values there, and one with slopes."""

    t: float
    x: Floats
    b: Floats
    rho: Floats
    near: Indices | None = None  # the variables whose residuals these are; None: all
    speed: float = math.nan  # ‖w'‖, from above

    def free_at(self, t: float) -> Floats:
        return np.asarray(self.x[:, 0] + (t - self.t) * self.x[:, 1])

    def rho_at(self, t: float) -> Floats:
        return np.asarray(self.rho[:, 0] + (t - self.t) * self.rho[:, 1])

    def b_at(self, t: float) -> float:
        return float(self.b[0] + (t - self.t) * self.b[1])


@dataclass(eq=False)
class Near:
    """Variables whose residuals are followed, their kernel values with the free ones, and how far w and b may still
    move until another residual could change its sign."""

    which: Indices
    rows: Floats
    w: float
    b: float

    def add_row(self, m: int, row: Floats, places: NDArray[np.int64]) -> bool:
        """The kernel values of a new free variable, if there is room."""
        if m >= len(self.rows):
            return False
        self.rows[m, : len(self.which)] = row[places[self.which]]
        return True

    def add(self, v: int, column: Floats) -> bool:
        """One more variable, if there is room."""
        if (self.which == v).any():
            return True
        if len(self.which) >= self.rows.shape[1]:
            return False
        self.rows[: len(column), len(self.which)] = column
        self.which = np.append(self.which, v)
        return True


LOWER, FREE, UPPER = -1, 0, 1

# What is left of a variable's k(x, x) beside the free ones, as a share of the terms that cancelled, below which it
# depends on them: some hundred roundings of float64.
_DEPENDENT_SHARE = 3e-14
# From this many variables on only those residuals are followed that could change their sign soon.
_MANY = 512
# Digits of Kβ that may be lost, in units of f, and how many times what computing it afresh would lose.
_DRIFT, _DRIFT_TIMES = 1e-10, 16.0
_EPS = float(np.finfo(float).eps)


class Sets:
    """The sets of variables at some t of a family of problems."""

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
        self._last: tuple[int, Floats | None] = (-1, None)  # a variable and its combination of the free ones
        self._rows = np.empty((32 + 2 * len(self.order), K.n))
        if self.order:
            rows, m = family.row[self.order], len(self.order)
            self._rows[:m] = K.rows(rows)
            self.system.fill(self._rows[:m, rows] + np.diag(family.d[self.order]))
        self._p = np.column_stack([family.p.start, family.p.slope])
        self.largest_target = float(np.abs(self._p).max(initial=0.0))
        # What is far stays far for a while only if w and b alone move residuals.
        self._looks_around = family.n >= _MANY and not family.d.any() and not family.p.slope.any()
        self._near: Near | None = None
        self.n_near, self.looked_at = 0, 0  # how many they are, and at which step they were chosen
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
        self._lost = np.zeros(2)  # what changes since then may have rounded off, at t = 0 and of slopes

    @property
    def _has_drifted(self) -> bool:
        """Whether changes have cost more digits of Kβ than computing it afresh would."""
        lost = float(self._lost[0] + abs(self.t) * self._lost[1])
        if lost <= _DRIFT:
            return False
        now = np.abs(self._at[:, 0] + self.t * self._at[:, 1])
        return lost > _DRIFT_TIMES * _EPS * self.unit * float(now.sum())

    def flat(self, slopes: Floats) -> float:
        """The size below which slopes of residuals are rounding, where the free β have these slopes."""
        terms = self.unit * (float(np.abs(self._at[:, 1]).sum()) + float(np.abs(slopes).sum()))
        return 1e-14 * (terms + float(np.abs(self._p[:, 1]).max(initial=0.0))) + float(self._lost[1])

    def fork(self, family: Family) -> Self:
        """A copy at t = 0 of a family that begins where this one is, and differs in the bounds of few variables.

        Whoever asks puts those of these variables that are bounded onto their bounds again.
        """
        other = object.__new__(type(self))
        other.__dict__.update(vars(self))
        other.family, other.t, other.log, other.steps = family, 0.0, [], 0
        for name in ("side", "order", "_at", "_u", "_sum", "_lost", "_still", "_rows"):
            setattr(other, name, getattr(self, name).copy())
        other.system = self.system.copy()
        other._p = np.column_stack([family.p.start, family.p.slope])
        other._near = None
        return other

    def with_family(self, family: Family, t: float) -> Self:
        """These sets on the way of another family of problems with this matrix."""
        return type(self)(family, self.K, self.side, t)

    def segment(self, *, near: bool = False) -> Segment:
        """The values as long as the sets stay the same; of the residuals only the `near` ones, if they will do."""
        family, F, first = self.family, self.order, self.system.first
        if first and not F:
            return self._resting()
        # At t and in t: the values at t = 0 may be huge, and cancel.
        here = np.array([[1.0, 0.0], [self.t, 1.0]])
        right, bounded = self._right(here)
        # For the order of events residuals of 1e-11 of the targets, far below `tol`, will do.
        rough = near and self._looks_around
        enough = 1e-11 * self.largest_target * np.array([1.0, 1.0 / (abs(self.t) or 1.0)]) if rough else None
        x = self.system.solve(right, enough)
        b, x = (self.unit * x[0] if first else np.zeros(2)), x[first:]
        known = self._near if near and self._near is not None else None
        if known is None:
            u = self._u @ here + by_columns(self._rows[: len(F)].T, x) if F else self._u @ here
            rho = self._p @ here - u[family.row] - b
            if family.d.any():
                beta = self._at @ here
                beta[F] = x
                rho -= family.d[:, None] * beta
            return Segment(self.t, x, b, rho, None, self._speed(x[:, 1], bounded[:, 1], b[1]))
        u = self._u[family.row[known.which]] @ here + by_columns(known.rows[: len(F), : len(known.which)].T, x)
        rho = self._p[known.which] @ here - u - b
        return Segment(self.t, x, b, rho, known.which, self._speed(x[:, 1], bounded[:, 1], b[1]))

    def _right(self, here: Floats) -> tuple[Floats, Floats]:
        """The right sides of the equations, and what the bounded variables add to the free ones' Kβ; `here` is (1, t)
        or columns of such."""
        family, F, first = self.family, self.order, self.system.first
        bounded = self._u[family.row[F]] @ here
        right = np.empty((self.system.size, *here.shape[1:]))
        if family.total is not None:
            right[0] = self.unit * (np.array([family.total.start, family.total.slope]) - self._sum) @ here
        right[first:] = self._p[F] @ here - bounded
        return right, bounded

    def _speed(self, x: Floats, u: Floats, b: float) -> float:
        """‖w'‖ from the slopes of the free β, of Kβ without them, and of b."""
        F, at = self.order, self._at[:, 1]
        parts = at @ self._u[self.family.row, 1], x @ (u + self._p[F, 1] - b - self.family.d[F] * x)
        return math.sqrt(max(0.0, float(sum(parts))) + 1e-12 * float(np.abs(parts).sum()))

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
        return np.asarray(self._p - self._u[self.family.row] - self.family.d[:, None] * self._at)

    def beta(self, t: float, segment: Segment | None = None) -> Floats:
        """β at t, in the box."""
        F, lower, upper = self.order, self.family.lower(t), self.family.upper(t)
        beta = self._at[:, 0] + t * self._at[:, 1]
        beta[F] = (segment or self.segment()).free_at(t)
        nearest = np.clip(beta, lower, upper)
        if not self._is_rounding(beta - nearest, nearest):
            nearest[F] = self._held(t, beta[F], lower[F], upper[F])
        return nearest

    def gradient(self, t: float, beta: Floats) -> Floats:
        """p − Kβ − dβ at t, where the bounded ones of β are at their bounds."""
        u = self._u[:, 0] + t * self._u[:, 1] + self._rows[: len(self.order)].T @ beta[self.order]
        return np.asarray(self.family.p(t) - u[self.family.row] - self.family.d * beta)

    def _is_rounding(self, outside: Floats, beta: Floats) -> bool:
        """Whether moving β by this much changes f by no more than the roundings of f itself."""
        return float(self.kappa @ np.abs(outside)) <= 2 * _EPS * self.unit * float(np.abs(beta).sum())

    def _held(self, t: float, x: Floats, lower: Floats, upper: Floats) -> Floats:
        """The free β in their box: those outside are held at a bound, one by one, while the others solve their
        equations again.

        Where free variables nearly depend on one another, rounding moves them along a direction that f does not feel.
        Holding one of them takes that direction away; the one with the longest way back along it brings back all.
        """
        first, rest, place = self.system.first, self.system.copy(), np.arange(len(x))
        right, x = self._right(np.array([1.0, t]))[0], x.copy()
        while True:
            outside = x[place] - np.clip(x[place], lower[place], upper[place])
            every = np.zeros(self.family.n)
            every[np.array(self.order)[place]] = outside
            if len(place) == 0 or self._is_rounding(every, x):
                return np.clip(x, lower, upper)
            k = int(np.argmax(np.abs(outside) * rest.moved_by()))
            held = int(place[k])
            x[held] = np.clip(x[held], lower[held], upper[held])
            right -= x[held] * self.system.matrix[:, first + held]
            rest.remove(k)
            place[k] = place[-1]
            place = place[:-1]
            x[place] = rest.solve(right[np.append(np.arange(first), first + place)])[first:]

    def sum_of(self, factors: Floats, segment: Segment) -> tuple[float, float]:
        """The sum of these multiples of β where the segment begins, and its slope without what is rounding."""
        start, slope = factors @ (self._at[:, 0] + segment.t * self._at[:, 1]), factors @ self._at[:, 1]
        own, moves = factors[self.order], segment.x[:, 1]
        moves = np.where(self.kappa[self.order] * np.abs(moves) > self.flat(moves), moves, 0.0)
        return float(start + own @ segment.x[:, 0]), float(slope + own @ moves)

    def energy(self, t: float, segment: Segment) -> float:
        """β'Kβ at t."""
        bounded, u = self._at[:, 0] + t * self._at[:, 1], self._u[:, 0] + t * self._u[:, 1]
        row, F = self.family.row, self.order
        x = segment.free_at(t)
        # (Kβ)_F from the equations of the free variables
        total = self.family.p(t)[F] - self.family.d[F] * x - segment.b_at(t)
        return max(0.0, float(bounded @ u[row] + x @ (u[row[F]] + total)))

    # --- who depends on whom -----------------------------------------------------------------------------------------

    def combination(self, v: int) -> Floats | None:
        """The combination of the free variables that v equals, or None where v is independent of them."""
        if self.system.first and not self.order:
            return None
        z, left, terms = self._split(v)
        if left > _DEPENDENT_SHARE * terms:
            self._last = v, z
            return None
        return z[self.system.first :]

    def distance(self, v: int) -> float:
        """The squared distance of v's image from the affine hull of the free ones (without bias: from their span)."""
        return np.inf if self.system.first and not self.order else max(0.0, self._split(v)[1])

    def _split(self, v: int) -> tuple[Floats, float, float]:
        """v's combination of the free ones, the squared length of what is left, and the terms that cancelled in it."""
        own = float(self.K.diagonal[self.family.row[v]] + self.family.d[v])
        if not self.order:
            return np.empty(0), own, self.unit
        column = self.system.column(self._rows[: len(self.order), self.family.row[v]])
        z = self.system.solve(column)
        left = own - float(column @ z)
        # z solves its equations up to rounding, and what is left is wrong by z'|M|z roundings, or by fewer than these:
        sizes, M = np.abs(z), self.system.matrix
        terms = own + float(np.diagonal(M).max()) + self.unit * float(sizes.sum()) ** 2
        if not left > _DEPENDENT_SHARE * terms:
            terms = own + float(np.diagonal(M).max()) + float(sizes @ (np.abs(M) @ sizes))
        return z, left, terms

    # --- changes ------------------------------------------------------------------------------------------------------

    def let_in(self, v: int) -> None:
        """Make a variable free; it must not depend on those that are."""
        family, m = self.family, len(self.order)
        row = self.K.row(int(family.row[v]))
        self._leave_bound(v, row)
        self.side[v] = FREE
        if m == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        column = self.system.column(self._rows[:m, family.row[v]])
        known, z = self._last
        self.system.add(column, float(self.K.diagonal[family.row[v]] + family.d[v]), z if known == v else None)
        self._last = -1, None
        self._rows[m] = row
        if self._near is not None and not self._near.add_row(m, row, family.row):
            self._near = None
        self.order.append(v)
        self.log.append((self.t, v, FREE))

    def let_go(self, v: int, side: int) -> None:
        """Put a free variable onto a bound."""
        k, last = self.order.index(v), len(self.order) - 1
        self._join_bound(v, side, self._rows[k])
        self.system.remove(k)
        self._last = -1, None
        self._rows[k] = self._rows[last]
        if self._near is not None:
            self._near.rows[k] = self._near.rows[last]
        self.order[k] = self.order[last]
        self.order.pop()
        self._still[:] = False
        if not self.order or (self._near is not None and not self._near.add(v, self._rows[:last, self.family.row[v]])):
            self._near = None

    def put(self, v: int, side: int) -> None:
        """Put a variable that is not free onto a bound."""
        row = self.K.row(int(self.family.row[v]))
        self._leave_bound(v, row)
        self._join_bound(v, side, row)

    def _leave_bound(self, v: int, row: Floats) -> None:
        at = self._at[v]
        if at.any():
            self._add(row, -at)
            self._at[v] = 0.0

    def _join_bound(self, v: int, side: int, row: Floats) -> None:
        bound = self.family.upper if side == UPPER else self.family.lower
        at = np.array([bound.start[v], bound.slope[v]])
        self.side[v] = side
        self._at[v] = at
        self.log.append((self.t, v, side))
        if at.any():
            self._add(row, at)

    def _add(self, row: Floats, at: Floats) -> None:
        self._u += np.multiply.outer(row, at)
        self._sum += at
        self._lost += _EPS * (self.unit * np.abs(at) + np.abs(self._u).max(axis=0))
