"""Losses with corners, solved by clarabel and bounded from both sides in a hundred digits; nothing here is mercer's.

minimise  Σ w_i ℓ(y_i, f(x_i)) + λΩ(‖f‖),   dual  −Σ w_i ℓ*(y_i, g_i/w_i) − λΩ*(‖Σ g_i k(x_i, ·)‖/λ),   Σg = 0 with b

Any c and b have at least the minimum, and any feasible g at most: `enclose` evaluates both at clarabel's solution.
"""

from dataclasses import dataclass
from decimal import Decimal

import clarabel
import numpy as np
import scipy.sparse as sp

from reference.decimals import ONE, ZERO, decimals


@dataclass(frozen=True)
class Bent:
    """|f − y| + ½ max(0, f − y)², with a corner at y and a curve above: a loss as a user might write it."""

    kind = "regression"

    def value(self, y, f):
        return np.abs(f - y) + 0.5 * np.maximum(0.0, f - y) ** 2

    def gradient(self, y, f):
        return np.sign(f - y) + np.maximum(0.0, f - y)


@dataclass(frozen=True)
class Stairs:
    """max(0, 1 − yf, 3 − 5yf): a hinge with a second corner, for classes."""

    kind = "classification"

    def value(self, y, f):
        return np.maximum(np.maximum(0.0, 1.0 - y * f), 3.0 - 5.0 * y * f)

    def gradient(self, y, f):
        return -y * np.where(y * f < 0.5, 5.0, np.where(y * f < 1.0, 1.0, 0.0))


# The lines in m of each loss, a·m + d, with m = yf for classes and m = f − y otherwise.
EPSILON, TAU = 0.25, 0.125
LINES = {
    "hinge": [(0, 0), (-1, 1)],
    "absolute": [(1, 0), (-1, 0)],
    "epsilon_insensitive": [(0, 0), (1, -EPSILON), (-1, -EPSILON)],
    "pinball": [(1 - TAU, 0), (-TAU, 0)],
    "bent": [(1, 0), (-1, 0)],
    "stairs": [(0, 0), (-1, 1), (-5, 3)],
}
CLASSES = ("hinge", "stairs")


def coefficients(name, y):
    """(a, d) of each line in f: ℓ = max a·f + d, a row for each sample."""
    a, d = np.array(LINES[name], dtype=float).T
    if name in CLASSES:
        return y[:, None] * a, np.tile(d, (len(y), 1))
    return np.tile(a, (len(y), 1)), d - y[:, None] * a


def value(name, y, f, epsilon=EPSILON, tau=TAU):
    """The losses, in the arithmetic of y and f."""
    m = y * f if name in CLASSES else f - y
    lines = [decimals(float(a)) * m + decimals(float(d)) for a, d in LINES[name]]
    if name == "epsilon_insensitive":
        lines = [0 * m, abs(m) - decimals(float(epsilon))]
    elif name == "pinball":
        lines = [(ONE - decimals(float(tau))) * m, -decimals(float(tau)) * m]
    largest = lines[0]
    for line in lines[1:]:
        largest = np.maximum(largest, line)
    if name == "bent":
        largest = largest + np.maximum(m, ZERO) ** 2 / 2
    return largest


def conjugate(name, y, s):
    """ℓ*(y, s) of a subgradient s in the range of the loss."""
    if name == "bent":
        return s * y + np.maximum(s - ONE, ZERO) ** 2 / 2
    if name == "hinge":
        return s * y
    if name == "stairs":  # corners at yf = 1 and at yf = 1/2, where the loss is 0 and 1/2
        t = s * y
        return np.where(t >= -ONE, t, t / 2 - ONE / 2)
    return s * y + (abs(s) * decimals(EPSILON) if name == "epsilon_insensitive" else ZERO)


def subgradient_range(name, y):
    a, _ = coefficients(name, y)
    return a.min(axis=1), np.full(len(y), np.inf) if name == "bent" else a.max(axis=1)


def penalty(kind, r):
    return {"squared_norm": r * r, "norm": r, "fourth": r**4}[kind]


def penalty_conjugate(kind, s):
    """Ω*(s); the norm's is 0 for s ≤ 1, and infinite above."""
    if kind == "squared_norm":
        return s * s / 4
    return ZERO if kind == "norm" else 3 * (s / 4) ** (Decimal(4) / 3)


