"""Tasks of a fit, that is, problems with their solvers, and the table of their solutions.

Tasks are solved one after another, concurrently, or, if they are many and small, in one call of the core.
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
from mercer.solvers.dual.pairs import PairResults, solvable_pairs, solve_pairs_together
from mercer.solvers.homotopy import with_exact_solution
from mercer.solvers.solution import Solution, Solve, Stop, StopReason
from mercer.solvers.solver import Solver

if TYPE_CHECKING:
    from mercer.solvers.pegasos.descent import DescentSpace

    # Data on which a task is solved.
    Place = Gram | Rows | Cross | DescentSpace

A = TypeVar("A", Floats, Indices)
P = TypeVar("P", covariant=True)  # type of problem
Q = TypeVar("Q")


@dataclass(frozen=True, eq=False)
class Task(Generic[P]):
    """Problem, its solver with options bound, and the data on which it is solved."""

    name: str
    problem: P
    solve: Solve
    part: Indices | None = None  # merged samples of the problem; None: all
    blocks: tuple[Indices, Indices] | None = None  # the two classes of `part`, if tasks share blocks of samples
    unit: float = 1.0  # unit of `tol` in the scale of this problem
    place: Callable[[int], Place] | None = None  # returns the data for a number of threads; None: the fit's Gram matrix
    outer_solver: Solver | None = None  # solver that calls `inner_solver` repeatedly

    @property
    def rows(self) -> Indices:
        """`part` of a task that has one: the indices of its merged samples."""
        assert self.part is not None
        return self.part


@dataclass(frozen=True, eq=False)
class Solved(Generic[P]):
    """Task with its solution and certificate."""

    task: Task[P]
    solution: Any
    certificate: Certificate

    def bias(self, bias: Any) -> float:
        """Return b: the multiplier of the equality; without one, Σβ if b is a constant feature's weight, else 0."""
        if self.certificate.b:
            return self.certificate.b[0]
        return float(self.solution.beta.sum()) if bias in REGULARIZED else 0.0


class Tasks(Generic[P]):
    """Tasks of one fit."""

    def __init__(self, tasks: Iterable[Task[P]]) -> None:
        self._tasks = list(tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, k: int) -> Task[P]:
        return self._tasks[k]

    def __iter__(self) -> Iterator[Task[P]]:
        return iter(self._tasks)

    def places(self, fit: Fit, n_threads: int) -> Sequence[Place]:
        """Return the data of each task."""
        return [(task.place or fit.gram)(n_threads) for task in self._tasks]

    @property
    def share_gram(self) -> bool:
        """True if there are several tasks, all of them on the fit's Gram matrix."""
        return len(self) > 1 and all(task.place is None for task in self._tasks)

    def solve_in_one_call(self, gram: Gram, fit: Fit, n_threads: int, progress: Progress) -> Solutions[P]:
        """Solve many small tasks in one call of the core, if that is possible; here, none is solved."""
        return Solutions(self)

    def with_exact_solutions(self) -> Tasks[P]:
        """Return these tasks with solvers that make solutions exact to rounding, where that is possible."""
        return Tasks(
            replace(t, solve=with_exact_solution(t.solve)) if isinstance(t.problem, DualProblem) else t for t in self
        )


@dataclass(frozen=True, eq=False)
class Columns:
    """Arrays over the variables and rows of all dual problems of a fit, one problem after another."""

    variables: Indices  # variables of problem k are variables[k] to variables[k + 1]
    beta: Floats
    lower: Floats
    upper: Floats
    samples: Indices  # merged sample of each variable
    row_ends: Indices  # Gram rows of problem k are row_ends[k] to row_ends[k + 1]
    coefficients: Floats  # coefficient of each Gram row
    rows: Indices  # merged sample of each Gram row


