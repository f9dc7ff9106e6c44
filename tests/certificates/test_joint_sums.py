"""Joint coefficients whose sums miss zero: no certificate claims more than a feasible point beside them has.

The truth is in fractions: exact optima, and exact primal values, which no dual value may exceed.
"""

from fractions import Fraction

import numpy as np
import pytest

from certificates.test_error_terms import SIGNS, Declared, holds, matrix
from mercer.certificates.joint import _repair_cost, certify_joint, certify_joint_rows, joint_certificate
from mercer.kernels import Precomputed
from mercer.places import gram_for
from mercer.places.ball import Ball, exact
from mercer.places.choose import rows_for
from mercer.problems.multiclass import JointProblem
from mercer.solvers.joint.ascent import solve_joint
from mercer.solvers.solution import Stop

MISSED = [2.0**-50, 1e-12, 1e-3]


def fractions(values):
    return np.vectorize(lambda x: Fraction(float(x)), otypes=[object])(values)


def exact_primal(K, problem, beta, b):
    """P(β, b) of rational K, β and b, for the kernel k + shift."""
    K, beta, own = fractions(K) + Fraction(problem.shift), fractions(beta), (np.arange(problem.n), problem.y)
    u = K @ beta
    g = u + fractions(b) + 1
    g[own] -= 1
    g = g - g[own][:, None]
    losses = [
        Fraction(C) * (max(row) if problem.shared else sum(max(x, 0) for x in row))
        for C, row in zip(problem.C.tolist(), g.tolist(), strict=True)
    ]
    return (beta * u).sum() / 2 + sum(losses)


def crowd(shared):
    """Three samples of class 0 and one each of 1 and 2 that no kernel tells apart, β and the optimum at C = 1.

    D = Σα. What leaves class 0 has to enter it, at most 1 from each other sample. So D ≤ 4 for Crammer and Singer, and
    with 1 more between the others in both directions, D ≤ 6 for Weston and Watkins: primal values at b = (1, 0, 0).
    """
    y = np.array([0, 0, 0, 1, 2])
    alpha = np.zeros((5, 3))
    alpha[0, 1] = alpha[1, 2] = 0.75
    alpha[2, 1:] = 0.25
    alpha[3:, 0] = 1.0
    if not shared:
        alpha[3, 2] = alpha[4, 1] = 1.0
    beta = -alpha
    beta[np.arange(5), y] = alpha.sum(axis=1)
    problem = JointProblem(y, np.ones(5), 3, shared=shared, balanced=True)
    assert exact_primal(np.zeros((5, 5)), problem, beta, np.array([1.0, 0.0, 0.0])) == (4 if shared else 6)
    return problem, beta, 4 if shared else 6


@pytest.mark.parametrize("missed", MISSED)
@pytest.mark.parametrize("shared", [True, False])
def test_class_sums_that_are_off_with_a_wrong_bias(shared, missed):
    """b = 0, at which |b|·|Σβ| allows nothing, and a multiplier that is too large for the class sums."""
    problem, beta, optimum = crowd(shared)
    beta[0, 1] -= missed
    beta[0, 0] += missed
    proof, _ = certify_joint(problem, Declared(np.zeros((5, 5)), 0.0, "up"), beta)
    assert Fraction(proof.dual) <= optimum
    primal = exact_primal(np.zeros((5, 5)), problem, beta, np.zeros(3))
    assert Fraction(proof.primal) >= primal
    assert Fraction(proof.gap) >= primal - optimum
    assert proof.dual >= optimum - 10 * missed - 1e-12  # and little is lost


