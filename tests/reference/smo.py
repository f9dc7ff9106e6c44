"""Sequential minimal optimisation in its plainest form (Igel, Algorithm 4.2, on β = yα), on a full matrix.

One pair with the largest violation per step, the exact step along it; no cache, no shrinking.
Groups give the pair its direction (+1, −1); a variable in no group moves alone.
"""

import math

import numpy as np


def feasible(problem):
    """A point of the box whose groups have their totals: zero where possible, then filled in order."""
    beta = np.clip(0.0, problem.lower, problem.upper)
    for g in range(len(problem.totals)):
        for i in np.flatnonzero(problem.group == g):
            missing = problem.totals[g] - math.fsum(beta[problem.group == g])
            beta[i] = min(max(beta[i] + missing, problem.lower[i]), problem.upper[i])
        if not math.isclose(math.fsum(beta[problem.group == g]), problem.totals[g], abs_tol=1e-9):
            raise ValueError(f"group {g} cannot reach its total {problem.totals[g]}")
    return beta


def most_violating(problem, h, beta):
    """The largest violation and its pair: i rises, j falls; j is None for a variable in no group."""
    best = (0.0, None, None)
    can_rise, can_fall = beta < problem.upper, beta > problem.lower
    for g in range(len(problem.totals)):
        up = np.flatnonzero(can_rise & (problem.group == g))
        down = np.flatnonzero(can_fall & (problem.group == g))
        if len(up) and len(down):
            i, j = up[np.argmax(h[up])], down[np.argmin(h[down])]
            best = max(best, (h[i] - h[j], i, j), key=lambda found: found[0])
    for i in np.flatnonzero(problem.group < 0):
        wish = h[i] if can_rise[i] else 0.0
        wish = max(wish, -h[i] if can_fall[i] else 0.0)
        if wish > best[0]:
            best = (wish, i, None)
    return best


def smo(problem, K, tol=1e-6, max_steps=200_000):
    """β with violation ≤ tol, and the number of steps; RuntimeError if max_steps do not suffice."""
    K = np.asarray(K, dtype=np.float64)
    beta = feasible(problem)
    for step in range(max_steps):
        if step % 1000 == 0:
            spread = np.zeros(len(K))
            np.add.at(spread, problem.row, beta)
            h = problem.p - (K @ spread)[problem.row] - problem.d * beta
        worst, i, j = most_violating(problem, h, beta)
        if worst <= tol:
            return beta, step
        row = problem.row
        if j is None:
            curvature = K[row[i], row[i]] + problem.d[i]
            room = problem.upper[i] - beta[i] if h[i] > 0 else beta[i] - problem.lower[i]
            size = min(abs(h[i]) / curvature if curvature > 0 else math.inf, room)
            moves = [(i, math.copysign(size, h[i]))]
        else:
            curvature = K[row[i], row[i]] + K[row[j], row[j]] - 2 * K[row[i], row[j]]
            curvature += problem.d[i] + problem.d[j]
            room = min(problem.upper[i] - beta[i], beta[j] - problem.lower[j])
            size = min(worst / curvature if curvature > 1e-14 else math.inf, room)
            moves = [(i, size), (j, -size)]
        if math.isinf(size):
            raise RuntimeError("the dual is unbounded along a pair")
        for k, move in moves:
            new = min(max(beta[k] + move, problem.lower[k]), problem.upper[k])
            # A step that ends at a bound must end exactly there, or the variable stays free for ever.
            if size == room:
                new = problem.upper[k] if move > 0 and new + 1e-15 * abs(new) >= problem.upper[k] else new
                new = problem.lower[k] if move < 0 and new - 1e-15 * abs(new) <= problem.lower[k] else new
            change = new - beta[k]
            beta[k] = new
            h -= K[row[k]][row] * change
            h[k] -= problem.d[k] * change
    raise RuntimeError(f"no solution in {max_steps} steps, violation {worst}")
