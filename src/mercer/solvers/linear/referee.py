"""The referee of a linear machine's solvers: it certifies the points they propose and keeps the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from mercer.certificates.certificate import Certificate
from mercer.certificates.linear import certify_linear
from mercer.places.protocols import Rows
from mercer.problems.linear_problem import LinearProblem
from mercer.samples.arrays import Floats
from mercer.solvers.solution import Stop, StopReason, Words


@dataclass(frozen=True, eq=False)
class Point:
    """(w, b) and the dual variables β they were found with, the steps or passes so far, and why the solver left it."""

    w: Floats
    b: float
    beta: Floats
    steps: int = 0
    reason: StopReason = "converged"


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """w, b and β, the steps or passes they took, why it stopped, and which method it was and why.

    A joint multi-class machine has a row of w and an entry of b per class, and a column of β.
    """

    w: Floats
    b: float | Floats
    beta: Floats
    steps: int
    stop_reason: StopReason
    solver: str


# How many times too large the violation or the gap of a point is, as `Stop.missed` counts; at most 1 ends the solve.
Judge = Callable[[Point], float]


class Referee:
    """One solve: the problem, its rows, what is asked for, and the best point so far with its certificate.

    Each way of judging a point certifies and reports it, and says what it misses.
    """

    def __init__(self, problem: LinearProblem, rows: Rows, stop: Stop) -> None:
        self.problem, self.rows, self.stop = problem, rows, stop
        self.best: tuple[Point, Certificate] | None = None

    def judge(self, point: Point) -> float:
        """What (w, b) and β miss, once the sum of β is what the bias asks for."""
        return self._certify(replace(point, beta=self.problem.balanced(point.beta)))

    def judge_beta(self, point: Point) -> float:
        """What β misses where b is free: with w = X'β, and b from the free samples.

        The sum of β is not zero during descent, and its b lags behind; this one is better.
        """
        if not self.problem.exact_bias:
            return self.judge(point)
        dual, beta = self.problem.dual, self.problem.balanced(point.beta)
        w, variables = self.rows.transposed(beta), self.problem.dual_variables(beta)
        h = dual.p - self.rows.product(w)[dual.row] - dual.d * variables
        b = float(dual.violation_and_offsets(variables, h)[1][0])
        return self._certify(replace(point, w=w, b=b, beta=beta))

    def judge_both(self, point: Point) -> float:
        """The less of the two: which w suffers more from rounding, Newton's or X'β, depends on the data's scale."""
        return min(self.judge(point), self.judge_beta(point))

    def _certify(self, point: Point) -> float:
        certificate = certify_linear(self.problem, self.rows, point.w, point.b, point.beta)
        missed = self.stop.missed(certificate)
        self.stop.tell(partial(certificate_words, point.steps, certificate), missed)
        best = None if self.best is None else self.best[1]
        # A point that meets the goal never gives way to one that does not.
        if missed <= 1 or best is None or (certificate.gap <= best.gap and not self.stop.met(best)):
            self.best = (point, certificate)
        return missed


def certificate_words(steps: int, certificate: Certificate) -> str:
    """A line about a running solve that certifies on the way."""
    line = (
        f"{steps:>8,} steps  violation {certificate.violation:.3e}  gap {certificate.gap:.3e}, "
        f"{certificate.relative_gap:.1e} of the dual value"
    )
    return Words.of(line, certificate.violation, certificate.gap)
