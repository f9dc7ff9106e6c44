"""The contract of every solver: what it is asked for, whom it tells on the way, and what it returns."""

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


class Words(str):
    """A line about how far a solver is, with the two numbers that it is about."""

    violation: float
    gap: float

    @classmethod
    def of(cls, line: str, violation: float, gap: float) -> Words:
        words = cls(line)
        words.violation, words.gap = violation, gap
        return words


class Report(Protocol):
    """Called before every outer step with a function that says in words how far the solver is, and with how many times
    too large its error still is, where it knows. It may raise to abandon the fit. The words are only made where
    somebody reads them."""

    def __call__(self, words: Callable[[], str], missed: float = ..., /) -> None: ...


@dataclass(frozen=True)
class Stop:
    """When to stop: a violation to reach, a relative gap as well, and limits that always hold; and whom to tell."""

    tol: float
    max_iter: int
    gap_tol: float = math.inf
    deadline: float = math.inf  # on time.monotonic's clock
    done: int = 0  # steps that were taken before, for words about how far the solver is
    n_threads: int = 1  # of the algebra between kernel values, which have their own
    alone: bool = True  # no other problem shares the deadline, so that nothing is lost where this one is given up
    proof_seconds: Callable[[Floats], float] | None = None  # what the certificate of these coefficients will take
    report: Report | None = None  # whom a solve tells how far it is

    def missed(self, certificate: Certificate) -> float:
        """How many times too large the violation or the gap is; at most 1 where both will do."""
        missed = self.times_tol(certificate.violation)
        wanted = self.gap_tol * abs(certificate.dual)
        if self.gap_tol < math.inf and not certificate.gap <= wanted:  # a gap that is not a number misses too
            ratio = certificate.gap / max(wanted, float(np.finfo(float).tiny))
            missed = max(missed, ratio) if ratio > 1 else math.inf
        return missed

    def times_tol(self, violation: float) -> float:
        """How many times tol this violation is."""
        return violation / max(self.tol, float(np.finfo(float).tiny))

    def met(self, certificate: Certificate) -> bool:
        """Whether the certificate proves what was asked for."""
        return self.missed(certificate) <= 1

    def limit(self, steps: int) -> StopReason | None:
        """The limit that ends a solve after these steps, if there is one."""
        if steps >= self.max_iter:
            return "max_iter"
        return "max_time" if time.monotonic() >= self.deadline else None

    def after(self, steps: int) -> Stop:
        """What is left of the limits after these steps."""
        return replace(self, max_iter=self.max_iter - steps, done=self.done + steps)

    def before_proof(self, beta: Floats) -> Stop:
        """What is left for a solver whose β is certified afterwards."""
        if self.deadline == math.inf or self.proof_seconds is None:
            return self
        return replace(self, deadline=self.deadline - self.proof_seconds(beta), proof_seconds=None)

    def tell(self, words: Callable[[], str], missed: float = math.nan) -> None:
        """Say how far the solve is, if somebody wants to know."""
        if self.report is not None:
            self.report(words, missed)

    @property
    def seconds(self) -> float:
        """The time that is left."""
        return max(0.0, self.deadline - time.monotonic())


class Solve(Protocol):
    """A solver: from a problem and the place where its data live to an outcome with its proof.

    Every outcome says `steps` and `stop_reason`; each family adds its coefficients.

    `start` is an earlier outcome's point to begin from. What else a solver can be told (shrinking, a seed) are keywords
    that whoever makes the task binds with functools.partial.
    """

    def __call__(self, problem: Any, place: Any, stop: Stop, start: Any = None, /) -> tuple[Any, Certificate]: ...


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible β, the steps it took and why it stopped, and the u = Kβ of its certificate where there is one.

    β and u have a column per class for the joint multi-class machines.

    Where not the `whole` problem was active at the end, the stop speaks of the active part: the certificate's pass over
    all rows tells whether a variable that was dropped has to come back.
    """

    beta: Floats
    steps: int
    stop_reason: StopReason
    whole: bool = True
    u: Floats | None = None
