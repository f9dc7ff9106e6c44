"""The dual by an independent solver of quadratic programs, for small problems and as a check.

With x = β/unit and P = K[row, row] + diag d, both objectives divided by unit·size:

    minimise  ½ x'(unit/size · P)x − (p/size)'x    subject to  lower ≤ unit·x ≤ upper,  Σ_g unit·x = totals_g

In an interior point every variable is a little off its bound. If a bound's multiplier exceeds its slack, the variable
is put onto the bound. Then the group sums are repaired, and the result gets the same certificate as any other. If that
misses the tolerance, a Newton step or two on the free variables end what the package has begun.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mercer.arrays import Floats, Indices, megabytes
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem, QuadraticProgram
from mercer.solution import Report, Solution, Stop
from mercer.solvers.qp_packages import DEFAULT, Answer, solve_program
from mercer.solvers.solver import refuses

# Memory for each entry of P: for P, the solver's upper triangle, its factor and copies (clarabel, the hungriest,
# measured: 66 with 1,000 variables, 64 with 2,000).
BYTES_PER_ENTRY = 70
# A solution smaller than this, in the unit of its box, is asked for again in a unit of its own size: a box much wider
# than the solution, as the hard margin's is, would make a package's tolerances coarse beside its numbers.
_SMALL = 0.1
# Newton steps that a point which misses tol gets at most; each must make its violation smaller. They end what a package
# has all but solved, and no more: one that is wrong is found out.
_POLISHINGS = 3
_LIMITS = ("max_iter", "max_time")


def refusal(m: int, gram: Gram, other: str = "decomposition") -> str | None:
    """Why m variables on these samples cannot be solved as a quadratic program, and which solver can."""
    most = math.isqrt(gram.budget // BYTES_PER_ENTRY)
    if m > most:
        return (
            f"solver='qp' works on the whole matrix, and {m} variables need about "
            f"{megabytes(BYTES_PER_ENTRY * m**2)}: at most {most} fit into cache_size={megabytes(gram.budget)}. "
            f"Use solver={other!r}, or raise cache_size"
        )
    if gram.positive_definite == "no":
        return (
            f"solver='qp' needs a positive semi-definite matrix, and {gram.kernel!r} has a negative eigenvalue on "
            f"these samples; use solver={other!r}, which finds a stationary point, or another kernel"
        )
    return None


@refuses(lambda problem, gram: refusal(problem.n_variables, gram))
def solve_by_qp(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    report: Report | None = None,
    *,
    package: str = DEFAULT,
    shrinking: bool = True,
) -> tuple[Solution, Certificate]:
    """The solution that a package finds, and our certificate of it; packages use neither a start nor shrinking."""
    beta = problem.feasible_start() if start is None else start  # raises where nothing is feasible
    if report is not None:
        report(lambda: f"{package} on {problem.n_variables:,} variables")
    limit = stop.limit(0)
    if limit is not None:
        certificate, u = certify(problem, gram, beta, stop.tol)
        return Solution(beta, 0, limit, u=u), certificate
    rows, where = np.unique(problem.row, return_inverse=True)
    K = gram.block(rows, rows)
    beta, found = point_by_qp(package, problem, K, where, stop)
    certificate, u = certify(problem, gram, beta, stop.tol)
    for _ in range(_POLISHINGS if found.reason not in _LIMITS else 0):
        if stop.met(certificate):
            break
        polished = _polished(problem, K, where, beta)
        proof, product = certify(problem, gram, polished, stop.tol)
        if not proof.violation < certificate.violation:
            break
        beta, certificate, u = polished, proof, product
    return Solution(beta, found.steps, found.verdict(stop.met(certificate)), u=u), certificate


def point_by_qp(package: str, problem: DualProblem, K: Floats, where: Indices, stop: Stop) -> tuple[Floats, Answer]:
    """The package's β, made feasible, and its answer; `where` is the row of K of each variable."""
    unit, size = _scales(problem, K.diagonal()[where])
    P = K[np.ix_(where, where)]
    P[np.diag_indices_from(P)] += problem.d
    P *= unit / size
    A = (problem.group == np.arange(len(problem.totals))[:, None]).astype(np.float64)

    def ask(stop: Stop) -> Answer:
        box = problem.lower / unit, problem.upper / unit
        return solve_program(package, QuadraticProgram(P, -problem.p / size, A, problem.totals / unit, *box), stop)

    found = ask(stop)
    largest = float(np.abs(found.x).max(initial=0.0))
    if found.reason not in _LIMITS and 0 < largest < _SMALL:
        P *= largest
        unit *= largest
        again = ask(stop.after(found.steps))
        found = replace(again, steps=found.steps + again.steps)
    # In an interior point every variable is off its bounds. Afterwards the sums have to be made right.
    beta = np.where(found.at_upper, problem.upper, np.where(found.at_lower, problem.lower, unit * found.x))
    return problem.nearest_feasible(beta), found


def _polished(problem: DualProblem, K: Floats, where: Indices, beta: Floats) -> Floats:
    """β after one Newton step of the variables that are free, or at a bound that they should leave; made feasible."""
    h = problem.p - K[np.ix_(where, where)] @ beta - problem.d * beta
    up, low = problem.movable(beta)
    b = problem.violation_and_offsets(beta, h)[1]
    rho = h - b[problem.group] if len(b) else h
    F = np.flatnonzero((up & low) | (up & (rho > 0)) | (low & (rho < 0)))
    members = (problem.group[F] == np.arange(len(problem.totals))[:, None]).astype(np.float64)
    m, equal = len(F), len(members)
    M = np.zeros((m + equal, m + equal))
    M[:m, :m] = K[np.ix_(where[F], where[F])] + np.diag(problem.d[F])
    M[m:, :m], M[:m, m:] = members, members.T
    moved = beta.copy()
    moved[F] += np.linalg.lstsq(M, np.append(h[F], np.zeros(equal)), rcond=None)[0][:m]
    return problem.nearest_feasible(moved)


def _scales(problem: DualProblem, diagonal: Floats) -> tuple[float, float]:
    """A typical width of the box and a typical gradient: the solver's tolerances then mean the same everywhere."""
    width = problem.upper - problem.lower
    width = width[np.isfinite(width) & (width > 0)]
    curvature = float((np.abs(diagonal) + problem.d).mean()) or 1.0
    largest = float(np.abs(problem.p).max())
    unit = float(np.median(width)) if len(width) else (largest or 1.0) / curvature
    return unit, largest or unit * curvature
