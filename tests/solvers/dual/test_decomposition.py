"""Decomposition on general problems: twins, several groups, no equality, ridges, infinite boxes."""

from functools import partial

import numpy as np
import pytest

from mercer.certificates.dual import certify_dual
from mercer.kernels import FromFunction, Gaussian, Precomputed
from mercer.places import gram_for
from mercer.places.host.field import HostField
from mercer.places.host.tiled_field import TiledField
from mercer.solvers.dual.certified import solve_and_refine, solve_certified
from mercer.solvers.dual.decomposition import decompose
from mercer.solvers.solution import Solution, Stop
from reference.certificate import certificate, dual_value
from reference.problems import (
    gram_matrix,
    machine_problem,
    machines,
)
from reference.qp import by_every_solver


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("maker", machines())
def test_decomposition_on_every_kind_of_problem(maker, seed):
    problem, K = machine_problem(maker, seed)
    gram = gram_for(Precomputed(), K)
    solution = decompose(gram.field(problem), Stop(tol=1e-9, max_iter=10_000_000))
    truth = certificate(problem, K, solution.beta)
    assert truth.violation <= 1e-7
    assert truth.kkt["dual feasibility: box"] == 0
    assert truth.kkt["dual feasibility: equality"] <= 1e-10 * max(1.0, np.abs(solution.beta).sum())
    for name, (value, beta) in by_every_solver(problem, K).items():
        assert truth.dual == pytest.approx(value, rel=1e-6, abs=1e-8), name
        np.testing.assert_allclose(truth.u, certificate(problem, K, beta).u, atol=2e-3, err_msg=name)

    own, u = certify_dual(problem, gram, solution.beta)
    np.testing.assert_allclose(u, truth.u, atol=1e-10 * (1 + np.abs(truth.u).max()))
    assert own.dual == pytest.approx(truth.dual, rel=1e-9, abs=1e-9)
    assert own.primal == pytest.approx(truth.primal, rel=1e-7, abs=1e-7)
    assert own.primal - own.dual == pytest.approx(own.gap, abs=1e-6 * (1 + abs(own.dual)))


GRAMS = {
    "stored": lambda X, budget: gram_for(Precomputed(), gram_matrix("rbf", X, gamma=0.5), budget),
    "blocks": lambda X, budget: gram_for(FromFunction(partial(gram_matrix, "rbf", gamma=0.5)), X, budget),
    "fused": lambda X, budget: gram_for(Gaussian(gamma=0.5), X, budget),
    # The same distances from so many features that rows of K are kept.
    "kept": lambda X, budget: gram_for(Gaussian(gamma=0.5), np.tile(X, 100) / 10, budget),
}


def machines_in_grams(chosen):
    """Each machine in two of the four, in turns; in the other two with ``-m thorough``."""
    return [
        pytest.param(
            *machine.values, gram, id=f"{machine.id}-{gram}", marks=pytest.mark.thorough if (i + j) % 2 else ()
        )
        for i, machine in enumerate(chosen)
        for j, gram in enumerate(GRAMS)
    ]


@pytest.mark.parametrize("shrinking", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("maker", "where"), machines_in_grams(machines()))
def test_decomposition_in_small_blocks(maker, where, shrinking, monkeypatch):
    """The outer loop, the shrinking and the updates of u, with blocks of 20 out of 100 or 200 variables."""
    make_gram = GRAMS[where]
    problem, K, X = machine_problem(maker, seed=0, n=100, with_data=True)
    gram = make_gram(X, 32 * 20**2)
    sizes = []

    def counted(method):
        return lambda field, J: (sizes.append(len(J)), method(field, J))[1]

    for kind in (HostField, TiledField):
        monkeypatch.setattr(kind, "block", counted(kind.block))
    solution, own = solve_certified(problem, gram, Stop(tol=1e-8, max_iter=10_000_000), shrinking=shrinking)
    truth = certificate(problem, K, solution.beta)
    assert own.violation <= 1e-8
    assert solution.stop_reason == "converged"
    assert truth.violation <= 1e-6
    assert truth.kkt["dual feasibility: box"] == 0
    assert truth.kkt["dual feasibility: equality"] <= 1e-9 * max(1.0, np.abs(solution.beta).sum())
    assert truth.dual == pytest.approx(by_every_solver(problem, K)["piqp"][0], rel=1e-6, abs=1e-8)
    # The test is about several small blocks, so that they occurred is part of it.
    assert max(sizes) <= 20
    assert len(sizes) > 3


