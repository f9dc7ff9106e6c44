"""Probability models of LIBSVM's -b 1: a Laplace law of regression errors, and ranks for one-class machines.

Regression errors: P(|y − f(x)| > t) = exp(−t/σ), one σ for every x. One-class machines: ten marks divide the negative
decision values into five groups of equal size, and the others likewise. A sample above i marks has probability i/10 of
being normal: this is a rank among samples, in steps of a tenth, and no density.
"""

from __future__ import annotations

import numpy as np

from mercer.samples.arrays import Floats


def laplace_scale(residuals: Floats, weight: Floats | None = None) -> float:
    """Return the scale σ: the weighted mean of |r| without outliers beyond five standard deviations of the law."""
    size = np.abs(residuals)
    is_inlier = size <= 5.0 * np.sqrt(2.0) * np.average(size, weights=weight)
    return float(np.average(size[is_inlier], weights=None if weight is None else weight[is_inlier]))


N_MARKS = 10
_HALF = N_MARKS // 2


def density_marks(decisions: Floats, weight: Floats | None = None) -> Floats:
    """Return the ten marks of decision values; raise ValueError if there are too few values on either side of 0.

    A value of weight w > 0 counts as w values.
    """
    weight = np.ones(len(decisions)) if weight is None else weight
    order = np.argsort(decisions, kind="stable")
    sorted_values, mass = decisions[order], np.cumsum(weight[order])
    n_negative = int(np.searchsorted(sorted_values, 0.0, side="left"))
    negative = float(mass[n_negative - 1]) if n_negative else 0.0
    positive = float(mass[-1]) - negative
    if negative < _HALF or positive < _HALF:
        raise ValueError(
            f"probabilities of a one-class machine need {_HALF} negative and {_HALF} positive decision values, but "
            f"there are {negative:g} and {positive:g}; use more samples, or another nu"
        )
    # A value of weight w stands for w copies: copy k of the sorted copies, counted from 0, is that of the first value
    # with a cumulative weight above k.
    ends_below_0 = [i * negative / _HALF for i in range(_HALF)]
    ends_above_0 = [negative - 1.0 + i * positive / _HALF for i in range(1, _HALF + 1)]
    ends = sorted_values[np.searchsorted(mass, [*ends_below_0, *ends_above_0], side="right")]
    marks = np.array([*ends[:_HALF], 0.0, *ends[_HALF:]])
    return np.asarray((marks[:-1] + marks[1:]) / 2.0)


def normal_probabilities(decisions: Floats, marks: Floats) -> Floats:
    """Return the probability of being normal, 0.001, 0.1, 0.2, … 0.9 or 0.999, by the number of marks below a value."""
    n_below = np.searchsorted(marks, decisions, side="right")
    out = np.minimum(n_below, N_MARKS - 1) / float(N_MARKS)
    out[decisions < marks[0]] = 0.001
    out[decisions > marks[-1]] = 0.999
    return np.asarray(out)
