"""Parts that add up to their totals to the last bit, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import SVC, KernelMachineRegressor, RLSRegressor
from mercer.samples.exact_parts import exact_parts, sum_error_bounds

EPS = float(np.finfo(float).eps)


@given(
    total=st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300).filter(
        lambda x: x == 0 or abs(x) > 1e-280
    ),
    weights=st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=20),
)
def test_shares_add_up(total, weights):
    share = np.array(weights) / sum(weights)
    group = np.full(len(share), 1)
    parts = exact_parts(np.array([0.0, total]), share * total, group)
    assert sum(map(Fraction, parts)) == Fraction(total)
    np.testing.assert_allclose(parts, share * total, rtol=0, atol=(len(share) + 1) * EPS * abs(total))


@given(
    total=st.floats(-1e3, 1e3),
    apart=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6),
)
def test_parts_larger_than_their_total_come_as_close_as_they_can(total, apart):
    middle = np.mean(apart)
    parts = exact_parts(np.array([total]), np.array(apart) - middle + total / len(apart), np.zeros(len(apart), int))
    size = max(np.abs(parts).max(), abs(total))
    assert abs(sum(map(Fraction, parts)) - Fraction(total)) <= Fraction(8 * len(apart) * EPS * size)


def test_groups_in_any_order_and_single_parts():
    totals = np.array([1 / 3, 0.0, -7.0, 1e-3])
    group = np.array([3, 0, 2, 0, 0, 2])
    parts = exact_parts(totals, np.array([0.9e-3, 0.1, -3.3, 0.2, 1 / 3 - 0.3, -3.7]), group)
    for g in (0, 2, 3):
        assert sum(map(Fraction, parts[group == g])) == Fraction(totals[g])
    assert parts[0] == totals[3]


@pytest.mark.parametrize(
    "model", [SVC(slack="l2", kernel="linear", C=0.1), RLSRegressor(kernel="linear"), KernelMachineRegressor()]
)
def test_the_coefficients_of_copies_predict_what_their_sample_does(model):
    rng = np.random.default_rng(0)
    X = 1e3 + 10 * rng.normal(size=(12, 2))
    y = (np.arange(12) % 2).astype(float) if isinstance(model, SVC) else rng.normal(size=12)
    again = np.r_[np.arange(12), np.repeat(np.arange(12), 6)]
    model.fit(X[again], y[again], sample_weight=rng.uniform(0.1, 3, len(again)))
    beta = np.zeros(len(again))
    beta[getattr(model, "support_", np.arange(len(again)))] = np.ravel(model.dual_coef_)
    joint = [sum((Fraction(beta[i]) for i in np.flatnonzero(again == k)), Fraction(0)) for k in range(12)]
    assert all(Fraction(float(c)) == c for c in joint)  # 53 bits are enough for what the copies are together


def test_nothing_has_no_parts():
    assert len(exact_parts(np.zeros(3), np.zeros(0), np.zeros(0, dtype=np.intp))) == 0


@pytest.mark.parametrize("seed", range(3))
def test_what_is_lacking_is_bounded_and_zero_where_nothing_lacks(seed):
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, 40, 300))
    weight = 10.0 ** rng.uniform(-4, 4, 300)
    totals = 0.1 * np.bincount(group, weight, 40) * rng.choice([-1.0, 1.0], 40)
    parts = totals[group] * weight / np.bincount(group, weight, 40)[group]
    parts[group % 2 == 0] = np.round(parts[group % 2 == 0], 3) // 2.0**-10 * 2.0**-10
    totals[::2] = np.bincount(group, parts, 40)[::2]
    found = sum_error_bounds(totals, parts, group)
    true = [abs(sum(map(Fraction, parts[group == g].tolist()), -Fraction(totals[g]))) for g in range(40)]
    assert all(Fraction(bound) >= apart for bound, apart in zip(found.tolist(), true, strict=True))
    assert (found[::2] == 0).all()
    assert (found[1::2] <= 1e-14 * np.abs(totals[1::2])).all()
    assert max(true) > 0


@pytest.mark.parametrize("exponent", [-1073, -1060, -1000, -970, -900])
def test_what_tiny_parts_lack(exponent):
    """Units below the last bit of the total underflow; zeros lack nothing."""
    unit = 2.0**exponent
    totals, parts = np.array([5.0, 5.0, 0.0]) * unit, np.array([2.0, 3.0, 2.0, 2.0, 0.0, 0.0]) * unit
    assert sum_error_bounds(totals, parts, np.repeat(np.arange(3), 2)) == pytest.approx([0.0, unit, 0.0], rel=1e-8)
