"""The part of a search whose fits share kernel values: between folds, or within each fold behind a pipeline's steps."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.arrays import n_samples, stack
from mercer.selection.folds import SharedFolds, part_of, shares
from mercer.selection.grids import PRICES, bare
from mercer.selection.out_of_fold import FoldFit, FoldFitter
from mercer.selection.scoring import HeldOut, scored

if TYPE_CHECKING:
    from mercer.selection.tune import Search

# Parameters of a kernel: neither samples nor targets are read differently because of them.
_OF_KERNELS = ("gamma", "degree", "coef0")


class SharedSearch:
    """Runs groups of points that share a kernel."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self.words: list[str] = []
        self._lock = threading.Lock()

    def run(self, groups: Sequence[list[int]]) -> list[tuple[list[int], str]]:
        """Fit and score what can be shared; returns the other groups, each with the reason."""
        rest = []
        readings: dict[str, list[list[int]]] = {}
        for group in groups:
            reason = self._refusal(group)
            if reason is not None:
                rest.append((group, reason))
            else:
                readings.setdefault(self._reading(group[0]), []).append(group)
        for together in readings.values():
            estimator = self._search.estimator
            ways = self._by_steps(together) if isinstance(estimator, Pipeline) else self._at_once(together)
            rest += ways
        return rest

    # --- what can be shared ------------------------------------------------------------------------------------------

    def _machine(self, point: int) -> Any:
        estimator = clone(self._search.estimator).set_params(**self._search.cells.points[point])
        return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator

    def _refusal(self, group: list[int]) -> str | None:
        try:
            machine = self._machine(group[0])
        except (TypeError, ValueError) as error:
            return str(error)
        return shares(machine)

    def _reading(self, point: int) -> str:
        """A key that is equal for points whose samples are read in the same way."""
        params = self._search.cells.points[point]
        kept = {n: v for n, v in params.items() if bare(n) not in (*PRICES, *_OF_KERNELS) and "kernel__" not in n}
        machine = self._machine(point)
        kernel = machine._kernel()
        kept = {name: value for name, value in kept.items() if bare(name) != "kernel"}
        return repr((sorted(kept.items()), kernel.accepts, kernel.mergeable))

    # --- the same samples in every fold ------------------------------------------------------------------------------

    def _at_once(self, groups: list[list[int]]) -> list[tuple[list[int], str]]:
        search, machine = self._search, self._machine(groups[0][0])
        every = list(range(len(search.splits)))
        try:
            shared = SharedFolds.of(machine, search.X, search.y, search.splits, search.sample_weight)
        except Exception as error:
            if search.cells.done == 0:
                raise  # nothing can be fitted, and the error is the estimator's own
            self._fail(groups, every, error)
            return []
        fitter = FoldFitter(shared, search.n_threads, search.budget, len(groups) > 1)
        if not fitter.affordable(twins=_twins(machine)):
            n = n_samples(shared.whole.merged.y)
            reason = f"K of {n:,} samples does not fit cache_size, so that every fit computes its own kernel values"
            return [(group, reason) for group in groups]
        self.words.append(f"kernel values of {n_samples(search.X):,} samples between all folds, for each kernel")
        for fold in shared.folds:
            if fold.error is not None:
                self._fail(groups, [fold.number], fold.error)
        for group in groups:
            self._fit(fitter, group, every)
        return []

    def _fit(self, fitter: FoldFitter, group: list[int], numbers: list[int]) -> None:
        """Fit a group; fold f of the fitter is fold numbers[f] of the search."""
        search, cells = self._search, self._search.cells
        machines = [self._machine(point).set_params(solver="decomposition") for point in group]

        held_out = self._held_out

        def wanted(c: int, f: int) -> bool:
            return search.wanted(group[c], numbers[f])

        def told(c: int, f: int, fit: FoldFit) -> None:
            point, fold = group[c], numbers[f]
            try:
                X, y, weight = held_out[fold]
                score = scored(search.scorer, HeldOut.of(machines[c], fit.values, fit.classes), X, y, weight)
            except Exception as error:  # of a score that the user gave
                cells.fail(point, fold, error)
            else:
                proof = fit.certificate
                if fit.stop_reason != "converged":
                    cells.notes[point, fold] = f"stopped early ({fit.stop_reason})"
                cells.put(point, fold, score, proof.gap, proof.relative_gap, fit.seconds)
                search.gap.put(point, fold, machines[c], fit, y)
            with self._lock:
                search.told(point, fold)

        def failed(c: int, f: int, error: Exception) -> None:
            self._fail([[group[c]]], [numbers[f]], error)
            with self._lock:
                search.told(group[c], numbers[f])

        try:
            fitter.fit(machines, wanted, told, failed)
        except Exception as error:  # a kernel that raises ends its own group only
            self._fail([group], numbers, error)

    @cached_property
    def _held_out(self) -> list[tuple[Any, Any, Any]]:
        return [self._search.held_out(fold) for fold in range(len(self._search.splits))]

    def _fail(self, groups: Sequence[list[int]], folds: list[int], error: BaseException) -> None:
        cells = self._search.cells
        for group in groups:
            for point in group:
                for fold in folds:
                    if np.isnan(cells.scores[point, fold]) and point not in cells.lost:
                        cells.fail(point, fold, error)

    # --- samples that the steps before the machine make, fold by fold ------------------------------------------------

    def _by_steps(self, groups: list[list[int]]) -> list[tuple[list[int], str]]:
        search = self._search
        self.words.append(
            "kernel values within each fold, for all C and kernels: the steps before the machine are refitted for "
            "every fold, so that folds have different samples"
        )
        for fold, (train, test) in enumerate(search.splits):
            wanted = [[k for k in group if search.wanted(k, fold)] for group in groups]
            kept = [group for group in wanted if group]
            if not kept:
                continue
            try:
                shared = self._transformed(kept[0][0], train, test)
            except Exception as error:
                self._fail(kept, [fold], error)
                continue
            fitter = FoldFitter(shared, search.n_threads, search.budget, len(kept) > 1)
            if shared.folds[0].error is not None:
                self._fail(kept, [fold], shared.folds[0].error)
                continue
            if not fitter.affordable(twins=_twins(self._machine(kept[0][0]))):
                return [(group, "K does not fit cache_size") for group in groups]
            for group in kept:
                self._fit(fitter, group, [fold])
        return []

    def _transformed(self, point: int, train: Any, test: Any) -> SharedFolds:
        """The samples of a fold as the machine sees them, the training samples first."""
        search = self._search
        pipeline = clone(search.estimator).set_params(**search.cells.points[point])
        y = None if search.y is None else search.y[train]
        parts = [search.X.iloc[r] if hasattr(search.X, "iloc") else part_of(search.X, r) for r in (train, test)]
        before = pipeline[:-1]
        left = before.fit_transform(parts[0], y) if len(pipeline.steps) > 1 else parts[0]
        right = before.transform(parts[1]) if len(pipeline.steps) > 1 else parts[1]
        X = stack(left, right)
        order = np.concatenate([train, test])
        split = (np.arange(len(train)), np.arange(len(train), len(order)))
        y = None if search.y is None else search.y[order]
        weight = None if search.sample_weight is None else search.sample_weight[order]
        found: SharedFolds = SharedFolds.of(pipeline.steps[-1][1], X, y, [split], weight)
        return found


def _twins(machine: Any) -> bool:
    """Whether a sample has two variables."""
    return getattr(machine, "loss", "") in ("epsilon_insensitive", "squared_epsilon_insensitive", "expectile")