class Solutions(Generic[P]):
    """Solutions of the tasks of a fit; for dual problems also arrays over all of them.

    `columns`, `p`, `d` and `gradient` have an entry for each variable, as in `Columns`, and u = Kβ one for each row.
    """

    def __init__(self, tasks: Tasks[P]) -> None:
        self.tasks = tasks
        self._solved_tasks: list[Solved[P]] = []

    @staticmethod
    def of(rows: Sequence[Solved[Q]]) -> Solutions[Q]:
        """Return the solutions of separately solved tasks."""
        solutions = Solutions(Tasks(result.task for result in rows))
        solutions._solved_tasks.extend(rows)
        return solutions

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, k: int) -> Solved[P]:
        return self._solved_tasks[k]

    def __iter__(self) -> Iterator[Solved[P]]:
        return iter(self._solved_tasks)

    # --- while tasks are being solved -------------------------------------------------------------------------------

    @property
    def unsolved(self) -> Sequence[int]:
        """Indices of the tasks that are not solved yet."""
        return range(len(self))

    def progress_of(self, k: int) -> tuple[Floats | None, int]:
        """Return the current β of a partly solved task, or None, and the number of steps taken."""
        return None, 0

    def add(self, k: int, solved: Solved[Any]) -> None:
        """Add the solution of task k; tasks must be added in order."""
        self._solved_tasks.append(solved)

    # --- every problem ----------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> Certificate:
        """Certificate of all tasks together."""
        return Certificate.total([s.certificate for s in self._solved_tasks])

    @property
    def reasons(self) -> list[StopReason]:
        """Stop reasons of the tasks that did not converge."""
        return [s.solution.stop_reason for s in self._solved_tasks if s.solution.stop_reason != "converged"]

    @property
    def steps(self) -> Indices:
        """Number of steps of each task."""
        return np.array([s.solution.steps for s in self._solved_tasks], dtype=np.int64)

    # --- dual problems ----------------------------------------------------------------------------------------------

    def biases(self, bias: Any) -> Floats:
        """Return b of every task."""
        return np.array([s.bias(bias) for s in self._solved_tasks])

    @cached_property
    def columns(self: Solutions[DualProblem]) -> Columns:
        """Arrays over the variables and rows of all problems."""
        solved = self._solved_tasks
        problems, betas, places = zip(*[(s.task.problem, s.solution.beta, s.task.rows) for s in solved], strict=True)
        lower = _joined([problem.lower for problem in problems])
        upper = _joined([problem.upper for problem in problems])
        beta, rows, variables = _joined(betas), _joined(places), np.array([0, *accumulate(map(len, betas))])
        if not any(problem.twins for problem in problems):
            return Columns(variables, beta, lower, upper, rows, row_ends=variables, coefficients=beta, rows=rows)
        entries = list(zip(problems, betas, places, strict=True))
        return Columns(
            variables,
            beta,
            lower,
            upper,
            _joined([samples[problem.row] for problem, _, samples in entries]),
            row_ends=np.array([0, *accumulate(map(len, places))]),
            coefficients=_joined([problem.row_coefficients(b, len(samples)) for problem, b, samples in entries]),
            rows=rows,
        )

    @cached_property
    def p(self: Solutions[DualProblem]) -> Floats:
        return _joined([s.task.problem.p for s in self._solved_tasks])

    @cached_property
    def d(self: Solutions[DualProblem]) -> Floats:
        return _joined([s.task.problem.d for s in self._solved_tasks])

    @cached_property
    def u(self: Solutions[DualProblem]) -> Floats:
        return _joined([s.solution.u for s in self._solved_tasks])

    @property
    def gradient(self: Solutions[DualProblem]) -> Floats:
        return _joined([s.task.problem.gradient(s.solution.beta, s.solution.u) for s in self._solved_tasks])

    @property
    def largest_ridge(self: Solutions[DualProblem]) -> float:
        """Largest d of any variable."""
        return float(self.d.max(initial=0.0))

    @property
    def equalities(self: Solutions[DualProblem]) -> Indices:
        """Number of equality constraints of each problem."""
        return np.array([len(s.task.problem.totals) for s in self._solved_tasks])


