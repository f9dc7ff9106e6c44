"""Bounds that the number of samples gives: concentration of means, finite classes of rules, and how many are enough.

Vapnik and Chervonenkis:

    L ≤ L_emp + √((ln N − ln η)/2n)          for N rules fixed in advance
    Φ(d, n) = 2 Σ_{l<d} C(n − 1, l)          dichotomies of n points in general position by planes through the origin
    L ≤ L_emp + √(8 ln(4Φ(d, 2n)/η)/n)       for all planes through the origin in d dimensions

The notes put N = Φ(d, n) into the first line. That is a heuristic, because the class then depends on the sample. The
last line is the theorem. Planes with a bias are planes through the origin in d + 1 dimensions.

How many samples are enough, and what regularisation costs in expectation (Shalev-Shwartz):

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

from mercer.notes.theory.bound import IID, UNSEEN, Assumption, Bound, deviation, length, log_inverse, numbers, summed
from mercer.runtime.parameters import finite, integer, not_negative, one_of, positive, share
from mercer.runtime.shared_docs import shared_docs

_ERROR = "the probability of error"


def hoeffding(mean: float, n: int, *, delta: float = 0.05, width: ArrayLike = 1.0, sides: int = 1) -> Bound:
    """E ≤ mean + √(Σ width_i² ln(sides/δ)/2)/n for the mean of n independent numbers, each in an interval of its width.

    With one width for all that is mean + width·√(ln(sides/δ)/2n).

    With ``sides=2`` the expectation is within the second term of the mean on both sides, with probability 1 − δ.

    Parameters
    ----------
    mean : float
        The mean of the numbers.
    n : int
        How many numbers there are.
    delta : float, default=0.05
        The probability with which the bound may fail.
    width : float or array of n numbers, default=1.0
        The width b_i − a_i of an interval that holds each number (Igel, theorem A.2), or one that holds them all.
    sides : {1, 2}, default=1
        Bound the expectation from above, or on both sides.
    """
    if sides not in (1, 2):
        raise ValueError(f"sides={sides!r} must be 1 or 2")
    common, reach = np.ndim(width) == 0, deviation(n, delta, sides)
    if common:
        one = positive("width", width)
        reach *= one
        inside = Assumption(f"every number lies in an interval of width {one:g}")
    else:
        each = numbers(width, "width must be one number, or a finite one ≥ 0 for each of the n numbers", 0.0)
        if len(each) != n:
            raise ValueError(f"width has {len(each)} numbers for n={n} of them; give one for each, or one for all")
        reach *= length(each) / math.sqrt(n)
        inside = Assumption("every number lies in an interval of its width")
    independent = Assumption("the numbers are independent")
    terms = {"mean": finite("mean", mean), "deviation": reach}
    # Only a mean of probabilities cannot be above 1: an interval of width 1 may lie anywhere.
    limit = 1.0 if common and width == 1 and 0 <= mean <= 1 else None
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
    wanted = "differences must be one finite number ≥ 0 per sample: how much g changes with it at most"
    c = numbers(differences, wanted, 0.0)
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
    return summed(_ERROR, terms, (IID, UNSEEN), delta, 1.0, "Chernoff 1952")


@shared_docs
def test_set_bound(errors: int, n: int, *, delta: float = 0.05) -> Bound:  # noqa: PT028 - a bound, not a test
    """The largest p at which n samples have these errors or fewer with probability δ or more: exact for a fixed rule.

    Parameters
    ----------
    %(errors of a rule)s

    Examples
    --------
    >>> from mercer.notes.theory import chernoff, hoeffding, test_set_bound
    >>> bounds = test_set_bound(5, 1000, delta=0.05), chernoff(5, 1000, delta=0.05), hoeffding(0.005, 1000, delta=0.05)
    >>> [round(bound.value, 4) for bound in bounds]
    [0.0105, 0.0126, 0.0437]
    """
    from scipy.stats import beta  # 0.3 s that other bounds need not wait for

    _check_counts(errors, n, delta)
    value = 1.0 if errors == n else float(beta.isf(delta, errors + 1, n - errors))
    terms = {"share of errors": errors / n, "deviation": value - errors / n}
    return summed(_ERROR, terms, (IID, UNSEEN), delta, 1.0, "Clopper and Pearson 1934")


test_set_bound.__test__ = False  # type: ignore[attr-defined]  # pytest takes the name for that of a test


@shared_docs
def glivenko_cantelli(n: int, *, delta: float = 0.05) -> Bound:
    """sup |F_n − F| ≤ √(ln(2/δ)/2n): how far an empirical distribution function is from the true one.

    It goes to 0, as Glivenko and Cantelli proved; this is its rate, with Massart's constant.

    Parameters
    ----------
    %(n and delta)s

    Examples
    --------
    >>> from scipy.stats import ks_1samp  # whose statistic is sup |F_n − F|, here of a uniform law
    >>> from mercer.notes.theory import glivenko_cantelli
    >>> sample = [0.25, 0.5, 0.75]
    >>> bool(ks_1samp(sample, lambda t: t).statistic <= glivenko_cantelli(len(sample)).value)
    True
    """
    terms = {"√(ln(2/δ)/2n)": deviation(n, delta, 2)}
    source = "Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990"
    return summed("sup |F_n − F|", terms, (IID,), delta, 1.0, source)


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


def dichotomies(d: int, n: int, *, bound: Literal["factorial", "power"] | None = None) -> int | float:
    """The growth function Φ(d, n): in how many ways planes through the origin can label n points in general position.

    It is 2^n for d ≥ n. For n ≥ 3 and d ≤ n there is a chain of bounds, Φ(d, n) ≤ 3 n^(d−1)/(d−1)! ≤ n^d.

    Parameters
    ----------
    d : int
        The number of dimensions.
    n : int
        The number of points.
    bound : {"factorial", "power"}, optional
        Give 3 n^(d−1)/(d−1)!, or n^d, instead of Φ. Needs n ≥ 3 and d ≤ n: beyond, Φ = 2^n may be larger.

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
            f"3 n^(d−1)/(d−1)! is beyond float64 for d={d}, n={n}; Φ itself is an integer of any size: leave bound out"
        ) from None


