"""The proof of a joint multi-class fit, from β alone: u = Kβ is recomputed, and everything else follows from it.

    primal = ½ Σ_k β_k'(K + shift)β_k + Σ_i C_i loss_i
    dual   = Σ_i β_{i,y_i} − ½ Σ_k β_k'(K + shift)β_k
    gap    = primal − dual = Σ_i [C_i loss_i − Σ_k α_ik (e_ik − e_{i,y_i})],  every term ≥ 0

with the biases of the problem. For the balanced problem the last equation needs Σ_i β_ik = 0, which is one of the
listed conditions. It needs Σ_k β_ik = 0 as well: what rounding leaves of that sum, times e_{i,y_i}, joins the gap.

A linear machine keeps w_k, which is X'β_k only up to rounding. Its f is Xw + b, and ½ Σ_k ‖w_k − X'β_k‖² joins the gap.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.arrays import Flags, Floats, Indices, gamma
from mercer.arrays import norm as norm_of
from mercer.certificates.certificate import Certificate, Measures, conditions
from mercer.certificates.dual import NEGLIGIBLE_SHARE, PROOF, bounded_u
from mercer.certificates.least_squares import sums_of
from mercer.gram.ball import Ball
from mercer.gram.gram import Provable
from mercer.gram.protocols import Rows
from mercer.problems.multiclass import JointProblem

_EPS = float(np.finfo(float).eps)


def certify_joint(problem: JointProblem, gram: Provable, beta: Floats, tol: float = 0.0) -> tuple[Certificate, Floats]:
    """The certificate of β, and the recomputed u = Kβ that it rests on."""
    b = _biases(problem, beta)

    def undecided(u: Ball) -> Flags:
        wrong = _rounded(u, b)
        still = problem.violations(beta, problem.excess(u.value, b), error=wrong) <= 0
        return np.asarray(~still & ~(wrong.max(axis=1) <= NEGLIGIBLE_SHARE * tol))

    u, precision = bounded_u(
        gram, lambda rows, level: gram.product_bound(beta, rows, level), undecided, lambda: np.asarray(beta.any(axis=1))
    )
    return joint_certificate(problem, beta, u, PROOF[gram.positive_definite], precision), u.value


def certify_joint_rows(problem: JointProblem, rows: Rows, beta: Floats) -> tuple[Floats, Certificate]:
    """W = X'β, one row per class, each entry rounded once, and the certificate of both."""
    W, u = np.empty((problem.n_classes, rows.d)), Ball(np.empty(beta.shape), np.empty(beta.shape))
    apart, rounded = 0.0, 1 + gamma(rows.d + 8)
    for k, column in enumerate(beta.T):
        W[k], rest, error = rows.combination(np.ascontiguousarray(column))
        u.value[:, k], u.error[:, k] = rows.precise_product(W[k])
        lost = rounded * (norm_of(rest) + error)
        apart += lost * lost
    return W, joint_certificate(problem, beta, u, "optimality", "float64", (norm_of(W.ravel()), math.sqrt(apart)))


def joint_certificate(
    problem: JointProblem,
    beta: Floats,
    at: Ball,
    gap_measures: Measures,
    precision: str,
    kept: tuple[float, float] = (0.0, 0.0),
) -> Certificate:
    """The certificate of β with a u = Kβ that was computed from it.

    `kept` says that u comes from a w of this length instead, which is so far from the combination that β gives.
    """
    b, u = _biases(problem, beta), at.value
    e, wrong = problem.excess(u, b), _rounded(at, b)
    terms = problem.gap_terms(beta, e)
    shares = terms + problem.gap_errors(beta, e, wrong)
    own, (length, apart) = (np.arange(problem.n), problem.y), kept
    # A free bias costs nothing, whatever Σ_i β_ik may miss of zero.
    energy = float((beta * (u + problem.shift * sums_of(beta))).sum())
    losses = problem.losses(e, wrong)
    unbalanced = float((_missing(beta) * (np.abs(e[own]) + wrong[own] + 1 + losses / problem.C)).sum())
    if problem.balanced:
        unbalanced += (1 + _EPS) * float(np.abs(b) @ np.abs(sums_of(beta)))
    distance = 0.5 * apart * apart
    primal, dual = 0.5 * energy + float(losses.sum()), float(beta[own].sum()) - 0.5 * energy - unbalanced
    dual -= 0.5 * apart * (length + apart)
    primal += 0.5 * apart * length
    summed = _EPS * problem.n * float((np.abs(beta) * (np.abs(u) + np.abs(b) + 1)).sum())
    off = 0.5 * float((np.abs(beta) * wrong).sum()) + summed
    primal, dual = primal + off + _EPS * problem.n * float(losses.sum()), dual - off
    kkt = _kkt(problem, beta, e)
    widest = 2 * float(wrong.max(initial=0.0))
    for name in ("primal feasibility", "complementary slackness"):
        kkt[name] += widest
    gap = (float(shares.sum()) + unbalanced + distance) * (1 + problem.n * _EPS)
    # As for the other linear machines: a w that is not the combination violates by what it adds to the gap.
    missed = distance / max(primal, np.finfo(float).tiny) if distance else 0.0
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        violation=float(problem.violations(beta, e, error=wrong).max(initial=missed)),
        kkt=kkt,
        gap_measures=gap_measures,
        precision=precision,
        worst=int(np.argmax(terms)),
        b=tuple(b.tolist()),
    )


