"""Kernel ridge regression by preconditioned conjugate gradients, for a K that does not fit into memory.

    (K + λW⁻¹) C = Y   ⇔   (I + S K S) Q = S Y,   C = S Q,   S = (W/λ)^½

The matrix of the second form has no eigenvalue below 1, whatever the weights, and weights of zero are allowed. Its
residual r = S(Y − KC) − Q gives the duality gap ½λ‖r‖² of ½Σw_i(y_i − f(x_i))² + ½λ‖f‖².
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
from mercer.solvers.conjugate_gradient import (
    Apply,
    NystromPreconditioner,
    ResidualCheck,
    conjugate_gradient_to_gap,
    nystrom_factor,
)
from mercer.solvers.deadline import ProofTime
from mercer.solvers.least_squares.solution import LeastSquaresSolution, Proven
from mercer.solvers.solution import Stop, StopReason
from mercer.solvers.solver import refuses

# Relative gap that conjugate gradients aim at: below EXACT_GAP, because eliminating the bias adds a right-hand side and
# rounding.
_AIM = 0.01 * EXACT_GAP


def _refusal(problem: LeastSquares, gram: Gram) -> str | None:
    """Return why conjugate gradients cannot solve the problem, or None."""
    if problem.lam == 0:
        return "solver='cg' needs lam above 0; use solver='eigen' for the solution of least norm"
    if gram.positive_definite == "no":
        return f"solver='cg' needs a positive semi-definite matrix, and {gram.kernel!r} has none here"
    return None


@refuses(_refusal)
def solve_cg(problem: LeastSquares, gram: Gram, stop: Stop, start: object = None) -> Proven:
    """Solve to a relative gap below 1e-10; a bias is eliminated by the constant 1 as one more right-hand side."""
    stop = replace(stop, tol=min(stop.gap_tol, _AIM))
    sides = [problem.mean, np.ones((problem.n, 1))] if problem.bias else [problem.mean]
    ridge = solve_ridge(gram, np.column_stack(sides), problem.lam, stop, problem.total)
    C = ridge.C[:, : problem.n_outputs]
    one = ridge.C[:, -1]
    if problem.bias and one.any():  # before the first step it is zero
        C = C - np.outer(one, C.sum(axis=0) / one.sum())
    beta, certificate = certify_solution(problem, gram.proof, C, *gram.proof.product_bound(C))
    reason = ridge.stop_reason
    if reason == "converged" and not is_exact(problem, certificate):
        reason = "rounding floor"
    b = np.array(certificate.b) if problem.bias else np.zeros(problem.n_outputs)
    solution = LeastSquaresSolution(b, "cg", problem.n, C=C, beta=beta, steps=ridge.steps, stop_reason=reason)
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
    """Solve kernel ridge regression without a bias by preconditioned conjugate gradients; K is never stored.

    `stop.tol` is the relative duality gap to reach in every output, recomputed in float64. A sample of weight zero gets
    the coefficient zero. `landmarks` is their number in the preconditioner, which changes the speed, not the solution.
    """
    n = gram.n
    weight = np.ones(n) if weight is None else weight
    s = np.sqrt(weight / lam)[:, None]
    check_seconds = Y.shape[1] * ProofTime(gram, stop)(np.ones(n))
    precondition: Apply = np.array
    with suppress(_core.OutOfTime), _core.TimeLimit(stop.seconds - 2 * check_seconds):
        precondition = NystromPreconditioner(nystrom_factor(gram, stop.n_threads, landmarks), s[:, 0], stop.n_threads)

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
    return RidgeSolution(s * Q, last.gap, last.extra, steps, reason)
