"""The exact path in C: the sets of free and bounded variables between its breakpoints.

β(C) is linear while the sets of bounded and free variables stay the same. Only the changes of these sets are stored;
β, b and everything else at any C follow from the sets by one solve with the kernel values themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._core import Homotopy, Stalled
from mercer.certificates.dual import certify_dual
from mercer.places.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.homotopy import LOWER, UPPER, KernelRows, follow_path, path_at, scaled_bounds, solve_exactly
from mercer.solvers.solution import Stop, StopReason

# Number of events between two checks of optimality from scratch, each of which takes a product with the whole of K.
_EVENTS_PER_CHECK = 128
_FIRST_CHECKS = (1, 2, 4, 8, 16, 32, 64)
# If rounding decides the order of events, the path restarts at C increased by this share; if that fails, by ten times
# as much, up to 1.
_LEAPS = tuple(10.0**-k for k in range(9, -1, -1))
# Share of tol that the violation at the end may have: an ordinary fit there is slightly less accurate.
_SHARE_AT_END = 0.5
_EPS = float(np.finfo(float).eps)


@dataclass(eq=False)
class Trace:
    """The exact path in C: its breakpoints, the values at each, and the changes of the sets."""

    problem: DualProblem  # at C = 1
    gram: Gram
    first: NDArray[np.int8]  # side of each variable at the beginning
    start: float
    stop: Stop
    end: float = math.nan
    stop_reason: StopReason = "converged"
    log: list[tuple[float, int, int]] = field(default_factory=list)  # C, variable, its new side
    seen: list[tuple[float, ...]] = field(default_factory=list)  # C, n free, n bounded, ‖w‖², b
    n_checks: int = 0
    n_refactorisations: int = 0
    n_restarts: int = 0
    largest_violation: float = math.nan  # over all checks
    constant: bool = False  # whether b is the weight of a constant feature, and K has 1 added to it

    def columns(self) -> dict[str, Any]:
        """Return the values at the breakpoints, by the names of CPath's attributes."""
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
        """Return β, b, and whether β is optimal to tol; it may not be if K is nearly singular."""
        problem, K = problem_at(self.problem, C), K or KernelRows(self.gram, keep=False)
        path = path_at(self.problem, K, self.sides(C), C)
        beta = problem.nearest_feasible(path.beta(C))
        h, free = path.gradient(C, beta), path.order
        violation, offsets = problem.violation_and_offsets(beta, h)
        # At a breakpoint all free variables may be at a bound; their equations still determine b.
        b = float(h[free].mean()) if len(free) else float(offsets.sum())
        return beta, b if len(offsets) else 0.0, violation <= self.stop.tol

    def note(self, violation: float) -> None:
        """Record the violation of one more check of optimality."""
        self.n_checks += 1
        self.largest_violation = float(np.fmax(self.largest_violation, violation))

    def sides(self, C: float) -> NDArray[np.int8]:
        """Return the side of each variable at C: lower bound, free or upper bound."""
        times, variables, sides = zip(*self.log, strict=True) if self.log else ((), (), ())
        k = int(np.searchsorted(times, C, side="right"))
        side = self.first.copy()
        side[np.array(variables[:k], dtype=np.intp)] = sides[:k]  # the last change of a variable holds
        return side


def trace_path(
    problem: DualProblem, gram: Gram, stop: Stop, begin: float | None, end: float, *, constant: bool = False
) -> Trace:
    """Follow the solutions of `problem`, stated at C = 1, from C = `begin` (None means 0) to `end`."""
    K, quiet_stop = KernelRows(gram), replace(stop, report=None)
    path = _start_path(problem, K, quiet_stop) if begin is None else _restart_path(problem, K, begin, quiet_stop, None)
    record = Trace(problem, gram, path.side, path.t, quiet_stop, constant=constant)
    observer = _PathObserver(record, K, stop)
    while True:
        try:
            follow_path(path, end, observer)
            has_stalled = False
        except Stalled:
            has_stalled = True
        record.log += path.log
        record.n_refactorisations += path.refactorisations
        new_path = _skip_stall(record, path, K, quiet_stop) if has_stalled else None
        if new_path is None:
            break
        path = new_path
    record.end = path.t
    if has_stalled:
        record.stop_reason = "stalled"
    elif record.stop_reason == "converged":
        observer.close(path)
    _certify_end(record, K)
    return record


def _certify_end(record: Trace, K: KernelRows) -> None:
    """Certify the solution at the end of the path, or beyond the last breakpoint if the path is unbounded.

    If the violation exceeds half of tol because of rounding, the end is moved back.
    """
    C, tol = record.end, _SHARE_AT_END * record.stop.tol
    if math.isinf(C):
        C = 2 * record.seen[-1][0] if record.seen else max(1.0, 2 * record.start)
    while C > 0:
        violation = certify_dual(problem_at(record.problem, C), record.gram.proof, record.at(C, K)[0], tol)[0].violation
        if violation <= tol or record.start >= C:
            record.note(violation)
            break
        # The violation grows with Σα, which grows with C.
        C = max(record.start, C * min(0.8, max(0.01, tol / violation)))
        record.end, record.stop_reason = C, "rounding floor"
    record.seen = [row for row in record.seen if row[0] <= record.end]
    record.log = [event for event in record.log if event[0] <= record.end]


def problem_at(problem: DualProblem, C: float) -> DualProblem:
    """Return the problem at C, from the one at C = 1."""
    return replace(problem, lower=C * problem.lower, upper=C * problem.upper, totals=C * problem.totals)


