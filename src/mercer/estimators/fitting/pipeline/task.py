"""The problems of a fit with the solvers that they want, and what was found: a table with a row for each task.

They are solved one after another, side by side, or many small ones in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from mercer import _core
from mercer.certificates.certificate import Certificate
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.reporting import Progress
from mercer.places import Cross, Gram, Rows
from mercer.places.host.pair_place import Layout
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.long_calls import WAKE_SECONDS
from mercer.runtime.parameters import REGULARIZED
from mercer.samples.arrays import Floats, Indices, is_sparse
from mercer.solvers.dual.pairs import PairResults, fitting_pairs, solve_together
from mercer.solvers.homotopy import exactly
from mercer.solvers.solution import Solution, Solve, Stop, StopReason
from mercer.solvers.solver import Solver

if TYPE_CHECKING:
    from mercer.solvers.pegasos.descent import Space

    # Where the data of a task live.
    Place = Gram | Rows | Cross | Space

A = TypeVar("A", Floats, Indices)
P = TypeVar("P", covariant=True)  # the kind of problem
Q = TypeVar("Q")


@dataclass(frozen=True, eq=False)
class Task(Generic[P]):
    """One problem, the solver it wants, with its options bound, and the place where its data live."""

    name: str
    problem: P
    solve: Solve
    part: Indices | None = None  # which of the merged samples it is about; None: all
    blocks: tuple[Indices, Indices] | None = (
        None  # the two class blocks that make up `part`, where tasks share such blocks
    )
    unit: float = 1.0  # of `tol`: what a violation of 1 is worth in this problem's scale
    place: Callable[[int], Place] | None = None  # from a number of threads; None: the fit's Gram matrix
    around: Solver | None = None  # what calls another solver (`inner_solver`) until the problem's own criterion is met

    @property
    def rows(self) -> Indices:
        """The merged samples of a task that is about some."""
        assert self.part is not None
        return self.part


@dataclass(frozen=True, eq=False)
class Solved(Generic[P]):
    """A task with the solution that was found and its proof."""

    task: Task[P]
    solution: Any
    certificate: Certificate

    def bias(self, bias: Any) -> float:
        """b: its equality's multiplier; without one zero, or Σβ where it is a feature with the constant 1."""
        if self.certificate.b:
            return self.certificate.b[0]
        return float(self.solution.beta.sum()) if bias in REGULARIZED else 0.0


class Tasks(Generic[P]):
    """The tasks of one fit."""

    def __init__(self, tasks: Iterable[Task[P]]) -> None:
        self._tasks = list(tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, k: int) -> Task[P]:
        return self._tasks[k]

    def __iter__(self) -> Iterator[Task[P]]:
        return iter(self._tasks)

    def places(self, fit: Fit, n_threads: int) -> Sequence[Place]:
        """Where the data of each task live."""
        return [(task.place or fit.gram)(n_threads) for task in self._tasks]

    @property
    def share_gram(self) -> bool:
        """Whether there are several, and all are solved on the fit's Gram matrix."""
        return len(self) > 1 and all(task.place is None for task in self._tasks)

    def in_one_call(self, gram: Gram, fit: Fit, n_threads: int, progress: Progress) -> Solutions[P]:
        """What one call of the core has solved of many small tasks, if that is possible; here it is not."""
        return Solutions(self)

    def exactly(self) -> Tasks[P]:
        """These tasks with solutions whose equations hold to rounding, where there are such."""
        return Tasks(replace(t, solve=exactly(t.solve)) if isinstance(t.problem, DualProblem) else t for t in self)


@dataclass(frozen=True, eq=False)
class Columns:
    """Arrays over all dual problems of a fit, one problem after another."""

    # Of each variable, those of problem k before variables[k + 1].
    variables: Indices
    beta: Floats
    lower: Floats
    upper: Floats
    samples: Indices  # merged ones
    # Of each row of a problem's Gram matrix, before row_ends[k + 1].
    row_ends: Indices
    coefficients: Floats  # what multiplies K
    rows: Indices  # merged samples


