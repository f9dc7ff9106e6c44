"""Textbook algorithms for the soft margin dual of a small two-class problem, and `steps`, which runs them.

Sequential minimal optimisation moves a pair of variables, chosen by one of Igel's three rules; Li's form is the same
step written with errors:

    λ = min{b_i − y_iα_i, y_jα_j − a_j, (y_ig_i − y_jg_j)/(K_ii + K_jj − 2K_ij)}       α ← α + λu_ij

Decomposition with any working set, the active set method and gradient projection move many variables at once. Two
algorithms take one sample at a time and have no bias:

    perceptron    if y_i f(x_i) ≤ 0:  α_i ← α_i + 1
    Pegasos       if y_i f_t(x_i) < 1:  θ ← θ + y_iφ(x_i), with w_t = θ/(λt) and λ = 1/(Cn); the result is mean w_t

Their α is not feasible for the dual: the perceptron's has an arbitrary scale, and that of Pegasos may exceed C. The
recorded dual value is that of the best multiple of the perceptron's α, and of the α of Pegasos clipped at C: a lower
bound on the optimum in both cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.kernels.names import KernelLike, as_kernel
from mercer.notes.teaching.record import SmallProblem, Steps
from mercer.runtime.parameters import integer, one_of, positive
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices
from mercer.samples.labels import read_signs
from mercer.solvers.pegasos.iterates import draw_with_replacement

RULES = ("most violating", "maximum gain", "second order")
# Curvature along a direction, relative to the two diagonal entries, that counts as zero.
_NO_CURVATURE = 1e-14


def choose_pair(problem: SmallProblem, alpha: Floats, g: Floats, rule: str) -> tuple[int, int]:
    """Choose i in I_up and j in I_down with y_ig_i > y_jg_j by one of Igel's rules; g is the gradient of the dual."""
    up, low = problem.index_sets(alpha)
    h, K = problem.y * g, problem.K
    first = int(np.argmax(np.where(up, h, -np.inf)))
    if rule == "most violating":
        return first, int(np.argmin(np.where(low, h, np.inf)))
    diagonal = K.diagonal()
    curvature = diagonal[:, None] + diagonal - 2 * K
    curvature = np.maximum(curvature, _NO_CURVATURE * (diagonal[:, None] + diagonal) + 1e-300)
    violation = np.where(up[:, None] & low, h[:, None] - h, 0.0)
    gains = np.maximum(violation, 0.0) ** 2 / (2 * curvature)
    if rule == "second order":
        return first, int(np.argmax(gains[first]))
    i, j = np.unravel_index(int(np.argmax(gains)), gains.shape)
    return int(i), int(j)


def run_smo(run: Steps, tol: float, max_iter: int) -> None:
    """Run sequential minimal optimisation (Igel, algorithm 4.2); comments give the lines of that algorithm."""
    problem = run.problem
    K, y = problem.K, problem.y
    alpha = run.start  # 1
    g = problem.gradient(alpha)
    while len(run) < max_iter and problem.violation_and_b(alpha, g)[0] > tol:  # 2, 8
        i, j = choose_pair(problem, alpha, g, run.rule)  # 3
        slack_i = problem.C - alpha[i] if y[i] > 0 else alpha[i]
        slack_j = alpha[j] if y[j] > 0 else problem.C - alpha[j]
        curvature = K[i, i] + K[j, j] - 2 * K[i, j]
        is_flat = curvature <= _NO_CURVATURE * (K[i, i] + K[j, j])
        newton = math.inf if is_flat else (y[i] * g[i] - y[j] * g[j]) / curvature
        size = min(slack_i, slack_j, newton)  # 4
        if size == math.inf:  # C = inf without curvature: the dual is unbounded, and there is no hard margin
            break
        g = g - size * y * K[i] + size * y * K[j]  # 5
        alpha = alpha.copy()
        alpha[i] = _exact_at_bound(alpha[i] + y[i] * size, slack_i == size, y[i] > 0, problem.C)  # 6
        alpha[j] = _exact_at_bound(alpha[j] - y[j] * size, slack_j == size, y[j] < 0, problem.C)  # 7
        run.record(alpha, (i, j), float(size), bool(size < newton))
    run.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol * (1 + 1e-3)


