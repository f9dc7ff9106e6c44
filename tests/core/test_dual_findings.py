"""What the core finds out about a point of a dual problem: sums in twice the precision, infinity for what is undefined.

The numbers themselves are compared with naive loops in tests/certificates/test_dual.py.
"""

import math

import numpy as np
import pytest

from mercer import _core

VIOLATION, EQUALITY, UNBALANCED, BIAS = 3, 7, 8, 14


def found(beta, *, u=None, group=None, totals=(0.0,), row=None):
    """The findings at β inside [−1, 1] times a large number, with p = 1."""
    beta = np.asarray(beta, dtype=np.float64)
    n = len(beta)
    u = np.zeros(n) if u is None else np.asarray(u, dtype=np.float64)
    group = np.zeros(n, dtype=np.int32) if group is None else np.asarray(group, dtype=np.int32)
    row = np.arange(n) if row is None else np.asarray(row)
    wide = np.full(n, 1e20)
    return _core.dual_findings(
        np.ones(n), -wide, wide, np.zeros(n), row, group, np.array(totals), beta, np.zeros(len(u)), u, np.zeros(len(u))
    )


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
    assert out[UNBALANCED] == pytest.approx(4 * 0.25, abs=16 * eps)
    assert out[VIOLATION] == pytest.approx(8.0, rel=1e-12)  # |1 − 9| in no group beats 1 − (−1) in the first


def test_what_is_not_a_number_may_be_anything():
    assert found([1.0, -1.0], u=[0.0, math.nan])[VIOLATION] == math.inf
    assert found([1.0, math.nan])[EQUALITY] == math.inf


@pytest.mark.parametrize(("wrong", "named"), [({"row": [0, 2]}, "row"), ({"group": [0, 1]}, "group")])
def test_indices_out_of_range_are_refused(wrong, named):
    with pytest.raises(ValueError, match=named):
        found([1.0, -1.0], **wrong)