class Solutions(Generic[P]):
    """Solutions of the tasks of a fit, a row for each; for dual problems also `columns` over all of them.

    `p`, `d` and `gradient` are of each variable, as in `Columns`, and u = Kβ of each row.
    """

    def __init__(self, tasks: Tasks[P]) -> None:
        self.tasks = tasks
        self._found: list[Solved[P]] = []

    @staticmethod
    def of(rows: Sequence[Solved[Q]]) -> Solutions[Q]:
        """A table of these rows."""
        made = Solutions(Tasks(one.task for one in rows))
        made._found.extend(rows)
        return made

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, k: int) -> Solved[P]:
        return self._found[k]

    def __iter__(self) -> Iterator[Solved[P]]:
        return iter(self._found)

    # --- while tasks are being solved -------------------------------------------------------------------------------

    @property
    def left(self) -> Sequence[int]:
        """The tasks that are not solved yet."""
        return range(len(self))

    def begun(self, k: int) -> tuple[Floats | None, int]:
        """Where a task that was begun is to go on, and how many steps it has taken."""
        return None, 0

    def put(self, k: int, solved: Solved[Any]) -> None:
        """Task k was solved by itself, after those before it."""
        self._found.append(solved)

    # --- every problem ----------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> Certificate:
        """One certificate for all."""
        return Certificate.total([s.certificate for s in self._found])

    @property
    def reasons(self) -> list[StopReason]:
        """Why those that did not converge ended."""
        return [s.solution.stop_reason for s in self._found if s.solution.stop_reason != "converged"]

    @property
    def steps(self) -> Indices:
        """How many steps each took."""
        return np.array([s.solution.steps for s in self._found], dtype=np.int64)

    # --- dual problems ----------------------------------------------------------------------------------------------

    def biases(self, bias: Any) -> Floats:
        """b of every task."""
        return np.array([s.bias(bias) for s in self._found])

    @cached_property
    def columns(self: Solutions[DualProblem]) -> Columns:
        found = self._found
        problems, betas, places = zip(*[(s.task.problem, s.solution.beta, s.task.rows) for s in found], strict=True)
        lower = _joined([problem.lower for problem in problems])
        upper = _joined([problem.upper for problem in problems])
        beta, rows, variables = _joined(betas), _joined(places), np.array([0, *accumulate(map(len, betas))])
        if not any(problem.twins for problem in problems):
            return Columns(variables, beta, lower, upper, rows, row_ends=variables, coefficients=beta, rows=rows)
        each = list(zip(problems, betas, places, strict=True))
        return Columns(
            variables,
            beta,
            lower,
            upper,
            _joined([own[problem.row] for problem, _, own in each]),
            row_ends=np.array([0, *accumulate(map(len, places))]),
            coefficients=_joined([problem.row_coefficients(part, len(own)) for problem, part, own in each]),
            rows=rows,
        )

    @cached_property
    def p(self: Solutions[DualProblem]) -> Floats:
        return _joined([s.task.problem.p for s in self._found])

    @cached_property
    def d(self: Solutions[DualProblem]) -> Floats:
        return _joined([s.task.problem.d for s in self._found])

    @cached_property
    def u(self: Solutions[DualProblem]) -> Floats:
        return _joined([s.solution.u for s in self._found])

    @property
    def gradient(self: Solutions[DualProblem]) -> Floats:
        return _joined([s.task.problem.gradient(s.solution.beta, s.solution.u) for s in self._found])

    @property
    def largest_ridge(self: Solutions[DualProblem]) -> float:
        """The largest d of any variable."""
        return float(self.d.max(initial=0.0))

    @property
    def equalities(self: Solutions[DualProblem]) -> Indices:
        """How many each problem has."""
        return np.array([len(s.task.problem.totals) for s in self._found])


def solve_tasks(tasks: Tasks[Q], fit: Fit, progress: Progress, starts: list[Any], side_by_side: int) -> Solutions[Q]:
    """Every task's solution and proof, `side_by_side` of them at a time, each on one thread then."""
    n_threads = 1 if side_by_side > 1 else fit.limits.n_threads
    places = tasks.places(fit, n_threads)
    solutions = Solutions(tasks)
    if tasks.share_gram:
        gram = fit.gram(n_threads)
        gram.share()
        side_by_side = side_by_side if gram.concurrent else 1
        if gram.concurrent and not progress.watched and all(start is None for start in starts):
            solutions = tasks.in_one_call(gram, fit, max(side_by_side, n_threads), progress)

    def solve(k: int) -> Solved[Q]:
        task, place, start = tasks[k], places[k], starts[k]
        begun, steps = solutions.begun(k)
        if task.part is not None:  # only a Gram has parts
            gram = cast(Gram, place)
            place = gram.view(task.part) if len(task.part) < gram.n or task.blocks is not None else gram
        report, limits = progress.begin(task.name), fit.limits.stop.after(steps) if steps else fit.limits.stop
        asked = replace(limits, tol=task.unit * limits.tol, n_threads=n_threads, alone=len(tasks) == 1, report=report)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is in the proof, and refused there
            solution, proof = task.solve(task.problem, place, asked, start if begun is None else begun)
        progress.end()
        return Solved(task, replace(solution, steps=solution.steps + steps) if steps else solution, proof)

    left = solutions.left
    alone = side_by_side == 1 or progress.watched
    for k, one in zip(left, map(solve, left) if alone else map_side_by_side(solve, left, side_by_side), strict=True):
        solutions.put(k, one)
    return solutions


