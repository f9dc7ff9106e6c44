"""Conjugate gradients for several right-hand sides at once, and a preconditioner for I + S K S with a diagonal S.

The preconditioner replaces K by its Nyström approximation on m landmarks, whose inverse needs an m × m factor alone
(Frangella, Tropp and Udell, "Randomized Nyström preconditioning", 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from mercer import _core
from mercer.places.factor import LANDMARKS_OVERFLOWED, jittered_factor
from mercer.places.gram import Gram
from mercer.samples.arrays import Flags, Floats, Indices, add_gram, row_blocks
from mercer.solvers.ridge_factor import RidgeFactor, ridge_factor
from mercer.solvers.solution import Stop, StopReason

Apply = Callable[[Floats], Floats]
# A function that returns a product AP in a coarse precision, and an estimate of the 2-norm of the error in each column.
CoarseApply = Callable[[Floats], tuple[Floats, Floats]]

# If a run leaves more than this share of the true gap, rounding in its products limits it.
_PROGRESS_SHARE = 0.1
# Smallest factor by which one run can lower the gap (a squared residual) before its recursive residual and the true
# one differ by rounding.
_RESOLVED_GAP = 1e-16
# Largest error of a coarse product, times the length of its step, as a share of the residual to reach. Errors of the
# first steps add up, and each is a little smaller than the last.
_HARMLESS_SHARE = 0.05
# A run whose first coarse product is too inexact for its target aims at a residual larger by this factor than the one
# for which that product would be harmless, and the next run continues from the true residual. It does so if this lowers
# the residual to this share: a precise product takes four times as long, and a new run some steps more.
_RUN_MARGIN, _WORTHWHILE_SHARE = 2.0, 0.01
# Landmarks of the pilot that shows how fast the eigenvalues of K fall, and bytes of the budget for each of the m²
# numbers of a preconditioner: three matrices, and room for a strip of K.
_PILOT_LANDMARKS, _BYTES_PER_NUMBER = 1000, 32
# Cost of a preconditioner in products with K of n² values each. A value takes as long as this number of floating-point
# operations in float64 matrix products (40 to 60 on 2 to 16 cores and on a GPU); values of blocks, and the products of
# each step with K_nJ and its transpose in float64, take longer than values in float32 by these factors.
_OPERATIONS_PER_VALUE, _BLOCK_VALUES, _APPLIED_VALUES = 50.0, 12.0, 4.0
# Natural logarithm of the factor by which a residual has to fall, and the number of landmarks in the smallest plan.
_LOG_REDUCTION, _FEWEST_LANDMARKS = 12.0, 64
# Norm of S K S from which on the rounding of products with K_nJ that are computed again decides what the preconditioner
# leaves of a residual, and bytes of the budget for each number of F, which is stored then: F and a strip of it.
_LARGEST_UNSTORED, _BYTES_OF_F = 1e9, 16


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
    apply: Apply,
    B: Floats,
    precondition: Apply,
    target: Floats,
    stop: Stop,
    steps: int = 0,
    coarse: CoarseApply | None = None,
) -> CGResult:
    """Solve A X = B from X = 0 for a positive definite A, until each column's ‖residual‖₂ is at most its target.

    The columns are independent, but the products with A are computed for all at once; a column that has converged no
    longer changes. `steps` is the number of steps of earlier calls. A step uses the `coarse` product if its error moves
    no residual by more than a small share of its target: that is so sooner or later, since steps get shorter. If the
    first coarse product is too inexact, the run may aim at a larger residual that allows it, and its reason is
    "converged" there. The reason is "stalled" if no open column has a direction of positive curvature, which happens by
    rounding. (Saad, Iterative Methods for Sparse Linear Systems, Alg. 9.1; Simoncini and Szyld, "Theory of inexact
    Krylov subspace methods", 2003.)
    """
    # 1. Start from X = 0: residual R = B, preconditioned residual Z, direction P.
    X, R = np.zeros(B.shape), B.copy()
    Z = precondition(R)
    P, rho = Z.copy(), column_products(R, Z)
    first_steps, next_coarse, target = steps, steps, target.copy()
    reason: StopReason = "converged"
    while True:
        # 2. Stop if every column has reached its target, or at a limit.
        norms = np.sqrt(column_products(R, R))
        is_open = norms > target
        if stop.report is not None:
            share = float(np.max(norms / np.maximum(target, np.finfo(float).tiny), initial=0.0))
            stop.report_progress(partial(iteration_line, steps, share), share)
        if not is_open.any():
            break
        limit = stop.limit(steps)
        if limit is not None:
            reason = limit
            break
        # 3. Go to the minimum along P in the columns that are still open.
        try:
            with _core.TimeLimit(stop.seconds):
                AP, error = (apply(P), None) if coarse is None or steps < next_coarse else coarse(P)
                step = _step_lengths(P, AP, rho, is_open)
                if error is not None:
                    least_target = (step * error / _HARMLESS_SHARE)[is_open]
                    if (
                        steps == first_steps
                        and (_RUN_MARGIN * least_target <= _WORTHWHILE_SHARE * norms[is_open]).all()
                    ):
                        target[is_open] = np.maximum(target[is_open], _RUN_MARGIN * least_target)
                    excess = float(np.max(least_target / target[is_open]))
                    # An error of half the curvature may make a step short or 0, and would then look harmless.
                    curvature_error = step * error * np.sqrt(column_products(P, P))
                    hides = curvature_error >= np.where(step > 0, 0.5 * rho, 0.0)
                    if hides[is_open].any() or not excess <= 1:
                        # Steps shrink, hardly ever to less than half of the last: the next few are too long as well.
                        next_coarse = steps + 1 + (int(np.log2(excess)) if 1 < excess < np.inf else 0)
                        AP = apply(P)
                        step = _step_lengths(P, AP, rho, is_open)
                is_moving = step > 0
                if not is_moving.any():
                    reason = "stalled"
                    break
                X += step * P
                R -= step * AP
                steps += 1
                Z = precondition(R)
        except _core.OutOfTime:
            reason = "max_time"
            break
        # 4. Make the next direction conjugate to the last.
        last, rho = rho, column_products(R, Z)
        P = Z + np.where(is_moving, rho / np.where(is_moving, last, 1.0), 0.0) * P
    return CGResult(X, R, steps, reason)


def _step_lengths(P: Floats, AP: Floats, rho: Floats, is_open: Flags) -> Floats:
    """Return the step to the minimum along each column of P; 0 if it is closed or has no positive curvature.

    `rho` is the inner product of the residual with the preconditioned residual.
    """
    curvature = column_products(P, AP)
    is_moving = is_open & (curvature > 0) & (rho > 0) & np.isfinite(curvature)
    return np.where(is_moving, rho / np.where(is_moving, curvature, 1.0), 0.0)


def column_products(A: Floats, B: Floats) -> Floats:
    """Return the inner product of each column of A with the same column of B, by pairwise summation."""
    if A.shape[1] == 1:  # a single column is contiguous, and its sum many times as fast
        return np.array([np.sum(A[:, 0] * B[:, 0])])
    return np.asarray(np.sum(A * B, axis=0))


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
    apply: Apply,
    precondition: Apply,
    residual_norm: Callable[[Floats], Floats],
    stop: Stop,
    *,
    coarse: CoarseApply | None = None,
    safety: float = 0.5,
    check_seconds: float = 0.0,
) -> tuple[Floats, ResidualCheck, int, StopReason]:
    """Run conjugate gradients until the true residual proves the gap to reach.

    A run ends when its own recursive residual is small enough. The next run starts from the true residual, without the
    `coarse` products if the last run lowered some gap too little. Returns X, the last check, the steps and the stop
    reason.

    Parameters
    ----------
    shape : tuple of int
        Shape of X.
    check : callable
        Function that returns the `ResidualCheck` of X.
    apply : callable
        Function that multiplies a matrix of columns by A.
    precondition : callable
        Function that applies the preconditioner to a residual.
    residual_norm : callable
        Function from a gap to the norm of the residual that proves it.
    stop : Stop
        Limits of all runs together.
    coarse : callable, optional
        Faster products with A, and their errors.
    safety : float
        Share of the gap to reach that a run aims at.
    check_seconds : float
        Seconds of one check, kept back for the last one.
    """
    X, steps, last = np.zeros(shape), 0, np.full(shape[1], np.inf)
    runs = replace(stop, deadline=stop.deadline - check_seconds)
    reason: StopReason | None = None
    while True:
        # 1. Check the present point by its true residual.
        present_check = check(X)
        gap, goal = present_check.gap, present_check.goal
        if (gap <= goal).all():
            reason = "converged"
        # 2. Continue with precise products alone if the last run lowered a gap too little.
        elif reason is None and (((gap > goal) & (gap > _PROGRESS_SHARE * last)).any() or not np.isfinite(gap).all()):
            if coarse is None:
                reason = "rounding floor"
            coarse = None
        if reason is not None:
            return X, present_check, steps, reason
        # 3. Solve for the correction that removes the true residual.
        last = gap
        target = residual_norm(np.maximum(safety * goal, _RESOLVED_GAP * gap))
        inner = conjugate_gradient(apply, present_check.residual, precondition, target, runs, steps, coarse)
        X, steps = X + inner.X, inner.steps
        if inner.stop_reason in ("max_iter", "max_time"):
            reason = inner.stop_reason


class NystromPreconditioner:
    """Preconditioner (I + S K̃ S)⁻¹ of I + S K S, with K̃ = K_nJ K_JJ⁻¹ K_nJᵀ for landmarks J and a diagonal S.

    By Woodbury's identity it is I − S K_nJ (K_JJ + K_nJᵀ S² K_nJ)⁻¹ K_nJᵀ S. K_nJ is not stored: its products are small
    parts of one with K.

    If S² is so large that the rounding of these products would decide the result, F = S K_nJ L⁻ᵀ with K_JJ = LLᵀ is
    stored where the budget allows it, and the preconditioner is I − F(I + FᵀF)⁻¹Fᵀ. It is then positive definite
    whatever rounding does to F.
    """

    def __init__(self, gram: Gram, s: Floats, landmarks: Indices, n_threads: int = 1) -> None:
        self._gram, self._s, self._landmarks = gram, s[:, None], landmarks
        largest = float(np.max(s * s * gram.diagonal, initial=0.0)) * gram.n  # at least the norm of S K S
        self._F: Floats | None = None
        if largest > _LARGEST_UNSTORED and _BYTES_OF_F * gram.n * len(landmarks) <= gram.budget:
            self._F = _whitened_rows(gram, s, landmarks, n_threads)
            self._factor: Any = _factor_of_rows(self._F, n_threads)
        else:
            self._factor = gram.landmark_factor(landmarks, s * s, n_threads)

    def __call__(self, R: Floats) -> Floats:
        if self._F is not None:
            return np.asarray(R - self._F @ self._factor.solve(self._F.T @ R))
        inside = np.zeros(R.shape)
        inside[self._landmarks] = self._factor.solve(self._gram.products(self._s * R, self._landmarks))
        return np.asarray(R - self._s * self._gram.products(inside))


def _whitened_rows(gram: Gram, s: Floats, landmarks: Indices, n_threads: int) -> Floats:
    """Return S K_nJ L⁻ᵀ, where LLᵀ is K_JJ with a small jitter."""
    L, _ = jittered_factor(gram.block(landmarks, landmarks), n_threads)
    F, used = np.zeros((gram.n, len(landmarks))), np.flatnonzero(s)
    for block in row_blocks(len(used), 16 * len(landmarks)):
        rows = used[block]
        F[rows] = (
            s[rows, None]
            * scipy.linalg.solve_triangular(L, gram.block(rows, landmarks).T, lower=True, check_finite=False).T
        )
    return F


def _factor_of_rows(F: Floats, n_threads: int) -> RidgeFactor:
    """Return the Cholesky factor of I + FᵀF."""
    lower = np.zeros((F.shape[1], F.shape[1]))
    add_gram(lower, F)
    factor = ridge_factor(lower, (1.0,), n_threads)
    if factor is None:
        raise FloatingPointError(LANDMARKS_OVERFLOWED)
    return factor


def draw_landmarks(gram: Gram, s: Floats, count: int | None = None, n_threads: int = 1) -> Indices:
    """Draw landmarks for the preconditioner of I + S K S from the samples whose s is not 0, in ascending order.

    By default their number is the one for which the preconditioner and the steps with it are expected to cost least.
    """
    order = np.random.default_rng(0).permutation(np.flatnonzero(s))
    if count is None:
        max_landmarks = min(len(order), int(np.sqrt(gram.budget / _BYTES_PER_NUMBER)))
        pilot = order[: min(_PILOT_LANDMARKS, max_landmarks)]
        variances = residual_variances(gram.block(pilot, pilot), n_threads)
        count = landmark_count(variances, gram.n, float(np.mean(s * s)), max_landmarks)
    return np.sort(order[: max(1, count)])


def residual_variances(K: Floats, n_threads: int = 1) -> Floats:
    """Return for each sample the part of k(x, x) that the samples before it do not explain.

    These are Schur complements, the squares of a Cholesky factor's diagonal. If the samples are in random order, entry
    i estimates tr(K − K̃)/n for i landmarks, and the mean of neighbouring entries estimates it better.
    """
    return np.asarray(np.diagonal(jittered_factor(K, n_threads)[0]) ** 2)


def landmark_count(variances: Floats, n: int, weight: float, max_landmarks: int) -> int:
    """Return the number of landmarks with the least expected cost of preconditioner and steps; at most `max_landmarks`.

    `variances` are those of `residual_variances` for a pilot, and `weight` is the mean of S². If tr(K − K̃)/n falls as
    m⁻ᵖ, the largest eigenvalue of K − K̃ is about p/m of its trace. The preconditioned matrix then has the condition
    number κ = 1 + weight · tr(K − K̃) · p/m, and conjugate gradients take about ½√κ·ln(2/ε) steps.
    """
    pilot = len(variances)
    if pilot < 4 * _FEWEST_LANDMARKS:
        return min(max_landmarks, pilot)
    late_mean, early_mean = float(np.mean(variances[pilot // 2 :])), float(np.mean(variances[pilot // 4 : pilot // 2]))
    power = float(np.clip(np.log2(early_mean / late_mean), 0.05, 4.0))
    m = np.unique(np.minimum(max_landmarks, np.geomspace(_FEWEST_LANDMARKS, max(_FEWEST_LANDMARKS, n), 60)).astype(int))
    trace = n * late_mean * (m / (0.75 * pilot)) ** -power
    steps = 0.5 * np.sqrt(1.0 + weight * trace * power / m) * _LOG_REDUCTION
    values = (_BLOCK_VALUES + _APPLIED_VALUES * steps) * m / n
    operations = (2.0 * m**2 / n + m**3 / n**2) / _OPERATIONS_PER_VALUE
    return int(m[np.argmin(steps + values + operations)])
