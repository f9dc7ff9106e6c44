"""Probabilities from decision values, as LIBSVM's -b 1 computes them.

Platt's sigmoid         P(first class | f) = 1 / (1 + exp(A f + B)), A and B by Newton's method on the likelihood with
                        softened targets (Lin, Lin, Weng 2007)
pairwise coupling       the class probabilities that agree best with those of all pairs (Wu, Lin, Weng 2004, second
                        method)

`mercer.calibration` computes both too. Here they stop where LIBSVM's iterations stop, so that the same digits are
printed, and the slope of a sigmoid may have either sign. What -b 1 adds to other machines comes from
`mercer.calibration`: the Laplace scale of a regression, and the density marks of a one-class machine.
"""

from __future__ import annotations

import numpy as np

from mercer.calibration.coupling import SMALLEST, equations
from mercer.calibration.sigmoid import AS_LIBSVM, logistic, maximize_likelihood, soft_targets
from mercer.samples.arrays import Flags, Floats


def fit_sigmoid(f: Floats, positive: Flags) -> tuple[float, float]:
    """Return the maximum likelihood estimates of A and B."""
    weight, starts = np.ones(len(f)), np.zeros(1, dtype=np.intp)
    initial = np.log([(positive.sum() + 1.0) / ((~positive).sum() + 1.0)])
    values = np.stack([f, soft_targets(positive, weight, starts), weight])
    slope, offset = maximize_likelihood(values, starts, initial, AS_LIBSVM)
    return -float(slope[0]), -float(offset[0])


def pair_probabilities(decisions: Floats, A: Floats, B: Floats) -> Floats:
    """Return P(first class) for each pair of classes, clipped away from 0 and 1."""
    return np.clip(logistic(-(decisions * A + B)), SMALLEST, 1.0 - SMALLEST)


def class_probabilities(pairs: Floats, n_classes: int) -> Floats:
    """Return the probability of each class (column) from those of the pairs."""
    if n_classes == 2:
        return np.column_stack([pairs[:, 0], 1.0 - pairs[:, 0]])
    solutions = [_couple(Q) for Q in equations(pairs, n_classes)]
    return np.array(solutions).reshape(len(pairs), n_classes)


def _couple(Q: Floats) -> Floats:
    """Return the coupled probabilities by fixed-point iteration, to LIBSVM's tolerance 0.005/k."""
    k = len(Q)
    p = np.full(k, 1.0 / k)
    for _ in range(max(100, k)):
        Qp = Q @ p
        value = float(p @ Qp)
        if np.abs(Qp - value).max() < 0.005 / k:
            break
        for t in range(k):
            difference = (value - Qp[t]) / Q[t, t]
            p[t] += difference
            value = (value + difference * (difference * Q[t, t] + 2.0 * Qp[t])) / (1.0 + difference) ** 2
            Qp = (Qp + difference * Q[t]) / (1.0 + difference)
            p /= 1.0 + difference
    return p