def _start_path(problem: DualProblem, K: KernelRows, stop: Stop) -> Homotopy:
    """Return the path with the sets of bounded and free variables just above C = 0.

    There f is nearly b, and every sample is inside its margin: all variables are bounded. With a free bias and classes
    of unequal weight, f is nearly the label of the larger class, and only the smaller class is bounded. The
    coefficients of the larger class then have the same sum and minimise ‖w‖: they solve the dual problem with p = 0.
    """
    is_positive = problem.p > 0
    side = np.where(is_positive, UPPER, LOWER).astype(np.int8)
    positive_sum, negative_sum = float(problem.upper[is_positive].sum()), float(-problem.lower[~is_positive].sum())
    total = positive_sum + negative_sum
    if len(problem.totals) == 0 or abs(positive_sum - negative_sum) <= 1e-14 * len(side) * total:
        return path_at(problem, K, side, 0.0)
    is_in_smaller_class = is_positive if positive_sum < negative_sum else ~is_positive
    bound = np.where(is_positive, problem.upper, problem.lower)
    balance_problem = replace(
        problem,
        p=np.zeros(len(side)),
        lower=np.where(is_in_smaller_class, bound, problem.lower),
        upper=np.where(is_in_smaller_class, bound, problem.upper),
    )
    size = float(np.abs(K.product(balance_problem.feasible_start())).max()) or 1.0
    rough_solution = solve_certified(balance_problem, K.gram, replace(stop, tol=1e-4 * size))[0]
    side = solve_exactly(balance_problem, K, rough_solution.beta).side
    return path_at(
        problem, K, np.where(is_in_smaller_class, np.where(is_positive, UPPER, LOWER), side).astype(np.int8), 0.0
    )


def _restart_path(problem: DualProblem, K: KernelRows, C: float, stop: Stop, start: Floats | None) -> Homotopy:
    """Return the path that starts at C with the free and bounded variables of an ordinary fit, started at `start`."""
    problem_C = problem_at(problem, C)
    rough_solution = solve_certified(problem_C, K.gram, replace(stop, tol=max(stop.tol, 1e-3)), start)[0]
    return solve_exactly(problem_C, K, rough_solution.beta).with_family(scaled_bounds(problem), C)


def _skip_stall(record: Trace, path: Homotopy, K: KernelRows, stop: Stop) -> Homotopy | None:
    """Restart the path a little after the C at which it stalled; return None if it stalls everywhere."""
    for leap in _LEAPS:
        C = max(path.t * (1 + leap), np.nextafter(path.t, math.inf))
        try:
            beta = path.beta(path.t) * (C / path.t) if path.t > 0 else None
            new_path = _restart_path(record.problem, K, C, stop, beta)
        except Stalled:
            continue
        side = new_path.side
        record.log += [(C, int(v), int(side[v])) for v in np.flatnonzero(side != path.side)]
        record.n_restarts += 1
        return new_path
    return None


class _PathObserver:
    """Observer of every event of a path: records values, checks optimality from time to time, and enforces limits."""

    def __init__(self, record: Trace, K: KernelRows, stop: Stop) -> None:
        self.record, self.K, self.stop = record, K, stop
        self.events = 0
        self.last = record.start  # C of the last event

    def __call__(self, path: Homotopy) -> bool:
        """Record one event; return whether the path ends here."""
        record, t = self.record, path.t
        self.events += 1
        self.last = t
        if not record.seen or t > record.seen[-1][0] * (1 + 1e-12):
            beta, free = path.beta(t), path.order
            if float(np.abs(beta).sum()) > self._largest_sum:
                path.t, record.stop_reason = min(t, self._largest_resolved(path)), "rounding floor"
                return True
            bounded = int(np.count_nonzero(beta)) - int(np.count_nonzero(beta[free]))
            energy, b = path.energy(t), path.bias(t)
            if record.constant:
                b = float(beta.sum())
                energy -= b**2
            record.seen.append((t, len(free), bounded, energy, b))
        if self.events % _EVENTS_PER_CHECK == 0 or self.events in _FIRST_CHECKS:
            self._check(path)
        if self.events % _EVENTS_PER_CHECK == 0:
            self.stop.report_progress(lambda: f"C={t:.3g}, {self.events:,} events, {len(path.order):,} free")
            limit = self.stop.limit(self.events)
            if limit is not None:
                record.stop_reason = limit
                return True
        return False

    def close(self, path: Homotopy) -> None:
        """End the path after its last event, no later than float64 resolves `tol`."""
        end, path.t = path.t, self.last
        path.restart()  # removes rounding from slopes that should be zero
        largest_C = self._largest_resolved(path)
        if largest_C < end:
            self.record.end, self.record.stop_reason = largest_C, "rounding floor"

    def _largest_resolved(self, path: Homotopy) -> float:
        """Return the largest C at which rounding is below tol, if Σα goes on as in this segment, where it is linear."""
        begin, alpha_sum, slope = path.sum_of(np.sign(self.record.problem.p))
        return math.inf if slope <= 0 else begin + max(0.0, self._largest_sum - alpha_sum) / slope

    @cached_property
    def _largest_sum(self) -> float:
        """Largest Σα for which the rounding error of f is at most tol."""
        largest = float(self.K.diagonal.max())
        return self.stop.tol / (8 * _EPS * largest) if largest > 0 else math.inf

    def _check(self, path: Homotopy) -> None:
        """Compute the violation at this C from scratch, and remove accumulated rounding."""
        record, C = self.record, path.t
        problem = record.problem
        beta = path.beta(C)
        record.note(problem_at(problem, C).violation(beta, problem.gradient(beta, self.K.product(beta))))
        path.restart()
