"""The linear kernel on fewer columns than rows: the same machine, trained in (w, b) where pairs of rows would crawl."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mercer.arrays import Indices, take
from mercer.fitting.fit import Fit
from mercer.gram.linear_rows import LinearRows
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.linear.direction import few_columns
from mercer.solvers.linear.dual_kernel import linear_problem, solve_by_rows


def linear_way(machine: Any, fit: Fit, rows: Indices, problem: DualProblem) -> Callable[..., Any] | None:
    """The solver in (w, b) for a task of this machine, if its kernel and data make it a linear machine's."""
    if not isinstance(machine.kernel, str) or machine.kernel != "linear" or fit.constant:
        return None
    if getattr(machine, "solver", "auto") != "auto" or not few_columns(len(rows), fit.merged.X.shape[1]):
        return None
    linear = linear_problem(problem)
    if linear is None:
        return None
    X, n_threads = fit.merged.X, fit.limits.n_threads
    return partial(solve_by_rows, linear=linear, rows_of=lambda: LinearRows(take(X, rows), n_threads))
