"""Decision values of samples by machines that were not trained on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils.metaestimators import _safe_split

from mercer.arrays import Floats, Indices
from mercer.calibration.around import decision_values, machine_of, weight_option
from mercer.calibration.telling import FoldLines
from mercer.calibration.without_folds import Splits, values_without_folds
from mercer.fitting.pipeline.fit import read_samples
from mercer.selection.folds import part_of


def splits_of(cv: Any, codes: Indices, labels: Any, weight: Floats) -> Splits:
    """The folds: every sample must be left out exactly once, and every class known to every fold.

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
    found = [
        (np.asarray(train), np.asarray(test))
        for train, test in check_cv(cv, codes, classifier=True).split(codes, codes)
    ]
    times = np.bincount(np.concatenate([test for _, test in found]), minlength=len(codes))
    odd = np.flatnonzero(times != 1)
    if len(odd):
        raise ValueError(
            f"calibration needs folds that leave every sample out exactly once, but cv={cv!r} leaves out sample "
            f"{odd[0]} {times[odd[0]]} times; use a number of folds, KFold or StratifiedKFold"
        )
    for train, _ in found:
        absent = np.setdiff1d(np.arange(len(labels)), codes[train])
        if len(absent):
            label, count = labels.tolist()[absent[0]], int((codes == absent[0]).sum())
            raise ValueError(
                f"a fold trains on no sample of class {label!r}, which has {count}: calibration with cv={cv!r} needs "
                "every class in every fold; use fewer folds, or cv='held-out' with samples that the machine was not "
                "trained on"
            )
    return found


def out_of_fold(machine: Any, X: Any, y: Any, weight: Floats | None, splits: Splits, verbose: bool = False) -> Floats:
    """Decision values, a row for each sample and a column for each plane, by a machine that did not train on it.

    The machine is a fitted one, whose kernel all folds share. A sample has NaN where it is on neither side of a plane.
    """
    if machine_of(machine) is machine:
        found = values_without_folds(machine, X, y, weight, splits, FoldLines(verbose, len(splits)))
        if found is not None:
            return found
    lines, parts = FoldLines(verbose, len(splits)), []
    for part, test, rest in fold_machines(machine, X, np.asarray(y), weight, splits):
        parts.append((test, decision_values(part, rest)))
        lines.done()
    return _gather(len(y), parts)


def fold_machines(
    machine: Any, X: Any, y: Any, weight: Floats | None, splits: Splits
) -> Iterator[tuple[Any, Indices, Any]]:
    """One machine for each fold, with the kernel of the given one, and the places and samples that it left out.

    What is around a machine is fitted again with it, and the kernel with what that makes of the samples.
    """
    if machine_of(machine) is not machine:
        for train, test in splits:
            part = clone(machine)
            options = weight_option(part, None if weight is None else weight[train])
            part.fit(*_safe_split(part, X, y, train), **options)
            yield part, test, _safe_split(part, X, None, test, train)[0]
        return
    kernel = getattr(machine, "kernel_", None)
    X = read_samples(machine, X, kernel, reset=False)
    precomputed = kernel is not None and kernel.accepts == "gram"
    for train, test in splits:
        part = clone(machine)
        if kernel is not None and not precomputed and hasattr(part, "kernel"):
            part.set_params(kernel=kernel)
        options = {} if weight is None else {"sample_weight": weight[train]}
        part.fit(part_of(X, train, train if precomputed else None), y[train], **options)
        yield part, test, part_of(X, test, train if precomputed else None)


def _gather(n: int, parts: list[tuple[Indices, Floats]]) -> Floats:
    out = np.full((n, parts[0][1].shape[1]), np.nan)
    for rows, values in parts:
        out[rows] = values
    return out
