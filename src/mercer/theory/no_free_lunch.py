"""No free lunch, by enumeration: over all labellings of a space every learner errs on half of what it has not seen."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Indices
from mercer.parameters import integer

# 2^16 labellings, each of which trains the learner once.
_MOST_POINTS = 16


def off_training_error(
    learner: Callable[[Indices, Indices, Indices], ArrayLike], n_points: int, n_train: int
) -> Fraction:
    """The mean error off the training points over all 2^n labellings of n points, the first n_train of which are seen.

    Parameters
    ----------
    learner : callable
        (x_train, y_train, x_test) -> labels ±1 of the test points; points are the numbers 0, 1, …
    n_points : int
        The size of the space, at most 16.
    n_train : int
        How many points are seen.

    Examples
    --------
    >>> from mercer.theory import off_training_error
    >>> def majority(x_train, y_train, x_test):
    ...     return [1 if sum(y_train) >= 0 else -1] * len(x_test)
    >>> off_training_error(majority, 6, 4)
    Fraction(1, 2)
    """
    integer("n_points", n_points, 2, "the size of the space")
    integer("n_train", n_train, 0, "how many points are seen")
    if n_points > _MOST_POINTS or n_train >= n_points:
        raise ValueError(
            f"n_points={n_points} and n_train={n_train}: there may be {_MOST_POINTS} points at most, since all "
            "labellings are tried, and one at least must not be seen"
        )
    points = np.arange(n_points)
    wrong = 0
    for labels in itertools.product((-1, 1), repeat=n_points):
        y = np.array(labels)
        given = np.asarray(learner(points[:n_train], y[:n_train], points[n_train:]))
        if given.shape != (n_points - n_train,) or not np.isin(given, (-1, 1)).all():
            raise ValueError("the learner must give a label of -1 or +1 for every point that it has not seen")
        wrong += int(np.sum(given != y[n_train:]))
    return Fraction(wrong, 2**n_points * (n_points - n_train))
