"""Bounds from the number of samples: concentration of means, finite classes of rules, and sample complexity.

Vapnik and Chervonenkis:

    L ≤ L_emp + √((ln N − ln η)/2n)          for N rules fixed in advance
    Φ(d, n) = 2 Σ_{l<d} C(n − 1, l)          dichotomies of n points in general position by homogeneous hyperplanes
    L ≤ L_emp + √(8 ln(4S(2n)/η)/n)          for all rules sgn(⟨w, x⟩ + b), or sgn⟨w, x⟩, in d dimensions

The notes insert N = Φ(d, n) into the first line. That is a heuristic, because the class then depends on the sample. The
last line is the theorem: S(2n) bounds the number of labellings of any 2n points. With a bias it is Φ(d + 1, 2n), since
a hyperplane can be moved off finitely many points. Without a bias, some points have more than Φ(d, 2n) labellings,
because sgn 0 = 1: the rules sgn(wx) label 1 and −1 in three ways, and Φ(1, 2) = 2. There S(2n) = Σ_{l≤d} C(2n, l), by
Sauer's lemma, as the VC dimension is d.

Sample complexity, and the cost of regularisation in expectation (Shalev-Shwartz):

    hard margin   n ≥ 8/ε² (2(R/γ)² + ln(2/δ))              error at most ε with probability 1 − δ
    soft margin   E L(A(S)) ≤ L(u) + ϑ‖u‖² + 2R²/(ϑn)       for every u; A minimises ϑ‖w‖² + hinge risk
    best ϑ        √(2R²/(B²n))                              excess √(8R²B²/n) over the best w with ‖w‖ ≤ B

R is the largest ‖φ(x)‖, and the machine has no bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer.notes.theory.bound import (
    IID,
    UNSEEN,
    Assumption,
    Bound,
    bound_by_sum,
    deviation,
    euclidean_norm,
    log_inverse,
    read_numbers,
)
from mercer.runtime.parameters import finite, integer, not_negative, one_of, positive, share
from mercer.runtime.shared_docs import shared_docs

_ERROR = "the probability of error"


def hoeffding(mean: float, n: int, *, delta: float = 0.05, width: ArrayLike = 1.0, sides: int = 1) -> Bound:
    """Bound the expectation of the mean of n independent bounded numbers by Hoeffding's inequality (Igel, theorem A.2).

    The bound is mean + √(Σ width_i² ln(sides/δ)/2)/n, or mean + width·√(ln(sides/δ)/2n) if all widths are equal. With
    ``sides=2``, the expectation differs from the mean by at most the second term with probability 1 − δ.

    Parameters
    ----------
    mean : float
        Mean of the numbers.
    n : int
        Number of numbers.
    delta : float, default=0.05
        Probability with which the bound may fail.
    width : float or array of shape (n,), default=1.0
        Width b_i − a_i of an interval that contains each number, or one width for all.
    sides : {1, 2}, default=1
        Whether to bound the expectation from above, or on both sides.

    Returns
    -------
    Bound
        Upper bound on the expectation.
    """
    if sides not in (1, 2):
        raise ValueError(f"sides={sides!r} must be 1 or 2")
    has_one_width, distance = np.ndim(width) == 0, deviation(n, delta, sides)
    if has_one_width:
        number = positive("width", width)
        distance *= number
        in_interval = Assumption(f"every number lies in an interval of width {number:g}")
    else:
        widths = read_numbers(width, "width must be one number, or a finite number ≥ 0 for each of the n numbers", 0.0)
        if len(widths) != n:
            raise ValueError(f"width has {len(widths)} entries, but n={n}; pass one for each number, or one for all")
        distance *= euclidean_norm(widths) / math.sqrt(n)
        in_interval = Assumption("every number lies in an interval of its width")
    independence = Assumption("the numbers are independent")
    terms = {"mean": finite("mean", mean), "deviation": distance}
    # 1 is a trivial bound for probabilities only; another interval of width 1 may lie anywhere.
    limit = 1.0 if has_one_width and width == 1 and 0 <= mean <= 1 else None
    return bound_by_sum("the expectation", terms, (independence, in_interval), delta, limit, "Hoeffding 1963")


def mcdiarmid(value: float, differences: ArrayLike, *, delta: float = 0.05) -> Bound:
    """Bound E g by g + √(Σc_i² ln(1/δ)/2) for a function g with bounded differences (McDiarmid; Igel, theorem A.1).

    Parameters
    ----------
    value : float
        Value of g for the samples.
    differences : array
        Bounded differences c_i: the largest change of g if only sample i changes.
    delta : float, default=0.05
        Probability with which the bound may fail.

    Returns
    -------
    Bound
        Upper bound on E g.
    """
    requirement = "differences must have one finite number ≥ 0 per sample: the largest change of g with it"
    c = read_numbers(differences, requirement, 0.0)
    distance = euclidean_norm(c) * math.sqrt(log_inverse(delta) / 2)
    independence = Assumption("the samples are independent")
    bounded = Assumption("g changes by at most c_i if sample i alone is changed")
    terms = {"value": finite("value", value), "deviation": distance}
    return bound_by_sum(
        "the expectation", terms, (independence, bounded), delta, None, "McDiarmid 1989; Igel, theorem A.1"
    )


@shared_docs
def chernoff(errors: int, n: int, *, delta: float = 0.05) -> Bound:
    """Bound the error probability of a fixed rule by Chernoff's inequality.

    The bound is the largest p with n·kl(errors/n, p) ≤ ln(1/δ), where kl is the relative entropy of two Bernoulli
    distributions. It is never above Hoeffding's bound, and far below it if errors are few: without errors it is about
    ln(1/δ)/n.

    Parameters
    ----------
    %(errors of a rule)s

    Returns
    -------
    Bound
        Upper bound on the probability of error.
    """
    _check_counts(errors, n, delta)
    rate, limit = errors / n, log_inverse(delta) / n
    value = _largest_probability(lambda p: _relative_entropy(rate, p) <= limit, rate)
    terms = {"share of errors": rate, "deviation": value - rate}
    return bound_by_sum(_ERROR, terms, (IID, UNSEEN), delta, 1.0, "Chernoff 1952")


@shared_docs
def test_set_bound(errors: int, n: int, *, delta: float = 0.05) -> Bound:  # noqa: PT028 - a bound, not a test
    """Bound the error probability of a fixed rule exactly, from its errors on a test set (Clopper and Pearson 1934).

    The bound is the largest p for which n samples have at most these errors with probability at least δ.

    Parameters
    ----------
    %(errors of a rule)s

    Returns
    -------
    Bound
        Upper bound on the probability of error.

    Examples
    --------
    >>> from mercer.notes.theory import chernoff, hoeffding, test_set_bound
    >>> bounds = test_set_bound(5, 1000, delta=0.05), chernoff(5, 1000, delta=0.05), hoeffding(0.005, 1000, delta=0.05)
    >>> [round(bound.value, 4) for bound in bounds]
    [0.0105, 0.0126, 0.0437]
    """
    from scipy.stats import beta  # the import takes 0.3 s, which other bounds do not need

    _check_counts(errors, n, delta)
    value = 1.0 if errors == n else float(beta.isf(delta, errors + 1, n - errors))
    terms = {"share of errors": errors / n, "deviation": value - errors / n}
    return bound_by_sum(_ERROR, terms, (IID, UNSEEN), delta, 1.0, "Clopper and Pearson 1934")


test_set_bound.__test__ = False  # type: ignore[attr-defined]  # the name looks like a test to pytest


@shared_docs
def glivenko_cantelli(n: int, *, delta: float = 0.05) -> Bound:
    """Bound the distance of an empirical distribution function from the true one: sup |F_n − F| ≤ √(ln(2/δ)/2n).

    The distance tends to 0 by the theorem of Glivenko and Cantelli; this is the inequality of Dvoretzky, Kiefer and
    Wolfowitz, with Massart's constant.

    Parameters
    ----------
    %(n and delta)s

    Returns
    -------
    Bound
        Upper bound on sup |F_n − F|.

    Examples
    --------
    >>> from scipy.stats import ks_1samp  # its statistic is sup |F_n − F|, here for a uniform distribution
    >>> from mercer.notes.theory import glivenko_cantelli
    >>> sample = [0.25, 0.5, 0.75]
    >>> bool(ks_1samp(sample, lambda t: t).statistic <= glivenko_cantelli(len(sample)).value)
    True
    """
    terms = {"√(ln(2/δ)/2n)": deviation(n, delta, 2)}
    source = "Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990"
    return bound_by_sum("sup |F_n − F|", terms, (IID,), delta, 1.0, source)


def _check_counts(errors: int, n: int, delta: float) -> None:
    """Check the parameters of a bound on the error probability."""
    integer("n", n, 1, "the number of samples")
    integer("errors", errors, 0, "the number of errors among the samples")
    if errors > n:
        raise ValueError(f"errors={errors} of n={n} samples: there cannot be more errors than samples")
    share("delta", delta)


def _relative_entropy(a: float, p: float) -> float:
    """Return the relative entropy a ln(a/p) + (1 − a) ln((1 − a)/(1 − p)) of two Bernoulli distributions."""
    first = a * math.log(a / p) if a > 0 else 0.0
    if a == 1:
        return first
    return first + (1 - a) * math.log((1 - a) / (1 - p)) if p < 1 else math.inf


def _largest_probability(holds: Callable[[float], bool], lowest: float) -> float:
    """Return the largest p ≥ `lowest` with `holds(p)`, rounded up, by bisection to the last bit."""
    low, high = lowest, 1.0
    if lowest == 1 or holds(1.0):
        return 1.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if middle > 0 and holds(middle) else (low, middle)
    return high


def dichotomies(d: int, n: int, *, bound: Literal["factorial", "power"] | None = None) -> int | float:
    """Compute the growth function Φ(d, n): the dichotomies of n points in general position by hyperplanes through 0.

    It is 2^n for d ≥ n. For n ≥ 3 and d ≤ n, Φ(d, n) ≤ 3 n^(d−1)/(d−1)! ≤ n^d.

    Parameters
    ----------
    d : int
        Number of dimensions.
    n : int
        Number of points.
    bound : {"factorial", "power"}, optional
        Upper bound to return instead of Φ: 3 n^(d−1)/(d−1)! or n^d. It requires n ≥ 3 and d ≤ n, since Φ = 2^n may be
        larger otherwise.

    Returns
    -------
    int or float
        Number of dichotomies, or an upper bound on it.

    Examples
    --------
    >>> from mercer.notes.theory import dichotomies
    >>> [dichotomies(d, 5) for d in range(1, 7)]
    [2, 10, 22, 30, 32, 32]
    >>> dichotomies(3, 5), dichotomies(3, 5, bound="factorial"), dichotomies(3, 5, bound="power")
    (22, 37.5, 125)
    """
    integer("d", d, 1, "the number of dimensions")
    integer("n", n, 1, "the number of points")
    if bound is None:
        return 2 * sum(math.comb(n - 1, i) for i in range(min(d, n)))
    one_of("bound", bound, ("factorial", "power"))
    if not 3 <= n >= d:
        raise ValueError(f"the chain of bounds holds for n ≥ 3 points in d ≤ n dimensions, not for d={d}, n={n}")
    if bound == "power":
        return int(n**d)
    try:
        return float(3 * n ** (d - 1) / math.factorial(d - 1))
    except OverflowError:
        raise ValueError(
            f"3 n^(d−1)/(d−1)! overflows float64 for d={d}, n={n}; Φ itself is an integer of any size: omit bound"
        ) from None


@shared_docs
def finite_rules_bound(empirical: float, n_rules: int, n: int, *, delta: float = 0.05) -> Bound:
    """Bound the error of each of N rules that were fixed in advance by L ≤ L_emp + √((ln N − ln η)/2n) (Vapnik).

    Parameters
    ----------
    empirical : float
        Share of errors of the rule on the samples.
    n_rules : int
        Number N of rules to choose from.
    %(n and delta)s

    Returns
    -------
    Bound
        Upper bound on the probability of error.
    """
    _check_share(empirical)
    term = deviation(n, delta, integer("n_rules", n_rules, 1, "the number of rules"))
    fixed_rules = Assumption("the rules were fixed before these samples were seen")
    terms = {"share of errors": empirical, "√((ln N − ln η)/2n)": term}
    return bound_by_sum(_ERROR, terms, (IID, fixed_rules), delta, 1.0, "Vapnik and Chervonenkis 1974")


@shared_docs
def linear_rules_bound(
    empirical: float, d: int, n: int, *, delta: float = 0.05, bias: bool = False, heuristic: bool = False
) -> Bound:
    """Compute the VC bound on the error of a linear rule in d dimensions (Vapnik and Chervonenkis 1971).

    Parameters
    ----------
    empirical : float
        Share of errors of the rule on the samples.
    d : int
        Number of features.
    %(n and delta)s
    bias : bool, default=False
        Whether hyperplanes may miss the origin, which adds one dimension.
    heuristic : bool, default=False
        Whether to use the form in the notes, which is not a theorem.

    Returns
    -------
    Bound
        Upper bound on the probability of error.

    Examples
    --------
    >>> from mercer.notes.theory import linear_rules_bound
    >>> valid = linear_rules_bound(0.1, d=2, n=100_000, bias=True)
    >>> printed = linear_rules_bound(0.1, d=2, n=100_000, bias=True, heuristic=True)
    >>> round(valid.value, 4), valid.applies, round(printed.value, 4), printed.applies
    (0.148, None, 0.1137, False)
    """
    _check_share(empirical)
    integer("n", n, 1, "the number of samples")
    dimensions = integer("d", d, 1, "the number of dimensions") + bool(bias)
    if heuristic:
        name = "√((d ln n − ln η)/2n)"
        term = deviation(n, delta, min(n**dimensions, 2**n))  # for Φ(d, n)
        assumption = Assumption("the dichotomies were fixed before these samples were seen", False)
    else:
        name = "√(8 ln(4S(2n)/η)/n)"
        labellings = (
            dichotomies(dimensions, 2 * n) if bias else sum(math.comb(2 * n, i) for i in range(min(d, 2 * n) + 1))
        )
        term = math.sqrt(8 * log_inverse(delta, 4 * labellings) / n)
        assumption = Assumption(f"the features were fixed before these samples were seen: {d} of them")
    terms = {"share of errors": empirical, name: term}
    return bound_by_sum(
        _ERROR, terms, (IID, assumption), delta, 1.0, "Vapnik and Chervonenkis 1971; Devroye and others 1996"
    )


def _check_share(empirical: float) -> None:
    """Raise ValueError if `empirical` is not a share of errors."""
    if not 0 <= empirical <= 1:
        raise ValueError(f"empirical={empirical!r} must be a share of errors, between 0 and 1")


_SOURCE = "Shalev-Shwartz, lecture 8"
_SOFT_MARGIN = (
    IID,
    Assumption("every ‖φ(x)‖ is at most the radius"),
    Assumption("f has no bias, or one that its norm includes"),
    Assumption("ϑ was fixed before the data were seen"),
)


@shared_docs
def hard_margin_samples(epsilon: float, radius: float, margin: float, *, delta: float = 0.05) -> int:
    """Compute the number of samples for which a hard-margin machine has an error ≤ ε with probability 1 − δ.

    It is 8/ε² (2(R/γ)² + ln(2/δ)) (Shalev-Shwartz, lecture 8).

    Parameters
    ----------
    epsilon : float
        Largest error ε, between 0 and 1.
    delta : float, default=0.05
        Probability with which the error may be larger.
    %(radius)s
    margin : float
        Margin γ with which the samples can be separated.

    Returns
    -------
    int
        Sufficient number of samples.

    Examples
    --------
    >>> from mercer.notes.theory import hard_margin_samples
    >>> hard_margin_samples(0.1, delta=0.05, radius=1.0, margin=0.1)
    162952
    """
    ratio = positive("radius", radius) / positive("margin", margin)
    error = share("epsilon", epsilon)
    return _round_up(8.0 / error / error * (2.0 * ratio * ratio + log_inverse(delta, 2.0)))


def soft_margin_expectation(risk: float, norm: float, radius: float, n: int, *, theta: float | None = None) -> Bound:
    """Bound the expected hinge risk of a soft-margin machine by L(u) + ϑ‖u‖² + 2R²/(ϑn) (Shalev-Shwartz, lecture 8).

    The bound holds for every u. At the best ϑ the last two terms are equal, and the expected hinge risk exceeds that of
    u by at most √(8R²‖u‖²/n). The proof uses that w ↦ max(0, 1 − y⟨w, φ(x)⟩) is Lipschitz with the constant
    ‖φ(x)‖ ≤ R.

    Parameters
    ----------
    risk : float
        True hinge risk L(u) of any u.
    norm : float
        Norm ‖u‖.
    radius : float
        Radius R: the largest ‖φ(x)‖.
    n : int
        Number of samples.
    theta : float, optional
        Regularisation parameter ϑ of the machine, which minimises (1/n) Σ hinge + ϑ‖w‖²: `SVC(theta=…, bias=False)`. By
        default ``best_theta(radius, norm, n)``. The lecture calls it λ; it is not `lam`, the factor in a sum of losses.

    Returns
    -------
    Bound
        Upper bound on the expected hinge risk.

    Examples
    --------
    >>> from mercer.notes.theory import soft_margin_expectation
    >>> bound = soft_margin_expectation(0.1, norm=2.0, radius=1.0, n=3200)  # √(8·4/3200) = 0.1
    >>> round(bound.value, 9), [round(value, 9) for value in bound.terms.values()]
    (0.2, [0.1, 0.05, 0.05])
    """
    integer("n", n, 1, "the number of samples")
    theta = best_theta(radius, norm, n) if theta is None else positive("theta", theta)
    terms = {
        "L(u)": not_negative("risk", risk),
        "ϑ‖u‖²": theta * not_negative("norm", norm) * norm,
        "2R²/(ϑn)": 2.0 * not_negative("radius", radius) / theta * radius / n,
    }
    return bound_by_sum("the expected hinge risk", terms, _SOFT_MARGIN, None, None, _SOURCE)


def best_theta(radius: float, norm: float, n: int) -> float:
    """Compute the ϑ = √(2R²/(B²n)) that minimises `soft_margin_expectation` for ‖u‖ = B (Shalev-Shwartz, lecture 8).

    The corresponding estimator is `SVC(theta=best_theta(…), bias=False)`.

    Parameters
    ----------
    radius : float
        Radius R: the largest ‖φ(x)‖.
    norm : float
        Largest norm B of w.
    n : int
        Number of samples.

    Returns
    -------
    float
        The best ϑ.
    """
    integer("n", n, 1, "the number of samples")
    return math.sqrt(2.0 / n) * positive("radius", radius) / positive("norm", norm)


@shared_docs
def soft_margin_samples(epsilon: float, radius: float, norm: float) -> int:
    """Compute the number of samples, 8R²B²/ε², for which the excess √(8R²B²/n) of `soft_margin_expectation` is ε.

    Parameters
    ----------
    epsilon : float
        Largest excess ε, between 0 and 1.
    %(radius)s
    norm : float
        Largest norm B of w.

    Returns
    -------
    int
        Sufficient number of samples.
    """
    ratio = positive("radius", radius) * positive("norm", norm) / share("epsilon", epsilon)
    return _round_up(8.0 * ratio * ratio)


def _round_up(count: float) -> int:
    """Round a number of samples up; raise ValueError if it overflows."""
    if not math.isfinite(count):
        raise ValueError("the sufficient number of samples overflows float64: the margin is too small")
    return math.ceil(count)
