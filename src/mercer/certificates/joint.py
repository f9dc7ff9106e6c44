"""Certificates of joint multi-class machines, from β alone: u = Kβ is recomputed, and everything else follows from it.

    primal = ½ Σ_k β_k'(K + shift)β_k + Σ_i C_i loss_i
    dual   = Σ_i β_{i,y_i} − ½ Σ_k β_k'(K + shift)β_k
    gap    = primal − dual = Σ_i [C_i loss_i − Σ_k α_ik (e_ik − e_{i,y_i})],  every term ≥ 0

with the biases of the problem. The last equation needs Σ_k β_ik = 0, and Σ_i β_ik = 0 for the balanced problem. Sums
that miss zero, if only by rounding, belong to no feasible point. So `dual` is the value of a feasible β + δ,

    dual(β + δ) = dual(β) + Σ_ik δ_ik ([k = y_i] − (K + shift)β_k) − ½ Σ_k δ_k'(K + shift)δ_k

and `gap` is never below primal − dual.

A linear machine keeps w_k, which is X'β_k only up to rounding. Its f is Xw + b, and ½ Σ_k ‖w_k − X'β_k‖² joins the gap.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.certificates.certificate import Certificate, ProvenClaim, kkt_residuals
from mercer.certificates.dual import NEGLIGIBLE_SHARE, PROOF, STATED_ROUNDINGS, bounded_u
from mercer.certificates.least_squares import column_sums
from mercer.certificates.linear import row_length_bounds
from mercer.places.ball import Ball, exact, sum_rows
from mercer.places.gram import BoundedProducts
from mercer.places.protocols import Rows
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Flags, Floats, Indices

# Largest accepted excess of a sample's multipliers over the C_i that they share, relative to C_i: the roundings of many
# small steps add up to it. The largest of m multipliers is at least C_i/m, so that it can fall by the excess.
_EXCESS_SHARE = 1e-9


def certify_joint(
    problem: JointProblem, gram: BoundedProducts, beta: Floats, tol: float = 0.0
) -> tuple[Certificate, Floats]:
    """Certify β, and return the recomputed u = Kβ that the certificate uses."""
    b = _biases(problem, beta)

    def undecided(u: Ball) -> Flags:
        e = _excess(problem, u, b)
        is_optimal = _violations(problem, beta, e) <= 0
        return np.asarray(~is_optimal & ~(e.error.max(axis=1) <= NEGLIGIBLE_SHARE * tol))

    u, precision = bounded_u(
        gram, lambda rows, level: gram.product_bound(beta, rows, level), undecided, lambda: np.asarray(beta.any(axis=1))
    )
    return joint_certificate(problem, beta, u, gram.entry_bounds, PROOF[gram.positive_definite], precision), u.value


def certify_joint_rows(problem: JointProblem, rows: Rows, beta: Floats) -> tuple[Floats, Certificate]:
    """Return W = X'β, one row per class, each entry rounded once, and the certificate of W and β."""
    W, u = np.empty((problem.n_classes, rows.d)), Ball(np.empty(beta.shape), np.empty(beta.shape))
    squared_distance = exact(0.0)
    for k, column in enumerate(beta.T):
        W[k], correction, error = rows.combination(np.ascontiguousarray(column))
        u.value[:, k], u.error[:, k] = rows.precise_product(W[k])
        squared_distance = squared_distance + (exact(correction).square().sum().sqrt() + Ball.within(error)).square()
    weight_norms = exact(W).square().sum().sqrt(), squared_distance.sqrt()
    return W, joint_certificate(problem, beta, u, row_length_bounds(rows), "optimality", "float64", weight_norms)


