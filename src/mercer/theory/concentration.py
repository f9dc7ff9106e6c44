"""How far a mean over independent samples is from its expectation: Hoeffding, Chernoff, McDiarmid, and test sets."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Floats
from mercer.fitting.families.shared_docs import shared_docs
from mercer.parameters import finite, integer, positive, share
from mercer.theory.bound import IID, UNSEEN, Assumption, Bound, length, log_inverse, summed


def hoeffding(mean: float, n: int, *, delta: float = 0.05, width: float = 1.0, sides: int = 1) -> Bound:
    """E ≤ mean + width·√(ln(sides/δ)/2n) for the mean of n independent numbers in an interval of this width.

    With ``sides=2`` the expectation is within the second term of the mean on both sides, with probability 1 − δ.

    Parameters
    ----------
    mean : float
        The mean of the numbers.
    n : int
        How many numbers there are.
    delta : float, default=0.05
        The probability with which the bound may fail.
    width : float, default=1.0
        The width of an interval that holds them all.
    sides : {1, 2}, default=1
        Bound the expectation from above, or on both sides.
    """
    integer("n", n, 1, "the number of samples")
    if sides not in (1, 2):
        raise ValueError(f"sides={sides!r} must be 1 or 2")
    reach = positive("width", width) * math.sqrt(log_inverse(delta, sides) / (2 * n))
    inside = Assumption(f"every number lies in an interval of width {width:g}")
    independent = Assumption("the numbers are independent")
    terms = {"mean": finite("mean", mean), "deviation": reach}
    # Only a mean of probabilities cannot be above 1: an interval of width 1 may lie anywhere.
    limit = 1.0 if width == 1 and 0 <= mean <= 1 else None
    return summed("the expectation", terms, (independent, inside), delta, limit, "Hoeffding 1963")


def mcdiarmid(value: float, differences: ArrayLike, *, delta: float = 0.05) -> Bound:
    """E g ≤ g + √(Σc_i² ln(1/δ)/2) for g, a function of independent samples, which changes by c_i at most with one.

    Parameters
    ----------
    value : float
        g of the samples.
    differences : array
        c_i: how much g changes at most if sample i alone is changed.
    delta : float, default=0.05
        The probability with which the bound may fail.
    """
    c = np.asarray(differences, dtype=np.float64)
    if c.ndim != 1 or len(c) == 0 or not (np.isfinite(c) & (c >= 0)).all():
        raise ValueError("differences must be one finite number ≥ 0 per sample: how much g changes with it at most")
    reach = length(c) * math.sqrt(log_inverse(delta) / 2)
    independent = Assumption("the samples are independent")
    bounded = Assumption("g changes by at most c_i if sample i alone is changed")
    terms = {"value": finite("value", value), "deviation": reach}
    return summed("the expectation", terms, (independent, bounded), delta, None, "McDiarmid 1989; Igel, theorem A.1")


@shared_docs
def chernoff(errors: int, n: int, *, delta: float = 0.05) -> Bound:
    """The largest p with n·kl(errors/n, p) ≤ ln(1/δ), kl the relative entropy of two coins: Chernoff's bound.

    It is never above Hoeffding's, and far below it where errors are few: none in n gives about ln(1/δ)/n.

    Parameters
    ----------
    %(errors of a rule)s
    """
    _check_counts(errors, n, delta)
    rate, limit = errors / n, log_inverse(delta) / n
    value = _largest(lambda p: _relative_entropy(rate, p) <= limit, rate)
    terms = {"share of errors": rate, "deviation": value - rate}
    return summed("the probability of error", terms, (IID, UNSEEN), delta, 1.0, "Chernoff 1952")


@shared_docs
def test_set_bound(errors: int, n: int, *, delta: float = 0.05) -> Bound:  # noqa: PT028 - a bound, not a test
    """The largest p at which n samples have these errors or fewer with probability δ or more: exact for a fixed rule.

    Parameters
    ----------
    %(errors of a rule)s

    Examples
    --------
    >>> from mercer.theory import chernoff, hoeffding, test_set_bound
    >>> bounds = test_set_bound(5, 1000, delta=0.05), chernoff(5, 1000, delta=0.05), hoeffding(0.005, 1000, delta=0.05)
    >>> [round(bound.value, 4) for bound in bounds]
    [0.0105, 0.0126, 0.0437]
    """
    from scipy.stats import beta  # 0.3 s that other bounds need not wait for

    _check_counts(errors, n, delta)
    value = 1.0 if errors == n else float(beta.isf(delta, errors + 1, n - errors))
    terms = {"share of errors": errors / n, "deviation": value - errors / n}
    return summed("the probability of error", terms, (IID, UNSEEN), delta, 1.0, "Clopper and Pearson 1934")


test_set_bound.__test__ = False  # type: ignore[attr-defined]  # pytest takes the name for that of a test


@shared_docs
def glivenko_cantelli(n: int, *, delta: float = 0.05) -> Bound:
    """sup |F_n − F| ≤ √(ln(2/δ)/2n): how far an empirical distribution function is from the true one.

    It goes to 0, as Glivenko and Cantelli proved; this is its rate, with Massart's constant.

    Parameters
    ----------
    %(n and delta)s
    """
    integer("n", n, 1, "the number of samples")
    value = math.sqrt(log_inverse(delta, 2) / (2 * n))
    source = "Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990"
    return summed("sup |F_n − F|", {"√(ln(2/δ)/2n)": value}, (IID,), delta, 1.0, source)


def distance_of_distributions(sample: ArrayLike, distribution: Callable[[Floats], ArrayLike]) -> float:
    """sup over t of |F_n(t) − F(t)|, F_n from the sample and F a continuous distribution function.

    Parameters
    ----------
    sample : array
        Numbers.
    distribution : callable
        F, which maps an array to the probabilities of values up to each entry.

    Examples
    --------
    >>> from mercer.theory import distance_of_distributions
    >>> distance_of_distributions([0.25, 0.5, 0.75], lambda t: t)  # against the uniform one
    0.25
    """
    values = np.sort(np.asarray(sample, dtype=np.float64))
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"sample must be numbers, at least one, not of shape {values.shape}")
    F, n = np.asarray(distribution(values), dtype=np.float64), len(values)
    return float(max(np.max(np.arange(1, n + 1) / n - F), np.max(F - np.arange(n) / n)))


def _check_counts(errors: int, n: int, delta: float) -> None:
    integer("n", n, 1, "the number of samples")
    integer("errors", errors, 0, "the number of errors among the samples")
    if errors > n:
        raise ValueError(f"errors={errors} of n={n} samples: there cannot be more errors than samples")
    share("delta", delta)


def _relative_entropy(a: float, p: float) -> float:
    """a ln(a/p) + (1 − a) ln((1 − a)/(1 − p))."""
    first = a * math.log(a / p) if a > 0 else 0.0
    if a == 1:
        return first
    return first + (1 - a) * math.log((1 - a) / (1 - p)) if p < 1 else math.inf


def _largest(holds: Callable[[float], bool], lowest: float) -> float:
    """The end of an interval [lowest, …] on which something holds, from above, by bisection to the last bit."""
    low, high = lowest, 1.0
    if lowest == 1 or holds(1.0):
        return 1.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if middle > 0 and holds(middle) else (low, middle)
    return high
