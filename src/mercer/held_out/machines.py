"""Machines that are trained without a fold, and what they say of its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split

from mercer.arrays import Floats, Indices
from mercer.fitting.pipeline.fit import read_samples
from mercer.held_out.around import decision_values, machine_of, weight_option
from mercer.held_out.folds import Splits
from mercer.held_out.from_solution import values_from_solution
from mercer.tables.frame import part_of


def out_of_fold(
    machine: Any, X: Any, y: Any, weight: Floats | None, splits: Splits, done: Callable[[int], None] = lambda n: None
) -> Floats:
    """Decision values, a row for each sample and a column for each plane, by a machine that did not train on it.

    The machine is a fitted one, whose kernel all folds share. A sample has NaN where it is on neither side of a plane.
    `done` is told how many more folds are done.
    """
    if machine_of(machine) is machine:
        found = values_from_solution(machine, X, y, weight, splits, done)
        if found is not None:
            return found
    out: Any = None
    for part, test, rest in fold_machines(machine, X, np.asarray(y), weight, splits):
        values = decision_values(part, rest)
        out = np.full((len(y), values.shape[1]), np.nan) if out is None else out
        out[test] = values
        done(1)
    return np.asarray(out)


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
