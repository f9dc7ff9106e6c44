"""Regularised fits with any convex loss, in the form of the representer theorem, by Newton's method with a line search.

With g = wℓ′ and D = diag(wℓ″) at the present f, ρ = g + 2λc is zero at the optimum, and with a bias so is Σg. The
change p of f in a Newton step is p = (2λ/D)z with

    (K + 2λD⁻¹) z = δb − Kρ/2λ,     δc = −ρ/2λ − z,     2λ Σz = −Σg

where samples without curvature have z = 0. The matrix is factored if it fits into memory. Otherwise
(I + SKS)q = S(δb − Kρ/2λ), S = (D/2λ)^½, z = Sq is solved by preconditioned conjugate gradients; its matrix has no
eigenvalue below 1, whatever the curvatures. The steps end when the duality gap ρ'Kρ/4λ (see the certificate) is small.

Another penalty Ω is solved as a squared norm with another coefficient μ. If 2μ‖f‖ = λΩ′(‖f‖), the minimiser for μ‖f‖²
is that for λΩ(‖f‖), since both have the same gradient there. As μ grows, ‖f‖ falls and 2μ‖f‖ = ‖G‖ rises, so for a
convex Ω the equation has one root, found by the Illinois method.

A loss of Af has the curvature H = A'DA, which is not diagonal. Its Newton step solves (HK + 2λ)δc = −ρ, which is not
symmetric and is solved by an LU factorisation.

A loss with corners has no curvature. A piecewise linear one with the penalty μ‖f‖² is minimised by its dual. Any other
is bounded from below by tangents, a piecewise linear loss, to which the tangents at its minimiser are added until the
bound is tight there (problems/tangents.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import SUBOPTIMALITY
from mercer.certificates.representer import certify_representer, scale_certificate
from mercer.places.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.problems.losses import has_corners
from mercer.problems.penalties import PENALTIES
from mercer.problems.representer import RepresenterProblem
from mercer.problems.tangents import Tangents
from mercer.runtime.long_calls import call_interruptibly
from mercer.samples.arrays import Floats, Indices, inner
from mercer.solvers.conjugate_gradient import NystromPreconditioner, conjugate_gradient, draw_landmarks, iteration_line
from mercer.solvers.deadline import ProofTime
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.early_stopping import SmoothedRule
from mercer.solvers.ridge_factor import rounding_shares
from mercer.solvers.solution import Stop, StopReason

# Largest number of times that tangents are added.
_MOST_ROUNDS = 100
# Largest number of coefficients μ tried for another penalty (the Illinois method takes about ten), and largest |log μ|.
_MOST_COEFFICIENTS, _MOST_LOG = 60, 600.0
# A gap that rounding of numbers near 0 leaves if the optimum is 0.
_NEGLIGIBLE_GAP = 1e-200
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
    dual = problem.dual()
    if dual is not None:
        return _solve_by_dual(problem, dual, gram, stop, None if start is None else start.c)
    n = gram.n
    proof = ProofTime(gram, stop)
    point = _Point(np.zeros(n), np.zeros(n)) if start is None else _Point(start.c, np.zeros(n), start.b)
    b = _best_bias(problem, np.zeros(n), point.b)
    # If the optimum is zero, as for equal targets, no relative gap can be reached: rounding b may cost `floor`, and
    # beside a corner rounding values of the size of y.
    if has_corners(problem.loss):
        size = float(np.abs(problem.y).max(initial=0.0))
        slopes = [float(np.abs(problem.gradient(problem.y + side)).sum()) for side in (-size, size)]
        floor = max(max(slopes) * 16 * _EPS * size, _NEGLIGIBLE_GAP)
    else:
        curvature = float(problem.curvature(problem.apply_combine(np.full(n, b))).sum())
        floor = max(curvature * (16 * _EPS * b) * (16 * _EPS * b), _EPS * _TINY)
    point.b = b if start is None else point.b
    try:
        with _core.TimeLimit(stop.seconds - 2 * proof(np.ones(n))):  # the certificate takes two products with K
            system = _NewtonSystem(gram, stop)
            if start is not None:
                point.u = system.product(point.c)
                point.b = _best_bias(problem, point.u, point.b)
            if has_corners(problem.loss):
                reason = _solve_with_corners(problem, system, point, stop, floor)
            elif not problem.squared:
                reason = _solve_penalised(problem, system, point, stop, floor)
            else:
                reason = _descend(problem, system, point, stop, floor, watch)
    except _core.OutOfTime:  # c and b are those before the interrupted step
        reason = "max_time"
    if watch is not None and watch.restore_best(point) and reason not in ("max_iter", "max_time"):
        reason = "early stopping"
    certificate = certify_representer(problem, gram.proof, point.c, point.b, stop.tol, point.g)
    if reason in ("converged", "rounding floor"):
        reached_goal = certificate.kkt[SUBOPTIMALITY] <= max(stop.tol * abs(certificate.primal), floor)
        reason = "converged" if reached_goal else "rounding floor"
    losses = None if watch is None else watch.losses
    return RepresenterSolution(point.c, point.b, point.steps, reason, losses), certificate


@dataclass(eq=False)
class _Point:
    """Present point of the steps: c, u = Kc and b; for a loss with corners also the subgradients at the samples."""

    c: Floats
    u: Floats
    b: float = 0.0
    steps: int = 0
    g: Floats | None = None

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
        self._best_point: tuple[Floats, float] | None = None

    @property
    def losses(self) -> Floats:
        """Validation loss after every step."""
        return np.array(self._rule.errors)

    def should_stop(self, problem: RepresenterProblem, point: _Point) -> bool:
        """Record the validation loss, and return whether training should stop."""
        validation = replace(problem, y=problem.y[self._rows], weight=self._weight)
        has_risen, is_best = self._rule.record(validation.value(point.u[self._rows] + point.b))
        if is_best:
            self._best_point = point.c, point.b
        return has_risen

    def restore_best(self, point: _Point) -> bool:
        """Go back to the step with the smallest loss; return whether that is an earlier one."""
        last_c = point.c
        point.c, point.b = self._best_point or (point.c, point.b)
        return point.c is not last_c


def _solve_with_corners(
    problem: RepresenterProblem, system: _NewtonSystem, point: _Point, stop: Stop, floor: float
) -> StopReason:
    """Minimise a loss with corners; return the stop reason."""
    if problem.is_piecewise_linear:
        return _solve_penalised(problem, system, point, stop, floor)
    loss, y, last = Tangents.around(problem.loss, problem.y), problem.y, np.inf
    slopes = [float(problem.weight @ loss.slopes[:, k]) for k in (0, -1)]
    if problem.bias and not slopes[0] <= 0 <= slopes[1]:
        raise ValueError(
            f"the sum of loss={problem.loss!r} over the samples {'rises' if slopes[0] > 0 else 'falls'} with b "
            "everywhere, and has no minimum; set bias=False, or correct the loss"
        )
    for _ in range(_MOST_ROUNDS):
        # 1. Minimise the largest tangents, as exactly as their last distance from the loss deserves.
        tangent_problem = replace(problem, loss=loss)
        inner_stop = replace(stop, tol=min(1e-2, max(0.1 * stop.tol, 1e-2 * last)))
        solve = _solve_squared if problem.squared else _solve_penalised
        reason = solve(tangent_problem, system, point, inner_stop, floor)
        # 2. The loss is above them by this much at the minimiser; add its tangents there.
        t = point.u + point.b
        value = problem.value(t)
        excess = value - tangent_problem.value(t)
        primal = abs(value + problem.lam * problem.penalty.value(point.norm))
        if excess <= max(0.1 * stop.tol * primal, floor) and inner_stop.tol <= 0.2 * stop.tol:
            return "converged"
        if reason in ("max_iter", "max_time"):
            return reason
        last = excess / max(primal, _TINY)
        loss = Tangents.at(problem.loss, y, np.column_stack([loss.points, t]))
    return "rounding floor"


def _descend(
    problem: RepresenterProblem,
    system: _NewtonSystem,
    point: _Point,
    stop: Stop,
    floor: float,
    watch: ValidationMonitor | None = None,
) -> StopReason:
    """Take Newton steps for the squared norm; return the stop reason."""
    lam = problem.lam
    while True:
        # 1. Compute the gradient ρ and the gap; stop if it is small enough, or at a limit.
        t, rho, K_rho, gap = _slopes(problem, system, point)
        primal = problem.value(t) + lam * inner(point.c, point.u)
        goal = max(stop.tol * abs(primal), floor)
        stop.report_progress(partial(iteration_line, point.steps, gap / goal), gap / goal)
        if watch is not None and watch.should_stop(problem, point):
            return "early stopping"
        reason: StopReason | None = "converged" if gap <= goal else stop.limit(point.steps)
        if reason is not None:
            return reason
        # 2. Solve for the Newton step, and take it with a line search.
        dc, db, p = system.newton(problem, t, rho, K_rho)
        size = _line_search(
            problem, t, problem.apply_combine(p + db), primal, inner(point.c, point.u), inner(dc, point.u), inner(dc, p)
        )
        if size == 0.0:
            return "rounding floor"
        # 3. Move c and u, and minimise over the bias alone.
        point.c, point.u = point.c + size * dc, point.u + size * p
        point.b = _best_bias(problem, point.u, point.b + size * db)
        point.steps += 1


def _slopes(problem: RepresenterProblem, system: _NewtonSystem, point: _Point) -> tuple[Floats, Floats, Floats, float]:
    """Return Af, ρ, Kρ and the gap ρ'Kρ/4λ."""
    t = problem.apply_combine(point.u + point.b)
    rho = problem.apply_transpose(problem.gradient(t)) + 2 * problem.lam * point.c
    K_rho = system.product(rho)
    return t, rho, K_rho, inner(rho, K_rho) / (4 * problem.lam)


