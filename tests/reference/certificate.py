"""The certificate of a dual solution by naive loops: slow, readable, and the truth the library is held to.

    maximise  p'β − ½ β'(K + diag d)β    subject to  lower ≤ β ≤ upper,  Σ over group g of β = total_g

with u = Kβ (one number per row), h = p − u[row] − dβ, r = p − u[row] − b_group and

    loss_i = max over t in [lower_i, upper_i] of  r_i t − d_i t²/2
    primal = ½ β'Kβ + Σ loss_i + Σ_g b_g·total_g
    gap    = Σ [ loss_i − (β_i r_i − d_i β_i²/2) ],  every term ≥ 0
"""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Truth:
    """What `certify` must find, each number from its definition."""

    u: np.ndarray
    h: np.ndarray
    b: np.ndarray
    primal: float
    dual: float
    gap: float
    terms: np.ndarray
    violation: float
    kkt: dict[str, float]


def field(problem, K, beta):
    """The pair u = Kβ per row of K, and h = p − u[row] − dβ per variable, by exactly rounded sums."""
    n = len(K)
    coefficients = [[] for _ in range(n)]
    for i in range(len(beta)):
        coefficients[problem.row[i]].append(beta[i])
    weight = [math.fsum(c) for c in coefficients]
    u = np.array([math.fsum(K[i][j] * weight[j] for j in range(n)) for i in range(n)])
    h = np.array([problem.p[i] - u[problem.row[i]] - problem.d[i] * beta[i] for i in range(len(beta))])
    return u, h


def admissible(problem, h, beta, g):
    """The two ends (largest h that may still rise, smallest h that may still fall) of group g."""
    up, down = -math.inf, math.inf
    for i in range(len(beta)):
        if problem.group[i] != g:
            continue
        if beta[i] < problem.upper[i]:
            up = max(up, h[i])
        if beta[i] > problem.lower[i]:
            down = min(down, h[i])
    return up, down


def biases(problem, h, beta):
    """One b per group: the mean of h over its free variables, or the middle of the interval without any."""
    b = []
    for g in range(len(problem.totals)):
        free = [
            h[i] for i in range(len(beta)) if problem.group[i] == g and problem.lower[i] < beta[i] < problem.upper[i]
        ]
        up, down = admissible(problem, h, beta, g)
        if free:
            b.append(math.fsum(free) / len(free))
        elif math.isinf(up):
            b.append(0.0 if math.isinf(down) else down)
        else:
            b.append(up if math.isinf(down) else (up + down) / 2)
    return np.array(b)


def violation(problem, h, beta):
    """The largest over groups of max_up h − min_down h; a variable in no group is measured against 0."""
    worst = 0.0
    for g in range(len(problem.totals)):
        up, down = admissible(problem, h, beta, g)
        worst = max(worst, up - down)
    up, down = admissible(problem, h, beta, -1)
    return max(worst, up, -down)


def largest(r, d, lower, upper):
    """The maximum over t in [lower, upper] of r t − d t²/2."""
    if r == 0:
        return 0.0 if lower <= 0 <= upper else -d * min(lower * lower, upper * upper) / 2
    if d == 0:
        t = upper if r > 0 else lower
        return 0.0 if t == 0 else r * t
    t = min(max(r / d, lower), upper)
    return r * t - d * t * t / 2


def certificate(problem, K, beta, b=None) -> Truth:
    """Every number of the certificate of a feasible β; with `b` the primal is taken at that bias instead of our own."""
    beta = np.asarray(beta, dtype=np.float64)
    u, h = field(problem, K, beta)
    b = biases(problem, h, beta) if b is None else np.atleast_1d(np.asarray(b, dtype=np.float64))
    m = len(beta)
    offset = [b[problem.group[i]] if problem.group[i] >= 0 else 0.0 for i in range(m)]
    r = [problem.p[i] - u[problem.row[i]] - offset[i] for i in range(m)]
    loss = [largest(r[i], problem.d[i], problem.lower[i], problem.upper[i]) for i in range(m)]
    terms = [loss[i] - (beta[i] * r[i] - problem.d[i] * beta[i] ** 2 / 2) for i in range(m)]
    norm = math.fsum(beta[i] * u[problem.row[i]] for i in range(m))
    ridge = math.fsum(problem.d[i] * beta[i] ** 2 for i in range(m))
    dual = math.fsum(problem.p[i] * beta[i] for i in range(m)) - norm / 2 - ridge / 2
    primal = norm / 2 + math.fsum(loss) + math.fsum(b[g] * problem.totals[g] for g in range(len(b)))
    return Truth(
        u=u,
        h=h,
        b=b,
        primal=primal,
        dual=dual,
        gap=max(math.fsum(terms), primal - dual),
        terms=np.array(terms),
        violation=violation(problem, h, beta),
        kkt={
            "dual feasibility: box": box_residual(problem, beta),
            "dual feasibility: equality": equality_residual(problem, beta),
            "primal feasibility": wish_residual(problem, beta, h - np.array(offset), away=True),
            "complementary slackness": wish_residual(problem, beta, h - np.array(offset), away=False),
        },
    )


def box_residual(problem, beta):
    """How far β leaves its box."""
    return max(0.0, *(max(problem.lower[i] - beta[i], beta[i] - problem.upper[i]) for i in range(len(beta))))


def equality_residual(problem, beta):
    """The largest |Σ over a group of β − its total|, or over all groups together."""
    sums = [
        math.fsum([*(beta[i] for i in range(len(beta)) if problem.group[i] == g), -problem.totals[g]])
        for g in range(len(problem.totals))
    ]
    return max((abs(s) for s in (*sums, sum(sums))), default=0.0)


def wish_residual(problem, beta, wish, away):
    """The largest residual h − b that a movable variable still has, away from zero or towards it.

    Away from zero: the sample's error exceeds the slack its multiplier pays for, so a constraint is broken.
    Towards zero: the multiplier is positive although its constraint is not tight.
    """
    worst = 0.0
    for i in range(len(beta)):
        rises = wish[i] > 0 and beta[i] < problem.upper[i]
        falls = wish[i] < 0 and beta[i] > problem.lower[i]
        towards_zero = (rises and beta[i] < 0) or (falls and beta[i] > 0)
        if (rises or falls) and towards_zero != away:
            worst = max(worst, abs(wish[i]))
    return worst


def dual_value(problem, K, beta):
    """p'β − ½ β'(K + diag d)β, the number two solvers are compared by."""
    beta = np.asarray(beta, dtype=np.float64)
    u, _ = field(problem, K, beta)
    return math.fsum(
        beta[i] * (problem.p[i] - u[problem.row[i]] / 2 - problem.d[i] * beta[i] / 2) for i in range(len(beta))
    )


def rounding(problem, K, beta):
    """What float64 cannot resolve of h: eps times the largest sum of magnitudes that makes up one entry."""
    beta = np.asarray(beta, dtype=np.float64)
    spread = np.zeros(len(K))
    np.add.at(spread, problem.row, np.abs(beta))
    total = np.abs(problem.p) + (np.abs(K) @ spread)[problem.row] + problem.d * np.abs(beta)
    return float(np.finfo(np.float64).eps * total.max())
