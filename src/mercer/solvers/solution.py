"""Interface of every solver: its stopping rule, its progress reports, and the solution that it returns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.samples.arrays import Floats

StopReason = Literal[
    "converged", "rounding floor", "max_iter", "max_time", "stalled", "no margin", "all steps", "early stopping"
]


class ProgressLine(str):
    """Line of text about the progress of a solve, with the violation and the duality gap as numbers."""

    violation: float
    gap: float

    @classmethod
    def of(cls, line: str, violation: float, gap: float) -> ProgressLine:
        """Return `line` as a ProgressLine with these two numbers."""
        progress = cls(line)
        progress.violation, progress.gap = violation, gap
        return progress


class ProgressReporter(Protocol):
    """Callback that a solver calls before every outer step.

    `line` returns the line of text, and is called only if the line is printed or recorded. `goal_ratio` is the present
    error divided by the error to reach, NaN if the solver does not know it. The callback may raise to abandon the fit.
    """

    def __call__(self, line: Callable[[], str], goal_ratio: float = ..., /) -> None: ...


@dataclass(frozen=True)
class Stop:
    """Stopping rule of a solve (violation, relative gap, steps, deadline) and the callback for its progress."""

    tol: float  # largest KKT violation of a solution
    max_iter: int
    gap_tol: float = math.inf  # largest duality gap, relative to the dual value
    deadline: float = math.inf  # on time.monotonic's clock
    done: int = 0  # steps taken before this call, for progress lines
    n_threads: int = 1  # threads for linear algebra; kernel values have their own number
    only_problem: bool = True  # no other problem shares the deadline, so this one may raise an error at its end
    proof_seconds: Callable[[Floats], float] | None = None  # predicted seconds for the certificate of β
    report: ProgressReporter | None = None

    def goal_ratio(self, certificate: Certificate) -> float:
        """Return the larger of the ratios of violation and gap to their goals; at most 1 if both goals are met."""
        goal_ratio = self.ratio_to_tol(certificate.violation)
        gap_goal = self.gap_tol * abs(certificate.dual)
        if self.gap_tol < math.inf and not certificate.gap <= gap_goal:  # also for a gap of NaN
            ratio = certificate.gap / max(gap_goal, float(np.finfo(float).tiny))
            goal_ratio = max(goal_ratio, ratio) if ratio > 1 else math.inf
        return goal_ratio

    def ratio_to_tol(self, violation: float) -> float:
        """Return the ratio of a violation to tol."""
        return violation / max(self.tol, float(np.finfo(float).tiny))

    def met(self, certificate: Certificate) -> bool:
        """Return whether the certificate proves the violation and the gap to be small enough."""
        return self.goal_ratio(certificate) <= 1

    def limit(self, steps: int) -> StopReason | None:
        """Return the limit that ends a solve after this many steps, or None."""
        if steps >= self.max_iter:
            return "max_iter"
        return "max_time" if time.monotonic() >= self.deadline else None

    def after(self, steps: int) -> Stop:
        """Return this rule with the limits that are left after this many steps."""
        return replace(self, max_iter=self.max_iter - steps, done=self.done + steps)

    def before_proof(self, beta: Floats) -> Stop:
        """Return this rule with a deadline that leaves time to certify β afterwards."""
        if self.deadline == math.inf or self.proof_seconds is None:
            return self
        return replace(self, deadline=self.deadline - self.proof_seconds(beta), proof_seconds=None)

    def report_progress(self, line: Callable[[], str], goal_ratio: float = math.nan) -> None:
        """Call `report`, if there is one."""
        if self.report is not None:
            self.report(line, goal_ratio)

    @property
    def seconds(self) -> float:
        """Seconds left until the deadline."""
        return max(0.0, self.deadline - time.monotonic())


class Solve(Protocol):
    """Solver: a function that takes a problem and its data and returns a solution with its certificate.

    Every solution has `steps` and `stop_reason`; each family of machines adds its coefficients. `start` is the point of
    an earlier solution to start from. Further options of a solver (shrinking, a seed) are keyword arguments, which the
    code that makes the task binds with functools.partial.
    """

    def __call__(self, problem: Any, data: Any, stop: Stop, start: Any = None, /) -> tuple[Any, Certificate]: ...


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of a dual problem: a feasible β, the number of steps, the stop reason, and u = Kβ if it was certified.

    β and u have a column per class for the joint multi-class machines.

    `all_active` is False if shrinking had dropped variables at the end. The stop reason then holds for the active
    variables only, and the certificate, computed over all rows, shows whether a dropped variable has to become active
    again.
    """

    beta: Floats
    steps: int
    stop_reason: StopReason
    all_active: bool = True
    u: Floats | None = None
