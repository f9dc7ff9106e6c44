"""Stopping rules: the violation and gap of a certificate, and the limits of steps and time."""

import math
import time

import pytest

from mercer import Certificate
from mercer.solvers.solution import Stop


def found(violation, gap, dual=-2.0):
    return Certificate(primal=dual, dual=dual, gap=gap, violation=violation, kkt={}, gap_measures="optimality")


@pytest.mark.parametrize(
    ("violation", "gap", "goal_ratio"),
    [(5e-4, 1.0, 0.5), (2e-3, 0.0, 2.0), (math.nan, 0.0, math.inf), (0.0, math.inf, 0.0)],
)
def test_a_violation_is_enough_where_no_gap_is_asked_for(violation, gap, goal_ratio):
    stop = Stop(tol=1e-3, max_iter=10)
    assert stop.goal_ratio(found(violation, gap)) == pytest.approx(goal_ratio, nan_ok=True)
    assert stop.met(found(violation, gap)) == (goal_ratio <= 1)


@pytest.mark.parametrize(
    ("violation", "gap", "goal_ratio"),
    [(5e-4, 0.02, 0.5), (5e-4, 0.06, 3.0), (4e-3, 0.06, 4.0), (0.0, math.nan, math.inf), (0.0, math.inf, math.inf)],
)
def test_a_gap_that_is_asked_for_must_be_a_number_and_small(violation, gap, goal_ratio):
    stop = Stop(tol=1e-3, max_iter=10, gap_tol=1e-2)
    assert stop.goal_ratio(found(violation, gap)) == pytest.approx(goal_ratio)
    assert stop.met(found(violation, gap)) == (goal_ratio <= 1)


def test_limits():
    stop = Stop(tol=1e-3, max_iter=10, deadline=time.monotonic() + 60)
    assert stop.limit(9) is None
    assert stop.limit(10) == "max_iter"
    assert stop.after(4).limit(6) == "max_iter"
    assert 50 < stop.seconds <= 60
    late = Stop(tol=1e-3, max_iter=10, deadline=time.monotonic() - 1)
    assert late.limit(0) == "max_time"
    assert late.seconds == 0
