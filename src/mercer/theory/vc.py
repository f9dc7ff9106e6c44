"""Vapnik and Chervonenkis: bounds for finitely many rules, and for linear ones by the dichotomies that they make.

    L ≤ L_emp + √((ln N − ln η)/2n)          for N rules fixed in advance
    Φ(d, n) = 2 Σ_{l<d} C(n − 1, l)          dichotomies of n points in general position by planes through the origin
    L ≤ L_emp + √(8 ln(4Φ(d, 2n)/η)/n)       for all planes through the origin in d dimensions

The notes put N = Φ(d, n) into the first line. That is a heuristic, because the class then depends on the sample. The
last line is the theorem. Planes with a bias are planes through the origin in d + 1 dimensions.
"""

from __future__ import annotations

import math

from mercer.fitting.families.shared_docs import shared_docs
from mercer.parameters import integer, share
from mercer.theory.bound import IID, Assumption, Bound, summed

_ERROR = "the probability of error"


def dichotomies(d: int, n: int) -> int:
    """The growth function Φ(d, n): in how many ways planes through the origin can label n points in general position.

    It is 2^n for d ≥ n.

    Parameters
    ----------
    d : int
        The number of dimensions.
    n : int
        The number of points.

    Examples
    --------
    >>> from mercer.theory import dichotomies
    >>> [dichotomies(d, 5) for d in range(1, 7)]
    [2, 10, 22, 30, 32, 32]
    """
    integer("d", d, 1, "the number of dimensions")
    integer("n", n, 1, "the number of points")
    return 2 * sum(math.comb(n - 1, i) for i in range(min(d, n)))


def dichotomies_chain(d: int, n: int) -> tuple[int, float, int]:
    """Φ(d, n) ≤ 3 n^(d−1)/(d−1)! ≤ n^d, for n ≥ 3 and d ≤ n; beyond, the middle may be smaller than Φ = 2^n.

    Parameters
    ----------
    d : int
        The number of dimensions.
    n : int
        The number of points, at least 3 and d.
    """
    if not 3 <= n >= d:
        raise ValueError(f"the chain of bounds holds for n ≥ 3 points in d ≤ n dimensions, not for d={d}, n={n}")
    return dichotomies(d, n), 3 * n ** (d - 1) / math.factorial(d - 1), n**d


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
    _check(empirical, n, delta)
    integer("n_rules", n_rules, 1, "the number of rules")
    term = math.sqrt((math.log(n_rules) - math.log(delta)) / (2 * n))
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
    >>> from mercer.theory import linear_rules_bound
    >>> valid = linear_rules_bound(0.1, d=2, n=100_000, bias=True)
    >>> printed = linear_rules_bound(0.1, d=2, n=100_000, bias=True, heuristic=True)
    >>> round(valid.value, 4), valid.applies, round(printed.value, 4), printed.applies
    (0.148, None, 0.1114, False)
    """
    _check(empirical, n, delta)
    dimensions = integer("d", d, 1, "the number of dimensions") + bool(bias)
    if heuristic:
        name = "√((ln Φ(d, n) − ln η)/2n)"
        term = math.sqrt((math.log(dichotomies(dimensions, n)) - math.log(delta)) / (2 * n))
        further = Assumption("the dichotomies were fixed before these samples were seen", False)
    else:
        name = "√(8 ln(4Φ(d, 2n)/η)/n)"
        term = math.sqrt(8 * (math.log(4) + math.log(dichotomies(dimensions, 2 * n)) - math.log(delta)) / n)
        further = Assumption(f"the features were fixed before these samples were seen: {d} of them")
    terms = {"share of errors": empirical, name: term}
    return summed(_ERROR, terms, (IID, further), delta, 1.0, "Vapnik and Chervonenkis 1971; Devroye and others 1996")


def _check(empirical: float, n: int, delta: float) -> None:
    if not 0 <= empirical <= 1:
        raise ValueError(f"empirical={empirical!r} must be a share of errors, between 0 and 1")
    integer("n", n, 1, "the number of samples")
    share("delta", delta)
