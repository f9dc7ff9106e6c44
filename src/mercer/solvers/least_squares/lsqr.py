"""Linear least squares by products with X alone (Paige and Saunders's LSQR): for d too large for a d × d matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg as spla

from mercer.arrays import Floats
from mercer.problems.least_squares import LeastSquares


def solve_by_lsqr(X: Any, problem: LeastSquares, lam: float) -> tuple[Floats, Floats, int]:
    """w and b of min Σ w_i (y_i − ⟨w, x_i⟩ − b)² + λ‖w‖², and the iterations made; X stays as it is."""
    total = problem.total
    root = np.sqrt(total)
    mass = float(total.sum())
    centre = np.asarray(X.T @ total).ravel() / mass if problem.bias else np.zeros(X.shape[1])
    y = total @ problem.mean / mass if problem.bias else np.zeros(problem.n_outputs)

    def times(v: Floats) -> Floats:
        return np.asarray(root * (X @ v - centre @ v))

    def transposed(v: Floats) -> Floats:
        v = root * v
        return np.asarray(X.T @ v - centre * v.sum())

    A = spla.LinearOperator(X.shape, matvec=times, rmatvec=transposed, dtype=np.float64)
    columns, most = [], 0
    for k in range(problem.n_outputs):
        target = root * (problem.mean[:, k] - y[k])
        found = spla.lsqr(A, target, damp=np.sqrt(lam), atol=1e-15, btol=1e-15, conlim=0, iter_lim=20 * min(X.shape))
        columns.append(found[0])
        most = max(most, int(found[2]))
    W = np.column_stack(columns)
    return W, y - centre @ W, most
