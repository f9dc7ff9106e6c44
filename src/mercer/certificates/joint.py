"""The proof of a joint multi-class fit, from β alone: u = Kβ is recomputed, and everything else follows from it.

    primal = ½ Σ_k β_k'(K + shift)β_k + Σ_i C_i loss_i
    dual   = Σ_i β_{i,y_i} − ½ Σ_k β_k'(K + shift)β_k
    gap    = primal − dual = Σ_i [C_i loss_i − Σ_k α_ik (e_ik − e_{i,y_i})],  every term ≥ 0

with the biases of the problem. For the balanced problem the last equation needs Σ_i β_ik = 0, which is one of the
listed conditions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Flags, Floats, Indices, gamma
from mercer.certificates.certificate import Certificate, Proves
from mercer.certificates.dual import NEGLIGIBLE_SHARE, PROOF, bounded_u
from mercer.gram.gram import Gram
from mercer.gram.joint_field import joint_product
from mercer.problems.multiclass import JointProblem


def certify_joint(problem: JointProblem, gram: Gram, beta: Floats, tol: float = 0.0) -> tuple[Certificate, Floats]:
    """The certificate of β, and the recomputed u = Kβ that it rests on."""
    b = problem.offsets(beta)
    sources, everything = np.flatnonzero(beta.any(axis=1)), np.arange(gram.n)
    coefficients = beta[sources]
    root = np.sqrt(np.abs(gram.diagonal))
    summed = gamma(len(sources)) * (root @ np.abs(beta))  # the sums of all classes are one matrix product

    def product(rows: Indices | None, level: Any) -> tuple[Floats, Floats]:
        some = everything if rows is None else rows
        u = joint_product(gram, coefficients, sources, some, level)
        errors = np.column_stack([gram.errors(column, some, level) for column in beta.T])
        return u, errors + np.outer(root[some], summed)

    def undecided(u: Floats, error: Floats) -> Flags:
        wrong = _rounded(problem, u, b, error)
        still = problem.violations(beta, problem.excess(u, b), error=wrong) <= 0
        return np.asarray(~still & ~(wrong.max(axis=1) <= NEGLIGIBLE_SHARE * tol))

    free = ((beta != 0) & (np.abs(beta) < problem.C[:, None])).any(axis=1)
    u, error, precision = bounded_u(gram, product, undecided, free)
    return joint_certificate(problem, beta, u, PROOF[gram.positive_definite], precision, error), u


def joint_certificate(
    problem: JointProblem, beta: Floats, u: Floats, proves: Proves, precision: str, error: Floats | None = None
) -> Certificate:
    """The certificate of β with a u = Kβ that was computed from it, and whose entries err by at most `error`."""
    b = problem.offsets(beta)
    e = problem.excess(u, b)
    wrong = _rounded(problem, u, b, np.zeros_like(u) if error is None else error)
    losses, terms = problem.gap_terms(beta, e)
    shares = terms + problem.gap_errors(beta, e, wrong)
    own = np.arange(problem.n), problem.y
    energy = float((beta * (u + b)).sum())
    primal, dual = 0.5 * energy + float(losses.sum()), float(beta[own].sum()) - 0.5 * energy
    if not precision.startswith("float32"):  # the values become bounds as well
        summed = float(np.finfo(float).eps) * problem.n * float((np.abs(beta) * (np.abs(u) + np.abs(b) + 1)).sum())
        off = 0.5 * float((np.abs(beta) * wrong).sum()) + summed
        primal, dual = primal + off + float((problem.C * 2 * wrong.max(axis=1)).sum()), dual - off
    kkt = _kkt(problem, beta, e)
    widest = 2 * float(wrong.max(initial=0.0))
    for name in ("primal feasibility", "complementary slackness"):
        kkt[name] += widest
    unbalanced = (
        float(np.abs(problem.b) @ np.abs(beta.sum(axis=0))) if problem.balanced and problem.b is not None else 0.0
    )
    gap = (float(shares.sum()) + unbalanced) * (1 + problem.n * float(np.finfo(float).eps))
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        violation=float(problem.violations(beta, e, error=wrong).max(initial=0.0)),
        kkt=kkt,
        proves=proves,
        precision=precision,
        worst=int(np.argmax(terms)),
        b=tuple(b.tolist()),
    )


def _rounded(problem: JointProblem, u: Floats, b: Floats, error: Floats) -> Floats:
    """The errors of e = u + b + 1, given those of u."""
    return error + 2 * float(np.finfo(float).eps) * (np.abs(u) + np.abs(b) + 1.0)


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))


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
        outside = np.maximum(outside, sums - problem.C)
    else:
        unpaid = np.where(alpha < problem.C[:, None], np.maximum(g, 0.0), 0.0).max(axis=1)
        loose = np.where(alpha > 0, np.maximum(-g, 0.0), 0.0).max(axis=1)
        outside = np.maximum(outside, (alpha - problem.C[:, None]).max(axis=1))
    return {
        "dual feasibility: box": max(0.0, float(outside.max(initial=0.0))),
        "dual feasibility: equality": max(_largest(beta.sum(axis=1)), _largest(beta.sum(axis=0)) * problem.balanced),
        "primal feasibility": max(0.0, float(unpaid.max(initial=0.0))),
        "complementary slackness": max(0.0, float(loose.max(initial=0.0))),
    }