@pytest.mark.parametrize(
    ("maker", "where"),
    machines_in_grams([m for m in machines() if not m.id.startswith(("2-norm", "Huber", "RLS"))]),
)
def test_what_was_shrunk_away_is_looked_at_again(maker, where):
    """The loop ends on the active variables; the certificate over all variables returns to it until both agree."""
    problem, K, X = machine_problem(maker, seed=0, n=100, with_data=True)
    gram, stop = GRAMS[where](X, 32 * 20**2), Stop(tol=1e-4, max_iter=10_000_000)
    alone = decompose(gram.field(problem), stop)
    assert not alone.all_active, "nothing was shrunk, so this shows nothing"
    solution, own = solve_certified(problem, gram, stop)
    assert solution.stop_reason == "converged"
    assert own.violation <= 1e-4
    assert certificate(problem, K, solution.beta).violation <= 1.001e-4


def test_variables_that_were_dropped_too_early_come_back(monkeypatch):
    problem, _K, X = machine_problem(machines()[0].values[0], seed=0, n=150, with_data=True)
    gram, stop = GRAMS["fused"](X, 32 * 20**2), Stop(tol=1e-6, max_iter=10_000_000)
    optimum = solve_certified(problem, gram, stop)[1].dual
    # Every shrink drops half of what is left, whether it violates or not.
    monkeypatch.setattr(TiledField, "_survivors", lambda field: field.active[::2].copy())
    own = solve_certified(problem, gram, stop)[1]
    assert own.violation <= 1e-6
    assert own.dual == pytest.approx(optimum, rel=1e-9)


def test_warm_start_continues_and_does_not_spoil():
    problem, K = machine_problem(machines()[0].values[0], seed=0)
    gram = gram_for(Precomputed(), K)
    stop = Stop(tol=1e-6, max_iter=10_000_000)
    cold = decompose(gram.field(problem), stop)
    warm = decompose(gram.field(problem, cold.beta), stop)
    assert cold.steps > 20
    assert warm.steps <= 0.2 * cold.steps
    assert dual_value(problem, K, warm.beta) >= dual_value(problem, K, cold.beta) - 1e-9


@pytest.mark.parametrize("maker", machines())
def test_coefficients_that_miss_a_sum_are_moved_before_they_are_certified_and_kept(maker):
    """An inner solver leaves 0.3 in every sum and reports convergence."""
    problem, K = machine_problem(maker, seed=1)
    gram = gram_for(Precomputed(), K)
    best, proof = solve_certified(problem, gram, Stop(tol=1e-9, max_iter=10**6))

    def wrong(beta, u, precision, stop, shrinking):
        off = best.beta.copy()
        for g in range(len(problem.totals)):
            free = np.flatnonzero((problem.group == g) & (off - problem.lower > 0.3))
            off[free[0]] -= 0.3
        return Solution(off, 1, "converged")

    found, certificate_of_it = solve_and_refine(problem, gram, Stop(tol=1e-9, max_iter=10**6), None, wrong, False)
    truth = certificate(problem, K, found.beta)
    assert truth.kkt["dual feasibility: equality"] <= 1e-12 * np.abs(found.beta).sum()
    assert truth.kkt["dual feasibility: box"] == 0
    assert certificate_of_it.dual <= truth.dual + 1e-12 * abs(truth.dual)
    assert certificate_of_it.dual <= proof.primal
