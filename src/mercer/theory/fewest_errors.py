"""The plane with the fewest errors, by enumeration: what soft margins stand in for, because it is NP-complete.

Σ ξ_i^σ tends to the number of samples with slack as σ falls to 0; at σ = 1 it is the sum that a machine can minimise.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from mercer.arrays import Floats, Indices
from mercer.data.labels import read_signs
from mercer.parameters import positive
from mercer.theory.risks import losses

# 2^14 subsets at most, each of them a linear program: half a minute.
_MOST_SAMPLES = 14


def fewest_errors(X: ArrayLike, y: ArrayLike, *, bias: bool = True) -> Indices:
    """The rows of a smallest set without which a plane separates the rest; the first such set in order of rows.

    Parameters
    ----------
    X : array of shape (n, d)
        At most 14 samples, since all sets of rows are tried.
    y : array of n labels
        Of two classes.
    bias : bool, default=True
        Whether the plane may miss the origin.

    Examples
    --------
    >>> from mercer.theory import fewest_errors
    >>> fewest_errors([[0.0], [1.0], [2.0], [3.0]], [-1, 1, -1, 1])
    array([1])
    """
    samples, labels = np.asarray(X, dtype=np.float64), read_signs(y)
    if samples.ndim != 2 or not 0 < len(samples) <= _MOST_SAMPLES or labels.shape != (len(samples),):
        raise ValueError(
            f"X must be 1 to {_MOST_SAMPLES} rows with a label each, since all sets of rows are tried, but the shapes "
            f"are {samples.shape} and {labels.shape}"
        )
    # One coordinate more is the bias, and y⟨w, x⟩ ≥ 1 asks for a plane.
    signed = labels[:, None] * (np.column_stack([samples, np.ones(len(samples))]) if bias else samples)
    rows = np.arange(len(samples))
    for size in range(len(samples) + 1):
        for left_out in itertools.combinations(rows.tolist(), size):
            if _separable(np.delete(signed, left_out, axis=0)):
                return np.array(left_out, dtype=np.intp)
    raise AssertionError("no rows at all are separable")


def slack_power_sum(y: ArrayLike, f: ArrayLike, *, power: float) -> float:
    """Σ ξ_i^σ of the slacks ξ_i = max(0, 1 − y_i f(x_i)), with 0^σ = 0.

    Parameters
    ----------
    y : array of n labels
        Of two classes; the larger one is the positive one, as in `SVC`.
    f : array of n numbers
        The function at the samples.
    power : float > 0
        σ.

    Examples
    --------
    >>> from mercer.theory import slack_power_sum
    >>> slacks = [1, 1, -1], [2.0, 0.75, 3.0]  # 0, 0.25 and 4
    >>> [round(slack_power_sum(*slacks, power=power), 6) for power in (1.0, 0.5, 1e-9)]
    [4.25, 2.5, 2.0]
    """
    exponent = positive("power", power)
    slacks: Floats = losses(y, f, loss="hinge")
    return float(np.sum(slacks[slacks > 0] ** exponent))


def _separable(signed: Floats) -> bool:
    """Whether some w has ⟨w, row⟩ ≥ 1 for all rows."""
    if len(signed) == 0:
        return True
    found = optimize.linprog(
        np.zeros(signed.shape[1]), A_ub=-signed, b_ub=-np.ones(len(signed)), bounds=(None, None), method="highs"
    )
    return found.status == 0