@pytest.mark.parametrize("missed", MISSED)
@pytest.mark.parametrize("shared", [True, False])
def test_the_optimal_bias_makes_a_small_gap(shared, missed):
    problem, beta, optimum = crowd(shared)
    problem = JointProblem(problem.y, problem.C, 3, shared=shared, balanced=True, b=np.array([1.0, 0.0, 0.0]))
    beta[0, 1] -= missed
    beta[0, 0] += missed
    proof, _ = certify_joint(problem, Declared(np.zeros((5, 5)), 0.0, "up"), beta)
    assert Fraction(proof.dual) <= optimum <= Fraction(proof.primal)
    assert proof.gap <= 20 * missed + 1e-12


@pytest.mark.parametrize("missed", [-1e-3, *MISSED])
@pytest.mark.parametrize("shared", [True, False])
def test_rows_whose_own_sums_are_off(shared, missed):
    problem, beta, optimum = crowd(shared)
    beta[:3, 0] += missed
    proof, _ = certify_joint(problem, Declared(np.zeros((5, 5)), 0.0, "up"), beta)
    assert Fraction(proof.dual) <= optimum
    assert proof.dual >= optimum - 20 * abs(missed) - 1e-12


def test_a_row_that_is_off_at_the_maximum_of_its_dual_value():
    """Without Σ_k β_ik = 0 the dual β_0 − ½κ(β_0² + β_1²) is 1/2κ at most, where its gradient is 0; with it, 1/4κ."""
    for kappa, shift in ((4.0, 0.0), (0.125, 1.0)):
        problem = JointProblem(np.array([0]), np.ones(1), 2, shared=False, shift=shift)
        beta = np.array([[1 / (kappa + shift), 0.0]])
        proof, _ = certify_joint(problem, Declared(np.full((1, 1), kappa), 0.0, "up"), beta)
        assert proof.dual <= 1 / (4 * (kappa + shift))


@pytest.mark.parametrize("excess", [2.0**-52, 1e-3])
def test_multipliers_beyond_the_bound_that_they_share(excess):
    """Three multipliers that add up to C and a rounding more are moved; much more proves nothing."""
    problem, K = JointProblem(np.array([0]), np.ones(1), 4, shared=True), np.zeros((1, 1))
    beta = np.array([[1.0, -0.5, -0.25, -0.25 - excess]])
    proof, _ = certify_joint(problem, Declared(K, 0.0, "up"), beta)
    if excess < 1e-9:
        assert 1 - 1e-14 <= proof.dual <= 1
        assert proof.gap >= 0
    else:
        assert proof.dual == -np.inf
        assert proof.gap == proof.violation == np.inf


@pytest.mark.parametrize("beta", [[2.0, -2.0, 0.0], [0.5, -0.75, 0.25], [np.nan, -0.5, 0.0]])
@pytest.mark.parametrize("shared", [True, False])
def test_coefficients_outside_of_their_bounds_prove_nothing(shared, beta):
    problem = JointProblem(np.array([0]), np.ones(1), 3, shared=shared)
    proof, _ = certify_joint(problem, Declared(np.eye(1), 0.0, "up"), np.array([beta]))
    assert proof.dual == -np.inf
    assert proof.gap == proof.violation == np.inf


