"""Regularised fits with any convex loss, in the form of the representer theorem, by Newton's method with a line search.

With g = wℓ′ and D = diag(wℓ″) at the present f, ρ = g + 2λc is zero at the optimum, and with a bias so is Σg. The
change p of f in a Newton step is p = (2λ/D)z with

    (K + 2λD⁻¹) z = δb − Kρ/2λ,     δc = −ρ/2λ − z,     2λ Σz = −Σg

where samples without curvature drop out: their z is zero. The matrix is factored if it fits into memory. Otherwise
(I + SKS)q = S(δb − Kρ/2λ), S = (D/2λ)^½, z = Sq is solved by preconditioned conjugate gradients; its matrix has no
eigenvalue below 1, whatever the curvatures. The steps end when the duality gap ρ'Kρ/4λ (see the certificate) is small.

Another penalty Ω is solved as a squared norm with another coefficient μ. If 2μ‖f‖ = λΩ′(‖f‖), the minimiser for μ‖f‖²
is that for λΩ(‖f‖), since both have the same gradient there. As μ grows, ‖f‖ falls and 2μ‖f‖ = ‖G‖ rises, so for a
convex Ω the equation has one root, found by the Illinois method.

A loss of Af has the curvature H = A'DA, which is not diagonal. Its Newton step solves (HK + 2λ)δc = −ρ, which is not
symmetric and is solved by an LU factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import ABOVE
from mercer.certificates.representer import certify_representer, scale_certificate
from mercer.places.gram import Gram
from mercer.problems.classification import soft_margin
from mercer.problems.losses import Hinge
from mercer.problems.penalties import PENALTIES
from mercer.problems.representer import RepresenterProblem
from mercer.runtime.long_calls import call_interruptibly
from mercer.samples.arrays import Floats, Indices, inner
from mercer.solvers.conjugate_gradient import NystromPreconditioner, conjugate_gradient, draw_landmarks, iteration_line
from mercer.solvers.deadline import ProofTime
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.early_stopping import SmoothedRule
from mercer.solvers.ridge_factor import rounding_shares
from mercer.solvers.solution import Stop, StopReason

# Largest number of coefficients μ tried for another penalty (the Illinois method takes about ten), and largest |log μ|.
_MOST_COEFFICIENTS, _MOST_LOG = 60, 600.0
_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class RepresenterSolution:
    """Solution f = Σ_j c_j k(x_j, ·) + b, the number of Newton steps, and the stop reason."""

    c: Floats
    b: float
    steps: int
    stop_reason: StopReason
    validation_losses: Floats | None = None


def solve_representer(
    problem: RepresenterProblem,
    gram: Gram,
    stop: Stop,
    start: RepresenterSolution | None = None,
    *,
    watch: ValidationMonitor | None = None,
) -> tuple[RepresenterSolution, Certificate]:
    """Solve to a relative duality gap of `stop.tol`, unless `watch` stops early, and certify the solution."""
    if isinstance(problem.loss, Hinge):
        return _by_dual(problem, gram, stop, start)
    n = gram.n
    proof = ProofTime(gram, stop)
    at = _Point(np.zeros(n), np.zeros(n)) if start is None else _Point(start.c, np.zeros(n), start.b)
    b = _best_bias(problem, np.zeros(n), at.b)
    # If the optimum is zero, as for equal targets, a relative gap cannot be reached: b has a few roundings.
    floor = max(
        float(problem.curvature(problem.apply_combine(np.full(n, b))).sum()) * (16 * _EPS * b) * (16 * _EPS * b),
        _EPS * _TINY,
    )
    at.b = b if start is None else at.b
    try:
        with _core.TimeLimit(stop.seconds - 2 * proof(np.ones(n))):  # the certificate takes two products with K
            system = _NewtonSystem(gram, stop)
            if start is not None:
                at.u = system.product(at.c)
                at.b = _best_bias(problem, at.u, at.b)
            if problem.squared:
                reason = _descend(problem, system, at, stop, floor, watch)
            else:
                reason = _penalised(problem, system, at, stop, floor)
    except _core.OutOfTime:  # c and b are those before the interrupted step
        reason = "max_time"
    if watch is not None and watch.settle(at) and reason not in ("max_iter", "max_time"):
        reason = "early stopping"
    certificate = certify_representer(problem, gram.proof, at.c, at.b, stop.tol)
    if reason in ("converged", "rounding floor"):
        reached = certificate.kkt[ABOVE] <= max(stop.tol * abs(certificate.primal), floor)
        reason = "converged" if reached else "rounding floor"
    return RepresenterSolution(at.c, at.b, at.steps, reason, None if watch is None else watch.losses), certificate


@dataclass(eq=False)
class _Point:
    """Present point of the steps: c, u = Kc and b."""

    c: Floats
    u: Floats
    b: float = 0.0
    steps: int = 0

    @property
    def norm(self) -> float:
        """Norm ‖f‖."""
        return float(np.sqrt(np.maximum(0.0, inner(self.c, self.u))))


class ValidationMonitor:
    """Early stopping by the loss of held-out samples after every step (Igel's rule, `SmoothedRule`).

    The held-out samples have weight 0 in the problem, so their coefficients stay 0; `weight` holds their weights in the
    validation loss.
    """

    def __init__(self, held_out: Indices, weight: Floats, window: int, rise: float) -> None:
        self._rows, self._weight, self._rule = held_out, weight / weight.sum(), SmoothedRule(window, rise)
        self._best: tuple[Floats, float] | None = None

    @property
    def losses(self) -> Floats:
        """Validation loss after every step."""
        return np.array(self._rule.errors)

    def should_stop(self, problem: RepresenterProblem, at: _Point) -> bool:
        """Record the validation loss, and return whether training should stop."""
        held = replace(problem, y=problem.y[self._rows], weight=self._weight)
        stops, least = self._rule.take(held.value(at.u[self._rows] + at.b))
        if least:
            self._best = at.c, at.b
        return stops

    def settle(self, at: _Point) -> bool:
        """Go back to the step with the smallest loss; return whether that is an earlier one."""
        ended = at.c
        at.c, at.b = self._best or (at.c, at.b)
        return at.c is not ended


def _descend(
    problem: RepresenterProblem,
    system: _NewtonSystem,
    at: _Point,
    stop: Stop,
    floor: float,
    watch: ValidationMonitor | None = None,
) -> StopReason:
    """Take Newton steps for the squared norm; return the stop reason."""
    lam = problem.lam
    while True:
        # 1. Compute the gradient ρ and the gap; stop if it is small enough, or at a limit.
        t, rho, K_rho, gap = _slopes(problem, system, at)
        primal = problem.value(t) + lam * inner(at.c, at.u)
        goal = max(stop.tol * abs(primal), floor)
        stop.report_progress(partial(iteration_line, at.steps, gap / goal), gap / goal)
        if watch is not None and watch.should_stop(problem, at):
            return "early stopping"
        reason: StopReason | None = "converged" if gap <= goal else stop.limit(at.steps)
        if reason is not None:
            return reason
        # 2. Solve for the Newton step, and take it with a line search.
        dc, db, p = system.newton(problem, t, rho, K_rho)
        size = _line_search(
            problem, t, problem.apply_combine(p + db), primal, inner(at.c, at.u), inner(dc, at.u), inner(dc, p)
        )
        if size == 0.0:
            return "rounding floor"
        # 3. Move c and u, and minimise over the bias alone.
        at.c, at.u = at.c + size * dc, at.u + size * p
        at.b = _best_bias(problem, at.u, at.b + size * db)
        at.steps += 1


def _slopes(problem: RepresenterProblem, system: _NewtonSystem, at: _Point) -> tuple[Floats, Floats, Floats, float]:
    """Return Af, ρ, Kρ and the gap ρ'Kρ/4λ."""
    t = problem.apply_combine(at.u + at.b)
    rho = problem.apply_transpose(problem.gradient(t)) + 2 * problem.lam * at.c
    K_rho = system.product(rho)
    return t, rho, K_rho, inner(rho, K_rho) / (4 * problem.lam)


def _polish(problem: RepresenterProblem, system: _NewtonSystem, at: _Point) -> None:
    """Take one more full Newton step if the gap falls; its gain is too small for the line search to resolve."""
    t, rho, K_rho, gap = _slopes(problem, system, at)
    dc, db, p = system.newton(problem, t, rho, K_rho)
    new = _Point(at.c + dc, at.u + p, _best_bias(problem, at.u + p, at.b + db))
    if _slopes(problem, system, new)[3] < gap:
        at.c, at.u, at.b = new.c, new.u, new.b


def _penalised(problem: RepresenterProblem, system: _NewtonSystem, at: _Point, stop: Stop, floor: float) -> StopReason:
    """Find the coefficient μ of the squared norm whose minimiser has 2μ‖f‖ = λΩ′(‖f‖), and that minimiser."""
    lam, penalty = problem.lam, problem.penalty
    # 1. Check whether f = 0 is the minimiser.
    zero = np.zeros_like(at.c)
    b = _best_bias(problem, zero, at.b)
    g = problem.apply_transpose(problem.gradient(problem.apply_combine(zero + b)))
    if inner(g, system.product(g)) <= (lam * penalty.derivative(0.0)) ** 2:
        at.c, at.u, at.b = zero, zero, b
        return "converged"
    # 2. Solve for one μ after another. ‖f‖ has half the digits of the minimum, so the inner tolerance is squared.
    inside = replace(stop, tol=max(stop.tol**2, _EPS))
    ends: dict[bool, list[float]] = {}  # last μ that was too small, and too large: log μ, and the log of the ratio
    x, step, last = float(np.log(lam)), 1.0, None
    for _ in range(_MOST_COEFFICIENTS):
        squared = replace(problem, lam=float(np.exp(x)), penalty=PENALTIES["squared_norm"])
        reason = _descend(squared, system, at, inside, floor)
        if reason in ("max_iter", "max_time"):
            return reason
        _polish(squared, system, at)
        norm, steep = at.norm, lam * penalty.derivative(at.norm)
        primal = problem.value(problem.apply_combine(at.u + at.b)) + lam * penalty.value(norm)
        apart = 2 * squared.lam * norm - steep
        # The gap as in the certificate: if 2μ‖f‖ is too large, times the largest norm that the optimum can have.
        reach = norm + max(0.0, primal - lam * penalty.value(norm)) / steep if apart > 0 else norm
        if np.isfinite(primal) and reach * abs(apart) <= max(0.1 * stop.tol * abs(primal), floor):
            return "converged"
        if norm == 0:
            break
        # 3. Choose the next μ: by steps of growing size until there is a bracket, then by the Illinois method.
        off, large = float(np.log(2 * squared.lam * norm) - np.log(steep)), apart > 0
        ends[large] = [x, off]
        if len(ends) < 2:
            new, step = x - np.sign(off) * step, 2 * step
        else:
            if large is last:
                ends[not large][1] *= 0.5  # Illinois: halve the weight of the end that stays
            (x0, off0), (x1, off1) = ends[False], ends[True]
            share = -off0 / (off1 - off0) if off0 > -np.inf else 0.5  # bisection if the penalty overflows
            new = x0 + share * (x1 - x0)
        if new == x or abs(new) > _MOST_LOG:
            break
        x, last = new, large
    return "rounding floor"


class _NewtonSystem:
    """Newton systems K + 2λD⁻¹ for changing D: by a factor if K fits into memory, otherwise by products with K."""

    def __init__(self, gram: Gram, stop: Stop) -> None:
        self._gram, self._stop = gram, stop
        # K, the Newton matrix, and a submatrix of K: 24 bytes per entry.
        self._kept = gram.float64_matrix(stop.n_threads) if 24 * gram.n**2 <= gram.budget else None

    def product(self, v: Floats) -> Floats:
        """Return Kv."""
        return self._gram.product(v) if self._kept is None else self._kept.products(v[:, None])[:, 0]

    def newton(
        self, problem: RepresenterProblem, f: Floats, rho: Floats, K_rho: Floats
    ) -> tuple[Floats, float, Floats]:
        """Return δc, δb and Kδc of the Newton step, with a little curvature added if there is none for the bias."""
        lam = problem.lam
        D = problem.curvature(f)
        if problem.combine is not None:
            return self._combined(problem.combine, D, rho, lam)
        # The bias needs curvature: if Σwℓ″ is tiny relative to Σw, every sample gets a share of its weight.
        if problem.bias and not D.sum() > 1e-12 * problem.weight.sum():
            D = np.maximum(D, 1e-3 * problem.weight)
        curved = D / (2 * lam)
        active = np.flatnonzero(curved > _TINY)
        Z = np.zeros((len(D), 2))
        if len(active):
            R = np.column_stack([-K_rho[active] / (2 * lam), np.ones(len(active))])
            Z[active] = self._solve(curved[active], active, R)
        db = 0.0
        if problem.bias:
            free, held = 2 * lam * Z.sum(axis=0)
            db = float((-problem.gradient(f).sum() - free) / held) if held > 0 else 0.0
        dc = -rho / (2 * lam) - (Z[:, 0] + db * Z[:, 1])
        return dc, db, self.product(dc)

    def _combined(self, A: Any, D: Floats, rho: Floats, lam: float) -> tuple[Floats, float, Floats]:
        """Return the Newton step for a loss of Af."""
        gram = self._gram
        if self._kept is None:
            raise ValueError(
                f"a loss that is not a sum over samples needs three matrices of {gram.n}² numbers, "
                f"{24e-6 * gram.n**2:,.0f} MB; raise cache_size, or use fewer samples"
            )
        M = self._kept.products((A.T @ (sparse.diags_array(D) @ A)).toarray()).T  # KH, and its transpose HK
        M[np.diag_indices(gram.n)] += 2 * lam
        try:
            dc = call_interruptibly(np.linalg.solve, M, -rho)
        except np.linalg.LinAlgError:  # singular by rounding; the negative gradient is a descent direction too
            dc = -rho / (2 * lam)
        return dc, 0.0, self.product(dc)

    def _solve(self, curved: Floats, active: Indices, R: Floats) -> Floats:
        """Return Z with (K + diag(curved)⁻¹)Z = R on the active samples."""
        if self._kept is None:
            return self._by_conjugate_gradients(np.sqrt(curved), active, R)
        gram, subset = self._gram, active if len(active) < self._gram.n else None
        # If rounding made a positive definite K indefinite, a step with a ridge is still a descent direction.
        for share in rounding_shares(10, 1e-8) if gram.positive_definite == "yes" else (0.0,):
            factor = self._kept.factor(1.0 / curved + share * gram.diagonal[active], subset)
            if factor is not None:
                return factor.solve(R)
        raise ValueError(
            "the kernel matrix is not positive semi-definite, and the loss has no minimum then; use a positive "
            "definite kernel, or, where this is one, scale the features: rounding broke it"
        )

    def _by_conjugate_gradients(self, scale: Floats, active: Indices, R: Floats) -> Floats:
        """Solve the same system by preconditioned conjugate gradients on I + SKS."""
        gram, stop = self._gram, self._stop
        R = scale[:, None] * R
        part = gram if len(active) == gram.n else gram.view(active)
        landmarks = draw_landmarks(part, scale, n_threads=stop.n_threads)
        precondition = NystromPreconditioner(part, scale, landmarks, stop.n_threads)

        def apply(P: Floats) -> Floats:
            return np.asarray(P + scale[:, None] * part.products(scale[:, None] * P))

        # Three digits are enough, since the next Newton step corrects the rest.
        target = 1e-3 * np.sqrt(np.sum(R * R, axis=0))
        limits = Stop(0.0, 200, deadline=stop.deadline)
        return scale[:, None] * conjugate_gradient(apply, R, precondition, target, limits).X


def _line_search(
    problem: RepresenterProblem, f: Floats, p: Floats, now: float, cc: float, cd: float, dd: float
) -> float:
    """Return the largest of 1, ½, ¼, … that lowers the objective enough, or 0.

    cc, cd and dd are the products c'Kc, c'Kδc and δc'Kδc.
    """
    lam = problem.lam
    slope = inner(problem.gradient(f), p) + 2 * lam * cd
    t = 1.0
    for _ in range(40):  # steps to 1e-12
        value = problem.value(f + t * p) + lam * (cc + 2 * t * cd + t * t * dd)
        # Armijo's rule: the objective falls by a small share of the decrease that its slope predicts.
        if value < now and value <= now + 1e-4 * t * slope:
            return t
        t *= 0.5
    return 0.0


def _best_bias(problem: RepresenterProblem, u: Floats, b: float) -> float:
    """Return the b that makes Σg zero at these u, by Newton steps inside a bracket, with bisection outside of it."""
    if not problem.bias:
        return 0.0
    low, high, width = -np.inf, np.inf, max(1.0, float(np.abs(problem.y).max()))
    for _ in range(200):
        g = problem.gradient(u + b)
        slope = float(g.sum())
        if abs(slope) <= _EPS * float(np.abs(g).sum()):  # the sign of the slope is rounding
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
    problem: RepresenterProblem, gram: Gram, stop: Stop, start: RepresenterSolution | None
) -> tuple[RepresenterSolution, Certificate]:
    """Minimise the hinge loss by its dual, since it has no second derivative for Newton's method.

        λ‖f‖² + Σ w_i max(0, 1 − y_if(x_i))  =  2λ · [½‖f‖² + Σ C_i max(0, 1 − y_if(x_i))],    C_i = w_i/2λ

    The expression in brackets is the soft margin, whose signed dual variables β are the coefficients of f.
    """
    dual = soft_margin(problem.y, problem.weight / (2 * problem.lam))
    if not problem.bias:
        dual = dual.without_bias()
    # `stop` counts Newton steps and bounds the relative gap. The dual solver counts other steps and needs a tolerance
    # for the violation as well: both are SVC's defaults.
    dual_stop = replace(stop, tol=1e-3, max_iter=10_000_000, gap_tol=stop.tol)
    solution, proof = solve_certified(dual, gram, dual_stop, None if start is None else start.c)
    b = proof.b[0] if problem.bias else 0.0
    certificate = scale_certificate(proof, 2 * problem.lam, b)
    return RepresenterSolution(solution.beta, b, solution.steps, solution.stop_reason), certificate
