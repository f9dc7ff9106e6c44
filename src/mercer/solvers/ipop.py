"""Quadratic programs in the form of kernlab's `ipop`, solved by an outside package, with a lower bound on the minimum.

    minimise  c'x + ½x'Hx    subject to  b ≤ Ax ≤ b + r,  l ≤ x ≤ u

Let q be the objective and g = Hx + c. Any feasible z has q(z) ≥ q(x) + g'(z − x), and for any multipliers y of
Az = b + s

    g'(z − x) ≥ Σ_j min over [l_j, u_j] of (g − A'y)_j (z_j − x_j) + Σ_i min over [0, r_i] of y_i s_i − y'(Ax − b)

This needs a positive semi-definite H, and finite l_j and u_j wherever (g − A'y)_j is not zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mercer.problems.dual_problem import QuadraticProgram
from mercer.runtime.parameters import one_of
from mercer.samples.arrays import Floats
from mercer.solvers.qp import NAMES, call_package
from mercer.solvers.solution import Stop


class QPAnswer(NamedTuple):
    """Solution of a quadratic program, and a lower bound on the minimum.

    Attributes
    ----------
    x, y : array
        Solution, and multipliers of Ax.
    value, bound : float
        Objective c'x + ½x'Hx, and a lower bound on it over all feasible points, up to rounding.
    outside : float
        Largest violation of b ≤ Ax ≤ b + r.
    """

    x: Floats
    y: Floats
    value: float
    bound: float
    outside: float


def ipop(
    c: ArrayLike,
    H: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    l: ArrayLike,
    u: ArrayLike,
    r: ArrayLike,
    *,
    solver: str = "qp",
) -> QPAnswer:
    """Minimise c'x + ½x'Hx subject to b ≤ Ax ≤ b + r and l ≤ x ≤ u; needs the extra `qp`.

    Parameters
    ----------
    c : array of shape (n,)
        Linear coefficients of the objective.
    H : array of shape (n, n)
        Quadratic coefficients of the objective, symmetric and positive semi-definite.
    A : array of shape (m, n)
        Coefficients of the constraints, one row for each.
    b, r : arrays of shape (m,)
        Lower bounds on Ax and widths of the ranges, all finite; r = 0 makes a row an equality.
    l, u : arrays of shape (n,), or numbers
        Bounds on x; they may be infinite.
    solver : {"qp", "qp:piqp", "qp:quadprog", "qp:osqp", "qp:cvxopt"}, default="qp"
        Package that solves the program; "qp" is clarabel.

    Returns
    -------
    QPAnswer
        ``x``, the solution, and ``y``, the multipliers of Ax; ``value``, c'x + ½x'Hx, and ``bound``, a lower bound on
        it over all feasible points, up to rounding, so that `value - bound` is the duality gap; ``outside``, the
        largest violation of b ≤ Ax ≤ b + r.

    Examples
    --------
    >>> from mercer.notes.teaching import ipop
    >>> answer = ipop([-1.0, -1.0], [[2.0, 0.0], [0.0, 2.0]], [[1.0, 1.0]], [0.0], 0.0, 1.0, [0.5])
    >>> answer.x.round(6), round(answer.value, 6), bool(answer.value - answer.bound < 1e-6)
    (array([0.25, 0.25]), -0.375, True)
    """
    one_of("solver", solver, tuple(NAMES))
    c, H, A, b, r = (np.asarray(part, dtype=np.float64) for part in (c, H, A, b, r))
    n, m = len(c), len(b)
    low, high = (np.broadcast_to(np.asarray(part, dtype=np.float64), (n,)) for part in (l, u))
    if H.shape != (n, n) or A.shape != (m, n) or r.shape != (m,) or not np.array_equal(H, H.T):
        raise ValueError(
            f"H must be symmetric and {n} × {n}, A {m} × {n}, and r have {m} entries, to match c and b; their "
            f"shapes are {H.shape}, {A.shape} and {r.shape}"
        )
    if not all(np.isfinite(part).all() for part in (c, H, A, b, r)) or (r < 0).any() or not (low <= high).all():
        raise ValueError("c, H, A, b and r must be finite, r at least 0, and l at most u")
    P = np.zeros((n + m, n + m))  # over (x, s) with s = Ax − b between 0 and r
    P[:n, :n] = H
    program = QuadraticProgram(
        P, np.append(c, np.zeros(m)), np.hstack([A, -np.eye(m)]), b, np.append(low, np.zeros(m)), np.append(high, r)
    )
    answer = call_package(NAMES[solver], program, Stop(tol=1e-9, max_iter=10**6))
    x = np.clip(answer.x[:n], low, high)
    if not np.isfinite(x).all():
        raise ValueError(
            f"{NAMES[solver]} found no x: are the constraints contradictory, or H not positive semi-definite?"
        )
    y, s, gradient = -answer.b, A @ x - b, H @ x + c
    slope = gradient - A.T @ y
    value = float(c @ x + 0.5 * x @ H @ x)
    with np.errstate(invalid="ignore"):
        lowest = np.where(slope == 0, 0.0, np.minimum(slope * (low - x), slope * (high - x)))
    bound = value + float(lowest.sum()) + float(np.minimum(0.0, y * r).sum()) - float(y @ s)
    infeasibility = float(np.maximum(-s, s - r).max(initial=0.0))
    return QPAnswer(x, y, value, bound if np.isfinite(bound) else -np.inf, max(0.0, infeasibility))
