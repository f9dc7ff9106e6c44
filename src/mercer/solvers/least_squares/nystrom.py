"""Regularized least squares on M landmarks: preconditioned conjugate gradients, certified by the true residual.

    minimise  ½ Σ w_i (y_i − f(x_i))² + ½ λ c'K_MM c     over f = Σ_j c_j k(z_j, ·) + b

With K_MM = LLᵀ and α = Lᵀc the normal equations are (H + λI)α = g, H = L⁻¹K_nMᵀWK_nML⁻ᵀ, and the residual r of these at
any α proves how far it is: the duality gap is ‖r‖²/(2λ). (The dual point is β = W(y − f)/λ; a bias is taken out by
centring.)

The preconditioner is the same matrix with H summed over some 4M of the samples, drawn at random. (Falkon, by Rudi,
Carratino and Rosasco, takes the M landmarks themselves: cheaper, but where λ is small enough for all landmarks to
matter it needs five times the iterations.) Where the samples are few, dear to evaluate, or can be read only once, H is
summed over all of them, and one or two iterations remain. L carries a jitter at the size of rounding, and so does the
norm of f that is penalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular

from mercer import _core
from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.data.chunks import Chunk
from mercer.gram.cross import Cross, Totals
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.conjugate_gradient import conjugate_gradient, jittered_factor

Method = Literal["conjugate gradients", "normal equations"]

# Samples per landmark that the preconditioner sees: the condition number is then about ((1 + 4^-½)/(1 − 4^-½))² = 9.
SAMPLE = 4
# With this many samples per landmark or fewer, summing over all of them costs less than iterating; and with a kernel
# that has no fused form, up to the second (estimated from the cost of the parts, not tuned).
_FEW = 8
_FEW_UNFUSED = 200

# A return to the iterations that lowers the true gap by less than this factor meets rounding.
_PROGRESS = 0.1


@dataclass(frozen=True, eq=False)
class NystromSolution:
    """Coefficients (one column per output), biases, the proof of each output, and how it was reached."""

    C: Floats
    b: Floats
    certificates: list[Certificate]
    steps: int
    stop_reason: StopReason
    method: Method
    jitter: float


def cheaper_method(cross: Cross, n: int) -> Method:
    """What costs less for n samples that can be read many times."""
    return "normal equations" if n <= (_FEW if cross.fused else _FEW_UNFUSED) * cross.m else "conjugate gradients"


def solve_nystrom(
    cross: Cross,
    K: Floats,
    lam: float,
    bias: bool,
    stop: Stop,
    sample: Chunk | None = None,
    once: bool = False,
    report: Report | None = None,
) -> NystromSolution:
    """The minimiser to a relative duality gap of `stop.tol` in every output.

    K is K_MM. `sample` holds what the preconditioner sees, its weights scaled to stand for all; without it H is summed
    over everything. `once` says that the samples can be read only once, so that the proof rests on those sums too.
    """
    L, jitter = jittered_factor(K, cross.n_threads)
    white = _White(L, lam, bias)
    method: Method = "normal equations" if sample is None else "conjugate gradients"
    G, seen = cross.gather(sample)
    start = seen if sample is None else cross.residual(np.zeros((cross.m, seen.residual.shape[1])), np.zeros(1))
    white.meet(start)
    factor = _definite(white.twice_inwards(G, seen), lam, cross.n_threads)

    def precondition(R: Floats) -> Floats:
        out = np.ascontiguousarray(R)
        out = out.copy() if out is R else out
        _core.cholesky_solve(factor, out, cross.n_threads)
        return out

    sums: Cross | _Sums = _Sums(G, start) if once else cross

    def apply(P: Floats) -> Floats:
        return white.operator(P, sums.normal(white.outwards(P)))

    outputs = int(start.residual.shape[1])
    alpha = np.zeros((cross.m, outputs))
    steps, last = 0, np.full(outputs, np.inf)
    reason: StopReason | None = None
    now, b = start, np.zeros(outputs)
    # Where the optimum is zero, a constant target for example, no share of it can be reached.
    floor = 0.5 * float(np.finfo(float).eps) * np.maximum(start.squares, np.finfo(float).tiny)
    while True:
        C = white.outwards(alpha)
        if steps or alpha.any():
            b = _bias(start, white, alpha, bias)
            now = sums.residual(C, b)
        R, primal = white.residual(now, alpha)
        gap = np.sum(R * R, axis=0) / (2 * lam)
        goal = np.maximum(stop.tol * primal, floor)
        if (gap <= goal).all():
            reason = "converged"
        elif reason is None and (((gap > goal) & (gap > _PROGRESS * last)).any() or not np.isfinite(gap).all()):
            reason = "rounding floor"
        if reason is not None:
            b = b + now.mean / now.weight if bias else b
            parts = _certificates(now, white, R, primal, gap, b)
            return NystromSolution(C, b, parts, steps, reason, method, jitter)
        last = gap
        target = np.sqrt(2 * lam * np.maximum(0.25 * goal, 1e-16 * gap))
        inner = conjugate_gradient(apply, R, precondition, target, stop, report, steps)
        alpha, steps = alpha + inner.X, inner.steps
        if inner.stop_reason in ("max_iter", "max_time"):
            reason = inner.stop_reason


class _White:
    """The coordinates α = Lᵀc, in which ‖f‖ is a plain length, with a bias centred away."""

    def __init__(self, L: Floats, lam: float, bias: bool) -> None:
        self._L, self._lam, self._bias = L, lam, bias
        self.pull = np.zeros(len(L))
        self._weight = 0.0
        self.size = np.zeros(0)

    def meet(self, start: Totals) -> None:
        """The sums over the targets themselves: what the bias pulls, and how large the right-hand side is."""
        self._weight = start.weight
        self.pull = self.inwards(start.pull[:, None])[:, 0]
        self.size = np.sqrt(np.sum(self.inwards(start.residual) ** 2, axis=0))

    def inwards(self, R: Floats) -> Floats:
        """L⁻¹R."""
        return np.asarray(solve_triangular(self._L, R, lower=True, check_finite=False))

    def twice_inwards(self, G: Floats, seen: Totals) -> Floats:
        """L⁻¹GL⁻ᵀ, with the bias of the samples that G saw centred away."""
        if self._bias:
            G = G - np.outer(seen.pull, seen.pull / seen.weight)
        H = self.inwards(self.inwards(G).T)
        return np.asarray(0.5 * (H + H.T))

    def outwards(self, alpha: Floats) -> Floats:
        """L⁻ᵀα, the coefficients."""
        return np.asarray(solve_triangular(self._L, alpha, lower=True, trans="T", check_finite=False))

    def operator(self, alpha: Floats, normal: Floats) -> Floats:
        """(H + λI)α from K_nMᵀWK_nM c."""
        out = self.inwards(normal) + self._lam * alpha
        if self._bias:
            out -= np.outer(self.pull, self.pull @ alpha / self._weight)
        return out

    def residual(self, now: Totals, alpha: Floats) -> tuple[Floats, Floats]:
        """The residual of the normal equations, and the primal value with the best bias for these coefficients."""
        R = self._centred(self.inwards(now.residual), now) - self._lam * alpha
        squares = now.squares - (now.mean**2 / now.weight if self._bias else 0.0)
        return R, 0.5 * np.maximum(squares, 0.0) + 0.5 * self._lam * np.sum(alpha * alpha, axis=0)

    def _centred(self, R: Floats, now: Totals) -> Floats:
        return R - np.outer(self.pull, now.mean / now.weight) if self._bias else R


class _Sums:
    """What remains of samples that were read once: the same products from K_nMᵀWK_nM and the targets' totals."""

    def __init__(self, G: Floats, start: Totals) -> None:
        self._G, self._start = G, start

    def normal(self, C: Floats) -> Floats:
        return self._G @ C

    def residual(self, C: Floats, b: Floats) -> Totals:
        s = self._start
        GC, f = self._G @ C, s.pull @ C  # f: Σ w f(x), without b
        squares = s.squares - 2 * np.sum(C * s.residual, axis=0) + np.sum(C * GC, axis=0)
        squares += -2 * b * (s.mean - f) + b**2 * s.weight
        return Totals(s.residual - GC - np.outer(s.pull, b), s.pull, s.weight, s.mean - f - b * s.weight, squares, s.n)


