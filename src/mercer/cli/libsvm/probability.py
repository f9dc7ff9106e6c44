"""Probabilities as LIBSVM's -b 1 makes them, from decision values.

Platt's sigmoid         P(first class | f) = 1 / (1 + exp(A f + B)), A and B by Newton's method on the likelihood with
                        softened targets (Lin, Lin, Weng 2007)
pairwise coupling       the class probabilities that fit all pairs' best (Wu, Lin, Weng 2004, second method)

Both are those of `mercer.calibration`, but end where LIBSVM's searches end, so that the same digits are printed, and
the slope of a sigmoid may have either sign. What -b 1 adds to other machines, Laplace's scale of a regression and the
marks of a one-class machine, is `mercer.calibration`'s own.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Flags, Floats
from mercer.calibration.coupling import SMALLEST, equations
from mercer.calibration.sigmoid import logistic, soft_targets


def fit_sigmoid(f: Floats, positive: Flags) -> tuple[float, float]:
    """A and B that make the labels likeliest."""
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    target = soft_targets(positive, np.ones(len(f)), np.zeros(1, dtype=np.intp))
    A, B = 0.0, float(np.log((n_negative + 1.0) / (n_positive + 1.0)))
    value = _cross_entropy(f, target, A, B)
    for _ in range(100):
        p = logistic(-(A * f + B))
        curvature = p * (1.0 - p)
        slope = target - p
        h11, h22 = 1e-12 + (f * f * curvature).sum(), 1e-12 + curvature.sum()
        h21 = (f * curvature).sum()
        g1, g2 = (f * slope).sum(), slope.sum()
        if abs(g1) < 1e-5 and abs(g2) < 1e-5:
            break
        determinant = h11 * h22 - h21 * h21
        dA, dB = -(h22 * g1 - h21 * g2) / determinant, -(h11 * g2 - h21 * g1) / determinant
        descent = g1 * dA + g2 * dB
        step = 1.0
        while step >= 1e-10:
            trial = _cross_entropy(f, target, A + step * dA, B + step * dB)
            if trial < value + 1e-4 * step * descent:
                A, B, value = A + step * dA, B + step * dB, trial
                break
            step /= 2.0
        else:
            break  # the line search found nothing better: as good as it gets
    return float(A), float(B)


def _cross_entropy(f: Floats, target: Floats, A: float, B: float) -> float:
    t = A * f + B
    return float((np.logaddexp(0.0, -t) + target * t).sum())


def pair_probabilities(decisions: Floats, A: Floats, B: Floats) -> Floats:
    """P(first class of the pair), kept away from 0 and 1."""
    return np.clip(logistic(-(decisions * A + B)), SMALLEST, 1.0 - SMALLEST)


def class_probabilities(pairs: Floats, n_classes: int) -> Floats:
    """One column for each class from one for each pair."""
    if n_classes == 2:
        return np.column_stack([pairs[:, 0], 1.0 - pairs[:, 0]])
    found = [_couple(Q) for Q in equations(pairs, n_classes)]
    return np.array(found).reshape(len(pairs), n_classes)


def _couple(Q: Floats) -> Floats:
    """The coupled probabilities by their fixed point, to LIBSVM's 0.005/k."""
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
