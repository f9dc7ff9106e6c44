"""Linear least squares by products with X alone (Paige and Saunders's LSQR): for d too large for a d × d matrix."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse.linalg as spla

from mercer import _core
from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import certify_weights
from mercer.gram.gram import Gram
from mercer.gram.linear_gram import LinearGram
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Report, Stop
from mercer.solvers.least_squares.in_time import in_time
from mercer.solvers.least_squares.solution import LeastSquaresSolution

# LSQR has no bound of its own on the error; a violation below this share of the targets and the bias will do.
_VIOLATION_SHARE = 1e-6
# In exact arithmetic min(n, d) iterations are enough; rounding can ask for a multiple of that.
_ITERATIONS_PER_DIRECTION = 20


def solve_lsqr(
    problem: LeastSquares, gram: Gram, stop: Stop, start: Any = None, report: Report | None = None
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution for a linear kernel, as exact as LSQR gets it, whatever `stop` asks for."""
    linear = LinearGram.of(gram)
    assert linear is not None
    if report is not None:
        report(partial("{} outputs of {:,} samples by LSQR".format, problem.n_outputs, problem.n))
    with in_time(stop):
        W, b, steps = _weights(linear, problem)
    beta, certificate = certify_weights(problem, linear, W, b)
    size = np.abs(problem.Y).max() + np.abs(b).max(initial=0.0)
    reached = problem.lam == 0 or certificate.violation <= _VIOLATION_SHARE * size
    solution = LeastSquaresSolution(
        b=b,
        solver="lsqr",
        rank=min(linear.X.shape),
        W=W,
        beta=beta,
        steps=steps,
        stop_reason="converged" if reached else "rounding floor",
    )
    return solution, certificate


def _weights(linear: LinearGram, problem: LeastSquares) -> tuple[Floats, Floats, int]:
    """w and b of min Σ w_i (y_i − ⟨w, x_i⟩ − b)² + λ‖w‖², and the iterations made; X stays as it is."""
    X, total = linear.X, problem.total
    root = np.sqrt(total)
    mass = float(total.sum())
    centre = np.asarray(X.T @ total).ravel() / mass if problem.bias else np.zeros(X.shape[1])
    y = total @ problem.mean / mass if problem.bias else np.zeros(problem.n_outputs)

    def times(v: Floats) -> Floats:
        _core.check_stop()
        return np.asarray(root * (X @ v - centre @ v))

    def transposed(v: Floats) -> Floats:
        v = root * v
        return np.asarray(X.T @ v - centre * v.sum())

    A = spla.LinearOperator(X.shape, matvec=times, rmatvec=transposed, dtype=np.float64)
    damp, most = np.sqrt(problem.lam / linear.scale), _ITERATIONS_PER_DIRECTION * min(X.shape)
    columns, steps = [], 0
    for k in range(problem.n_outputs):
        target = root * (problem.mean[:, k] - y[k])
        found = spla.lsqr(A, target, damp=damp, atol=1e-15, btol=1e-15, conlim=0, iter_lim=most)
        columns.append(found[0])
        steps = max(steps, int(found[2]))
    W = np.column_stack(columns)
    return W, y - centre @ W, steps