def _bias(start: Totals, white: _White, alpha: Floats, bias: bool) -> Floats:
    """The weighted mean of what f leaves, from the sums of the first pass."""
    if not bias:
        return np.zeros(alpha.shape[1])
    return np.asarray((start.mean - white.pull @ alpha) / start.weight)


def _definite(H: Floats, lam: float, n_threads: int) -> Floats:
    """The Cholesky factor of H + λI, with more than λ where rounding made H indefinite: it only preconditions."""
    ridge = lam
    if not np.isfinite(H).all():
        raise FloatingPointError("the normal equations overflowed; scale the features, the weights or the kernel")
    while True:
        factor = np.array(H, order="C")
        np.fill_diagonal(factor, factor.diagonal() + ridge)
        if _core.cholesky(factor, n_threads) < 0:
            return factor
        ridge = max(10 * ridge, float(np.finfo(float).eps) * float(np.abs(H.diagonal()).max()))


def _certificates(now: Totals, white: _White, R: Floats, primal: Floats, gap: Floats, b: Floats) -> list[Certificate]:
    size = np.sqrt(np.sum(R * R, axis=0))
    relative = size / np.maximum(white.size, np.finfo(float).tiny)
    return [
        Certificate(
            primal=float(primal[k]),
            dual=float(primal[k] - gap[k]),
            gap=float(gap[k]),
            violation=float(relative[k]),
            kkt={"normal equations": float(size[k])},
            proves="optimality",
            b=(float(b[k]),),
        )
        for k in range(len(gap))
    ]
