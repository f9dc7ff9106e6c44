"""Samples that are read once for all folds of a cross-validation, and the folds as sets of their rows.

Identical samples are one row of K, whichever folds they are in. A fold's problem is about its training rows; the
decision value of a held-out sample is the entry of u = Kβ for its row, apart from b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from mercer.estimators import SVC, SVR, OneClassSVM
from mercer.estimators.fitting.families.pairwise import JOINT
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.kernels import Kernel
from mercer.model_selection.parameter_keys import group_equal_keys, key_of
from mercer.samples.arrays import Floats, Indices, pick
from mercer.samples.labels import check_label_objects
from mercer.tables.frame import part_of

# Training and held-out rows of each fold.
Splits = list[tuple[Indices, Indices]]


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold: training and held-out rows of the caller, the training part as read, and its rows of the shared K."""

    number: int
    train: Indices
    test: Indices
    fit: Fit | None = None  # the training part without its samples; None if reading it failed
    rows: Any = None  # row of K for each merged training sample
    error: Exception | None = None  # the reason why reading failed


@dataclass(frozen=True, eq=False)
class SharedFolds:
    """All samples of a data set, merged, and its folds."""

    whole: Fit  # all samples as read
    rows: Indices  # row of K for each of the caller's rows
    folds: list[Fold]

    @classmethod
    def of(
        cls,
        machine: Any,
        X: Any,
        y: Any,
        splits: Sequence[tuple[Any, Any]],
        sample_weight: Any = None,
        first_number: int = 0,
    ) -> SharedFolds:
        """Read the samples for a machine whose folds can share K, and store the error of a fold that cannot be read."""
        # Reading samples needs no kernel, and linear machines must not choose a solver that avoids K.
        reader = clone(machine).set_params(solver="decomposition")
        whole_fit = Fit.of(reader, X, y, None)
        rows = np.empty(whole_fit.n, np.intp)
        rows[whole_fit.merged.rows] = whole_fit.merged.member
        weight = None if sample_weight is None else np.asarray(sample_weight)
        folds = []
        for k, (train, test) in enumerate(splits, first_number):
            train, test = row_indices(train, whole_fit.n), row_indices(test, whole_fit.n)
            try:
                fit = Fit.of(
                    reader,
                    part_of(whole_fit.X, train, train if whole_fit.precomputed else None),
                    None if y is None else np.asarray(y)[train],
                    None if weight is None else weight[train],
                )
            except ValueError as error:
                folds.append(Fold(k, train, test, error=error))
                continue
            # The samples are dropped, so that they are not stored once per fold.
            fit_without_samples = replace(fit, X=None, merged=replace(fit.merged, samples=None))
            folds.append(Fold(k, train, test, fit_without_samples, rows[train[fit.merged.first]]))
        return cls(whole_fit, rows, folds)

    def kernels(self, machine: Any) -> list[Kernel | None]:
        """Return the machine's kernel in each fold: the same object, unless the kernel depends on training samples."""
        kernel = machine._kernel()
        if kernel.accepts == "gram" or kernel.bound:
            return [kernel if fold.fit is not None else None for fold in self.folds]
        kernels: list[Kernel | None] = []
        for fold in self.folds:
            if fold.fit is None:
                kernels.append(None)
                continue
            merged = fold.fit.merged
            samples = pick(self.whole.X, fold.train[merged.first], self.whole.limits.n_threads)
            kernels.append(kernel.bind(samples, merged.weight))
        return kernels

    def group_by_kernel(self, kernels: Sequence[Kernel | None]) -> list[list[int]]:
        """Return groups of indices of folds that have the same kernel."""
        folds = [k for k, kernel in enumerate(kernels) if kernel is not None]
        return [[folds[k] for k in group] for group in group_equal_keys(key_of(kernels[k]) for k in folds)]


def make_splitter(cv: Any, y: Any, labelled: bool) -> Any:
    """Return a scikit-learn splitter; a number means folds of shuffled rows, always the same ones.

    Rows of tables are often ordered, also within a class, and consecutive rows then differ from the others more than
    new rows would.
    """
    if labelled:
        check_label_objects(y)
    splitter = check_cv(cv, y, classifier=labelled)
    is_count = cv is None or isinstance(cv, Integral)
    return type(splitter)(splitter.n_splits, shuffle=True, random_state=0) if is_count else splitter