def _polish(problem: RepresenterProblem, system: _NewtonSystem, point: _Point) -> None:
    """Take one more full Newton step if the gap falls, although the objective changes by rounding only."""
    t, rho, K_rho, gap = _slopes(problem, system, point)
    dc, db, p = system.newton(problem, t, rho, K_rho)
    new = _Point(point.c + dc, point.u + p, _best_bias(problem, point.u + p, point.b + db))
    if _slopes(problem, system, new)[3] < gap:
        point.c, point.u, point.b = new.c, new.u, new.b


def _solve_penalised(
    problem: RepresenterProblem, system: _NewtonSystem, point: _Point, stop: Stop, floor: float
) -> StopReason:
    """Find the coefficient μ of the squared norm whose minimiser has 2μ‖f‖ = λΩ′(‖f‖), and move to this minimiser."""
    lam, penalty = problem.lam, problem.penalty
    # 1. Check whether f = 0 is the minimiser; at a corner the subgradient that shows this is not known yet.
    zero, is_cornered = np.zeros_like(point.c), has_corners(problem.loss)
    b = _best_bias(problem, zero, point.b)
    g = problem.apply_transpose(problem.gradient(problem.apply_combine(zero + b)))
    if not is_cornered and inner(g, system.product(g)) <= (lam * penalty.derivative(0.0)) ** 2:
        point.c, point.u, point.b = zero, zero, b
        return "converged"
    # 2. Solve for one μ after another. ‖f‖ has half the digits of the minimum, so the inner tolerance is squared.
    inner_stop = replace(stop, tol=max(stop.tol**2, _EPS))
    # By whether μ was too large: the last log μ, and the log of 2μ‖f‖ / λΩ′(‖f‖).
    ends: dict[bool, list[float]] = {}
    # The μ of the last solution is nearly that of a loss with a few more tangents.
    slope = lam * penalty.derivative(point.norm) if is_cornered and point.norm > 0 else np.inf
    x, step, last = float(np.log(lam)), 1.0, None
    if 0 < slope < np.inf:
        x, step = float(np.log(slope) - np.log(2 * point.norm)), 0.03
    for _ in range(_MOST_COEFFICIENTS):
        squared = replace(problem, lam=float(np.exp(x)), penalty=PENALTIES["squared_norm"])
        reason = _solve_squared(squared, system, point, inner_stop, floor)
        if reason in ("max_iter", "max_time"):
            return reason
        norm, slope = point.norm, lam * penalty.derivative(point.norm)
        primal = problem.value(problem.apply_combine(point.u + point.b)) + lam * penalty.value(norm)
        difference = 2 * squared.lam * norm - slope
        # The gap as in the certificate: the difference times ‖f‖, or times the largest ‖f*‖ if 2μ‖f‖ is too large.
        largest_norm = norm + max(0.0, primal - lam * penalty.value(norm)) / slope if difference > 0 else norm
        goal = max(0.1 * stop.tol * abs(primal), floor)
        if np.isfinite(primal) and largest_norm * abs(difference) <= goal:
            at_zero = problem.value(problem.apply_combine(zero + point.b)) + lam * penalty.value(0.0)
            if is_cornered and at_zero <= primal + goal and 2 * squared.lam * norm <= lam * penalty.derivative(0.0):
                point.c, point.u = zero, zero
            return "converged"
        if norm == 0:
            break
        # 3. Choose the next μ: by steps of growing size until there is a bracket, then by the Illinois method.
        log_ratio, is_too_large = float(np.log(2 * squared.lam * norm) - np.log(slope)), difference > 0
        ends[is_too_large] = [x, log_ratio]
        if len(ends) < 2:
            new, step = x - np.sign(log_ratio) * step, 2 * step
        else:
            if is_too_large is last:
                ends[not is_too_large][1] *= 0.5  # Illinois: halve the weight of the end that stays
            (x0, ratio0), (x1, ratio1) = ends[False], ends[True]
            share = -ratio0 / (ratio1 - ratio0) if ratio0 > -np.inf else 0.5  # bisection if the penalty overflows
            new = x0 + share * (x1 - x0)
        if new == x or abs(new) > _MOST_LOG:
            break
        x, last = new, is_too_large
    return "rounding floor"


