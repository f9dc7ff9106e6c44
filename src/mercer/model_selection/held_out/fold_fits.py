"""Fits of all folds for lists of C on stored kernel matrices, and the decision values of held-out samples.

    shared = SharedFolds.of(machine, X, y, splits)          reads and merges the samples once
    fit_folds(shared, batches, listener, ...)                passes one FoldFit per machine and fold to the listener

Every fit has its certificates. Folds, or pairs of classes if there are many, are solved in parallel; within each, the
machines of a batch are fitted in their order, from the smallest C to the largest.
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
from mercer.estimators.fitting.pipeline.task import Solved, Task, map_in_threads
from mercer.estimators.fitting.reports.coefficients import table_expansion
from mercer.model_selection.held_out.folds import Fold, SharedFolds
from mercer.places import Gram
from mercer.places.host.stored_gram import StoredField, StoredGram
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.long_calls import WAKE_SECONDS
from mercer.samples.arrays import Floats, Indices, take
from mercer.samples.coefficient_table import CoefficientTable
from mercer.samples.engine import EngineSamples
from mercer.solvers.dual.certified import solve_stored
from mercer.solvers.solution import Stop

# Bytes of one variable in the problem of a pair of classes: five float64 numbers, a row and a group.
_PAIR_VARIABLE_BYTES = 52

# Machines with the same kernel, each with its number.
Batch = Sequence[tuple[int, Any]]


@dataclass(frozen=True, eq=False)
class TaskFit:
    """The solution of one problem of a fold: coefficients for rows of the shared K, b, and the certificate."""

    rows: Indices
    coefficients: Floats
    b: float
    certificate: Certificate
    steps: int
    stop_reason: str
    values: Floats | None = None  # decision values of the held-out samples, if the problem is about all rows
    errors: Floats | None = None  # bounds on the rounding error of each value
    lengths: Floats | None = None  # √k(x, x) of the held-out samples
    offset: float = 0.0  # the part of the values that is not ⟨w, φ(x)⟩
    norm: float = 0.0  # an upper bound on ‖w‖


@dataclass(frozen=True, eq=False)
class FoldFit:
    """A machine fitted to one fold."""

    classes: Any  # labels of the training samples; None without classes
    tasks: list[TaskFit]
    values: Floats  # decision values of the held-out samples, one column per output
    seconds: float = 0.0

    @property
    def certificate(self) -> Certificate:
        """Certificate of all problems of this fit together."""
        return Certificate.total([task.certificate for task in self.tasks])

    @property
    def stop_reason(self) -> str:
        """Stop reason of the first problem that did not converge, or "converged"."""
        return next((task.stop_reason for task in self.tasks if task.stop_reason != "converged"), "converged")


class Listener(Protocol):
    """Receiver of fits, each identified by the number of its machine and its fold; several threads may call it."""

    def is_needed(self, number: int, fold: int, /) -> bool:
        """Return whether this fit is still wanted."""

    def finished(self, number: int, fold: int, fit: FoldFit, /) -> None:
        """Receive a fit."""

    def failed(self, number: int, fold: int, error: Exception, /) -> None:
        """Receive the error of a fit."""


def fits_budget(shared: SharedFolds, budget: int, twins: bool) -> bool:
    """Return whether a stored K takes at most `budget` bytes; `twins` says that every sample has two variables."""
    return _matrix_bytes(shared, twins) <= budget


def fit_folds(shared: SharedFolds, batches: Sequence[Batch], listener: Listener, n_threads: int, budget: int) -> None:
    """Fit every machine to every fold that could be read, and pass the fits and errors to the listener."""
    memory = _Memory(budget)
    chains: list[tuple[_BatchFit, Fold]] = []  # the machines of a batch, fitted one after another to one fold
    for batch in batches:
        batch = [(number, clone(machine).set_params(solver="decomposition")) for number, machine in batch]
        try:
            kernels = shared.kernels(batch[0][1])
            groups = [
                _BatchFit(
                    shared, memory, kernels[folds[0]], batch, [shared.folds[f] for f in folds], listener, n_threads
                )
                for folds in shared.group_by_kernel(kernels)
            ]
        except Exception as error:  # an error of a kernel concerns only its batch
            _fail_batch(listener, batch, [fold for fold in shared.folds if fold.fit is not None], error)
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
        max_solvers = (X.most_solvers if isinstance(X, EngineSamples) else None) or n_threads
        map_in_threads(lambda chain: chain[0].run_fold(chain[1]), chains, min(n_threads, len(chains), max_solvers))


def _fail_batch(listener: Listener, batch: Batch, folds: Sequence[Fold], error: Exception) -> None:
    """Report the error for every machine of the batch in every fold."""
    for number, _ in batch:
        for fold in folds:
            listener.failed(number, fold.number, error)


def _matrix_bytes(shared: SharedFolds, twins: bool) -> int:
    """Return the bytes of a stored K of all merged samples."""
    return (3 if twins else 1) * 4 * len(shared.whole.merged.y) ** 2


class _Memory:
    """Memory budget of stored matrices, in bytes; one matrix is always allowed."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._lock, self._reserved_bytes = threading.Lock(), 0

    def reserve(self, n_bytes: int) -> None:
        """Wait until this much memory is free, and reserve it."""
        while True:
            with self._lock:
                if self._reserved_bytes == 0 or self._reserved_bytes + n_bytes <= self.budget:
                    self._reserved_bytes += n_bytes
                    return
            _core.check_stop()
            time.sleep(WAKE_SECONDS)

    def release(self, n_bytes: int) -> None:
        """Give reserved memory back."""
        with self._lock:
            self._reserved_bytes -= n_bytes


