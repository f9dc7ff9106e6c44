"""The proof of a dual problem's solution, computed from β alone, without the solver.

With f = u[row] + b_group, r = p − f:

    loss_i = max over t in [lower_i, upper_i] of  r_i t − d_i t²/2
    primal = ½β'Kβ + Σ loss_i + Σ_g b_g·total_g
    dual   = p'β − ½β'(K + diag d)β
    gap    = primal − dual = Σ [loss_i − (β_i r_i − d_iβ_i²/2)],  every term ≥ 0

For a positive semi-definite K no feasible point has a larger dual value than `primal`, so the gap bounds how far β
is from the optimum. For an indefinite K the same numbers measure stationarity only, and `proves` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, inner, norm
from mercer.certificates.certificate import Certificate, Proves
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem

# What a certificate proves, by what is known of the kernel matrix.
PROOF: dict[str, Proves] = {
    "yes": "optimality",
    "no": "stationarity",
    "depends": "optimality if K is positive semi-definite",
    "unknown": "optimality if K is positive semi-definite",
}

# The largest error of u in a float32 pass, per unit of ‖β‖₂ (tested in tests/certificates/test_precision.py).
_FLOAT32_ERROR = 1e-7
# Rows of a float32 pass that are recomputed in float64, among them those that decide the violation. With fewer than
# eight times as many rows the whole pass is float64.
SPOT_CHECK_ROWS = 512


def certify(problem: DualProblem, gram: Gram, beta: Floats, tol: float = 0.0) -> tuple[Certificate, Floats]:
    """The certificate of β, and the recomputed u = Kβ that it rests on.

    Kernel values are float32 only if their error is far below `tol`. The rows that matter most are then checked in
    float64.
    """
    coefficients = problem.row_coefficients(beta, gram.n)
    u, precision = recompute_u(
        gram,
        norm(coefficients),
        tol,
        lambda rows, dtype: gram.product(coefficients, rows, dtype),
        lambda u: _deciding(problem, beta, u),
    )
    return certificate_of(problem, beta, u, PROOF[gram.positive_definite], precision), u


def certificate_of(problem: DualProblem, beta: Floats, u: Floats, proves: Proves, precision: str) -> Certificate:
    """The certificate of β with a u = Kβ that was computed from it."""
    coefficients = problem.row_coefficients(beta, len(u))
    h = problem.gradient(beta, u)
    violation, b = problem.violation_and_offsets(beta, h)
    residual = h - (b[problem.group] if len(b) else 0.0)
    losses, terms = gap_terms(problem, beta, residual)
    energy = inner(coefficients, u)
    return Certificate(
        primal=0.5 * energy + float(losses.sum() + b @ problem.totals),
        dual=inner(problem.p, beta) - 0.5 * energy - 0.5 * inner(problem.d * beta, beta),
        gap=float(terms.sum()),
        violation=violation,
        kkt=kkt_residuals(problem, beta, residual),
        proves=proves,
        precision=precision,
        worst=int(np.argmax(terms)),
        b=tuple(b.tolist()),
    )


def gap_terms(problem: DualProblem, beta: Floats, residual: Floats) -> tuple[Floats, Floats]:
    """Each variable's loss and its share of the gap, from residual = h − b (so r = residual + dβ)."""
    d, r = problem.d, residual + problem.d * beta
    curved = d > 0
    best = np.where(r > 0, problem.upper, problem.lower)
    best[curved] = np.clip(r[curved] / d[curved], problem.lower[curved], problem.upper[curved])
    best[r == 0] = 0.0  # any t is optimal; 0 avoids zero times an infinite bound
    losses = r * best
    losses[curved] -= 0.5 * d[curved] * best[curved] ** 2
    return losses, np.maximum(losses - beta * (r - 0.5 * d * beta), 0.0)


def single_suffices(gram: Gram, norm: float, tol: float) -> bool:
    """Whether float32 kernel values are precise enough, and faster, for a certificate of coefficients of this norm."""
    return gram.n > 8 * SPOT_CHECK_ROWS and len(gram.precisions) > 1 and _FLOAT32_ERROR * norm <= tol / 10


def recompute_u(
    gram: Gram,
    norm: float,
    tol: float,
    product: Callable[[Indices | None, Any], Floats],
    deciding: Callable[[Floats], Indices],
) -> tuple[Floats, str]:
    """u = Kβ, recomputed as precisely as `tol` requires for coefficients of this norm, and its precision in words.

    `product` computes u for some rows, or all, with kernel values of some precision; `deciding` finds the rows that
    decide the violation, given u.
    """
    if not single_suffices(gram, norm, tol):
        return product(None, np.float64), "float64"
    u = product(None, np.float32)
    rows = deciding(u)
    exact = product(rows, np.float64)
    if np.abs(exact - u[rows]).max() > tol / 10:
        return product(None, np.float64), "float64"
    u[rows] = exact
    return u, f"float32 with float64 sums, {len(rows)} rows in float64"


def _deciding(problem: DualProblem, beta: Floats, u: Floats) -> Indices:
    """The rows of the variables that violate most, or are closest to it, on both sides."""
    h = problem.gradient(beta, u)
    up, low = problem.movable(beta)
    half = SPOT_CHECK_ROWS // 2
    worst = np.concatenate([_largest(np.where(up, h, -np.inf), half), _largest(np.where(low, -h, -np.inf), half)])
    return np.unique(problem.row[worst])


def _largest(score: Floats, count: int) -> Indices:
    return np.argpartition(score, -count)[-count:] if len(score) > count else np.arange(len(score))


def kkt_residuals(problem: DualProblem, beta: Floats, residual: Floats) -> dict[str, float]:
    """Each optimality condition by name with its largest residual.

    A positive `residual` = h − b says that β should grow, a negative one that it should shrink. If β should move away
    from zero, the sample's error exceeds the slack that its multiplier allows (primal feasibility). If it should move
    towards zero, its multiplier belongs to a constraint that is not tight (complementary slackness).
    """
    up, low = problem.movable(beta)
    grow = np.where(up, np.maximum(residual, 0.0), 0.0)
    shrink = np.where(low, np.maximum(-residual, 0.0), 0.0)
    outward = np.where(beta > 0, grow, np.where(beta < 0, shrink, np.maximum(grow, shrink)))
    inward = np.where(beta > 0, shrink, np.where(beta < 0, grow, 0.0))
    box = np.maximum(problem.lower - beta, beta - problem.upper)
    sums = np.array([beta[problem.group == g].sum() for g in range(len(problem.totals))])
    return {
        "dual feasibility: box": max(0.0, float(box.max(initial=0.0))),
        "dual feasibility: equality": float(np.abs(sums - problem.totals).max(initial=0.0)),
        "primal feasibility": float(outward.max(initial=0.0)),
        "complementary slackness": float(inward.max(initial=0.0)),
    }