def solve_tasks(tasks: Tasks[Q], fit: Fit, progress: Progress, starts: list[Any], side_by_side: int) -> Solutions[Q]:
    """Solve and certify all tasks, `side_by_side` of them concurrently; if that is above 1, each on one thread."""
    n_threads = 1 if side_by_side > 1 else fit.limits.n_threads
    places = tasks.places(fit, n_threads)
    solutions = Solutions(tasks)
    if tasks.share_gram:
        gram = fit.gram(n_threads)
        gram.share()
        side_by_side = side_by_side if gram.concurrent else 1
        if gram.concurrent and not progress.watched and all(start is None for start in starts):
            solutions = tasks.solve_in_one_call(gram, fit, max(side_by_side, n_threads), progress)

    def solve(k: int) -> Solved[Q]:
        task, place, start = tasks[k], places[k], starts[k]
        beta, steps = solutions.progress_of(k)
        if task.part is not None:  # only a Gram matrix has views
            gram = cast(Gram, place)
            place = gram.view(task.part) if len(task.part) < gram.n or task.blocks is not None else gram
        report, limits = progress.begin(task.name), fit.limits.stop.after(steps) if steps else fit.limits.stop
        stop = replace(
            limits, tol=task.unit * limits.tol, n_threads=n_threads, only_problem=len(tasks) == 1, report=report
        )
        with np.errstate(over="ignore", invalid="ignore"):  # overflow shows in the certificate, which is checked
            solution, proof = task.solve(task.problem, place, stop, start if beta is None else beta)
        progress.end()
        return Solved(task, replace(solution, steps=solution.steps + steps) if steps else solution, proof)

    unsolved_tasks = solutions.unsolved
    in_sequence = side_by_side == 1 or progress.watched
    results = map(solve, unsolved_tasks) if in_sequence else map_in_threads(solve, unsolved_tasks, side_by_side)
    for k, solved in zip(unsolved_tasks, results, strict=True):
        solutions.add(k, solved)
    return solutions


def _joined(parts: Sequence[A]) -> A:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


# --- calls in several threads -----------------------------------------------------------------------------------------

T = TypeVar("T")
R = TypeVar("R")


def map_in_threads(call: Callable[[T], R], items: Iterable[T], n_threads: int) -> list[R]:
    """Return the results of `call` for all items, computed by `n_threads` threads; stop all if one raises."""
    flag = _core.StopFlag()
    threads = ThreadPoolExecutor(n_threads, initializer=flag.watch)
    try:
        futures = [threads.submit(call, item) for item in items]
        pending = set(futures)
        while pending:
            done, pending = wait(pending, WAKE_SECONDS, FIRST_EXCEPTION)
            for future in done:
                future.result()  # raises what the call raised
            _core.check_stop()  # this thread may itself belong to a fit that was stopped
        return [future.result() for future in futures]
    finally:
        flag.stop()
        threads.shutdown(cancel_futures=True)


# --- the pairs of a one-against-one machine ---------------------------------------------------------------------------
# Pairs are stored in arrays, and objects are created on request: a thousand classes have half a million pairs.


