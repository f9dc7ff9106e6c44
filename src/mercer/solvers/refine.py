"""Iterative refinement: whether a certificate says enough, and how to return to the solver if it does not.

    repeat: solve;  compute u = Kβ afresh and the certificate from it;  until `stop` is met, or no return would help

A return starts from the certificate's own u. When that stops helping, the next precision of kernel values takes over.
The certificate, not the solver's running numbers, says when the end is reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.solution import Solution, Stop, StopReason

# A return to the solver that leaves more than this share of the true violation is the last one in its precision.
_PROGRESS_SHARE = 1 / 3


def progressed(certificate: Certificate, last: float) -> bool:
    """Whether the solver's last return lowered the true violation enough for another one."""
    return certificate.violation <= _PROGRESS_SHARE * last


class Refinement:
    """What the next return to a solver is asked: until which stop, in which precision, dropping variables or not.

    `floor` says how large a violation at β rounding alone can feign.
    """

    def __init__(
        self, stop: Stop, precisions: Iterable[Any], shrinking: bool, floor: Callable[[Floats], float]
    ) -> None:
        self.asked, self.shrinking, self.steps = stop, shrinking, 0
        self.precision, *self._finer = precisions
        self._stop, self._floor, self._last = stop, floor, math.inf

    def judge(self, solution: Solution, certificate: Certificate) -> StopReason | None:
        """Why the solve ends here, or None: it goes on from the certificate's u, asked for what this holds then."""
        self.steps += solution.steps
        tol = self.asked.tol
        if self.asked.met(certificate):
            return "converged"
        if solution.stop_reason not in ("converged", "stalled"):
            return solution.stop_reason
        if certificate.violation <= tol:  # but the gap is too large: it follows the violation
            tol *= 0.5 / self.asked.missed(certificate)
            self._last = math.inf
        elif not self._can_return(solution, certificate):
            return "rounding floor" if certificate.violation <= self._floor(solution.beta) else "stalled"
        self.asked = replace(self._stop.after(self.steps), tol=tol)
        return None

    def _can_return(self, solution: Solution, certificate: Certificate) -> bool:
        """Whether another return may lower the violation; one without progress needs more variables or precision."""
        progress = progressed(certificate, self._last)
        self._last = certificate.violation
        if progress or not solution.whole:
            # Variables dropped too early are back now. Where that does not help, none is dropped any more.
            self.shrinking = self.shrinking and progress
            return True
        if self._finer:
            self.precision, *self._finer = self._finer
            return True
        return False
