"""What every solver must do (`mercer.solvers.solution.Solve`), whatever it solves and wherever the data live.

A test file gives a fixture `case`, and inherits the tests:

    @pytest.fixture(params=CASES)
    def case(request):
        return CASES[request.param]

    class TestMySolvers(SolverContract):
        pass
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from mercer.solvers.solution import Solve, Stop

STOP = Stop(tol=1e-6, max_iter=10**6)


@dataclass(frozen=True, eq=False)
class SolverCase:
    """One solver on one problem, and the optimum that somebody else has found."""

    solve: Solve
    problem: Any
    place: Any
    value: float
    point: Callable[[Any], Any] = lambda outcome: outcome.beta  # of an outcome: the arrays that are its answer
    start: Callable[[Any], Any] = lambda outcome: outcome.beta  # of an outcome: what the next solve can begin from
    stop: Stop = STOP
    accuracy: float = 1e-6  # of the certificate's values at `stop`, relative to the optimum
    gap_tol: float = 1e-5  # one that is not met where tol=0.5 is
    begins_with_a_point: bool = True  # before its first iteration; if not, there is nothing to show when time is up
    warm_share: float = 1.0  # of the steps of a cold start, what a start from the solution may take

    @cached_property
    def solved(self) -> tuple[Any, Any]:
        """The outcome of a cold start and its certificate, for all tests that only look at them."""
        return self.solve(self.problem, self.place, self.stop)


class Abandoned(Exception):
    pass


def same(one, other):
    for a, b in zip(np.atleast_1d(one), np.atleast_1d(other), strict=True):
        np.testing.assert_array_equal(a, b)


def check_proof(case, certificate):
    """The certificate is true: its point is feasible, and its values enclose the optimum."""
    for name, residual in certificate.kkt.items():
        if name.startswith("dual feasibility"):
            assert residual <= 1e-9, name
    slack = case.accuracy * max(1.0, abs(case.value))
    assert certificate.dual <= case.value + slack
    assert certificate.primal >= case.value - slack
    assert certificate.gap >= 0


class SolverContract:
    def test_from_a_cold_start(self, case):
        outcome, certificate = case.solved
        assert outcome.stop_reason == "converged"
        assert case.stop.met(certificate)
        assert 0 < outcome.steps <= case.stop.max_iter
        assert certificate.dual == pytest.approx(case.value, rel=case.accuracy, abs=case.accuracy)
        check_proof(case, certificate)
        again, proof = case.solve(case.problem, case.place, case.stop)
        same(case.point(again), case.point(outcome))
        assert proof == certificate

    def test_from_its_solution(self, case):
        cold, _ = case.solved
        start = case.start(cold)
        before = np.copy(case.point(cold))
        warm, certificate = case.solve(case.problem, case.place, case.stop, start)
        assert warm.stop_reason == "converged"
        assert case.stop.met(certificate)
        assert warm.steps <= case.warm_share * cold.steps
        same(case.point(cold), before)  # a start is only read
        check_proof(case, certificate)

    def test_a_gap_can_be_asked_for(self, case):
        stop = Stop(tol=0.5, max_iter=case.stop.max_iter, gap_tol=case.gap_tol)
        outcome, certificate = case.solve(case.problem, case.place, stop)
        assert outcome.stop_reason == "converged"
        assert certificate.gap <= case.gap_tol * abs(certificate.dual)
        check_proof(case, certificate)

    @pytest.mark.parametrize("steps", [0, 1])
    def test_steps_end_it(self, case, steps):
        outcome, certificate = case.solve(case.problem, case.place, Stop(tol=1e-300, max_iter=steps))
        assert outcome.stop_reason == "max_iter"
        assert outcome.steps <= steps
        check_proof(case, certificate)

    def test_time_ends_it(self, case):
        passed = Stop(tol=1e-300, max_iter=10**9, deadline=time.monotonic())
        if not case.begins_with_a_point:
            with pytest.raises(TimeoutError, match="max_time passed before"):
                case.solve(case.problem, case.place, passed)
            return
        outcome, certificate = case.solve(case.problem, case.place, passed)
        assert outcome.stop_reason == "max_time"
        check_proof(case, certificate)

    def test_who_is_told_can_abandon_it_and_changes_nothing(self, case):
        outcome, certificate = case.solved
        lines = []

        def abandon(words, *_):
            lines.append(words())
            raise Abandoned

        with pytest.raises(Abandoned):
            case.solve(case.problem, case.place, replace(case.stop, report=abandon))
        assert len(lines) == 1
        listened = replace(case.stop, report=lambda words, _: lines.append(words()))
        told, proof = case.solve(case.problem, case.place, listened)
        assert len(lines) > 1
        assert all(isinstance(line, str) and line for line in lines)
        same(case.point(told), case.point(outcome))
        assert proof == certificate