def _solve_squared(
    problem: RepresenterProblem, system: _NewtonSystem, point: _Point, stop: Stop, floor: float
) -> StopReason:
    """Minimise a smooth or piecewise linear loss with the squared norm; return the stop reason."""
    dual = problem.dual()
    if dual is None:
        reason = _descend(problem, system, point, stop, floor)
        if reason not in ("max_iter", "max_time"):
            _polish(problem, system, point)
        return reason
    solution, _ = _solve_by_dual(problem, dual, system.gram, stop, point.c)
    point.c, point.b, point.steps = solution.c, solution.b, point.steps + 1
    point.u, point.g = system.product(point.c), -2 * problem.lam * point.c
    limit = stop.limit(point.steps)
    return limit or ("max_time" if solution.stop_reason == "max_time" else "converged")


class _NewtonSystem:
    """Newton systems K + 2λD⁻¹ for changing D: by a factor if K fits into memory, otherwise by products with K."""

    def __init__(self, gram: Gram, stop: Stop) -> None:
        self.gram, self._stop = gram, stop
        # K, the Newton matrix, and a submatrix of K: 24 bytes per entry.
        self._K = gram.float64_matrix(stop.n_threads) if 24 * gram.n**2 <= gram.budget else None

    def product(self, v: Floats) -> Floats:
        """Return Kv."""
        return self.gram.product(v) if self._K is None else self._K.products(v[:, None])[:, 0]

    def newton(
        self, problem: RepresenterProblem, f: Floats, rho: Floats, K_rho: Floats
    ) -> tuple[Floats, float, Floats]:
        """Return δc, δb and Kδc of the Newton step, with a little curvature added if there is none for the bias."""
        lam = problem.lam
        D = problem.curvature(f)
        if problem.combine is not None:
            return self._newton_for_combined_loss(problem.combine, D, rho, lam)
        # The bias needs curvature: if Σwℓ″ is tiny relative to Σw, every sample gets a share of its weight.
        if problem.bias and not D.sum() > 1e-12 * problem.weight.sum():
            D = np.maximum(D, 1e-3 * problem.weight)
        scaled_D = D / (2 * lam)
        active = np.flatnonzero(scaled_D > _TINY)
        Z = np.zeros((len(D), 2))
        if len(active):
            R = np.column_stack([-K_rho[active] / (2 * lam), np.ones(len(active))])
            Z[active] = self._solve(scaled_D[active], active, R)
        db = 0.0
        if problem.bias:
            sum_without_b, sum_per_b = 2 * lam * Z.sum(axis=0)
            db = float((-problem.gradient(f).sum() - sum_without_b) / sum_per_b) if sum_per_b > 0 else 0.0
        dc = -rho / (2 * lam) - (Z[:, 0] + db * Z[:, 1])
        return dc, db, self.product(dc)

    def _newton_for_combined_loss(self, A: Any, D: Floats, rho: Floats, lam: float) -> tuple[Floats, float, Floats]:
        """Return δc, δb = 0 and Kδc of the Newton step for a loss of Af, with the curvature H = A'DA."""
        gram = self.gram
        if self._K is None:
            raise ValueError(
                f"a loss that is not a sum over samples needs three matrices of {gram.n}² numbers, "
                f"{24e-6 * gram.n**2:,.0f} MB; raise cache_size, or use fewer samples"
            )
        M = self._K.products((A.T @ (sparse.diags_array(D) @ A)).toarray()).T  # HK, the transpose of KH
        M[np.diag_indices(gram.n)] += 2 * lam
        try:
            dc = call_interruptibly(np.linalg.solve, M, -rho)
        except np.linalg.LinAlgError:  # singular by rounding; the negative gradient is a descent direction too
            dc = -rho / (2 * lam)
        return dc, 0.0, self.product(dc)

    def _solve(self, scaled_D: Floats, active: Indices, R: Floats) -> Floats:
        """Return Z with (K + diag(scaled_D)⁻¹)Z = R on the active samples."""
        if self._K is None:
            return self._solve_by_conjugate_gradients(np.sqrt(scaled_D), active, R)
        gram, subset = self.gram, active if len(active) < self.gram.n else None
        # If rounding made a positive definite K indefinite, a step with a ridge is still a descent direction.
        for share in rounding_shares(10, 1e-8) if gram.positive_definite == "yes" else (0.0,):
            factor = self._K.factor(1.0 / scaled_D + share * gram.diagonal[active], subset)
            if factor is not None:
                return factor.solve(R)
        raise ValueError(
            "the kernel matrix is not positive semi-definite, and the loss has no minimum then; use a positive "
            "definite kernel, or, where this is one, scale the features: rounding broke it"
        )

    def _solve_by_conjugate_gradients(self, scale: Floats, active: Indices, R: Floats) -> Floats:
        """Solve the system of `_solve` by preconditioned conjugate gradients on I + SKS, S = diag(`scale`)."""
        gram, stop = self.gram, self._stop
        R = scale[:, None] * R
        part = gram if len(active) == gram.n else gram.view(active)
        landmarks = draw_landmarks(part, scale, n_threads=stop.n_threads)
        precondition = NystromPreconditioner(part, scale, landmarks, stop.n_threads)

        def apply(P: Floats) -> Floats:
            return np.asarray(P + scale[:, None] * part.products(scale[:, None] * P))

        # Three digits are enough, since the next Newton step corrects the remaining error.
        target = 1e-3 * np.sqrt(np.sum(R * R, axis=0))
        limits = Stop(0.0, 200, deadline=stop.deadline)
        return scale[:, None] * conjugate_gradient(apply, R, precondition, target, limits).X


