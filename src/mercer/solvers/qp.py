"""Quadratic programs by outside packages, through `qpsolvers`: an independent check of our solvers, for few samples.

    minimise  ½ x'Px + q'x    subject to  Ax = totals,  lower ≤ x ≤ upper

1. The package solves the program, scaled to numbers about 1, with the finest tolerance that it can reach.
2. An interior point method ends with every variable a little inside its bounds. A variable is put onto a bound if the
   bound's multiplier exceeds the distance to it.
3. The result is made feasible and certified like that of every other solver; the package's own claim of convergence is
   not used.
4. Newton steps on the free variables follow if the certificate does not meet the goal.

Packages use neither a start nor shrinking.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify_dual
from mercer.certificates.joint import certify_joint
from mercer.certificates.least_squares import certify_solution, coefficient_sums, is_exact
from mercer.places.gram import Gram
from mercer.problems.dual_problem import DualProblem, QuadraticProgram
from mercer.problems.least_squares import LeastSquares
from mercer.problems.multiclass import JointProblem
from mercer.runtime.optional import require
from mercer.samples.arrays import Flags, Floats, Indices, megabytes, sums_by
from mercer.solvers.joint.rebalance import rebalanced
from mercer.solvers.least_squares.solution import LeastSquaresSolution, Proven
from mercer.solvers.linear.referee import Point, Referee
from mercer.solvers.solution import Solution, Stop, StopReason
from mercer.solvers.solver import refuses


@dataclasses.dataclass(frozen=True)
class _Package:
    """Option names of a package (tolerances, limits of steps and seconds) and its finest tolerance."""

    tolerances: tuple[str, ...] = ()
    finest: float = 1e-12
    steps: str | None = None
    most_steps: int = 0
    seconds: str | None = None
    boxes: bool = False  # takes bounds, also infinite ones, separately from other inequalities
    other: Mapping[str, Any] = dataclasses.field(default_factory=dict)


PACKAGES: Final = {
    "clarabel": _Package(
        ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
        steps="max_iter",
        most_steps=200,
        seconds="time_limit",
        other={"max_threads": 1},
    ),
    "piqp": _Package(
        ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"),
        steps="max_iter",
        most_steps=500,
        boxes=True,
    ),
    "quadprog": _Package(),
    "osqp": _Package(
        ("eps_abs", "eps_rel"),
        # OSQP takes thousands of cheap steps. If these find the active bounds, polishing gives the remaining digits.
        finest=1e-8,
        steps="max_iter",
        most_steps=50_000,
        seconds="time_limit",
        # A fixed interval makes runs repeatable: the default depends on the time of the setup.
        other={"adaptive_rho_interval": 50, "polishing": True, "raise_error": False},
    ),
    "cvxopt": _Package(("abstol", "reltol", "feastol"), steps="maxiters", most_steps=100),
}
DEFAULT: Final = "clarabel"
# Values of `solver=` and the package of each.
NAMES: Final = {"qp": DEFAULT, **{f"qp:{name}": name for name in PACKAGES}}
# Tolerances to try, for programs scaled to numbers about 1. A package that cannot reach a tolerance ends further from
# the solution than with the next coarser one.
_TOLERANCES: Final = (1e-12, 1e-10, 1e-8)
# Bytes for each entry of P: P, the package's factor and copies (measured growth of a process; clarabel, the largest,
# took 83 with 1,500 variables and 82 with 2,200), and the memory budget of linear machines, which have no `cache_size`.
_BYTES_PER_ENTRY: Final = 85
_LINEAR_BUDGET: Final = 10**9
_LIMITS: Final = ("max_iter", "max_time")
# Lock for silencing the warnings of qpsolvers, which affects all threads; `PackageAnswer.reason` reports their content.
_SILENCE: Final = threading.Lock()


@dataclasses.dataclass(frozen=True, eq=False)
class PackageAnswer:
    """Answer of a package: x, its active bounds, the multipliers b of the equalities, the number of calls, and the
    reason.

    At the optimum −(Px + q) = A'b where no bound is active. "converged" is the package's own claim; x is NaN if the
    package returned none.
    """

    x: Floats
    at_lower: Flags
    at_upper: Flags
    b: Floats
    steps: int
    reason: StopReason

    def verdict(self, proven: bool) -> StopReason:
        """Return the stop reason, given whether a certificate proves the solution."""
        return "converged" if proven else "stalled" if self.reason == "converged" else self.reason


def call_package(package: str, program: QuadraticProgram, stop: Stop) -> PackageAnswer:
    """Solve a program by the package of this name, with a coarser tolerance if it cannot reach a fine one."""
    purpose = f"solver={'qp' if package == DEFAULT else f'qp:{package}'!r}"
    require("qpsolvers", purpose)
    require(package, purpose)
    m, n_equalities = len(program.q), len(program.totals)
    if not n_equalities and not np.isfinite([program.lower, program.upper]).any():
        # qpsolvers solves a program without constraints by LSQR: add a variable that is constrained to zero.
        bounds = np.full(m + 1, -np.inf), np.full(m + 1, np.inf)
        P, q, A = np.pad(program.P, (0, 1)), np.append(program.q, 0.0), np.eye(m + 1)[[m]]
        P[m, m] = 1.0
        program = QuadraticProgram(P, q, A, np.zeros(1), *bounds)
    n_calls = 0
    for tol in [tol for tol in _TOLERANCES if tol >= PACKAGES[package].finest]:
        n_calls += 1
        x, multiplier, b, is_solved = _call(package, program, stop, tol)
        reason: StopReason = "converged"
        if not is_solved:
            has_step_limit = stop.max_iter < PACKAGES[package].most_steps
            reason = stop.limit(0) or ("max_iter" if has_step_limit else "stalled")
        if reason != "stalled":
            break
    at_lower, at_upper = -multiplier > x - program.lower, multiplier > program.upper - x
    return PackageAnswer(x[:m], at_lower[:m], at_upper[:m], b[:n_equalities], n_calls, reason)


def _call(package: str, program: QuadraticProgram, stop: Stop, tol: float) -> tuple[Floats, Floats, Floats, bool]:
    """Return x, multipliers of its bounds (negative at lower ones) and of the equalities, and whether it succeeded."""
    import qpsolvers

    options, m = PACKAGES[package], len(program.q)
    settings = dict.fromkeys(options.tolerances, tol) | dict(options.other)
    if options.steps is not None:
        settings[options.steps] = max(1, min(options.most_steps, stop.max_iter))
    if options.seconds is not None and math.isfinite(stop.deadline):
        settings[options.seconds] = max(1e-3, stop.seconds)
    has_upper, has_lower = np.flatnonzero(np.isfinite(program.upper)), np.flatnonzero(np.isfinite(program.lower))
    takes_dense = package in qpsolvers.dense_solvers
    limits: dict[str, Any] = {}
    if options.boxes:
        limits = {"lb": program.lower, "ub": program.upper}
    elif len(has_upper) + len(has_lower):
        # As rows of a matrix, since most packages replace an infinite bound by a large number.
        eye = sp.eye_array(m, format="csr")
        G = sp.csc_matrix(sp.vstack([eye[has_upper], -eye[has_lower]]))
        limits["G"] = G if package in qpsolvers.sparse_solvers else G.toarray()
        limits["h"] = np.concatenate([program.upper[has_upper], -program.lower[has_lower]])
    if len(program.totals):
        limits |= {"A": program.A if takes_dense else sp.csc_matrix(program.A), "b": program.totals}

    def solve(P: Floats, q: Floats) -> Any:
        matrix = P if takes_dense else sp.csc_matrix(np.triu(P))  # packages read the upper triangle of a sparse matrix
        return qpsolvers.solve_problem(qpsolvers.Problem(matrix, q, **limits), package, **settings)

    with _SILENCE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = _solve_with_proximal_points(solve, program, qpsolvers.ProblemError)
        except (qpsolvers.SolverError, qpsolvers.ProblemError):  # a factorisation failed by rounding
            result = None
    if result is None or result.x is None:
        return np.full(m, np.nan), np.zeros(m), np.zeros(len(program.totals)), False
    multiplier = np.zeros(m)
    if options.boxes:
        multiplier += result.z_box
    else:
        multiplier[has_upper] += result.z[: len(has_upper)]
        multiplier[has_lower] -= result.z[len(has_upper) :]
    return np.array(result.x, dtype=np.float64), multiplier, np.asarray(result.y, dtype=np.float64), bool(result.found)


def _solve_with_proximal_points(
    solve: Callable[[Floats, Floats], Any], program: QuadraticProgram, indefinite: type[Exception]
) -> Any:
    """Solve, by proximal points min ½x'Px + q'x + ½r‖x − last‖² if P is not definite enough for the package."""
    try:
        return solve(program.P, program.q)
    except indefinite:
        # A small multiple of the mean diagonal makes P definite. Solving around the last solution again, until x no
        # longer changes, removes its effect.
        r = 1e-8 * (float(np.abs(program.P.diagonal()).mean()) or 1.0)
    definite_P = program.P + r * np.eye(len(program.q))
    result = solve(definite_P, program.q)
    for _ in range(20 if result.x is not None else 0):
        last, result = result, solve(definite_P, program.q - r * result.x)
        if result.x is None or np.abs(result.x - last.x).max() <= _TOLERANCES[0] * max(1.0, np.abs(result.x).max()):
            break
    return result


def _refusal(m: int, gram: Gram, other: str = "decomposition") -> str | None:
    """Return why m variables on these samples cannot be solved by a package and which solver to use, or None."""
    largest_m = math.isqrt(gram.budget // _BYTES_PER_ENTRY)
    if m > largest_m:
        return (
            f"solver='qp' works on the whole matrix, and {m} variables need about "
            f"{megabytes(_BYTES_PER_ENTRY * m**2)}: at most {largest_m} fit into cache_size={megabytes(gram.budget)}. "
            f"Use solver={other!r}, or raise cache_size"
        )
    if gram.positive_definite == "no":
        return (
            f"solver='qp' needs a positive semi-definite matrix, and {gram.kernel!r} has a negative eigenvalue on "
            f"these samples; use solver={other!r}, which finds a stationary point, or another kernel"
        )
    return None


@refuses(lambda problem, gram: _refusal(problem.n_variables, gram))
def solve_by_qp(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    *,
    package: str = DEFAULT,
    shrinking: bool = True,
) -> tuple[Solution, Certificate]:
    """Solve a kernel machine by an outside package, and certify the solution."""
    beta = problem.feasible_start() if start is None else start  # raises if no point is feasible
    stop.report_progress(lambda: f"{package} on {problem.n_variables:,} variables")
    limit = stop.limit(0)
    if limit is not None:
        certificate, u = certify_dual(problem, gram.proof, beta, stop.tol)
        return Solution(beta, 0, limit, u=u), certificate
    rows, row = np.unique(problem.row, return_inverse=True)
    K = gram.block(rows, rows)
    beta, answer = _feasible_solution(package, problem, K, row, stop)
    certificate, u = certify_dual(problem, gram.proof, beta, stop.tol)
    # Take Newton steps on the free variables until β meets the goal; each must lower the violation.
    for _ in range(3 if answer.reason not in _LIMITS else 0):
        if stop.met(certificate):
            break
        stepped_beta = _take_newton_step(problem, K, row, beta)
        proof, product = certify_dual(problem, gram.proof, stepped_beta, stop.tol)
        if not proof.violation < certificate.violation:
            break
        beta, certificate, u = stepped_beta, proof, product
    return Solution(beta, answer.steps, answer.verdict(stop.met(certificate)), u=u), certificate


def _feasible_solution(
    package: str, problem: DualProblem, K: Floats, row: Indices, stop: Stop
) -> tuple[Floats, PackageAnswer]:
    """Return the package's β, made feasible, and its answer; `row` is the row of K of each variable.

    With x = β/unit and the objective divided by unit·size, tolerances mean the same for every problem.
    """
    unit, size = _scales(problem, K.diagonal()[row])
    P = K[np.ix_(row, row)]
    P[np.diag_indices_from(P)] += problem.d
    P *= unit / size
    A = (problem.group == np.arange(len(problem.totals))[:, None]).astype(np.float64)

    def solve_scaled() -> PackageAnswer:
        box = problem.lower / unit, problem.upper / unit
        return call_package(package, QuadraticProgram(P, -problem.p / size, A, problem.totals / unit, *box), stop)

    answer = solve_scaled()
    largest = float(np.abs(answer.x).max(initial=0.0))
    # If the box is much wider than the solution, as for a hard margin, the package's tolerances are coarse relative to
    # x: solve again with a unit of the size of x.
    if answer.reason not in _LIMITS and 0 < largest < 0.1:
        P *= largest
        unit *= largest
        second = solve_scaled()
        answer = dataclasses.replace(second, steps=answer.steps + second.steps)
    beta = np.where(answer.at_upper, problem.upper, np.where(answer.at_lower, problem.lower, unit * answer.x))
    return problem.nearest_feasible(beta), answer


def _scales(problem: DualProblem, diagonal: Floats) -> tuple[float, float]:
    """Return a typical width of the box and a typical size of the gradient."""
    width = problem.upper - problem.lower
    width = width[np.isfinite(width) & (width > 0)]
    curvature = float((np.abs(diagonal) + problem.d).mean()) or 1.0
    largest = float(np.abs(problem.p).max())
    unit = float(np.median(width)) if len(width) else (largest or 1.0) / curvature
    return unit, largest or unit * curvature


def _take_newton_step(problem: DualProblem, K: Floats, row: Indices, beta: Floats) -> Floats:
    """Return β, made feasible, after a Newton step on the variables that are free or should leave a bound."""
    h = problem.p - K[np.ix_(row, row)] @ beta - problem.d * beta
    up, low = problem.movable(beta)
    b = problem.violation_and_offsets(beta, h)[1]
    rho = h - b[problem.group] if len(b) else h
    F = np.flatnonzero((up & low) | (up & (rho > 0)) | (low & (rho < 0)))
    members = (problem.group[F] == np.arange(len(problem.totals))[:, None]).astype(np.float64)
    m, n_equalities = len(F), len(members)
    M = np.zeros((m + n_equalities, m + n_equalities))
    M[:m, :m] = K[np.ix_(row[F], row[F])] + np.diag(problem.d[F])
    M[m:, :m], M[:m, m:] = members, members.T
    stepped_beta = beta.copy()
    stepped_beta[F] += np.linalg.lstsq(M, np.append(h[F], np.zeros(n_equalities)), rcond=None)[0][:m]
    return problem.nearest_feasible(stepped_beta)


def solve_linear_by_qp(referee: Referee, start: Point | None, package: str) -> Point:
    """Solve the dual of a linear machine on K = XX' by an outside package; the point is certified with w = X'β."""
    problem, rows, stop = referee.problem, referee.rows, referee.stop
    dual, largest_m = problem.dual, math.isqrt(_LINEAR_BUDGET // _BYTES_PER_ENTRY)
    if dual.n_variables > largest_m:
        raise ValueError(
            f"solver='qp' works on the matrix of all rows, and {dual.n_variables} variables are more than the "
            f"{largest_m} that fit into 1,000 MB; use solver='auto'"
        )
    limit = stop.limit(0)
    if limit is not None:
        point = start or Point(np.zeros(rows.d), 0.0, np.zeros(rows.n))
        point = Point(point.w, point.b, point.beta, 0, limit)
    else:
        K = rows.gram(np.arange(rows.n), np.arange(rows.n))
        if not problem.exact_bias:
            K = K + problem.bias**2
        variables, answer = _feasible_solution(package, dual, K, dual.row, stop)
        beta = sums_by(dual.row, variables, rows.n)
        b = 0.0 if problem.exact_bias else problem.bias**2 * math.fsum(beta.tolist())
        point = Point(rows.transposed(beta), b, beta, answer.steps, answer.reason)
    referee.judge_beta(point)
    return point


def _ridge_refusal(problem: LeastSquares, gram: Gram) -> str | None:
    """Return why a package cannot solve least squares here and which solver to use, or None."""
    if not problem.lam > 0:
        return "solver='qp' needs lam above 0: without a ridge there is no dual; use solver='eigen'"
    return _refusal(len(problem.weight), gram, "auto")


@refuses(_ridge_refusal)
def solve_ridge_by_qp(problem: LeastSquares, gram: Gram, stop: Stop, start: Any = None, *, package: str) -> Proven:
    """Solve least squares by an outside package, one output after the other, and certify the solution."""
    stop.report_progress(lambda: f"{package} on {len(problem.weight):,} variables")
    if stop.limit(0) == "max_time":
        raise TimeoutError("max_time passed before there was a solution: a package has no solution before it ends")
    K = gram.full()
    answers = [_feasible_solution(package, problem.dual(k), K, problem.member, stop) for k in range(problem.n_outputs)]
    C = coefficient_sums(problem, np.column_stack([beta for beta, _ in answers]))
    beta, certificate = certify_solution(problem, gram.proof, C, *gram.proof.product_bound(C))
    reasons = [answer.reason for _, answer in answers]
    reason: StopReason = next((word for word in reasons if word != "converged"), "rounding floor")
    solution = LeastSquaresSolution(
        b=np.array(certificate.b) if problem.bias else np.zeros(problem.n_outputs),
        solver=f"qp:{package}",
        rank=problem.n,
        C=C,
        beta=beta,
        steps=max(1, *(answer.steps for _, answer in answers)),
        stop_reason="converged" if is_exact(problem, certificate) else reason,
    )
    return solution, certificate


@refuses(lambda problem, gram: _refusal(problem.n * problem.n_classes, gram))
def solve_joint_by_qp(
    problem: JointProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    *,
    package: str = DEFAULT,
    shrinking: bool = True,
) -> tuple[Solution, Certificate]:
    """Solve a joint multi-class machine by an outside package, and certify the solution."""
    shape = (problem.n, problem.n_classes)
    beta: Floats = np.zeros(shape) if start is None else start
    stop.report_progress(lambda: f"{package} on {problem.n * problem.n_classes:,} variables")
    limit = stop.limit(0)
    if limit is not None:
        certificate, u = certify_joint(problem, gram.proof, beta, stop.tol)
        return Solution(beta, 0, limit, u=u), certificate
    unit = float(np.median(problem.C))
    program = _joint_program(problem, gram.full(), unit)
    answer = call_package(package, program, stop)
    x = np.where(answer.at_upper, program.upper, np.where(answer.at_lower, program.lower, answer.x))
    beta = np.where(np.isfinite(x), unit * x, 0.0).reshape(shape)
    beta = _within_bounds(problem, beta, answer.at_upper.reshape(shape))
    if problem.balanced:
        b = np.concatenate([answer.b[problem.n :], [0.0]])
        problem = dataclasses.replace(problem, b=np.where(np.isfinite(b), b, 0.0) - b[np.isfinite(b)].mean())
        _, u = certify_joint(problem, gram.proof, beta, stop.tol)
        beta = rebalanced(problem, beta, problem.excess(u, problem.offsets(beta)), 0.5 * stop.tol)
    certificate, u = certify_joint(problem, gram.proof, beta, stop.tol)
    return Solution(beta, answer.steps, answer.verdict(stop.met(certificate)), u=u), certificate


def _joint_program(problem: JointProblem, K: Floats, unit: float) -> QuadraticProgram:
    """Return the problem of `problems.multiclass` as a quadratic program for x = β/unit, a sample's classes adjacent.

    The multipliers of the equalities Σ_i β_ik = 0 are the biases. The last equality follows from the others and is left
    out.
    """
    n, m = problem.n, problem.n_classes
    true_class = np.arange(n), problem.y
    C = problem.C[:, None] / unit
    lower = np.full((n, m), -np.inf) if problem.shared else np.repeat(-C, m, axis=1)
    upper, q = np.zeros((n, m)), np.zeros((n, m))
    lower[true_class], upper[true_class], q[true_class] = -np.inf, C[:, 0] if problem.shared else np.inf, -1.0
    P = np.asarray(np.kron(unit * (K + problem.shift), np.eye(m)), dtype=np.float64)
    A = np.repeat(np.eye(n), m, axis=1)
    if problem.balanced:
        A = np.vstack([A, np.tile(np.eye(m)[:-1], n)])
    return QuadraticProgram(P, q.ravel(), A, np.zeros(len(A)), lower.ravel(), upper.ravel())


def _within_bounds(problem: JointProblem, beta: Floats, at_upper: Flags) -> Floats:
    """Return β inside its bounds; multipliers of a sample at its shared bound are scaled to add up to exactly C."""
    true_class = np.arange(problem.n), problem.y
    alpha = np.maximum(-beta, 0.0)
    alpha[true_class] = 0.0
    total = alpha.sum(axis=1)
    at_bound = at_upper[true_class] & (total > 0) & problem.shared
    alpha[at_bound] *= (problem.C[at_bound] / total[at_bound])[:, None]
    return problem.within_bounds(-alpha)
