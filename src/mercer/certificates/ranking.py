"""The proof of a ranking, from its coefficients β and the multipliers α that they should be sums of.

β̂ = A'α is β up to e_β, and u = Kβ is known up to e. With r ≥ √k(x, x),

    primal ≤ ½β'u + ½|β|'e + Σ C_ij max(0, 1 − (u_i − e_i) + (u_j + e_j))
    dual   ≥ Σα − ½β'u − ½|β|'e − e_β'(|u| + e) − ½(e_β'r)²

The sums over pairs are differences of running sums. Numbers are added in two parts, of which the first are multiples of
a unit that makes all their sums exact, and the second so small that γ_n Σ|terms| is nothing. A pair whose α was told by
the order of other values than u, at most Δ away, violates by at most 2Δ.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.arrays import Floats, Precision, gamma, inner
from mercer.certificates.certificate import Certificate, conditions
from mercer.certificates.dual import PROOF
from mercer.certificates.least_squares import of_sums
from mercer.gram.gram import Provable
from mercer.problems.ranking import RankDual, RankProblem


def certify_ranking(
    problem: RankProblem, gram: Provable, beta: Floats, dual: RankDual, tol: float = 0.0
) -> Certificate:
    """The proof of β and α; as close as it gets if a relative gap of `tol` depends on it."""
    certificate = _certified(problem, gram, beta, dual, np.float64)
    if gram.levels[-1] != np.float64 and not certificate.relative_gap <= tol:
        certificate = _certified(problem, gram, beta, dual, gram.levels[-1])
    return certificate


def _certified(problem: RankProblem, gram: Provable, beta: Floats, dual: RankDual, level: Precision) -> Certificate:
    C, w, n = problem.C, problem.weight, len(beta)
    pairs, alpha = problem.pairs(dual.r, dual.low, 1.0), dual.alpha
    assert len(pairs[0]) == len(alpha)
    u, e = gram.product_bound(beta, level=level)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(w.sum())
        won, lost, off = _sums(problem, dual.r, dual.r - dual.low, w)
        bound = problem.bound(pairs)
        box = float(np.maximum(alpha - bound, -alpha).max(initial=0.0))
        many = int(max((np.bincount(side).max(initial=0) for side in pairs), default=0))
        sizes = sum(np.bincount(side, np.abs(alpha), n) for side in pairs)
        exact = C * w * (won - lost) + problem.combined(pairs, alpha)
        e_beta = np.abs(beta - exact) + gamma(many + 16) * (C * w * (won + lost) + sizes) + 2 * C * w * off
        e_beta = (e_beta + sum(np.bincount(side, np.full(len(alpha), box), n) for side in pairs)) * (1 + gamma(n + 16))
        gain = C * inner(w, won) + float(alpha.sum())
        gain -= of_sums(n + len(alpha)) * gain + C * total * off + box * len(alpha)
        # f, and what its errors can do to the hinges
        energy = 0.5 * inner(beta, u)
        wrong = (0.5 * inner(np.abs(beta), e) + of_sums(n) * inner(np.abs(beta), np.abs(u))) * (1 + of_sums(n))
        ahead, behind = u - e, u + e
        counted, _, off_count = _sums(problem, behind, ahead - 1.0, w)
        summed, _, off_sum = _sums(problem, behind, ahead - 1.0, w * behind)
        shares, size = C * w * ((1.0 - ahead) * counted + summed), 1.0 + np.abs(ahead) + float(np.abs(behind).max())
        # A hinge that rounding takes for open, or for closed, is as small as it.
        loss = math.fsum(shares)
        loss_off = C * inner(w, size * (off_count + gamma(16) * total) + off_sum) * (1 + of_sums(n))
        shift = inner(e_beta, np.abs(u) + e) + 0.5 * inner(e_beta, gram.reach) ** 2
        moved = float((np.abs(u - dual.r) + e + gamma(4) * (1 + np.abs(u) + np.abs(dual.r))).max())
        (i, j), slack = pairs, gamma(4) * size.max()
        short, error = 1.0 - (u[i] - u[j]), e[i] + e[j] + slack
        outward = np.where(alpha < bound, short + error, 0.0).max(initial=2 * moved)
        inward = np.where(alpha > 0, error - short, 0.0).max(initial=max(0.0, 2 * moved - (1.0 - dual.low)))
    return Certificate(
        primal=energy + wrong + loss + loss_off,
        dual=gain - energy - wrong - shift * (1 + of_sums(n)),
        gap=0.0,
        violation=float(max(outward, inward)),
        kkt=conditions(box, float(e_beta.max(initial=0.0)), float(outward), float(inward)),
        gap_measures=PROOF[gram.positive_definite],
    )


def _sums(problem: RankProblem, r: Floats, limit: Floats, values: Floats) -> tuple[Floats, Floats, float]:
    """`RankProblem.sums` of one number for each sample, and how far each sum can be off."""
    size = float(np.abs(values).sum())
    unit = 2.0 ** (math.frexp(size)[1] - 51) if 0 < size < math.inf else 1.0
    coarse = np.round(values / unit) * unit
    fine = values - coarse
    won, lost = problem.sums(r, limit, np.column_stack([coarse, fine]))
    off = 4 * problem.n_passes * gamma(2 * len(r) + 16) * float(np.abs(fine).sum()) + gamma(8) * size * bool(fine.any())
    return won.sum(axis=1), lost.sum(axis=1), off