def _line_search(
    problem: RepresenterProblem, f: Floats, p: Floats, value_at_0: float, cc: float, cd: float, dd: float
) -> float:
    """Return the longest step t among 1, ½, ¼, … that lowers the objective enough, or 0.

    cc, cd and dd are the products c'Kc, c'Kδc and δc'Kδc.
    """
    lam = problem.lam
    slope = inner(problem.gradient(f), p) + 2 * lam * cd
    t = 1.0
    for _ in range(40):  # steps to 1e-12
        value = problem.value(f + t * p) + lam * (cc + 2 * t * cd + t * t * dd)
        # Armijo's rule: the objective falls by a small share of the decrease that its slope predicts.
        if value < value_at_0 and value <= value_at_0 + 1e-4 * t * slope:
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


def _solve_by_dual(
    problem: RepresenterProblem, dual: DualProblem, gram: Gram, stop: Stop, start: Floats | None
) -> tuple[RepresenterSolution, Certificate]:
    """Minimise a loss with corners by its dual, to a relative gap of `stop.tol`, from the coefficients `start`."""
    # `stop` counts Newton steps and bounds the relative gap. The dual solver counts other steps and needs a tolerance
    # for the violation as well: both are SVC's defaults, in units of the targets' spread.
    unit = float(np.std(problem.y)) or 1.0
    dual_stop = replace(stop, tol=1e-3 * unit, max_iter=10_000_000, gap_tol=stop.tol)
    beta = None if start is None else dual.nearest_feasible(_split_among_variables(dual, start))
    solution, proof = solve_certified(dual, gram, dual_stop, beta)
    b = proof.b[0] if problem.bias else 0.0
    certificate = scale_certificate(proof, 2 * problem.lam, b)
    c = dual.row_coefficients(solution.beta, gram.n)
    return RepresenterSolution(c, b, solution.steps, solution.stop_reason), certificate


def _split_among_variables(dual: DualProblem, c: Floats) -> Floats:
    """Return variables with the sum c_i in row i: each as far as its box allows, those with the best p first."""
    beta = np.zeros(dual.n_variables)
    for sign, bound in ((1.0, dual.upper), (-1.0, dual.lower)):
        order = np.lexsort((-sign * dual.p, dual.row))
        row, room = dual.row[order], np.maximum(sign * bound[order], 0.0)
        room_before = np.cumsum(room) - room
        room_before -= room_before[np.searchsorted(row, row)]  # what earlier variables of the row can take
        beta[order] += sign * np.clip(sign * c[row] - room_before, 0.0, room)
    return beta
