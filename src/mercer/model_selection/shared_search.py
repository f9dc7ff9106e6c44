"""Fits of a search that share kernel values: between all folds, or within each fold behind the steps of a pipeline."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.model_selection.grids import KERNEL_PARAMETERS, PROBLEM_PARAMETERS, drop_parameters, prefix_and_machine
from mercer.model_selection.held_out.fold_fits import FoldFit, fit_folds, fits_budget
from mercer.model_selection.held_out.folds import SharedFolds, reason_not_shared
from mercer.model_selection.parameter_keys import group_equal_keys, key_of_params
from mercer.model_selection.preprocessing import Preprocessing
from mercer.model_selection.scoring import NeedsModel, needs_predictions_only, score_of_values
from mercer.samples.arrays import n_samples, stack

if TYPE_CHECKING:
    from mercer.model_selection.search import Search

# Reason why fits of many small pairs of classes share nothing; they use no warm start either.
MANY_PAIRS = "a fit solves its many pairs of classes in one call"


class SharedSearch:
    """Fits and scores the points of a search that can share kernel values; it is the `Listener` of these fits."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self.descriptions: list[str] = []  # description of each set of kernel values that fits shared
        self._lock = threading.Lock()
        self._machines: dict[int, Any] = {}
        self._model_reason = ""  # why the scorer needs fitted models, if it does
        self._units: dict[int, tuple[float, float]] = {}  # mean and scale of y in each fold

    def run(self, groups: Sequence[list[int]]) -> list[tuple[list[int], str]]:
        """Fit and score the points that can share kernel values; return the other groups, each with the reason."""
        not_shared, shared = [], []
        for group in groups:
            reasons = [self._refusal(point) for point in group]
            for indices in group_equal_keys(reasons):
                points, reason = [group[k] for k in indices], reasons[indices[0]]
                if reason is None:
                    shared.append(points)
                else:
                    not_shared.append((points, reason))
        fit = self._fit_by_steps if self._search.prefix else self._fit_at_once
        for indices in group_equal_keys(self._reading_key(group[0]) for group in shared):
            same_samples = [shared[k] for k in indices]
            if not self._model_reason:
                not_shared += fit(same_samples)
            if self._model_reason:  # a fit may have set it
                not_shared += [(group, self._model_reason) for group in same_samples]
        return not_shared

    # --- which points can share -------------------------------------------------------------------------------------

    def _machine(self, point: int) -> Any:
        """Return the unfitted machine at a point of the grid, made once."""
        if point not in self._machines:
            self._machines[point] = prefix_and_machine(self._search.at(point))[1]
        return self._machines[point]

    def _refusal(self, point: int) -> str | None:
        """Return why the fits of a point cannot share kernel values, or None if they can."""
        try:
            estimator = self._search.at(point)
            machine = prefix_and_machine(estimator)[1]
            return Preprocessing.refusal(estimator) or reason_not_shared(machine) or self._refuse_many_pairs(machine)
        except (TypeError, ValueError) as error:
            return str(error)

    def _refuse_many_pairs(self, machine: Any) -> str | None:
        """Return `MANY_PAIRS` if there are at least 15 pairs of classes, of at most 200 samples on average, else None.

        One call of the core for all pairs of a fit then costs less than steps in Python for each pair
        (benchmarks/compare_tables.py).
        """
        search = self._search
        if getattr(machine, "multiclass", "") != "ovo" or search.sample_weight is not None:
            return None
        has_many_pairs = self._n_classes > 5 and len(search.y) <= 100 * self._n_classes
        return MANY_PAIRS if has_many_pairs and machine._kernel().accepts != "gram" else None

    @cached_property
    def _n_classes(self) -> int:
        return len(np.unique(np.asarray(self._search.y)))

    def _reading_key(self, point: int) -> Hashable:
        """Return a key that is equal for points whose samples are read in the same way."""
        params, prefix = self._search.cells.points[point], self._search.prefix
        params = drop_parameters((*PROBLEM_PARAMETERS, *KERNEL_PARAMETERS, "kernel"), params, prefix)
        params = {name: value for name, value in params.items() if not name.startswith(f"{prefix}kernel__")}
        kernel = self._machine(point)._kernel()
        return key_of_params(params), kernel.accepts, kernel.mergeable

    # --- the same samples for all folds ------------------------------------------------------------------------------

    def _fit_at_once(self, groups: list[list[int]]) -> list[tuple[list[int], str]]:
        """Fit groups in all folds on one K per kernel; return the groups whose K is too large, each with the reason."""
        search, machine = self._search, self._machine(groups[0][0])
        try:
            shared = SharedFolds.of(machine, search.X, search.y, search.splits, search.sample_weight)
        except Exception as error:
            if search.cells.done == 0:
                raise  # nothing can be fitted
            self._fail(groups, range(len(search.splits)), error)
            return []
        if not fits_budget(shared, search.budget, _has_twins(machine)):
            n = n_samples(shared.whole.merged.y)
            reason = (
                f"the kernel matrix of {n:,} samples exceeds cache_size, so every fit computes its own kernel values"
            )
            return [(group, reason) for group in groups]
        self._fit(
            shared, groups, f"kernel values of {n_samples(search.X):,} samples between all folds, for each kernel"
        )
        return []

    def _fit(self, shared: SharedFolds, groups: list[list[int]], description: str) -> None:
        """Fit all points to these folds; `description` names the kernel values that they share."""
        for fold in shared.folds:
            if fold.error is not None:
                self._fail(groups, [fold.number], fold.error)
        self.descriptions.append(description)
        batches = [[(point, self._machine(point)) for point in group] for group in groups]
        fit_folds(shared, batches, self, self._search.n_threads, self._search.budget)

    def _fail(self, groups: Sequence[list[int]], folds: Iterable[int], error: BaseException) -> None:
        """Store the error in every cell of these groups and folds that has no score and is not skipped."""
        cells = self._search.cells
        for fold in folds:
            for point in (point for group in groups for point in group):
                if np.isnan(cells.scores[point, fold]) and point not in cells.skipped:
                    cells.fail(point, fold, error)

    # --- results of fits: a Listener --------------------------------------------------------------------------------

    def is_needed(self, point: int, fold: int) -> bool:
        """Return whether this fit can still change the choice, and its score needs no model."""
        return not self._model_reason and self._search.is_needed(point, fold)

    def finished(self, point: int, fold: int, fit: FoldFit) -> None:
        """Score a fit and store its score, gap and decision values."""
        search, cells, machine = self._search, self._search.cells, self._machine(point)
        try:
            mean, scale = self._units.get(fold, (0.0, 1.0))
            values, samples = mean + scale * fit.values, partial(search.held_out_samples, fold)
            targets = search.held_out_targets(fold)
            score = score_of_values(search.scorer, search.estimator, machine, values, fit.classes, samples, targets)
        except Exception as error:  # the user's scorer may raise
            if not needs_predictions_only(search.scorer):  # perhaps because the scorer got predictions, not a model
                reason = f"scoring raised {type(error).__name__} with predictions alone"
                self._model_reason = str(error) if isinstance(error, NeedsModel) else reason
                return
            cells.fail(point, fold, error)
        else:
            proof = fit.certificate
            cells.put(point, fold, score, proof.gap, proof.relative_gap, fit.seconds, fit.stop_reason)
            search.gap.put(point, fold, machine, fit, targets[0])
        with self._lock:
            search.report(point, fold)

    def failed(self, point: int, fold: int, error: Exception) -> None:
        """Store the error of a fit."""
        self._fail([[point]], [fold], error)
        with self._lock:
            self._search.report(point, fold)

    # --- samples transformed by the steps before the machine, fold by fold --------------------------------------------

    def _fit_by_steps(self, groups: list[list[int]]) -> list[tuple[list[int], str]]:
        """Fit groups fold by fold on transformed samples; return all groups, with the reason, if K is too large."""
        search = self._search
        description = (
            "kernel values within each fold, for all C and kernels (the steps before the machine are refitted in "
            "every fold)"
        )
        for fold in range(len(search.splits)):
            needed_points = [[k for k in group if search.is_needed(k, fold)] for group in groups]
            needed_points = [group for group in needed_points if group]
            if not needed_points or self._model_reason:
                continue
            try:
                shared = self._transform_fold(needed_points[0][0], fold)
            except Exception as error:
                self._fail(needed_points, [fold], error)
                continue
            if not fits_budget(shared, search.budget, _has_twins(self._machine(needed_points[0][0]))):
                return [(group, "the kernel matrix exceeds cache_size") for group in groups]
            self._fit(shared, needed_points, description)
        return []

    def _transform_fold(self, point: int, fold: int) -> SharedFolds:
        """Return the samples of a fold as the machine sees them, the training samples first."""
        search, (train, test) = self._search, self._search.splits[fold]
        order, steps = np.concatenate([train, test]), Preprocessing(self._search.at(point))
        train_samples = steps.fit(*search.training_set(fold))
        self._units[fold] = steps.unit
        y, weight = (None if values is None else values[order] for values in (search.y, search.sample_weight))
        X, y = stack(train_samples, steps.transform(search.held_out_samples(fold))), steps.target(y)
        positions = (np.arange(len(train)), np.arange(len(train), len(order)))
        return SharedFolds.of(steps.machine, X, y, [positions], weight, first_number=fold)


def _has_twins(machine: Any) -> bool:
    """Return whether the machine has two dual variables for each sample."""
    return getattr(machine, "loss", "") in ("epsilon_insensitive", "squared_epsilon_insensitive", "expectile")
