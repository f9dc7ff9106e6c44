"""Certificates of joint multi-class machines, from β alone: u = Kβ is recomputed, and everything else follows from it.

    primal = ½ Σ_k β_k'(K + shift)β_k + Σ_i C_i loss_i
    dual   = Σ_i β_{i,y_i} − ½ Σ_k β_k'(K + shift)β_k
    gap    = primal − dual = Σ_i [C_i loss_i − Σ_k α_ik (e_ik − e_{i,y_i})],  every term ≥ 0

with the biases of the problem. The last equation needs Σ_k β_ik = 0, and Σ_i β_ik = 0 for the balanced problem. Sums
that miss zero, if only by rounding, belong to no feasible point. So `dual` is that of a feasible β + δ,

    dual(β + δ) = dual(β) + Σ_ik δ_ik ([k = y_i] − (K + shift)β_k) − ½ Σ_k δ_k'(K + shift)δ_k

and `gap`, which is never below primal − dual, is the distance from its value.

A linear machine keeps w_k, which is X'β_k only up to rounding. Its f is Xw + b, and ½ Σ_k ‖w_k − X'β_k‖² joins the gap.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.certificates.certificate import Certificate, Measures, conditions
from mercer.certificates.dual import NEGLIGIBLE_SHARE, PROOF, STATED_ROUNDINGS, bounded_u
from mercer.certificates.least_squares import column_sums
from mercer.certificates.linear import row_length_bounds
from mercer.places.ball import Ball, exact, sum_rows
from mercer.places.gram import BoundedProducts
from mercer.places.protocols import Rows
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Flags, Floats, Indices

# Largest excess of a sample's multipliers over the C_i that they share, relative to C_i; many small steps leave it. The
# largest multiplier is above C_i/m, so that it can fall by the excess.
_EXCESS = 1e-9


def certify_joint(
    problem: JointProblem, gram: BoundedProducts, beta: Floats, tol: float = 0.0
) -> tuple[Certificate, Floats]:
    """Certify β, and return the recomputed u = Kβ that the certificate uses."""
    b = _biases(problem, beta)

    def undecided(u: Ball) -> Flags:
        e = _excess(problem, u, b)
        still = _violations(problem, beta, e) <= 0
        return np.asarray(~still & ~(e.error.max(axis=1) <= NEGLIGIBLE_SHARE * tol))

    u, precision = bounded_u(
        gram, lambda rows, level: gram.product_bound(beta, rows, level), undecided, lambda: np.asarray(beta.any(axis=1))
    )
    return joint_certificate(problem, beta, u, gram.entry_bounds, PROOF[gram.positive_definite], precision), u.value


def certify_joint_rows(problem: JointProblem, rows: Rows, beta: Floats) -> tuple[Floats, Certificate]:
    """Return W = X'β, one row per class, each entry rounded once, and the certificate of W and β."""
    W, u = np.empty((problem.n_classes, rows.d)), Ball(np.empty(beta.shape), np.empty(beta.shape))
    apart = exact(0.0)
    for k, column in enumerate(beta.T):
        W[k], rest, error = rows.combination(np.ascontiguousarray(column))
        u.value[:, k], u.error[:, k] = rows.precise_product(W[k])
        apart = apart + (exact(rest).square().sum().sqrt() + Ball.within(error)).square()
    kept = exact(W).square().sum().sqrt(), apart.sqrt()
    return W, joint_certificate(problem, beta, u, row_length_bounds(rows), "optimality", "float64", kept)


