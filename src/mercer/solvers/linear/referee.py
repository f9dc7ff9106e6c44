"""Certify the points that the solvers of a linear machine propose, and keep the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from mercer.certificates.certificate import Certificate
from mercer.certificates.linear import certify_linear
from mercer.places.protocols import Rows
from mercer.problems.linear_problem import LinearProblem
from mercer.samples.arrays import Floats
from mercer.solvers.solution import ProgressLine, Stop, StopReason


@dataclass(frozen=True, eq=False)
class Point:
    """Point of a linear machine's solver: (w, b), its dual variables β, the steps or passes so far, the stop reason."""

    w: Floats
    b: float
    beta: Floats
    steps: int = 0
    reason: StopReason = "converged"


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Solution of a linear machine: w, b, β, the steps or passes, the stop reason, and the method with its reason.

    A joint multi-class machine has a row of w and an entry of b per class, and a column of β.
    """

    w: Floats
    b: float | Floats
    beta: Floats
    steps: int
    stop_reason: StopReason
    solver: str


# Function that certifies a point and returns its `Stop.goal_ratio`; at most 1 ends the solve.
PointJudge = Callable[[Point], float]


class Referee:
    """Certifier of one solve, with the best point so far and its certificate.

    Every `judge` method certifies a point, reports it, and returns its `Stop.goal_ratio`.
    """

    def __init__(self, problem: LinearProblem, rows: Rows, stop: Stop) -> None:
        self.problem, self.rows, self.stop = problem, rows, stop
        self.best: tuple[Point, Certificate] | None = None

    def judge(self, point: Point) -> float:
        """Certify (w, b) and β, after adjusting the sum of β to the bias."""
        return self._certify(replace(point, beta=self.problem.balanced(point.beta)))

    def judge_beta(self, point: Point) -> float:
        """Certify β with w = X'β, and with b from the free samples if the bias is free.

        During descent Σβ is not zero and b lags behind; the b computed here is better.
        """
        if not self.problem.exact_bias:
            return self.judge(point)
        beta = self.problem.balanced(point.beta)
        w = self.rows.transposed(beta)
        return self._certify(replace(point, w=w, b=self._best_bias(w, beta), beta=beta))

    def judge_both(self, point: Point) -> float:
        """Certify with Newton's w and with X'β; which has less rounding depends on the scale of the data."""
        return min(self.judge(point), self.judge_beta(point))

    def _best_bias(self, w: Floats, beta: Floats) -> float:
        """Return the free bias for w and β: the mean residual of the free samples, or the middle of its interval."""
        dual, variables = self.problem.dual, self.problem.dual_variables(beta)
        h = dual.p - self.rows.product(w)[dual.row] - dual.d * variables
        return float(dual.violation_and_offsets(variables, h)[1][0])

    def _certify(self, point: Point) -> float:
        """Certify a point, report it, and keep it if it is the best so far."""
        certificate = certify_linear(self.problem, self.rows, point.w, point.b, point.beta)
        # `violation` does not depend on a free bias: it can be small although b is wrong. These residuals show that.
        residual = max(certificate.kkt["primal feasibility"], certificate.kkt["complementary slackness"])
        if self.problem.exact_bias and certificate.violation <= self.stop.tol < residual:
            with_best_bias = replace(point, b=self._best_bias(point.w, point.beta))
            other_certificate = certify_linear(
                self.problem, self.rows, with_best_bias.w, with_best_bias.b, with_best_bias.beta
            )
            if other_certificate.gap < certificate.gap:
                point, certificate = with_best_bias, other_certificate
        goal_ratio = self.stop.goal_ratio(certificate)
        self.stop.report_progress(partial(certificate_line, point.steps, certificate), goal_ratio)
        best = None if self.best is None else self.best[1]
        # A point that meets the goal is never replaced by one that does not.
        if goal_ratio <= 1 or best is None or (certificate.gap <= best.gap and not self.stop.met(best)):
            self.best = (point, certificate)
        return goal_ratio


def certificate_line(steps: int, certificate: Certificate) -> str:
    """Return the progress line of a solve that has just certified a point."""
    line = (
        f"{steps:>8,} steps  violation {certificate.violation:.3e}  gap {certificate.gap:.3e}, "
        f"{certificate.relative_gap:.1e} of the dual value"
    )
    return ProgressLine.of(line, certificate.violation, certificate.gap)
