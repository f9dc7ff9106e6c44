"""Iterative refinement: when a certificate returns to the solver, and with which settings."""

import numpy as np
import pytest

from mercer import SVC, SVR
from mercer.certificates.certificate import Certificate
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.problems.classification import soft_margin
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.refine import Refinement
from mercer.solvers.solution import Solution, Stop

STOP = Stop(tol=1e-3, max_iter=100)


def found(reason="converged", whole=True, steps=10):
    return Solution(np.zeros(1), steps, reason, whole)


def proof(violation, gap=0.0):
    return Certificate(primal=1.0 + gap, dual=1.0, gap=gap, violation=violation, kkt={}, gap_measures="optimality")


def refinement(stop=STOP, precisions=("float32", "float64"), floor=0.0):
    return Refinement(stop, precisions, True, lambda beta: floor)


def test_a_certificate_that_agrees_ends_it_whatever_the_solver_says():
    for reason in ("converged", "stalled", "max_iter"):
        ask = refinement()
        assert ask.judge(found(reason), proof(1e-3)) == "converged"
        assert ask.steps == 10


@pytest.mark.parametrize("limit", ["max_iter", "max_time"])
def test_a_limit_ends_it(limit):
    assert refinement().judge(found(limit), proof(0.5)) == limit


def test_progress_is_worth_another_return_with_what_is_left_of_the_steps():
    ask = refinement()
    assert ask.judge(found(), proof(0.5)) is None
    assert ask.judge(found(), proof(0.1)) is None
    assert (ask.precision, ask.shrinking, ask.next_stop.max_iter, ask.next_stop.tol) == ("float32", True, 80, 1e-3)


def test_without_progress_dropped_variables_stay_then_values_become_finer_then_it_ends():
    ask = refinement()
    ask.judge(found(), proof(0.5))
    assert ask.judge(found(whole=False), proof(0.5)) is None
    assert (ask.precision, ask.shrinking) == ("float32", False)
    assert ask.judge(found(), proof(0.5)) is None
    assert ask.precision == "float64"
    assert ask.judge(found(), proof(0.5)) == "stalled"
    assert refinement(precisions=("float64",), floor=1.0).judge(found(), proof(np.nan)) == "stalled"


def test_what_rounding_can_feign_is_its_floor():
    ask = refinement(precisions=("float64",), floor=0.5)
    ask.judge(found(), proof(0.5))
    assert ask.judge(found("stalled"), proof(0.4)) == "rounding floor"


def test_a_gap_too_large_asks_for_a_smaller_violation():
    ask = refinement(Stop(tol=1e-3, max_iter=100, gap_tol=1e-2))
    assert ask.judge(found(), proof(1e-4, gap=0.1)) is None
    assert ask.next_stop.tol == pytest.approx(1e-3 * 0.5 / 10)
    assert ask.next_stop.gap_tol == 1e-2
    assert ask.judge(found(), proof(1e-5, gap=0.005)) == "converged"


def test_a_gap_alone_can_be_asked_for():
    ask = refinement(Stop(tol=np.inf, max_iter=100, gap_tol=1e-2))
    assert ask.judge(found(steps=0), proof(0.8, gap=0.1)) is None
    assert ask.next_stop.tol == pytest.approx(0.8 * 0.5 / 10)


def test_a_gap_that_no_precision_reaches_ends_it():
    ask = refinement(Stop(tol=1e-3, max_iter=100, gap_tol=1e-12), floor=1e-9)
    assert ask.judge(found("stalled"), proof(1e-7, gap=1e-8)) is None
    assert ask.precision == "float64"
    assert ask.judge(found("stalled"), proof(1e-8, gap=1e-9)) == "rounding floor"
    ask = refinement(Stop(tol=1e-3, max_iter=100, gap_tol=1e-12), precisions=("float64",), floor=1e-9)
    for _ in range(20):
        end = ask.judge(found(steps=0), proof(1e-12, gap=1e-11))
        if end is not None:
            break
    assert end == "rounding floor"


def test_a_fit_asked_for_its_gap_alone_ends():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.sign(X[:, 0] + rng.normal(size=80))
    fit = Fit.of(SVC(), X, y, None)
    gram = fit.gram()
    problem = soft_margin(np.where(fit.merged.y == 1, 1.0, -1.0), fit.merged.weight)
    for gap_tol, reason in ((1e-6, "converged"), (1e-17, "rounding floor")):
        solution, certificate = solve_certified(problem, gram, Stop(tol=np.inf, max_iter=10**6, gap_tol=gap_tol))
        assert solution.stop_reason == reason
        assert certificate.relative_gap < 1e-6


def test_numbers_beyond_float32_are_solved_in_float64():
    X = np.random.default_rng(0).normal(size=(1100, 2))
    y = np.sin(X[:, 0])
    model, plain = (SVR(epsilon=0.01 * unit, C=unit, tol=1e-4 * unit).fit(X, unit * y) for unit in (1e45, 1.0))
    assert model.converged_
    np.testing.assert_allclose(model.predict(X[:20]) / 1e45, plain.predict(X[:20]), atol=2e-3)