class PairTasks(Tasks[DualProblem]):
    """One task per pair of classes; `problem` concatenates the variables of all pairs.

    `together` allows small pairs to be solved in one call.
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
        problem, rows = self.problem.take(slice(begin, end)), self.layout.rows[begin:end]
        n_first = int(self.layout.block_sizes[self.layout.pairs[2 * k]])
        blocks = (rows[:n_first], rows[n_first:]) if self.together else None
        return Task(self._name_of(k), problem, self._solver_of(rows, problem), rows, blocks)

    def __iter__(self) -> Iterator[Task[DualProblem]]:
        return map(self.__getitem__, range(len(self)))

    def places(self, fit: Fit, n_threads: int) -> Sequence[Place]:
        return [fit.gram(n_threads)] * len(self)

    @property
    def share_gram(self) -> bool:
        return len(self) > 1

    def solve_in_one_call(self, gram: Gram, fit: Fit, n_threads: int, progress: Progress) -> Solutions[DualProblem]:
        """Solve the small pairs in one call of the core, if at least two pairs are small enough."""
        solvable = solvable_pairs(self.problem, self.layout, is_sparse(fit.X))
        if not self.together or len(solvable) < 2:
            return Solutions(self)
        progress.begin("")(partial("{:,} pairs of classes in one call".format, len(solvable)))
        results = self._solve(solvable, gram, fit.limits.stop, n_threads)
        return Solutions(self) if results is None else PairSolutions(self, results, solvable)

    def _solve(self, solvable: Indices, gram: Gram, stop: Stop, n_threads: int) -> PairResults | None:
        """Solve these pairs in one call; the results of all other pairs are zero."""
        problem, layout = self.problem, self.layout
        if len(solvable) == layout.n:
            return solve_pairs_together(problem, layout, gram, stop, n_threads)
        results = solve_pairs_together(
            problem.take(layout.variables(solvable)), layout.of_pairs(solvable), gram, stop, n_threads
        )
        return None if results is None else results.scatter(layout, solvable)


class PairSolutions(Solutions[DualProblem]):
    """Solutions of all pairs; the `attempted` pairs were solved in one call, some of them only partly."""

    def __init__(self, tasks: PairTasks, results: PairResults, attempted: Indices) -> None:
        self.tasks: PairTasks = tasks
        self._results = results
        self._reasons: dict[int, StopReason] = {}
        unsolved_pairs = attempted[~results.solved[attempted]].tolist()
        all_unsolved = (~results.solved).nonzero()[0].tolist()
        if results.out_of_time:
            self._reasons.update(dict.fromkeys(unsolved_pairs, "max_time"))
            self._unsolved_pairs, self._partly_solved_pairs = (
                sorted(set(all_unsolved) - set(unsolved_pairs)),
                set[int](),
            )
        else:
            self._unsolved_pairs, self._partly_solved_pairs = all_unsolved, set(unsolved_pairs)
        problem, ends, samples = tasks.problem, tasks.layout.offsets, tasks.layout.rows
        self.columns = Columns(ends, results.beta, problem.lower, problem.upper, samples, ends, results.beta, samples)
        self.p, self.d, self.u = problem.p, problem.d, results.u

    def __getitem__(self, k: int) -> Solved[DualProblem]:
        k = range(len(self))[k]
        variables, results, reason = self._variables_of(k), self._results, self._reasons.get(k, "converged")
        solution = Solution(results.beta[variables], int(results.steps[k]), reason, u=results.u[variables])
        return Solved(self.tasks[k], solution, results.certificates[k])

    def __iter__(self) -> Iterator[Solved[DualProblem]]:
        return map(self.__getitem__, range(len(self)))

    def _variables_of(self, k: int) -> slice:
        """Return the slice of the variables of pair k."""
        return slice(*self.tasks.layout.offsets[k : k + 2].tolist())

    @property
    def unsolved(self) -> Sequence[int]:
        return self._unsolved_pairs

    def progress_of(self, k: int) -> tuple[Floats | None, int]:
        """Return β of a partly solved pair, or None, and the number of steps taken."""
        if k not in self._partly_solved_pairs:
            return None, 0
        return self._results.beta[self._variables_of(k)], int(self._results.steps[k])

    def add(self, k: int, solved: Solved[Any]) -> None:
        """Store the solution of pair k."""
        variables, solution, results = self._variables_of(k), solved.solution, self._results
        results.beta[variables], results.u[variables], results.steps[k] = solution.beta, solution.u, solution.steps
        results.certificates.put(k, solved.certificate)
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
        """Return b of each pair: that of its certificate, else Σβ if b is the weight of a constant feature, else 0."""
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
