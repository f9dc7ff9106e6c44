"""The mean and standard deviation of targets: numpy's where no target is wrong, unmoved by those that are."""

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.tables.target_scale import is_concentrated, is_far_off, target_moments

ONE = np.ones(400)


@pytest.mark.parametrize("draw", ["normal", "uniform", "exponential", "logistic"])
def test_without_outliers_they_are_numpys(draw):
    y = getattr(np.random.default_rng(0), draw)(size=400)
    assert not is_far_off(y, ONE).any()
    assert target_moments(y, ONE) == pytest.approx((y.mean(), y.std()), rel=1e-12)


@pytest.mark.parametrize("size", [30.0, 1e3, 1e9])
def test_how_far_an_outlier_lies_makes_no_difference(size):
    y = np.random.default_rng(0).normal(50, 10, 400)
    wrong = np.arange(0, 400, 40)
    moved = y.copy()
    moved[wrong] += size * 10 * np.where(wrong % 80, 1, -1)
    assert np.flatnonzero(is_far_off(moved, ONE)).tolist() == wrong.tolist()
    rest = np.delete(y, wrong)
    assert target_moments(moved, ONE) == pytest.approx((rest.mean(), rest.std()), rel=1e-12)


def test_a_tail_of_many_rows_is_how_the_target_is_distributed():
    rng = np.random.default_rng(0)
    claims = np.where(rng.random(400) < 0.9, 0.0, rng.lognormal(7, 1, 400))
    assert is_concentrated(claims)
    two = np.where(np.arange(400) < 360, rng.normal(size=400), rng.normal(100, 1, 400))
    for y in (claims, two, np.zeros(400)):
        assert not is_far_off(y, ONE).any()
    assert target_moments(two, ONE)[1] == pytest.approx(two.std())
    sentinel = np.where(np.arange(400) < 360, rng.normal(size=400), -999.0)  # one number, which stands for "missing"
    assert is_far_off(sentinel, ONE).sum() == 40


def test_one_row_in_ten():
    y = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1000.0])
    assert is_far_off(y, np.ones(10)).tolist() == [False] * 9 + [True]


def test_a_weight_counts_as_so_many_rows():
    rng = np.random.default_rng(0)
    y, times = rng.normal(size=60), rng.integers(1, 5, 60)
    y[[3, 30]] = 500.0, -700.0
    repeated = np.repeat(y, times)
    assert target_moments(y, times.astype(float)) == target_moments(repeated, np.ones(len(repeated)))
    np.testing.assert_array_equal(
        np.repeat(is_far_off(y, times.astype(float)), times), is_far_off(repeated, ONE[0:1].repeat(len(repeated)))
    )


def test_a_table_with_outliers_in_y_is_learnt_as_without():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 300)
    y = 10 * x + rng.normal(size=300)
    bad = np.where(np.arange(300) % 100 == 7, 100 * y, y)
    table, new = pd.DataFrame({"x": x}), pd.DataFrame({"x": np.linspace(0.5, 9.5, 200)})
    for targets in (y, bad):
        model = mercer.tabular(mercer.SVR(C=100)).fit(table, targets)
        assert np.median(np.abs(model.predict(new) - 10 * new["x"])) < 1.5
    found = mercer.tune(mercer.SVR(), x[:, None], bad, grid="quick", refit=False)
    assert found.cv_results_["params"][0]["epsilon"] == pytest.approx(0.1 * np.delete(y, np.arange(7, 300, 100)).std())
