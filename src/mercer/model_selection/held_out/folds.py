"""All samples read once, and the folds as parts of them: what the fits of a cross-validation share.

Identical samples are one row of K, whichever folds they are in. A fold's problem is about those rows that it trains on;
the decision value of a held-out sample is u = Kβ of its row.
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
from mercer.model_selection.parameter_keys import grouped, key_of
from mercer.samples.arrays import Floats, Indices, pick
from mercer.tables.frame import part_of

# The rows that a fold trains on, and those that it leaves out.
Splits = list[tuple[Indices, Indices]]


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: the caller's rows on both sides, the training part as read, and its rows of the shared K."""

    number: int
    train: Indices
    test: Indices
    fit: Fit | None = None  # without samples; None where it could not be read
    rows: Any = None  # of K, for each merged sample
    error: Exception | None = None


@dataclass(frozen=True, eq=False)
class SharedFolds:
    """All samples of a data set, merged, and its folds."""

    whole: Fit
    rows: Indices  # of K, for each of the caller's rows
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
        """Read the samples for a machine that `shares`; a fold that cannot be read keeps the reason."""
        # No kernel is needed to read samples, and linear machines must not be offered a way around K.
        reader = clone(machine).set_params(solver="decomposition")
        whole = Fit.of(reader, X, y, None)
        rows = np.empty(whole.n, np.intp)
        rows[whole.merged.rows] = whole.merged.member
        weight = None if sample_weight is None else np.asarray(sample_weight)
        folds = []
        for k, (train, test) in enumerate(splits, first_number):
            train, test = places_in(train, whole.n), places_in(test, whole.n)
            try:
                fit = Fit.of(
                    reader,
                    part_of(whole.X, train, train if whole.precomputed else None),
                    None if y is None else np.asarray(y)[train],
                    None if weight is None else weight[train],
                )
            except ValueError as error:
                folds.append(Fold(k, train, test, error=error))
                continue
            at = rows[train[fit.merged.first]]
            # Ten copies of the samples are too many.
            fit = replace(fit, X=None, merged=replace(fit.merged, samples=None))
            folds.append(Fold(k, train, test, fit, at))
        return cls(whole, rows, folds)

    def kernels(self, machine: Any) -> list[Kernel | None]:
        """The machine's kernel in each fold; they are the same object unless it depends on the training samples."""
        kernel = machine._kernel()
        if kernel.accepts == "gram" or kernel.bound:
            return [kernel if fold.fit is not None else None for fold in self.folds]
        bound: list[Kernel | None] = []
        for fold in self.folds:
            if fold.fit is None:
                bound.append(None)
                continue
            merged = fold.fit.merged
            bound.append(
                kernel.bind(pick(self.whole.X, fold.train[merged.first], self.whole.limits.n_threads), merged.weight)
            )
        return bound

    def same(self, kernels: Sequence[Kernel | None]) -> list[list[int]]:
        """The folds that have the same kernel, group by group."""
        places = [k for k, kernel in enumerate(kernels) if kernel is not None]
        return [[places[k] for k in group] for group in grouped(key_of(kernels[k]) for k in places)]


def folds_of(cv: Any, y: Any, labelled: bool) -> Any:
    """scikit-learn's splitter; a number means folds of shuffled rows, always the same ones.

    Tables are often ordered, within a class too, and the folds of consecutive rows then differ from what comes later.
    """
    splitter = check_cv(cv, y, classifier=labelled)
    counted = cv is None or isinstance(cv, Integral)
    return type(splitter)(splitter.n_splits, shuffle=True, random_state=0) if counted else splitter


def shares(machine: Any) -> str | None:
    """Why the folds of this machine cannot share kernel values, or None if they can."""
    if type(machine) not in (SVC, SVR, OneClassSVM):
        return f"{type(machine).__name__} is fitted fold by fold"
    if getattr(machine, "multiclass", "") in JOINT:
        return f"multiclass={machine.multiclass!r} is one problem over all classes, which is fitted fold by fold"
    if not math.isfinite(getattr(machine, "C", 1.0)):
        return "the hard margin is fitted fold by fold"
    if machine.solver not in ("auto", "decomposition"):
        return f"solver={machine.solver!r} was asked for, which is used fold by fold"
    if isinstance(machine.kernel, str) and machine.kernel == "linear":
        return "a linear kernel needs no kernel values on few columns, and is fitted fold by fold"
    return None


def places_in(rows: Any, n: int) -> Indices:
    """Places of a fold's rows, from places, of which −1 is the last, or from a flag for each row."""
    rows = np.asarray(rows)
    places = np.asarray(np.flatnonzero(rows) if rows.dtype == bool and len(rows) == n else rows, dtype=np.intp)
    beyond = places[(places < -n) | (places >= n)]
    if len(beyond):
        raise ValueError(f"a fold of cv has row {beyond[0]}, but there are {n} samples")
    return places % n


def splits_of(splitter: Any, y: Any, cv: Any) -> Splits:
    """Folds that leave out every sample exactly once; `cv` is what the caller asked for."""
    if needs_groups(splitter):
        raise ValueError(
            f"cv={cv!r} makes folds of groups, but calibration is given no groups; make the folds yourself: "
            "cv=list(GroupKFold(5).split(X, y, groups)), or StratifiedGroupKFold in its place"
        )
    n = len(y)
    found = [(places_in(train, n), places_in(test, n)) for train, test in splitter.split(y, y)]
    if not found:
        raise ValueError(f"cv={cv!r} has no folds; calibration needs folds that leave every sample out exactly once")
    for k, (_, test) in enumerate(found):
        if not len(test):
            raise ValueError(
                f"fold {k} of cv leaves no sample out, so that it shows nothing of samples that a machine was not "
                "trained on; drop it, or use a number of folds, KFold or StratifiedKFold"
            )
    times = np.bincount(np.concatenate([test for _, test in found]), minlength=n)
    odd = np.flatnonzero(times != 1)
    if len(odd):
        raise ValueError(
            f"calibration needs folds that leave every sample out exactly once, but cv={cv!r} leaves out sample "
            f"{odd[0]} {times[odd[0]]} times; use a number of folds, KFold or StratifiedKFold"
        )
    for train, test in found:
        both = np.intersect1d(train, test)
        if len(both):
            raise ValueError(
                f"calibration needs folds that train on other samples than those they leave out, but a fold of cv "
                f"trains on sample {both[0]} and leaves it out; use a number of folds, KFold or StratifiedKFold"
            )
    return found


def needs_groups(splitter: Any) -> bool:
    """Tell if a splitter of scikit-learn splits by groups."""
    routing = getattr(splitter, "get_metadata_routing", None)  # of scikit-learn's own splitters alone
    return routing is not None and routing().split.requests.get("groups") is True


def splits_of_classes(cv: Any, codes: Indices, labels: Any, weight: Floats) -> Splits:
    """Folds that leave out every sample exactly once, and know every class.

    A class needs as many samples as there are folds, so that each fold shows how it is decided. With fewer, the largest
    decision values seen would be those of one or two samples, and the curve a guess beyond them.
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
    found = splits_of(check_cv(cv, codes, classifier=True), codes, cv)
    for train, _ in found:
        absent = np.setdiff1d(np.arange(len(labels)), codes[train][weight[train] > 0])
        if len(absent):
            label, count = labels.tolist()[absent[0]], counts[absent[0]]
            raise ValueError(
                f"a fold trains on no sample of class {label!r}, which has {count}: calibration with cv={cv!r} needs "
                "every class in every fold; use fewer folds, or cv='held-out' with samples that the machine was not "
                "trained on"
            )
    return found
