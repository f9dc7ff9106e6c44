"""Crammer and Singer's joint machine on the rows themselves: dual descent over samples, all classes of one at a time.

The problem, and what a certificate consists of, is that of `mercer.problems.multiclass`, with K = XX' never formed:
u = X W for W = X'β. Only biases that are weights of a feature (or none) can be had this way: the sums over samples
that a free bias would ask for are not kept by steps within a sample.
"""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.joint import joint_certificate
from mercer.gram.linear_rows import LinearRows
from mercer.problems.multiclass import JointProblem
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.linear.choose import certificate_words

# A certificate that does not confirm what a pass has seen lowers the goal by so much.
_LOWER = 0.5


def solve_joint_linear(
    problem: JointProblem, rows: LinearRows, stop: Stop, seed: int, report: Report | None = None
) -> tuple[Floats, Floats, Certificate, int, StopReason]:
    """W with one row per class, the biases, the certificate, the passes made and why they ended."""
    B, K = math.sqrt(problem.shift), problem.n_classes
    beta, w, w_bias = np.zeros(rows.n * K), np.zeros(rows.d * K), np.zeros(K)
    state, passes, factor = np.array([seed], dtype=np.uint64), 0, 1.0
    while True:
        taken, _, _, ended = rows.core.descend_joint(
            problem.y.astype(np.int64, copy=False),
            problem.C,
            rows.lengths,
            B,
            beta,
            w,
            w_bias,
            state,
            factor * stop.tol,
            factor * stop.gap_tol,
            max(1, stop.max_iter - passes),
            max(0.0, stop.deadline - time.monotonic()),
        )
        passes += taken
        coefficients = beta.reshape(rows.n, K)
        W = np.array([rows.transposed(np.ascontiguousarray(column)) for column in coefficients.T])
        u = np.column_stack([rows.product(row) for row in W])
        certificate = joint_certificate(problem, coefficients, u, "optimality", "float64")
        if report is not None:
            report(partial(certificate_words, passes, certificate))
        b = problem.offsets(coefficients)
        if certificate.violation <= stop.tol and (
            stop.gap_tol == np.inf or certificate.gap <= stop.gap_tol * abs(certificate.dual)
        ):
            return W, b, certificate, passes, "converged"
        if ended == "max_seconds":
            return W, b, certificate, passes, "max_time"
        if passes >= stop.max_iter:
            return W, b, certificate, passes, "max_iter"
        if factor < 1e-9:
            return W, b, certificate, passes, "rounding floor"
        factor *= _LOWER
        w = np.ascontiguousarray(W.T).ravel()  # what rounding added in many small steps goes
        w_bias = B * coefficients.sum(axis=0)
