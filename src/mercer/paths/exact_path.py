"""The exact path in C: where every sample is between one breakpoint and the next.

β(C) is linear while the sets of bounded and free variables stay the same. Only the changes of these sets are kept;
β, b and everything else at some C follow from the sets by one solve with the kernel values themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Floats
from mercer.certificates.dual import certify
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Stop, StopReason
from mercer.solvers.active_set.sets import FREE, LOWER, UPPER, Family, KernelRows, Segment
from mercer.solvers.active_set.walk import Stalled, Walk, settled
from mercer.solvers.dual.certified import solve_certified

# Events between two checks of optimality from scratch: one product with K for that many with a part of it.
_EVENTS_PER_CHECK = 128
_FIRST_CHECKS = (1, 2, 4, 8, 16, 32, 64)
# Where rounding decides the order of events, the path goes on this much later, as a share of C; the next time ten
# times as much, up to 1.
_LEAPS = tuple(10.0**-k for k in range(9, -1, -1))
# The share of tol that a certificate may have at the end: an ordinary fit there is not quite as near to its equations.
_SHARE_AT_END = 0.5
_EPS = float(np.finfo(float).eps)


@dataclass(eq=False)
class Trace:
    """The breakpoints, and what was seen at each."""

    problem: DualProblem  # at C = 1
    gram: Gram
    first: NDArray[np.int8]  # where each variable is at the beginning
    start: float
    stop: Stop
    end: float = math.nan
    stop_reason: StopReason = "converged"
    log: list[tuple[float, int, int]] = field(default_factory=list)
    seen: list[tuple[float, ...]] = field(default_factory=list)  # C, free, bounded, ‖w‖², b
    n_checks: int = 0
    n_refactorisations: int = 0
    n_restarts: int = 0
    largest_violation: float = math.nan  # of those that were checked
    constant: bool = False  # whether b is the weight of a constant feature, and K has 1 added to it

    def columns(self) -> dict[str, Any]:
        """What was seen at the breakpoints, by the names that CPath has for it."""
        table = np.array(self.seen).reshape(-1, 5)
        with np.errstate(divide="ignore"):
            margin = 1 / np.sqrt(np.maximum(table[:, 3], 0.0))
        return {
            "C_": table[:, 0],
            "n_free_": table[:, 1].astype(np.intp),
            "n_bounded_": table[:, 2].astype(np.intp),
            "margin_": margin,
            "intercept_": table[:, 4],
        }

    def at(self, C: float, K: KernelRows | None = None) -> tuple[Floats, float, bool]:
        """β, b, and whether β is optimal to tol: kernel values may be such that the sets do not say enough."""
        here, K = at_price(self.problem, C), K or KernelRows(self.gram, keep=False)
        walk = Walk(Family.in_bounds(self.problem), K, self.sides(C), C)
        beta = here.nearest_feasible(walk.beta(C))
        h = walk.gradient(C, beta)
        violation, offsets = here.violation_and_offsets(beta, h)
        # At a breakpoint the free ones may all be at a bound; b is what their equations say all the same.
        b = float(h[walk.order].mean()) if walk.order else float(offsets.sum())
        return beta, b if len(offsets) else 0.0, violation <= self.stop.tol

    def note(self, violation: float) -> None:
        """One more check of optimality."""
        self.n_checks += 1
        self.largest_violation = float(np.fmax(self.largest_violation, violation))

    def sides(self, C: float) -> NDArray[np.int8]:
        """Where each variable is."""
        times, variables, sides = zip(*self.log, strict=True) if self.log else ((), (), ())
        k = int(np.searchsorted(times, C, side="right"))
        side = self.first.copy()
        side[np.array(variables[:k], dtype=np.intp)] = sides[:k]  # the last of several changes counts
        return side


def trace(
    problem: DualProblem, gram: Gram, stop: Stop, begin: float | None, end: float, *, constant: bool = False
) -> Trace:
    """Follow the solutions of `problem`, whose bounds are those of C = 1, from C = `begin` (None: 0) to `end`."""
    K, quiet = KernelRows(gram), replace(stop, report=None)
    walk = _first(problem, K, quiet) if begin is None else _settled_at(problem, K, begin, quiet, None)
    found = Trace(problem, gram, walk.side.copy(), walk.t, quiet, constant=constant)
    watch = _Watch(found, stop)
    while True:
        try:
            walk.walk(end, watch)
            stalled = False
        except (Stalled, np.linalg.LinAlgError):
            stalled = True
        found.log += walk.log
        found.n_refactorisations += walk.system.refactorisations
        after = _beyond(found, walk, K, quiet) if stalled else None
        if after is None:
            break
        walk = after
    found.end = walk.t
    if stalled:
        found.stop_reason = "stalled"
    elif found.stop_reason == "converged":
        watch.close(walk)
    _end_where_it_is_proven(found, K)
    return found


def _end_where_it_is_proven(found: Trace, K: KernelRows) -> None:
    """Certify the solution at the end or, if there is none, beyond the last breakpoint; where rounding leaves more than
    half of tol there, bring the end back."""
    C, tol = found.end, _SHARE_AT_END * found.stop.tol
    if math.isinf(C):
        C = 2 * found.seen[-1][0] if found.seen else max(1.0, 2 * found.start)
    while C > 0:
        violation = certify(at_price(found.problem, C), found.gram.proof, found.at(C, K)[0], tol)[0].violation
        if violation <= tol or found.start >= C:
            found.note(violation)
            break
        # It grows with Σα, and that with C.
        C = max(found.start, C * min(0.8, max(0.01, tol / violation)))
        found.end, found.stop_reason = C, "rounding floor"
    found.seen = [row for row in found.seen if row[0] <= found.end]
    found.log = [event for event in found.log if event[0] <= found.end]


def at_price(problem: DualProblem, C: float) -> DualProblem:
    """The problem of another C than 1."""
    return replace(problem, lower=C * problem.lower, upper=C * problem.upper, totals=C * problem.totals)


def _first(problem: DualProblem, K: KernelRows, stop: Stop) -> Walk:
    """The sets just above C = 0.

    There f is b, and every sample is inside its margin: all are bounded. With a free bias and classes of unequal weight
    f is the larger class's label, the smaller class is bounded, and of the larger one those coefficients that make ‖w‖
    smallest balance it: one more problem, without targets.
    """
    upwards = problem.p > 0
    side = np.where(upwards, UPPER, LOWER).astype(np.int8)
    family = Family.in_bounds(problem)
    above, below = float(problem.upper[upwards].sum()), float(-problem.lower[~upwards].sum())
    if len(problem.totals) == 0 or abs(above - below) <= 1e-14 * len(side) * (above + below):
        return Walk(family, K, side, 0.0)
    smaller = upwards if above < below else ~upwards
    bound = np.where(upwards, problem.upper, problem.lower)
    balance = replace(
        problem,
        p=np.zeros(len(side)),
        lower=np.where(smaller, bound, problem.lower),
        upper=np.where(smaller, bound, problem.upper),
    )
    size = float(np.abs(K.product(balance.feasible_start())).max()) or 1.0
    rough = solve_certified(balance, K.gram, replace(stop, tol=1e-4 * size))[0]
    side = settled(balance, K, rough.beta).side
    return Walk(family, K, np.where(smaller, np.where(upwards, UPPER, LOWER), side).astype(np.int8), 0.0)


def _settled_at(problem: DualProblem, K: KernelRows, C: float, stop: Stop, start: Floats | None) -> Walk:
    """The sets at C, from an ordinary solution."""
    here = at_price(problem, C)
    rough = solve_certified(here, K.gram, replace(stop, tol=max(stop.tol, 1e-3)), start)[0]
    return settled(here, K, rough.beta).with_family(Family.in_bounds(problem), C)


def _beyond(found: Trace, walk: Walk, K: KernelRows, stop: Stop) -> Walk | None:
    """The sets a little after the C at which rounding decides the order of events; None if that is everywhere."""
    for leap in _LEAPS:
        C = max(walk.t * (1 + leap), np.nextafter(walk.t, math.inf))
        beta = walk.beta(walk.t) * (C / walk.t) if walk.t > 0 else None
        try:
            after = _settled_at(found.problem, K, C, stop, beta)
        except (Stalled, np.linalg.LinAlgError):
            continue
        moved = np.flatnonzero(after.side != walk.side)
        found.log += [(C, int(v), int(after.side[v])) for v in moved]
        found.n_restarts += 1
        return after
    return None


class _Watch:
    """What happens at every event: values are noted, optimality is checked now and then, limits are kept."""

    def __init__(self, found: Trace, stop: Stop) -> None:
        self.found, self.stop = found, stop
        self.events = 0
        self.last = found.start  # C of the last event

    def __call__(self, walk: Walk, segment: Segment) -> bool:
        found, t = self.found, walk.t
        self.events += 1
        self.last = t
        if not found.seen or t > found.seen[-1][0] * (1 + 1e-12):
            beta = walk.beta(t, segment)
            if float(np.abs(beta).sum()) > self._largest_sum(walk):
                walk.t, found.stop_reason = min(t, self._resolved(walk, segment)), "rounding floor"
                return True
            free = len(walk.order)
            bounded = int(np.count_nonzero(beta[walk.side != FREE]))
            energy, b = walk.energy(t, segment), segment.b_at(t)
            if found.constant:
                b = float(beta.sum())
                energy -= b**2
            found.seen.append((t, free, bounded, energy, b))
        if self.events % _EVENTS_PER_CHECK == 0 or self.events in _FIRST_CHECKS:
            self._check(walk, segment)
        if self.events % _EVENTS_PER_CHECK == 0:
            self.stop.tell(lambda: f"C={t:.3g}, {self.events:,} events, {len(walk.order):,} free")
            limit = self.stop.limit(self.events)
            if limit is not None:
                found.stop_reason = limit
                return True
        return False

    def close(self, walk: Walk) -> None:
        """There are no more events; the end of the last segment may be beyond what float64 resolves."""
        end, walk.t = walk.t, self.last
        walk.restart()  # so that slopes which should be zero are
        resolved = self._resolved(walk, walk.segment())
        if resolved < end:
            self.found.end, self.found.stop_reason = resolved, "rounding floor"

    def _resolved(self, walk: Walk, segment: Segment) -> float:
        """Up to which C of a segment float64 can tell tol from its own rounding: Σα is linear there."""
        now, slope = walk.sum_of(np.sign(self.found.problem.p), segment)
        return math.inf if slope <= 0 else segment.t + max(0.0, self._largest_sum(walk) - now) / slope

    def _largest_sum(self, walk: Walk) -> float:
        """Σα from which on the rounding of f is more than tol."""
        largest = float(walk.K.diagonal.max())
        return self.stop.tol / (8 * _EPS * largest) if largest > 0 else math.inf

    def _check(self, walk: Walk, segment: Segment) -> None:
        """The violation at this C from scratch; what has drifted is computed afresh."""
        found, C = self.found, walk.t
        problem = found.problem
        beta = walk.beta(C, segment)
        found.note(at_price(problem, C).violation(beta, problem.gradient(beta, walk.K.product(beta))))
        walk.restart()
