"""The dual through two independent interior-point solvers, clarabel and piqp.

    minimise  ½ x'Px − q'x    subject to  lower ≤ x ≤ upper,  Ax = totals

with P = K[row, row] + diag d. Infinite bounds are left out; x is measured in units of a typical box width, so
that the solvers' absolute tolerances mean the same for every C.
"""

import contextlib

import clarabel
import numpy as np
import piqp
from scipy import sparse

SIZE_LIMIT = 400


class Unsolved(RuntimeError):
    """The interior-point solver gave up: the problem is too ill-conditioned for it."""


def _matrices(problem, K):
    m = len(problem.p)
    if m > 2 * SIZE_LIMIT:
        raise ValueError(f"{m} variables; the reference is meant for at most {2 * SIZE_LIMIT}")
    row = np.asarray(problem.row)
    P = np.asarray(K, dtype=np.float64)[np.ix_(row, row)] + np.diag(problem.d)
    A = np.array([problem.group == g for g in range(len(problem.totals))], dtype=np.float64).reshape(-1, m)
    width = problem.upper - problem.lower
    width = width[np.isfinite(width) & (width > 0)]
    unit = float(np.median(width)) if len(width) else 1.0
    return (
        P * unit,
        np.asarray(problem.p),
        A,
        problem.totals / unit,
        problem.lower / unit,
        problem.upper / unit,
        unit,
    )


def _finish(problem, K, x, unit):
    beta = np.clip(x * unit, problem.lower, problem.upper)
    spread = np.zeros(len(K))
    np.add.at(spread, problem.row, beta)
    u = np.asarray(K) @ spread
    value = beta @ problem.p - beta @ u[problem.row] / 2 - beta @ (problem.d * beta) / 2
    return float(value), beta


def by_clarabel(problem, K):
    """The pair (dual value, β), or Unsolved."""
    P, q, A, totals, lower, upper, unit = _matrices(problem, K)
    m, n_equal = len(q), len(totals)
    eye = sparse.eye(m, format="csc")
    above, below = np.isfinite(upper), np.isfinite(lower)
    constraints = sparse.vstack([sparse.csc_matrix(A), eye[above], -eye[below]], format="csc")
    bounds = np.concatenate([totals, upper[above], -lower[below]])
    cones = [clarabel.ZeroConeT(n_equal)] if n_equal else []
    cones.append(clarabel.NonnegativeConeT(int(above.sum() + below.sum())))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.max_threads = 1
    options.max_iter = 500
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    found = clarabel.DefaultSolver(sparse.triu(P, format="csc"), -q, constraints, bounds, cones, options).solve()
    if found.status != clarabel.SolverStatus.Solved:
        raise Unsolved(f"clarabel: {found.status}")
    return _finish(problem, K, np.array(found.x), unit)


def by_piqp(problem, K):
    """The pair (dual value, β), or Unsolved."""
    P, q, A, totals, lower, upper, unit = _matrices(problem, K)
    solver = piqp.DenseSolver()
    solver.settings.verbose = False
    solver.settings.max_iter = 1000
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.check_duality_gap = True
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-11
    solver.setup(P, -q, A if len(totals) else None, totals if len(totals) else None, x_l=lower, x_u=upper)
    status = solver.solve()
    if status != piqp.PIQP_SOLVED:
        raise Unsolved(f"piqp: {status}")
    return _finish(problem, K, np.array(solver.result.x), unit)


SOLVERS = {"clarabel": by_clarabel, "piqp": by_piqp}


def by_every_solver(problem, K, at_least=1):
    """(dual value, β) of each interior-point solver that reports success, of which there must be some."""
    found = {}
    for name, solve in SOLVERS.items():
        with contextlib.suppress(Unsolved):
            found[name] = solve(problem, K)
    assert len(found) >= at_least, "no QP solver finished"
    return found
