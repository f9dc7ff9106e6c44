"""A linear machine by an independent solver of quadratic programs: its dual on K = XX', for few rows and as a check."""

from __future__ import annotations

import math

import numpy as np

from mercer.arrays import sums_by
from mercer.solution import StopReason
from mercer.solvers.dual.qp import BYTES_PER_ENTRY, point_by_qp
from mercer.solvers.linear.outcome import Point
from mercer.solvers.linear.referee import Referee

# Linear machines have no `cache_size`: this is what kernel machines have by default.
_BUDGET_BYTES = 10**9


def solve_linear_by_qp(referee: Referee, begin: Point | None, package: str) -> Point:
    """The package's point, judged with w = X'β; packages do not use where to begin."""
    problem, rows, stop = referee.problem, referee.rows, referee.stop
    dual, most = problem.dual, math.isqrt(_BUDGET_BYTES // BYTES_PER_ENTRY)
    if dual.n_variables > most:
        raise ValueError(
            f"solver='qp' works on the matrix of all rows, and {dual.n_variables} variables are more than the {most} "
            "that fit into 1,000 MB; use solver='auto'"
        )
    point = Point(np.zeros(rows.d), 0.0, np.zeros(rows.n)) if begin is None else begin
    limit: StopReason | None = stop.limit(0)
    if limit is None:
        K = rows.gram(np.arange(rows.n), np.arange(rows.n))
        if not problem.exact_bias:
            K = K + problem.bias**2
        variables, found = point_by_qp(package, dual, K, dual.row, stop)
        beta = sums_by(dual.row, variables, rows.n)
        b = 0.0 if problem.exact_bias else problem.bias**2 * math.fsum(beta.tolist())
        point = Point(rows.transposed(beta), b, beta, found.steps, found.reason)
    referee.judge_beta(point)
    return point if limit is None else Point(point.w, point.b, point.beta, 0, limit)
