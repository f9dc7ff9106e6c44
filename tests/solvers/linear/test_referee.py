"""The referee of linear solvers: the best point, progress reports, and ratios to the goal."""

from dataclasses import replace

import numpy as np
import pytest

from mercer.certificates.linear import certify_linear
from mercer.places.choose import rows_for
from mercer.problems.linear_problem import epsilon_insensitive, hinge
from mercer.solvers.linear import referee as module
from mercer.solvers.linear.referee import Point, Referee
from mercer.solvers.solution import Stop

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
Y = np.where(X[:, 0] + 0.3 > 0, 1.0, -1.0)
PROBLEM = hinge(Y, np.ones(30), np.inf, squared=False)
POINT = Point(np.zeros(3), 0.0, np.zeros(30), 7)


def test_the_least_gap_is_kept_until_a_point_meets_the_goal(monkeypatch):
    whole = certify_linear(PROBLEM, rows_for(X, 1), POINT.w, POINT.b, POINT.beta)
    found = [
        replace(whole, primal=0.0, dual=0.0, violation=violation, gap=gap, kkt=dict.fromkeys(whole.kkt, 0.0))
        for violation, gap in [(1.0, 3.0), (1.0, 2.0), (1.0, 4.0), (1e-3, 3.5), (1.0, 1.0), (1e-4, 3.6)]
    ]
    answers = iter(found)
    monkeypatch.setattr(module, "certify_linear", lambda *_: next(answers))
    referee = Referee(PROBLEM, rows_for(X, 1), Stop(tol=1e-2, max_iter=10))
    kept = []
    for _ in found:
        referee.judge(POINT)
        kept.append(referee.best[1].gap)
    assert kept == [3.0, 2.0, 2.0, 3.5, 3.5, 3.6]


def test_judging_reports_and_says_what_is_missed():
    lines = []
    stop = Stop(tol=0.5, max_iter=10, report=lambda words, _: lines.append(words()))
    referee = Referee(PROBLEM, rows_for(X, 1), stop)
    assert referee.judge(POINT) == referee.stop.goal_ratio(referee.best[1]) > 1
    assert lines[0].startswith("       7 steps  violation ")


@pytest.mark.parametrize(
    "problem", [PROBLEM, epsilon_insensitive(X[:, 0].copy(), np.ones(30), 0.1, np.inf, squared=False)]
)
def test_a_beta_judged_alone_is_feasible_and_w_its_combination(problem):
    beta = np.clip(rng.normal(size=30), problem.lower, problem.upper)
    referee = Referee(problem, rows_for(X, 1), Stop(tol=1e-3, max_iter=10))
    referee.judge_beta(replace(POINT, beta=beta))
    kept, certificate = referee.best
    assert abs(kept.beta.sum()) < 1e-12
    assert (kept.beta >= problem.lower).all()
    assert (kept.beta <= problem.upper).all()
    np.testing.assert_allclose(kept.w, X.T @ kept.beta, atol=1e-12)
    assert certificate.kkt["dual feasibility: equality"] < 1e-12
    assert referee.judge_both(replace(POINT, beta=beta)) <= referee.stop.goal_ratio(certificate)
