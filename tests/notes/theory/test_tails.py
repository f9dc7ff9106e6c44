"""Tail probabilities and numbers of samples: against the formulas, their inverses, and simulated means."""

import math

import numpy as np
import pytest

from mercer.notes.theory import finite_rules_bound, hoeffding, mcdiarmid, tail_probability, tail_samples


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("n_rules", [1, 1000])
def test_the_formulas(sides, n_rules):
    c = np.array([0.1, 0.02, 0.3])
    found = tail_probability(0.2, c, sides=sides, n_rules=n_rules)
    assert found.value == pytest.approx(sides * n_rules * math.exp(-2 * 0.04 / (0.01 + 0.0004 + 0.09)))
    assert found.vacuous == (found.value >= 1)
    n = tail_samples(0.05, delta=0.01, width=2.0, sides=sides, n_rules=n_rules)
    assert n == math.ceil(4 * math.log(sides * n_rules / 0.01) / (2 * 0.0025))


@pytest.mark.parametrize("n_rules", [1, 50])
def test_the_number_of_samples_is_the_least_that_suffices(n_rules):
    n = tail_samples(0.07, delta=0.02, n_rules=n_rules, sides=2)
    for k, holds in ((n, True), (n - 1, False)):
        assert (tail_probability(0.07, np.full(k, 1 / k), n_rules=n_rules, sides=2).value <= 0.02) == holds


def test_it_inverts_the_bounds_at_delta():
    widths = np.array([1.0, 2.0, 0.5])
    by_width = hoeffding(0.0, 3, delta=0.03, width=widths, sides=2).value
    assert tail_probability(by_width, widths / 3, sides=2).value == pytest.approx(0.03)
    assert tail_probability(mcdiarmid(0.0, widths, delta=0.03).value, widths).value == pytest.approx(0.03)
    of_rules = finite_rules_bound(0.0, 40, 500, delta=0.03).value
    assert tail_probability(of_rules, np.full(500, 1 / 500), n_rules=40).value == pytest.approx(0.03)


def test_simulated_means_are_off_no_more_often():
    means = np.random.default_rng(0).binomial(50, 0.5, size=200_000) / 50
    for epsilon in (0.04, 0.1, 0.16):
        assert np.mean(0.5 - means >= epsilon) <= tail_probability(epsilon, np.full(50, 0.02)).value
        assert np.mean(abs(0.5 - means) >= epsilon) <= tail_probability(epsilon, np.full(50, 0.02), sides=2).value


def test_extremes():
    assert tail_probability(1e-3, [0.0, 0.0]).value == 0
    assert tail_probability(1e200, [1e-200]).value == 0
    assert tail_probability(15.0, [1.0]).value == pytest.approx(math.exp(-450), rel=1e-12, abs=0)
    assert tail_probability(25.0, [1.0], n_rules=10**400).value == pytest.approx(
        10.0**200 * (10.0**200 * math.exp(-600)) * math.exp(-650), rel=1e-12, abs=0
    )
    assert tail_probability(1e-9, [1.0], n_rules=10**400).value == math.inf
    for bad, reason in (
        ({"epsilon": 0.0, "differences": [1.0]}, "epsilon"),
        ({"epsilon": 0.1, "differences": [-1.0]}, "number ≥ 0 per sample"),
        ({"epsilon": 0.1, "differences": [1.0], "sides": 3}, "sides"),
        ({"epsilon": 0.1, "differences": [1.0], "n_rules": 0}, "the number of rules"),
    ):
        with pytest.raises(ValueError, match=reason):
            tail_probability(**bad)
    with pytest.raises(ValueError, match="overflows"):
        tail_samples(1e-200)
