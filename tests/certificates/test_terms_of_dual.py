"""Each error term of a dual problem's certificate decides one of these claims, in fractions.

A case is a problem of a few numbers whose values are known: 1 is lost beside 2⁵³ in a sum, and what the caller stated
may differ from the bounds and totals of the problem by 16 roundings.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.dual import certificate_of
from mercer.places.ball import Ball
from mercer.problems.dual_problem import DualProblem

BIG, U = 2.0**53, Fraction(1, 2**53)
MANY, STATED = 3000, 16 * U


def ones(first, other, n=MANY):
    """One number and many others."""
    return np.array([first, *[other] * (n - 1)])


@dataclass
class Case:
    """Arrays of a problem, β and u; K is diagonal, reach² its diagonal."""

    p: np.ndarray
    upper: np.ndarray
    beta: np.ndarray
    u: np.ndarray = None
    error: np.ndarray = None
    d: np.ndarray = None
    totals: tuple = ()
    reach: np.ndarray = None

    def proof(self):
        n = len(self.p)
        zero = np.zeros(n)
        u, error, d, reach = (zero if one is None else one for one in (self.u, self.error, self.d, self.reach))
        group = np.full(n, 0 if self.totals else -1, dtype=np.int32)
        problem = DualProblem.of_rows(self.p, zero, self.upper, d, group, np.array(self.totals, dtype=float))
        return certificate_of(problem, self.beta, Ball(u, error), reach, "optimality", "float64")


def losses_are_summed():
    """Many losses of 0.9 that are lost beside a large one."""
    case = Case(p=ones(BIG, 0.9), upper=np.ones(MANY), beta=np.zeros(MANY))
    return case, "primal", Fraction(BIG) + (MANY - 1) * Fraction(0.9)


def energies_are_summed():
    """β'u, without a loss."""
    case = Case(p=np.zeros(MANY), upper=np.full(MANY, 2.0), beta=np.ones(MANY), u=ones(BIG, 0.9))
    return case, "primal", (Fraction(BIG) + (MANY - 1) * Fraction(0.9)) / 2


def gains_are_summed():
    """p'β = 2⁵³ − 0.4 − 0.4 …, each of which is lost."""
    case = Case(p=ones(BIG, -0.4), upper=np.full(MANY, 2.0), beta=np.ones(MANY))
    return case, "dual", Fraction(BIG) - (MANY - 1) * Fraction(0.4)


def ridges_are_summed():
    case = Case(p=np.zeros(MANY), upper=np.full(MANY, 2.0), beta=np.ones(MANY), d=ones(BIG, 0.9))
    return case, "dual", -(Fraction(BIG) + (MANY - 1) * Fraction(0.9)) / 2


def a_bound_is_larger_than_it_seems():
    case = Case(p=np.ones(1), upper=np.full(1, 0.3), beta=np.zeros(1))
    return case, "primal", Fraction(0.3) * (1 + STATED)


def a_bound_is_smaller_than_it_seems():
    """At β = 0.3, without a kernel."""
    case = Case(p=np.ones(1), upper=np.full(1, 0.3), beta=np.full(1, 0.3))
    return case, "dual", Fraction(0.3) * (1 - STATED)


def a_total_is_larger_than_it_seems():
    """b is the mean of the gradients 0 and 10⁶, of which the second has next to no part in the sum."""
    beta = np.array([1e6, 0.5])
    case = Case(p=np.array([0.0, 1e6]), upper=np.array([1e7, 1.0]), beta=beta, totals=(1e6 + 0.5,))
    b, loss = Fraction(5e5), Fraction(5e5)  # r = 5·10⁵ for the second, whose bound is 1
    return case, "primal", loss + b * Fraction(1e6 + 0.5) * (1 + STATED)


def moved(slope=0.0, error=0.0, length=0.0, ridge=0.0, upper=1.0):
    """Σβ = 1 is all in a variable whose bound is smaller than it seems; another one takes what it leaves.

    This one has the gradient −`slope`, or seems to have 0 and is known up to an `error`, and squares that cost.
    """
    case = Case(
        p=np.array([0.0, -slope]),
        upper=np.array([upper, 1.0]),
        beta=np.array([1.0, 0.0]),
        error=np.array([0.0, error]),
        d=np.array([0.0, ridge]),
        totals=(1.0,),
        reach=np.array([0.0, length]),
    )
    a = STATED - (Fraction(upper) - 1) * (1 - STATED)
    square = Fraction(length) ** 2 + Fraction(ridge)
    return case, "dual", -a * (Fraction(slope) + Fraction(error)) - a * a * square / 2


CASES = {
    "losses": losses_are_summed,
    "energies": energies_are_summed,
    "gains": gains_are_summed,
    "ridges": ridges_are_summed,
    "larger bound": a_bound_is_larger_than_it_seems,
    "smaller bound": a_bound_is_smaller_than_it_seems,
    "larger total": a_total_is_larger_than_it_seems,
    "slope of a move": lambda: moved(slope=1e6),
    "slope of a move with little room": lambda: moved(slope=1e6, upper=1 + 2.0**-51),
    "error of a move": lambda: moved(error=1e6),
    "length of a move": lambda: moved(length=1e15),
    "ridge of a move": lambda: moved(ridge=1e30),
}


@pytest.mark.parametrize("name", CASES)
def test_a_value_is_a_bound(name):
    case, which, truth = CASES[name]()
    value = getattr(case.proof(), which)
    assert np.isfinite(value)
    assert Fraction(value) >= truth if which == "primal" else Fraction(value) <= truth


@pytest.mark.parametrize("total", [3.0, 0.3])
def test_the_residual_of_a_total_that_is_not_what_it_seems(total):
    case = Case(p=np.zeros(1), upper=np.full(1, 9.0), beta=np.full(1, total), totals=(total,))
    assert Fraction(case.proof().kkt["dual feasibility: equality"]) >= Fraction(total) * STATED