def _exact_at_bound(value: float, at_bound: bool, increases: bool, C: float) -> float:
    """Return the bound itself if a step reaches it, so that rounding does not leave α next to it."""
    return value if not at_bound else C if increases else 0.0


def run_li(run: Steps, tol: float, max_iter: int) -> None:
    """Run Li's form of SMO: errors E_i = f(x_i) − y_i, α_2 clipped to [L, H], and b from the pair (Li, section 6)."""
    problem = run.problem
    K, y, C = problem.K, problem.y, problem.C
    alpha, b = run.start, 0.0
    E = K @ (y * alpha) - y
    while len(run) < max_iter:
        g = 1.0 - y * (E + y - b)
        if problem.violation_and_b(alpha, g)[0] <= tol:
            break
        i2, i1 = choose_pair(problem, alpha, g, run.rule)  # y_2α_2 grows by as much as y_1α_1 shrinks
        S = y[i1] * y[i2]
        if S < 0:
            L, H = max(0.0, alpha[i2] - alpha[i1]), min(C, C + alpha[i2] - alpha[i1])
        else:
            L, H = max(0.0, alpha[i1] + alpha[i2] - C), min(C, alpha[i1] + alpha[i2])
        curvature = K[i1, i1] - 2 * K[i1, i2] + K[i2, i2]
        is_flat = curvature <= _NO_CURVATURE * (K[i1, i1] + K[i2, i2])
        unclipped_alpha = y[i2] * math.inf if is_flat else alpha[i2] + y[i2] * (E[i1] - E[i2]) / curvature
        alpha_2 = min(max(unclipped_alpha, L), H)
        if abs(alpha_2) == math.inf:  # C = inf without curvature: the dual is unbounded, and there is no hard margin
            break
        alpha_1 = alpha[i1] + S * (alpha[i2] - alpha_2)
        alpha_1 = _snap_to_bounds(alpha_1, C, max(alpha[i1], alpha[i2], alpha_2))
        change_1, change_2 = y[i1] * (alpha_1 - alpha[i1]), y[i2] * (alpha_2 - alpha[i2])
        b_1 = -E[i1] - change_1 * K[i1, i1] - change_2 * K[i2, i1] + b
        b_2 = -E[i2] - change_1 * K[i1, i2] - change_2 * K[i2, i2] + b
        new_b = b_1 if 0 < alpha_1 < C else b_2 if 0 < alpha_2 < C else 0.5 * (b_1 + b_2)
        E = E + change_1 * K[i1] + change_2 * K[i2] + (new_b - b)
        b, alpha = new_b, alpha.copy()
        size = abs(alpha_2 - alpha[i2])
        alpha[i1], alpha[i2] = alpha_1, alpha_2
        run.record(alpha, (i2, i1), float(size), bool(unclipped_alpha != alpha_2), float(b))
    run.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol * (1 + 1e-3)


def _snap_to_bounds(value: float, C: float, size: float) -> float:
    """Return 0 or C if α_1, computed as a difference, misses it by rounding only; `size` is the scale if C = inf."""
    scale = C if math.isfinite(C) else size
    if abs(value) <= 4e-16 * scale:
        return 0.0
    return C if abs(value - C) <= 4e-16 * scale else value


# Function that chooses the samples of a step from α, the gradient and the number of the step.
WorkingSet = Callable[[Floats, Floats, int], ArrayLike]


def run_decomposition(run: Steps, tol: float, max_iter: int, size: int, choose: WorkingSet | None = None) -> None:
    """Run decomposition (Igel, algorithm 4.1) on given working sets, by default those of the worst violators."""
    problem, alpha = run.problem, run.start
    while len(run) < max_iter:
        g = problem.gradient(alpha)
        violation, _ = problem.violation_and_b(alpha, g)
        if violation <= tol:
            break
        B = (
            _worst_violators(problem, alpha, g, size)
            if choose is None
            else _call_working_set(choose, alpha, g, len(run))
        )
        new, is_clipped = _solve_subproblem(problem, alpha, B, 0.1 * tol)
        if np.array_equal(new, alpha) and choose is None:
            break
        alpha = new  # a given working set may leave α as it is; the next one may change it
        run.record(alpha, B.tolist(), 1.0, is_clipped)
    run.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol


