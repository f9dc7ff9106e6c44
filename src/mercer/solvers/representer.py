"""Any convex loss in representer form, by Newton's method with a line search, and its proof.

    minimise  Σ w_i ℓ(y_i, f(x_i)) + λ c'Kc     over f = Σ_j c_j k(x_j, ·) + b

With g = wℓ′ and D = diag(wℓ″) at the present f, ρ = g + 2λc is zero at the optimum (and Σg, with a bias). The change p
of f in a Newton step is found through q = Sp, S = (D/2λ)^½:

    (I + SKS) q = S(δb − Kρ/2λ),     δc = −ρ/2λ − Sq,     2λ Σ Sq = −Σg

a matrix with no eigenvalue below 1 whatever the curvatures; samples of no curvature drop out of it. It is factorised
where it fits and solved by preconditioned conjugate gradients where not. For every c, θ = −g is a feasible point of the
Fenchel dual (with a bias, if Σg = 0), and the Fenchel–Young inequality is tight there, so that whatever the loss

    gap = λ (c + g/2λ)'K(c + g/2λ) = ρ'Kρ/4λ
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, inner
from mercer.certificates.certificate import Certificate
from mercer.gram.gram import Gram
from mercer.losses import Loss
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.conjugate_gradient import LowRank, conjugate_gradient, iteration_words, products, tall_factor

# A step is halved until the objective falls by this share of what its slope promises.
_ARMIJO = 1e-4
# What may be left of Σg, as a share of Σ|g|.
_EVEN = 1e-3
_HALVINGS = 40
# Newton systems are solved to this share of their right-hand side by conjugate gradients; the next step sees the rest.
_FORCING = 1e-3
# Landmarks of the preconditioner.
_LANDMARKS = 1000


@dataclass(frozen=True, eq=False)
class RepresenterSolution:
    """Coefficients, bias, proof, and how it ended."""

    c: Floats
    b: float
    certificate: Certificate
    steps: int
    stop_reason: StopReason


@dataclass(frozen=True, eq=False)
class RepresenterProblem:
    """The arrays of one problem."""

    y: Floats
    weight: Floats
    loss: Loss
    lam: float
    bias: bool

    def value(self, f: Floats) -> float:
        return inner(self.weight, self.loss.value(self.y, f))

    def gradient(self, f: Floats) -> Floats:
        return np.asarray(self.weight * self.loss.gradient(self.y, f))

    def curvature(self, f: Floats) -> Floats:
        return np.asarray(self.weight * self.loss.curvature(self.y, f))


def solve_representer(
    problem: RepresenterProblem, gram: Gram, stop: Stop, report: Report | None = None
) -> RepresenterSolution:
    """The minimiser to a relative duality gap of `stop.tol`, as the certificate computes it."""
    lam, n = problem.lam, gram.n
    system = _System(gram, lam)
    c, u = np.zeros(n), np.zeros(n)
    # Where the optimum is zero no share of it can be reached.
    floor = float(np.finfo(float).eps) * max(abs(problem.value(u)), float(np.finfo(float).tiny))
    b = _best_bias(problem, u, 0.0)
    steps = 0
    while True:
        f = u + b
        rho = problem.gradient(f) + 2 * lam * c
        K_rho = system.product(rho)
        gap, primal = inner(rho, K_rho) / (4 * lam), problem.value(f) + lam * inner(c, u)
        goal = max(stop.tol * abs(primal), floor)
        if report is not None:
            report(partial(iteration_words, steps, gap / goal))
        reason = _reason(gap <= goal, steps, stop)
        step = None if reason else system.newton(problem, f, rho, K_rho, stop)
        if step is not None:
            dc, db, p = step
            t = _line_search(problem, f, p + db, primal, inner(c, u), inner(dc, u), inner(dc, p))
            if t == 0.0:
                reason = "rounding floor"
            else:
                c, u = c + t * dc, u + t * p
                b = _best_bias(problem, u, b + t * db)
                steps += 1
        if reason is not None:
            certificate = certify_representer(problem, gram, c, b)
            if reason in ("converged", "rounding floor"):
                # The gap counts on Σg = 0, which needs a b that float64 resolves.
                even = certificate.kkt["dual feasibility: equality"] <= _EVEN * np.abs(problem.gradient(u + b)).sum()
                reached = even and certificate.gap <= max(stop.tol * abs(certificate.primal), floor)
                reason = "converged" if reached else "rounding floor"
            return RepresenterSolution(c, b, certificate, steps, reason)


def certify_representer(problem: RepresenterProblem, gram: Gram, c: Floats, b: float) -> Certificate:
    """The proof of (c, b), everything recomputed in float64 from these alone."""
    u = gram.product(c)
    g = problem.gradient(u + b)
    rho = g + 2 * problem.lam * c
    primal = problem.value(u + b) + problem.lam * inner(c, u)
    gap = float(np.maximum(0.0, inner(rho, gram.product(rho)) / (4 * problem.lam)))  # max() would make 0 of NaN
    weakest = {"yes": "optimality", "no": "stationarity"}
    return Certificate(
        primal=primal,
        dual=primal - gap,
        gap=gap,
        violation=float(np.abs(rho).max(initial=0.0)),
        kkt={
            "stationarity": float(np.abs(rho).max(initial=0.0)),
            "dual feasibility: equality": abs(float(g.sum())) if problem.bias else 0.0,
        },
        proves=weakest.get(gram.positive_definite, "optimality if K is positive semi-definite"),  # type: ignore[arg-type]
        b=(b,),
    )


class _System:
    """(I + SKS) for changing S: K kept and factorised where there is room, met in products where not."""

    def __init__(self, gram: Gram, lam: float) -> None:
        self._gram, self._lam = gram, lam
        n = gram.n
        self._K = gram.block(np.arange(n), np.arange(n)) if 24 * n * n <= gram.budget else None
        self._F: Floats | None = None

    def product(self, v: Floats) -> Floats:
        return self._gram.product(v) if self._K is None else np.asarray(self._K @ v)

    def newton(
        self, problem: RepresenterProblem, f: Floats, rho: Floats, K_rho: Floats, stop: Stop
    ) -> tuple[Floats, float, Floats]:
        """δc, δb and Kδc of the Newton step, or of one with a little curvature added where there is none."""
        lam = self._lam
        D = problem.curvature(f)
        if problem.bias and not D.sum() > 1e-12 * problem.weight.sum():
            D = np.maximum(D, 1e-3 * problem.weight)
        s = np.sqrt(D / (2 * lam))
        active = np.flatnonzero(s > 0)
        R = np.column_stack([-s * K_rho / (2 * lam), s])
        Q = np.zeros(R.shape)
        if len(active):
            Q[active] = self._solve(s, active, R[active], stop)
        db = 0.0
        if problem.bias:
            free, held = 2 * lam * (s @ Q)
            db = float((-problem.gradient(f).sum() - free) / held) if held > 0 else 0.0
        q = Q[:, 0] + db * Q[:, 1]
        dc = -rho / (2 * lam) - s * q
        return dc, db, self.product(dc)

    def _solve(self, s: Floats, active: Any, R: Floats, stop: Stop) -> Floats:
        scale = s[active]
        n_threads = self._gram.n_threads
        if self._K is not None:
            A = self._K[np.ix_(active, active)] if len(active) < len(s) else self._K.copy()
            A *= scale[:, None]
            A *= scale
            np.fill_diagonal(A, A.diagonal() + 1.0)
            if _core.cholesky(A, n_threads) >= 0:
                raise ValueError(
                    "the kernel matrix is not positive semi-definite, and the loss has no minimum then; use a positive "
                    "definite kernel, or, where this is one, scale the features: rounding broke it"
                )
            out = np.ascontiguousarray(R)
            out = out.copy() if out is R else out
            _core.cholesky_solve(A, out, n_threads)
            return out
        gram = self._gram
        if self._F is None:
            m = max(1, min(gram.n, _LANDMARKS, gram.budget // (4 * 16 * gram.n)))
            self._F = tall_factor(gram, np.sort(np.random.default_rng(0).choice(gram.n, m, replace=False)))
        part = gram if len(active) == gram.n else gram.view(active)
        precondition = LowRank(self._F[active], scale, n_threads)

        def apply(P: Floats) -> Floats:
            return np.asarray(P + scale[:, None] * products(part, scale[:, None] * P))

        target = _FORCING * np.sqrt(np.sum(R * R, axis=0))
        return conjugate_gradient(apply, R, precondition, target, Stop(0.0, 200, deadline=stop.deadline)).X


def _reason(done: bool, steps: int, stop: Stop) -> StopReason | None:
    if done:
        return "converged"
    if steps >= stop.max_iter:
        return "max_iter"
    return "max_time" if time.monotonic() >= stop.deadline else None


def _line_search(
    problem: RepresenterProblem, f: Floats, p: Floats, now: float, cc: float, cd: float, dd: float
) -> float:
    """The largest of 1, ½, ¼, … that lowers the objective enough, or 0; cc, cd and dd are the products with K."""
    lam = problem.lam
    slope = inner(problem.gradient(f), p) + 2 * lam * cd
    t = 1.0
    for _ in range(_HALVINGS):
        value = problem.value(f + t * p) + lam * (cc + 2 * t * cd + t * t * dd)
        if value < now and value <= now + _ARMIJO * t * slope:
            return t
        t *= 0.5
    return 0.0


def _best_bias(problem: RepresenterProblem, u: Floats, b: float) -> float:
    """The b that makes Σg zero at these u: the sum rises with b, so Newton steps inside a bracket, halved where not."""
    if not problem.bias:
        return 0.0
    low, high, width = -np.inf, np.inf, max(1.0, float(np.abs(problem.y).max()))
    for _ in range(200):
        slope = float(problem.gradient(u + b).sum())
        if slope == 0.0:
            return b
        low, high = (b, high) if slope < 0 else (low, b)
        if np.isfinite(high - low) and high - low <= 4e-16 * max(1.0, abs(low), abs(high)):
            return b
        curvature = float(problem.curvature(u + b).sum())
        new = b - slope / curvature if curvature > 0 else -np.sign(slope) * np.inf
        if not low < new < high or not np.isfinite(new):
            new = 0.5 * (low + high)
            if not np.isfinite(new):  # not bracketed yet
                new, width = b - np.sign(slope) * width, 2 * width
        if new == b:
            return b
        b = float(new)
    return b
