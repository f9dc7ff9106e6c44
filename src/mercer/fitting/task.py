"""A problem of a fit with the solver that it wants, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mercer.certificates.certificate import Certificate
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Solve
from mercer.solvers.active_set.exact import exactly
from mercer.solvers.dual.pairs import Blocks


@dataclass(frozen=True, eq=False)
class Task:
    """One problem, the solver it wants, with its options bound, and the place where its data live."""

    name: str
    problem: Any
    solve: Solve
    rows: Any = None  # which of the merged samples it is about; None: all
    blocks: Blocks | None = None  # the two class blocks that make up `rows`, where tasks share such blocks
    unit: float = 1.0  # of `tol`: what a violation of 1 is worth in this problem's scale
    place: Callable[[int], Any] | None = None  # from a number of threads; None: the fit's Gram matrix


@dataclass(frozen=True, eq=False)
class Solved:
    """A task with the solution that was found and its proof."""

    task: Task
    solution: Any
    certificate: Certificate


def made_exact(tasks: Sequence[Task]) -> list[Task]:
    """Tasks with solutions whose equations hold to rounding, where there are such."""
    return [replace(t, solve=exactly(t.solve)) if isinstance(t.problem, DualProblem) else t for t in tasks]