def joint_certificate(
    problem: JointProblem,
    beta: Floats,
    u: Ball,
    entry_bounds: Floats,
    gap_measures: ProvenClaim,
    precision: str,
    weight_norms: tuple[Ball, Ball] | None = None,
) -> Certificate:
    """Return the certificate of β with the given u = Kβ; |k_ij| is at most entry_bounds_i·entry_bounds_j.

    If u comes from weights w instead, `weight_norms` are ‖w‖ and the distance ‖w − X'β‖.
    """
    label, (length, distance) = (np.arange(problem.n), problem.y), weight_norms or (exact(0.0), exact(0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        b = _biases(problem, beta)
        e = _excess(problem, u, b)
        terms = problem.gap_terms(beta, e.value)
        shifted_u = u + problem.shift * _class_sums(beta) if problem.shift else u
        # 1. Values. A free bias adds nothing, whatever Σ_i β_ik is.
        energy = 0.5 * shifted_u.inner(beta, axis=0).sum()
        # By Cauchy and Schwarz β'u = ⟨X'β, w⟩ differs by at most distance·‖w‖ from ‖w‖², and by distance·‖X'β‖
        # from ‖X'β‖².
        distance_ball = Ball.within(distance.size)
        primal = energy + _losses(problem, e).sum() + 0.5 * distance_ball * length
        lengths = (exact(entry_bounds).square() + problem.shift).sqrt()
        slopes = Ball.within(e.error.max(axis=1)) + lengths * distance_ball
        repair_cost = _repair_cost(problem, beta, e.value, slopes.error, lengths.high)
        # (1 − γ)β is inside the bounds as they were before rounding (docs/certificate.md, "Bounds that were rounded").
        rounded_gain, rounded_energy = (part.rounded(STATED_ROUNDINGS) for part in (exact(beta[label]).sum(), energy))
        dual = rounded_gain - rounded_energy - repair_cost - 0.5 * distance_ball * (length + distance)
        # 2. Residuals.
        excess = 0.5 * distance.square()
        kkt = _kkt(problem, beta, e)
        # As in linear.py, the violation of w = X'β is the share of the primal value that the distance adds to the gap.
        gap_share = (excess / max(float(primal.high), np.finfo(float).tiny)).high if weight_norms else 0.0
        violation = float(_violations(problem, beta, e).max(initial=gap_share))
    return Certificate(
        primal=float(primal.high),
        dual=float(dual.low),
        gap=float(terms.sum()),  # Certificate raises it to primal − dual, which includes `excess` and all roundings
        violation=violation if repair_cost < math.inf else math.inf,
        kkt=kkt,
        gap_measures=gap_measures,
        precision=precision,
        worst=int(np.argmax(terms)),
        b=tuple(b.value.tolist()),
    )


def _repair_cost(problem: JointProblem, beta: Floats, e: Floats, errors: Floats, lengths: Floats) -> float:
    """Bound the dual value that moving β to feasible coefficients costs.

    1. The label's coefficient changes until its row sums to zero. Where the multipliers exceed the C_i that they share,
       by no more than rounding, the largest one and the label's coefficient fall by the excess.
    2. With free biases, multipliers are reduced until the class sums are zero. A_pq, the sum of the multipliers for
       class q over the samples of class p, is a flow from p to q, and a class sum is the flow out of the class minus
       the flow into it. Such a flow consists of a circulation, which is feasible, and of routes from classes with
       positive sums to classes with negative ones, T = ½Σ|sums| in total. The routes have at most n_classes − 1 steps
       each, and are removed: on a step from p to q one sample's multiplier falls by T, or, if none is that large, all
       of them fall by parts of T.

    The bound is infinite if coefficients are outside their bounds. `e` is the excess of each sample (row) and class,
    `errors` bounds its rounding in each row, and `lengths` the length of each φ(x_i).
    """
    label, m = (np.arange(problem.n), problem.y), problem.n_classes
    alpha = -beta
    alpha[label] = 0.0
    if problem.shared:
        sum_excess = _bound_excess(alpha, alpha.sum(axis=1), problem.C)
    else:
        sum_excess = (alpha - problem.C[:, None]).max(axis=1)
    allowed = _EXCESS_SHARE * problem.C if problem.shared else 0.0
    if not (np.isfinite(beta).all() and np.isfinite(e).all() and (alpha >= 0).all() and (sum_excess <= allowed).all()):
        return math.inf
    sum_excess, largest = np.maximum(sum_excess, 0.0), (label[0], alpha.argmax(axis=1))
    bias = problem.b if problem.balanced and problem.b is not None else np.zeros(m)
    cost = length = exact(0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = exact(bias) + 1.0 - Ball(e, np.broadcast_to(errors[:, None], e.shape))
        for entry, amounts in ((label, abs(sum_rows(beta)) + sum_excess), (largest, exact(sum_excess))):
            is_used = amounts.size > 0  # an infinite error counts only where something moves
            amounts = amounts.take(is_used)
            cost = cost + abs(slopes).take(entry).take(is_used).inner(amounts)
            length = length + amounts.inner(lengths[is_used])
        if problem.balanced:
            sums = abs(exact(_flow_sums(problem, alpha)).rounded()).sum()
            total = float((0.5 * sums + exact(sum_excess).sum()).high)
            # A multiplier and its label's coefficient move together: φ(x_i) counts √2 times. A multiplier of twice the
            # total is large enough even after it fell by its excess, which is part of the total.
            slopes = slopes - Ball(*(part[:, None] for part in slopes.take(label)))
            steps = [
                _steepest_step(alpha[rows], alpha[rows] >= 2 * total, slopes.size[rows], lengths[rows])
                for rows in (np.flatnonzero(problem.y == p) for p in range(m))
                if total > 0 and len(rows)
            ]
            flow = exact(total) * (m - 1)
            cost = cost + flow * max((slope for slope, _ in steps), default=0.0)
            length = length + flow * (1.5 * max((long for _, long in steps), default=0.0))
        return float((cost + 0.5 * length.square()).high)


def _steepest_step(alpha: Floats, sufficient: Flags, slopes: Floats, lengths: Floats) -> tuple[float, float]:
    """Return the largest slope and the largest length of a step that reduces multipliers of one class.

    `sufficient` marks the multipliers that are large enough to be reduced by the whole step. For each other class, the
    step reduces one of these, that with the least slope; if there is none, it reduces every positive multiplier.
    """
    costs = np.where(sufficient, slopes, np.inf)
    is_chosen = np.arange(len(alpha))[:, None] == costs.argmin(axis=0)
    is_reduced = np.where(costs.min(axis=0) < np.inf, is_chosen, alpha > 0)
    return float(np.where(is_reduced, slopes, 0.0).max()), float(np.where(is_reduced, lengths[:, None], 0.0).max())


def _flow_sums(problem: JointProblem, alpha: Floats) -> Floats:
    """Return Σ_i β_ik of each class, rounded once; β_{i,y_i} counts as the sum of the sample's multipliers."""
    sums = np.empty(problem.n_classes)
    for k in range(problem.n_classes):
        in_class = problem.y == k
        leaving, entering = alpha[in_class], alpha[~in_class, k]
        sums[k] = math.fsum([*leaving[leaving > 0].tolist(), *(-entering[entering > 0]).tolist()])
    return sums


def _biases(problem: JointProblem, beta: Floats) -> Ball:
    """Return the bias b_k of each class with its error."""
    given_biases = exact(np.zeros(problem.n_classes) if problem.b is None else problem.b)
    return given_biases + problem.shift * _class_sums(beta) if problem.shift else given_biases


def _class_sums(beta: Floats) -> Ball:
    """Return Σ_i β_ik of each class, rounded once."""
    return exact(column_sums(beta)).rounded()


def _excess(problem: JointProblem, u: Ball, b: Ball) -> Ball:
    """Return e_ik = u_ik + b_k + 1 − [k = y_i], as `problem.excess` computes it."""
    label = np.arange(problem.n), problem.y
    with np.errstate(over="ignore", invalid="ignore"):
        e = u + (b + 1.0)
        e.put(label, e.take(label) - 1.0)
    return e


def _differences(problem: JointProblem, e: Ball) -> Ball:
    """Return e_ik − e_{i,y_i}, which is 0 for the label."""
    label = np.arange(problem.n), problem.y
    g = e - Ball(*(part[label][:, None] for part in e))
    g.put(label, exact(0.0))
    return g


def _losses(problem: JointProblem, e: Ball) -> Ball:
    """Return C_i loss_i of each sample."""
    excess = _differences(problem, e).positive()
    C = exact(problem.C).rounded(STATED_ROUNDINGS)
    return C * (excess.max(axis=1) if problem.shared else excess.sum(axis=1))


def _violations(problem: JointProblem, beta: Floats, e: Ball) -> Floats:
    """Return the largest difference of gradients that each sample could still exploit, with the errors of e."""
    return problem.violations(beta, e.value, error=e.rounded(4).error)


def _largest(values: Ball) -> float:
    """Return an upper bound on the largest absolute value."""
    return float(values.size.max(initial=0.0))


def _bound_excess(alpha: Floats, sums: Floats, C: Floats) -> Floats:
    """Return the excess of Σ_k α_ik over C_i, at least 0; a sum near C_i is computed exactly, and rounded once."""
    out = np.zeros(len(C))
    for i in np.flatnonzero(sums > C * (1 - 1e-9)).tolist():
        out[i] = max(0.0, math.fsum([*alpha[i].tolist(), -C[i]]))
    return np.asarray(exact(out).high)


def row_residuals(beta: Floats, y: Indices, C: Floats, shared: bool) -> tuple[float, float]:
    """Return the largest residuals of the box and of Σ_k β_ik = 0 over the rows of `beta`."""
    alpha = np.maximum(-beta, 0.0)
    alpha[np.arange(len(y)), y] = 0.0
    wrong_signs = np.where(np.arange(beta.shape[1]) == y[:, None], 0.0, beta)
    distance_outside = (
        _bound_excess(alpha, alpha.sum(axis=1), C) if shared else (alpha - C[:, None]).max(axis=1, initial=0.0)
    )
    return max(float(wrong_signs.max(initial=0.0)), float(distance_outside.max(initial=0.0))), _largest(sum_rows(beta))


def _kkt(problem: JointProblem, beta: Floats, e: Ball) -> dict[str, float]:
    """Return the largest residual of each optimality condition by name.

    If a multiplier should grow, the sample's error exceeds the slack that its multipliers allow (primal feasibility).
    If it should shrink, it belongs to a constraint that is not tight (complementary slackness).
    """
    label, g = (np.arange(problem.n), problem.y), _differences(problem, e)
    alpha = np.maximum(-beta, 0.0)
    alpha[label] = 0.0
    sums = alpha.sum(axis=1)
    distance_outside = np.where(np.arange(problem.n_classes) == problem.y[:, None], 0.0, np.maximum(beta, 0.0)).max(
        axis=1
    )
    if problem.shared:
        is_below_bound = beta[label] < problem.C
        outward = np.where(is_below_bound, g.high.max(axis=1), 0.0)
        # Slack is allowed only if the sample's multipliers reach its bound.
        slack = Ball(*(part[:, None] for part in e.max(axis=1))) - e
        inward = np.where(alpha > 0, np.where(is_below_bound[:, None], -g.low, slack.high), 0.0).max(axis=1)
        distance_outside = np.maximum(distance_outside, _bound_excess(alpha, sums, problem.C))
    else:
        outward = np.where(alpha < problem.C[:, None], np.maximum(g.high, 0.0), 0.0).max(axis=1)
        inward = np.where(alpha > 0, np.maximum(-g.low, 0.0), 0.0).max(axis=1)
        distance_outside = np.maximum(distance_outside, (alpha - problem.C[:, None]).max(axis=1))
    return kkt_residuals(
        float(distance_outside.max(initial=0.0)),
        max(_largest(sum_rows(beta)), _largest(_class_sums(beta)) * problem.balanced),
        float(outward.max(initial=0.0)),
        float(inward.max(initial=0.0)),
    )
