"""Fits of all folds for a list of C on one stored K, and the decision values of the samples that each fold left out.

    shared = SharedFolds.of(machine, X, y, splits)          samples read and merged once
    fits = FoldFitter(shared, ...).fit(machines)             one FoldFit for each machine (C) and fold
    fits[c][f].values                                        held-out samples × outputs

Every fit has its certificates. Folds, or pairs of classes where there are many, are solved side by side, and each goes
from the smallest C to the largest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Floats, Indices, take
from mercer.certificates.certificate import Certificate
from mercer.data.table import Table
from mercer.fitting.pipeline.side_by_side import map_side_by_side
from mercer.fitting.pipeline.task import Solved, Task
from mercer.fitting.reports.coefficients import table_expansion
from mercer.gram import Gram
from mercer.kernels import Kernel, as_kernel
from mercer.selection.chain import Chain, Place
from mercer.selection.folds import Fold, SharedFolds
from mercer.selection.stored_kernel import SharedNumbers, StoredKernel, shares_numbers, stored_kernel

# What a variable of a pair takes: five numbers, a row and a group.
_PAIR_VARIABLE_BYTES = 52


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

    fold: Fold
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


# Whether the fit of machine c in fold f is still wanted, and what to do with it once it is there.
Wanted = Callable[[int, int], bool]
Told = Callable[[int, int, FoldFit], None]
# What to do with an error in the fit of machine c in fold f.
Failed = Callable[[int, int, Exception], None]
# The fits of one pair of classes, by machine and fold, each with the place of the pair among those of its fold.
_PairFits = dict[tuple[int, int], tuple[int, TaskFit]]


def _raise(c: int, f: int, error: Exception) -> None:
    raise error


class FoldFitter:
    """Fits machines that share a kernel to all folds; keeps the inner products that several kernels share."""

    def __init__(self, shared: SharedFolds, n_threads: int, budget: int, several_kernels: bool = False) -> None:
        self._shared, self._n_threads, self._budget = shared, n_threads, budget
        self._several, self._numbers = several_kernels, {}  # type: tuple[bool, dict[str, SharedNumbers | None]]

    def fit(
        self,
        machines: Sequence[Any],
        wanted: Wanted = lambda c, f: True,
        told: Told = lambda c, f, fit: None,
        failed: Failed = _raise,
    ) -> list[list[FoldFit | None]]:
        """One fit for each machine and fold; None where it was not wanted, or failed, or the fold could not be read."""
        found: list[list[FoldFit | None]] = [[None] * len(self._shared.folds) for _ in machines]

        def keep(c: int, f: int, fit: FoldFit) -> None:
            found[c][f] = fit
            told(c, f, fit)

        machines = [
            machine if machine.solver == "decomposition" else clone(machine).set_params(solver="decomposition")
            for machine in machines
        ]
        kernels = self._shared.kernels(machines[0])
        for group in self._shared.same(kernels):
            kernel = kernels[group[0]]
            assert kernel is not None
            _GroupFit(self, kernel, machines, group, wanted, keep, failed).run()
        return found

    def affordable(self, twins: bool) -> bool:
        """Whether K fits the budget."""
        return self._bytes(twins) <= self._budget

    def _bytes(self, twins: bool) -> int:
        return (3 if twins else 1) * 4 * len(self._shared.whole.merged.y) ** 2

    def gram(self, kernel: Kernel) -> Gram:
        """K of all samples, not stored."""
        return replace(self._shared.whole, kernel=kernel, _places={}).gram()

    def stored(self, gram: Gram, twins: bool) -> StoredKernel | None:
        """K of all samples."""
        recipe = gram.kernel.recipe() if gram.kernel.accepts == "vectors" else None
        constant = self._shared.whole.constant
        several = self._several and self._bytes(twins) + self._bytes(False) <= self._budget
        if recipe is None or not several or constant or not shares_numbers(recipe):
            return stored_kernel(gram)
        if recipe.inner not in self._numbers:
            linear = self.gram(as_kernel("linear"))
            self._numbers[recipe.inner] = SharedNumbers.of(linear, recipe)
        return stored_kernel(gram, self._numbers[recipe.inner])

    def pair_chunk(self, tasks: Sequence[Task], n_folds: int) -> int:
        """For how many machines at a time the problems of all pairs and folds take at most a quarter of the budget."""
        variables = sum(task.problem.n_variables for task in tasks)
        return max(1, int(self._budget / 4 / (_PAIR_VARIABLE_BYTES * max(1, variables) * n_folds)))

    @property
    def shared(self) -> SharedFolds:
        return self._shared

    @property
    def n_threads(self) -> int:
        return self._n_threads


class _GroupFit:
    """The fits of folds that have the same kernel."""

    def __init__(
        self,
        fitter: FoldFitter,
        kernel: Kernel,
        machines: Sequence[Any],
        folds: list[int],
        wanted: Wanted,
        keep: Told,
        failed: Failed,
    ) -> None:
        self._fitter, self._kernel, self._machines = fitter, kernel, machines
        self._wanted, self._keep, self._failed = wanted, keep, failed
        self._folds = [fitter.shared.folds[f] for f in folds]
        self._gram = fitter.gram(kernel)
        self._gram.share()

    def run(self) -> None:
        pairs = self._pairs()
        if pairs is None:
            self._run_folds()
        else:
            step = self._fitter.pair_chunk(self._tasks(0, self._folds[0]), len(self._folds))
            for first in range(0, len(self._machines), step):
                self._run_pairs(pairs, range(first, min(first + step, len(self._machines))))

    def _tasks(self, c: int, fold: Fold) -> Sequence[Task]:
        assert fold.fit is not None
        fit = replace(fold.fit, kernel=self._kernel, _places={id(self._kernel): self._gram.view(fold.rows)})
        vars(fit)["diagonal"] = self._gram.diagonal[fold.rows]  # it has no samples to compute this from
        tasks: Sequence[Task] = self._machines[c]._tasks(fit)
        return tasks

    def _pairs(self) -> list[tuple[Any, Any]] | None:
        """The pairs of classes of one-against-one machines; None where every problem is about all samples."""
        targets = [fold.fit.target for fold in self._folds if fold.fit is not None]
        labels = getattr(targets[0], "labels", None)
        against_rest = getattr(self._machines[0], "multiclass", "ovo") != "ovo"
        if labels is None or against_rest or all(len(target.labels) == 2 for target in targets):
            return None
        named = {pair: None for target in targets for pair in _named(target)}
        return list(named)

    # --- every problem is about all samples --------------------------------------------------------------------------

    def _run_folds(self) -> None:
        kernel = self._fitter.stored(self._gram, twins=self._twins)
        if kernel is None:
            raise FloatingPointError(f"float32 does not hold the values of {self._kernel!r}; scale the features")
        table = np.concatenate([kernel.values, kernel.values], axis=1) if self._twins else kernel.values
        n_threads = min(self._fitter.n_threads, len(self._folds))

        def along(fold: Fold) -> None:
            chains: dict[int, Chain] = {}
            for c in range(len(self._machines)):
                if self._wanted(c, fold.number):
                    begun = time.perf_counter()
                    try:
                        fits = [
                            self._solve(c, fold, k, task, kernel, table, chains) for k, task in self._listed(c, fold)
                        ]
                    except Exception as error:
                        self._failed(c, fold.number, error)
                        chains.clear()  # what the last solve left cannot be trusted
                        continue
                    values = np.column_stack([fit.values for fit in fits if fit.values is not None])
                    classes = getattr(fold.fit.target, "labels", None) if fold.fit is not None else None
                    self._keep(c, fold.number, FoldFit(fold, classes, fits, values, time.perf_counter() - begun))

        if n_threads == 1:
            for fold in self._folds:
                along(fold)
        else:
            map_side_by_side(along, self._folds, n_threads)

    def _listed(self, c: int, fold: Fold) -> list[tuple[int, Task]]:
        return list(enumerate(self._tasks(c, fold)))

    @property
    def _twins(self) -> bool:
        task = self._tasks(0, self._folds[0])[0]
        return bool(task.problem.twins)

    def _solve(
        self, c: int, fold: Fold, k: int, task: Task, kernel: StoredKernel, table: Any, chains: dict[int, Chain]
    ) -> TaskFit:
        assert fold.fit is not None
        if k not in chains:
            chains[k] = Chain(Place(kernel, fold.rows[task.rows], table))
        chain, limits = chains[k], fold.fit.limits.stop
        stop = replace(limits, tol=task.unit * limits.tol)
        solution, certificate = chain.solve(task.problem, stop, task.solve)
        b = Solved(task, solution, certificate).bias(getattr(self._machines[c], "bias", True))
        test = self._fitter.shared.rows[fold.test]
        u, e = chain.values
        offset = 0.0 if fold.fit.constant else b  # u has the constant feature's part already
        close = np.unique(test[np.abs(u[test] + offset) <= e[test]])
        if len(close):  # a sign that the stored values leave open
            chain.sharpen(close)
        rows = chain.place.rows
        coefficients = task.problem.row_coefficients(solution.beta, len(rows))
        return TaskFit(
            rows,
            coefficients,
            b,
            certificate,
            solution.steps,
            solution.stop_reason,
            values=u[test] + offset,
            errors=e[test].copy(),
            lengths=kernel.sizes[test],
            offset=offset,
            norm=float(np.sqrt(max(0.0, coefficients @ u[rows] + np.abs(coefficients) @ e[rows]))),
        )

    # --- pairs of classes --------------------------------------------------------------------------------------------

    def _run_pairs(self, pairs: list[tuple[Any, Any]], cs: range) -> None:
        """Pair after pair on a matrix of its own, then all held-out samples of a fold at once."""
        tasks = {(c, fold.number): self._tasks(c, fold) for c in cs for fold in self._folds}
        labels = np.asarray(self._fitter.shared.whole.target.labels)[self._fitter.shared.whole.merged.y]

        def along(pair: tuple[Any, Any]) -> _PairFits:
            members = np.flatnonzero((labels == pair[0]) | (labels == pair[1]))
            kernel = stored_kernel(self._gram.view(members))
            if kernel is None:
                raise FloatingPointError(f"float32 does not hold the values of {self._kernel!r}; scale the features")
            at = np.full(len(labels), -1, np.intp)
            at[members] = np.arange(len(members))
            found = {}
            for fold in self._folds:
                assert fold.fit is not None
                named = _named(fold.fit.target)
                if pair not in named:
                    continue
                k, chain = named.index(pair), None
                for c in cs:
                    if not self._wanted(c, fold.number):
                        continue
                    task = tasks[c, fold.number][k]
                    if chain is None:
                        chain = Chain(Place(kernel, at[fold.rows[task.rows]], kernel.values))
                    try:
                        solution, certificate = chain.solve(task.problem, fold.fit.limits.stop, task.solve)
                    except Exception as error:
                        self._failed(c, fold.number, error)
                        chain = None  # what the last solve left cannot be trusted
                        continue
                    b = Solved(task, solution, certificate).bias(self._machines[c].bias)
                    found[c, fold.number] = (
                        k,
                        TaskFit(
                            fold.rows[task.rows], solution.beta, b, certificate, solution.steps, solution.stop_reason
                        ),
                    )
            return found

        begun = time.perf_counter()
        if self._fitter.n_threads == 1:
            every = [along(pair) for pair in pairs]
        else:
            every = map_side_by_side(along, pairs, self._fitter.n_threads)
        seconds = (time.perf_counter() - begun) / max(1, len(cs) * len(self._folds))
        for fold in self._folds:
            self._conclude_pairs(fold, every, seconds)

    def _conclude_pairs(
        self, fold: Fold, every: list[dict[tuple[int, int], tuple[int, TaskFit]]], share: float
    ) -> None:
        assert fold.fit is not None
        n_pairs, shared = len(fold.fit.target.pairs), self._fitter.shared
        fits: dict[int, list[Any]] = {}
        for found in every:
            for (c, f), (k, one) in found.items():
                if f == fold.number:
                    fits.setdefault(c, [None] * n_pairs)[k] = one
        fits = {c: own for c, own in fits.items() if None not in own}  # of others a pair has failed
        if not fits:
            return
        begun, cs = time.perf_counter(), sorted(fits)
        ordered = [one for c in cs for one in fits[c]]
        entries = [(one.coefficients, one.rows) for one in ordered]
        data, rows = (np.concatenate(part) for part in zip(*entries, strict=True))
        ends = np.cumsum([0, *(len(one.rows) for one in ordered)])
        table = Table.of_columns(data, rows, ends, len(shared.whole.merged.y))
        used = np.flatnonzero(table.lengths)
        used = used[np.argsort(shared.whole.merged.y[used], kind="stable")]
        b = np.array([one.b for one in ordered])
        whole = replace(shared.whole, kernel=self._kernel)
        values = table_expansion(whole, table, used, b)(take(shared.whole.X, fold.test), self._fitter.n_threads)
        seconds = share + (time.perf_counter() - begun) / len(cs)
        for j, c in enumerate(cs):
            own = np.ascontiguousarray(values[:, j * n_pairs : (j + 1) * n_pairs])
            self._keep(c, fold.number, FoldFit(fold, fold.fit.target.labels, fits[c], own, seconds))


def _named(target: Any) -> list[tuple[Any, Any]]:
    """The labels of each pair."""
    return [(target.labels[first], target.labels[second]) for first, second in target.pairs]
