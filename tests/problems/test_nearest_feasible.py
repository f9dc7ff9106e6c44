"""A point near a given one that satisfies box and sums: of every machine's problem, and of drawn ones."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.problems import machine_problem, machines, problem_of


def assert_feasible(problem, beta):
    assert (beta >= problem.lower).all()
    assert (beta <= problem.upper).all()
    for g, total in enumerate(problem.totals):
        members = beta[problem.group == g]
        assert math.fsum(members) == pytest.approx(total, abs=1e-14 * (np.abs(members).sum() + abs(total)))


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("maker", machines())
def test_any_point_becomes_feasible(maker, size):
    problem, _ = machine_problem(maker, 0)
    given_point = size * np.random.default_rng(0).normal(size=problem.n_variables)
    beta = problem.nearest_feasible(given_point)
    assert_feasible(problem, beta)
    np.testing.assert_array_equal(problem.nearest_feasible(beta), beta)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    n_groups=st.integers(0, 3),
    unbounded=st.floats(0, 1),
)
def test_drawn_problems(seed, n, n_groups, unbounded):
    rng = np.random.default_rng(seed)
    lower, upper = -rng.exponential(size=n), rng.exponential(size=n)
    lower[rng.random(n) < unbounded] = -np.inf
    upper[rng.random(n) < 0.3] = 0.0
    group = rng.integers(0, n_groups, n) if n_groups else np.full(n, -1)
    inside = np.clip(rng.normal(size=n), lower, upper)
    totals = [inside[group == g].sum() for g in range(n_groups)]
    problem = problem_of(np.zeros(n), lower, upper, totals, group=group)
    for point in (inside, rng.normal(size=n), 1e3 * rng.normal(size=n), np.full(n, np.nan)):
        assert_feasible(problem, problem.nearest_feasible(point))
    np.testing.assert_allclose(problem.nearest_feasible(inside), inside, atol=1e-12)


def test_zeros_and_bounds_stay_where_free_variables_can_make_up_the_sum():
    problem = problem_of(np.ones(5), np.zeros(5), np.ones(5), totals=(2.0,))
    beta = problem.nearest_feasible(np.array([0.0, 1.0, 0.2, 0.4, 0.0]))
    np.testing.assert_allclose(beta, [0.0, 1.0, 0.4, 0.6, 0.0])
    crowded = problem.nearest_feasible(np.array([0.0, 0.0, 0.5, 0.0, 0.0]))
    np.testing.assert_allclose(crowded, [0.25, 0.25, 1.0, 0.25, 0.25])


def test_what_cannot_be_feasible_is_refused():
    problem = problem_of(np.ones(3), np.zeros(3), np.ones(3), totals=(4.0,))
    with pytest.raises(ValueError, match=r"infeasible.*total 4"):
        problem.nearest_feasible(np.zeros(3))


def test_sums_of_every_group_are_kept_or_not():
    """Groups with the totals 0 and 2, and a variable that is in none."""
    problem = problem_of(np.zeros(5), -9.0, 9.0, (0.0, 2.0), group=[0, 0, 1, 1, -1])
    assert problem.keeps_sums(np.array([1.0, -1.0, 3.0, -1.0, 5.0]))
    assert not problem.keeps_sums(np.array([1.0, -2.0, 3.0, -1.0, 5.0]))
    assert not problem.keeps_sums(np.array([1.0, -1.0, 3.0, -3.0, 5.0]))
