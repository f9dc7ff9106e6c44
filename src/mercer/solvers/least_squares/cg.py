"""Kernel ridge regression by preconditioned conjugate gradients, for a K that does not fit into memory.

    (K + λW⁻¹) C = Y   ⇔   (I + S K S) Q = S Y,   C = S Q,   S = (W/λ)^½

The matrix of the second form has no eigenvalue below 1, whatever the weights, and weights of zero are allowed. Its
residual r = S(Y − KC) − Q gives the duality gap ½λ‖r‖² of ½Σw_i(y_i − f(x_i))² + ½λ‖f‖². A bias adds the condition
1'C = 0, that is s'Q = 0 with s the diagonal of S: steps and residuals are then projected onto these Q, and the part of
the residual along s is the bias.

Products with K are float32 where that suffices. The error of a product moves the residual by at most its own size times
the length of the step. It is measured on a few rows of each product. If the first one is too inexact for the residual
to reach, a run aims at a larger residual, or some of its products are float64. At the end of a run the true residual is
recomputed in float64; if it is too large, the solve continues from there.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer import _core
from mercer.certificates.least_squares import EXACT_GAP, certify_outputs, certify_solution, is_exact
from mercer.places.gram import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, gamma
from mercer.solvers.conjugate_gradient import (
    Apply,
    NystromPreconditioner,
    ResidualCheck,
    column_products,
    conjugate_gradient_to_gap,
    draw_landmarks,
)
from mercer.solvers.deadline import ProofTime
from mercer.solvers.least_squares.solution import LeastSquaresSolution, Proven
from mercer.solvers.solution import Stop, StopReason
from mercer.solvers.solver import refuses

# Number of rows on which float32 products are compared with float64 ones.
_COMPARED_ROWS = 128
# Share of the gap to reach that a run aims at: the rest is for the rounding of float32 products.
_AIM_SHARE = 0.25


def _refusal(problem: LeastSquares, gram: Gram) -> str | None:
    """Return why conjugate gradients cannot solve the problem, or None."""
    if problem.lam == 0:
        return "solver='cg' needs lam above 0; use solver='eigen' for the solution of least norm"
    if gram.positive_definite == "no":
        return f"solver='cg' needs a positive semi-definite matrix, and {gram.kernel!r} has none here"
    return None


@refuses(_refusal)
def solve_cg(problem: LeastSquares, gram: Gram, stop: Stop, start: object = None) -> Proven:
    """Solve to a relative gap below 1e-10; the last check of the solver is the certificate's product."""
    stop = replace(stop, tol=min(stop.gap_tol, EXACT_GAP))
    ridge = solve_ridge(gram, problem.mean, problem.lam, stop, problem.total, bias=problem.bias)
    C, U, errors, reason = ridge.C, ridge.U, ridge.errors, ridge.stop_reason
    if reason not in ("max_iter", "max_time"):
        try:
            with _core.TimeLimit(stop.seconds):
                beta, certificate = certify_solution(problem, gram.proof, C, U, errors)
            reason = "converged" if is_exact(problem, certificate) else "rounding floor"
        except _core.OutOfTime:  # in a pass of a higher precision than that of U
            reason = "max_time"
    if reason in ("max_iter", "max_time"):  # with the precision of U: far from the optimum, a higher one would not help
        beta = problem.split(C, gram.diagonal)
        certificate = certify_outputs(problem, gram.proof, beta, U, errors, C)
    b = np.array(certificate.b) if problem.bias else np.zeros(problem.n_outputs)
    solution = LeastSquaresSolution(b, "cg", problem.n, C=C, beta=beta, steps=ridge.steps, stop_reason=reason)
    return solution, certificate


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """C with (K + λW⁻¹)C + 1b' = Y, U = KC exact up to `errors`, and each output's duality gap and primal value.

    All of them are recomputed in float64 from C alone.
    """

    C: Floats
    U: Floats
    errors: Floats
    gap: Floats
    primal: Floats
    steps: int
    stop_reason: StopReason


