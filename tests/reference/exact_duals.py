"""What a certificate claims, computed in a hundred digits from a solution alone: the truth that claims are held to.

    maximise  p'β − ½ β'(K + diag d)β    subject to  lower ≤ β ≤ upper,  Σ over group g of β = totals_g

With u = Kβ, h = p − u[row] − dβ and r = p − u[row] − b_group (SPEC.md, HOUSE.md; the same letters there):

    loss_i    = max over t in [lower_i, upper_i] of  r_i t − d_i t²/2
    primal    = ½β'Kβ + Σ loss_i + Σ_g b_g·totals_g
    dual      = the objective above
    violation = the largest over groups of  max{h_i : β_i < upper_i} − min{h_i : β_i > lower_i}; without a group, of
                h_i and −h_i themselves
    outward   = the largest h − b that would move a β away from zero, and inward, towards it, where its box allows it
"""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from reference.decimals import INFINITY, ZERO, all_digits, decimals

HALF = Decimal("0.5")
# A bound is a product of float64 numbers: a β this close to it, as a share of the bound, is at it.
_AT_BOUND = Decimal("1e-14")


@dataclass(frozen=True)
class Dual:
    """The seven arrays, as Decimals; `group` is −1 for variables without an equality."""

    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    d: np.ndarray
    row: np.ndarray
    group: np.ndarray
    totals: np.ndarray


def dual(p, lower, upper, *, d=None, row=None, group=None, totals=()):
    """From float64 arrays, with the usual values of what is left out."""
    m = len(p)
    group = np.full(m, 0 if len(totals) else -1) if group is None else np.asarray(group)
    return Dual(
        p=decimals(p),
        lower=decimals(np.broadcast_to(lower, m)),
        upper=decimals(np.broadcast_to(upper, m)),
        d=decimals(np.zeros(m) if d is None else np.broadcast_to(d, m)),
        row=np.arange(m) if row is None else row,
        group=group,
        totals=decimals(np.asarray(totals, dtype=float)),
    )


@dataclass(frozen=True)
class Findings:
    """The true values at a β and b."""

    u: np.ndarray
    violation: Decimal
    primal: Decimal
    dual: Decimal
    box: Decimal
    equality: Decimal
    magnitude: Decimal  # the largest Σ|β_j||K_ij| + |p_i| + |d_iβ_i| + |b|: eps times this is rounding of h
    mass: Decimal  # Σ|β|
    curved: Decimal  # the largest |d_iβ_i|
    outward: Decimal = ZERO
    inward: Decimal = ZERO
    totals: Decimal = ZERO  # Σ|totals|, of which a product with ν was rounded

    @property
    def gap(self):
        return self.primal - self.dual


def findings(problem, K, beta, b):
    """The truth about β (a Decimal per variable) and b (one per group)."""
    n = len(K)
    coefficients = np.full(n, ZERO, dtype=object)
    with all_digits():
        np.add.at(coefficients, problem.row, beta)
        sums = [beta[problem.group == g].sum() - total for g, total in enumerate(problem.totals)]
    u = K @ coefficients
    curved = problem.d * beta
    h = problem.p - u[problem.row] - curved
    energy = coefficients @ u
    offsets = np.array([b[g] if g >= 0 else ZERO for g in problem.group], dtype=object)
    r = problem.p - u[problem.row] - offsets
    losses = [_loss(*item) for item in zip(r, problem.d, problem.lower, problem.upper, strict=True)]
    primal = HALF * energy + sum(losses, ZERO) + sum((b[g] * t for g, t in enumerate(problem.totals)), ZERO)
    outward, inward = _unmet(problem, beta, r - curved)
    return Findings(
        u=u,
        violation=_violation(problem, beta, h),
        primal=primal,
        dual=problem.p @ beta - HALF * energy - HALF * (curved @ beta),
        box=max(max(lo - x, x - hi, ZERO) for x, lo, hi in zip(beta, problem.lower, problem.upper, strict=True)),
        equality=max((abs(s) for s in sums), default=ZERO),
        magnitude=max(
            (np.abs(K) @ np.abs(coefficients))[problem.row] + np.abs(problem.p) + np.abs(curved) + np.abs(offsets)
        ),
        mass=np.abs(beta).sum(),
        curved=max(np.abs(curved)),
        outward=outward,
        inward=inward,
        totals=np.abs(problem.totals).sum() if len(problem.totals) else ZERO,
    )


