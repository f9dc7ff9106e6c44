"""Order statistics of weighted samples and one new sample of weight 1.

A weight of k counts as k samples, so with W the sum of the weights there are W + 1 samples, among which the new one may
have any rank. With weights of 1 the ends below are the ⌊α(n + 1)⌋-th and the ⌈(1 − α)(n + 1)⌉-th smallest of n values.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.samples.arrays import Floats


def lower_ends(values: Floats, weight: Floats | None, alpha: float) -> Floats:
    """Return, for each row of values, the largest value v with Σ_{v_i < v} w_i + 1 ≤ α(Σw_i + 1), else −inf.

    The result is the lower end of an interval that misses a share α of the samples. `weight` has a positive number for
    each column; None means 1.
    """
    n = values.shape[1]
    if weight is None:
        below = math.floor(alpha * (n + 1))
        return np.partition(values, below - 1, axis=1)[:, below - 1] if below >= 1 else np.full(len(values), -np.inf)
    max_below = alpha * (float(weight.sum()) + 1.0) - 1.0
    if max_below < 0:
        return np.full(len(values), -np.inf)
    order = np.argsort(values, axis=1)
    sorted_weights = weight[order]
    rank = ((np.cumsum(sorted_weights, axis=1) - sorted_weights) <= max_below).sum(axis=1) - 1
    return _take_ranks(values, order, rank)


def upper_ends(values: Floats, weight: Floats | None, alpha: float) -> Floats:
    """Return, for each row of values, the smallest value v with Σ_{v_i ≤ v} w_i ≥ (1 − α)(Σw_i + 1), else inf.

    The result is the upper end of an interval that misses a share α of the samples. `weight` has a positive number for
    each column; None means 1.
    """
    n = values.shape[1]
    if weight is None:
        above = math.ceil((1 - alpha) * (n + 1))
        return np.partition(values, above - 1, axis=1)[:, above - 1] if above <= n else np.full(len(values), np.inf)
    min_up_to = (1 - alpha) * (float(weight.sum()) + 1.0)
    if min_up_to > float(weight.sum()):
        return np.full(len(values), np.inf)
    order = np.argsort(values, axis=1)
    rank = np.minimum((np.cumsum(weight[order], axis=1) < min_up_to).sum(axis=1), n - 1)
    return _take_ranks(values, order, rank)


def _take_ranks(values: Floats, order: np.ndarray, rank: np.ndarray) -> Floats:
    """Return one value of each row, that of the given rank; `order` sorts each row."""
    rows = np.arange(len(values))
    return np.asarray(values[rows, order[rows, rank]])


def share_up_to(scores: Floats, sorted_scores: Floats, weight: Floats | None) -> Floats:
    """Return, for each new score, the weighted share of `sorted_scores` that do not exceed it.

    The new sample counts too, with weight 1. `weight` has a number for each of `sorted_scores`; None means 1.
    """
    rank = np.searchsorted(sorted_scores, scores, side="right")
    if weight is None:
        return np.asarray((1.0 + rank) / (1.0 + len(sorted_scores)))
    mass = np.append(0.0, np.cumsum(weight))
    return np.asarray((1.0 + mass[rank]) / (1.0 + mass[-1]))


def are_counts(weight: Floats | None) -> bool:
    """Return whether every weight is an integer, so that it can count equal samples."""
    return weight is None or bool((weight == np.rint(weight)).all())
