"""Textbook algorithms on a small two-class problem, step by step, and `steps`, which runs them.

Pair steps, with Igel's three rules for the pair, and Li's form of the same step:

    λ = min{b_i − y_iα_i, y_jα_j − a_j, (y_ig_i − y_jg_j)/(K_ii + K_jj − 2K_ij)}       α ← α + λu_ij

Decomposition with any working set, the active set method and gradient projection move many variables at once. Two look
at one sample at a time, without a bias:

    perceptron    if y_i f(x_i) ≤ 0:  α_i ← α_i + 1
    Pegasos       if y_i f_t(x_i) < 1:  θ ← θ + y_iφ(x_i), with w_t = θ/(λt) and λ = 1/(Cn); the mean of w_t comes out

Neither α is feasible for the dual: the perceptron's has no scale, and Pegasos' may exceed C. The recorded dual value is
that of the best multiple of the one, and of the other cut at C, and so a bound from below on the machine's optimum.
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
from mercer.solvers.pegasos.iterates import draw

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


def run_smo(run: Steps, tol: float, max_iter: int) -> None:
    """Sequential minimal optimisation (Igel, algorithm 4.2); line numbers are the notes'."""
    problem = run.problem
    K, y = problem.K, problem.y
    alpha, g = np.zeros(problem.n), np.ones(problem.n)  # 1
    while len(run) < max_iter and problem.violation_and_b(alpha, g)[0] > tol:  # 2, 8
        i, j = chosen_pair(problem, alpha, g, run.rule)  # 3
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
        run.record(alpha, (i, j), float(size), bool(size < newton))
    run.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol * (1 + 1e-3)


def _onto(value: float, at_end: bool, upwards: bool, C: float) -> float:
    """A step that uses all of its room ends on the bound exactly."""
    return value if not at_end else C if upwards else 0.0


def run_li(run: Steps, tol: float, max_iter: int) -> None:
    """The pair step by errors E_i = f(x_i) − y_i, clipped to [L, H], with b from the pair (Li, section 6)."""
    problem = run.problem
    K, y, C = problem.K, problem.y, problem.C
    alpha, b = np.zeros(problem.n), 0.0
    E = -y.copy()
    while len(run) < max_iter:
        g = 1.0 - y * (E + y - b)
        if problem.violation_and_b(alpha, g)[0] <= tol:
            break
        two, one = chosen_pair(problem, alpha, g, run.rule)  # α_2 grows along y_2, α_1 pays for it
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
        run.record(alpha, (two, one), float(size), bool(wish != second), float(b))
    run.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol * (1 + 1e-3)


def _near_ends(value: float, C: float, moved: float) -> float:
    """α_1 follows from α_2 by a difference, whose rounding would leave it beside its bound."""
    scale = C if math.isfinite(C) else moved
    if abs(value) <= 4e-16 * scale:
        return 0.0
    return C if abs(value - C) <= 4e-16 * scale else value


# Chooses the samples of a step from α, the gradient and the number of the step.
WorkingSet = Callable[[Floats, Floats, int], ArrayLike]


def run_decomposition(run: Steps, tol: float, max_iter: int, size: int, choose: WorkingSet | None = None) -> None:
    """Igel's algorithm 4.1: the subproblem on a working set, or on the worst violators of each side, solved exactly."""
    problem = run.problem
    alpha = np.zeros(problem.n)
    while len(run) < max_iter:
        g = problem.gradient(alpha)
        violation, _ = problem.violation_and_b(alpha, g)
        if violation <= tol:
            break
        B = _worst(problem, alpha, g, size) if choose is None else _chosen(choose, alpha, g, len(run))
        # On B the problem is one of the same kind with the gradient that the others leave: K_BB and g_B + Q_BBα_B.
        new, clipped = _restricted(problem, alpha, B, 0.1 * tol)
        if np.array_equal(new, alpha) and choose is None:
            break
        alpha = new  # which a set of one's own may leave as it is: the next one may not
        run.record(alpha, B.tolist(), 1.0, clipped)
    run.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol


def _chosen(choose: WorkingSet, alpha: Floats, g: Floats, step: int) -> Indices:
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
            f"working_set must give different rows between 0 and {n - 1}, at least one; for step {step} it gave {B!r}"
        )
    return B.astype(np.intp)


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


