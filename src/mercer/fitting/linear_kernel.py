"""The linear kernel on fewer columns than rows: the same machine, trained in (w, b) where pairs of rows would crawl."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.arrays import Indices, take
from mercer.certificates.certificate import Certificate
from mercer.data.merging import Merged
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Solution
from mercer.solvers.linear.direction import few_columns
from mercer.solvers.linear.dual_kernel import by_rows, linear_problem
from mercer.threads import effective_n_threads


def linear_way(
    machine: Any, merged: Merged, rows: Indices, problem: DualProblem
) -> Callable[..., tuple[Solution, Certificate]] | None:
    """How a task of this machine is solved if its kernel and data make it a linear machine's, or None."""
    if not isinstance(machine.kernel, str) or machine.kernel != "linear" or machine.bias == "regularized":
        return None
    if machine.solver != "auto" or not few_columns(len(rows), merged.X.shape[1]):
        return None
    linear = linear_problem(problem)
    return None if linear is None else by_rows(take(merged.X, rows), linear, effective_n_threads(machine.n_jobs))
