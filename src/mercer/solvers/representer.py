"""Any convex loss in representer form, by Newton's method with a line search.

With g = wℓ′ and D = diag(wℓ″) at the present f, ρ = g + 2λc is zero at the optimum (and Σg, with a bias). The change p
of f in a Newton step is p = (2λ/D)z with

    (K + 2λD⁻¹) z = δb − Kρ/2λ,     δc = −ρ/2λ − z,     2λ Σz = −Σg

and samples of no curvature drop out of it: their z is zero. The matrix is factorised where it fits. Where not,
(I + SKS)q = S(δb − Kρ/2λ), S = (D/2λ)^½, z = Sq is solved by preconditioned conjugate gradients: no eigenvalue of it is
below 1, whatever the curvatures. The gap ρ'Kρ/4λ (see the certificate) says when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, inner
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import ABOVE
from mercer.certificates.representer import certify_representer, scale_certificate
from mercer.gram.gram import Gram
from mercer.losses import Hinge
from mercer.problems.classification import soft_margin
from mercer.problems.representer import RepresenterProblem
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.conjugate_gradient import LowRank, conjugate_gradient, iteration_words, tall_factor
from mercer.solvers.deadline import ProofTime
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.ridge_factor import rounding_shares

_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class RepresenterSolution:
    """f = Σ_j c_j k(x_j, ·) + b, the Newton steps it took, and why they ended."""

    c: Floats
    b: float
    steps: int
    stop_reason: StopReason


def solve_representer(
    problem: RepresenterProblem,
    gram: Gram,
    stop: Stop,
    start: RepresenterSolution | None = None,
    report: Report | None = None,
) -> tuple[RepresenterSolution, Certificate]:
    """The minimiser to a relative duality gap of `stop.tol`, as the certificate computes it."""
    if isinstance(problem.loss, Hinge):
        return _by_dual(problem, gram, stop, start, report)
    n, lam = gram.n, problem.lam
    proof = ProofTime(gram, stop)
    c, b = (np.zeros(n), 0.0) if start is None else (start.c, start.b)
    u = np.zeros(n)
    # Where the optimum is zero no share of it can be reached.
    floor = _EPS * max(abs(problem.value(u)), _TINY)
    b = _best_bias(problem, u, b) if start is None else b
    steps = 0
    reason: StopReason | None = None
    try:
        with _core.TimeLimit(stop.seconds - 2 * proof(np.ones(n))):  # the certificate takes two products with K
            system = _System(gram, lam, stop.n_threads)
            if start is not None:
                u = system.product(c)
                b = _best_bias(problem, u, b)
            while reason is None:
                f = u + b
                rho = problem.gradient(f) + 2 * lam * c
                K_rho = system.product(rho)
                gap, primal = inner(rho, K_rho) / (4 * lam), problem.value(f) + lam * inner(c, u)
                goal = max(stop.tol * abs(primal), floor)
                if report is not None:
                    report(partial(iteration_words, steps, gap / goal), gap / goal)
                reason = "converged" if gap <= goal else stop.limit(steps)
                if reason is None:
                    dc, db, p = system.newton(problem, f, rho, K_rho, stop)
                    t = _line_search(problem, f, p + db, primal, inner(c, u), inner(dc, u), inner(dc, p))
                    if t == 0.0:
                        reason = "rounding floor"
                    else:
                        c, u = c + t * dc, u + t * p
                        b = _best_bias(problem, u, b + t * db)
                        steps += 1
    except _core.OutOfTime:  # within a step: c and b are those of the last one
        reason = "max_time"
    certificate = certify_representer(problem, gram.proof, c, b, stop.tol)
    if reason in ("converged", "rounding floor"):
        reached = certificate.kkt[ABOVE] <= max(stop.tol * abs(certificate.primal), floor)
        reason = "converged" if reached else "rounding floor"
    return RepresenterSolution(c, b, steps, reason), certificate


class _System:
    """K + 2λD⁻¹ for changing D: K is kept and factorised where there is room, and only multiplied with where not."""

    def __init__(self, gram: Gram, lam: float, n_threads: int) -> None:
        self._gram, self._lam = gram, lam
        # K, and the Newton matrix made of it while a third matrix is cut out of K: 24 bytes an entry.
        self._kept = gram.kept(n_threads) if 24 * gram.n**2 <= gram.budget else None
        self._F: Floats | None = None

    def product(self, v: Floats) -> Floats:
        return self._gram.product(v) if self._kept is None else self._kept.products(v[:, None])[:, 0]

    def newton(
        self, problem: RepresenterProblem, f: Floats, rho: Floats, K_rho: Floats, stop: Stop
    ) -> tuple[Floats, float, Floats]:
        """δc, δb and Kδc of the Newton step, or of one with a little curvature added where there is none."""
        lam = self._lam
        D = problem.curvature(f)
        # The bias needs curvature. Where Σwℓ″ is nothing beside Σw, every sample gets a share of its weight.
        if problem.bias and not D.sum() > 1e-12 * problem.weight.sum():
            D = np.maximum(D, 1e-3 * problem.weight)
        curved = D / (2 * lam)
        active = np.flatnonzero(curved > _TINY)
        Z = np.zeros((len(D), 2))
        if len(active):
            R = np.column_stack([-K_rho[active] / (2 * lam), np.ones(len(active))])
            Z[active] = self._solve(curved[active], active, R, stop)
        db = 0.0
        if problem.bias:
            free, held = 2 * lam * Z.sum(axis=0)
            db = float((-problem.gradient(f).sum() - free) / held) if held > 0 else 0.0
        dc = -rho / (2 * lam) - (Z[:, 0] + db * Z[:, 1])
        return dc, db, self.product(dc)

    def _solve(self, curved: Floats, active: Indices, R: Floats, stop: Stop) -> Floats:
        """Z with (K + diag(curved)⁻¹)Z = R on the active samples."""
        if self._kept is None:
            return self._by_gradients(np.sqrt(curved), active, R, stop)
        gram, some = self._gram, active if len(active) < self._gram.n else None
        # Where rounding broke a positive definite K, less curvature than there is still leads downhill.
        for share in rounding_shares(10, 1e-8) if gram.positive_definite == "yes" else (0.0,):
            factor = self._kept.factor(1.0 / curved + share * gram.diagonal[active], some)
            if factor is not None:
                return factor.solve(R)
        raise ValueError(
            "the kernel matrix is not positive semi-definite, and the loss has no minimum then; use a positive "
            "definite kernel, or, where this is one, scale the features: rounding broke it"
        )

    def _by_gradients(self, scale: Floats, active: Indices, R: Floats, stop: Stop) -> Floats:
        gram = self._gram
        R = scale[:, None] * R
        if self._F is None:
            self._F = tall_factor(gram, stop.n_threads)
        part = gram if len(active) == gram.n else gram.view(active)
        precondition = LowRank(self._F[active], scale, stop.n_threads)

        def apply(P: Floats) -> Floats:
            return np.asarray(P + scale[:, None] * part.products(scale[:, None] * P))

        # To three digits, since the next Newton step corrects what is left.
        target = 1e-3 * np.sqrt(np.sum(R * R, axis=0))
        limits = Stop(0.0, 200, deadline=stop.deadline)
        return scale[:, None] * conjugate_gradient(apply, R, precondition, target, limits).X


def _line_search(
    problem: RepresenterProblem, f: Floats, p: Floats, now: float, cc: float, cd: float, dd: float
) -> float:
    """The largest of 1, ½, ¼, … that lowers the objective enough, or 0; cc, cd and dd are the products with K."""
    lam = problem.lam
    slope = inner(problem.gradient(f), p) + 2 * lam * cd
    t = 1.0
    for _ in range(40):  # steps to 1e-12
        value = problem.value(f + t * p) + lam * (cc + 2 * t * cd + t * t * dd)
        # Armijo's rule: the objective falls by a share, small as usual, of what its slope promises.
        if value < now and value <= now + 1e-4 * t * slope:
            return t
        t *= 0.5
    return 0.0


def _best_bias(problem: RepresenterProblem, u: Floats, b: float) -> float:
    """The b that makes Σg zero at these u: the sum rises with b, so Newton steps inside a bracket, halved where not."""
    if not problem.bias:
        return 0.0
    low, high, width = -np.inf, np.inf, max(1.0, float(np.abs(problem.y).max()))
    for _ in range(200):
        g = problem.gradient(u + b)
        slope = float(g.sum())
        if abs(slope) <= _EPS * float(np.abs(g).sum()):  # which side the best b is on would be decided by rounding
            return b
        low, high = (b, high) if slope < 0 else (low, b)
        # The bracket's ends are neighbouring floats, relative to the larger of 1 and b.
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


def _by_dual(
    problem: RepresenterProblem, gram: Gram, stop: Stop, start: RepresenterSolution | None, report: Report | None
) -> tuple[RepresenterSolution, Certificate]:
    """The hinge's minimiser: without a second derivative it is out of Newton's reach.

        λ‖f‖² + Σ w_i max(0, 1 − y_if(x_i))  =  2λ · [½‖f‖² + Σ C_i max(0, 1 − y_if(x_i))],    C_i = w_i/2λ

    and what stands in brackets is the soft margin, whose signed duals β are the coefficients of f.
    """
    dual = soft_margin(problem.y, problem.weight / (2 * problem.lam))
    if not problem.bias:
        dual = dual.without_bias()
    # `stop` counts Newton steps and bounds the relative gap. The dual solver counts other steps and wants a violation
    # to reach as well: SVC's defaults for both.
    asked = replace(stop, tol=1e-3, max_iter=10_000_000, gap_tol=stop.tol)
    solution, proof = solve_certified(dual, gram, asked, None if start is None else start.c, report)
    b = proof.b[0] if problem.bias else 0.0
    certificate = scale_certificate(proof, 2 * problem.lam, b)
    return RepresenterSolution(solution.beta, b, solution.steps, solution.stop_reason), certificate
