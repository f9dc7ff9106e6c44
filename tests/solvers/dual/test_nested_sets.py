"""Nested working sets: the loop on a large set and inside it ends where single blocks and QP solvers end."""

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from mercer import SVC
from mercer.certificates.dual import certify_dual
from mercer.kernels import FromFunction, Gaussian, Precomputed
from mercer.places import gram_for
from mercer.places.host import blocks
from mercer.places.host.field import HostField
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.places.host.tiled_field import TiledField
from mercer.problems.classification import soft_margin
from mercer.solvers.dual import decomposition
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.decomposition import decompose
from mercer.solvers.solution import Stop
from reference.certificate import certificate
from reference.problems import gram_matrix, machine_problem, machines
from reference.qp import by_every_solver

STOP = Stop(tol=1e-8, max_iter=10_000_000)
GAUSSIAN = Gaussian(gamma=0.5)
GRAMS = {
    "fused": lambda X: gram_for(GAUSSIAN, X),
    # The same distances from so many features that rows of K are kept.
    "kept": lambda X: gram_for(GAUSSIAN, np.tile(X, 100) / 10),
    "stored": lambda X: gram_for(Precomputed(), gram_matrix("rbf", X, gamma=0.5)),
    "blocks": lambda X: gram_for(FromFunction(lambda A, B: gram_matrix("rbf", A, B, gamma=0.5)), X),
}


class Seen:
    """Counts of moves of β in whole problems and in nested ones, and the largest block that was solved."""

    def __init__(self, problem):
        self.problem, self.rounds, self.inside, self.largest = problem, 0, 0, 0

    def moved(self, field):
        whole = field.problem is self.problem
        self.rounds, self.inside = self.rounds + whole, self.inside + (not whole)

    def watched(self, monkeypatch):
        """Start counting the moves of fields."""

        def move(method):
            return lambda field, *given: (self.moved(field), method(field, *given))[1]

        for kind in (HostField, TiledField):
            monkeypatch.setattr(kind, "move", move(kind.move))
        core = decomposition._core.smo

        def smo(K, *given):
            self.largest = max(self.largest, len(K))
            return core(K, *given)

        monkeypatch.setattr(decomposition._core, "smo", smo)
        return self


@pytest.fixture
def nest(monkeypatch):
    """Set the sizes of outer sets and of the blocks inside them; outer=0 means single blocks."""

    def ask(outer, block):
        monkeypatch.setattr(KernelMatrix, "outer_rows", outer)
        monkeypatch.setattr(decomposition, "BLOCK", block)
        monkeypatch.setattr(decomposition, "_ONE_BLOCK_VARIABLES", block)
        monkeypatch.setattr(blocks, "_LARGEST_BLOCK", 2 * block)

    return ask


def mixture(n, d=8, clouds=24):
    """Clouds of two classes in turn, 5 % of the labels wrong."""
    rng = np.random.default_rng(0)
    centres, cloud = 1.2 * rng.normal(size=(clouds, d)), rng.integers(clouds, size=n)
    X = centres[cloud] + rng.normal(size=(n, d))
    return X, np.where((cloud % 2 == 0) ^ (rng.random(n) < 0.05), 1.0, -1.0)


def machines_in_grams():
    """Each machine in two of the four, in turns; in the other two with ``-m thorough``."""
    return [
        pytest.param(
            *machine.values, gram, id=f"{machine.id}-{gram}", marks=pytest.mark.thorough if (i + j) % 2 else ()
        )
        for i, machine in enumerate(machines())
        for j, gram in enumerate(GRAMS)
    ]


@pytest.mark.parametrize(("maker", "where"), machines_in_grams())
def test_every_machine_ends_where_qp_solvers_end(maker, where, nest, monkeypatch):
    problem, K, X = machine_problem(maker, seed=0, n=120, with_data=True)
    nest(outer=60, block=16)
    seen, gram = Seen(problem).watched(monkeypatch), GRAMS[where](X)
    solution, own = solve_certified(problem, gram, STOP)
    truth = certificate(problem, K, solution.beta)
    assert solution.stop_reason == "converged"
    assert own.violation <= STOP.tol
    assert truth.violation <= 1e-6
    assert truth.kkt["dual feasibility: box"] == 0
    assert truth.kkt["dual feasibility: equality"] <= 1e-9 * max(1.0, np.abs(solution.beta).sum())
    assert truth.dual == pytest.approx(by_every_solver(problem, K)["piqp"][0], rel=1e-6, abs=1e-8)
    # That sets were nested is part of the test; a few rounds on all rows, more inside.
    assert seen.inside > seen.rounds > 0
    assert seen.largest <= 32


