"""Crammer and Singer's joint machine on the rows themselves: dual descent over samples, all classes of one at a time.

The problem, and what a certificate consists of, is that of `mercer.problems.multiclass`, with K = XX' never formed:
u = X W for W = X'β. There is either no bias or a regularised one, the weight of a constant feature: steps within one
sample cannot keep the sums over samples that a free bias needs.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.joint import joint_certificate
from mercer.gram.linear_rows import LinearRows
from mercer.problems.multiclass import JointProblem
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.linear.outcome import LinearSolution
from mercer.solvers.linear.referee import certificate_words

# When the certificate disagrees with a descent that took itself for converged, the descent's own tolerances shrink by
# this factor per round. Below _FLOOR of what was asked for, rounding is taken to be the cause.
_LOWER, _FLOOR = 0.5, 1e-9
_SOLVER = "dual coordinate descent: the joint machine has no other"


def solve_joint_linear(
    problem: JointProblem,
    rows: LinearRows,
    stop: Stop,
    start: LinearSolution | None = None,
    report: Report | None = None,
    *,
    seed: int = 0,
) -> tuple[LinearSolution, Certificate]:
    """W with one row per class, the biases, β with one column per class, and their certificate."""
    B, K = math.sqrt(problem.shift), problem.n_classes
    beta = np.zeros((rows.n, K)) if start is None else _within_bounds(problem, start.beta)
    W = _combinations(rows, beta)
    state, passes, factor = np.array([seed], dtype=np.uint64), 0, 1.0
    while True:
        # Afresh from β, which drops the rounding that many small steps have added up.
        flat, w, w_bias = beta.ravel(), np.ascontiguousarray(W.T).ravel(), B * beta.sum(axis=0)
        taken, _, _, _ = rows.core.descend_joint(
            problem.y.astype(np.int64, copy=False),
            problem.C,
            rows.lengths,
            B,
            flat,
            w,
            w_bias,
            state,
            factor * stop.tol,
            factor * stop.gap_tol,
            stop.max_iter - passes,
            stop.seconds,
        )
        passes += taken
        W = _combinations(rows, beta)
        u = np.column_stack([rows.product(row) for row in W])
        certificate = joint_certificate(problem, beta, u, "optimality", "float64")
        if report is not None:
            report(partial(certificate_words, passes, certificate))
        reason: StopReason | None = "converged" if stop.met(certificate) else stop.limit(passes)
        if reason is None and factor < _FLOOR:
            reason = "rounding floor"
        if reason is not None:
            return LinearSolution(W, problem.offsets(beta), beta, passes, reason, _SOLVER), certificate
        factor *= _LOWER


def _combinations(rows: LinearRows, beta: Floats) -> Floats:
    """X'β, one row per class."""
    return np.array([rows.transposed(np.ascontiguousarray(column)) for column in beta.T])


def _within_bounds(problem: JointProblem, beta: Floats) -> Floats:
    """β with each sample's coefficients scaled down to its own bound."""
    total = beta[np.arange(problem.n), problem.y]
    return np.ascontiguousarray(beta * np.minimum(1.0, problem.C / np.maximum(total, problem.C))[:, None])