@shared_docs
def finite_rules_bound(empirical: float, n_rules: int, n: int, *, delta: float = 0.05) -> Bound:
    """L ≤ L_emp + √((ln N − ln η)/2n) for every one of N rules that were fixed before the samples were seen.

    Parameters
    ----------
    empirical : float
        The share of errors of the rule.
    n_rules : int
        N: how many rules there are to choose from.
    %(n and delta)s
    """
    _check(empirical)
    term = deviation(n, delta, integer("n_rules", n_rules, 1, "the number of rules"))
    fixed = Assumption("the rules were fixed before these samples were seen")
    terms = {"share of errors": empirical, "√((ln N − ln η)/2n)": term}
    return summed(_ERROR, terms, (IID, fixed), delta, 1.0, "Vapnik and Chervonenkis 1974")


@shared_docs
def linear_rules_bound(
    empirical: float, d: int, n: int, *, delta: float = 0.05, bias: bool = False, heuristic: bool = False
) -> Bound:
    """The VC bound for all linear rules in d dimensions; with ``heuristic=True`` as printed in the notes.

    Parameters
    ----------
    empirical : float
        The share of errors of the rule.
    d : int
        The number of features.
    %(n and delta)s
    bias : bool, default=False
        Whether planes may miss the origin: one dimension more.
    heuristic : bool, default=False
        The form that the notes print, which is no theorem.

    Examples
    --------
    >>> from mercer.notes.theory import linear_rules_bound
    >>> valid = linear_rules_bound(0.1, d=2, n=100_000, bias=True)
    >>> printed = linear_rules_bound(0.1, d=2, n=100_000, bias=True, heuristic=True)
    >>> round(valid.value, 4), valid.applies, round(printed.value, 4), printed.applies
    (0.148, None, 0.1137, False)
    """
    _check(empirical)
    integer("n", n, 1, "the number of samples")
    dimensions = integer("d", d, 1, "the number of dimensions") + bool(bias)
    if heuristic:
        name = "√((d ln n − ln η)/2n)"
        term = deviation(n, delta, min(n**dimensions, 2**n))  # for Φ(d, n)
        further = Assumption("the dichotomies were fixed before these samples were seen", False)
    else:
        name = "√(8 ln(4Φ(d, 2n)/η)/n)"
        term = math.sqrt(8 * log_inverse(delta, 4 * dichotomies(dimensions, 2 * n)) / n)
        further = Assumption(f"the features were fixed before these samples were seen: {d} of them")
    terms = {"share of errors": empirical, name: term}
    return summed(_ERROR, terms, (IID, further), delta, 1.0, "Vapnik and Chervonenkis 1971; Devroye and others 1996")