def reason_not_shared(machine: Any) -> str | None:
    """Return why the folds of this machine cannot share kernel values, or None if they can."""
    if type(machine) not in (SVC, SVR, OneClassSVM):
        return f"{type(machine).__name__} is fitted fold by fold"
    if getattr(machine, "multiclass", "") in JOINT:
        return f"multiclass={machine.multiclass!r} is one problem for all classes, and is fitted fold by fold"
    if not math.isfinite(getattr(machine, "C", 1.0)):
        return "the hard margin is fitted fold by fold"
    if machine.solver not in ("auto", "decomposition"):
        return f"solver={machine.solver!r} is used fold by fold"
    if isinstance(machine.kernel, str) and machine.kernel == "linear":
        return "a linear kernel is fitted fold by fold, without kernel values"
    return None


def row_indices(rows: Any, n: int) -> Indices:
    """Return the rows of a fold as indices from 0 to n − 1; `rows` are indices, perhaps negative ones, or a mask."""
    rows = np.asarray(rows)
    indices = np.asarray(np.flatnonzero(rows) if rows.dtype == bool and len(rows) == n else rows, dtype=np.intp)
    indices_outside = indices[(indices < -n) | (indices >= n)]
    if len(indices_outside):
        raise ValueError(f"a fold of cv has row {indices_outside[0]}, but there are {n} samples")
    return indices % n


def calibration_splits(splitter: Any, y: Any, cv: Any) -> Splits:
    """Return folds that hold out every sample exactly once, or raise ValueError; `cv` is the user's argument."""
    if needs_groups(splitter):
        raise ValueError(
            f"cv={cv!r} needs groups, which calibration does not take; pass the folds themselves: "
            "cv=list(GroupKFold(5).split(X, y, groups)), or those of StratifiedGroupKFold"
        )
    n = len(y)
    splits = [(row_indices(train, n), row_indices(test, n)) for train, test in splitter.split(y, y)]
    if not splits:
        raise ValueError(f"cv={cv!r} has no folds; calibration needs folds that hold out every sample exactly once")
    for k, (_, test) in enumerate(splits):
        if not len(test):
            raise ValueError(
                f"fold {k} of cv holds out no sample; drop it, or use a number of folds, KFold or StratifiedKFold"
            )
    counts = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    not_once = np.flatnonzero(counts != 1)
    if len(not_once):
        raise ValueError(
            f"calibration needs folds that hold out every sample exactly once, but cv={cv!r} holds out sample "
            f"{not_once[0]} {counts[not_once[0]]} times; use a number of folds, KFold or StratifiedKFold"
        )
    for train, test in splits:
        held_out = np.zeros(n, dtype=np.bool_)
        held_out[test] = True
        overlap = train[held_out[train]]
        if len(overlap):
            raise ValueError(
                f"a fold of cv trains on sample {overlap.min()}, which it also holds out; use a number of folds, KFold "
                "or StratifiedKFold"
            )
    return splits


def needs_groups(splitter: Any) -> bool:
    """Return whether a scikit-learn splitter splits by groups."""
    routing = getattr(splitter, "get_metadata_routing", None)  # only scikit-learn's own splitters have it
    return routing is not None and routing().split.requests.get("groups") is True


def class_splits(cv: Any, codes: Indices, labels: Any, weight: Floats) -> Splits:
    """Return folds that hold out every sample exactly once and train on every class, or raise ValueError.

    A class needs as many samples as there are folds, so that each fold holds out one of them. With fewer, the
    calibration curve would rest on one or two decision values of that class.
    """
    n_folds = cv if isinstance(cv, int) else getattr(cv, "n_splits", 0)
    counts = np.bincount(codes[weight > 0], minlength=len(labels)).tolist()
    rarest = counts.index(min(counts))
    if counts[rarest] < n_folds:
        raise ValueError(
            f"cv={cv!r} asks for {n_folds} folds, but class {labels.tolist()[rarest]!r} has {counts[rarest]} "
            f"sample{'s' * (counts[rarest] != 1)}; use fewer folds, or cv='held-out' with samples that the machine was "
            "not trained on"
        )
    splits = calibration_splits(check_cv(cv, codes, classifier=True), codes, cv)
    for train, _ in splits:
        absent_classes = np.setdiff1d(np.arange(len(labels)), codes[train][weight[train] > 0])
        if len(absent_classes):
            label, count = labels.tolist()[absent_classes[0]], counts[absent_classes[0]]
            raise ValueError(
                f"a fold of cv={cv!r} trains on no sample of class {label!r}, which has {count}; use fewer folds, or "
                "cv='held-out' with samples that the machine was not trained on"
            )
    return splits