def run_active_set(run: Steps, tol: float, max_iter: int) -> None:
    """Newton steps on the free variables up to the first bound; the worst violator is freed when they are solved."""
    problem = run.problem
    y, C = problem.y, problem.C
    alpha, free = np.zeros(problem.n), np.zeros(problem.n, dtype=bool)
    while len(run) < max_iter:
        g = problem.gradient(alpha)
        violation, _ = problem.violation_and_b(alpha, g)
        if violation <= tol:
            break
        F = np.flatnonzero(free)
        direction, slope = _newton(problem, g, F)
        if slope <= 1e-12 * max(1.0, abs(problem.dual(alpha))) * tol:
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
        run.record(alpha, F.tolist(), float(step), bool(step < whole))
    run.converged = problem.violation_and_b(alpha, problem.gradient(alpha))[0] <= tol


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


def run_gradient_projection(run: Steps, tol: float, max_iter: int) -> None:
    """Along the projected gradient to a face of the box, then a Newton step on that face (Nocedal and Wright, 16.7)."""
    problem = run.problem
    alpha = np.zeros(problem.n)
    g, s = problem.gradient(alpha), 1.0
    while len(run) < max_iter and problem.violation_and_b(alpha, g)[0] > tol:
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
        run.record(alpha, np.flatnonzero(moved).tolist(), float(size), bool(reach < whole))
    run.converged = problem.violation_and_b(alpha, g)[0] <= tol


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
    while low < (middle := 0.5 * (low + high)) < high:
        total = float(problem.y @ np.clip(wish - middle * problem.y, 0.0, problem.C))
        low, high = (middle, high) if total > 0 else (low, middle)
    return np.asarray(np.clip(wish - 0.5 * (low + high) * problem.y, 0.0, problem.C))


def run_perceptron(run: Steps, tol: float, max_iter: int) -> None:
    """Samples in turn until a whole pass makes no mistake; a step is a mistake."""
    problem = run.problem
    alpha, f = np.zeros(problem.n), np.zeros(problem.n)
    quiet, i = 0, 0
    while quiet < problem.n and len(run) < max_iter:
        if problem.y[i] * f[i] <= 0:
            alpha = alpha.copy()
            alpha[i] += 1
            f = f + problem.y[i] * problem.K[i]
            square = float((problem.y * alpha) @ f)
            # The best s for sΣα − ½s²‖w‖²; a w of length 0 allows any, and separates nothing.
            best = alpha.sum() / square if square > 0 else 0.0
            run.record(alpha, (i,), 1.0, False, feasible=best * alpha)
            quiet = 0
        else:
            quiet += 1
        i = (i + 1) % problem.n
    run.converged = quiet >= problem.n


def run_pegasos(run: Steps, tol: float, max_iter: int, seed: int) -> None:
    """Steps on samples that are drawn with replacement, as the notes print them; `alpha` is that of the mean of w_t."""
    problem = run.problem
    n, lam = problem.n, 1.0 / (problem.C * problem.n)
    theta, total, f = np.zeros(n), np.zeros(n), np.zeros(n)  # θ and Σ θ/t by their α, and θ at the samples
    for t, i in enumerate(draw(seed, np.arange(1.0, n + 1), 0, max_iter).tolist(), 1):
        total = total + theta / t
        hit = problem.y[i] * f[i] < lam * t
        if hit:
            theta = theta.copy()
            theta[i] += 1
            f = f + problem.y[i] * problem.K[i]
        alpha: Floats = total / (lam * t)
        run.record(alpha, (i,), 1.0 / (lam * t) if hit else 0.0, False, feasible=np.minimum(alpha, problem.C))
        if run.steps[-1].violation <= tol:
            break
    run.converged = bool(run.steps) and run.steps[-1].violation <= tol


