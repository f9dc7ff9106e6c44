"""What LIBSVM's -b 1 says of a regression's errors, and of how normal a sample is to a machine without targets.

Errors: P(|y − f(x)| > t) = exp(−t/σ), one σ for every x. Normality: ten marks divide the decision values below 0, and
those from 0 on, into five groups of equal size each. A sample above i marks has probability i/10 of being normal: it is
a rank among samples, in steps of a tenth, and no density.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats


def laplace_scale(residuals: Floats) -> float:
    """σ: the mean |r|, once those beyond five standard deviations of such a law are left out."""
    size = np.abs(residuals)
    kept = size[size <= 5.0 * np.sqrt(2.0) * size.mean()]
    return float(kept.mean())


N_MARKS = 10
_HALF = N_MARKS // 2


def density_marks(decisions: Floats) -> Floats:
    """Ten marks; ValueError where there are too few values on either side of 0."""
    ordered = np.sort(decisions)
    negative = int(np.searchsorted(ordered, 0.0, side="left"))
    positive = len(ordered) - negative
    if negative < _HALF or positive < _HALF:
        raise ValueError(
            f"{negative} negative and {positive} positive decision values are too few for probabilities of a "
            f"one-class machine, which need {_HALF} of each; use more samples, or another nu"
        )
    below = [ordered[i * negative // _HALF] for i in range(_HALF)]
    above = [ordered[negative - 1 + i * positive // _HALF] for i in range(1, _HALF + 1)]
    marks = np.array([*below, 0.0, *above])
    return np.asarray((marks[:-1] + marks[1:]) / 2.0)


def normal_probabilities(decisions: Floats, marks: Floats) -> Floats:
    """0.001, 0.1, 0.2, ... 0.9, 0.999, by the marks below each value."""
    below = np.searchsorted(marks, decisions, side="right")
    out = np.minimum(below, N_MARKS - 1) / float(N_MARKS)
    out[decisions < marks[0]] = 0.001
    out[decisions > marks[-1]] = 0.999
    return np.asarray(out)
