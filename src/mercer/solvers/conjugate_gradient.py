"""Conjugate gradients for several right-hand sides at once, and a preconditioner for I + S K S with a diagonal S.

The preconditioner is the same matrix with K replaced by its Nyström approximation F Fᵀ on m landmarks, inverted through
an m × m factor (Frangella, Tropp and Udell, "Randomized Nyström preconditioning").
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

# A run of conjugate gradients that leaves more than this share of the true gap has met the rounding of its products.
_PROGRESS = 0.1
# The share of the gap, which is a square, that a run can remove before rounding parts its residual from the true one.
_RESOLVED_GAP = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-16}
# Roundings of a kernel value: those of a short inner sum and of the ending (mercer.places.rounding).
_VALUE_ROUNDINGS = 32
# Landmarks of a preconditioner: more do not pay.
_MOST_LANDMARKS = 1000


def iteration_words(steps: int, share: float) -> str:
    """A line about a running solve; `share` is its residual over the target."""
    return f"{steps:>6,} iterations  residual {share:.2e} × target"


@dataclass(frozen=True, eq=False)
class Iterates:
    """The solution, its recursive residual (not the true one) and what it took."""

    X: Floats
    residual: Floats
    steps: int
    stop_reason: StopReason


def conjugate_gradient(
    apply: Apply, B: Floats, precondition: Apply, target: Floats, stop: Stop, steps: int = 0
) -> Iterates:
    """Solve A X = B from X = 0 for a positive definite A, until each column's ‖residual‖₂ is at most its target.

    The columns share nothing but the products: one that is done stays as it is. `steps` counts on from earlier calls.
    A direction along which rounding leaves no curvature ends with "stalled".
    """
    X, R = np.zeros(B.shape), B.copy()
    Z = precondition(R)
    P, rho = Z.copy(), np.sum(R * Z, axis=0)
    reason: StopReason = "converged"
    while True:
        norms = np.sqrt(np.sum(R * R, axis=0))
        open_ = norms > target
        if stop.report is not None:
            share = float(np.max(norms / np.maximum(target, np.finfo(float).tiny), initial=0.0))
            stop.tell(partial(iteration_words, steps, share), share)
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
        curvature = np.sum(P * AP, axis=0)
        moving = open_ & (curvature > 0) & (rho > 0) & np.isfinite(curvature)
        if not moving.any():
            reason = "stalled"
            break
        step = np.where(moving, rho / np.where(moving, curvature, 1.0), 0.0)
        X += step * P
        R -= step * AP
        Z = precondition(R)
        last, rho = rho, np.sum(R * Z, axis=0)
        P = Z + np.where(moving, rho / np.where(moving, last, 1.0), 0.0) * P
        steps += 1
    return Iterates(X, R, steps, reason)


@dataclass(frozen=True, eq=False)
class ResidualCheck:
    """A point seen from outside: its true residual, the duality gap that proves, and the gap that is wanted.

    Gaps are per output. `found` is whatever else was computed on the way.
    """

    residual: Floats
    gap: Floats
    goal: Floats
    found: Any = None


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
    """Conjugate gradients until the true residual proves the gap that is wanted: X, the last check, steps and reason.

    A run ends at what its own recursive residual promises. The next one starts from the true residual, and goes on
    with the next of the `precisions` once a run has lowered some gap too little.

    Parameters
    ----------
    shape : of X
    check : from X to what can be proven about it
    apply : from a precision and some columns to the matrix times these
    residual_norm : from a gap to the norm of the residual that proves it
    safety : float
        The share of the wanted gap that a run aims at.
    check_seconds : float
        What a check takes, so that there is time for the last one.
    """
    X, steps, last = np.zeros(shape), 0, np.full(shape[1], np.inf)
    left, runs = list(precisions), replace(stop, deadline=stop.deadline - check_seconds)
    reason: StopReason | None = None
    while True:
        seen = check(X)
        gap, goal = seen.gap, seen.goal
        if (gap <= goal).all():
            reason = "converged"
        elif reason is None and (((gap > goal) & (gap > _PROGRESS * last)).any() or not np.isfinite(gap).all()):
            if len(left) == 1:
                reason = "rounding floor"
            del left[0]
        if reason is not None:
            return X, seen, steps, reason
        last, dtype = gap, np.dtype(left[0])
        target = residual_norm(np.maximum(safety * goal, _RESOLVED_GAP[dtype] * gap))
        product = partial(apply, dtype)
        inner = conjugate_gradient(product, seen.residual, precondition, target, runs, steps)
        X, steps = X + inner.X, inner.steps
        if inner.stop_reason in ("max_iter", "max_time"):
            reason = inner.stop_reason


class LowRank:
    """(I + S F Fᵀ S)⁻¹ for a tall F and a diagonal S: what I + S K S looks like to m landmarks."""

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


def tall_factor(gram: Gram, n_threads: int, landmarks: int | None = None) -> Floats:
    """F with F Fᵀ ≈ K, exact up to a ridge at the size of rounding on landmarks drawn at random.

    By default these are as many as a quarter of the budget holds with F and a copy of it, but at most 1,000.
    """
    m = landmarks or min(_MOST_LANDMARKS, gram.budget // (4 * 16 * gram.n))
    J = np.sort(np.random.default_rng(0).choice(gram.n, max(1, min(m, gram.n)), replace=False))
    L = jittered_factor(gram.block(J, J), n_threads)[0]
    F = gram.block(np.arange(gram.n), J)
    for rows in row_blocks(gram.n, 64 * len(J)):
        F[rows] = solve_triangular(L, F[rows].T, lower=True, check_finite=False).T
    return F


def jittered_factor(K: Floats, n_threads: int = 1) -> tuple[Floats, float]:
    """The Cholesky factor of K + jitter·I (lower, zeros above), with the least jitter that rounding allows.

    That is what rounding of its values can do to K as a whole. With less, the factor of a nearly singular K is one of
    noise: it exists, but coefficients along its short directions, and what can be proven of them, are left to chance.
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
