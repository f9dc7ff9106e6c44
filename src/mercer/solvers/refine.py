"""Iterative refinement: whether a certificate is good enough, and how to return to the solver if it is not.

    repeat: solve;  recompute u = Kβ and the certificate from it;  until `stop` is met, or no return would help

A return starts from the certificate's own u. When that stops helping, the next precision of kernel values is used.
The certificate, not the solver's running numbers, decides when to stop.
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

# A return to the solver after which more than this share of the true violation remains is the last in its precision.
_PROGRESS_SHARE = 1 / 3
# What a certificate says beyond tol, up to this share of it, may be the bound on rounding that the solver's own numbers
# lack: the solver is then asked for half as much.
_ROUNDING_SHARE = 0.25


def progressed(violation: Any, last: Any) -> Any:
    """Whether the solver's last return lowered the true violation enough for another one; numbers, or arrays."""
    return np.isfinite(violation) & (violation <= _PROGRESS_SHARE * last)


def holding(precisions: Iterable[Precision], size: float) -> list[Precision]:
    """Those precisions that hold sums of this size; the last one whatever it is, as there is no better."""
    *coarse, finest = precisions
    return [*(kind for kind in coarse if size < 1e-3 * float(np.finfo(kind).max)), finest]


class Refinement:
    """What the next return to a solver asks for: a stop, a precision, and whether variables may be dropped.

    `floor` computes the largest violation at β that may be rounding alone.
    """

    def __init__(
        self, stop: Stop, precisions: Iterable[Precision], shrinking: bool, floor: Callable[[Floats], float]
    ) -> None:
        self.asked, self.shrinking, self.steps = stop, shrinking, 0
        self.precision, *self._finer = precisions
        self._stop, self._floor, self._last = stop, floor, math.inf

    def judge(self, solution: Solution, certificate: Certificate) -> StopReason | None:
        """Why the solve ends here, or None: then it continues from the certificate's u with what is now asked for."""
        self.steps += solution.steps
        tol = self.asked.tol
        if self._stop.met(certificate):
            return "converged"
        if solution.stop_reason not in ("converged", "stalled"):
            return solution.stop_reason
        excess = certificate.violation - self._stop.tol
        if excess <= 0:  # the gap is too large, and shrinks with the violation
            if solution.stop_reason == "stalled" or tol <= self._floor(solution.beta):
                if not self._finer:
                    return "rounding floor"
                self.precision, *self._finer = self._finer
            # An infinite tol, which leaves it all to the gap, would stay infinite.
            tol = 0.5 * (tol if tol < math.inf else certificate.violation) / self._stop.missed(certificate)
            self._last = math.inf
        elif not self._can_return(solution, certificate):
            return "rounding floor" if certificate.violation <= self._floor(solution.beta) else "stalled"
        elif excess <= _ROUNDING_SHARE * tol:
            tol *= 0.5
        self.asked = replace(self._stop.after(self.steps), tol=tol)
        return self.asked.before_proof(solution.beta).limit(0)  # no time for another certificate

    def _can_return(self, solution: Solution, certificate: Certificate) -> bool:
        """Whether another return may lower the violation; without progress it needs more variables or precision."""
        progress = progressed(certificate.violation, self._last)
        self._last = certificate.violation
        if progress or not solution.whole:
            # Variables that were dropped too early are active again. If that does not help, none is dropped any more.
            self.shrinking = self.shrinking and progress
            return True
        if self._finer:
            self.precision, *self._finer = self._finer
            return True
        return False
