"""The certificate of the joint machines finds out a solution that was tampered with."""

import numpy as np
import pytest

from mercer.certificates.joint import certify_joint
from mercer.kernels.names import as_kernel
from mercer.places import gram_for
from mercer.problems.multiclass import JointProblem
from mercer.solvers.joint.ascent import solve_joint
from mercer.solvers.solution import Stop
from reference.multiclass import clouds


@pytest.mark.parametrize("shared", [True, False])
def test_the_certificate_sees_every_kind_of_fault(shared):
    """Not the solver's word: a β that was tampered with is found out, by name."""
    X, y = clouds(13)
    gram = gram_for(as_kernel("rbf", degree=3, gamma=0.4, coef0=0.0), X)
    problem = JointProblem(y.astype(np.intp), np.ones(len(y)), 4, shared=shared)
    solution, good = solve_joint(problem, gram, Stop(tol=1e-9, max_iter=10**7))
    assert good.violation <= 1e-9
    assert all(residual <= 1e-8 for residual in good.kkt.values())
    free = int(np.flatnonzero(((solution.beta < -1e-3) & (solution.beta > -0.9)).any(axis=1))[0])
    k = int(np.argmin(np.where(np.arange(4) == y[free], 0.0, solution.beta[free])))

    def tampered(change):
        beta = solution.beta.copy()
        beta[free, k] -= change
        beta[free, y[free]] += change
        return certify_joint(problem, gram, beta)[0]

    less = tampered(-0.5 * abs(solution.beta[free, k]))
    assert less.gap > 1e-6
    assert less.violation > 1e-3
    assert less.kkt["primal feasibility"] > 1e-3 or less.kkt["complementary slackness"] > 1e-3
    assert tampered(5.0).kkt["dual feasibility: box"] > 1.0
    unbalanced = solution.beta.copy()
    unbalanced[free, y[free]] += 0.25
    assert certify_joint(problem, gram, unbalanced)[0].kkt["dual feasibility: equality"] == pytest.approx(0.25)


@pytest.mark.parametrize("shared", [True, False])
def test_a_free_bias_needs_balanced_classes(shared):
    """One sample's multipliers moved within the sample: its own sum holds, those of two classes do not."""
    X, y = clouds(13)
    gram = gram_for(as_kernel("rbf", degree=3, gamma=0.4, coef0=0.0), X)
    beta = np.zeros((len(y), 4))
    beta[0, y[0]], beta[0, (y[0] + 1) % 4] = 0.25, -0.25
    for balanced, residual in ((True, 0.25), (False, 0.0)):
        problem = JointProblem(y.astype(np.intp), np.ones(len(y)), 4, shared=shared, balanced=balanced)
        proof = certify_joint(problem, gram, beta)[0]
        assert proof.kkt["dual feasibility: equality"] == pytest.approx(residual)


@pytest.mark.parametrize("shared", [True, False])
def test_a_free_bias_costs_nothing_where_classes_are_not_balanced(shared):
    """`primal` is that of f = Kβ + b, and `dual` at most the dual value, by the formulas of the problem's page."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(9, 2)), np.arange(9) % 3
    own = np.arange(9), y
    gram = gram_for(as_kernel("linear"), X)
    alpha = rng.uniform(0, 0.5, (9, 3))
    alpha[own] = 0
    beta = -alpha
    beta[own] = alpha.sum(axis=1)
    for b in (np.array([-3.0, 1.0, 2.0]), np.array([3.0, -1.0, -2.0])):
        problem = JointProblem(y, np.ones(9), 3, shared=shared, balanced=True, b=b)
        found, _ = certify_joint(problem, gram, beta)
        f = X @ (X.T @ beta) + b
        g = f - f[own][:, None] + 1
        g[own] = 0
        losses = g.max(axis=1) if shared else np.maximum(g, 0).sum(axis=1)
        energy = 0.5 * np.sum((X.T @ beta) ** 2)
        assert np.abs(beta.sum(axis=0)).max() > 0.1
        assert found.primal == pytest.approx(energy + losses.sum(), rel=1e-12)
        assert found.dual <= beta[own].sum() - energy
