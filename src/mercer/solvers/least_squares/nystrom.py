"""Regularised least squares on M landmarks by preconditioned conjugate gradients, certified by the true residual.

    minimise  ½ Σ w_i (y_i − f(x_i))² + ½ λ c'K_MM c     over f = Σ_j c_j k(z_j, ·) + b

With K_MM = LLᵀ and α = Lᵀc the normal equations are (H + λI)α = g, H = L⁻¹K_nMᵀWK_nML⁻ᵀ, with the bias eliminated by
centring; mercer.certificates.landmarks derives the duality gap from their residual.

The preconditioner is the same matrix with H summed over a random subset of the samples. (Falkon, by Rudi, Carratino and
Rosasco 2017, uses the M landmarks themselves: that is cheaper, but if λ is so small that all landmarks matter, it needs
five times the iterations.) If the samples are few, expensive to evaluate, or can be read only once, H is summed over
all of them, and one or two iterations are enough. L contains a jitter at the size of rounding, and so does the norm of
f that is penalised.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular

from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import PROOF
from mercer.certificates.landmarks import certify_landmarks, landmark_errors, landmark_gap
from mercer.places.factor import jittered_factor
from mercer.places.protocols import Cross, Totals
from mercer.problems.least_squares import RidgeProblem
from mercer.samples.arrays import Floats, gamma
from mercer.samples.chunks import Chunk
from mercer.solvers.conjugate_gradient import ResidualCheck, conjugate_gradient_to_gap
from mercer.solvers.deadline import enforce_deadline
from mercer.solvers.ridge_factor import RidgeFactor, growing, ridge_factor
from mercer.solvers.solution import Stop, StopReason

Method = Literal["conjugate gradients", "normal equations"]

# Samples per landmark in the preconditioner: the condition number is then about ((1 + 4^-½)/(1 − 4^-½))² = 9.
PRECONDITIONER_SAMPLES_PER_LANDMARK = 4


@dataclass(frozen=True, eq=False)
class LandmarkSolution:
    """Solution on landmarks: coefficients C (one column per output), biases b, and how they were computed."""

    C: Floats
    b: Floats
    steps: int
    stop_reason: StopReason
    method: Method
    jitter: float


def cheaper_method(cross: Cross, n: int) -> Method:
    """Return the cheaper method for n samples that can be read many times.

    With few samples per landmark, summing over all of them costs less than iterating. The limit is estimated from the
    cost of the parts, not tuned, and is higher for a kernel that has no fused form.
    """
    return "normal equations" if n <= (8 if cross.recomputes_cheaply else 200) * cross.m else "conjugate gradients"


def solve_nystrom(
    problem: RidgeProblem,
    cross: Cross,
    stop: Stop,
    start: object = None,
    *,
    sample: Chunk | None = None,
    single_pass: bool = False,
) -> tuple[LandmarkSolution, Certificate]:
    """Solve to a relative duality gap of at most `stop.tol` and `stop.gap_tol` in every output.

    `sample` holds the samples of the preconditioner, with weights scaled to represent all; without it H is summed over
    all samples. If `single_pass`, the samples can be read only once, and the certificate rests on the same sums.
    """
    lam, share = problem.lam, min(stop.tol, stop.gap_tol)
    check_seconds = 0.0
    with enforce_deadline(stop, "the first iteration had not begun. Raise max_time, or take fewer landmarks"):
        # 1. Factor K_MM, sum H, and factor the preconditioner.
        L, jitter = jittered_factor(cross.K_MM, stop.n_threads)
        G, sample_totals = cross.gather(sample)
        start_time, targets = time.monotonic(), sample_totals
        if sample is not None:
            targets = cross.residual(np.zeros((cross.m, sample_totals.residual.shape[1])), np.zeros(1))
        if not single_pass:  # one product here; a check and the certificate take two each
            check_seconds = 4 * (time.monotonic() - start_time)
        white = Whitened(problem, L, targets)
        preconditioner = _preconditioner(white.congruence(G, sample_totals), lam, stop.n_threads)
    n_outputs = int(targets.residual.shape[1])
    data: Cross | _Gathered = _Gathered(G, targets) if single_pass else cross
    # If the optimum is zero, for a constant target for example, a relative gap cannot be reached.
    floor = 0.5 * float(np.finfo(float).eps) * np.maximum(targets.squares, np.finfo(float).tiny)

    def check(alpha: Floats) -> ResidualCheck:
        C, b, totals = white.coefficients(alpha), np.zeros(n_outputs), targets
        if alpha.any():
            b = white.bias(alpha)
            totals = data.residual(C, b)
        R, primal = white.residual(totals, alpha)
        return ResidualCheck(R, landmark_gap(R, lam), np.maximum(share * primal, floor), (C, b, totals, primal))

    def apply(P: Floats) -> Floats:
        return white.operator(P, data.normal(white.coefficients(P)))

    # 2. Iterate until the true residual proves the gap.
    alpha, last, steps, reason = conjugate_gradient_to_gap(
        (cross.m, n_outputs),
        check,
        apply,
        preconditioner.solve,
        lambda gap: np.sqrt(2 * lam * gap),
        stop,
        safety=0.25,
        check_seconds=check_seconds,
    )
    # 3. Certify, with bounds on the rounding errors where the samples can be read again.
    C, b, residual_totals, primal = last.extra
    b = b + residual_totals.error_sum / residual_totals.weight if problem.bias else b
    method: Method = "normal equations" if sample is None else "conjugate gradients"
    claim = PROOF[cross.kernel.positive_definite]
    if single_pass:
        arithmetic = "float64, from sums over the samples whose rounding is not counted"
        certificate = certify_landmarks(last.gap, white.right, primal, b, lam, arithmetic, gap_measures=claim)
    else:
        residual_totals, errors = cross.proof(C, b)
        # With zeros for the sum of the errors, `residual` keeps b.
        totals_at_b = replace(residual_totals, bias_column=targets.bias_column, error_sum=np.zeros(n_outputs))
        R, primal = white.residual(totals_at_b, alpha)
        value_error = cross.value_error + gamma(cross.m + 2)
        bounds = landmark_errors(R, alpha, C, lam, (L, jitter), value_error, residual_totals, errors, problem.bias)
        certificate = certify_landmarks(bounds.gap, white.right, primal, b, lam, "float64", bounds.value, claim)
        if reason == "converged" and not (bounds.gap <= np.maximum(share * primal, floor)).all():
            reason = "rounding floor"
    return LandmarkSolution(C, b, steps, reason, method, jitter), certificate


class Whitened:
    """Coordinates α = Lᵀc, in which ‖f‖ is the Euclidean norm, with a bias eliminated by centring.

    `targets` holds the sums over the targets, that is the residual at c = 0.
    """

    def __init__(self, problem: RidgeProblem, L: Floats, targets: Totals) -> None:
        self._lam, self._bias, self._L, self._targets = problem.lam, problem.bias, L, targets
        self._bias_column = self._apply_inverse(targets.bias_column[:, None])[:, 0]
        # Norm of the right-hand side, per output.
        self.right = np.sqrt(np.sum(self._apply_inverse(targets.residual) ** 2, axis=0))

    def coefficients(self, alpha: Floats) -> Floats:
        """Return c = L⁻ᵀα."""
        return np.asarray(solve_triangular(self._L, alpha, lower=True, trans="T", check_finite=False))

    def bias(self, alpha: Floats) -> Floats:
        """Return the best bias of each output: the weighted mean of y − ⟨w, φ(x)⟩; 0 for a machine without bias."""
        if not self._bias:
            return np.zeros(alpha.shape[1])
        return np.asarray((self._targets.error_sum - self._bias_column @ alpha) / self._targets.weight)

    def congruence(self, G: Floats, totals: Totals) -> Floats:
        """Return L⁻¹GL⁻ᵀ; with a bias, G is first centred by `totals`, the totals of the same samples."""
        if self._bias:
            G = G - np.outer(totals.bias_column, totals.bias_column / totals.weight)
        H = self._apply_inverse(self._apply_inverse(G).T)
        return np.asarray(0.5 * (H + H.T))

    def operator(self, alpha: Floats, normal: Floats) -> Floats:
        """Return (H + λI)α, given K_nMᵀWK_nM c."""
        out = self._apply_inverse(normal) + self._lam * alpha
        if self._bias:
            out -= np.outer(self._bias_column, self._bias_column @ alpha / self._targets.weight)
        return out

    def residual(self, totals: Totals, alpha: Floats) -> tuple[Floats, Floats]:
        """Return the residual of the normal equations, and the primal value with the best bias."""
        R, squares = self._apply_inverse(totals.residual), totals.squares
        if self._bias:
            R = R - np.outer(self._bias_column, totals.error_sum / totals.weight)
            squares = squares - totals.error_sum**2 / totals.weight
        primal = 0.5 * np.maximum(squares, 0.0) + 0.5 * self._lam * np.sum(alpha * alpha, axis=0)
        return R - self._lam * alpha, primal

    def _apply_inverse(self, R: Floats) -> Floats:
        """Return L⁻¹R."""
        return np.asarray(solve_triangular(self._L, R, lower=True, check_finite=False))


class _Gathered:
    """Products for samples that were read once, computed from K_nMᵀWK_nM and the sums over the targets."""

    def __init__(self, G: Floats, targets: Totals) -> None:
        self._G, self._targets = G, targets

    def normal(self, C: Floats) -> Floats:
        return self._G @ C

    def residual(self, C: Floats, b: Floats) -> Totals:
        """Return the totals at C and b, computed from the sums over the samples that were read."""
        s = self._targets
        GC, f = self._G @ C, s.bias_column @ C  # f: Σ w f(x), without b
        squares = s.squares - 2 * np.sum(C * s.residual, axis=0) + np.sum(C * GC, axis=0)
        squares += -2 * b * (s.error_sum - f) + b**2 * s.weight
        residual, error_sum = s.residual - GC - np.outer(s.bias_column, b), s.error_sum - f - b * s.weight
        return Totals(residual, s.bias_column, s.weight, error_sum, squares, s.n)


def _preconditioner(H: Floats, lam: float, n_threads: int) -> RidgeFactor:
    """Factor H + λI, with a larger ridge than λ if rounding made H indefinite."""
    if not np.isfinite(H).all():
        raise FloatingPointError("the normal equations overflowed; scale the features, the weights or the kernel")
    rounding = float(np.finfo(float).eps) * float(np.abs(H.diagonal()).max())
    factor = ridge_factor(H, chain([lam], growing(max(10 * lam, rounding), 10, math.inf)), n_threads)
    assert factor is not None  # some ridge is large enough
    return factor
