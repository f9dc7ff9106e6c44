"""The solver for any convex loss meets the interface of solvers; its `tol` is a relative gap."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from contracts.solver_contract import SolverCase, SolverContract
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.places import gram_for
from mercer.problems.losses import Huber, Logistic, SquaredHinge
from mercer.problems.representer import RepresenterProblem
from mercer.solvers.representer import solve_representer
from mercer.solvers.solution import Stop

rng = np.random.default_rng(4)
N, LAM = 60, 0.2
X = rng.normal(size=(N, 2))
T = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=N)
WEIGHT = rng.uniform(0.5, 2.0, N)
GAUSSIAN = Gaussian(gamma=0.5)


def optimum(problem):
    """By a general minimiser, in the coordinates of K's square root."""
    values, vectors = np.linalg.eigh(GAUSSIAN(X))
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    def objective(v):
        f = root @ v[:-1] + problem.bias * v[-1]
        g = problem.gradient(f)
        slope = np.append(root.T @ g + 2 * LAM * v[:-1], problem.bias * g.sum())
        return problem.value(f) + LAM * v[:-1] @ v[:-1], slope

    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    return minimize(objective, np.zeros(N + 1), jac=True, method="L-BFGS-B", options=options).fun


def by_gap(problem, place, stop, start=None):
    """The gap is quadratic in the violation, which the interface bounds."""
    return solve_representer(problem, place, replace(stop, tol=min(stop.tol, stop.gap_tol) ** 2), start)


def cases():
    for loss in (Huber(0.3), Logistic(), SquaredHinge()):  # one Newton step solves the square
        y = T if loss.kind == "regression" else np.where(T > 0, 1.0, -1.0)
        for bias in (False, True):
            problem = RepresenterProblem(y, WEIGHT, loss, LAM, bias)
            for budget in (10**9, 10**5):
                way = "factorised" if budget == 10**9 else "by conjugate gradients"
                yield (
                    f"{type(loss).__name__}, bias {bias}, {way}",
                    SolverCase(
                        by_gap,
                        problem,
                        gram_for(GAUSSIAN, X, budget),
                        optimum(problem),
                        point=lambda outcome: outcome.c,
                        start=lambda outcome: outcome,
                        stop=Stop(tol=1e-6, max_iter=100),
                        warm_share=0.0,
                    ),
                )


CASES = dict(cases())


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


class TestRepresenterSolver(SolverContract):
    pass


@pytest.mark.parametrize("loss", [Huber(0.3), Logistic(), SquaredHinge()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("offset", [2.0**27, 2.0**30, 2.0**43])
def test_a_kernel_that_rounding_broke_is_solved_as_far_as_it_can_be(loss, offset):
    """A free bias takes up an offset of all samples, so that the optimum is that of the samples without it."""
    for seed in range(6):
        draw = np.random.default_rng(seed)
        whole = draw.integers(-9, 10, size=(20, 3)).astype(float)
        y = draw.normal(size=20) if loss.kind == "regression" else np.where(draw.random(20) < 0.5, -1.0, 1.0)
        problem = RepresenterProblem(y, np.ones(20), loss, LAM, True)
        _, plain = solve_representer(problem, gram_for(Linear(), whole), Stop(tol=1e-10, max_iter=100))
        _, moved = solve_representer(problem, gram_for(Linear(), whole + offset), Stop(tol=1e-10, max_iter=100))
        assert plain.relative_gap <= 1e-9
        assert moved.dual <= plain.primal
        assert plain.dual <= moved.primal


def test_a_kernel_that_is_not_positive_definite_is_refused():
    problem = RepresenterProblem(T, np.full(N, 1e3), Huber(0.3), LAM, True)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        solve_representer(problem, gram_for(Precomputed(), GAUSSIAN(X) - 0.5), Stop(tol=1e-6, max_iter=100))
