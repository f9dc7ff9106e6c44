"""One temperature T > 0 for all outputs, the likeliest.

Of planes P(+ | f) = 1 / (1 + exp(−f/T)), for Platt's targets; of one function for each class p = softmax(f/T). The sign
of f, or the largest f, decides as before, so predictions stay the machine's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from mercer.arrays import Flags, Floats, Indices
from mercer.calibration.sigmoid import Sigmoids, logistic, soft_targets

_WIDEST = np.log(1e9)  # of log T about that of the largest |f|


def fit_temperature(f: Floats, positive: Flags, weight: Floats, starts: Indices) -> Sigmoids:
    """Sigmoids of several outputs, whose values stand one after another: the same slope 1/T for all, no offset."""
    target = soft_targets(positive, weight, starts)
    slope = _likeliest(f, lambda t: float((weight * (np.logaddexp(0.0, t) - target * t)).sum()))
    return Sigmoids(np.full(len(starts), slope), np.zeros(len(starts)))


@dataclass(frozen=True, eq=False)
class Softmax:
    """p = softmax(slope · f), with one function for each class."""

    slope: Floats

    def probabilities(self, f: Floats) -> Floats:
        """P of each class; f has a column for each."""
        return np.asarray(softmax(self.slope * f, axis=1))

    def of_plane(self, k: int, f: Floats) -> Floats:
        """P of class k against one whose function is 0."""
        return logistic(self.slope[k] * f)


def fit_softmax(f: Floats, codes: Indices, weight: Floats) -> Softmax:
    """From functions with a column for each class, and the class of each sample.

    The labels themselves are the targets: Platt's would be paid for by every sample far inside its class. Where no
    sample is on the wrong side no T is the likeliest, and the one nearest to it gets odds of n + 1 to 1.
    """
    rows = np.arange(len(f))
    others = f.copy()
    others[rows, codes] = -np.inf
    nearest = float((f[rows, codes] - others.max(axis=1)).min())

    def loss(t: Floats) -> float:
        return float((weight * (logsumexp(t, axis=1) - t[rows, codes])).sum())

    most = np.log(weight.sum() + 1.0) / nearest if nearest > 0 else np.inf
    return Softmax(np.full(f.shape[1], min(_likeliest(f, loss), most)))


def _likeliest(f: Floats, loss: Callable[[Floats], float]) -> float:
    """The slope 1/T with the least loss of f/T."""
    unit = float(np.abs(f).max(initial=0.0)) or 1.0
    scaled = f / unit
    # Convex in the slope, so there is one minimum in its logarithm too. If the machine ranks the wrong way round, it is
    # at slope 0, and the smallest slope of the range makes all probabilities equal.
    found = minimize_scalar(
        lambda log_slope: loss(np.exp(log_slope) * scaled),
        bounds=(-_WIDEST, _WIDEST),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(np.exp(found.x)) / unit
