"""Fraction of pairs that a ranking puts in the right order."""

from __future__ import annotations

import math

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from mercer.problems.ranking import RankProblem
from mercer.runtime.errors import warn_user
from mercer.samples.arrays import Floats


def share_of_ordered_pairs(problem: RankProblem, f: Floats) -> float:
    """Return the weighted fraction of pairs in the right order, where a pair with equal f(x) counts as half.

    Warn and return NaN if there is no pair.
    """
    weight = problem.weight[:, None]
    wrong_weight, wrong_or_equal_weight, total_weight = (
        float(problem.weight @ problem.sums(f, limit, weight)[0][:, 0])
        for limit in (f, np.nextafter(f, -np.inf), np.full(len(f), -np.inf))
    )
    if total_weight:
        return 1.0 - 0.5 * (wrong_weight + wrong_or_equal_weight) / total_weight
    warn_user(
        "RankSVM.score is the fraction of pairs in the right order, but there is no pair: no two samples of a group "
        "that have weight differ in y, so the score is NaN; score more samples, or whole groups",
        UndefinedMetricWarning,
    )
    return math.nan