def joint_certificate(
    problem: JointProblem,
    beta: Floats,
    u: Ball,
    reach: Floats,
    gap_measures: Measures,
    precision: str,
    kept: tuple[Ball, Ball] | None = None,
) -> Certificate:
    """Return the certificate of β with the given u = Kβ; |k_ij| is at most reach_i·reach_j.

    `kept` is given if u comes from weights w instead: their length, and their distance from the combination X'β.
    """
    own, (length, apart) = (np.arange(problem.n), problem.y), kept or (exact(0.0), exact(0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        b = _biases(problem, beta)
        e = _excess(problem, u, b)
        terms = problem.gap_terms(beta, e.value)
        shifted = u + problem.shift * _class_sums(beta) if problem.shift else u
        # 1. Values. A free bias adds nothing, whatever Σ_i β_ik is.
        energy = 0.5 * shifted.inner(beta, axis=0).sum()
        # By Cauchy and Schwarz β'u = ⟨X'β, w⟩ is apart·‖w‖ from ‖w‖² at most, and apart·‖X'β‖ from ‖X'β‖².
        away = Ball.within(apart.size)
        primal = energy + _losses(problem, e).sum() + 0.5 * away * length
        lengths = (exact(reach).square() + problem.shift).sqrt()
        slopes = Ball.within(e.error.max(axis=1)) + lengths * away
        to_dual = _repair(problem, beta, e.value, slopes.error, lengths.high)
        # As for binary problems, (1 − γ)β is inside the stated bounds.
        gain, lost = (part.rounded(STATED_ROUNDINGS) for part in (exact(beta[own]).sum(), energy))
        dual = gain - lost - to_dual - 0.5 * away * (length + apart)
        # 2. Residuals.
        distance = 0.5 * apart.square()
        kkt = _kkt(problem, beta, e)
        # As for the other linear machines: a w that is not the combination violates by what it adds to the gap.
        missed = (distance / max(float(primal.high), np.finfo(float).tiny)).high if kept else 0.0
        violation = float(_violations(problem, beta, e).max(initial=missed))
    return Certificate(
        primal=float(primal.high),
        dual=float(dual.low),
        gap=float(terms.sum()),  # and at least the difference of the two, which has all errors, and the distance
        violation=violation if to_dual < math.inf else math.inf,
        kkt=kkt,
        gap_measures=gap_measures,
        precision=precision,
        worst=int(np.argmax(terms)),
        b=tuple(b.value.tolist()),
    )


def _repair(problem: JointProblem, beta: Floats, e: Floats, error: Floats, lengths: Floats) -> float:
    """Bound what moving β to feasible coefficients takes from the dual value.

    1. The label's β takes what is missing in its row. Where the multipliers exceed the C_i that they share, by no more
       than rounding, the largest one and the label's β fall by the excess.
    2. For free biases multipliers are made smaller until the class sums are zero. The sums A_pq of the multipliers of
       class p are a flow from p to q, and a class sum is what leaves the class less what enters it. Such a flow is a
       circulation and routes from classes with too much to classes with too little, T = ½Σ|sums| in all. Without these
       routes, of at most n_classes − 1 steps each, it is feasible. On a step from p to q one sample's multiplier takes
       T, or, where none is that large, all of them take parts of it.

    Coefficients outside of their bounds are not moved: the number is infinite. No excess is off by more than its row's
    `error`, and no φ(x_i) is longer than `lengths` say.
    """
    own, m = (np.arange(problem.n), problem.y), problem.n_classes
    alpha = -beta
    alpha[own] = 0.0
    over = _beyond(alpha, alpha.sum(axis=1), problem.C) if problem.shared else (alpha - problem.C[:, None]).max(axis=1)
    allowed = _EXCESS * problem.C if problem.shared else 0.0
    if not (np.isfinite(beta).all() and np.isfinite(e).all() and (alpha >= 0).all() and (over <= allowed).all()):
        return math.inf
    over, heavy = np.maximum(over, 0.0), (own[0], alpha.argmax(axis=1))
    bias = problem.b if problem.balanced and problem.b is not None else np.zeros(m)
    cost = length = exact(0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = exact(bias) + 1.0 - Ball(e, np.broadcast_to(error[:, None], e.shape))
        for entry, moved in ((own, abs(sum_rows(beta)) + over), (heavy, exact(over))):
            moves = moved.size > 0  # an infinite error counts only where something moves
            moved = moved.take(moves)
            cost = cost + abs(slopes).take(entry).take(moves).inner(moved)
            length = length + moved.inner(lengths[moves])
        if problem.balanced:
            sums = abs(exact(_flow_sums(problem, alpha)).rounded()).sum()
            total = float((0.5 * sums + exact(over).sum()).high)
            # A multiplier and its label's β move together: φ(x_i) counts √2 times. Twice the total is enough for the
            # multipliers that fell by their excess, which is a part of it.
            slopes = slopes - Ball(*(part[:, None] for part in slopes.take(own)))
            steps = [
                _steepest_step(alpha[rows], alpha[rows] >= 2 * total, slopes.size[rows], lengths[rows])
                for rows in (np.flatnonzero(problem.y == p) for p in range(m))
                if total > 0 and len(rows)
            ]
            flow = exact(total) * (m - 1)
            cost = cost + flow * max((slope for slope, _ in steps), default=0.0)
            length = length + flow * (1.5 * max((long for _, long in steps), default=0.0))
        return float((cost + 0.5 * length.square()).high)


def _steepest_step(alpha: Floats, enough: Flags, slopes: Floats, lengths: Floats) -> tuple[float, float]:
    """Return the largest slope and the largest length of a step that reduces multipliers of one class.

    For each other class, the step reduces a single multiplier: of those large enough, the one with the least slope. If
    none is large enough, it reduces every positive multiplier.
    """
    costs = np.where(enough, slopes, np.inf)
    one = np.arange(len(alpha))[:, None] == costs.argmin(axis=0)
    reduced = np.where(costs.min(axis=0) < np.inf, one, alpha > 0)
    return float(np.where(reduced, slopes, 0.0).max()), float(np.where(reduced, lengths[:, None], 0.0).max())


def _flow_sums(problem: JointProblem, alpha: Floats) -> Floats:
    """Return Σ_i β_ik of each class, rounded once, with the label's β equal to the sum of the multipliers."""
    sums = np.empty(problem.n_classes)
    for k in range(problem.n_classes):
        mine = problem.y == k
        leaving, entering = alpha[mine], alpha[~mine, k]
        sums[k] = math.fsum([*leaving[leaving > 0].tolist(), *(-entering[entering > 0]).tolist()])
    return sums


def _biases(problem: JointProblem, beta: Floats) -> Ball:
    """Return the bias b_k of each class with its error."""
    fixed = exact(np.zeros(problem.n_classes) if problem.b is None else problem.b)
    return fixed + problem.shift * _class_sums(beta) if problem.shift else fixed


def _class_sums(beta: Floats) -> Ball:
    """Return Σ_i β_ik of each class, rounded once."""
    return exact(column_sums(beta)).rounded()


def _excess(problem: JointProblem, u: Ball, b: Ball) -> Ball:
    """Return e_ik = u_ik + b_k + 1 − [k = y_i], as `problem.excess` computes it."""
    own = np.arange(problem.n), problem.y
    with np.errstate(over="ignore", invalid="ignore"):
        e = u + (b + 1.0)
        e.put(own, e.take(own) - 1.0)
    return e


def _differences(problem: JointProblem, e: Ball) -> Ball:
    """Return e_ik − e_{i,y_i}, which is 0 for the label."""
    own = np.arange(problem.n), problem.y
    g = e - Ball(*(part[own][:, None] for part in e))
    g.put(own, exact(0.0))
    return g


def _losses(problem: JointProblem, e: Ball) -> Ball:
    """Return C_i loss_i of each sample."""
    excess = _differences(problem, e).positive()
    C = exact(problem.C).rounded(STATED_ROUNDINGS)
    return C * (excess.max(axis=1) if problem.shared else excess.sum(axis=1))


def _violations(problem: JointProblem, beta: Floats, e: Ball) -> Floats:
    """Return the largest difference of gradients that each sample could still exploit; e ± its error is rounded too."""
    return problem.violations(beta, e.value, error=e.rounded(4).error)


def _largest(values: Ball) -> float:
    """Upper bound on the largest absolute value."""
    return float(values.size.max(initial=0.0))


def _beyond(alpha: Floats, sums: Floats, C: Floats) -> Floats:
    """Excess of Σ_k α_ik over C_i; a sum near C_i is computed exactly, and rounded once."""
    out = np.zeros(len(C))
    for i in np.flatnonzero(sums > C * (1 - 1e-9)).tolist():
        out[i] = max(0.0, math.fsum([*alpha[i].tolist(), -C[i]]))
    return np.asarray(exact(out).high)


def published_residuals(beta: Floats, y: Indices, C: Floats, shared: bool) -> tuple[float, float]:
    """Return the largest residuals of the box and of Σ_k β_ik = 0 over rows with these coefficients and bounds."""
    alpha = np.maximum(-beta, 0.0)
    alpha[np.arange(len(y)), y] = 0.0
    wrong = np.where(np.arange(beta.shape[1]) == y[:, None], 0.0, beta)
    outside = _beyond(alpha, alpha.sum(axis=1), C) if shared else (alpha - C[:, None]).max(axis=1, initial=0.0)
    return max(float(wrong.max(initial=0.0)), float(outside.max(initial=0.0))), _largest(sum_rows(beta))


def _kkt(problem: JointProblem, beta: Floats, e: Ball) -> dict[str, float]:
    """Return the largest residual of each optimality condition by name.

    If a multiplier should grow, the sample's error exceeds the slack that its multipliers allow (primal feasibility).
    If it should shrink, it belongs to a constraint that is not tight (complementary slackness).
    """
    own, g = (np.arange(problem.n), problem.y), _differences(problem, e)
    alpha = np.maximum(-beta, 0.0)
    alpha[own] = 0.0
    sums = alpha.sum(axis=1)
    outside = np.where(np.arange(problem.n_classes) == problem.y[:, None], 0.0, np.maximum(beta, 0.0)).max(axis=1)
    if problem.shared:
        below = beta[own] < problem.C
        unpaid = np.where(below, g.high.max(axis=1), 0.0)
        # Slack is allowed only if the sample's multipliers reach its bound.
        slack = Ball(*(part[:, None] for part in e.max(axis=1))) - e
        loose = np.where(alpha > 0, np.where(below[:, None], -g.low, slack.high), 0.0).max(axis=1)
        outside = np.maximum(outside, _beyond(alpha, sums, problem.C))
    else:
        unpaid = np.where(alpha < problem.C[:, None], np.maximum(g.high, 0.0), 0.0).max(axis=1)
        loose = np.where(alpha > 0, np.maximum(-g.low, 0.0), 0.0).max(axis=1)
        outside = np.maximum(outside, (alpha - problem.C[:, None]).max(axis=1))
    return conditions(
        float(outside.max(initial=0.0)),
        max(_largest(sum_rows(beta)), _largest(_class_sums(beta)) * problem.balanced),
        float(unpaid.max(initial=0.0)),
        float(loose.max(initial=0.0)),
    )
