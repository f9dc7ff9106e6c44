"""The same dual by an independent interior-point solver (clarabel), for small problems and as a check.

With x = β/unit and P = K[row, row] + diag d, both objectives divided by unit·size:

    minimise  ½ x'(unit/size · P)x − (p/size)'x    subject to  lower ≤ unit·x ≤ upper,  Σ_g unit·x = totals_g

In an interior point every variable is a little off its bound. If a bound's multiplier exceeds its slack, the variable
is put onto the bound. Then the group sums are repaired, and the result gets the same certificate as any other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats, Indices
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify
from mercer.gram.gram import Gram
from mercer.optional import require
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop, StopReason
from mercer.solvers.solver import refuses

# Memory for each entry of P: for P, the solver's upper triangle, its factor and copies (measured: 66 with 1,000
# variables, 64 with 2,000).
_BYTES_PER_ENTRY = 70
# clarabel's tolerances for the gap and for feasibility.
_SOLVER_TOL = 1e-12
_MAX_ITERATIONS = 200


def _refusal(problem: DualProblem, gram: Gram) -> str | None:
    m, most = problem.n_variables, math.isqrt(gram.budget // _BYTES_PER_ENTRY)
    if m > most:
        return (
            f"solver='qp' works on the whole matrix, and {m} variables need about "
            f"{_BYTES_PER_ENTRY * m**2 / 1e6:.0f} MB: at most {most} fit into cache_size={gram.budget / 1e6:.0f} MB. "
            "Use solver='decomposition', or raise cache_size"
        )
    if gram.positive_definite == "no":
        return (
            f"solver='qp' needs a positive semi-definite matrix, and {gram.kernel!r} has a negative eigenvalue on "
            "these samples; use solver='decomposition', which finds a stationary point, or another kernel"
        )
    return None


@refuses(_refusal)
def solve_by_qp(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    report: Report | None = None,
    *,
    shrinking: bool = True,
) -> tuple[Solution, Certificate]:
    """The solution that clarabel finds, and our certificate of it; clarabel uses neither a start nor shrinking."""
    clarabel = require("clarabel", "solver='qp'")
    beta = problem.feasible_start() if start is None else start  # raises where nothing is feasible
    if report is not None:
        report(lambda: f"interior point method on {problem.n_variables:,} variables")
    limit = stop.limit(0)
    if limit is not None:
        certificate, u = certify(problem, gram, beta, stop.tol)
        return Solution(beta, 0, limit, u=u), certificate
    unit, size = _scales(problem, gram)
    lower, upper = problem.lower / unit, problem.upper / unit
    # A x + slack = right side: equalities first, then finite upper bounds, then finite lower ones.
    above, below = np.flatnonzero(np.isfinite(upper)), np.flatnonzero(np.isfinite(lower))
    right = np.concatenate([problem.totals / unit, upper[above], -lower[below]])
    cones = [clarabel.ZeroConeT(len(problem.totals))] if len(problem.totals) else []
    if len(above) + len(below):
        cones.append(clarabel.NonnegativeConeT(len(above) + len(below)))
    P, A = _upper_triangle(problem, gram, unit / size), _constraints(problem, above, below)
    found = clarabel.DefaultSolver(P, -problem.p / size, A, right, cones, _settings(clarabel, stop)).solve()
    beta = _onto_bounds(problem, found, above, below, unit)
    certificate, u = certify(problem, gram, beta, stop.tol)
    return Solution(beta, int(found.iterations), _reason(stop, certificate, str(found.status)), u=u), certificate


def _constraints(problem: DualProblem, above: Indices, below: Indices) -> Any:
    """The matrix of the group sums, the variables with a finite upper bound, and those with a finite lower one."""
    m, inside = problem.n_variables, np.flatnonzero(problem.group >= 0)
    groups = sp.csc_array(
        (np.ones(len(inside)), (problem.group[inside], inside)), shape=(len(problem.totals), m), dtype=np.float64
    )
    eye = sp.eye_array(m, format="csr")
    return sp.csc_matrix(sp.vstack([groups, eye[above], -eye[below]]))


def _scales(problem: DualProblem, gram: Gram) -> tuple[float, float]:
    """A typical width of the box and a typical gradient: the solver's tolerances then mean the same everywhere."""
    width = problem.upper - problem.lower
    width = width[np.isfinite(width) & (width > 0)]
    curvature = float((np.abs(gram.diagonal[problem.row]) + problem.d).mean()) or 1.0
    largest = float(np.abs(problem.p).max())
    unit = float(np.median(width)) if len(width) else (largest or 1.0) / curvature
    return unit, largest or unit * curvature


def _upper_triangle(problem: DualProblem, gram: Gram, factor: float) -> Any:
    rows = np.unique(problem.row)
    where = np.searchsorted(rows, problem.row)
    P = gram.block(rows, rows)[np.ix_(where, where)] if problem.twins else gram.block(rows, rows)
    P[np.diag_indices_from(P)] += problem.d
    P *= factor
    return sp.csc_matrix(np.triu(P))


def _settings(clarabel: Any, stop: Stop) -> Any:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_iter = min(_MAX_ITERATIONS, stop.max_iter)
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _SOLVER_TOL
    if math.isfinite(stop.deadline):
        settings.time_limit = max(1e-3, stop.seconds)
    return settings


def _onto_bounds(problem: DualProblem, found: Any, above: Indices, below: Indices, unit: float) -> Floats:
    """The solver's point with every variable whose bound is active put onto it, and its group sums made right."""
    beta = unit * np.array(found.x)
    slack, price = (np.array(values)[len(problem.totals) :] for values in (found.s, found.z))
    active = price > slack
    top, bottom = above[active[: len(above)]], below[active[len(above) :]]
    beta[top] = problem.upper[top]
    beta[bottom] = problem.lower[bottom]
    return problem.nearest_feasible(beta)


def _reason(stop: Stop, certificate: Certificate, status: str) -> StopReason:
    if stop.met(certificate):
        return "converged"
    # A dict of literals is a dict of str to the checker.
    return {"MaxIterations": "max_iter", "MaxTime": "max_time"}.get(status, "stalled")  # type: ignore[return-value]  # the words are literals
