"""The joint machines' β is feasible, to the rounding of its box, whenever a fit ends and whatever ended it."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import SVC, _core
from mercer.problems.multiclass import JointProblem
from mercer.solvers.joint.newton import newton_on_joint_face
from mercer.solvers.joint.rebalance import rebalanced

MACHINES = ("crammer-singer", "weston-watkins")
EPS = np.finfo(float).eps


def residual(problem_C, y, beta, shared):
    """Return the distance of β from the feasible set: signs, bounds and sums of every sample."""
    own = np.arange(len(y)), y
    alpha = -beta.copy()
    alpha[own] = 0.0
    above = alpha.sum(axis=1) - problem_C if shared else (alpha - problem_C[:, None]).max(axis=1)
    return max(-alpha.min(), above.max(), np.abs(beta.sum(axis=1)).max())


def draw(seed, n, m, shared):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(m), rng.integers(m, size=n - m)]
    C = 10.0 ** rng.uniform(-3, 2, size=n)
    alpha = rng.uniform(size=(n, m)) * (rng.uniform(size=(n, m)) < 0.5) * C[:, None]
    alpha[rng.uniform(size=(n, m)) < 0.2] = C.max()
    alpha[np.arange(n), y] = 0.0
    alpha = np.minimum(alpha, C[:, None])
    if shared:
        alpha *= np.minimum(1.0, C / np.maximum(alpha.sum(axis=1), 1e-300))[:, None]
    beta = -alpha
    beta[np.arange(n), y] = alpha.sum(axis=1)
    return JointProblem(y, C, m, shared=shared, balanced=True), beta, rng.normal(size=(n, m))


@given(st.integers(0, 10**6), st.integers(2, 7), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_point_is_brought_to_class_sums_of_zero(seed, m, shared):
    """Also far from any optimum, where multipliers have to become smaller."""
    problem, beta, e = draw(seed, 5 * m, m, shared)
    out = rebalanced(problem, beta, e, 1e-3)
    size = max(np.abs(out).sum(axis=0).max(), problem.C.max())
    assert np.abs(out.sum(axis=0)).max() <= 40 * EPS * size
    assert residual(problem.C, problem.y, out, shared) <= 40 * EPS * problem.C.max()


@pytest.mark.parametrize("shared", [True, False])
def test_multipliers_at_their_bounds_stay_there(shared):
    """A positive class sum moves through the one free sample, though others have more capacity."""
    y, m = np.arange(9) % 3, 3
    problem = JointProblem(y, np.ones(9), m, shared=shared, balanced=True)
    beta, own = np.zeros((9, m)), (np.arange(9), y)
    beta[np.arange(9), (y + 1) % 3] = -1.0
    beta[0, 1] = -0.5
    beta[own] = 0.0
    beta[own] = -beta.sum(axis=1)
    beta[3:6] = 0.0  # sums are (−0.5, 0.5, 0)
    e = np.where(beta < 0, 5.0, -5.0)  # so that bounded multipliers and zeros want to stay where they are
    e[own] = 0.0
    e[0, :2] = 0.0  # sample 0 moves between the classes 0 and 1 at no cost
    out = rebalanced(problem, beta, e, 1e-6)
    assert np.abs(out.sum(axis=0)).max() <= 1e-14
    np.testing.assert_array_equal(out[1:], beta[1:])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bias", [True, False, "regularized"])
@pytest.mark.parametrize("limit", [{}, {"max_iter": 7}, {"max_iter": 200}])
def test_fits_end_with_a_feasible_point(machine, bias, limit):
    """Kernels with values far below 1, for which a step once lost the digits of its bound; limits too."""
    rng, converged = np.random.default_rng(11), 0
    for k in range(12):
        m = int(rng.integers(3, 7))
        n = int(rng.integers(2 * m, 90))
        y = np.r_[np.arange(m), rng.integers(m, size=n - m)]
        X = rng.normal(size=(n, 2)) + 2 * rng.normal(size=(m, 2))[y]
        C = 10.0 ** rng.uniform(-3, 2)
        kernel = ("poly", "laplacian", "linear")[k % 3]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if limit else "error")
            model = SVC(C=C, kernel=kernel, gamma=0.03, multiclass=machine, bias=bias, tol=1e-5, n_jobs=1, **limit)
            model.fit(X, y)
        converged += model.converged_
        proof = model.certificate_
        assert proof.kkt["dual feasibility: box"] <= 40 * EPS * C
        assert proof.kkt["dual feasibility: equality"] <= 40 * EPS * C * n
        # Both values are bounds, so that the optimum lies between them, and the gap is no less than their difference.
        assert proof.dual <= proof.primal + 1e-12 * (1 + abs(proof.primal))
        assert proof.gap >= proof.primal - proof.dual - 1e-11 * (1 + abs(proof.primal))
    assert converged == 12 or limit


def test_a_step_keeps_the_digits_of_a_bound_far_below_it():
    """k(x, x) = 1e-9 makes the unbounded step 1e9; the multipliers must still add up to C."""
    C, m = 1e-3, 4
    K, e = np.full((1, 1), 1e-9), np.array([[0.0, 1.0, 1.0 - 1e-13, 0.5]])
    beta = np.zeros((1, m))
    _core.joint(K, e, beta, np.array([0]), np.array([C]), True, 0.0, 1e-12, 10, np.inf)
    assert beta[0, 0] == C
    assert abs(beta.sum()) <= 4 * EPS * C


@pytest.mark.parametrize("shared", [True, False])
def test_a_climb_keeps_each_sample_s_sum(shared):
    rng = np.random.default_rng(3)
    for seed in range(20):
        problem, beta, _ = draw(seed, 20, 4, shared)
        Z = rng.normal(size=(20, 6))
        K = Z @ Z.T
        e = problem.excess(K @ beta, np.zeros(4))
        out = newton_on_joint_face(problem, np.arange(20), K, e, beta)
        assert residual(problem.C, problem.y, out, shared) <= 40 * EPS * problem.C.max()