@pytest.fixture(scope="module", params=[True, False])
def solved(request):
    """A problem with free biases, its β, an exact primal value next to the optimum, and β without biases."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(9, 2)), rng.normal(size=(3, 2)) + 1, rng.normal(size=(3, 2)) - 1])
    y, K = np.repeat([0, 1, 2], [9, 3, 3]), X @ X.T
    K = (K + K.T) / 2
    free = JointProblem(y, np.full(15, 0.5), 3, shared=request.param, balanced=True)
    fixed = JointProblem(y, np.full(15, 0.5), 3, shared=request.param)
    gram, stop = gram_for(Precomputed(), K), Stop(tol=1e-11, max_iter=10**6)
    found, proof = solve_joint(free, gram, stop)
    assert max(map(abs, proof.b)) > 0.1
    best = exact_primal(K, free, found.beta, np.array(proof.b))
    assert best - Fraction(proof.dual) < 1e-9
    other = solve_joint(fixed, gram, stop)[0].beta
    assert np.abs(other.sum(axis=0)).max() > 0.1
    return X, K, free, found.beta, other, best


@pytest.mark.parametrize("missed", [1e-12, 1e-6, 1e-3, 0.1, None])
@pytest.mark.parametrize("b", [(0.0, 0.0, 0.0), (-0.3, 0.1, 0.2), (3.0, -1.0, -2.0)])
def test_between_the_optima_with_and_without_biases(solved, b, missed):
    """The dual value rises from the one to the other, which is infeasible."""
    X, K, problem, beta, other, best = solved
    share = 1.0 if missed is None else missed / np.abs((other - beta).sum(axis=0)).max()
    beta = problem.within_bounds(beta + share * (other - beta))
    problem = JointProblem(problem.y, problem.C, 3, shared=problem.shared, balanced=True, b=np.array(b))
    _, linear = certify_joint_rows(problem, rows_for(X, 1), beta)
    for proof in (certify_joint(problem, gram_for(Precomputed(), K).proof, beta)[0], linear):
        assert Fraction(proof.dual) <= best
        primal = exact_primal(K, problem, beta, np.array(b))
        assert Fraction(proof.gap) >= primal - best
        assert Fraction(proof.primal) >= primal * (1 - Fraction(1, 10**12))


def test_where_no_multiplier_is_large_enough(solved):
    """Multipliers all of which are below the amount by which the sums are off: several of them give parts of it."""
    _, K, problem, _, other, best = solved
    total = np.abs(other.sum(axis=0)).sum() / 2
    assert (-other).max() < total
    proof, _ = certify_joint(problem, gram_for(Precomputed(), K).proof, other)
    assert proof.gap < np.inf
    assert Fraction(proof.dual) <= best


def values(K, problem, beta):
    """P(β, 0) and D(β)."""
    own, f = (np.arange(problem.n), problem.y), K @ beta
    g = f - f[own][:, None] + 1
    g[own] = 0
    losses = problem.C * (g.max(axis=1) if problem.shared else np.maximum(g, 0).sum(axis=1))
    energy = 0.5 * (beta * f).sum()
    return energy + losses.sum(), beta[own].sum() - energy


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("missed", [-0.3, 0.3])
@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("shared", [True, False])
def test_moving_a_row_counts_the_errors_of_its_excess(shared, scale, missed, sign):
    """Without free biases the one feasible point beside β has the sums of the multipliers for the labels."""
    K, y = scale * matrix(4), np.array([0, 1, 2, 0])
    alpha = np.random.default_rng(4).uniform(0.1, 0.4, (4, 3))
    own = np.arange(4), y
    alpha[own] = 0
    feasible = -alpha
    feasible[own] = alpha.sum(axis=1)
    problem, beta = JointProblem(y, np.ones(4), 3, shared=shared), feasible.copy()
    beta[own] += missed
    proof, _ = certify_joint(problem, Declared(K, 0.05, sign), beta)
    holds(proof, values(K, problem, beta)[0], values(K, problem, feasible)[1])


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("shared", [True, False])
def test_moving_a_class_sum_counts_the_errors_of_its_excess(shared, scale, sign):
    """Of two samples, one of each class, the larger multiplier has to fall to the other one."""
    K, y = scale * matrix(2), np.array([0, 1])
    feasible = np.array([[0.2, -0.2], [-0.2, 0.2]])
    beta = np.array([[0.9, -0.9], [-0.2, 0.2]])
    problem = JointProblem(y, np.ones(2), 2, shared=shared, balanced=True)
    proof, _ = certify_joint(problem, Declared(K, 0.05, sign), beta)
    holds(proof, values(K, problem, beta)[0], values(K, problem, feasible)[1])


def excess(slopes):
    """e of a kernel and biases at which the dual value has these slopes."""
    return 1.0 - np.array(slopes)


def of_two(alpha, C=(2.0, 2.0), shared=True):
    """Two samples, one of each class, with these multipliers."""
    problem = JointProblem(np.array([0, 1]), np.array(C), 2, shared=shared, balanced=True)
    return problem, np.array([[alpha[0], -alpha[0]], [-alpha[1], alpha[1]]])


def test_a_row_is_moved_along_a_slope_that_is_known_up_to_an_error():
    problem = JointProblem(np.array([0]), np.ones(1), 2, shared=False)
    beta, lengths = np.array([[0.75, -0.5]]), np.array([3.0])
    cost = _repair_cost(problem, beta, excess([[2.0, 0.0]]), np.array([0.5]), lengths)
    assert cost >= 0.25 * 2.5 + 0.5 * 0.25**2 * 9.0


def test_a_class_sum_is_moved_along_slopes_that_are_known_up_to_errors():
    """The one multiplier that is 1/4 too large falls, and its label's β with it."""
    problem, beta = of_two((0.75, 0.5))
    e = excess([[2.0, -1.0], [0.0, 0.0]])
    cost = _repair_cost(problem, beta, e, np.full(2, 0.5), np.array([3.0, 0.0]))
    assert cost >= 0.25 * (3.0 + 2 * 0.5) + 0.5 * 2 * 0.25**2 * 9.0


