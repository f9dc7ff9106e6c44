"""The pairs of a one-against-one machine as arrays for all of them, and objects for those that are asked for.

A thousand classes have half a million pairs of a few samples each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, is_sparse
from mercer.certificates.certificate import Certificate
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.task import Solutions, Solved, Task, Tasks
from mercer.fitting.pipeline.telling import Progress
from mercer.gram.pair_place import Layout
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Solution, Solve, Stop, StopReason
from mercer.solvers.dual.pairs import PairResults, fitting_pairs, solve_together


class PairTasks(Tasks):
    """One task per pair of classes; the variables of all, one pair after another, make up `problem`.

    `together` says whether small pairs may be solved in one call.
    """

    def __init__(
        self,
        problem: DualProblem,
        layout: Layout,
        name_of: Callable[[int], str],
        solver_of: Callable[[Indices, DualProblem], Solve],
        together: bool,
    ) -> None:
        self.problem, self.layout, self.together = problem, layout, together
        self._name_of, self._solver_of = name_of, solver_of

    def __len__(self) -> int:
        return self.layout.n

    def __getitem__(self, k: int | slice) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        k = range(len(self))[k]
        begin, end = self.layout.offsets[k], self.layout.offsets[k + 1]
        problem, rows = self.problem.some(slice(begin, end)), self.layout.rows[begin:end]
        first = int(np.diff(self.layout.starts)[self.layout.pairs[2 * k]])
        blocks = (rows[:first], rows[first:]) if self.together else None
        return Task(self._name_of(k), problem, self._solver_of(rows, problem), rows, blocks)

    def __iter__(self) -> Iterator[Task]:
        return map(self.__getitem__, range(len(self)))

    def places(self, fit: Fit, n_threads: int) -> list[Any]:
        return [fit.gram(n_threads)] * len(self)

    @property
    def share_gram(self) -> bool:
        return len(self) > 1

    def in_one_call(self, gram: Any, fit: Fit, n_threads: int, progress: Progress) -> Solutions:
        which = fitting_pairs(self.problem, self.layout, is_sparse(fit.X))
        if not self.together or len(which) < 2:
            return Solutions(self)
        progress.begin("")(partial("{:,} pairs of classes in one call".format, len(which)))
        found = self._solve(which, gram, fit.limits.stop, n_threads)
        return Solutions(self) if found is None else PairSolutions(self, found, which)

    def _solve(self, which: Indices, gram: Any, stop: Stop, n_threads: int) -> PairResults | None:
        """What one call for these pairs has reached; the others have zeros."""
        problem, layout = self.problem, self.layout
        if len(which) == layout.n:
            return solve_together(problem, layout, gram, stop, n_threads)
        found = solve_together(problem.some(layout.variables(which)), layout.of_pairs(which), gram, stop, n_threads)
        return None if found is None else found.among(layout, which)


class PairSolutions(Solutions):
    """What was found for all pairs, of which `which` were solved, or begun, in one call."""

    def __init__(self, tasks: PairTasks, found: PairResults, which: Indices) -> None:
        self.tasks: PairTasks = tasks
        self._results = found
        self._reasons: dict[int, StopReason] = {}
        unsolved = which[~found.solved[which]].tolist()
        left = np.flatnonzero(~found.solved).tolist()
        if found.over:
            self._reasons.update(dict.fromkeys(unsolved, "max_time"))
            self._left, self._begun = sorted(set(left) - set(unsolved)), set[int]()
        else:
            self._left, self._begun = left, set(unsolved)
        self.beta = self.coefficients = found.beta
        self.lower, self.upper = tasks.problem.lower, tasks.problem.upper
        self.samples = self.rows = tasks.layout.rows
        self.variables = self.row_ends = tasks.layout.offsets

    def __getitem__(self, k: int | slice) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        k = range(len(self))[k]
        cut, found, reason = self._cut(k), self._results, self._reasons.get(k, "converged")
        solution = Solution(found.beta[cut], int(found.steps[k]), reason, u=found.u[cut])
        return Solved(self.tasks[k], solution, found.certificates[k])

    def __iter__(self) -> Iterator[Solved]:
        return map(self.__getitem__, range(len(self)))

    def _cut(self, k: int) -> slice:
        """The variables of a pair."""
        return slice(*self.tasks.layout.offsets[k : k + 2].tolist())

    @property
    def left(self) -> Sequence[int]:
        return self._left

    def begun(self, k: int) -> tuple[Floats | None, int]:
        if k not in self._begun:
            return None, 0
        return self._results.beta[self._cut(k)], int(self._results.steps[k])

    def put(self, k: int, solved: Solved) -> None:
        cut, solution, found = self._cut(k), solved.solution, self._results
        found.beta[cut], found.u[cut], found.steps[k] = solution.beta, solution.u, solution.steps
        found.certificates.put(k, solved.certificate)
        if solution.stop_reason != "converged":
            self._reasons[k] = solution.stop_reason

    @property
    def certificate(self) -> Certificate:
        return self._results.certificates.total()

    @property
    def reasons(self) -> list[StopReason]:
        return [self._reasons[k] for k in sorted(self._reasons)]

    @property
    def steps(self) -> Indices:
        return self._results.steps

    def biases(self, bias: Any) -> Floats:
        b = self._results.certificates.b
        if b.shape[1]:
            return b[:, 0].copy()
        sums = np.add.reduceat(self.beta, self.variables[:-1])
        return sums if bias == "regularized" else np.zeros(len(self))

    @property
    def p(self) -> Floats:
        return self.tasks.problem.p

    @property
    def d(self) -> Floats:
        return self.tasks.problem.d

    @property
    def gradient(self) -> Floats:
        return self.tasks.problem.gradient(self.beta, self.u)

    @property
    def equalities(self) -> Indices:
        return np.full(len(self), len(self.tasks.problem.totals))

    @property
    def u(self) -> Floats:
        return self._results.u
