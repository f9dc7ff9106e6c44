"""Conjugate gradients for several right-hand sides at once, and kernel ridge regression by it where K does not fit.

    (K + λW⁻¹) C = Y   ⇔   (I + S K S) Q = S Y,   C = S Q,   S = (W/λ)^½

The second form has no eigenvalue below 1 whatever the weights, and takes weights of zero. Its preconditioner is the
same matrix with K replaced by its Nyström approximation F Fᵀ on m landmarks, inverted through an m × m factor
(Frangella, Tropp and Udell, "Randomized Nyström preconditioning").
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from mercer import _core
from mercer.arrays import Floats, Indices
from mercer.gram.gram import Gram
from mercer.solution import Report, Stop, StopReason

Apply = Callable[[Floats], Floats]


def iteration_words(steps: int, share: float) -> str:
    """A line about a running solve whose residual is so many times its target."""
    return f"{steps:>6,} iterations  residual {share:.2e} × target"


@dataclass(frozen=True, eq=False)
class Iterates:
    """The solution, its recursive residual (not the true one) and what it took."""

    X: Floats
    residual: Floats
    steps: int
    stop_reason: StopReason


def conjugate_gradient(
    apply: Apply,
    B: Floats,
    precondition: Apply,
    target: Floats,
    stop: Stop,
    report: Report | None = None,
    steps: int = 0,
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
        if report is not None:
            share = float(np.max(norms / np.maximum(target, np.finfo(float).tiny), initial=0.0))
            report(partial(iteration_words, steps, share))
        if not open_.any():
            break
        if steps >= stop.max_iter or time.monotonic() >= stop.deadline:
            reason = "max_iter" if steps >= stop.max_iter else "max_time"
            break
        AP = apply(P)
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


class LowRank:
    """(I + S F Fᵀ S)⁻¹ for a tall F and a diagonal S: what I + S K S looks like to m landmarks."""

    def __init__(self, F: Floats, s: Floats, n_threads: int = 1) -> None:
        self._F, self._s, self._n_threads = F, s, n_threads
        scaled = s[:, None] * F
        self._factor = scaled.T @ scaled
        np.fill_diagonal(self._factor, self._factor.diagonal() + 1.0)
        if _core.cholesky(self._factor, n_threads) >= 0:
            raise FloatingPointError("the preconditioner is not positive definite: the kernel values are not finite")

    def __call__(self, R: Floats) -> Floats:
        inside = np.ascontiguousarray(self._F.T @ (self._s[:, None] * R))
        _core.cholesky_solve(self._factor, inside, self._n_threads)
        return np.asarray(R - self._s[:, None] * (self._F @ inside))


def tall_factor(gram: Gram, J: Indices) -> Floats:
    """F with F Fᵀ ≈ K, exact on the landmarks J up to a ridge at the size of rounding."""
    L = jittered_factor(gram.block(J, J), gram.n_threads)[0]
    F = gram.block(np.arange(gram.n), J).T
    return np.asarray(solve_triangular(L, F, lower=True, overwrite_b=True, check_finite=False).T)


def jittered_factor(K: Floats, n_threads: int = 1) -> tuple[Floats, float]:
    """The Cholesky factor of K + jitter·I (lower, zeros above), with the least jitter that rounding allows."""
    size = max(float(np.abs(K.diagonal()).max(initial=0.0)), np.finfo(float).tiny)
    if not np.isfinite(K).all():
        raise FloatingPointError("the kernel matrix of the landmarks overflowed; scale the features or the kernel")
    jitter = max(len(K), 10) * float(np.finfo(float).eps) * size
    while True:
        L = np.array(K, dtype=np.float64, order="C")
        np.fill_diagonal(L, L.diagonal() + jitter)
        if _core.cholesky(L, n_threads) < 0:
            return np.tril(L), jitter
        jitter *= 10
        if jitter > 1e-3 * size:
            raise ValueError(
                "the kernel matrix of the landmarks is not positive semi-definite: no ridge up to a thousandth of its "
                "diagonal makes it so. Use a positive definite kernel"
            )


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """C with (K + λW⁻¹)C = Y, the residual Y − (K + λW⁻¹)C recomputed in float64, and each output's duality gap.

    The gap is that of ½Σw_i(y_i − f(x_i))² + ½λ‖f‖², and equals ½Σ w_i residual_i².
    """

    C: Floats
    residual: Floats
    gap: Floats
    primal: Floats
    steps: int
    stop_reason: StopReason


def solve_ridge(
    gram: Gram,
    Y: Floats,
    lam: float,
    stop: Stop,
    weight: Floats | None = None,
    report: Report | None = None,
    landmarks: int | None = None,
    seed: int = 0,
) -> RidgeSolution:
    """Kernel ridge regression without a bias by preconditioned conjugate gradients; K is never stored.

    Parameters
    ----------
    gram : Gram of n samples, positive semi-definite
    Y : array of shape (n, outputs)
    lam : float above 0
    stop : Stop
        `tol` is the relative duality gap to reach in every output, as recomputed in float64.
    weight : array of shape (n,), optional
        Not negative; a sample of weight zero gets the coefficient zero.
    report : callable, optional
    landmarks : int, optional
        Size of the preconditioner; by default what a quarter of the memory budget holds, at most 1,000.
    seed : int
        For the choice of landmarks, which changes the speed and not the answer.
    """
    n = gram.n
    weight = np.ones(n) if weight is None else weight
    s = np.sqrt(weight / lam)
    m = min(n, landmarks or max(1, min(1000, gram.budget // (4 * 16 * n))))
    J = np.sort(np.random.default_rng(seed).choice(n, m, replace=False))
    precondition = LowRank(tall_factor(gram, J), s, gram.n_threads)
    Q = np.zeros(Y.shape)
    precisions, steps, last = list(gram.precisions), 0, np.full(Y.shape[1], np.inf)
    reason: StopReason | None = None
    while True:
        # In the scaled form the residual is S(Y − KC) − Q, and half λ times its square is the gap.
        C = s[:, None] * Q
        U = products(gram, C)
        R = s[:, None] * (Y - U) - Q
        gap = 0.5 * lam * np.sum(R * R, axis=0)
        primal = 0.5 * np.sum(weight[:, None] * (Y - U) ** 2, axis=0) + 0.5 * lam * np.sum(C * U, axis=0)
        goal = stop.tol * np.maximum(primal, np.finfo(float).tiny)
        if (gap <= goal).all():
            reason = "converged"
        elif reason is None and ((gap > goal) & (gap > 0.1 * last)).any():
            if len(precisions) == 1:
                reason = "rounding floor"
            del precisions[0]
        if reason is not None:
            used = np.where(weight > 0, weight, 1.0)[:, None]
            residual = np.where(weight[:, None] > 0, Y - U - lam * C / used, 0.0)
            return RidgeSolution(C, residual, gap, primal, steps, reason)
        last = gap
        dtype = precisions[0]
        target = np.sqrt(np.maximum(0.5 * goal, (1e-8 if dtype == np.float32 else 1e-16) * gap) * 2 / lam)

        def apply(P: Floats, dtype: Any = dtype) -> Floats:
            return np.asarray(P + s[:, None] * products(gram, s[:, None] * P, dtype))

        inner = conjugate_gradient(apply, R, precondition, target, stop, report, steps)
        Q, steps = Q + inner.X, inner.steps
        if inner.stop_reason in ("max_iter", "max_time"):
            reason = inner.stop_reason


def products(gram: Gram, C: Floats, dtype: Any = np.float64) -> Floats:
    """K C, column by column."""
    return np.column_stack([gram.product(np.ascontiguousarray(column), dtype=dtype) for column in C.T])
