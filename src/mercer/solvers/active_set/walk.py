"""From one solution of a family of problems to another, one event after the other.

While the set F of free variables stays the same, β and b solve linear equations whose right sides are affine in t, and
so are β, b and the residuals ρ = p − Kβ − dβ − b. The next event is where a free variable reaches a bound, or where the
residual of a bounded one would change its sign:

    β at its lower bound: ρ ≤ 0        free: ρ = 0        β at its upper bound: ρ ≥ 0

With a bias a single free variable is what the others leave of the sum. Where that is one of its bounds it is put there:
all are bounded, b has an interval, and the next event is where that closes.

A variable that would make the equations singular never joins F (Sentelle, Anagnostopoulos and Georgiopoulos, 2016).
Its row is a combination of the free ones' rows. Moving it, and the free ones against it, changes no residual; it moves
until it, or one of them, has reached a bound, and then takes that one's place. Values follow from the sets alone, by a
fresh solve after every event, so that errors do not add up.

A walk makes any feasible β the exact solution (`settled`). With other targets p₀ that β is optimal: those with h = b
where β is free, and with a residual of the right sign where it is not; how large these residuals are is left to chance,
so that no two events coincide. Then p₀ is led to p along a line, and Σβ to its total. The nearer β is to the solution,
the fewer events there are on the way. So the solution of another solver becomes one whose equations hold to rounding
(`exactly`). Without a sample, or with less of it, its bounds shrink to zero, or by its share of a weight (`without`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Solution, Solve, Stop
from mercer.solvers.active_set.sets import FREE, LOWER, UPPER, Family, KernelRows, Line, Near, Segment, Sets

# Slacks and residuals within this of zero are ties, in units of f.
_TIE = 1e-12
# Residuals that could change their sign soon are followed: at least one in _LEAST_SHARE_NEAR. Where they last for fewer
# than _SHORT_EVENTS events, twice as many are followed; where for more than _LONG_EVENTS, half as many.
_LEAST_SHARE_NEAR, _SHORT_EVENTS, _LONG_EVENTS = 16, 6, 24
_EPS = float(np.finfo(float).eps)


class Stalled(Exception):
    """More events at one t than degeneracy explains: rounding decides."""


class Walk(Sets):
    """The sets, and how they change with t."""

    def walk(self, end: float, seen: Callable[[Walk, Segment], bool] | None = None) -> None:
        """Follow t up to `end`; `seen` is called at every event, before the sets change, and may end the walk."""
        at_once, most = 0, 4 * self.family.n + 200
        random, renewed = np.random.default_rng(0), False
        while True:
            before = self.t
            if self._has_drifted:
                self.restart()
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
                chance = random if at_once > self.family.n + 50 else None
                segment = self.segment(near=True)
                event = self._next(segment, end, chance)
                if segment.near is not None and not self._stays_near(segment, end if event is None else event[0]):
                    segment = self.segment()
                    event = self._next(segment, end, chance)
                if segment.near is None and self._looks_around:
                    self._near = self._look_around(segment)
                if seen is not None and event is not None and event[0] > 2 * self.t > 0 and not renewed:
                    # Far away, where slopes that are zero but for rounding would bring about an event.
                    self.restart()
                    self._near, renewed = None, True
                    continue
                renewed = False
                if event is None:
                    self.t = end
                    self._rest()
                    return
                self.t, v, hit = event
                if seen is not None and seen(self, segment):
                    return
                if self.side[v] == FREE:
                    self.let_go(v, hit)
                    self._rest(onwards=True)
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
        which = slice(None) if segment.near is None else segment.near
        side = np.where(self.fixed[which] | self._still[which], 0, self.side[which])
        room, room_slope = side * segment.rho_at(t), side * segment.rho[:, 1]
        room = np.concatenate([low, high, room])
        slope = np.concatenate([low_slope, high_slope, room_slope])
        falls = np.flatnonzero(slope < -self.flat(segment.x[:, 1]))
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
        v = place - 2 * len(F)
        return t + step, v if segment.near is None else int(segment.near[v]), FREE

    def _stays_near(self, segment: Segment, end: float) -> bool:
        """Whether no residual but the near ones can change its sign before `end`; then that far is used up."""
        assert self._near is not None
        step = end - self.t
        self._near.w -= segment.speed * step
        self._near.b -= abs(float(segment.b[1])) * step
        return self._near.w >= 0 and self._near.b >= 0

    def _look_around(self, segment: Segment) -> Near | None:
        """The variables whose residuals could change their sign soonest, and how far w and b may move until others do:
        |ρ'| ≤ √k(x, x)·‖w'‖ + |b'|."""
        root, b = np.sqrt(self.kappa), max(abs(float(segment.b[1])), 0.3 * math.sqrt(self.unit) * segment.speed)
        with np.errstate(divide="ignore", invalid="ignore"):
            soon = self.side * segment.rho_at(self.t) / (root * segment.speed + b)
        soon[(self.side == FREE) | self.fixed | ~np.isfinite(soon)] = np.inf
        lasted, self.looked_at = self.steps - self.looked_at, self.steps
        if lasted < _SHORT_EVENTS:
            self.n_near = min(2 * (self.n_near or self.family.n // _LEAST_SHARE_NEAR), self.family.n)
        elif lasted > _LONG_EVENTS:
            self.n_near = max(self.n_near // 2, self.family.n // _LEAST_SHARE_NEAR)
        if self.n_near > self.family.n // 2:  # to follow all of them is cheaper than to choose again and again
            return None
        count = self.n_near
        horizon = float(np.partition(soon, count)[count])
        if not math.isfinite(horizon) or horizon <= 0:
            return None
        which = np.flatnonzero(soon <= horizon)
        m = len(self.order)
        rows = np.empty((m + 64, len(which) + 64))
        rows[:m, : len(which)] = self._rows[:m, self.family.row[which]]
        return Near(which, rows, segment.speed * horizon * (1 - 1e-9), b * horizon * (1 - 1e-9))

    def _meeting(self, end: float) -> tuple[float, int] | None:
        """With no free variable b lies in an interval. Where that closes, a variable at its end becomes free."""
        family, t = self.family, self.t
        assert family.total is not None
        h, flat = self._gradient(), self.flat(np.empty(0))
        below = np.flatnonzero((self.side == LOWER) & ~self.fixed)
        above = np.flatnonzero((self.side == UPPER) & ~self.fixed)
        drift = float(family.total.slope - self._sum[1])
        if abs(drift) > flat / self.unit:  # the sum must change, so that b is at the end that allows it
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
            if slope <= flat or (math.isfinite(at) and start + at * slope <= 0):
                return None if at == end else (max(t, at), i)
            root = -start / slope
            if root <= t:
                return t, i
            if not root < at:
                return at, i
            at = root

    def _rest(self, *, onwards: bool = False) -> None:
        """Put a single free variable onto a bound, if that is where the sum leaves it: now or, `onwards`, from now on.

        It is what the bounded ones leave of the sum. With bounds of 0 and C that is 0 or C, so that all are bounded and
        b has an interval; with other bounds, or another total, it may be inside its own.
        """
        family = self.family
        if family.total is None or len(self.order) != 1 or math.isinf(self.t):
            return
        (v,) = self.order
        self._sum = self._at.sum(axis=0)  # without what changes have rounded off
        own = Line(family.total.start - self._sum[0], family.total.slope - self._sum[1])
        rounding = _EPS * family.n * float(np.abs(self._at[:, 0] + self.t * self._at[:, 1]).sum())
        for bound, side in ((family.lower, LOWER), (family.upper, UPPER)):
            if not abs(own(self.t) - (bound.start[v] + self.t * bound.slope[v])) <= rounding:
                continue
            if onwards and abs(own.slope - bound.slope[v]) > self.flat(bound.slope[[v]]) / self.unit:
                continue
            self.let_go(v, side)
            return

    def _enter(self, v: int, segment: Segment, end: float) -> None:
        z = self.combination(v)
        if z is None:
            self.let_in(v)
            return
        reach = end - self.t if math.isfinite(end) else max(abs(self.t), 1.0)
        place = v if segment.near is None else int(np.flatnonzero(segment.near == v)[0])
        # A dependent variable's residual that hardly changes, in units of f, over all of t is not followed.
        if abs(float(segment.rho[place, 1])) * reach <= 1e-11:
            self._still[v] = True
            return
        self._exchange(v, z, segment)

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


def exactly(solve: Solve) -> Solve:
    """A solver whose solution is made exact where that is possible and its certificate is the better for it."""

    def solved(problem: DualProblem, gram: Gram, stop: Stop, start: object = None, /) -> tuple[Solution, Certificate]:
        solution, certificate = solve(problem, gram, stop, start)
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
    """One b at most, a positive semi-definite matrix, and free variables whose inverse takes at most about a second.

    A hard margin, without bounds, has a proof of its own, that of its hulls.
    """
    up, low = problem.movable(solution.beta)
    hard = bool((np.isinf(problem.upper - problem.lower) & (problem.d == 0)).any())
    return len(problem.totals) <= 1 and not hard and gram.positive_definite != "no" and int((up & low).sum()) <= 2000


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
        less = replace(problem, lower=lower, upper=upper)
        return settled(less, walk.K, np.clip(walk.beta(walk.t, segment), lower, upper))
    return fork
