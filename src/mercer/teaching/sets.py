"""Algorithms that move many variables at once: decomposition with any working set, active set, gradient projection."""

from __future__ import annotations

import math

import numpy as np

from mercer.arrays import Floats, Indices
from mercer.teaching.record import SmallProblem, Trace

# Halvings that find the multiplier of the equality: to the last bit of float64.
_HALVINGS = 200
_NO_SLOPE = 1e-12


def run_decomposition(trace: Trace, tol: float, max_steps: int, size: int) -> None:
    """Igel's algorithm 4.1: the subproblem on the worst violators, half from each side, is solved exactly."""
    problem = trace.problem
    alpha = np.zeros(problem.n)
    while len(trace) < max_steps:
        g = problem.gradient(alpha)
        violation, _ = problem.violation_and_b(alpha, g)
        if violation <= tol:
            break
        B = _worst(problem, alpha, g, size)
        # On B the problem is one of the same kind with the gradient that the others leave: K_BB and g_B + Q_BBα_B.
        new, clipped = _restricted(problem, alpha, B, 0.1 * tol)
        if np.array_equal(new, alpha):
            break
        alpha = new
        trace.record(alpha, B.tolist(), 1.0, clipped)
    trace.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol


def _worst(problem: SmallProblem, alpha: Floats, g: Floats, size: int) -> Indices:
    up, down = problem.ends(alpha)
    h, half = problem.y * g, max(1, size // 2)
    top = np.argsort(-np.where(up, h, -np.inf), kind="stable")[: min(half, int(up.sum()))]
    bottom = np.argsort(np.where(down, h, np.inf), kind="stable")[: min(half, int(down.sum()))]
    return np.unique(np.concatenate([top, bottom]))


def _restricted(problem: SmallProblem, alpha: Floats, B: Indices, tol: float) -> tuple[Floats, bool]:
    """The best α_B with the others held, by pair steps inside of B."""
    y, K = problem.y[B], problem.K[np.ix_(B, B)]
    h = y * problem.gradient(alpha)[B]
    # β = yα lies between these.
    beta, low, high = y * alpha[B], np.where(y > 0, 0.0, -problem.C), np.where(y > 0, problem.C, 0.0)
    for _ in range(100 * len(B) ** 2 + 1000):
        i = int(np.where(beta < high, h, -np.inf).argmax())
        j = int(np.where(beta > low, h, np.inf).argmin())
        room = min(high[i] - beta[i], beta[j] - low[j])
        if room <= 0 or h[i] - h[j] <= tol:
            break
        curvature = K[i, i] + K[j, j] - 2 * K[i, j]
        step = min(room, (h[i] - h[j]) / curvature if curvature > 0 else math.inf)
        if step == math.inf:  # C = inf: the dual is unbounded
            break
        beta[i] = min(beta[i] + step, high[i])
        beta[j] = max(beta[j] - step, low[j])
        h -= step * (K[i] - K[j])
    alpha = alpha.copy()
    alpha[B] = y * beta
    return alpha, bool(((beta == low) | (beta == high)).any())


def run_active_set(trace: Trace, tol: float, max_steps: int) -> None:
    """Newton steps on the free variables up to the first bound; the worst violator is freed when they are solved."""
    problem = trace.problem
    y, C = problem.y, problem.C
    alpha, free = np.zeros(problem.n), np.zeros(problem.n, dtype=bool)
    while len(trace) < max_steps:
        g = problem.gradient(alpha)
        violation, _ = problem.violation_and_b(alpha, g)
        if violation <= tol:
            break
        F = np.flatnonzero(free)
        direction, slope = _newton(problem, g, F)
        if slope <= _NO_SLOPE * max(1.0, abs(problem.dual(alpha))) * tol:
            up, down = problem.ends(alpha)
            h = y * g
            free[int(np.argmax(np.where(up, h, -np.inf)))] = free[int(np.argmin(np.where(down, h, np.inf)))] = True
            F = np.flatnonzero(free)
            direction, slope = _newton(problem, g, F)
        size, blocking = _reach(alpha[F], direction, C)
        curvature = _curvature(problem, F, direction)
        whole = slope / curvature if curvature > 1e-14 * slope else math.inf
        step = min(size, whole)
        if not math.isfinite(step):
            break
        alpha = alpha.copy()
        alpha[F] = np.clip(alpha[F] + step * direction, 0.0, C)
        if step == size:
            alpha[F[blocking]] = np.where(direction[blocking] > 0, C, 0.0)
            free[F[blocking]] = False
        trace.record(alpha, F.tolist(), float(step), bool(step < whole))
    trace.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol


def _newton(problem: SmallProblem, g: Floats, F: Indices) -> tuple[Floats, float]:
    """The direction to the maximum over the free variables with Σyα held, or up a ridge of no curvature; its slope."""
    if len(F) < 2:
        return np.zeros(len(F)), 0.0
    y = problem.y[F]
    Z = np.linalg.svd(y[None])[2][1:].T  # directions that keep Σyα
    Q = Z.T @ (np.outer(y, y) * problem.K[np.ix_(F, F)]) @ Z
    right = Z.T @ g[F]
    values, vectors = np.linalg.eigh(Q)
    along = vectors.T @ right
    flat = values <= 1e-12 * max(float(values[-1]), 1e-300)
    if np.abs(along[flat]).max(initial=0.0) > 1e-9 * max(1.0, float(np.abs(along).max())):
        along = np.where(flat, along, 0.0)
    else:
        along = np.divide(along, values, out=np.zeros_like(along), where=~flat)
    direction = Z @ (vectors @ along)
    return direction, float(direction @ g[F])


def _curvature(problem: SmallProblem, F: Indices, direction: Floats) -> float:
    beta = problem.y[F] * direction
    return float(beta @ (problem.K[np.ix_(F, F)] @ beta))


def _reach(alpha: Floats, direction: Floats, C: float) -> tuple[float, Indices]:
    """How far the box lets α go, and which variables stop it."""
    room = np.full(len(alpha), np.inf)
    up, down = direction > 0, direction < 0
    room[up], room[down] = (C - alpha[up]) / direction[up], -alpha[down] / direction[down]
    least = float(room.min(initial=math.inf))
    return least, np.flatnonzero(room == least) if math.isfinite(least) else np.empty(0, dtype=np.intp)


def run_gradient_projection(trace: Trace, tol: float, max_steps: int) -> None:
    """Along the projected gradient to a face of the box, then a Newton step on that face (Nocedal and Wright, 16.7)."""
    problem = trace.problem
    alpha = np.zeros(problem.n)
    g, s = problem.gradient(alpha), 1.0
    while len(trace) < max_steps and problem.violation_and_b(alpha, g)[0] > tol:
        start = alpha
        direction = projected(problem, alpha + s * g) - alpha
        slope, curvature = float(direction @ g), _curvature(problem, np.arange(problem.n), direction)
        if slope <= 0:
            break
        size = 1.0 if slope >= curvature else slope / curvature
        alpha = _snapped(alpha + size * direction, problem.C)
        F = np.flatnonzero((alpha > 0) & (alpha < problem.C))
        towards, rise = _newton(problem, problem.gradient(alpha), F)
        reach, _ = _reach(alpha[F], towards, problem.C)
        bend = _curvature(problem, F, towards)
        whole = rise / bend if bend > 1e-14 * rise else math.inf
        if rise > 0 and math.isfinite(min(reach, whole)):
            alpha[F] = _snapped(alpha[F] + min(reach, whole) * towards, problem.C)
        new_g = problem.gradient(alpha)
        moved, turned = alpha - start, g - new_g
        length = float(moved @ moved)
        s = max(length / max(float(moved @ turned), 1e-10 * length, 1e-300), 1e-10)
        g = new_g
        trace.record(alpha, np.flatnonzero(moved).tolist(), float(size), bool(reach < whole))
    trace.converged = problem.violation_and_b(alpha, g)[0] <= tol


def _snapped(alpha: Floats, C: float) -> Floats:
    """α inside of the box, and on its end where only rounding keeps it away."""
    alpha = np.clip(alpha, 0.0, C)
    near = 1e-15 * (C if math.isfinite(C) else float(alpha.max(initial=0.0)))
    return np.where(alpha <= near, 0.0, np.where(alpha >= C - near, C, alpha))


def projected(problem: SmallProblem, wish: Floats) -> Floats:
    """The nearest feasible α: clip(wish − νy) with the ν that makes Σyα = 0, found by halving."""
    # From max |wish| on, one class is 0, and the sum has its last sign.
    reach = float(np.abs(wish).max())
    low, high = -reach, reach
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        total = float(problem.y @ np.clip(wish - middle * problem.y, 0.0, problem.C))
        low, high = (middle, high) if total > 0 else (low, middle)
    return np.asarray(np.clip(wish - 0.5 * (low + high) * problem.y, 0.0, problem.C))
