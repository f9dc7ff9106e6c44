"""Every solver of linear machines keeps the contract of `mercer.solution.Solve`: cold, warm, limits, abandonment."""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mercer.gram.linear_rows import LinearRows
from mercer.problems.linear_problem import epsilon_insensitive, hinge
from mercer.problems.multiclass import JointProblem
from mercer.solution import Solve, Stop
from mercer.solvers.linear.choose import solve_linear
from mercer.solvers.linear.joint import solve_joint_linear

rng = np.random.default_rng(0)
N = 80
X = rng.normal(size=(N, 5))
TARGET = X @ rng.normal(size=5) + 0.5 * rng.normal(size=N) + 0.2
Y = np.where(TARGET > 0, 1.0, -1.0)
C = rng.uniform(0.5, 2.0, N)
STOP = Stop(tol=1e-6, max_iter=20_000)


@dataclass(frozen=True)
class Case:
    solve: Solve
    problem: Any
    place: LinearRows


def cases():
    problems = {
        f"{kind}{' squared' if squared else ''}, bias {bias}": problem
        for squared in (False, True)
        for bias in (np.inf, 1.0, 0.0)
        for kind, problem in (
            ("hinge", hinge(Y, C, bias, squared)),
            ("tube", epsilon_insensitive(TARGET, C, 0.1, bias, squared)),
        )
    }
    found = {}
    wide = sparse.csr_array(np.hstack([X, np.eye(N)]))
    for name, problem in problems.items():
        for solver in ("newton", "dual"):
            solve = partial(solve_linear, solver=solver, seed=1)
            found[f"{solver}, {name}"] = Case(solve, problem, LinearRows(X, 1))
        found[f"auto on more columns than rows, {name}"] = Case(solve_linear, problem, LinearRows(wide, 1))
    labels = rng.integers(0, 3, N)
    for shift in (0.0, 1.0):
        problem = JointProblem(labels, C, 3, shared=True, shift=shift)
        found[f"joint, shift {shift}"] = Case(partial(solve_joint_linear, seed=1), problem, LinearRows(X, 1))
    return found


CASES = cases()


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_cold(case):
    outcome, certificate = case.solve(case.problem, case.place, STOP)
    assert outcome.stop_reason == "converged"
    assert STOP.met(certificate)
    assert 0 < outcome.steps <= STOP.max_iter
    assert certificate.dual <= certificate.primal * (1 + 1e-12)
    again, _ = case.solve(case.problem, case.place, STOP)
    np.testing.assert_array_equal(again.w, outcome.w)
    assert outcome.solver


def test_warm(case):
    cold, proof = case.solve(case.problem, case.place, STOP)
    before = cold.w.copy(), np.copy(cold.b), cold.beta.copy()
    warm, certificate = case.solve(case.problem, case.place, STOP, cold)
    assert warm.stop_reason == "converged"
    assert warm.steps <= cold.steps
    assert certificate.primal == pytest.approx(proof.primal, rel=1e-5)
    for now, then in zip((cold.w, cold.b, cold.beta), before, strict=True):
        np.testing.assert_array_equal(now, then)  # a start is only read


def test_warm_from_another_box(case):
    half = Stop(tol=1e-2, max_iter=20_000)
    start, _ = case.solve(case.problem, case.place, half)
    smaller = replace(case.problem, C=case.problem.C / 2) if isinstance(case.problem, JointProblem) else None
    if smaller is None:
        whole = case.problem
        smaller = replace(whole, lower=whole.lower / 2, upper=whole.upper / 2, d=2 * whole.d)
    warm, certificate = case.solve(smaller, case.place, STOP, start)
    _, proof = case.solve(smaller, case.place, STOP)
    assert warm.stop_reason == "converged"
    assert certificate.kkt["dual feasibility: box"] <= 1e-12
    assert certificate.primal == pytest.approx(proof.primal, rel=1e-5)


@pytest.mark.parametrize("steps", [1, 2])
def test_steps_end_it(case, steps):
    outcome, certificate = case.solve(case.problem, case.place, Stop(tol=1e-300, max_iter=steps))
    assert outcome.stop_reason == "max_iter"
    assert outcome.steps == steps
    assert np.isfinite(certificate.gap)


def test_time_ends_it(case):
    passed = Stop(tol=1e-300, max_iter=10**9, deadline=time.monotonic())
    outcome, certificate = case.solve(case.problem, case.place, passed)
    assert outcome.stop_reason == "max_time"
    assert np.isfinite(certificate.gap)


def test_a_gap_can_be_asked_for(case):
    stop = Stop(tol=np.inf, max_iter=20_000, gap_tol=1e-4)
    outcome, certificate = case.solve(case.problem, case.place, stop)
    assert outcome.stop_reason == "converged"
    assert certificate.gap <= 1e-4 * abs(certificate.dual)


class Abandoned(Exception):
    pass


def test_whoever_is_told_may_abandon_it(case):
    lines = []

    def report(words):
        lines.append(words())
        raise Abandoned

    with pytest.raises(Abandoned):
        case.solve(case.problem, case.place, STOP, None, report)
    assert len(lines) == 1
    assert "violation" in lines[0]
    told, _ = case.solve(case.problem, case.place, STOP, None, lambda words: lines.append(words()))
    untold, _ = case.solve(case.problem, case.place, STOP)
    np.testing.assert_array_equal(told.w, untold.w)
