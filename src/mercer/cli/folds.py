"""Cross-validation for the command line: seeded folds, and what every row was predicted while it was held out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Flags, Floats, Indices, take
from mercer.estimators import NuSVC

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


def rows_of(X: Any, rows: Indices, among: Indices, precomputed: bool) -> Any:
    """Some rows of X; of a kernel matrix, their values with the training rows ``among``."""
    return X[np.ix_(rows, among)] if precomputed else take(X, rows)


def held_out(machine: Any, X: Any, y: Any, splits: Iterator[Split], ask: Callable[[Any, Any], Any]) -> Any:
    """What ``ask(fitted, rows)`` says of every row by a machine that has not seen it."""
    precomputed = machine.kernel == "precomputed"
    out: Any = None
    for train, test in splits:
        fitted = _for_fold(machine, y[train]).fit(rows_of(X, train, train, precomputed), y[train])
        answer = np.asarray(ask(fitted, rows_of(X, test, train, precomputed)))
        if out is None:
            out = np.empty(len(y), dtype=answer.dtype)
        out[test] = answer
    return out


def _for_fold(machine: Any, y: Any) -> Any:
    """An unfitted copy; ν-SVC's ν is lowered to what is feasible here, where a fold is less balanced than all rows."""
    copy = clone(machine)
    if isinstance(copy, NuSVC):
        counts = np.sort(np.unique(y, return_counts=True)[1])
        if len(counts) > 1:
            copy.set_params(nu=min(copy.nu, 2.0 * counts[0] / (counts[0] + counts[-1])))
    return copy


def pair_decisions(machine: Any, X: Any, positive: Flags, weights: tuple[float, float], k: int, seed: int) -> Floats:
    """Decision values of a two-class problem by k folds; a fold without two classes to train on answers ±1."""
    precomputed = machine.kernel == "precomputed"
    y = np.where(positive, 1, -1)
    out = np.empty(len(y))
    for train, test in deal(len(y), k, seed):
        if len(np.unique(y[train])) < 2:
            out[test] = float(y[train][0]) if len(train) else 0.0
            continue
        two = _for_fold(machine, y[train])
        if hasattr(two, "class_weight"):
            two.set_params(class_weight={1: weights[0], -1: weights[1]})
        two.fit(rows_of(X, train, train, precomputed), y[train])
        out[test] = two.decision_function(rows_of(X, test, train, precomputed))
    return out


def squared_correlation(truth: Floats, answer: Floats) -> float:
    """svm-predict's figure for regression; nan where one of the two is constant."""
    n = len(truth)
    top = n * (answer @ truth) - answer.sum() * truth.sum()
    bottom = (n * (answer @ answer) - answer.sum() ** 2) * (n * (truth @ truth) - truth.sum() ** 2)
    return float(top * top / bottom) if bottom > 0 else float("nan")
