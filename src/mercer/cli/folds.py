"""Cross-validation for the command line: seeded folds, predictions for held-out rows, and their scores."""

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
from mercer.tables.dialect import format_quantity, units_from_text
from mercer.tables.frame import part_of

Split = tuple[Indices, Indices]


def split_folds(n: int, k: int, seed: int, classes: Any = None) -> Iterator[Split]:
    """Yield k pairs (training rows, held-out rows); with ``classes`` the folds are stratified."""
    order = np.random.default_rng(seed).permutation(n)
    if classes is not None:
        order = order[np.argsort(np.unique(classes, return_inverse=True)[1][order], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % k
    for number in range(k):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def check_n_folds(k: int, n: int) -> int:
    """Return the number of folds that svm-train uses for n rows; raise and warn as svm-train does."""
    if k < 2:
        raise ValueError(f"n-fold cross validation: n must >= 2, but it is {k}")
    if k > n:
        print(
            f"WARNING: # folds ({k}) > # data ({n}). Will use # folds = # data instead "
            "(i.e., leave-one-out cross validation)",
            file=sys.stderr,
        )
    return min(k, n)


def select_rows(X: Any, rows: Indices, train: Indices, model: Any) -> Any:
    """Return rows of X; if X is a kernel matrix, only their kernel values with the training rows ``train``."""
    is_kernel_matrix = getattr(machine_of(model), "kernel", None) == "precomputed"
    return part_of(X, rows, train if is_kernel_matrix else None)


def predict_held_out(model: Estimator, X: Any, y: Any, splits: Iterable[Split]) -> Any:
    """Return the prediction for every row by a copy of the model that was fitted without the row's fold."""
    out: Any = None
    for train, test in splits:
        fitted = _clone_for_fold(model, y[train]).fit(select_rows(X, train, train, model), y[train])
        answer = fitted.predict(select_rows(X, test, train, model))
        if out is None:
            out = np.empty(len(y), dtype=answer.dtype)
        out[test] = answer
    return out


def _clone_for_fold(model: Estimator, y: Any) -> Any:
    """Return an unfitted copy; the ν of ν-SVC is lowered if it is infeasible for the classes of this fold."""
    copy = clone(model)
    machine = machine_of(copy)
    if isinstance(machine, NuSVC):
        counts = np.sort(np.unique(y, return_counts=True)[1])
        if len(counts) > 1:
            machine.set_params(nu=min(machine.nu, 2.0 * counts[0] / (counts[0] + counts[-1])))
    return copy


def cross_validated_decisions(
    model: Estimator, X: Any, positive: Flags, weights: tuple[float, float], seed: int
) -> Floats:
    """Return decision values of a two-class problem by five folds, ±1 where the training folds have only one class."""
    y = np.where(positive, 1, -1)
    out = np.empty(len(y))
    for train, test in split_folds(len(y), 5, seed):
        if len(np.unique(y[train])) < 2:
            out[test] = float(y[train][0]) if len(train) else 0.0
            continue
        classifier = _clone_for_fold(model, y[train])
        if hasattr(machine_of(classifier), "class_weight"):
            machine_of(classifier).set_params(class_weight={1: weights[0], -1: weights[1]})
        classifier.fit(select_rows(X, train, train, model), y[train])
        out[test] = classifier.decision_function(select_rows(X, test, train, model))
    return out


def cross_validation_report(args: argparse.Namespace, model: Any, data: Data) -> str:
    """Cross-validate, and return the scores as JSON or text.

    The text is that of svm-train; for a regression on a table, it is one line in the target's unit.
    """
    y, k = data.y, check_n_folds(args.folds, len(data.y))
    splits = split_folds(len(y), k, args.seed, y if args.machine in CLASSIFIERS else None)
    with waiting(f"{k}-fold cross-validation", args.quiet or args.json, k, args.verbose) as with_progress:
        answer = predict_held_out(model, data.X, y, with_progress(splits))
    scores, lines = libsvm_scores(answer, y, args.machine in REGRESSORS)
    if args.machine in REGRESSORS and data.form != "libsvm":
        in_unit, line = regression_scores(answer, y, units_from_text(data.dialect.units).get(str(data.target), ""))
        scores, lines = scores | in_unit, [line]
    if args.json:
        return json.dumps({"folds": k, "seed": args.seed, **scores})
    return "\n".join(f"Cross Validation {line}" for line in lines)


def libsvm_scores(answers: Any, truth: Any, regression: bool) -> tuple[dict[str, float], list[str]]:
    """Return svm-predict's scores, by name and as its lines of text."""
    if not regression:
        share = float(np.mean(answers == truth))
        return {"accuracy": share}, [f"Accuracy = {100 * share:g}%"]
    error, correlation = float(np.mean((answers - truth) ** 2)), squared_correlation(truth, answers)
    lines = [f"Mean squared error = {error:g}", f"Squared correlation coefficient = {correlation:g}"]
    return {"mean_squared_error": error, "squared_correlation": correlation}, lines


def regression_scores(answers: Any, truth: Any, unit: str) -> tuple[dict[str, float], str]:
    """Return the mean absolute error and R² of a table's predictions, by name and as one line in the target's unit."""
    figures = NumberFigures(truth, answers, np.nan, unit)
    mean = f"Mean absolute error = {format_quantity(figures.error, unit)} over {len(truth):,} rows"
    return {"mean_absolute_error": figures.error, "r2": figures.r2}, f"{mean}, R² = {figures.r2:.4g}"


def squared_correlation(truth: Floats, answer: Floats) -> float:
    """Return the squared correlation coefficient as svm-predict computes it; NaN if either argument is constant."""
    n = len(truth)
    numerator = n * (answer @ truth) - answer.sum() * truth.sum()
    denominator = (n * (answer @ answer) - answer.sum() ** 2) * (n * (truth @ truth) - truth.sum() ** 2)
    return float(numerator * numerator / denominator) if denominator > 0 else float("nan")