def _call_working_set(choose: WorkingSet, alpha: Floats, g: Floats, step: int) -> Indices:
    """Return the working set that a user's function chooses; raise ValueError if its rows are invalid."""
    B = np.asarray(choose(alpha.copy(), g.copy(), step))
    n = len(alpha)
    if (
        B.ndim != 1
        or B.dtype.kind not in "iu"
        or not len(B)
        or B.min() < 0
        or B.max() >= n
        or len(np.unique(B)) < len(B)
    ):
        raise ValueError(
            f"working_set must return different rows between 0 and {n - 1}, at least one; in step {step} it returned "
            f"{B!r}"
        )
    return B.astype(np.intp)


def _worst_violators(problem: SmallProblem, alpha: Floats, g: Floats, size: int) -> Indices:
    """Return the samples in I_up with the largest y_ig_i and in I_down with the smallest, half of `size` each."""
    up, low = problem.index_sets(alpha)
    h, half = problem.y * g, max(1, size // 2)
    top = np.argsort(-np.where(up, h, -np.inf), kind="stable")[: min(half, int(up.sum()))]
    bottom = np.argsort(np.where(low, h, np.inf), kind="stable")[: min(half, int(low.sum()))]
    return np.unique(np.concatenate([top, bottom]))


def _solve_subproblem(problem: SmallProblem, alpha: Floats, B: Indices, tol: float) -> tuple[Floats, bool]:
    """Maximise the dual over α_B with the other α fixed, by pair steps; return α, and whether an α_B is at a bound."""
    y, K = problem.y[B], problem.K[np.ix_(B, B)]
    h = y * problem.gradient(alpha)[B]
    # β = yα, with its bounds.
    beta, low, high = y * alpha[B], np.where(y > 0, 0.0, -problem.C), np.where(y > 0, problem.C, 0.0)
    for _ in range(100 * len(B) ** 2 + 1000):
        i = int(np.where(beta < high, h, -np.inf).argmax())
        j = int(np.where(beta > low, h, np.inf).argmin())
        slack = min(high[i] - beta[i], beta[j] - low[j])
        if slack <= 0 or h[i] - h[j] <= tol:
            break
        curvature = K[i, i] + K[j, j] - 2 * K[i, j]
        step = min(slack, (h[i] - h[j]) / curvature if curvature > 0 else math.inf)
        if step == math.inf:  # C = inf: the dual is unbounded
            break
        beta[i] = min(beta[i] + step, high[i])
        beta[j] = max(beta[j] - step, low[j])
        h -= step * (K[i] - K[j])
    alpha = alpha.copy()
    alpha[B] = y * beta
    return alpha, bool(((beta == low) | (beta == high)).any())


def run_active_set(run: Steps, tol: float, max_iter: int) -> None:
    """Run the active set method: Newton steps on the free variables up to the first bound.

    When the free variables are optimal, the most violating pair becomes free.
    """
    problem = run.problem
    y, C = problem.y, problem.C
    alpha = run.start
    free = (alpha > 0) & (alpha < C)
    while len(run) < max_iter:
        g = problem.gradient(alpha)
        violation, _ = problem.violation_and_b(alpha, g)
        if violation <= tol:
            break
        F = np.flatnonzero(free)
        direction, slope = _newton_direction(problem, g, F)
        if slope <= 1e-12 * max(1.0, abs(problem.dual(alpha))) * tol:
            up, low = problem.index_sets(alpha)
            h = y * g
            free[int(np.argmax(np.where(up, h, -np.inf)))] = free[int(np.argmin(np.where(low, h, np.inf)))] = True
            F = np.flatnonzero(free)
            direction, slope = _newton_direction(problem, g, F)
        size, blocking = _step_limit(alpha[F], direction, C)
        curvature = _curvature(problem, F, direction)
        newton_length = slope / curvature if curvature > 1e-14 * slope else math.inf
        step = min(size, newton_length)
        if not math.isfinite(step):
            break
        alpha = alpha.copy()
        alpha[F] = np.clip(alpha[F] + step * direction, 0.0, C)
        if step == size:
            alpha[F[blocking]] = np.where(direction[blocking] > 0, C, 0.0)
            free[F[blocking]] = False
        run.record(alpha, F.tolist(), float(step), bool(step < newton_length))
    run.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol


def _newton_direction(problem: SmallProblem, g: Floats, F: Indices) -> tuple[Floats, float]:
    """Return the Newton direction of the variables F that keeps Σyα, and the slope of the dual along it.

    If the dual ascends along a direction without curvature, that direction is returned.
    """
    if len(F) < 2:
        return np.zeros(len(F)), 0.0
    y = problem.y[F]
    Z = np.linalg.svd(y[None])[2][1:].T  # directions that keep Σyα
    Q = Z.T @ (np.outer(y, y) * problem.K[np.ix_(F, F)]) @ Z
    rhs = Z.T @ g[F]
    values, vectors = np.linalg.eigh(Q)
    coordinates = vectors.T @ rhs
    is_flat = values <= 1e-12 * max(float(values[-1]), 1e-300)
    if np.abs(coordinates[is_flat]).max(initial=0.0) > 1e-9 * max(1.0, float(np.abs(coordinates).max())):
        coordinates = np.where(is_flat, coordinates, 0.0)
    else:
        coordinates = np.divide(coordinates, values, out=np.zeros_like(coordinates), where=~is_flat)
    direction = Z @ (vectors @ coordinates)
    return direction, float(direction @ g[F])


def _curvature(problem: SmallProblem, F: Indices, direction: Floats) -> float:
    """Return the curvature of the dual along a direction of the variables F."""
    beta = problem.y[F] * direction
    return float(beta @ (problem.K[np.ix_(F, F)] @ beta))


def _step_limit(alpha: Floats, direction: Floats, C: float) -> tuple[float, Indices]:
    """Return the largest step that stays in the box, and the variables that then reach a bound."""
    limits = np.full(len(alpha), np.inf)
    is_rising, is_falling = direction > 0, direction < 0
    limits[is_rising], limits[is_falling] = (
        (C - alpha[is_rising]) / direction[is_rising],
        -alpha[is_falling] / direction[is_falling],
    )
    least = float(limits.min(initial=math.inf))
    return least, np.flatnonzero(limits == least) if math.isfinite(least) else np.empty(0, dtype=np.intp)


def run_gradient_projection(run: Steps, tol: float, max_iter: int) -> None:
    """Run gradient projection: a gradient step to a face of the box, then a Newton step (Nocedal and Wright, 16.7)."""
    problem, alpha = run.problem, run.start
    g, s = problem.gradient(alpha), 1.0
    while len(run) < max_iter and problem.violation_and_b(alpha, g)[0] > tol:
        # 1. Projected gradient step.
        start = alpha
        direction = project_feasible(problem, alpha + s * g) - alpha
        slope, curvature = float(direction @ g), _curvature(problem, np.arange(problem.n), direction)
        if slope <= 0:
            break
        size = 1.0 if slope >= curvature else slope / curvature
        alpha = _clip_to_box(alpha + size * direction, problem.C)
        # 2. Newton step on the free variables.
        F = np.flatnonzero((alpha > 0) & (alpha < problem.C))
        newton_direction, slope = _newton_direction(problem, problem.gradient(alpha), F)
        limit, _ = _step_limit(alpha[F], newton_direction, problem.C)
        curvature = _curvature(problem, F, newton_direction)
        newton_length = slope / curvature if curvature > 1e-14 * slope else math.inf
        if slope > 0 and math.isfinite(min(limit, newton_length)):
            alpha[F] = _clip_to_box(alpha[F] + min(limit, newton_length) * newton_direction, problem.C)
        # 3. Length of the next gradient step, from the curvature along this one.
        new_g = problem.gradient(alpha)
        change, gradient_change = alpha - start, g - new_g
        length = float(change @ change)
        s = max(length / max(float(change @ gradient_change), 1e-10 * length, 1e-300), 1e-10)
        g = new_g
        run.record(alpha, np.flatnonzero(change).tolist(), float(size), bool(limit < newton_length))
    run.converged = problem.violation_and_b(alpha, g)[0] <= tol


def _clip_to_box(alpha: Floats, C: float) -> Floats:
    """Clip α to the box, and move it onto a bound that it misses by rounding only."""
    alpha = np.clip(alpha, 0.0, C)
    rounding = 1e-15 * (C if math.isfinite(C) else float(alpha.max(initial=0.0)))
    return np.where(alpha <= rounding, 0.0, np.where(alpha >= C - rounding, C, alpha))


def project_feasible(problem: SmallProblem, point: Floats) -> Floats:
    """Project a point onto the feasible set: clip(point − νy) with the ν for which Σyα = 0, found by bisection."""
    # For |ν| ≥ max |point| one class is 0, and the sign of the sum no longer changes.
    limit = float(np.abs(point).max())
    low, high = -limit, limit
    while low < (middle := 0.5 * (low + high)) < high:
        total = float(problem.y @ np.clip(point - middle * problem.y, 0.0, problem.C))
        low, high = (middle, high) if total > 0 else (low, middle)
    return np.asarray(np.clip(point - 0.5 * (low + high) * problem.y, 0.0, problem.C))


def run_perceptron(run: Steps, tol: float, max_iter: int) -> None:
    """Run the perceptron (Igel, section 4.1.1) until a whole pass makes no mistake; every mistake is a step."""
    problem = run.problem
    alpha, f = np.zeros(problem.n), np.zeros(problem.n)
    n_correct, i = 0, 0
    while n_correct < problem.n and len(run) < max_iter:
        if problem.y[i] * f[i] <= 0:
            alpha = alpha.copy()
            alpha[i] += 1
            f = f + problem.y[i] * problem.K[i]
            square = float((problem.y * alpha) @ f)
            # The s that maximises sΣα − ½s²‖w‖²; 0 if w = 0.
            best = alpha.sum() / square if square > 0 else 0.0
            run.record(alpha, (i,), 1.0, False, feasible=best * alpha)
            n_correct = 0
        else:
            n_correct += 1
        i = (i + 1) % problem.n
    run.converged = n_correct >= problem.n


def run_pegasos(run: Steps, tol: float, max_iter: int, seed: int) -> None:
    """Run Pegasos (Shalev-Shwartz) on samples drawn with replacement; `alpha` is that of the mean of w_t."""
    problem = run.problem
    n, lam = problem.n, 1.0 / (problem.C * problem.n)
    theta, total, f = np.zeros(n), np.zeros(n), np.zeros(n)  # coefficients of θ and of Σ θ/t, and values of θ
    for t, i in enumerate(draw_with_replacement(seed, np.arange(1.0, n + 1), 0, max_iter).tolist(), 1):
        total = total + theta / t
        violates = problem.y[i] * f[i] < lam * t
        if violates:
            theta = theta.copy()
            theta[i] += 1
            f = f + problem.y[i] * problem.K[i]
        alpha: Floats = total / (lam * t)
        run.record(alpha, (i,), 1.0 / (lam * t) if violates else 0.0, False, feasible=np.minimum(alpha, problem.C))
        if run.steps[-1].violation <= tol:
            break
    run.converged = bool(run.steps) and run.steps[-1].violation <= tol


METHODS = ("smo", "li", "decomposition", "active set", "gradient projection", "perceptron", "pegasos")
_BY_PAIRS, _BY_SAMPLES = ("smo", "li"), ("perceptron", "pegasos")
# Every step stores α and needs a product with K.
_MOST_SAMPLES = 1000


@shared_docs
def steps(
    X: Any,
    y: ArrayLike,
    *,
    kernel: KernelLike = "rbf",
    degree: int = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
    C: float = 1.0,
    method: str = "smo",
    rule: str = "second order",
    working_set_size: int = 10,
    working_set: WorkingSet | None = None,
    start: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    random_state: int = 0,
) -> Steps:
    """Solve the soft margin problem by a textbook algorithm, and record every step.

    Parameters
    ----------
    X : array, CSR matrix or list
        Samples, at most 1,000; the kernel matrix for kernel="precomputed".
    y : array
        Labels of two classes; the larger one is the positive class, as in `SVC`.
    %(kernel)s
    C : float, default=1.0
        Penalty for slack. inf is the hard margin, which "pegasos" cannot solve; the perceptron does not use C. If the
        samples are not separable, the hard margin does not exist, and the dual value grows until `max_iter`.
    method : {"smo", "li", "decomposition", "active set", "gradient projection", "perceptron", "pegasos"}, default="smo"
        Algorithm. "smo" is Igel's algorithm 4.2; "li" is Li's form of it, with errors E_i, α clipped to [L, H] and b
        from the pair; "decomposition" is Igel's algorithm 4.1 for working sets of any size; "active set" and "gradient
        projection" are general methods for quadratic programs (Li, section 2). Two algorithms take one sample at a time
        and have no bias: the "perceptron" (Igel, section 4.1.1), and "pegasos", stochastic gradient descent
        (Shalev-Shwartz), which approaches the optimum like 1/steps.
    rule : {"second order", "most violating", "maximum gain"}, default="second order"
        Rule by which "smo" and "li" choose the pair.
    working_set_size : int, default=10
        Size of the working set of "decomposition".
    working_set : callable, optional
        Function for "decomposition" from (α, gradient, number of the step) to the rows of the working set, instead of
        the worst violators. The run ends at `tol` or `max_iter`, since a poor choice may never gain anything.
    start : array of shape (n,), optional
        Feasible α to start from, 0 ≤ α ≤ C with Σy_iα_i = 0; by default 0. Not for "perceptron" and "pegasos".
    tol : float, default=1e-6
        Tolerance: the run ends when max y_ig_i over I_up exceeds min y_jg_j over I_down by at most this. The perceptron
        ends when it makes no more mistakes.
    max_iter : int, optional
        Largest number of steps; by default 100,000, and 30 per sample for "pegasos".
    random_state : int, default=0
        Seed of the samples that "pegasos" draws.

    Returns
    -------
    Steps
        Record of the run. `print` shows a table, `to_frame()` returns it, `plot()` shows the dual value and the
        violation after each step, and `film()` is an animation; `len` and iteration work. Attributes: ``method``,
        ``rule``, ``problem`` (with K, y and C), ``start`` (the first α), ``steps`` (the list), the final ``alpha``,
        ``b`` and ``dual``, and ``converged``, True if the violation fell to tol. Each step has ``chosen`` (the working
        set), ``size`` (the step length λ), ``clipped`` (True if the box constraints shortened it), ``gain`` (increase
        of the dual value), and ``dual``, ``violation``, ``b`` and ``alpha`` after the step.

    Examples
    --------
    >>> from mercer import steps
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [-1, -1, 1, 1]
    >>> print(steps(X, y, kernel="linear", C=10.0))
     step       chosen         size         gain           dual   violation           b
        1          2 1         0.5           0.5            0.5           0           0
    smo, second order: converged after 1 step
    """
    one_of("method", method, METHODS)
    one_of("rule", rule, RULES)
    integer("working_set_size", working_set_size, 2, "a single variable cannot move under the equality constraint")
    if max_iter is not None:
        integer("max_iter", max_iter, 1, "the number of steps")
    integer("random_state", random_state, 0, "the seed")
    positive("tol", tol)
    if working_set is not None and (method != "decomposition" or not callable(working_set)):
        raise ValueError(
            f"working_set={working_set!r} must be a function (alpha, gradient, step) -> rows, for "
            f"method='decomposition', not {method!r}"
        )
    signs = read_signs(y)
    bound = as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0).bind(X)
    K = np.asarray(bound(X), dtype=np.float64)
    if len(K) > _MOST_SAMPLES or K.shape != (len(signs), len(signs)):
        raise ValueError(
            f"steps takes at most {_MOST_SAMPLES} samples with a label each, but K has the shape {K.shape} and y "
            f"{len(signs)} labels; mercer.SVC solves larger problems"
        )
    bound_C = np.inf if method == "perceptron" or np.inf == C else positive("C", C)
    if method == "pegasos" and bound_C == np.inf:
        raise ValueError("C=inf is the hard margin, but the steps of pegasos have length C·n/t: use a finite C")
    problem = SmallProblem(K, signs, bound_C, bias=method not in _BY_SAMPLES)
    run = Steps(method, rule if method in _BY_PAIRS else "", problem)
    if start is not None:
        if method in _BY_SAMPLES:
            raise ValueError(f"start is for the methods that solve the dual, but method={method!r} starts from w = 0")
        run.start = problem.read_feasible("start", start)
    max_steps = max_iter or (30 * problem.n if method == "pegasos" else 100_000)
    algorithms: dict[str, Callable[[Steps, float, int], None]] = {
        "smo": run_smo,
        "li": run_li,
        "decomposition": partial(run_decomposition, size=working_set_size, choose=working_set),
        "active set": run_active_set,
        "gradient projection": run_gradient_projection,
        "perceptron": run_perceptron,
        "pegasos": partial(run_pegasos, seed=random_state),
    }
    algorithms[method](run, tol, max_steps)
    return run
