"""Iterative refinement: decide by the certificate whether to stop, and how to return to the solver if not.

    repeat
    1. solve;
    2. recompute u = Kβ, and the certificate from it;
    3. stop if the certificate meets `stop`, or no return to the solver would help

A return starts from the certified u. If that no longer helps, the next precision of kernel values is used. The
certificate decides when to stop, and not the numbers that the solver updates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.samples.arrays import Floats, Precision
from mercer.solvers.solution import Solution, Stop, StopReason

# If more than this share of the true violation remains after a return to the solver, that was the last return in this
# precision.
_PROGRESS_SHARE = 1 / 3
# If the certified violation exceeds tol by at most this share, the excess may be the bound on rounding, which the
# solver does not count: the next tolerance is half of the last.
_ROUNDING_SHARE = 0.25


def has_progressed(violation: Any, last: Any) -> Any:
    """Return whether the last call of the solver lowered the true violation enough; for numbers or arrays."""
    return np.isfinite(violation) & (violation <= _PROGRESS_SHARE * last)


def sufficient_precisions(precisions: Iterable[Precision], size: float) -> list[Precision]:
    """Return the precisions that can represent sums of this size, and always the finest."""
    *coarser_precisions, finest_precision = precisions
    return [*(kind for kind in coarser_precisions if size < 1e-3 * float(np.finfo(kind).max)), finest_precision]


class Refinement:
    """Settings of the next call of a solver: the stopping rule, the precision, and whether shrinking is allowed.

    `floor` computes the largest violation at β that rounding alone may cause.
    """

    def __init__(
        self, stop: Stop, precisions: Iterable[Precision], shrinking: bool, floor: Callable[[Floats], float]
    ) -> None:
        self.next_stop, self.shrinking, self.steps = stop, shrinking, 0
        self.precision, *self._finer_levels = precisions
        self._stop, self._floor, self._last_violation = stop, floor, math.inf

    def judge(self, solution: Solution, certificate: Certificate) -> StopReason | None:
        """Return the stop reason, or None if the solver should continue from the certified u with the new settings."""
        self.steps += solution.steps
        tol = self.next_stop.tol
        if self._stop.met(certificate):
            return "converged"
        if solution.stop_reason not in ("converged", "stalled"):
            return solution.stop_reason
        # The solver reached its goal, but the certificate does not meet `stop`: choose the next tolerance.
        excess = certificate.violation - self._stop.tol
        if excess <= 0:  # only the gap is too large; it shrinks with the violation
            if solution.stop_reason == "stalled" or tol <= self._floor(solution.beta):
                if not self._finer_levels:
                    return "rounding floor"
                self.precision, *self._finer_levels = self._finer_levels
            # An infinite tol (only the gap has a goal) would stay infinite: start from the present violation.
            tol = 0.5 * (tol if tol < math.inf else certificate.violation) / self._stop.goal_ratio(certificate)
            self._last_violation = math.inf
        elif not self._can_return(solution, certificate):
            return "rounding floor" if certificate.violation <= self._floor(solution.beta) else "stalled"
        elif excess <= _ROUNDING_SHARE * tol:
            tol *= 0.5
        self.next_stop = replace(self._stop.after(self.steps), tol=tol)
        return self.next_stop.before_proof(solution.beta).limit(0)  # no time for another certificate

    def _can_return(self, solution: Solution, certificate: Certificate) -> bool:
        """Return whether another call may help: after progress, with more variables, or in a finer precision."""
        progress = has_progressed(certificate.violation, self._last_violation)
        self._last_violation = certificate.violation
        if progress or not solution.all_active:
            # Variables that were dropped too early become active again. If that does not help, shrinking ends.
            self.shrinking = self.shrinking and progress
            return True
        if self._finer_levels:
            self.precision, *self._finer_levels = self._finer_levels
            return True
        return False