class _BatchFit:
    """The fits of a batch of machines in folds that have the same kernel."""

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
        self._shared_folds, self._memory, self._kernel, self._batch, self.folds = shared, memory, kernel, batch, folds
        self._listener, self._n_threads = listener, n_threads
        self._lock, self._n_unfinished = threading.Lock(), len(folds)
        self._stored_gram: StoredGram | None = None
        self._reserved_bytes = 0  # bytes reserved for K

    @cached_property
    def _gram(self) -> Gram:
        """The Gram matrix of all merged samples."""
        gram = replace(self._shared_folds.whole, kernel=self._kernel, _places={}).gram()
        gram.share()
        return gram

    @cached_property
    def pairs(self) -> list[tuple[Any, Any]] | None:
        """Pairs of classes of one-against-one machines; None if every problem is about all samples."""
        targets = [fold.fit.target for fold in self.folds if fold.fit is not None]
        labels = getattr(targets[0], "labels", None)
        is_against_rest = getattr(self._batch[0][1], "multiclass", "ovo") != "ovo"
        if labels is None or is_against_rest or all(len(target.labels) == 2 for target in targets):
            return None
        return list({pair: None for target in targets for pair in _label_pairs(target)})

    def _tasks(self, machine: Any, fold: Fold) -> Sequence[Task[DualProblem]]:
        """Return the problems of a machine in a fold."""
        assert fold.fit is not None
        fit = replace(fold.fit, kernel=self._kernel)
        fit = fit.with_gram(self._gram.view(fold.rows), self._gram.diagonal[fold.rows])
        tasks: Sequence[Task[DualProblem]] = machine._tasks(fit)
        return tasks

    def _solve(self, machine: Any, fold: Fold, task: Task[DualProblem], field: StoredField) -> TaskFit:
        """Solve one problem of a fold on a stored K, starting from the solution of the field's previous problem."""
        assert fold.fit is not None
        limits = fold.fit.limits.stop
        stop = replace(limits, tol=task.unit * limits.tol)

        def solve_on_field(problem: DualProblem, _: Gram, stop: Stop, start: Any = None, **options: Any) -> Any:
            return solve_stored(problem, field, stop, task.solve)

        solve = solve_on_field if task.outer_solver is None else partial(task.outer_solver, inner_solver=solve_on_field)
        solution, proof = solve(task.problem, field.gram, stop)
        b = Solved(task, solution, proof).bias(getattr(machine, "bias", True))
        coefficients = task.problem.row_coefficients(solution.beta, len(field.rows))
        return TaskFit(fold.rows[task.rows], coefficients, b, proof, solution.steps, solution.stop_reason)

    # --- every problem is about all samples --------------------------------------------------------------------------

    def run_fold(self, fold: Fold) -> None:
        """Fit all machines to one fold, each starting from the previous solution; the last fold to end releases K."""
        # `twins`: every sample has two variables, as in an ε-tube.
        try:
            if any(self._listener.is_needed(number, fold.number) for number, _ in self._batch):
                try:
                    stored_gram, twins = self._matrix(fold)
                except Exception as error:  # an error of a kernel concerns only its batch
                    _fail_batch(self._listener, self._batch, [fold], error)
                else:
                    self._fit_machines(fold, stored_gram, twins)
        finally:
            with self._lock:
                self._n_unfinished -= 1
                if self._n_unfinished == 0:
                    self._stored_gram = None
                    self._memory.release(self._reserved_bytes)

    def _matrix(self, fold: Fold) -> tuple[StoredGram, bool]:
        """Return K of all samples, computed once, and whether a sample has two variables."""
        with self._lock:
            twins = bool(self._tasks(self._batch[0][1], fold)[0].problem.twins)
            if not self._reserved_bytes:
                n_bytes = _matrix_bytes(self._shared_folds, twins)
                self._memory.reserve(n_bytes)
                self._reserved_bytes = n_bytes
            if self._stored_gram is None:
                self._stored_gram = StoredGram.of(self._gram)
            return self._stored_gram, twins

    def _fit_machines(self, fold: Fold, stored_gram: StoredGram, twins: bool) -> None:
        """Fit the machines one after another to one fold, and pass the fits and errors to the listener."""
        assert fold.fit is not None
        fields: dict[int, StoredField] = {}
        for number, machine in self._batch:
            if not self._listener.is_needed(number, fold.number):
                continue
            start_time = time.perf_counter()
            try:
                fits = []
                for k, task in enumerate(self._tasks(machine, fold)):
                    if k not in fields:
                        fields[k] = StoredField(stored_gram, fold.rows[task.rows], twins=twins)
                    fits.append(self._add_held_out_values(self._solve(machine, fold, task, fields[k]), fold, fields[k]))
            except Exception as error:
                self._listener.failed(number, fold.number, error)
                fields.clear()  # the state of a failed solve is not reliable
                continue
            values = np.column_stack([fit.values for fit in fits if fit.values is not None])
            classes = getattr(fold.fit.target, "labels", None)
            self._listener.finished(
                number, fold.number, FoldFit(classes, fits, values, time.perf_counter() - start_time)
            )

    def _add_held_out_values(self, fit: TaskFit, fold: Fold, field: StoredField) -> TaskFit:
        """Return the fit with the decision values of the held-out samples; the field has u = Kβ of their rows too."""
        assert fold.fit is not None
        test_rows = self._shared_folds.rows[fold.test]
        offset = 0.0 if fold.fit.constant else fit.b  # u includes the constant feature already
        uncertain_rows = np.unique(test_rows[np.abs(field.u[test_rows] + offset) <= field.e[test_rows]])
        if len(uncertain_rows):  # the stored precision does not determine their sign
            field.sharpen(uncertain_rows)
        beta, u, e = fit.coefficients, field.u, field.e
        return replace(
            fit,
            values=u[test_rows] + offset,
            errors=e[test_rows],
            lengths=field.stored.sizes[test_rows],
            offset=offset,
            norm=float(np.sqrt(max(0.0, beta @ u[field.rows] + np.abs(beta) @ e[field.rows]))),
        )

    # --- pairs of classes --------------------------------------------------------------------------------------------

    def run_pairs(self) -> None:
        """Fit the pairs of classes, each on its own matrix, then compute the held-out values of each fold."""
        try:
            n_variables = sum(task.problem.n_variables for task in self._tasks(self._batch[0][1], self.folds[0]))
            # Fit as many machines at a time as a quarter of the budget holds, with all their pairs and folds.
            machine_bytes = _PAIR_VARIABLE_BYTES * max(1, n_variables) * len(self.folds)
            step = max(1, int(self._memory.budget / 4 / machine_bytes))
            for first in range(0, len(self._batch), step):
                self._fit_pairs(self._batch[first : first + step])
        except Exception as error:
            _fail_batch(self._listener, self._batch, self.folds, error)

    def _fit_pairs(self, batch: Batch) -> None:
        """Fit some machines of the batch to all pairs of classes, each pair in every fold that has both classes."""
        tasks = {(number, fold.number): self._tasks(machine, fold) for number, machine in batch for fold in self.folds}
        target = self._shared_folds.whole.target
        labels = np.asarray(target.labels)[self._shared_folds.whole.merged.y]

        def fit_pair(pair: tuple[Any, Any]) -> dict[tuple[int, int], TaskFit]:
            members = np.flatnonzero((labels == pair[0]) | (labels == pair[1]))
            stored_gram = StoredGram.of(self._gram.view(members))
            index_in_pair = np.full(len(labels), -1, np.intp)
            index_in_pair[members] = np.arange(len(members))
            fits = {}
            for fold in self.folds:
                assert fold.fit is not None
                label_pairs = _label_pairs(fold.fit.target)
                if pair not in label_pairs:
                    continue
                field: StoredField | None = None
                for number, machine in batch:
                    if not self._listener.is_needed(number, fold.number):
                        continue
                    task = tasks[number, fold.number][label_pairs.index(pair)]
                    field = field or StoredField(stored_gram, index_in_pair[fold.rows[task.rows]])
                    try:
                        fits[number, fold.number] = self._solve(machine, fold, task, field)
                    except Exception as error:
                        self._listener.failed(number, fold.number, error)
                        field = None  # the state of a failed solve is not reliable
            return fits

        start_time, pairs = time.perf_counter(), self.pairs or []
        if self._n_threads == 1:
            fits = [fit_pair(pair) for pair in pairs]
        else:
            fits = map_in_threads(fit_pair, pairs, self._n_threads)
        seconds = (time.perf_counter() - start_time) / max(1, len(batch) * len(self.folds))
        pair_fits = dict(zip(pairs, fits, strict=True))
        for fold in self.folds:
            self._conclude_pairs(fold, batch, pair_fits, seconds)

    def _conclude_pairs(
        self,
        fold: Fold,
        batch: Batch,
        pair_fits: dict[tuple[Any, Any], dict[tuple[int, int], TaskFit]],
        fit_seconds: float,
    ) -> None:
        """Compute the held-out values of a fold from its pairs, and pass the fits to the listener.

        `pair_fits` maps a pair of labels, and then the numbers of a machine and a fold, to the fit. `fit_seconds` is
        the mean time that the pairs of one machine took in one fold.
        """
        assert fold.fit is not None
        target, whole_fit = fold.fit.target, self._shared_folds.whole
        fits: dict[int, list[TaskFit]] = {}
        for number, _ in batch:
            attempts = [pair_fits[pair].get((number, fold.number)) for pair in _label_pairs(target)]
            machine_fits = [fit for fit in attempts if fit is not None]
            if len(machine_fits) == len(target.pairs):  # otherwise a pair has failed, or was skipped
                fits[number] = machine_fits
        if not fits:
            return
        start_time, n_pairs = time.perf_counter(), len(target.pairs)
        all_fits = [fit for machine_fits in fits.values() for fit in machine_fits]
        data, rows = (np.concatenate([getattr(fit, part) for fit in all_fits]) for part in ("coefficients", "rows"))
        ends = np.cumsum([0, *(len(fit.rows) for fit in all_fits)])
        table = CoefficientTable.of_columns(data, rows, ends, len(whole_fit.merged.y))
        used = np.flatnonzero(table.lengths)
        used = used[np.argsort(whole_fit.merged.y[used], kind="stable")]
        expansion = table_expansion(
            replace(whole_fit, kernel=self._kernel), table, used, np.array([fit.b for fit in all_fits])
        )
        values = expansion(take(whole_fit.X, fold.test), self._n_threads)
        seconds = fit_seconds + (time.perf_counter() - start_time) / len(fits)
        for j, (number, machine_fits) in enumerate(fits.items()):
            machine_values = np.ascontiguousarray(values[:, j * n_pairs : (j + 1) * n_pairs])
            self._listener.finished(number, fold.number, FoldFit(target.labels, machine_fits, machine_values, seconds))


def _label_pairs(target: Any) -> list[tuple[Any, Any]]:
    """Return the labels of each pair of classes."""
    return [(target.labels[first], target.labels[second]) for first, second in target.pairs]
