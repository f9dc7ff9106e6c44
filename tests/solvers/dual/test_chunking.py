"""Chunking reaches the optimum of decomposition for every chunk size, with one chunk in memory at a time."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, make_classification

from mercer import SVC
from mercer.certificates.dual import certify_dual
from mercer.kernels import Gaussian
from mercer.kernels.names import as_kernel
from mercer.places import gram_for
from mercer.solvers.dual import chunking
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.chunking import solve_by_chunks
from mercer.solvers.solution import Stop
from reference.problems import c_svc, machine_problem, machines

STOP = Stop(tol=1e-6, max_iter=10**7)


@pytest.mark.parametrize(("seed", "size"), [(0, 16), (1, 25), (0, 59)])
@pytest.mark.parametrize("maker", machines())
def test_every_machine_reaches_the_same_optimum(maker, seed, size):
    problem, K = machine_problem(maker, seed)
    gram = gram_for(as_kernel("precomputed"), K)
    solution, certificate = solve_by_chunks(problem, gram, STOP, size=size)
    _, whole = solve_certified(problem, gram, STOP)
    assert solution.stop_reason == "converged"
    assert certificate.violation <= STOP.tol
    assert certificate.dual == pytest.approx(whole.dual, rel=1e-8, abs=1e-8)
    assert certificate.kkt["dual feasibility: box"] == 0
    assert certificate.kkt["dual feasibility: equality"] <= 1e-14 * np.abs(solution.beta).sum()
    again, _ = certify_dual(problem, gram, solution.beta, STOP.tol)
    assert again.gap == pytest.approx(certificate.gap, abs=1e-12 * abs(whole.dual) + 1e-12)


def chunks_of(monkeypatch):
    """Record the sizes of the chunks that are solved."""
    sizes, solve = [], chunking.solve_certified

    def watched(problem, gram, *others, **options):
        sizes.append(gram.n)
        return solve(problem, gram, *others, **options)

    monkeypatch.setattr(chunking, "solve_certified", watched)
    return sizes


def test_the_name_of_the_solver_states_the_rows_of_a_chunk(monkeypatch):
    X, y = make_classification(400, 5, random_state=0)
    sizes = chunks_of(monkeypatch)
    model = SVC(solver="chunking:150", tol=1e-6).fit(X, y)
    assert max(sizes) == 150
    assert len(sizes) > 1
    assert model.certificate_.dual == pytest.approx(SVC(tol=1e-6).fit(X, y).certificate_.dual, rel=1e-7)
    for name in ("chunking:0", "chunking:many", "chunking:"):
        with pytest.raises(ValueError, match="number of rows of a chunk, such as 'chunking:500'"):
            SVC(solver=name).fit(X, y)
    with pytest.raises(ValueError, match="solver"):
        SVC(solver="chunking:10", multiclass="crammer_singer").fit(X, y + (X[:, 0] > 1))


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_vectors_in_chunks(monkeypatch, form):
    X, y = make_classification(1500, 8, random_state=0)
    signs = np.where(y == 1, 1.0, -1.0)
    problem = c_svc(signs, 1.0)
    X = sp.csr_array(X) if form == "csr" else X
    sizes = chunks_of(monkeypatch)
    solution, certificate = solve_by_chunks(problem, gram_for(Gaussian(gamma=0.1), X), STOP, size=700)
    _, whole = solve_certified(problem, gram_for(Gaussian(gamma=0.1), X), STOP)
    assert len(sizes) > 1
    assert max(sizes) <= 700
    assert certificate.dual == pytest.approx(whole.dual, rel=1e-9)
    assert solution.stop_reason == "converged"


def test_more_support_vectors_than_a_chunk_holds(monkeypatch):
    X, y = make_classification(600, 5, flip_y=0.4, random_state=1)
    problem = c_svc(np.where(y == 1, 1.0, -1.0), 1.0)
    gram = gram_for(Gaussian(gamma=1.0), X)
    sizes = chunks_of(monkeypatch)
    solution, certificate = solve_by_chunks(problem, gram, STOP, size=100)
    assert (solution.beta != 0).sum() > 300
    assert max(sizes) <= 100
    assert certificate.violation <= STOP.tol


def test_a_gap_can_be_asked_for():
    problem, K = machine_problem(lambda y, t, w: c_svc(y, 3.0 * w), 0)
    stop = Stop(tol=0.5, max_iter=10**7, gap_tol=1e-7)
    solution, certificate = solve_by_chunks(problem, gram_for(as_kernel("precomputed"), K), stop, size=20)
    assert solution.stop_reason == "converged"
    assert certificate.gap <= 1e-7 * certificate.dual


@pytest.mark.parametrize("limit", [{"max_iter": 3}, {"deadline": 0.0}])
def test_limits_hold(limit):
    problem, K = machine_problem(lambda y, t, w: c_svc(y, 3.0 * w), 0)
    stop = Stop(**({"tol": 1e-8, "max_iter": 10**7} | limit))
    solution, _ = solve_by_chunks(problem, gram_for(as_kernel("precomputed"), K), stop, size=20)
    assert solution.stop_reason == ("max_iter" if "max_iter" in limit else "max_time")
    assert solution.steps <= 10


@pytest.mark.parametrize("kernel", ["rbf", "linear", Gaussian(gamma=0.1) + Gaussian(gamma=0.01)])
def test_the_estimator_with_a_budget_below_its_data(monkeypatch, kernel):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    sizes = chunks_of(monkeypatch)
    small = SVC(kernel=kernel, solver="chunking", cache_size=0.5, tol=1e-6).fit(X, y)
    whole = SVC(kernel=kernel, tol=1e-6).fit(X, y)
    assert len(sizes) > 1
    assert small.converged_
    assert small.certificate_.dual == pytest.approx(whole.certificate_.dual, rel=1e-9)
    np.testing.assert_array_equal(small.predict(X), whole.predict(X))


def test_samples_are_prepared_a_chunk_at_a_time():
    """Beyond the vectors of the problem, memory stays below the budget, which is a fraction of the data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 100))
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=6000) > 0, 1.0, -1.0)
    budget = X.nbytes // 2
    gram = gram_for(Gaussian(gamma=0.001), X, budget)
    problem = c_svc(y, 1.0)
    tracemalloc.start()
    solution, certificate = solve_by_chunks(problem, gram, Stop(tol=1e-2, max_iter=10**7))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.stop_reason == "converged"
    assert certificate.violation <= 1e-2
    assert peak <= budget
    tracemalloc.start()
    solve_certified(problem, gram_for(Gaussian(gamma=0.001), X, budget), Stop(tol=1e-2, max_iter=10**7))
    assert tracemalloc.get_traced_memory()[1] > peak
    tracemalloc.stop()
