"""Tail probabilities of functions with bounded differences, and the number of samples for an accuracy ε and a δ.

    McDiarmid        P(E g − g ≥ ε) ≤ exp(−2ε²/Σc_i²)
    Hoeffding        g is the mean of n numbers in intervals of the widths w_i: c_i = w_i/n, and exp(−2ε²n) for errors
    N fixed rules    P(E g − g ≥ ε for any of them) ≤ N·exp(−2ε²/Σc_i²)

`hoeffding`, `mcdiarmid` and `finite_rules_bound` solve the same inequalities for ε.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from mercer.notes.theory.bound import Assumption, Bound, euclidean_norm, log_inverse, read_numbers
from mercer.runtime.parameters import integer, one_of, positive


def tail_probability(epsilon: float, differences: ArrayLike, *, sides: int = 1, n_rules: int = 1) -> Bound:
    """Bound the probability that a mean, or a function with bounded differences, is off by ε (Igel, theorem A.1).

    Parameters
    ----------
    epsilon : float
        Deviation ε > 0 from the expectation.
    differences : array of shape (n,)
        Bounded differences c_i: the largest change if only sample i changes; width/n for the mean of n numbers in
        intervals of a width, such as 1/n for a share of errors (Hoeffding; Igel, theorem A.2).
    sides : {1, 2}, default=1
        Whether a deviation counts in one direction or in both.
    n_rules : int, default=1
        Number N of rules that were fixed in advance: the probability that any of them is off.

    Returns
    -------
    Bound
        Upper bound sides·N·exp(−2ε²/Σc_i²) on the probability.

    Examples
    --------
    >>> from mercer.notes.theory import hoeffding, tail_probability
    >>> round(tail_probability(0.1, [1 / 200] * 200).value, 6)  # exp(−2·0.01·200)
    0.018316
    >>> round(tail_probability(hoeffding(0.0, 200, delta=0.05).value, [1 / 200] * 200).value, 12)
    0.05
    """
    requirement = "differences must have one finite number ≥ 0 per sample: the largest change with it"
    length = euclidean_norm(read_numbers(differences, requirement, 0.0))
    factor = one_of("sides", sides, (1, 2)) * integer("n_rules", n_rules, 1, "the number of rules")
    ratio = positive("epsilon", epsilon) / length if length else math.inf
    exponent = math.log(factor) - (2.0 * ratio * ratio if ratio < 1e100 else math.inf)
    value = math.exp(exponent) if exponent < 709 else math.inf
    independence = Assumption("the samples are independent")
    bounded = Assumption("the value changes by at most c_i if sample i alone is changed")
    fixed_rules = (Assumption("the rules were fixed before these samples were seen"),) * (n_rules > 1)
    terms = {f"{'2·' * (sides == 2)}{'N·' * (n_rules > 1)}exp(−2ε²/Σc²)": value}
    quantity = f"P(deviation ≥ {epsilon:g}{' for any rule' * (n_rules > 1)})"
    return Bound(quantity, value, terms, (independence, bounded, *fixed_rules), None, 1.0, source="McDiarmid 1989")


def tail_samples(epsilon: float, *, delta: float = 0.05, width: float = 1.0, sides: int = 1, n_rules: int = 1) -> int:
    """Compute the number of samples for which means of N rules are all within ε with probability 1 − δ (Hoeffding).

    It is width²·ln(sides·N/δ)/(2ε²), rounded up: `tail_probability` with the differences width/n is then at most δ.

    Parameters
    ----------
    epsilon : float
        Largest deviation ε > 0.
    delta : float, default=0.05
        Probability with which a deviation may be larger.
    width : float, default=1.0
        Width of an interval that contains each number; 1 for errors.
    sides, n_rules : int, default=1
        Directions that count, 1 or 2, and number N of rules that were fixed in advance.

    Returns
    -------
    int
        Sufficient number of samples.

    Examples
    --------
    >>> from mercer.notes.theory import tail_samples
    >>> tail_samples(0.1, delta=0.05), tail_samples(0.1, delta=0.05, n_rules=1000)
    (150, 496)
    """
    factor = one_of("sides", sides, (1, 2)) * integer("n_rules", n_rules, 1, "the number of rules")
    ratio = positive("width", width) / positive("epsilon", epsilon)
    count = 0.5 * ratio * ratio * (log_inverse(delta) + math.log(factor))
    if not math.isfinite(count):
        raise ValueError(f"width={width:g}, epsilon={epsilon:g}: the number of samples overflows float64")
    return max(1, math.ceil(count))
