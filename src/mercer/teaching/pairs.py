"""Pair steps: Igel's algorithm 4.2 with its three rules for the pair, and Li's form of the same step.

λ = min{b_i − y_iα_i, y_jα_j − a_j, (y_ig_i − y_jg_j)/(K_ii + K_jj − 2K_ij)}       α ← α + λu_ij
"""

from __future__ import annotations

import math

import numpy as np

from mercer.arrays import Floats
from mercer.teaching.record import SmallProblem, Trace

RULES = ("most violating", "maximum gain", "second order")
# A direction of less curvature than this share of the two diagonal entries is taken to have none.
_NO_CURVATURE = 1e-14


def chosen_pair(problem: SmallProblem, alpha: Floats, g: Floats, rule: str) -> tuple[int, int]:
    """i in I_up and j in I_down with y_ig_i > y_jg_j."""
    up, down = problem.ends(alpha)
    h, K = problem.y * g, problem.K
    first = int(np.argmax(np.where(up, h, -np.inf)))
    if rule == "most violating":
        return first, int(np.argmin(np.where(down, h, np.inf)))
    diagonal = K.diagonal()
    curvature = diagonal[:, None] + diagonal - 2 * K
    curvature = np.maximum(curvature, _NO_CURVATURE * (diagonal[:, None] + diagonal) + 1e-300)
    ahead = np.where(up[:, None] & down, h[:, None] - h, 0.0)
    gains = np.maximum(ahead, 0.0) ** 2 / (2 * curvature)
    if rule == "second order":
        return first, int(np.argmax(gains[first]))
    i, j = np.unravel_index(int(np.argmax(gains)), gains.shape)
    return int(i), int(j)


def run_smo(trace: Trace, tol: float, max_steps: int) -> None:
    """Sequential minimal optimisation (Igel, algorithm 4.2); line numbers are the notes'."""
    problem = trace.problem
    K, y = problem.K, problem.y
    alpha, g = np.zeros(problem.n), np.ones(problem.n)  # 1
    while len(trace) < max_steps and problem.violation_and_b(alpha, g)[0] > tol:  # 2, 8
        i, j = chosen_pair(problem, alpha, g, trace.rule)  # 3
        room_i = problem.C - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else problem.C - alpha[j]
        curvature = K[i, i] + K[j, j] - 2 * K[i, j]
        flat = curvature <= _NO_CURVATURE * (K[i, i] + K[j, j])
        newton = math.inf if flat else (y[i] * g[i] - y[j] * g[j]) / curvature
        size = min(room_i, room_j, newton)  # 4
        if size == math.inf:  # C = inf, and nothing bends: the dual is unbounded, and there is no hard margin
            break
        g = g - size * y * K[i] + size * y * K[j]  # 5
        alpha = alpha.copy()
        alpha[i] = _onto(alpha[i] + y[i] * size, room_i == size, y[i] > 0, problem.C)  # 6
        alpha[j] = _onto(alpha[j] - y[j] * size, room_j == size, y[j] < 0, problem.C)  # 7
        trace.record(alpha, (i, j), float(size), bool(size < newton))
    trace.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol * (1 + 1e-3)


def _onto(value: float, at_end: bool, upwards: bool, C: float) -> float:
    """A step that uses all of its room ends on the bound exactly."""
    return value if not at_end else C if upwards else 0.0


def run_li(trace: Trace, tol: float, max_steps: int) -> None:
    """The pair step by errors E_i = f(x_i) − y_i, clipped to [L, H], with b from the pair (Li, section 6)."""
    problem = trace.problem
    K, y, C = problem.K, problem.y, problem.C
    alpha, b = np.zeros(problem.n), 0.0
    E = -y.copy()
    while len(trace) < max_steps:
        g = 1.0 - y * (E + y - b)
        if problem.violation_and_b(alpha, g)[0] <= tol:
            break
        two, one = chosen_pair(problem, alpha, g, trace.rule)  # α_2 grows along y_2, α_1 pays for it
        S = y[one] * y[two]
        if S < 0:
            L, H = max(0.0, alpha[two] - alpha[one]), min(C, C + alpha[two] - alpha[one])
        else:
            L, H = max(0.0, alpha[one] + alpha[two] - C), min(C, alpha[one] + alpha[two])
        curvature = K[one, one] - 2 * K[one, two] + K[two, two]
        flat = curvature <= _NO_CURVATURE * (K[one, one] + K[two, two])
        wish = y[two] * math.inf if flat else alpha[two] + y[two] * (E[one] - E[two]) / curvature
        second = min(max(wish, L), H)
        if abs(second) == math.inf:  # C = inf, and nothing bends: the dual is unbounded, and there is no hard margin
            break
        first = alpha[one] + S * (alpha[two] - second)
        first = _near_ends(first, C, max(alpha[one], alpha[two], second))
        by_one, by_two = y[one] * (first - alpha[one]), y[two] * (second - alpha[two])
        b_one = -E[one] - by_one * K[one, one] - by_two * K[two, one] + b
        b_two = -E[two] - by_one * K[one, two] - by_two * K[two, two] + b
        new_b = b_one if 0 < first < C else b_two if 0 < second < C else 0.5 * (b_one + b_two)
        E = E + by_one * K[one] + by_two * K[two] + (new_b - b)
        b, alpha = new_b, alpha.copy()
        size = abs(second - alpha[two])
        alpha[one], alpha[two] = first, second
        trace.record(alpha, (two, one), float(size), bool(wish != second), float(b))
    trace.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol * (1 + 1e-3)


def _near_ends(value: float, C: float, moved: float) -> float:
    """α_1 follows from α_2 by a difference, whose rounding would leave it beside its bound."""
    scale = C if math.isfinite(C) else moved
    if abs(value) <= 4e-16 * scale:
        return 0.0
    return C if abs(value - C) <= 4e-16 * scale else value
