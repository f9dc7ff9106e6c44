"""Fits of all folds for lists of C on stored kernel matrices, and the decision values of what each fold left out.

    shared = SharedFolds.of(machine, X, y, splits)          samples read and merged once
    fit_folds(shared, batches, listener, ...)                one FoldFit for each machine and fold goes to the listener

Every fit has its certificates. Folds, or pairs of classes where there are many, are solved side by side, and each goes
through the machines of its batch as they come, from the smallest C to the largest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from mercer import _core
from mercer.certificates.certificate import Certificate
from mercer.estimators.fitting.pipeline.task import Solved, Task, map_side_by_side
from mercer.estimators.fitting.reports.coefficients import table_expansion
from mercer.model_selection.held_out.folds import Fold, SharedFolds
from mercer.places import Gram
from mercer.places.host.stored_gram import StoredField, StoredGram
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.long_calls import WAKE_SECONDS
from mercer.samples.arrays import Floats, Indices, take
from mercer.samples.coefficient_table import Table
from mercer.samples.engine import PlacedSamples
from mercer.solvers.dual.certified import solve_stored
from mercer.solvers.solution import Stop

# What a variable of a pair takes: five numbers, a row and a group.
_PAIR_VARIABLE_BYTES = 52

# The names of some machines whose kernels are the same, each with the machine.
Batch = Sequence[tuple[int, Any]]


@dataclass(frozen=True, eq=False)
class TaskFit:
    """One problem of a fold: coefficients of rows of the shared K, b, and the proof."""

    rows: Indices
    coefficients: Floats
    b: float
    certificate: Certificate
    steps: int
    stop_reason: str
    values: Floats | None = None  # of the held-out samples, where the problem is about all rows
    errors: Floats | None = None  # how far each can be from the value of these coefficients in exact arithmetic
    lengths: Floats | None = None  # √k(x, x) of these samples
    offset: float = 0.0  # the part of the values that is not ⟨w, φ(x)⟩
    norm: float = 0.0  # ‖w‖, or a little more


@dataclass(frozen=True, eq=False)
class FoldFit:
    """A machine fitted to one fold."""

    classes: Any  # the labels that this fold trains on; None where there are none
    tasks: list[TaskFit]
    values: Floats  # of the held-out samples, one column per output
    seconds: float = 0.0

    @property
    def certificate(self) -> Certificate:
        """One for all problems of this fit."""
        return Certificate.total([task.certificate for task in self.tasks])

    @property
    def stop_reason(self) -> str:
        """Why the first problem that did not converge ended, or "converged"."""
        return next((task.stop_reason for task in self.tasks if task.stop_reason != "converged"), "converged")


class Listener(Protocol):
    """Who asks for fits, by the name of the machine and the number of the fold; several threads may call it."""

    def wanted(self, name: int, fold: int) -> bool:
        """Whether this fit is still wanted."""

    def told(self, name: int, fold: int, fit: FoldFit) -> None:
        """It is there."""

    def failed(self, name: int, fold: int, error: Exception) -> None:
        """It could not be made."""


def affordable(shared: SharedFolds, budget: int, twins: bool) -> bool:
    """Whether K fits the budget."""
    return _bytes(shared, twins) <= budget


def fit_folds(shared: SharedFolds, batches: Sequence[Batch], listener: Listener, n_threads: int, budget: int) -> None:
    """Fit every machine to every fold that could be read; what goes wrong is told of the fits that it ends."""
    memory = _Memory(budget)
    chains: list[tuple[_BatchFit, Fold]] = []
    for batch in batches:
        batch = [(name, clone(machine).set_params(solver="decomposition")) for name, machine in batch]
        try:
            kernels = shared.kernels(batch[0][1])
            groups = [
                _BatchFit(shared, memory, kernels[own[0]], batch, [shared.folds[f] for f in own], listener, n_threads)
                for own in shared.same(kernels)
            ]
        except Exception as error:  # a kernel that raises ends its own batch only
            _tell(listener, batch, [fold for fold in shared.folds if fold.fit is not None], error)
            continue
        for group in groups:
            if group.pairs is None:
                chains += [(group, fold) for fold in group.folds]
            else:
                group.run_pairs()
    if n_threads == 1:
        for group, fold in chains:
            group.run_fold(fold)
    elif chains:
        X = shared.whole.X
        most = (X.most_solvers if isinstance(X, PlacedSamples) else None) or n_threads
        map_side_by_side(lambda chain: chain[0].run_fold(chain[1]), chains, min(n_threads, len(chains), most))


def _tell(listener: Listener, batch: Batch, folds: Sequence[Fold], error: Exception) -> None:
    for name, _ in batch:
        for fold in folds:
            listener.failed(name, fold.number, error)


def _bytes(shared: SharedFolds, twins: bool) -> int:
    return (3 if twins else 1) * 4 * len(shared.whole.merged.y) ** 2


class _Memory:
    """The bytes that stored matrices may have at a time; one matrix is always let through."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._lock, self._taken = threading.Lock(), 0

    def take(self, need: int) -> None:
        """Wait until there is room; to be given back."""
        while True:
            with self._lock:
                if self._taken == 0 or self._taken + need <= self.budget:
                    self._taken += need
                    return
            _core.check_stop()
            time.sleep(WAKE_SECONDS)

    def give_back(self, need: int) -> None:
        with self._lock:
            self._taken -= need