def _biases(problem: JointProblem, beta: Floats) -> Floats:
    """b_k, whose sums over samples are rounded once."""
    fixed = np.zeros(problem.n_classes) if problem.b is None else problem.b
    return np.asarray(fixed + problem.shift * sums_of(beta) if problem.shift else fixed)


def _missing(beta: Floats) -> Floats:
    """The most that |Σ_k β_ik| can be; a sum of two terms has one rounding."""
    left, terms = np.abs(beta.sum(axis=1)), np.count_nonzero(beta, axis=1)
    return np.asarray((1 + _EPS) * left + _EPS * np.maximum(terms - 2, 0) * np.abs(beta).sum(axis=1))


def _rounded(u: Ball, b: Floats) -> Floats:
    """The errors of e = u + b + 1."""
    return np.asarray(u.error + 2 * _EPS * (np.abs(u.value) + np.abs(b) + 1.0))


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))


def _beyond(alpha: Floats, sums: Floats, C: Floats) -> Floats:
    """How far Σ_k α_ik exceeds C_i; a sum that is near it is taken exactly, and rounded once."""
    out = np.zeros(len(C))
    for i in np.flatnonzero(sums > C * (1 - 1e-9)).tolist():
        out[i] = (1 + _EPS) * max(0.0, math.fsum([*alpha[i].tolist(), -C[i]]))
    return out


def published_residuals(beta: Floats, y: Indices, C: Floats, shared: bool) -> tuple[float, float]:
    """The largest residuals of the box and of Σ_k β_ik = 0 over rows with these coefficients and bounds."""
    alpha = np.maximum(-beta, 0.0)
    alpha[np.arange(len(y)), y] = 0.0
    wrong = np.where(np.arange(beta.shape[1]) == y[:, None], 0.0, beta)
    outside = _beyond(alpha, alpha.sum(axis=1), C) if shared else (alpha - C[:, None]).max(axis=1, initial=0.0)
    return max(float(wrong.max(initial=0.0)), float(outside.max(initial=0.0))), _largest(_missing(beta))


def _kkt(problem: JointProblem, beta: Floats, e: Floats) -> dict[str, float]:
    """Each optimality condition by name with its largest residual.

    If a multiplier should grow, the sample's error exceeds the slack that its multipliers allow (primal feasibility).
    If it should shrink, it belongs to a constraint that is not tight (complementary slackness).
    """
    own = np.arange(problem.n), problem.y
    g = e - e[own][:, None]
    alpha = np.maximum(-beta, 0.0)
    alpha[own] = 0.0
    sums = alpha.sum(axis=1)
    outside = np.where(np.arange(problem.n_classes) == problem.y[:, None], 0.0, np.maximum(beta, 0.0)).max(axis=1)
    if problem.shared:
        slack = e.max(axis=1) - e[own]  # allowed only if the sample's multipliers reach its bound
        unpaid = np.where(beta[own] < problem.C, slack, 0.0)
        loose = np.where(alpha > 0, np.where(beta[own] < problem.C, 0.0, slack)[:, None] - g, 0.0).max(axis=1)
        outside = np.maximum(outside, _beyond(alpha, sums, problem.C))
    else:
        unpaid = np.where(alpha < problem.C[:, None], np.maximum(g, 0.0), 0.0).max(axis=1)
        loose = np.where(alpha > 0, np.maximum(-g, 0.0), 0.0).max(axis=1)
        outside = np.maximum(outside, (alpha - problem.C[:, None]).max(axis=1))
    return conditions(
        float(outside.max(initial=0.0)),
        max(_largest(_missing(beta)), (1 + _EPS) * _largest(sums_of(beta)) * problem.balanced),
        float(unpaid.max(initial=0.0)),
        float(loose.max(initial=0.0)),
    )
