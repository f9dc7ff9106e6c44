"""Linear least squares by products with X alone (Paige and Saunders's LSQR): for d too large for a d × d matrix."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse.linalg as spla

from mercer import _core
from mercer.arrays import Floats, is_sparse
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import is_exact
from mercer.certificates.weights import certify_weights
from mercer.gram.gram import Gram
from mercer.gram.linear_gram import LinearGram
from mercer.kernels.used_columns import widened, without_empty_columns
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Report, Stop
from mercer.solvers.deadline import in_time
from mercer.solvers.least_squares.covariance import only_linear
from mercer.solvers.least_squares.solution import LeastSquaresSolution
from mercer.solvers.solver import refuses

# Each round solves for what the last one left; the second finds little more than rounding.
_ROUNDS = 4
# In exact arithmetic min(n, d) iterations are enough; rounding can ask for a multiple of that.
_ITERATIONS_PER_DIRECTION = 20


@refuses(only_linear("lsqr"))
def solve_lsqr(
    problem: LeastSquares, gram: Gram, stop: Stop, start: Any = None, report: Report | None = None
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution for a linear kernel, as exact as LSQR gets it, whatever `stop` asks for."""
    wide = gram.linear
    assert wide is not None
    X, used = without_empty_columns(wide.X)
    linear = LinearGram(X, wide.scale)
    if report is not None:
        report(partial("{} outputs of {:,} samples by LSQR".format, problem.n_outputs, problem.n))
    with in_time(stop):
        W, b, centre, steps = _weights(linear, problem)
    beta, certificate = certify_weights(problem, linear, W, b, None if is_sparse(linear.X) else centre)
    solution = LeastSquaresSolution(
        b=b,
        solver="lsqr",
        rank=min(wide.X.shape),
        W=widened(W.T, used, wide.X.shape[1]).T,
        beta=beta,
        steps=steps,
        stop_reason="converged" if is_exact(problem, certificate) else "rounding floor",
    )
    return solution, certificate


def _weights(linear: LinearGram, problem: LeastSquares) -> tuple[Floats, Floats, Floats | None, int]:
    """w and b of min Σ w_i (y_i − ⟨w, x_i⟩ − b)² + λ‖w‖², the samples' mean, and the iterations made; X stays as it is.

    Features are scaled to equal length, with the ridge as d more rows, and what rounding left is solved for again.
    """
    X, total = linear.X, problem.total
    n, d = X.shape
    root, mass = np.sqrt(total), float(total.sum())
    centre = np.asarray(X.T @ total).ravel() / mass if problem.bias else np.zeros(d)
    y = problem.weight @ problem.Y / mass if problem.bias else np.zeros(problem.n_outputs)
    lam = problem.lam / linear.scale
    about = None if is_sparse(X) else centre
    length = np.abs(linear.transposed_squares(total, about) - (mass * centre**2 if is_sparse(X) else 0.0)) + lam
    unit = np.divide(1.0, np.sqrt(length), out=np.zeros(d), where=length > 0)
    ridge = np.sqrt(lam) * unit

    def times(v: Floats) -> Floats:
        _core.check_stop()
        v = v.reshape(-1)
        w = unit * v
        return np.concatenate([root * (X @ w - centre @ w), ridge * v])

    def transposed(v: Floats) -> Floats:
        v = v.reshape(-1)
        above = root * v[:n]
        return np.asarray(unit * (X.T @ above - centre * above.sum()) + ridge * v[n:])

    A = spla.LinearOperator((n + d, d), matvec=times, rmatvec=transposed, dtype=np.float64)
    most = _ITERATIONS_PER_DIRECTION * min(X.shape)
    columns, steps = [], 0
    for k in range(problem.n_outputs):
        target = np.concatenate([root * (problem.mean[:, k] - y[k]), np.zeros(d)])
        z, slope = np.zeros(d), np.inf
        for _ in range(_ROUNDS):
            left = target - times(z)
            now = float(np.linalg.norm(transposed(left)))
            if not now < 0.5 * slope:
                break
            slope = now
            found = spla.lsqr(A, left, atol=1e-15, btol=1e-15, conlim=0, iter_lim=most)
            z = z + found[0]
            steps += int(found[2])
        columns.append(unit * z)
    W = np.column_stack(columns)
    return W, y - centre @ W, centre if problem.bias else None, steps
