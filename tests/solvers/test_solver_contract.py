"""The solvers for dual problems and joint machines meet the interface of solvers."""

from functools import partial
from unittest import mock

import numpy as np
import pytest

from contracts.solver_contract import SolverCase, SolverContract
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.places import gram_for
from mercer.places.choose import rows_for
from mercer.problems.classification import hulls, reduced_hulls
from mercer.problems.multiclass import JointProblem
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.chunking import solve_by_chunks
from mercer.solvers.dual.hulls import solve_hulls
from mercer.solvers.joint.ascent import solve_joint
from mercer.solvers.linear import dual_kernel
from mercer.solvers.qp import solve_by_qp, solve_joint_by_qp
from mercer.solvers.solution import Stop
from reference import problems as duals
from reference.multiclass import MACHINES, clouds, dual_by_qp
from reference.qp import by_clarabel

rng = np.random.default_rng(0)
N = 60
X = duals.standardised(rng, N, 3)
Y = duals.noisy_labels(rng, X)
T = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=N)
W = rng.uniform(0.5, 2.0, N)

# From its solution such a solver has nothing to do.
done_at_once = partial(SolverCase, warm_share=0.0)

DUALS = {
    "C-SVC": duals.c_svc(Y, 3.0 * W),
    "C-SVC without bias": duals.without_bias(duals.c_svc(Y, 3.0 * W)),
    "2-norm": duals.two_norm_svc(Y, 2.0 * W),
    "2-norm without bias": duals.without_bias(duals.two_norm_svc(Y, 2.0 * W)),
    "tube": duals.epsilon_svr(T, 0.1, 2.0 * W),
    "nu-SVC": duals.nu_svc(Y, 0.5, W),
    "nu-SVR": duals.nu_svr(T, 0.4, 2.0),
    "one-class": duals.one_class(W, 0.3),
}


def by_rows(problem, gram, stop, start=None):
    """In (w, b) from the first step on, as for many samples."""
    linear, rows_of = dual_kernel.linear_problem(problem), partial(rows_for, X, 1)
    with mock.patch.object(dual_kernel, "_MANY_VARIABLES", 0):
        return dual_kernel.solve_by_rows(problem, gram, stop, start, linear=linear, rows_of=rows_of)


def dual_cases():
    K, K_linear = duals.gram_matrix("rbf", X, gamma=0.5), duals.gram_matrix("linear", X)
    places = {"core": gram_for(Gaussian(gamma=0.5), X), "matrix": gram_for(Precomputed(), K)}
    for name, problem in DUALS.items():
        value = by_clarabel(problem, K)[0]
        for where, place in places.items():
            yield f"decomposition, {where}, {name}", done_at_once(solve_certified, problem, place, value)
        yield (
            f"without shrinking, {name}",
            done_at_once(partial(solve_certified, shrinking=False), problem, places["core"], value),
        )
        chunks = partial(solve_by_chunks, size=25)
        yield f"chunks, {name}", done_at_once(chunks, problem, places["core"], value)
        yield f"qp, {name}", SolverCase(solve_by_qp, problem, places["core"], value)
        if dual_kernel.linear_problem(problem) is not None:
            value = by_clarabel(problem, K_linear)[0]
            yield f"rows, {name}", SolverCase(by_rows, problem, gram_for(Linear(), X), value)
    for name, problem, solve in (
        ("hulls", hulls(Y), solve_hulls),
        ("reduced hulls", reduced_hulls(Y, W, 0.3), partial(solve_hulls, reduced=True)),
    ):
        yield name, done_at_once(solve, problem, gram_for(Gaussian(gamma=2.0), X), by_clarabel(problem, rbf(2.0))[0])


def rbf(gamma):
    return duals.gram_matrix("rbf", X, gamma=gamma)


def joint_cases():
    X, y = clouds(3)
    C, K = np.random.default_rng(4).uniform(0.5, 3.0, len(y)), duals.gram_matrix("rbf", X, gamma=0.4)
    for machine, shared in MACHINES.items():
        for bias in (False, "regularized", True):
            # Free biases are not part of a start.
            made = partial(SolverCase, warm_share=1.5) if bias is True else done_at_once
            problem = JointProblem(y, C, 4, shared, shift=float(bias == "regularized"), balanced=bias is True)
            value = dual_by_qp(K, y, C, 4, machine=machine, bias=bias)[0]
            for where, place in (("core", gram_for(Gaussian(gamma=0.4), X)), ("matrix", gram_for(Precomputed(), K))):
                yield f"{machine}, bias {bias}, {where}", made(solve_joint, problem, place, value)
            yield f"qp, {machine}, bias {bias}", SolverCase(solve_joint_by_qp, problem, place, value)


CASES = dict([*dual_cases(), *joint_cases()])


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


class TestSolversOfDuals(SolverContract):
    pass


def test_in_blocks_of_a_few_variables():
    """A budget for blocks of 16, and float32 values to begin with: every return of the refinement is taken."""
    big = np.random.default_rng(1).normal(size=(1200, 3))
    y = duals.noisy_labels(np.random.default_rng(2), big)
    problem = duals.c_svc(y, 1.0)
    stop = Stop(tol=1e-9, max_iter=10**6)
    small, proof = solve_certified(problem, gram_for(Gaussian(gamma=0.5), big, budget=8192), stop)
    _, other = solve_certified(problem, gram_for(Gaussian(gamma=0.5), big), stop)
    assert small.stop_reason == "converged"
    assert proof.dual == pytest.approx(other.dual, rel=1e-10)
