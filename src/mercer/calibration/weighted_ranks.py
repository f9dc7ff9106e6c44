"""Order statistics of samples with weights, and of one new sample of weight 1 among them.

A weight of k counts as k samples, so with W the sum of the weights there are W + 1 samples, of which the new one may be
anywhere. With weights of 1 the ends below are the ⌊α(n + 1)⌋-th and the ⌈(1 − α)(n + 1)⌉-th smallest of n values.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.samples.arrays import Floats


def lower_ends(values: Floats, weight: Floats | None, alpha: float) -> Floats:
    """In each row, the largest value v with Σ_{v_i < v} w_i + 1 ≤ α(W + 1); −inf where there is none.

    `weight` has a positive number for each column; None means 1.
    """
    n = values.shape[1]
    if weight is None:
        below = math.floor(alpha * (n + 1))
        return np.partition(values, below - 1, axis=1)[:, below - 1] if below >= 1 else np.full(len(values), -np.inf)
    most = alpha * (float(weight.sum()) + 1.0) - 1.0
    if most < 0:
        return np.full(len(values), -np.inf)
    order = np.argsort(values, axis=1)
    own = weight[order]
    place = ((np.cumsum(own, axis=1) - own) <= most).sum(axis=1) - 1
    return _at(values, order, place)


def upper_ends(values: Floats, weight: Floats | None, alpha: float) -> Floats:
    """In each row, the smallest value v with Σ_{v_i ≤ v} w_i ≥ (1 − α)(W + 1); inf where there is none.

    `weight` has a positive number for each column; None means 1.
    """
    n = values.shape[1]
    if weight is None:
        above = math.ceil((1 - alpha) * (n + 1))
        return np.partition(values, above - 1, axis=1)[:, above - 1] if above <= n else np.full(len(values), np.inf)
    least = (1 - alpha) * (float(weight.sum()) + 1.0)
    if least > float(weight.sum()):
        return np.full(len(values), np.inf)
    order = np.argsort(values, axis=1)
    place = np.minimum((np.cumsum(weight[order], axis=1) < least).sum(axis=1), n - 1)
    return _at(values, order, place)


def _at(values: Floats, order: np.ndarray, place: np.ndarray) -> Floats:
    rows = np.arange(len(values))
    return np.asarray(values[rows, order[rows, place]])


def share_up_to(scores: Floats, known: Floats, weight: Floats | None) -> Floats:
    """The weight of the known scores that are not above each new one, as a share of all weight.

    The new sample counts too, with a weight of 1. `known` is sorted, and `weight` is in its order; None means 1.
    """
    place = np.searchsorted(known, scores, side="right")
    if weight is None:
        return np.asarray((1.0 + place) / (1.0 + len(known)))
    mass = np.append(0.0, np.cumsum(weight))
    return np.asarray((1.0 + mass[place]) / (1.0 + mass[-1]))


def are_counts(weight: Floats | None) -> bool:
    """Tell if every weight is a whole number, so that it can count equal samples."""
    return weight is None or bool((weight == np.rint(weight)).all())