def _check(empirical: float) -> None:
    if not 0 <= empirical <= 1:
        raise ValueError(f"empirical={empirical!r} must be a share of errors, between 0 and 1")


_SOURCE = "Shalev-Shwartz, lecture 8"
_SOFT_MARGIN = (
    IID,
    Assumption("every ‖φ(x)‖ is at most the radius"),
    Assumption("f has no bias outside of its norm"),
    Assumption("ϑ was fixed before the data were seen"),
)


@shared_docs
def hard_margin_samples(epsilon: float, radius: float, margin: float, *, delta: float = 0.05) -> int:
    """How many samples bring the error of a hard-margin machine to ε with probability 1 − δ.

    Parameters
    ----------
    epsilon : float
        The error to be reached, between 0 and 1.
    delta : float, default=0.05
        The probability with which the error may be larger.
    %(radius)s
    margin : float
        γ: the margin with which the samples can be separated.

    Examples
    --------
    >>> from mercer.notes.theory import hard_margin_samples
    >>> hard_margin_samples(0.1, delta=0.05, radius=1.0, margin=0.1)
    162952
    """
    ratio = positive("radius", radius) / positive("margin", margin)
    small = share("epsilon", epsilon)
    return _counted(8.0 / small / small * (2.0 * ratio * ratio + log_inverse(delta, 2.0)))


def soft_margin_expectation(risk: float, norm: float, radius: float, n: int, *, theta: float | None = None) -> Bound:
    """The expected hinge risk of the machine trained on n samples, from the true hinge risk of any u and its norm.

    E L ≤ L(u) + ϑ‖u‖² + 2R²/(ϑn). At the best ϑ the last two terms are equal, and the machine errs in expectation by at
    most √(8R²‖u‖²/n) more than the hinge risk of u. The proof needs that w ↦ max(0, 1 − y⟨w, φ(x)⟩) changes by at most
    ‖φ(x)‖ ≤ R times as much as w.

    Parameters
    ----------
    risk : float
        L(u): the true hinge risk of any u.
    norm : float
        ‖u‖.
    radius : float
        R: the largest ‖φ(x)‖.
    n : int
        The number of samples.
    theta : float, optional
        ϑ of the machine, which minimises (1/n) Σ hinge + ϑ‖w‖²: `SVC(theta=…, bias=False)`. By default
        ``best_theta(radius, norm, n)``. The lecture writes λ, which is not `lam`, the factor beside a sum of losses.

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
    return summed("the expected hinge risk", terms, _SOFT_MARGIN, None, None, _SOURCE)


def best_theta(radius: float, norm: float, n: int) -> float:
    """ϑ = √(2R²/(B²n)), which makes the last two terms of `soft_margin_expectation` equal for ‖u‖ = B.

    The machine is `SVC(theta=best_theta(…), bias=False)`.

    Parameters
    ----------
    radius : float
        R: the largest ‖φ(x)‖.
    norm : float
        B: the largest ‖w‖.
    n : int
        The number of samples.
    """
    integer("n", n, 1, "the number of samples")
    return math.sqrt(2.0 / n) * positive("radius", radius) / positive("norm", norm)


@shared_docs
def soft_margin_samples(epsilon: float, radius: float, norm: float) -> int:
    """Number of samples that brings the excess √(8R²B²/n) of `soft_margin_expectation` to ε: 8R²B²/ε².

    Parameters
    ----------
    epsilon : float
        The excess to be reached, between 0 and 1.
    %(radius)s
    norm : float
        B: the largest ‖w‖.
    """
    ratio = positive("radius", radius) * positive("norm", norm) / share("epsilon", epsilon)
    return _counted(8.0 * ratio * ratio)


def _counted(enough: float) -> int:
    if not math.isfinite(enough):
        raise ValueError("the number of samples that would be enough is beyond float64: the margin is too small")
    return math.ceil(enough)
