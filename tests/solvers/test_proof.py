"""Every solver certifies with the `proof` of a Gram matrix that has no error bounds itself."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from mercer.kernels import Gaussian, Precomputed
from mercer.places import gram_for
from mercer.problems.classification import hulls, soft_margin
from mercer.problems.least_squares import LeastSquares
from mercer.problems.losses import Logistic
from mercer.problems.multiclass import JointProblem
from mercer.problems.representer import RepresenterProblem
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.chunking import solve_by_chunks
from mercer.solvers.dual.hulls import solve_hulls
from mercer.solvers.joint.ascent import solve_joint
from mercer.solvers.least_squares.cholesky import solve_cholesky
from mercer.solvers.representer import solve_representer
from mercer.solvers.solution import Stop

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.where(X[:, 0] + X[:, 1] ** 2 > 1, 1.0, -1.0)


class Coarse:
    """Gram matrix with unknown errors of 1e-7 in its values, also in views and copies."""

    def __init__(self, true):
        K = true.full()
        noise = 1e-7 * np.random.default_rng(1).normal(size=K.shape)
        self._own, self.proof = gram_for(Precomputed(), K + noise + noise.T), true

    def __getattr__(self, name):
        return getattr(self._own, name)

    def product_bound(self, *_):
        raise AssertionError("it has no bounds")

    errors = product_bound

    @property
    def entry_bounds(self):
        raise AssertionError("nor does it know how large values can be")

    def streamed(self):
        return self


CASES = {
    "decomposition": (soft_margin(Y, np.ones(N)), solve_certified),
    "chunking": (soft_margin(Y, np.ones(N)), partial(solve_by_chunks, size=40)),
    "hulls": (replace(hulls(Y), upper=np.where(Y > 0, 0.1, 0.0), lower=np.where(Y > 0, 0.0, -0.1)), solve_hulls),
    "joint": (JointProblem((Y > 0).astype(np.intp), np.ones(N), 2, shared=True), solve_joint),
    "any loss": (RepresenterProblem(Y, np.ones(N), Logistic(), 0.1, True), solve_representer),
    "least squares": (LeastSquares(Y[:, None], np.ones(N), np.arange(N), N, True, 0.1), solve_cholesky),
}


@pytest.mark.parametrize("name", CASES)
def test_the_proof_certifies(name):
    problem, solve = CASES[name]
    true = gram_for(Gaussian(0.5), X)
    stop = Stop(tol=1e-3, max_iter=10**6)
    _, own = solve(problem, true, stop)
    solution, proof = solve(problem, Coarse(true), stop)
    assert solution.stop_reason == "converged"
    assert proof.proves == own.proves == "optimality"
    assert proof.dual <= own.primal
    assert own.dual <= proof.primal
