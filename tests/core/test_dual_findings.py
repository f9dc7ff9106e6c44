"""What the core finds out about a point of a dual problem: sums in twice the precision, infinity for what is undefined.

The numbers themselves are compared with naive loops in tests/certificates/test_dual.py.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from mercer import _core

VIOLATION, EQUALITY, TO_GAP, TO_DUAL, BIAS = 3, 7, 8, 9, 15


def found(beta, *, u=None, group=None, totals=(0.0,), row=None, reach=0.0, wide=1e20):
    """The findings at β inside [−1, 1] times a large number, with p = 1."""
    beta = np.asarray(beta, dtype=np.float64)
    n = len(beta)
    u = np.zeros(n) if u is None else np.asarray(u, dtype=np.float64)
    group = np.zeros(n, dtype=np.int32) if group is None else np.asarray(group, dtype=np.int32)
    row = np.arange(n) if row is None else np.asarray(row)
    none, wide = np.zeros(len(u)), np.full(n, wide)
    problem = np.ones(n), -wide, wide, np.zeros(n), row, group, np.array(totals)
    return _core.dual_findings(*problem, beta, none, u, none, np.full(len(u), reach))


@pytest.mark.parametrize("rest", [0.0, 2.0**-60, -3.0])
def test_sums_over_groups_have_twice_the_precision(rest):
    beta = [1e16, 1.0, 2.0**-70, rest, -1e16, -1.0, -(2.0**-70)]
    hidden = (9 * np.finfo(float).eps) ** 2 * 2.1e16  # of eight terms: what twice the precision cannot tell from zero
    assert abs(rest) <= found(beta)[EQUALITY] <= abs(rest) * (1 + np.finfo(float).eps) + hidden
    assert found(beta, totals=(rest,))[EQUALITY] <= 4 * np.finfo(float).eps * abs(rest) + hidden


def test_each_group_has_its_own_sum_and_bias():
    out = found([3.0, -2.0, 0.5, 7.0], u=[0.0, 2.0, 5.0, 9.0], group=[0, 0, 1, -1], totals=(1.0, 0.25))
    eps = np.finfo(float).eps
    assert out[BIAS] == (0.0, -4.0)
    assert out[EQUALITY] == pytest.approx(0.25, abs=4 * eps)
    # The only variable of the second group takes 0.25, at a gradient of −4, its b; the first group's sum is right.
    assert out[TO_DUAL] == pytest.approx(4 * 0.25, abs=64 * eps)
    assert out[TO_GAP] <= 64 * eps
    assert out[VIOLATION] == pytest.approx(8.0, rel=1e-12)  # |1 − 9| in no group beats 1 − (−1) in the first


def test_what_is_missing_in_a_sum_goes_to_the_variable_that_costs_least():
    """D(β − te_j) = D(β) − t h_j − ½t²K_jj, here with t = 0.5, h = 1 − u and K_jj = 4."""
    out = found([1.0, -0.75, 0.25], u=[3.0, 0.5, 7.0], reach=2.0, wide=1.0)
    b = 1 - (0.5 + 7.0) / 2  # of the two that are free
    assert out[BIAS] == (b,)
    costs = {j: 0.5 * abs(1 - u - b) + 0.5 * 0.25 * 4 for j, u in ((0, 3.0), (2, 7.0))}  # −0.75 has no room below
    assert out[TO_GAP] == pytest.approx(costs[0], rel=1e-5)
    assert out[TO_DUAL] == pytest.approx(0.5 * abs(1 - 3.0) + 0.5 * 0.25 * 4, rel=1e-5)


def test_several_variables_take_what_no_single_one_has_room_for():
    """Each of three can rise by 1.75, and 2.25 is missing: at most at the largest |h|, and with the largest K_jj."""
    out = found([-0.75, -0.75, -0.75], u=[0.0, 1.0, 5.0], reach=2.0, wide=1.0)
    b = 1 - 6.0 / 3
    assert out[TO_GAP] == pytest.approx(2.25 * abs(1 - 5.0 - b) + 0.5 * (2.25 * 2) ** 2, rel=1e-5)
    assert out[TO_DUAL] == pytest.approx(2.25 * abs(1 - 5.0) + 0.5 * (2.25 * 2) ** 2, rel=1e-5)


def test_a_point_outside_of_its_box_proves_nothing():
    out = found([1.5, -1.5], wide=1.0)
    assert out[TO_GAP] == out[TO_DUAL] == math.inf


@pytest.mark.parametrize(("beta", "total"), [([1.0] * 21, 21.0), ([0.1, 0.1, 0.1], 0.3)])
def test_a_total_that_takes_all_variables_to_their_bounds(beta, total):
    """As with the largest ν: nothing can move, and nothing has to. The second one's bounds add up to 0.3 + 6e-17."""
    out = found(beta, u=np.linspace(0, 3, len(beta)), totals=(total,), wide=beta[0], reach=1.0)
    assert out[TO_GAP] <= 1e-15


def test_what_is_not_a_number_may_be_anything():
    assert found([1.0, -1.0], u=[0.0, math.nan])[VIOLATION] == math.inf
    assert found([1.0, math.nan])[EQUALITY] == math.inf


@pytest.mark.parametrize("free", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
def test_no_gradient_is_larger_than_the_violation(free):
    """h = p − u − dβ of one variable without a group, in fractions: whichever term is large, its rounding counts."""
    rng = np.random.default_rng(0)
    none, row = np.zeros(1), np.zeros(1, dtype=np.int64)
    for _ in range(200):
        p, u, beta = rng.normal(size=3) * free
        d = 0.5 + rng.random()
        array = (np.array([x]) for x in (p, -1e20, 1e20, d))
        out = _core.dual_findings(
            *array, row, np.full(1, -1, dtype=np.int32), np.zeros(0), np.array([beta]), none, np.array([u]), none, none
        )
        true = abs(Fraction(p) - Fraction(u) - Fraction(d) * Fraction(beta))
        assert true <= Fraction(out[VIOLATION]) <= true + Fraction(1e-14)


@pytest.mark.parametrize(("wrong", "named"), [({"row": [0, 2]}, "row"), ({"group": [0, 1]}, "group")])
def test_indices_out_of_range_are_refused(wrong, named):
    with pytest.raises(ValueError, match=named):
        found([1.0, -1.0], **wrong)