METHODS = ("smo", "li", "decomposition", "active set", "gradient projection", "perceptron", "pegasos")
_BY_PAIRS, _BY_SAMPLES = ("smo", "li"), ("perceptron", "pegasos")
# Every step is kept with its α, and costs a product with K.
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
    tol: float = 1e-6,
    max_iter: int | None = None,
    random_state: int = 0,
) -> Steps:
    """Solve the soft margin as a textbook does, and record every step.

    Parameters
    ----------
    X : array, CSR matrix or list
        At most 1,000 samples; the matrix of kernel values for kernel="precomputed".
    y : array
        Their labels, of two classes; the larger one is the positive one, as in `SVC`.
    %(kernel)s
    C : float, default=1.0
        The price of slack; inf is the hard margin, which "pegasos" cannot do. The perceptron has none. Samples that
        cannot be separated have no hard margin: the dual value then grows until `max_iter`.
    method : {"smo", "li", "decomposition", "active set", "gradient projection", "perceptron", "pegasos"}, default="smo"
        Igel's algorithm 4.2; Li's form of it, by errors E_i, clipped to [L, H] and with b from the pair; Igel's
        algorithm 4.1 for working sets of any size; two general methods for quadratic programs (Li, section 2); and two
        that take one sample at a time and have no bias: the perceptron (Igel, section 4.1.1), and stochastic gradients
        (Shalev-Shwartz), which approach the optimum like 1/steps.
    rule : {"second order", "most violating", "maximum gain"}, default="second order"
        How "smo" and "li" choose the pair.
    working_set_size : int, default=10
        Of "decomposition".
    working_set : callable, optional
        Of "decomposition": (α, gradient, number of the step) → the rows of the working set, in place of the worst
        violators. The run ends at `tol` or `max_iter`, since a poor choice may gain nothing for ever.
    tol : float, default=1e-6
        It ends when max y_ig_i over I_up exceeds min y_jg_j over I_down by no more. The perceptron ends when it makes
        no more mistakes.
    max_iter : int, optional
        By default 100,000, and for "pegasos" 30 for each sample.
    random_state : int, default=0
        What "pegasos" draws by.

    Returns
    -------
    Steps
        The steps in order. Print it for a table; `to_frame()` is one too, `plot()` shows the dual value and the
        violation after each step, and `film()` is an animation. `len(found)` and `for step in found` work. Attributes:
        ``method``, ``rule``, ``problem`` (with K, y and C), ``steps`` (the list), where it ended (``alpha``, ``b``,
        ``dual``), and ``converged``, True if the violation fell to tol. Each step has ``chosen`` (the working set),
        ``size`` (the step length λ), ``clipped`` (True if the box cut it short), ``gain`` (growth of the dual value),
        and afterwards ``dual``, ``violation``, ``b`` and ``alpha``.

    Examples
    --------
    >>> from mercer import steps
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [-1, -1, 1, 1]
    >>> print(steps(X, y, kernel="linear", C=10.0))
     step       chosen         size         gain           dual   violation           b
        1          2 1         0.5           0.5            0.5           0           0
    smo, second order: converged after 1 steps
    """
    one_of("method", method, METHODS)
    one_of("rule", rule, RULES)
    integer("working_set_size", working_set_size, 2, "an equality leaves no room for fewer variables")
    if max_iter is not None:
        integer("max_iter", max_iter, 1, "the number of steps")
    integer("random_state", random_state, 0, "it chooses what is drawn")
    positive("tol", tol)
    if working_set is not None and (method != "decomposition" or not callable(working_set)):
        raise ValueError(
            f"working_set={working_set!r} must be a function (alpha, gradient, step) -> rows, and goes with "
            f"method='decomposition', not {method!r}"
        )
    signs = read_signs(y)
    bound = as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0).bind(X)
    K = np.asarray(bound(X), dtype=np.float64)
    if len(K) > _MOST_SAMPLES or K.shape != (len(signs), len(signs)):
        raise ValueError(
            f"steps is for at most {_MOST_SAMPLES} samples with a label each, but K has the shape {K.shape} and y "
            f"{len(signs)} labels; mercer.SVC solves larger problems"
        )
    price = np.inf if method == "perceptron" or np.inf == C else positive("C", C)
    if method == "pegasos" and price == np.inf:
        raise ValueError("C=inf is the hard margin, but the steps of pegasos are C·n/t long: give it a finite C")
    problem = SmallProblem(K, signs, price, bias=method not in _BY_SAMPLES)
    found = Steps(method, rule if method in _BY_PAIRS else "", problem)
    most = max_iter or (30 * problem.n if method == "pegasos" else 100_000)
    algorithms: dict[str, Callable[[Steps, float, int], None]] = {
        "smo": run_smo,
        "li": run_li,
        "decomposition": partial(run_decomposition, size=working_set_size, choose=working_set),
        "active set": run_active_set,
        "gradient projection": run_gradient_projection,
        "perceptron": run_perceptron,
        "pegasos": partial(run_pegasos, seed=random_state),
    }
    algorithms[method](found, tol, most)
    return found
