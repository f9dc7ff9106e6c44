"""The solvers for least squares meet the interface of solvers; those that factor a matrix have no steps to limit."""

from functools import partial

import numpy as np
import pytest

from contracts.solver_contract import SolverCase, SolverContract
from mercer.kernels import Gaussian, Linear, Precomputed, Sigmoid
from mercer.places import gram_for
from mercer.places.choose import cross_for
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares, RidgeProblem
from mercer.samples.chunks import Chunk
from mercer.solvers.least_squares.cg import solve_ridge
from mercer.solvers.least_squares.choose import METHODS, solve_least_squares
from mercer.solvers.least_squares.linear import solve_sums
from mercer.solvers.least_squares.nystrom import solve_nystrom
from mercer.solvers.least_squares.spectrum import solve_path
from mercer.solvers.solution import Stop
from reference import least_squares as plain

rng = np.random.default_rng(2)
N, LAM = 80, 0.3
X = rng.normal(size=(N, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 2.0, X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(N, 2))
WEIGHT = rng.uniform(0.5, 2.0, N)
Z = X[::4]
GAUSSIAN = Gaussian(gamma=0.4)
STOP = Stop(tol=1e-4, max_iter=1000)


def problem(bias, lam=LAM):
    return LeastSquares(Y, WEIGHT, np.arange(N), N, bias, lam)


def value(kernel, bias):
    """Return the optimum of the objective divided by 2λ, summed over both outputs."""
    K = kernel(X)
    c, b = plain.solve(K, Y, LAM, WEIGHT, bias)
    return plain.objective(K, c, b, Y, LAM, WEIGHT).sum() / (2 * LAM)


def weights_or_coefficients(solution):
    return solution.C if solution.W is None else solution.W


Case = partial(SolverCase, point=weights_or_coefficients, start=lambda outcome: None, stop=STOP, accuracy=1e-8)
Direct = partial(Case, begins_with_a_point=False)


def direct_cases():
    for bias in (False, True):
        for name in ("auto", "cholesky", "eigen", "qp", "covariance", "lsqr"):
            for kernel in (GAUSSIAN, Linear()) if name in ("auto", "cholesky", "eigen", "qp") else (Linear(),):
                solve, place = partial(solve_least_squares, solver=name), gram_for(kernel, X)
                yield f"{name}, {kernel!r}, bias {bias}", Direct(solve, problem(bias), place, value(kernel, bias))
        path = partial(solve_path, lams=np.array([LAM]), score=lambda problem, values: values.dof)
        best, place = lambda outcome: outcome.best.C, gram_for(GAUSSIAN, X)
        yield f"path, bias {bias}", Direct(path, problem(bias), place, value(GAUSSIAN, bias), point=best)
        yield f"landmarks, bias {bias}", on_landmarks(bias, None)
        sums = Sums.of(X, problem(bias))
        yield f"sums, bias {bias}", Case(solve_sums, RidgeProblem(LAM, bias), sums, value(Linear(), bias))


def on_landmarks(bias, sample):
    everything = Chunk(X, Y, WEIGHT)
    return Case(
        partial(solve_nystrom, sample=sample),
        RidgeProblem(LAM, bias),
        cross_for(GAUSSIAN, Z, lambda: [everything]),
        plain.on_landmarks(GAUSSIAN(X, Z), GAUSSIAN(Z), Y, WEIGHT, LAM, bias)[2].sum(),
        point=lambda outcome: outcome.C,
        stop=Stop(tol=1e-4, gap_tol=1e-10, max_iter=1000),
        begins_with_a_point=False,
    )


def iterative_cases():
    for bias in (False, True):
        # A budget for five landmarks of the preconditioner.
        solve, place = partial(solve_least_squares, solver="cg"), gram_for(GAUSSIAN, X, budget=5 * 64 * N)
        yield f"cg, bias {bias}", Case(solve, problem(bias), place, value(GAUSSIAN, bias))
        yield f"landmarks, bias {bias}", on_landmarks(bias, Chunk(X[:40], np.zeros((40, 2)), 2 * WEIGHT[:40]))


DIRECT, ITERATIVE = dict(direct_cases()), dict(iterative_cases())


class TestDirectSolvers(SolverContract):
    test_steps_end_it = None

    def test_time_ends_it(self, case):
        if case.solve is not solve_sums:  # whose samples have been summed before
            super().test_time_ends_it(case)

    @pytest.fixture(params=DIRECT)
    def case(self, request):
        return DIRECT[request.param]


class TestIterativeSolvers(SolverContract):
    @pytest.fixture(params=ITERATIVE)
    def case(self, request):
        return ITERATIVE[request.param]


def test_each_says_what_it_needs():
    gaussian, linear = gram_for(GAUSSIAN, X), gram_for(Linear(), X)
    for name, solve in METHODS.items():
        if name.startswith("qp:"):
            continue  # another package each, which need not be there
        solve(problem(True), linear, STOP)
        if name in ("covariance", "lsqr"):
            with pytest.raises(ValueError, match=f"solver='{name}' is for linear kernels"):
                solve(problem(True), gaussian, STOP)
        else:
            solve(problem(True), gaussian, STOP)
    indefinite = gram_for(Sigmoid(gamma=1.0, coef0=-2.0), X)
    assert not indefinite.looks_positive_definite()
    with pytest.raises(ValueError, match="solver='cg' needs a positive semi-definite matrix"):
        solve_least_squares(problem(True), indefinite, STOP, solver="cg")


def test_what_a_solver_finds_out_is_in_its_outcome():
    once = LeastSquares(Y, np.ones(N), np.arange(N), N, True, 1e-30)
    full, _ = solve_least_squares(once, gram_for(Linear(), X), STOP, solver="eigen")
    assert (full.rank, full.dropped) == (3, 0)  # of three features none is too many
    linear, _ = solve_least_squares(once, gram_for(Linear(), np.c_[X, X[:, 0] + X[:, 1]]), STOP, solver="eigen")
    assert (linear.rank, linear.dropped) == (3, 1)
    narrow, _ = solve_least_squares(once, gram_for(Gaussian(1e-9), X), STOP, solver="eigen")
    assert narrow.dropped == N - 1 - narrow.rank > 0
    gram = gram_for(Precomputed(), GAUSSIAN(X) - 0.5 * np.eye(N))
    found, certificate = solve_least_squares(problem(True, 1e-3), gram, STOP, solver="eigen")
    assert found.indefinite
    assert gram.positive_definite == "no"
    assert certificate.proves == "stationarity"


def test_a_gap_beyond_float64_is_an_error():
    """Wy²/λ overflows here, so that no residual is ever proven smaller."""
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(FloatingPointError, match="gap overflowed"):
        solve_ridge(gram_for(GAUSSIAN, X), 1e5 * Y, 1e-300, Stop(1e-10, 50))