def _joined(parts: Sequence[A]) -> A:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


# --- calls in several threads -----------------------------------------------------------------------------------------

T = TypeVar("T")
R = TypeVar("R")


def map_side_by_side(call: Callable[[T], R], items: Iterable[T], n_threads: int) -> list[R]:
    """What the calls return, `n_threads` of them at a time."""
    flag = _core.StopFlag()
    threads = ThreadPoolExecutor(n_threads, initializer=flag.watch)
    try:
        calls = [threads.submit(call, item) for item in items]
        left = set(calls)
        while left:
            done, left = wait(left, WAKE_SECONDS, FIRST_EXCEPTION)
            for one in done:
                one.result()  # raises what the call raised
            _core.check_stop()  # this thread may itself work for a fit that has ended
        return [one.result() for one in calls]
    finally:
        flag.stop()
        threads.shutdown(cancel_futures=True)


# --- the pairs of a one-against-one machine ---------------------------------------------------------------------------
# Arrays for all of them, and objects for those that are asked for: a thousand classes have half a million pairs.


class PairTasks(Tasks[DualProblem]):
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

    def __getitem__(self, k: int) -> Task[DualProblem]:
        k = range(len(self))[k]
        begin, end = self.layout.offsets[k], self.layout.offsets[k + 1]
        problem, rows = self.problem.some(slice(begin, end)), self.layout.rows[begin:end]
        first = int(np.diff(self.layout.starts)[self.layout.pairs[2 * k]])
        blocks = (rows[:first], rows[first:]) if self.together else None
        return Task(self._name_of(k), problem, self._solver_of(rows, problem), rows, blocks)

    def __iter__(self) -> Iterator[Task[DualProblem]]:
        return map(self.__getitem__, range(len(self)))

    def places(self, fit: Fit, n_threads: int) -> Sequence[Place]:
        return [fit.gram(n_threads)] * len(self)

    @property
    def share_gram(self) -> bool:
        return len(self) > 1

    def in_one_call(self, gram: Gram, fit: Fit, n_threads: int, progress: Progress) -> Solutions[DualProblem]:
        which = fitting_pairs(self.problem, self.layout, is_sparse(fit.X))
        if not self.together or len(which) < 2:
            return Solutions(self)
        progress.begin("")(partial("{:,} pairs of classes in one call".format, len(which)))
        found = self._solve(which, gram, fit.limits.stop, n_threads)
        return Solutions(self) if found is None else PairSolutions(self, found, which)

    def _solve(self, which: Indices, gram: Gram, stop: Stop, n_threads: int) -> PairResults | None:
        """What one call for these pairs has reached; the others have zeros."""
        problem, layout = self.problem, self.layout
        if len(which) == layout.n:
            return solve_together(problem, layout, gram, stop, n_threads)
        found = solve_together(problem.some(layout.variables(which)), layout.of_pairs(which), gram, stop, n_threads)
        return None if found is None else found.among(layout, which)


class PairSolutions(Solutions[DualProblem]):
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
        problem, ends, samples = tasks.problem, tasks.layout.offsets, tasks.layout.rows
        self.columns = Columns(ends, found.beta, problem.lower, problem.upper, samples, ends, found.beta, samples)
        self.p, self.d, self.u = problem.p, problem.d, found.u

    def __getitem__(self, k: int) -> Solved[DualProblem]:
        k = range(len(self))[k]
        cut, found, reason = self._cut(k), self._results, self._reasons.get(k, "converged")
        solution = Solution(found.beta[cut], int(found.steps[k]), reason, u=found.u[cut])
        return Solved(self.tasks[k], solution, found.certificates[k])

    def __iter__(self) -> Iterator[Solved[DualProblem]]:
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

    def put(self, k: int, solved: Solved[Any]) -> None:
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
        sums = np.add.reduceat(self.columns.beta, self.columns.variables[:-1])
        return sums if bias in REGULARIZED else np.zeros(len(self))

    @property
    def gradient(self) -> Floats:
        return self.tasks.problem.gradient(self.columns.beta, self.u)

    @property
    def equalities(self) -> Indices:
        return np.full(len(self), len(self.tasks.problem.totals))