def test_a_route_may_have_several_steps():
    """Class 0 gives to 1, and 1 to 2: neither may keep its multiplier."""
    problem = JointProblem(np.arange(3), np.ones(3), 3, shared=True, balanced=True)
    beta = np.array([[0.5, -0.5, 0.0], [0.0, 0.5, -0.5], [0.0, 0.0, 0.0]])
    assert _repair_cost(problem, beta, excess(np.eye(3)), np.zeros(3), np.zeros(3)) >= 1.0


def test_several_multipliers_that_are_too_small_alone():
    problem = JointProblem(np.array([0, 0, 1]), np.ones(3), 2, shared=True, balanced=True)
    beta = np.array([[0.25, -0.25], [0.25, -0.25], [-0.0625, 0.0625]])
    e = excess([[0.0, 0.0], [10.0, 0.0], [0.0, 0.0]])
    assert _repair_cost(problem, beta, e, np.zeros(3), np.zeros(3)) >= (0.4375 - 0.25) * 10.0


def test_an_excess_over_the_shared_bound_is_moved():
    """Where multipliers add up to more than C, one of them falls, and what falls is missing in the class sums."""
    over = 2.0**-52
    problem = JointProblem(np.array([0]), np.ones(1), 2, shared=True)
    cost = _repair_cost(problem, np.array([[1.0, -1.0 - over]]), excess([[0.0, 9.0]]), np.zeros(1), np.zeros(1))
    assert cost >= 9 * over
    problem, beta = of_two((1 + over, 1 + over), C=(1.0, 2.0))
    cost = _repair_cost(problem, beta, excess([[0.0, 0.0], [0.0, 9.0]]), np.zeros(2), np.zeros(2))
    assert cost >= 9 * over


def test_weights_that_are_not_the_combination_have_other_slopes():
    """One sample x = 1 and weights beside β: the slopes at β differ from those at the weights."""
    problem, rng = JointProblem(np.array([0]), np.full(1, 3.0), 2, shared=False), np.random.default_rng(0)
    for _ in range(200):
        a, missed = rng.uniform(0, 3), rng.uniform(-1, 1)
        beta = np.array([[a + missed, -a]])
        away = -rng.uniform(0, 0.5) * beta
        w, apart = beta + away, float(np.linalg.norm(away))
        kept = exact(float(np.linalg.norm(w))), exact(apart)
        at = Ball(w.copy(), np.zeros((1, 2)))
        proof = joint_certificate(problem, beta, at, np.ones(1), "optimality", "float64", kept)
        assert proof.dual <= a - a * a + 1e-12
