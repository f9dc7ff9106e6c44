"""The proof of a dual problem's solution, computed from β alone, without the solver.

With f = u[row] + b_group, r = p − f:

    loss_i = max over t in [lower_i, upper_i] of  r_i t − d_i t²/2
    primal = ½β'Kβ + Σ loss_i + Σ_g b_g·total_g
    dual   = p'β − ½β'(K + diag d)β
    primal − dual = Σ [loss_i − (β_i r_i − d_iβ_i²/2)] + Σ_g b_g·(total_g − Σβ),  every term of the first sum ≥ 0

For a positive semi-definite K no feasible point has a larger dual value than `primal`, so the gap bounds how far β
is from the optimum. For an indefinite K the same numbers measure stationarity only, and `proves` says so.

Each u_i comes with a bound e_i on its rounding errors (mercer/gram/rounding.py). `violation` and `gap` are the largest
values that any u within these bounds gives, so rounding cannot make them too small. Rows that could matter for them are
recomputed with more precision until they do not, or until there is no more (docs/certificate.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Flags, Floats, Indices, inner
from mercer.certificates.certificate import Certificate, Proves
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.problems.working_set import violation

# What a certificate proves, by what is known of the kernel matrix.
PROOF: dict[str, Proves] = {
    "yes": "optimality",
    "no": "stationarity",
    "depends": "optimality if K is positive semi-definite",
    "unknown": "optimality if K is positive semi-definite",
}

# From this many rows on a float32 pass over the rows that cannot matter saves time (spam, 3,221 rows: a sixth of it).
_ROWS_FOR_FLOAT32 = 2000
# A bound on rounding below this share of tol is small enough.
NEGLIGIBLE_SHARE = 0.05
_EPS = float(np.finfo(float).eps)

# u and e on some rows, or all, at one of the levels of `Gram.levels`.
BoundedProduct = Callable[[Indices | None, Any], tuple[Floats, Floats]]


def certify(problem: DualProblem, gram: Gram, beta: Floats, tol: float = 0.0) -> tuple[Certificate, Floats]:
    """The certificate of β, and the recomputed u = Kβ that it rests on."""
    coefficients = problem.row_coefficients(beta, gram.n)
    up, low = problem.movable(beta)
    free = np.zeros(gram.n, dtype=np.bool_)
    free[problem.row[up & low]] = True
    u, e, precision = bounded_u(
        gram,
        lambda rows, level: gram.product_bound(coefficients, rows, level),
        lambda u, e: _undecided(problem, beta, u, e, tol),
        free,
    )
    return certificate_of(problem, beta, u, PROOF[gram.positive_definite], precision, e), u


def certificate_of(
    problem: DualProblem, beta: Floats, u: Floats, proves: Proves, precision: str, e: Floats | None = None
) -> Certificate:
    """The certificate of β with a u = Kβ that was computed from it, and whose rows err by at most e."""
    coefficients = problem.row_coefficients(beta, len(u))
    h = problem.gradient(beta, u)
    error = gradient_errors(problem, beta, u, e)
    b = problem.violation_and_offsets(beta, h)[1]
    offset = b[problem.group] if len(b) else 0.0
    residual = h - offset
    ends = [gap_terms(problem, beta, residual + error), gap_terms(problem, beta, residual - error)]
    highest, terms = (np.maximum(*both) for both in zip(*ends, strict=True))  # both are convex in the residual
    # Float32 rows are far from where they could matter for the gap, but not exact enough for values that are bounds.
    bounds = not precision.startswith("float32")
    losses = highest if bounds else gap_terms(problem, beta, residual)[0]
    energy = inner(coefficients, u)
    primal = 0.5 * energy + float(losses.sum() + b @ problem.totals)
    dual = inner(problem.p, beta) - 0.5 * energy - 0.5 * inner(problem.d * beta, beta)
    if bounds:
        summed = _EPS * len(beta) * float(np.abs(beta) @ (np.abs(problem.p) + np.abs(u[problem.row])))
        wrong = 0.5 * inner(np.abs(coefficients), error_of_rows(e, u)) + summed
        primal += wrong + _EPS * len(beta) * float(losses.sum())
        dual -= wrong + _EPS * len(beta) * inner(problem.d * beta, beta)
    excess = _excess_sums(problem, beta)
    unbalanced = float(np.abs(b) @ excess[: len(b)])
    dual -= unbalanced
    gap = (float(terms.sum()) + unbalanced) * (1 + len(terms) * _EPS)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        violation=_largest_violation(problem, beta, h, error),
        kkt=kkt_residuals(problem, beta, residual, error, excess),
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


def gradient_errors(problem: DualProblem, beta: Floats, u: Floats, e: Floats | None) -> Floats:
    """How far each h = p − u − dβ can be from the true one, given the errors of u."""
    sizes = np.abs(problem.p) + np.abs(u[problem.row]) + np.abs(problem.d * beta)
    return 2 * _EPS * sizes if e is None else e[problem.row] + 2 * _EPS * sizes


def coarse_pass(gram: Gram) -> bool:
    """Whether a certificate computes the rows that cannot matter in float32."""
    return gram.n > _ROWS_FOR_FLOAT32 and gram.precisions[0] == np.float32


def error_of_rows(e: Floats | None, u: Floats) -> Floats:
    return 2 * _EPS * np.abs(u) if e is None else e


def bounded_u(
    gram: Gram,
    product: BoundedProduct,
    undecided: Callable[[Floats, Floats], Flags],
    free: Flags,
) -> tuple[Floats, Floats, str]:
    """u = Kβ, a bound on each row's error, and the precision in words.

    Rows that are `undecided` given u and e go to the next level of precision. `free` rows are known to be among them,
    so they are spared the float32 pass.
    """
    levels, n = list(gram.levels), gram.n
    if levels[0] == np.float32 and (not coarse_pass(gram) or free.sum() > n // 2):
        levels = levels[1:]
    if levels[0] != np.float32:
        u, e = product(None, levels[0])
        words = "float64"
    else:
        fine, coarse = np.flatnonzero(free), np.flatnonzero(~free)
        u_coarse, e_coarse = product(coarse, np.float32)
        u, e = np.empty((n, *u_coarse.shape[1:])), np.empty((n, *e_coarse.shape[1:]))
        u[coarse], e[coarse] = u_coarse, e_coarse
        u[fine], e[fine] = product(fine, np.float64)
        rows = np.flatnonzero(undecided(u, e) & ~free)
        u[rows], e[rows] = product(rows, np.float64)
        levels = levels[1:]
        words = f"float32 with float64 sums, {len(fine) + len(rows)} rows in float64"
    for level in levels[1:]:
        rows = np.flatnonzero(undecided(u, e))
        if len(rows) == 0:
            break
        u[rows], e[rows] = product(rows if len(rows) < n else None, level)
        words += f", {len(rows)} rows without cancellation"
    return u, e, words


def _undecided(problem: DualProblem, beta: Floats, u: Floats, e: Floats, tol: float) -> Flags:
    """The rows whose errors are not negligible, and might hide that a variable should move."""
    error = gradient_errors(problem, beta, u, e)
    large = ~(error <= NEGLIGIBLE_SHARE * tol)  # true for NaN
    rows = np.zeros(len(u), dtype=np.bool_)
    if not large.any():
        return rows
    h = problem.gradient(beta, u)
    b = problem.violation_and_offsets(beta, h)[1]
    residual = h - (b[problem.group] if len(b) else 0.0)
    up, low = problem.movable(beta)
    moves = (up & ~(residual + error <= 0)) | (low & ~(residual - error >= 0))  # true for NaN
    rows[problem.row[moves & large]] = True
    return rows


def _largest_violation(problem: DualProblem, beta: Floats, h: Floats, error: Floats) -> float:
    """The largest violation of any gradient within these errors of h."""
    up, low = problem.movable(beta)
    return violation(h, up, low, problem.group, len(problem.totals), error)[0]


def _excess_sums(problem: DualProblem, beta: Floats) -> Floats:
    """The most that |Σβ − total| can be in every group, and in all of them together where there are several.

    Whole totals are exact. Others, such as a share ν of all weights, were rounded.
    """
    totals, n_groups = problem.totals, len(problem.totals)
    if n_groups == 0:
        return np.zeros(0)
    used = np.flatnonzero(beta)
    group, beta = problem.group[used], beta[used]
    members = [beta[group == g] for g in range(n_groups)] if n_groups > 1 else []
    wanted = [*totals, _sum(totals)] if n_groups > 1 else totals
    excess = np.abs([_sum(some) - total for some, total in zip([*members, beta], wanted, strict=True)])
    excess[:n_groups] += 4 * _EPS * np.where(totals == np.rint(totals), 0.0, np.abs(totals))
    return excess


def _sum(values: Floats) -> float:
    """Rounded once; infinite where it overflows on the way."""
    try:
        return math.fsum(values.tolist())
    except (OverflowError, ValueError):
        return math.inf


def kkt_residuals(
    problem: DualProblem, beta: Floats, residual: Floats, error: Floats | float = 0.0, excess: Floats | None = None
) -> dict[str, float]:
    """Each optimality condition by name with its largest residual, for any gradient within these errors.

    A positive `residual` = h − b says that β should grow, a negative one that it should shrink. If β should move away
    from zero, the sample's error exceeds the slack that its multiplier allows (primal feasibility). If it should move
    towards zero, its multiplier belongs to a constraint that is not tight (complementary slackness).
    """
    up, low = problem.movable(beta)
    grow = np.where(up, np.maximum(residual + error, 0.0), 0.0)
    shrink = np.where(low, np.maximum(error - residual, 0.0), 0.0)
    outward = np.where(beta > 0, grow, np.where(beta < 0, shrink, np.maximum(grow, shrink)))
    inward = np.where(beta > 0, shrink, np.where(beta < 0, grow, 0.0))
    excess = _excess_sums(problem, beta) if excess is None else excess
    box = np.maximum(problem.lower - beta, beta - problem.upper)
    return {
        "dual feasibility: box": float(box.max(initial=0.0)),
        "dual feasibility: equality": float(excess.max(initial=0.0)),
        "primal feasibility": float(outward.max(initial=0.0)),
        "complementary slackness": float(inward.max(initial=0.0)),
    }
