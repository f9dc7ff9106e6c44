"""Crammer and Singer's joint machine on the rows themselves: dual descent over samples, all classes of one at a time.

The problem, and what a certificate consists of, is that of `mercer.problems.multiclass`, with K = XX' never formed:
u = X W for W = X'β. There is either no bias or a regularised one, the weight of a constant feature: steps within one
sample cannot keep the sums over samples that a free bias needs.

Descent crawls where the scales of columns differ, as in raw data. If few enough samples make it feasible, the kernel
machine's ascent, with its Newton steps, then goes on from there on the Gram matrix of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.joint import certify_joint_rows
from mercer.places.gram import Gram
from mercer.places.protocols import Rows
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats
from mercer.solvers.joint.ascent import solve_joint
from mercer.solvers.linear.choose import crawls
from mercer.solvers.linear.referee import LinearSolution, certificate_words
from mercer.solvers.solution import Stop, StopReason

# When the certificate disagrees with a descent that took itself for converged, the descent's own tolerances shrink by
# this factor per round. Below _FLOOR of what was asked for, rounding is taken to be the cause.
_LOWER, _FLOOR = 0.5, 1e-9
# Descent pauses after this many passes, and then whenever they have doubled; from the second on its pace is known.
_FIRST_PAUSE = 100
_DESCENT = "dual coordinate descent: the joint machine has no other for the rows themselves"
_ALONE = "ascent on the Gram matrix of the rows: steps on one row after another would cost too much where they are"
_ASCENT = "dual coordinate descent, and where that crawled ascent on the Gram matrix of the rows"


def solve_joint_linear(
    problem: JointProblem,
    rows: Rows,
    stop: Stop,
    start: LinearSolution | None = None,
    *,
    seed: int = 0,
    shrinking: bool = True,
    gram: Callable[[], Gram] | None = None,
) -> tuple[LinearSolution, Certificate]:
    """W with one row per class, the biases, β with one column per class, and their certificate.

    `gram` makes the Gram matrix of the rows, if there may be one.
    """
    B, steps = math.sqrt(problem.shift), rows.descent
    beta = np.zeros((rows.n, problem.n_classes))
    if start is not None:
        beta = np.ascontiguousarray(problem.within_bounds(start.beta))
    if steps is None:
        if gram is None:
            raise ValueError(
                "this machine takes steps on one row after another, which cost too much where these samples are, or on "
                "their Gram matrix, and there is none; use multiclass='ovr'"
            )
        begin = beta, certify_joint_rows(problem, rows, beta)[1].violation
        return _by_ascent(problem, rows, stop, begin, gram(), 0, _ALONE)
    W = np.array([rows.transposed(np.ascontiguousarray(column)) for column in beta.T])
    state, passes, factor = np.array([seed], dtype=np.uint64), 0, 1.0
    pause, before = _FIRST_PAUSE, math.inf
    while True:
        # Afresh from β, which drops the rounding that many small steps have added up.
        flat, w, w_bias = beta.ravel(), np.ascontiguousarray(W.T).ravel(), B * beta.sum(axis=0)
        fixed = (problem.y.astype(np.int64, copy=False), problem.C, rows.lengths, B)
        limits = (factor * stop.tol, factor * stop.gap_tol, min(stop.max_iter, pause) - passes, stop.seconds)
        taken, _, _, ended = steps.descend_joint(*fixed, flat, w, w_bias, state, *limits, shrinking)
        passes += taken
        W, certificate = certify_joint_rows(problem, rows, beta)
        stop.tell(partial(certificate_words, passes, certificate), stop.missed(certificate))
        reason: StopReason | None = "converged" if stop.met(certificate) else stop.limit(passes)
        if reason is None and factor < _FLOOR:
            reason = "rounding floor"
        if reason is not None:
            return LinearSolution(W, np.array(certificate.b), beta, passes, reason, _DESCENT), certificate
        if ended == "converged":
            factor *= _LOWER
        if passes >= pause:
            missed = stop.missed(certificate)
            # The Gram matrix of 3,000 samples (72 MB) is one block for the ascent.
            if gram is not None and rows.n <= 3000 and crawls(before, missed, pause, _FIRST_PAUSE):
                begin = beta, certificate.violation
                return _by_ascent(problem, rows, stop, begin, gram(), passes, _ASCENT)
            before, pause = missed, 2 * pause


def _by_ascent(
    problem: JointProblem, rows: Rows, stop: Stop, begin: tuple[Floats, float], gram: Gram, passes: int, words: str
) -> tuple[LinearSolution, Certificate]:
    """The ascent's outcome from a β and its violation, proven on the rows; a pass is as many steps as rows."""
    beta, violation = begin
    tol = min(stop.tol, 0.5 * violation)  # finite, where only the gap is asked for
    left = replace(stop, tol=tol, max_iter=(stop.max_iter - passes) * rows.n)
    found, _ = solve_joint(problem, gram, left, beta)
    passes += -(-found.steps // rows.n)
    W, certificate = certify_joint_rows(problem, rows, found.beta)
    reason: StopReason = found.stop_reason
    if stop.met(certificate):
        reason = "converged"
    elif reason == "converged":
        reason = "rounding floor"  # the proof from the rows themselves differs from that of their Gram matrix
    return LinearSolution(W, np.array(certificate.b), found.beta, passes, reason, words), certificate
