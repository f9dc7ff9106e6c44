"""The linear machines' certificate against naive loops, which know a sample's two sides as two variables."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.linear import certify_linear
from mercer.kernels import Precomputed
from mercer.places import gram_for
from mercer.places.choose import rows_for
from mercer.problems.linear_problem import epsilon_insensitive, hinge
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.solution import Stop
from reference.certificate import box_residual, certificate, equality_residual, largest, wish_residual


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("bias", [np.inf, 2.0, 0.0])
@pytest.mark.parametrize("epsilon", [None, 0.0, 0.4])
def test_same_as_the_naive_certificate(squared, bias, epsilon):
    rng = np.random.default_rng(5)
    X, C = rng.normal(size=(60, 3)), rng.uniform(0.5, 2, 60)
    y = rng.choice([-1.0, 1.0], 60)
    if epsilon is None:
        problem = hinge(y, C, bias, squared)
    else:
        problem = epsilon_insensitive(y * rng.uniform(0, 2, 60), C, epsilon, bias, squared)
    beta = np.clip(rng.normal(size=60) * (rng.random(60) < 0.7), problem.lower, problem.upper)
    beta = problem.balanced(beta)
    w, b = rng.normal(size=3), 0.3 if bias else 0.0
    found = certify_linear(problem, rows_for(X, 1), w, b, beta)

    dual, variables = problem.dual, problem.dual_variables(beta)
    residual = dual.p - (X @ w + b)[dual.row] - dual.d * variables
    r = residual + dual.d * variables
    losses = np.array([largest(*one) for one in zip(r, dual.d, dual.lower, dual.upper, strict=True)])
    terms = losses - variables * (r - dual.d * variables / 2)
    regular = (b / bias) ** 2 if np.isfinite(bias) and bias else 0.0
    apart = ((w - X.T @ beta) ** 2).sum()
    if np.isfinite(bias) and bias:
        apart += (b / bias - bias * beta.sum()) ** 2
    assert found.primal == pytest.approx(0.5 * (w @ w + regular) + losses.sum(), rel=1e-13)
    assert found.gap == pytest.approx(0.5 * apart + terms.sum(), rel=1e-12)
    assert found.violation == pytest.approx(dual.violation(variables, residual), rel=1e-12)
    assert found.worst == dual.row[np.argmax(terms)]
    naive = {
        "dual feasibility: box": box_residual(dual, variables),
        "dual feasibility: equality": equality_residual(dual, variables),
        "primal feasibility": wish_residual(dual, variables, residual, away=True),
        "complementary slackness": wish_residual(dual, variables, residual, away=False),
    }
    assert {name: found.kkt[name] for name in naive} == pytest.approx(naive, abs=1e-12)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("epsilon", [None, 0.4])
@pytest.mark.parametrize("off", [1e-14, 1e-6, 0.01, 1.0, 30.0])
def test_a_sum_that_is_off_claims_no_more_than_the_optimum(squared, epsilon, off):
    """The optimum is that of a generic solver; β is near it, but its sum is not zero."""
    rng = np.random.default_rng(2)
    X, C = rng.normal(size=(30, 2)), rng.uniform(0.5, 2, 30)
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=30)) + (0 if epsilon is None else X[:, 1])
    problem = hinge(y, C, np.inf, squared) if epsilon is None else epsilon_insensitive(y, C, epsilon, np.inf, squared)
    dual, rows = problem.dual, rows_for(X, 1)
    K = X @ X.T
    best = solve_certified(dual, gram_for(Precomputed(), K), Stop(tol=1e-11, max_iter=10**6))[0].beta
    optimum, signed = certificate(dual, K, best), problem.dual.row_coefficients(best, 30)
    for j in range(30):
        beta = signed.copy()
        beta[j] = np.clip(beta[j] + off * (1 if j % 2 else -1), problem.lower[j], problem.upper[j])
        for w, b in ((X.T @ signed, float(optimum.b[0])), (X.T @ beta, float(optimum.b[0]) + 0.2)):
            found = certify_linear(problem, rows, w, b, beta)
            primal = 0.5 * w @ w + sum(
                largest(*one)
                for one in zip(dual.p - (X @ w + b)[dual.row], dual.d, dual.lower, dual.upper, strict=True)
            )
            assert found.dual <= optimum.primal + 1e-9
            assert found.primal >= primal - 1e-9
            assert found.gap >= primal - optimum.primal - 1e-9
            if off == 1e-14:
                assert found.gap <= primal - optimum.dual + 0.5 * ((w - X.T @ beta) ** 2).sum() + 1e-6


def test_the_dual_value_is_true_where_w_hides_the_combination():
    """w is so large that w − X'β is w: X'β must be known from elsewhere."""
    problem, beta = hinge(np.ones(1), np.ones(1), 0.0, squared=False), np.array([1e-10])
    found = certify_linear(problem, rows_for(np.ones((1, 1)), 1), np.array([1e8]), 0.0, beta)
    exact = Fraction(beta[0])
    assert Fraction(found.dual) <= exact - exact**2 / 2