@pytest.mark.parametrize("maker", machines()[:5])
def test_samples_that_are_there_several_times(maker, nest):
    """K is singular on most sets, and equal samples are in different ones."""
    problem, _K, X = machine_problem(maker, seed=0, n=120, with_data=True)
    X = X[np.random.default_rng(3).integers(30, size=120)]
    nest(outer=60, block=16)
    own = solve_certified(problem, gram_for(GAUSSIAN, X), replace(STOP, tol=1e-7))[1]
    assert own.violation <= 1e-7
    found = by_every_solver(problem, gram_matrix("rbf", X, gamma=0.5))
    assert own.dual == pytest.approx(found["piqp"][0], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_quarter_of_the_rounds_for_the_same_kernel_values(dtype, nest, monkeypatch):
    X, y = mixture(12_000)
    problem, found = soft_margin(y, np.full(len(y), 1.0)), {}
    for outer in (0, 1024):
        nest(outer, block=128)
        with monkeypatch.context() as patch:
            seen, gram = Seen(problem).watched(patch), gram_for(Gaussian(gamma=0.05), X)
            solution = decompose(gram.field(problem, dtype=dtype), Stop(tol=1e-3, max_iter=10**7))
        assert solution.stop_reason == "converged"
        found[outer] = seen.rounds, gram.evaluations, certify_dual(problem, gram, solution.beta)[0]
    (rounds, values, flat), (nested_rounds, nested_values, nested) = found.values()
    assert nested_rounds <= rounds / 4
    assert nested_values <= 1.1 * values
    assert abs(nested.dual - flat.dual) <= min(nested.gap, flat.gap)
    assert nested.gap <= 2 * flat.gap


def test_nothing_is_dropped_where_that_is_not_wanted(nest, monkeypatch):
    """It holds in the whole problem and in nested ones."""
    X, y = mixture(600)
    problem = soft_margin(y, np.full(len(y), 1.0))
    nest(outer=128, block=32)
    monkeypatch.setattr(TiledField, "shrink", lambda field: pytest.fail("a variable was dropped"))
    solution = decompose(gram_for(GAUSSIAN, X).field(problem), replace(STOP, tol=1e-3), shrinking=False)
    assert solution.stop_reason == "converged"


@pytest.mark.parametrize("most", [1, 40, 333, 1000])
def test_max_iter_holds_inside(most, nest):
    X, y = mixture(1_500)
    nest(outer=256, block=32)
    solution, own = solve_certified(soft_margin(y, np.full(len(y), 10.0)), gram_for(GAUSSIAN, X), Stop(1e-9, most))
    assert solution.stop_reason == "max_iter"
    assert solution.steps == most
    assert own.gap > 0


def test_max_time_holds_inside_and_leaves_time_for_the_certificate(nest, monkeypatch):
    """At a deadline inside a nested problem, its β is used, and is feasible."""
    X, y = mixture(12_000)
    problem = soft_margin(y, np.full(len(y), 1e6))
    nest(outer=512, block=64)
    asked, left = decomposition._inner_stop, []

    def noted(stop, tol, beta, J):
        inside = asked(stop, tol, beta, J)
        left.append((inside.before_proof(beta[J]).deadline, stop.before_proof(beta).deadline))
        return inside

    monkeypatch.setattr(decomposition, "_inner_stop", noted)
    begun = time.monotonic()
    solution, own = solve_certified(problem, gram_for(GAUSSIAN, X), Stop(1e-12, 10**9, deadline=begun + 0.2))
    assert time.monotonic() - begun < 10.0  # a busy machine may add what it likes, but not what an endless solve would
    assert solution.stop_reason == "max_time"
    assert own.gap > 0
    assert own.kkt["dual feasibility: box"] == 0
    # Inside, the certificate of all variables is kept free, not that of the set alone.
    for inside, whole in left:
        assert inside == pytest.approx(whole, abs=1e-6)


@pytest.mark.skipif(os.name == "nt", reason="no signal reaches a thread there")
@pytest.mark.alone
def test_ctrl_c_is_answered_inside(nest):
    X, y = mixture(30_000)  # for seconds, on any processor
    nest(outer=1024, block=128)
    field = gram_for(GAUSSIAN, X).field(soft_margin(y, np.full(len(y), 1e6)))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        decompose(field, Stop(tol=1e-300, max_iter=10**12))


def test_a_report_hears_of_rounds_over_all_variables(nest):
    X, y = mixture(1_000)
    problem, goal_ratio = soft_margin(y, np.full(len(y), 1.0)), []
    nest(outer=256, block=32)
    gram = gram_for(GAUSSIAN, X)
    stop = Stop(1e-3, 10**7, report=lambda words, factor: goal_ratio.append((words(), factor)))
    decompose(gram.field(problem), stop)
    assert len(goal_ratio) > 2
    assert goal_ratio[-1][1] <= 1 < goal_ratio[0][1]
    assert "support vectors" in goal_ratio[0][0]


def test_the_rule(monkeypatch):
    """Many rows, whose values the core computes cheaply: all else is solved by single blocks."""
    X, y = mixture(1_200)
    monkeypatch.setattr("mercer.places.host.kernel_matrix._NESTED_ROWS", 1_000)
    monkeypatch.setattr("mercer.places.host.kernel_matrix._OUTER_ROWS", 300)
    gram = gram_for(GAUSSIAN, X)
    assert gram.outer_rows == 300
    assert gram.view(np.arange(999)).outer_rows == 0
    assert gram.streamed().outer_rows == 0
    assert gram_for(GAUSSIAN, np.tile(X, 100)).outer_rows == 0
    assert gram_for(FromFunction(lambda A, B: gram_matrix("rbf", A, B)), X).outer_rows == 0
    assert gram_for(Precomputed(), gram_matrix("rbf", X)).outer_rows == 0
    monkeypatch.setattr(decomposition, "_ONE_BLOCK_VARIABLES", 100)
    seen = []
    monkeypatch.setattr(
        TiledField, "inner_field", lambda field, J, old=TiledField.inner_field: (seen.append(J), old(field, J))[1]
    )
    # 10 of the 1,200 samples are there twice, so that a fit merges them.
    again = np.r_[np.arange(1_200), np.arange(10)]
    nested = SVC(gamma=0.5, tol=1e-6).fit(X[again], y[again])
    assert seen
    monkeypatch.undo()
    flat = SVC(gamma=0.5, tol=1e-6).fit(X[again], y[again])
    assert nested.certificate_.violation <= 1e-6
    assert nested.certificate_.dual == pytest.approx(flat.certificate_.dual, abs=flat.certificate_.gap)
    np.testing.assert_allclose(nested.decision_function(X), flat.decision_function(X), atol=1e-4)
