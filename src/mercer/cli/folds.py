"""Cross-validation for the command line: seeded folds, and what every row was predicted while it was held out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.cli.data import Data
from mercer.cli.machines import CLASSIFIERS, REGRESSORS, Estimator, machine_of
from mercer.estimators import NuSVC
from mercer.inspection.easy.figures import NumberFigures
from mercer.runtime.progress import waiting
from mercer.samples.arrays import Flags, Floats, Indices
from mercer.tables.dialect import from_text, quantity
from mercer.tables.frame import part_of

Split = tuple[Indices, Indices]


def deal(n: int, k: int, seed: int, classes: Any = None) -> Iterator[Split]:
    """k pairs (train, held out); with ``classes`` each class is dealt out evenly."""
    order = np.random.default_rng(seed).permutation(n)
    if classes is not None:
        order = order[np.argsort(np.unique(classes, return_inverse=True)[1][order], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % k
    for number in range(k):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def checked(k: int, n: int) -> int:
    """LIBSVM's rules for a number of folds."""
    if k < 2:
        raise ValueError(f"n-fold cross validation: n must >= 2, but it is {k}")
    if k > n:
        print(
            f"WARNING: # folds ({k}) > # data ({n}). Will use # folds = # data instead "
            "(i.e., leave-one-out cross validation)",
            file=sys.stderr,
        )
    return min(k, n)


def rows_of(X: Any, rows: Indices, among: Indices, model: Any) -> Any:
    """Some rows of X; of a kernel matrix, their values with the training rows ``among``."""
    square = getattr(machine_of(model), "kernel", None) == "precomputed"
    return part_of(X, rows, among if square else None)


def held_out(model: Estimator, X: Any, y: Any, splits: Iterable[Split]) -> Any:
    """What every row is predicted by a model that has not seen it."""
    out: Any = None
    for train, test in splits:
        fitted = _for_fold(model, y[train]).fit(rows_of(X, train, train, model), y[train])
        answer = fitted.predict(rows_of(X, test, train, model))
        if out is None:
            out = np.empty(len(y), dtype=answer.dtype)
        out[test] = answer
    return out


def _for_fold(model: Estimator, y: Any) -> Any:
    """An unfitted copy; ν-SVC's ν is lowered to what is feasible here, where a fold is less balanced than all rows."""
    copy = clone(model)
    machine = machine_of(copy)
    if isinstance(machine, NuSVC):
        counts = np.sort(np.unique(y, return_counts=True)[1])
        if len(counts) > 1:
            machine.set_params(nu=min(machine.nu, 2.0 * counts[0] / (counts[0] + counts[-1])))
    return copy


def pair_decisions(model: Estimator, X: Any, positive: Flags, weights: tuple[float, float], seed: int) -> Floats:
    """Decision values of a two-class problem by five folds; a fold without two classes to train on answers ±1."""
    y = np.where(positive, 1, -1)
    out = np.empty(len(y))
    for train, test in deal(len(y), 5, seed):
        if len(np.unique(y[train])) < 2:
            out[test] = float(y[train][0]) if len(train) else 0.0
            continue
        two = _for_fold(model, y[train])
        if hasattr(machine_of(two), "class_weight"):
            machine_of(two).set_params(class_weight={1: weights[0], -1: weights[1]})
        two.fit(rows_of(X, train, train, model), y[train])
        out[test] = two.decision_function(rows_of(X, test, train, model))
    return out


def cross_validated(args: argparse.Namespace, model: Any, data: Data) -> str:
    """svm-train's line or two on cross-validation, of a table's numbers one line in their unit; or JSON."""
    y, k = data.y, checked(args.folds, len(data.y))
    splits = deal(len(y), k, args.seed, y if args.machine in CLASSIFIERS else None)
    with waiting(f"{k}-fold cross-validation", args.quiet or args.json, k, args.verbose) as counted:
        answer = held_out(model, data.X, y, counted(splits))
    figures, lines = figures_of(answer, y, args.machine in REGRESSORS)
    if args.machine in REGRESSORS and data.form != "libsvm":
        in_unit, line = errors_of(answer, y, from_text(data.dialect.units).get(str(data.target), ""))
        figures, lines = figures | in_unit, [line]
    if args.json:
        return json.dumps({"folds": k, "seed": args.seed, **figures})
    return "\n".join(f"Cross Validation {line}" for line in lines)


def figures_of(answers: Any, truth: Any, regression: bool) -> tuple[dict[str, float], list[str]]:
    """svm-predict's figures of predictions, by name and in words."""
    if not regression:
        share = float(np.mean(answers == truth))
        return {"accuracy": share}, [f"Accuracy = {100 * share:g}%"]
    error, correlation = float(np.mean((answers - truth) ** 2)), squared_correlation(truth, answers)
    lines = [f"Mean squared error = {error:g}", f"Squared correlation coefficient = {correlation:g}"]
    return {"mean_squared_error": error, "squared_correlation": correlation}, lines


def errors_of(answers: Any, truth: Any, unit: str) -> tuple[dict[str, float], str]:
    """Errors of a table's predicted numbers, by name and as a sentence in the target's unit."""
    errors = NumberFigures(truth, answers, np.nan, unit)
    mean = f"Error = {quantity(errors.error, unit)} in the mean of {len(truth):,} rows"
    return {"mean_absolute_error": errors.error, "r2": errors.r2}, f"{mean}, R² = {errors.r2:.4g}"


def squared_correlation(truth: Floats, answer: Floats) -> float:
    """svm-predict's figure for regression; nan where one of the two is constant."""
    n = len(truth)
    top = n * (answer @ truth) - answer.sum() * truth.sum()
    bottom = (n * (answer @ answer) - answer.sum() ** 2) * (n * (truth @ truth) - truth.sum() ** 2)
    return float(top * top / bottom) if bottom > 0 else float("nan")
