"""The pairs of a one-against-one machine as arrays for all of them, and objects for those that are asked for.

A thousand classes have half a million pairs of a few samples each. Whoever reads many tasks or solutions does so
through `Joined`, which has the same arrays for a list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, overload

import numpy as np

from mercer.arrays import Floats, Indices
from mercer.certificates.certificate import Certificate
from mercer.fitting.task import Solved, Task
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Solution, Solve, StopReason
from mercer.solvers.dual.pairs import Layout, Together


@dataclass(frozen=True, eq=False)
class PairTasks(Sequence[Task]):
    """One task per pair of classes; the variables of all, one pair after another, make up `problem`."""

    problem: DualProblem
    layout: Layout
    name_of: Callable[[int], str]
    solver_of: Callable[[Indices, DualProblem], Solve]
    together: bool  # whether small pairs may be solved in one call

    def __len__(self) -> int:
        return self.layout.n

    @overload
    def __getitem__(self, k: int) -> Task: ...
    @overload
    def __getitem__(self, k: slice) -> list[Task]: ...
    def __getitem__(self, k: int | slice) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        k = range(len(self))[k]
        begin, end = self.layout.offsets[k], self.layout.offsets[k + 1]
        problem, rows = self.problem.some(slice(begin, end)), self.rows[begin:end]
        first = int(np.diff(self.layout.starts)[self.layout.pairs[2 * k]])
        blocks = (rows[:first], rows[first:]) if self.together else None
        return Task(self.name_of(k), problem, self.solver_of(rows, problem), rows, blocks)

    @cached_property
    def rows(self) -> Indices:
        """The merged sample of each variable."""
        return self.layout.rows


@dataclass(frozen=True, eq=False)
class SolvedPairs(Sequence[Solved]):
    """What was found for all pairs."""

    tasks: PairTasks
    found: Together
    reasons: dict[int, StopReason] = field(default_factory=dict)  # of pairs that did not converge

    def __len__(self) -> int:
        return len(self.tasks)

    @overload
    def __getitem__(self, k: int) -> Solved: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Solved]: ...
    def __getitem__(self, k: int | slice) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        k = range(len(self))[k]
        cut = slice(*self.tasks.layout.offsets[k : k + 2].tolist())
        reason: StopReason = self.reasons.get(k, "converged")
        solution = Solution(self.found.beta[cut], int(self.found.steps[k]), reason, u=self.found.u[cut])
        return Solved(self.tasks[k], solution, self.found.certificates[k])

    def put(self, k: int, solved: Solved) -> None:
        """Pair k was solved by itself."""
        cut, solution = slice(*self.tasks.layout.offsets[k : k + 2].tolist()), solved.solution
        self.found.beta[cut], self.found.u[cut], self.found.steps[k] = solution.beta, solution.u, solution.steps
        self.found.certificates.put(k, solved.certificate)
        if solution.stop_reason != "converged":
            self.reasons[k] = solution.stop_reason


def certificate_of(solved: Sequence[Solved]) -> Certificate:
    """One certificate for all."""
    if isinstance(solved, SolvedPairs):
        return solved.found.certificates.total()
    return Certificate.total([s.certificate for s in solved])


def reasons_of(solved: Sequence[Solved]) -> list[StopReason]:
    """Why those that did not converge ended."""
    if isinstance(solved, SolvedPairs):
        return [solved.reasons[k] for k in sorted(solved.reasons)]
    return [s.solution.stop_reason for s in solved if s.solution.stop_reason != "converged"]


def reason_of(solved: Sequence[Solved]) -> StopReason:
    """Why the first that did not converge ended, or "converged"."""
    return next(iter(reasons_of(solved)), "converged")


def steps_of(solved: Sequence[Solved]) -> Indices:
    """How many steps each took."""
    if isinstance(solved, SolvedPairs):
        return solved.found.steps
    return np.array([s.solution.steps for s in solved], dtype=np.int64)


class Joined:
    """The solutions of dual problems one after another.

    Per variable, those of problem k before variables[k + 1]: `beta`, `lower`, `upper`, and the merged samples,
    `samples`. Per row of a problem's Gram matrix, before row_ends[k + 1]: what multiplies K, `coefficients`, and the
    merged samples, `rows`.
    """

    def __init__(self, solved: Sequence[Solved]) -> None:
        self._solved = solved
        if isinstance(solved, SolvedPairs):
            found, problem = solved.found, solved.tasks.problem
            self.beta = self.coefficients = found.beta
            self.lower, self.upper = problem.lower, problem.upper
            self.samples = self.rows = solved.tasks.rows
            self.variables = self.row_ends = solved.tasks.layout.offsets
            return
        problems = [s.task.problem for s in solved]
        self.beta = _joined([s.solution.beta for s in solved])
        self.lower = _joined([problem.lower for problem in problems])
        self.upper = _joined([problem.upper for problem in problems])
        self.variables = np.array([0, *accumulate(len(s.solution.beta) for s in solved)])
        self.rows = _joined([s.task.rows for s in solved])
        if not any(problem.twins for problem in problems):
            self.coefficients, self.samples, self.row_ends = self.beta, self.rows, self.variables
            return
        self.coefficients = _joined(
            [s.task.problem.row_coefficients(s.solution.beta, len(s.task.rows)) for s in solved]
        )
        self.samples = _joined([s.task.rows[s.task.problem.row] for s in solved])
        self.row_ends = np.array([0, *accumulate(len(s.task.rows) for s in solved)])

    def __len__(self) -> int:
        return len(self._solved)

    @property
    def u(self) -> Floats:
        """Kβ, per row."""
        if isinstance(self._solved, SolvedPairs):
            return self._solved.found.u
        return np.asarray(_joined([s.solution.u for s in self._solved]))

    @property
    def gradient(self) -> Floats:
        """Per variable."""
        if isinstance(self._solved, SolvedPairs):
            return self._solved.tasks.problem.gradient(self.beta, self.u)
        return np.asarray(_joined([s.task.problem.gradient(s.solution.beta, s.solution.u) for s in self._solved]))

    @property
    def equalities(self) -> Indices:
        """How many each problem has."""
        if isinstance(self._solved, SolvedPairs):
            return np.full(len(self._solved), len(self._solved.tasks.problem.totals))
        return np.array([len(s.task.problem.totals) for s in self._solved])

    @property
    def largest_ridge(self) -> float:
        """The largest d of any variable."""
        return float(self.d.max(initial=0.0))

    @property
    def d(self) -> Floats:
        """Per variable."""
        return self._of_problems("d")

    @property
    def p(self) -> Floats:
        """Per variable."""
        return self._of_problems("p")

    def _of_problems(self, name: str) -> Floats:
        if isinstance(self._solved, SolvedPairs):
            return np.asarray(getattr(self._solved.tasks.problem, name))
        return np.asarray(_joined([getattr(s.task.problem, name) for s in self._solved]))


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