class _BatchFit:
    """The fits of a batch in folds that have the same kernel."""

    def __init__(
        self,
        shared: SharedFolds,
        memory: _Memory,
        kernel: Any,
        batch: Batch,
        folds: list[Fold],
        listener: Listener,
        n_threads: int,
    ) -> None:
        self._shared, self._memory, self._kernel, self._batch, self.folds = shared, memory, kernel, batch, folds
        self._listener, self._n_threads = listener, n_threads
        self._lock, self._left = threading.Lock(), len(folds)
        self._stored: StoredGram | None = None
        self._taken = 0  # bytes of memory that K has

    @cached_property
    def _gram(self) -> Gram:
        gram = replace(self._shared.whole, kernel=self._kernel, _places={}).gram()
        gram.share()
        return gram

    @cached_property
    def pairs(self) -> list[tuple[Any, Any]] | None:
        """The pairs of classes of one-against-one machines; None where every problem is about all samples."""
        targets = [fold.fit.target for fold in self.folds if fold.fit is not None]
        labels = getattr(targets[0], "labels", None)
        against_rest = getattr(self._batch[0][1], "multiclass", "ovo") != "ovo"
        if labels is None or against_rest or all(len(target.labels) == 2 for target in targets):
            return None
        return list({pair: None for target in targets for pair in _named(target)})

    def _tasks(self, machine: Any, fold: Fold) -> Sequence[Task[DualProblem]]:
        assert fold.fit is not None
        fit = replace(fold.fit, kernel=self._kernel)
        fit = fit.with_gram(self._gram.view(fold.rows), self._gram.diagonal[fold.rows])
        tasks: Sequence[Task[DualProblem]] = machine._tasks(fit)
        return tasks

    def _solve(self, machine: Any, fold: Fold, task: Task[DualProblem], field: StoredField) -> TaskFit:
        """Solve one problem of a fold on a stored K, from where the field's last problem ended: the only place."""
        assert fold.fit is not None
        limits = fold.fit.limits.stop
        stop = replace(limits, tol=task.unit * limits.tol)

        def solve_on_field(problem: DualProblem, _: Gram, stop: Stop, start: Any = None, **options: Any) -> Any:
            return solve_stored(problem, field, stop, task.solve)

        solve = solve_on_field if task.around is None else partial(task.around, inner_solver=solve_on_field)
        solution, proof = solve(task.problem, field.gram, stop)
        b = Solved(task, solution, proof).bias(getattr(machine, "bias", True))
        coefficients = task.problem.row_coefficients(solution.beta, len(field.rows))
        return TaskFit(fold.rows[task.rows], coefficients, b, proof, solution.steps, solution.stop_reason)

    # --- every problem is about all samples --------------------------------------------------------------------------

    def run_fold(self, fold: Fold) -> None:
        """Fit all machines to one fold, each from the last one's solution on; the last fold lets K go."""
        try:
            if any(self._listener.wanted(name, fold.number) for name, _ in self._batch):
                try:
                    stored, twins = self._matrix(fold)
                except Exception as error:  # a kernel that raises ends its own batch only
                    _tell(self._listener, self._batch, [fold], error)
                else:
                    self._along(fold, stored, twins)
        finally:
            with self._lock:
                self._left -= 1
                if self._left == 0:
                    self._stored = None
                    self._memory.give_back(self._taken)

    def _matrix(self, fold: Fold) -> tuple[StoredGram, bool]:
        """K of all samples, which the first fold makes for all, and whether a sample has two variables."""
        with self._lock:
            twins = bool(self._tasks(self._batch[0][1], fold)[0].problem.twins)
            if not self._taken:
                need = _bytes(self._shared, twins)
                self._memory.take(need)
                self._taken = need
            if self._stored is None:
                self._stored = StoredGram.of(self._gram)
            return self._stored, twins

    def _along(self, fold: Fold, stored: StoredGram, twins: bool) -> None:
        assert fold.fit is not None
        fields: dict[int, StoredField] = {}
        for name, machine in self._batch:
            if not self._listener.wanted(name, fold.number):
                continue
            begun = time.perf_counter()
            try:
                fits = []
                for k, task in enumerate(self._tasks(machine, fold)):
                    if k not in fields:
                        fields[k] = StoredField(stored, fold.rows[task.rows], twins=twins)
                    fits.append(self._with_values(self._solve(machine, fold, task, fields[k]), fold, fields[k]))
            except Exception as error:
                self._listener.failed(name, fold.number, error)
                fields.clear()  # what the last solve left cannot be trusted
                continue
            values = np.column_stack([fit.values for fit in fits if fit.values is not None])
            classes = getattr(fold.fit.target, "labels", None)
            self._listener.told(name, fold.number, FoldFit(classes, fits, values, time.perf_counter() - begun))

    def _with_values(self, fit: TaskFit, fold: Fold, field: StoredField) -> TaskFit:
        """Add the decision values of the held-out samples, which have rows in the field."""
        assert fold.fit is not None
        test = self._shared.rows[fold.test]
        offset = 0.0 if fold.fit.constant else fit.b  # u has the constant feature's part already
        close = np.unique(test[np.abs(field.u[test] + offset) <= field.e[test]])
        if len(close):  # a sign that the stored values leave open
            field.sharpen(close)
        own, u, e = fit.coefficients, field.u, field.e
        return replace(
            fit,
            values=u[test] + offset,
            errors=e[test],
            lengths=field.stored.sizes[test],
            offset=offset,
            norm=float(np.sqrt(max(0.0, own @ u[field.rows] + np.abs(own) @ e[field.rows]))),
        )

    # --- pairs of classes --------------------------------------------------------------------------------------------

    def run_pairs(self) -> None:
        """Pair after pair on a matrix of its own, then all held-out samples of a fold at once."""
        try:
            variables = sum(task.problem.n_variables for task in self._tasks(self._batch[0][1], self.folds[0]))
            # For how many machines at a time the problems of all pairs and folds take at most a quarter of the budget.
            each = _PAIR_VARIABLE_BYTES * max(1, variables) * len(self.folds)
            step = max(1, int(self._memory.budget / 4 / each))
            for first in range(0, len(self._batch), step):
                self._run_some_pairs(self._batch[first : first + step])
        except Exception as error:
            _tell(self._listener, self._batch, self.folds, error)

    def _run_some_pairs(self, batch: Batch) -> None:
        tasks = {(name, fold.number): self._tasks(machine, fold) for name, machine in batch for fold in self.folds}
        target = self._shared.whole.target
        labels = np.asarray(target.labels)[self._shared.whole.merged.y]

        def along(pair: tuple[Any, Any]) -> dict[tuple[int, int], TaskFit]:
            members = np.flatnonzero((labels == pair[0]) | (labels == pair[1]))
            stored = StoredGram.of(self._gram.view(members))
            at = np.full(len(labels), -1, np.intp)
            at[members] = np.arange(len(members))
            found = {}
            for fold in self.folds:
                assert fold.fit is not None
                named = _named(fold.fit.target)
                if pair not in named:
                    continue
                field: StoredField | None = None
                for name, machine in batch:
                    if not self._listener.wanted(name, fold.number):
                        continue
                    task = tasks[name, fold.number][named.index(pair)]
                    field = field or StoredField(stored, at[fold.rows[task.rows]])
                    try:
                        found[name, fold.number] = self._solve(machine, fold, task, field)
                    except Exception as error:
                        self._listener.failed(name, fold.number, error)
                        field = None  # what the last solve left cannot be trusted
            return found

        begun, pairs = time.perf_counter(), self.pairs or []
        if self._n_threads == 1:
            every = [along(pair) for pair in pairs]
        else:
            every = map_side_by_side(along, pairs, self._n_threads)
        seconds = (time.perf_counter() - begun) / max(1, len(batch) * len(self.folds))
        by_pair = dict(zip(pairs, every, strict=True))
        for fold in self.folds:
            self._conclude_pairs(fold, batch, by_pair, seconds)

    def _conclude_pairs(
        self, fold: Fold, batch: Batch, every: dict[tuple[Any, Any], dict[tuple[int, int], TaskFit]], share: float
    ) -> None:
        assert fold.fit is not None
        target, whole = fold.fit.target, self._shared.whole
        fits: dict[int, list[TaskFit]] = {}
        for name, _ in batch:
            own = [one for pair in _named(target) if (one := every[pair].get((name, fold.number))) is not None]
            if len(own) == len(target.pairs):  # where not, a pair has failed, or was not wanted any more
                fits[name] = own
        if not fits:
            return
        begun, n_pairs = time.perf_counter(), len(target.pairs)
        ordered = [one for own in fits.values() for one in own]
        data, rows = (np.concatenate([getattr(one, part) for one in ordered]) for part in ("coefficients", "rows"))
        ends = np.cumsum([0, *(len(one.rows) for one in ordered)])
        table = Table.of_columns(data, rows, ends, len(whole.merged.y))
        used = np.flatnonzero(table.lengths)
        used = used[np.argsort(whole.merged.y[used], kind="stable")]
        expansion = table_expansion(
            replace(whole, kernel=self._kernel), table, used, np.array([one.b for one in ordered])
        )
        values = expansion(take(whole.X, fold.test), self._n_threads)
        seconds = share + (time.perf_counter() - begun) / len(fits)
        for j, (name, own) in enumerate(fits.items()):
            part = np.ascontiguousarray(values[:, j * n_pairs : (j + 1) * n_pairs])
            self._listener.told(name, fold.number, FoldFit(target.labels, own, part, seconds))


def _named(target: Any) -> list[tuple[Any, Any]]:
    """The labels of each pair."""
    return [(target.labels[first], target.labels[second]) for first, second in target.pairs]