def _unmet(problem, beta, residual):
    """The conditions that a multiplier should grow, or shrink, and may."""
    outward = inward = ZERO
    for x, lo, hi, r in zip(beta, problem.lower, problem.upper, residual, strict=True):
        grow = max(r, ZERO) if _below(x, hi) else ZERO
        shrink = max(-r, ZERO) if _below(-x, -lo) else ZERO
        outward = max(outward, grow if x > 0 else shrink if x < 0 else max(grow, shrink))
        inward = max(inward, shrink if x > 0 else grow if x < 0 else ZERO)
    return outward, inward


def _loss(r, d, lower, upper):
    if r == 0:
        return ZERO if lower <= 0 <= upper else -HALF * d * min(lower * lower, upper * upper)
    if d == 0:
        t = upper if r > 0 else lower
        return ZERO if t == 0 else r * t
    t = min(max(r / d, lower), upper)
    return r * t - HALF * d * t * t


def _violation(problem, beta, h):
    up = np.array([_below(x, hi) for x, hi in zip(beta, problem.upper, strict=True)])
    down = np.array([_below(-x, -lo) for x, lo in zip(beta, problem.lower, strict=True)])
    worst = ZERO
    for g in np.unique(problem.group):
        mine = problem.group == g
        top = max(h[mine & up], default=-INFINITY)
        bottom = min(h[mine & down], default=INFINITY)
        worst = max(worst, top, -bottom) if g < 0 else max(worst, top - bottom)
    return worst


def _below(x, bound):
    """Whether x may still grow towards a bound."""
    if bound == INFINITY:
        return True
    return bound - x > _AT_BOUND * abs(bound)


def joint_findings(K, y, C, beta, b, *, shared, balanced):
    """The truth about a joint multi-class machine's β (samples × classes) and b (one per class).

    With e_ik = 1 − [k = y_i] + f_k(x_i) and α_ik = −β_ik for wrong classes k: one slack per sample if `shared`
    (Crammer–Singer), else one per sample and wrong class (Weston–Watkins).
    """
    n, q = beta.shape
    u = K @ beta
    e = u + b + 1
    own = np.arange(n), y
    e[own] = e[own] - 1
    energy = (beta * u).sum()
    g = e - e[own][:, None]
    losses, violation, box, outward, inward = ZERO, ZERO, ZERO, ZERO, ZERO
    for i in range(n):
        wrong = [k for k in range(q) if k != y[i]]
        alpha = {k: -beta[i, k] for k in wrong}
        box = max([box, *(-a for a in alpha.values())])
        if shared:
            losses += C[i] * max([ZERO, *(g[i, k] for k in wrong)])
            box = max(box, beta[i, y[i]] - C[i])
            held = [g[i, k] for k in wrong if alpha[k] > 0]
            slack = max([ZERO, *(g[i, k] for k in wrong)])
            if _below(beta[i, y[i]], C[i]):
                held.append(ZERO)
                outward, slack = max(outward, slack), ZERO
            inward = max([inward, *(slack - g[i, k] for k in wrong if alpha[k] > 0)])
            if held:
                violation = max(violation, max([ZERO, *(g[i, k] for k in wrong)]) - min(held))
        else:
            for k in wrong:
                losses += C[i] * max(ZERO, g[i, k])
                box = max(box, alpha[k] - C[i])
                if _below(alpha[k], C[i]):
                    violation, outward = max(violation, g[i, k]), max(outward, g[i, k])
                if alpha[k] > 0:
                    violation, inward = max(violation, -g[i, k]), max(inward, -g[i, k])
    with all_digits():
        equality = max(abs(s) for s in beta.sum(axis=1))
        if balanced:
            equality = max([equality, *(abs(s) for s in beta.sum(axis=0))])
    return Findings(
        u=u,
        violation=violation,
        primal=HALF * energy + losses,
        dual=beta[own].sum() - HALF * energy,
        box=max(box, ZERO),
        equality=equality,
        magnitude=max((np.abs(K) @ np.abs(beta)).ravel()) + 1 + max(np.abs(b)),
        mass=np.abs(beta).sum(),
        curved=ZERO,
        outward=outward,
        inward=inward,
    )