def by_clarabel(name, kind, lam, y, weight, K, bias):
    """(minimum, v, b, g): f = Rv + b at the samples with K = RR', and the multipliers of the loss."""
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    n = len(y)
    a, d = coefficients(name, y)
    # Variables: v, b, the losses, r ≥ ‖v‖, q ≥ r⁴, and what the curve of `bent` squares.
    at_b, at_loss, at_r, at_q, at_curve, size = n, n + 1, 2 * n + 1, 2 * n + 2, 2 * n + 3, 3 * n + 3
    P, cost = np.zeros(size), np.zeros(size)
    cost[at_loss:at_r] = weight
    if name == "bent":
        P[at_curve:] = weight
    if kind == "squared_norm":
        P[:n] = 2 * lam
    elif kind == "norm":
        cost[at_r] = lam
    else:
        cost[at_q] = lam
    blocks, right, cones = [], [], []

    def add(matrix, bound, cone):
        blocks.append(matrix)
        right.append(bound)
        cones.append(cone)

    f = np.zeros((n, size))
    f[:, :n], f[:, at_b] = root, 1.0 if bias else 0.0
    for k in range(a.shape[1]):
        rows = a[:, [k]] * f
        rows[np.arange(n), at_loss + np.arange(n)] = -1.0
        add(rows, -d[:, k], clarabel.NonnegativeConeT(n))
    if name == "bent":
        rows = f.copy()
        rows[np.arange(n), at_curve + np.arange(n)] = -1.0
        add(rows, y, clarabel.NonnegativeConeT(n))
        rows = np.zeros((n, size))
        rows[np.arange(n), at_curve + np.arange(n)] = -1.0
        add(rows, np.zeros(n), clarabel.NonnegativeConeT(n))
    if not bias:
        add(np.eye(size)[[at_b]], np.zeros(1), clarabel.ZeroConeT(1))
    if kind != "squared_norm":
        rows = np.zeros((n + 1, size))
        rows[0, at_r] = -1.0
        rows[1:, :n] = -np.eye(n)
        add(rows, np.zeros(n + 1), clarabel.SecondOrderConeT(n + 1))
    if kind == "fourth":  # q^¼ · 1^¾ ≥ r
        rows = np.zeros((3, size))
        rows[0, at_q], rows[2, at_r] = -1.0, -1.0
        add(rows, np.array([0.0, 1.0, 0.0]), clarabel.PowerConeT(0.25))
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 200
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sp.csc_array(np.diag(P)), cost, sp.csc_array(np.vstack(blocks)), np.concatenate(right), cones, settings
    )
    found = solver.solve()
    x, z = np.array(found.x), np.array(found.z)
    lines = a.shape[1]
    g = (a * z[: lines * n].reshape(lines, n).T).sum(axis=1)
    if name == "bent":
        g = g + z[lines * n : (lines + 1) * n]
    return found.obj_val, x[:n], x[at_b] if bias else 0.0, g


def primal_value(name, kind, lam, y, weight, K, c, b, **parameters):
    """The objective at c and b; K, y and all numbers are Decimals."""
    u = K @ c
    square = c @ u  # below zero, where a matrix that is given is indefinite
    size = square if kind == "squared_norm" else penalty(kind, max(square, ZERO).sqrt())
    return (weight * value(name, y, u + b, **parameters)).sum() + lam * size


def dual_value(name, kind, lam, y, weight, K, g, bias):
    """The dual value of a feasible point near g, which floats give."""
    used = np.flatnonzero(weight > 0)
    low, high = (weight[used] * side[used] for side in subgradient_range(name, y))
    g = decimals(np.clip(g[used], low, np.where(np.isfinite(high), high, np.inf)))
    if bias:  # where there is most room, g takes what its sum lacks
        for _ in range(len(used)):
            total = g.sum()
            if total == 0:
                break
            room = (high - g.astype(float)) if total < 0 else (g.astype(float) - low)
            k = int(np.argmax(room))
            g[k] = (
                g[k] - total if room[k] > 2 * abs(float(total)) else decimals(float(low[k] if total > 0 else high[k]))
            )
    weight, y, K = decimals(weight[used]), decimals(y[used]), K[np.ix_(used, used)]
    length = max(g @ K @ g, ZERO).sqrt()
    if kind == "norm" and length > lam:
        g, length = g * (lam / length), lam
    return -(weight * conjugate(name, y, g / weight)).sum() - lam * penalty_conjugate(kind, length / lam)


def enclose(name, kind, lam, y, weight, K, bias):
    """(lower, upper) bounds on the minimum as Decimals, for an exact K of Decimals; and what clarabel finds."""
    minimum, v, b, g = by_clarabel(name, kind, lam, y, weight, K.astype(float), bias)
    exact_lam, exact_y, exact_weight = decimals(lam), decimals(y), decimals(weight)
    length = max(decimals(g) @ K @ decimals(g), ZERO).sqrt()
    c = decimals(g) * (-decimals(float(np.linalg.norm(v))) / length) if length > 0 else 0 * decimals(g)
    upper = primal_value(name, kind, exact_lam, exact_y, exact_weight, K, c, decimals(float(b)))
    return dual_value(name, kind, exact_lam, y, weight, K, g, bias), upper, minimum
