"""Crammer and Singer's joint machine on the rows of X: dual descent, with a step for all classes of one sample at once.

The problem and its certificate are those of `mercer.problems.multiclass`, with K = XX' never formed: u = XW for W =
X'β. There is either no bias or a regularised one, the weight of a constant feature: steps within one sample cannot keep
the sums over samples that a free bias needs.

Descent is slow if columns differ in scale, as in raw data. Then, if there are few enough samples, the kernel machine's
ascent with its Newton steps continues on the Gram matrix of the rows.
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
from mercer.solvers.linear.choose import is_slow
from mercer.solvers.linear.referee import LinearSolution, certificate_line
from mercer.solvers.solution import Stop, StopReason

# If descent reports convergence and the certificate does not meet the goal, the tolerances of descent are multiplied by
# _TOL_FACTOR. Below _FLOOR of the user's tolerances, rounding is taken to be the cause.
_TOL_FACTOR, _FLOOR = 0.5, 1e-9
# Descent pauses after this many passes, and then whenever they have doubled; from the second pause on its rate is
# known.
_FIRST_PAUSE = 100
_DESCENT = "dual coordinate descent: the only method of the joint machine on the rows"
_ASCENT_ALONE = "ascent on the Gram matrix of the rows: steps on single rows are too slow where the samples are stored"
_ASCENT = "dual coordinate descent, then ascent on the Gram matrix of the rows: descent was slow"


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
    """Solve Crammer and Singer's machine on the rows and certify it; W has a row per class, β a column per class.

    `gram` returns the Gram matrix of the rows; without it, only steps on the rows are taken.
    """
    B, steps = math.sqrt(problem.shift), rows.descent
    beta = np.zeros((rows.n, problem.n_classes))
    if start is not None:
        beta = np.ascontiguousarray(problem.within_bounds(start.beta))
    if steps is None:
        if gram is None:
            raise ValueError(
                "this machine takes steps on single rows, which are too slow where these samples are stored, or on "
                "their Gram matrix, and there is none; use multiclass='ovr'"
            )
        beta_and_violation = beta, certify_joint_rows(problem, rows, beta)[1].violation
        return _continue_by_ascent(problem, rows, stop, beta_and_violation, gram(), 0, _ASCENT_ALONE)
    W = np.array([rows.transposed(np.ascontiguousarray(column)) for column in beta.T])
    state, passes, factor = np.array([seed], dtype=np.uint64), 0, 1.0
    pause, last_ratio = _FIRST_PAUSE, math.inf
    while True:
        # 1. Run passes. W was computed again from β, so it has no rounding errors of earlier steps.
        flat_beta, w, w_bias = beta.ravel(), np.ascontiguousarray(W.T).ravel(), B * beta.sum(axis=0)
        constants = (problem.y.astype(np.int64, copy=False), problem.C, rows.squared_lengths, B)
        limits = (factor * stop.tol, factor * stop.gap_tol, min(stop.max_iter, pause) - passes, stop.seconds)
        n_passes, _, _, end_reason = steps.descend_joint(*constants, flat_beta, w, w_bias, state, *limits, shrinking)
        passes += n_passes
        # 2. Certify, and stop if the certificate meets `stop`, or at a limit.
        W, certificate = certify_joint_rows(problem, rows, beta)
        stop.report_progress(partial(certificate_line, passes, certificate), stop.goal_ratio(certificate))
        reason: StopReason | None = "converged" if stop.met(certificate) else stop.limit(passes)
        if reason is None and factor < _FLOOR:
            reason = "rounding floor"
        if reason is not None:
            return LinearSolution(W, np.array(certificate.b), beta, passes, reason, _DESCENT), certificate
        # 3. Tighten the tolerances of descent, or continue on the Gram matrix where descent is slow.
        if end_reason == "converged":
            factor *= _TOL_FACTOR
        if passes >= pause:
            goal_ratio = stop.goal_ratio(certificate)
            # The Gram matrix of 3,000 samples (72 MB) is one block for the ascent.
            if gram is not None and rows.n <= 3000 and is_slow(last_ratio, goal_ratio, pause, _FIRST_PAUSE):
                beta_and_violation = beta, certificate.violation
                return _continue_by_ascent(problem, rows, stop, beta_and_violation, gram(), passes, _ASCENT)
            last_ratio, pause = goal_ratio, 2 * pause


def _continue_by_ascent(
    problem: JointProblem, rows: Rows, stop: Stop, start: tuple[Floats, float], gram: Gram, passes: int, method: str
) -> tuple[LinearSolution, Certificate]:
    """Run the kernel machine's ascent from β and its violation, and certify on the rows; n steps count as a pass."""
    beta, violation = start
    tol = min(stop.tol, 0.5 * violation)  # finite, even if only the gap has a goal
    ascent_stop = replace(stop, tol=tol, max_iter=(stop.max_iter - passes) * rows.n)
    solution, _ = solve_joint(problem, gram, ascent_stop, beta)
    passes += -(-solution.steps // rows.n)
    W, certificate = certify_joint_rows(problem, rows, solution.beta)
    reason: StopReason = solution.stop_reason
    if stop.met(certificate):
        reason = "converged"
    elif reason == "converged":
        reason = "rounding floor"  # rounding differs between the rows and their Gram matrix
    return LinearSolution(W, np.array(certificate.b), solution.beta, passes, reason, method), certificate
