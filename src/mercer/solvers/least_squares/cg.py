"""Kernel ridge regression by preconditioned conjugate gradients, for a K that does not fit into memory.

    (K + λW⁻¹) C = Y   ⇔   (I + S K S) Q = S Y,   C = S Q,   S = (W/λ)^½

The second form has no eigenvalue below 1 whatever the weights, and takes weights of zero. Its residual
r = S(Y − KC) − Q gives the duality gap ½λ‖r‖² of ½Σw_i(y_i − f(x_i))² + ½λ‖f‖².
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from mercer import _core
from mercer.certificates.least_squares import EXACT_GAP, certify_solution, is_exact
from mercer.places.gram import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, Precision
from mercer.solvers.conjugate_gradient import Apply, LowRank, ResidualCheck, conjugate_gradient_to_gap, tall_factor
from mercer.solvers.deadline import ProofTime
from mercer.solvers.least_squares.solution import LeastSquaresSolution, Proven
from mercer.solvers.solution import Stop, StopReason
from mercer.solvers.solver import refuses

# The constant of the bias is one more right-hand side, and rounding takes its share: conjugate gradients aim lower.
_AIM = 0.01 * EXACT_GAP


def _indefinite(problem: LeastSquares, gram: Gram) -> str | None:
    if problem.lam == 0:
        return "solver='cg' needs lam above 0; use solver='eigen' for the limit of least norm"
    if gram.positive_definite == "no":
        return f"solver='cg' needs a positive semi-definite matrix, and {gram.kernel!r} has none here"
    return None


@refuses(_indefinite)
def solve_cg(problem: LeastSquares, gram: Gram, stop: Stop, start: object = None) -> Proven:
    """The solution to a relative gap below 1e-10; the constant 1 as one more right-hand side eliminates a bias."""
    stop = replace(stop, tol=min(stop.gap_tol, _AIM))
    sides = [problem.mean, np.ones((problem.n, 1))] if problem.bias else [problem.mean]
    found = solve_ridge(gram, np.column_stack(sides), problem.lam, stop, problem.total)
    C = found.C[:, : problem.n_outputs]
    one = found.C[:, -1]
    if problem.bias and one.any():  # before the first step there is nothing to take away
        C = C - np.outer(one, C.sum(axis=0) / one.sum())
    beta, certificate = certify_solution(problem, gram.proof, C, *gram.proof.product_bound(C))
    reason = found.stop_reason
    if reason == "converged" and not is_exact(problem, certificate):
        reason = "rounding floor"
    b = np.array(certificate.b) if problem.bias else np.zeros(problem.n_outputs)
    solution = LeastSquaresSolution(b, "cg", problem.n, C=C, beta=beta, steps=found.steps, stop_reason=reason)
    return solution, certificate


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """C with (K + λW⁻¹)C = Y, and each output's duality gap and primal value, recomputed in float64."""

    C: Floats
    gap: Floats
    primal: Floats
    steps: int
    stop_reason: StopReason


def solve_ridge(
    gram: Gram, Y: Floats, lam: float, stop: Stop, weight: Floats | None = None, landmarks: int | None = None
) -> RidgeSolution:
    """Kernel ridge regression without a bias, by preconditioned conjugate gradients; K is never stored.

    `stop.tol` is the relative duality gap to reach in every output, as recomputed in float64. A sample of weight zero
    gets the coefficient zero. `landmarks` are those of the preconditioner, which change the speed and not the answer.
    """
    n = gram.n
    weight = np.ones(n) if weight is None else weight
    s = np.sqrt(weight / lam)[:, None]
    check_seconds = Y.shape[1] * ProofTime(gram, stop)(np.ones(n))
    precondition: Apply = np.array
    with suppress(_core.OutOfTime), _core.TimeLimit(stop.seconds - 2 * check_seconds):
        precondition = LowRank(tall_factor(gram, stop.n_threads, landmarks), s[:, 0], stop.n_threads)

    def check(Q: Floats) -> ResidualCheck:
        C = s * Q
        U = gram.products(C)
        R = s * (Y - U) - Q
        primal = 0.5 * np.sum(weight[:, None] * (Y - U) ** 2, axis=0) + 0.5 * lam * np.sum(C * U, axis=0)
        goal = stop.tol * np.maximum(primal, np.finfo(float).tiny)
        return ResidualCheck(R, 0.5 * lam * np.sum(R * R, axis=0), goal, primal)

    def apply(dtype: Precision, P: Floats) -> Floats:
        return np.asarray(P + s * gram.products(s * P, dtype=dtype))

    Q, last, steps, reason = conjugate_gradient_to_gap(
        Y.shape,
        check,
        apply,
        precondition,
        lambda gap: np.sqrt(gap * 2 / lam),
        stop,
        precisions=gram.precisions,
        check_seconds=2 * check_seconds,  # the certificate takes as long
    )
    if not np.isfinite(last.gap).all():
        raise FloatingPointError(
            "the duality gap overflowed: the targets, the weights and 1/lam are too large together; scale them"
        )
    return RidgeSolution(s * Q, last.gap, last.found, steps, reason)
