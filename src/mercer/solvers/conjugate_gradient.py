"""Conjugate gradients for several right-hand sides at once, and a preconditioner for I + S K S with a diagonal S.

The preconditioner replaces K by its Nyström approximation F Fᵀ on m landmarks and inverts I + S F Fᵀ S through an m × m
factor (Frangella, Tropp and Udell, "Randomized Nyström preconditioning", 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from mercer import _core
from mercer.places.gram import Gram
from mercer.places.rounding import DOUBLE
from mercer.samples.arrays import Floats, Precision, add_gram, row_blocks
from mercer.solvers.ridge_factor import growing, ridge_factor
from mercer.solvers.solution import Stop, StopReason

Apply = Callable[[Floats], Floats]

# If a run leaves more than this share of the true gap, rounding in its products limits it.
_PROGRESS = 0.1
# Smallest factor by which one run can lower the gap (a squared residual) before its recursive residual and the true
# one differ by rounding.
_RESOLVED_GAP = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-16}
# Number of roundings in a kernel value: a short inner sum and the final function (mercer.places.rounding).
_VALUE_ROUNDINGS = 32
# Largest number of landmarks of a preconditioner; more of them do not save time.
_MOST_LANDMARKS = 1000


def iteration_line(steps: int, share: float) -> str:
    """Return the progress line of an iterative solve; `share` is the residual divided by its target."""
    return f"{steps:>6,} iterations  residual {share:.2e} × target"


@dataclass(frozen=True, eq=False)
class CGResult:
    """Result of conjugate gradients: X, the recursive residual (not the true one), the steps and the stop reason."""

    X: Floats
    residual: Floats
    steps: int
    stop_reason: StopReason


def conjugate_gradient(
    apply: Apply, B: Floats, precondition: Apply, target: Floats, stop: Stop, steps: int = 0
) -> CGResult:
    """Solve A X = B from X = 0 for a positive definite A, until each column's ‖residual‖₂ is at most its target.

    The columns are independent, but the products with A are computed for all at once; a column that has converged no
    longer changes. `steps` is the number of steps of earlier calls. The reason is "stalled" if no open column has a
    direction of positive curvature, which happens by rounding. (Saad, Iterative Methods for
    Sparse Linear Systems, Alg. 9.1.)
    """
    # 1. Start from X = 0: residual R = B, preconditioned residual Z, direction P.
    X, R = np.zeros(B.shape), B.copy()
    Z = precondition(R)
    P, rho = Z.copy(), np.sum(R * Z, axis=0)
    reason: StopReason = "converged"
    while True:
        # 2. Stop if every column has reached its target, or at a limit.
        norms = np.sqrt(np.sum(R * R, axis=0))
        open_ = norms > target
        if stop.report is not None:
            share = float(np.max(norms / np.maximum(target, np.finfo(float).tiny), initial=0.0))
            stop.report_progress(partial(iteration_line, steps, share), share)
        if not open_.any():
            break
        limit = stop.limit(steps)
        if limit is not None:
            reason = limit
            break
        try:
            with _core.TimeLimit(stop.seconds):
                AP = apply(P)
        except _core.OutOfTime:
            reason = "max_time"
            break
        # 3. Go to the minimum along P in the columns that are still open.
        curvature = np.sum(P * AP, axis=0)
        moving = open_ & (curvature > 0) & (rho > 0) & np.isfinite(curvature)
        if not moving.any():
            reason = "stalled"
            break
        step = np.where(moving, rho / np.where(moving, curvature, 1.0), 0.0)
        X += step * P
        R -= step * AP
        # 4. Make the next direction conjugate to the last.
        Z = precondition(R)
        last, rho = rho, np.sum(R * Z, axis=0)
        P = Z + np.where(moving, rho / np.where(moving, last, 1.0), 0.0) * P
        steps += 1
    return CGResult(X, R, steps, reason)


@dataclass(frozen=True, eq=False)
class ResidualCheck:
    """True residual of a point, with the duality gap that it proves and the gap to reach (both one per output).

    `extra` holds other results of the check that the caller needs.
    """

    residual: Floats
    gap: Floats
    goal: Floats
    extra: Any = None


def conjugate_gradient_to_gap(
    shape: tuple[int, int],
    check: Callable[[Floats], ResidualCheck],
    apply: Callable[[Any, Floats], Floats],
    precondition: Apply,
    residual_norm: Callable[[Floats], Floats],
    stop: Stop,
    *,
    precisions: tuple[Precision, ...] = (np.float64,),
    safety: float = 0.5,
    check_seconds: float = 0.0,
) -> tuple[Floats, ResidualCheck, int, StopReason]:
    """Run conjugate gradients until the true residual proves the gap to reach.

    A run ends when its own recursive residual is small enough. The next run starts from the true residual, in the next
    of the `precisions` if the last run lowered some gap too little. Returns X, the last check, the steps and the stop
    reason.

    Parameters
    ----------
    shape : tuple of int
        Shape of X.
    check : callable
        Function that returns the `ResidualCheck` of X.
    apply : callable
        Function of a precision and a matrix P that returns AP.
    precondition : callable
        Function that applies the preconditioner to a residual.
    residual_norm : callable
        Function from a gap to the norm of the residual that proves it.
    stop : Stop
        Limits of all runs together.
    precisions : tuple of dtypes
        Precisions of `apply`, from the coarsest to the finest.
    safety : float
        Share of the gap to reach that a run aims at.
    check_seconds : float
        Seconds of one check, kept back for the last one.
    """
    X, steps, last = np.zeros(shape), 0, np.full(shape[1], np.inf)
    left, runs = list(precisions), replace(stop, deadline=stop.deadline - check_seconds)
    reason: StopReason | None = None
    while True:
        # 1. Check the present point by its true residual.
        seen = check(X)
        gap, goal = seen.gap, seen.goal
        if (gap <= goal).all():
            reason = "converged"
        # 2. Take the next precision if the last run lowered a gap too little.
        elif reason is None and (((gap > goal) & (gap > _PROGRESS * last)).any() or not np.isfinite(gap).all()):
            if len(left) == 1:
                reason = "rounding floor"
            del left[0]
        if reason is not None:
            return X, seen, steps, reason
        # 3. Solve for the correction that removes the true residual.
        last, dtype = gap, np.dtype(left[0])
        target = residual_norm(np.maximum(safety * goal, _RESOLVED_GAP[dtype] * gap))
        product = partial(apply, dtype)
        inner = conjugate_gradient(product, seen.residual, precondition, target, runs, steps)
        X, steps = X + inner.X, inner.steps
        if inner.stop_reason in ("max_iter", "max_time"):
            reason = inner.stop_reason


class NystromPreconditioner:
    """Preconditioner (I + S F Fᵀ S)⁻¹ of I + S K S, with an n × m Nyström factor F and a diagonal S."""

    def __init__(self, F: Floats, s: Floats, n_threads: int = 1) -> None:
        self._F, self._s = F, s
        lower = np.zeros((F.shape[1], F.shape[1]))
        add_gram(lower, s[:, None] * F)
        factor = ridge_factor(lower, (1.0,), n_threads)
        if factor is None:
            raise FloatingPointError("the preconditioner is not positive definite: the kernel values are not finite")
        self._factor = factor

    def __call__(self, R: Floats) -> Floats:
        inside = self._factor.solve(self._F.T @ (self._s[:, None] * R))
        return np.asarray(R - self._s[:, None] * (self._F @ inside))


def nystrom_factor(gram: Gram, n_threads: int, landmarks: int | None = None) -> Floats:
    """Return F with F Fᵀ ≈ K, the Nyström approximation on landmarks drawn at random.

    On the landmarks F Fᵀ equals K up to a ridge at the size of rounding. The default number of landmarks is the one for
    which F and a copy of it take a quarter of the budget, but at most 1,000.
    """
    m = landmarks or min(_MOST_LANDMARKS, gram.budget // (4 * 16 * gram.n))
    J = np.sort(np.random.default_rng(0).choice(gram.n, max(1, min(m, gram.n)), replace=False))
    L = jittered_factor(gram.block(J, J), n_threads)[0]
    F = gram.block(np.arange(gram.n), J)
    for rows in row_blocks(gram.n, 64 * len(J)):
        F[rows] = solve_triangular(L, F[rows].T, lower=True, check_finite=False).T
    return F


def jittered_factor(K: Floats, n_threads: int = 1) -> tuple[Floats, float]:
    """Return the Cholesky factor of K + jitter·I (lower, zeros above) and the jitter.

    The smallest jitter tried is a bound on the rounding errors in K, as an operator norm. With less, a factor of a
    nearly singular K may exist, but rounding errors dominate its directions of small eigenvalues, and with them the
    coefficients there and the bounds that a certificate can prove.
    """
    size = max(float(np.abs(K.diagonal()).max(initial=0.0)), np.finfo(float).tiny)
    if not np.isfinite(K).all():
        raise FloatingPointError("the kernel matrix of the landmarks overflowed; scale the features or the kernel")
    least = max(len(K), 10) * _VALUE_ROUNDINGS * DOUBLE * size
    factor = ridge_factor(K, growing(least, 10, 1e-3 * size), n_threads)
    if factor is None:
        raise ValueError(
            "the kernel matrix of the landmarks is not positive semi-definite: no ridge up to a thousandth of its "
            "diagonal makes it so. Use a positive definite kernel"
        )
    return np.tril(factor.L), factor.ridge