def solve_ridge(
    gram: Gram,
    Y: Floats,
    lam: float,
    stop: Stop,
    weight: Floats | None = None,
    landmarks: int | None = None,
    *,
    bias: bool = False,
) -> RidgeSolution:
    """Solve kernel ridge regression by preconditioned conjugate gradients; K is never stored.

    `stop.tol` is the relative duality gap to reach in every output, recomputed in float64. A sample of weight zero gets
    the coefficient zero. `landmarks` is their number in the preconditioner, which changes the speed, not the solution.
    """
    n = gram.n
    weight = np.ones(n) if weight is None else weight
    s = np.sqrt(weight / lam)[:, None]
    project: Apply = _OrthogonalProjection(s) if bias else np.asarray
    floor = 0.5 * (weight @ (gamma(n + 16) * Y) ** 2)  # as in `is_exact`
    check_seconds = Y.shape[1] * ProofTime(gram, stop)(np.ones(n))
    precondition = project
    with suppress(_core.OutOfTime), _core.TimeLimit(stop.seconds - check_seconds):
        J = draw_landmarks(gram, s[:, 0], landmarks, stop.n_threads)
        stop.report_progress(partial("preconditioner of {:,} landmarks".format, len(J)))
        precondition = NystromPreconditioner(gram, s[:, 0], J, stop.n_threads)
        if bias:
            precondition = _RestrictedPreconditioner(precondition, s)

    def check(Q: Floats) -> ResidualCheck:
        Q = project(Q)
        C = s * Q
        U, errors = gram.proof.product_bound(C) if C.any() else (np.zeros(C.shape), np.zeros(C.shape))
        R = project(s * (Y - U) - Q)
        residual = Y - U
        if bias:
            residual = residual - weight @ residual / weight.sum()
        primal = 0.5 * np.sum(weight[:, None] * residual**2, axis=0) + 0.5 * lam * np.sum(C * U, axis=0)
        optimum = primal
        if not C.any():
            # The optimum is ½λr'(I + SKS)⁻¹r: its estimate by the preconditioner is closer than the value at 0.
            optimum = np.minimum(primal, 0.5 * lam * column_products(R, precondition(R)))
        goal = np.maximum(stop.tol * optimum, np.maximum(floor, np.finfo(float).tiny))
        return ResidualCheck(R, 0.5 * lam * column_products(R, R), goal, (C, U, errors, primal))

    def product(P: Floats) -> Floats:
        return project(P + s * gram.products(s * P))

    support = np.flatnonzero(s)
    rows = support[np.linspace(0, len(support) - 1, min(len(support), _COMPARED_ROWS)).astype(np.intp)]

    def coarse_product(P: Floats) -> tuple[Floats, Floats]:
        C = s * P
        KC = gram.products(C, dtype=gram.precisions[0])
        E = s[rows] * (gram.products(C, rows) - KC[rows])
        return project(P + s * KC), np.sqrt(column_products(E, E) * (len(support) / len(rows)))

    _, last, steps, reason = conjugate_gradient_to_gap(
        Y.shape,
        check,
        product,
        precondition,
        lambda gap: np.sqrt(gap * 2 / lam),
        stop,
        coarse=coarse_product if len(gram.precisions) > 1 else None,
        safety=_AIM_SHARE,
        check_seconds=check_seconds,
    )
    if not np.isfinite(last.gap).all():
        raise FloatingPointError(
            "the duality gap overflowed: the targets, the weights and 1/lam are too large together; scale them"
        )
    C, U, errors, primal = last.extra
    return RidgeSolution(C, U, errors, last.gap, primal, steps, reason)


class _OrthogonalProjection:
    """Projection of columns onto the vectors orthogonal to s."""

    def __init__(self, s: Floats) -> None:
        self._unit = s / np.linalg.norm(s)

    def __call__(self, R: Floats) -> Floats:
        return np.asarray(R - self._unit * column_products(np.broadcast_to(self._unit, R.shape), R))


class _RestrictedPreconditioner:
    """A preconditioner M restricted to the vectors orthogonal to s: Z = M(R − s·a) with s'Z = 0."""

    def __init__(self, precondition: Apply, s: Floats) -> None:
        self._precondition, self._project = precondition, _OrthogonalProjection(s)
        self._preconditioned_s = precondition(s)
        self._s, self._s_product = s, float(column_products(s, self._preconditioned_s)[0])

    def __call__(self, R: Floats) -> Floats:
        """Return Z for residuals R."""
        Z = self._precondition(R)
        products = column_products(np.broadcast_to(self._s, Z.shape), Z)
        return self._project(Z - self._preconditioned_s * (products / self._s_product))
