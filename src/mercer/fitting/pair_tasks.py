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

from mercer.arrays import Flags, Floats, Indices
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
        return self.layout.rows()


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
    """The solutions of dual problems one after another: per variable, and per row of a Gram matrix."""

    def __init__(self, solved: Sequence[Solved]) -> None:
        self._solved = solved
        self._pairs = solved if isinstance(solved, SolvedPairs) else None

    def __len__(self) -> int:
        return len(self._solved)

    @cached_property
    def beta(self) -> Floats:
        return self._pairs.found.beta if self._pairs else self._joined(lambda s: s.solution.beta)

    @cached_property
    def u(self) -> Floats:
        return self._pairs.found.u if self._pairs else self._joined(lambda s: s.solution.u)

    @cached_property
    def rows(self) -> Indices:
        """The merged samples of each problem."""
        return self._pairs.tasks.rows if self._pairs else self._joined(lambda s: s.task.rows)

    @cached_property
    def samples(self) -> Indices:
        """The merged sample of each variable."""
        if self._pairs:
            return self._pairs.tasks.rows
        return np.asarray(
            self._joined(lambda s: s.task.rows[s.task.problem.row] if s.task.problem.twins else s.task.rows)
        )

    @cached_property
    def coefficients(self) -> Floats:
        """What multiplies K, per row."""
        if self._pairs:
            return self._pairs.found.beta
        return np.asarray(self._joined(lambda s: s.task.problem.row_coefficients(s.solution.beta, len(s.task.rows))))

    @cached_property
    def lower(self) -> Floats:
        return self._pairs.tasks.problem.lower if self._pairs else self._joined(lambda s: s.task.problem.lower)

    @cached_property
    def upper(self) -> Floats:
        return self._pairs.tasks.problem.upper if self._pairs else self._joined(lambda s: s.task.problem.upper)

    @cached_property
    def gradient(self) -> Floats:
        if self._pairs:
            return self._pairs.tasks.problem.gradient(self.beta, self.u)
        return np.asarray(self._joined(lambda s: s.task.problem.gradient(s.solution.beta, s.solution.u)))

    @cached_property
    def equalities(self) -> Indices:
        """How many each problem has."""
        if self._pairs:
            return np.full(len(self._solved), len(self._pairs.tasks.problem.totals))
        return np.array([len(s.task.problem.totals) for s in self._solved])

    @cached_property
    def variables(self) -> Indices:
        """Where the variables of each problem begin, and the end."""
        return self._offsets(lambda s: len(s.solution.beta))

    @cached_property
    def row_offsets(self) -> Indices:
        """Where the rows of each problem begin, and the end."""
        return self._offsets(lambda s: len(s.task.rows))

    @property
    def largest_ridge(self) -> float:
        """The largest d of any variable."""
        if self._pairs:
            return float(self._pairs.tasks.problem.d.max(initial=0.0))
        return max((float(s.task.problem.d.max(initial=0.0)) for s in self._solved), default=0.0)

    @cached_property
    def row_tasks(self) -> Indices:
        """The problem of each row."""
        return _owners(self.row_offsets)

    @cached_property
    def variable_tasks(self) -> Indices:
        """The problem of each variable."""
        return _owners(self.variables)

    @cached_property
    def free(self) -> Flags:
        """Which variables are strictly between their bounds."""
        return np.asarray((self.beta > self.lower) & (self.beta < self.upper))

    def _offsets(self, length: Callable[[Solved], int]) -> Indices:
        if self._pairs:
            return self._pairs.tasks.layout.offsets
        return np.array([0, *accumulate(map(length, self._solved))])

    def _joined(self, part: Callable[[Solved], Any]) -> Any:
        parts = [part(s) for s in self._solved]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _owners(offsets: Indices) -> Indices:
    """Which problem each element belongs to."""
    return np.repeat(np.arange(len(offsets) - 1), offsets[1:] - offsets[:-1])
