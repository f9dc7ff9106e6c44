"""mercer.certify: α from other libraries, from formulas, and α that are no solution."""

import numpy as np
import pytest
import sklearn.svm
from scipy.optimize import minimize

import mercer
from mercer.kernels import Gaussian, Spectrum
from mercer.problems.classification import soft_margin, squared_soft_margin
from mercer.problems.regression import epsilon_insensitive
from reference.qp import by_clarabel

rng = np.random.default_rng(1)
X = rng.normal(size=(50, 2))
Y = np.where(X[:, 0] + 0.5 * rng.normal(size=50) > 0, "b", "a")
S = np.where(Y == "b", 1.0, -1.0)


def alpha_of(model):
    alpha = np.zeros(len(Y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha


def test_scikit_learns():
    for tol in (1e-2, 1e-8):
        other = sklearn.svm.SVC(C=2.0, gamma=0.5, tol=tol).fit(X, Y)
        found = mercer.certify(Gaussian(gamma=0.5), X, Y, alpha_of(other), C=2.0)
        own = mercer.SVC(C=2.0, gamma=0.5, tol=1e-10).fit(X, Y).certificate_
        assert found.dual <= own.primal
        assert found.primal >= own.dual
        assert found.primal - own.dual <= (found.gap + own.gap) * (1 + 1e-9) + 1e-12
        # Its kernel values are float32 numbers, so that its last digits are not what tol says.
        assert found.violation <= 2 * tol + 1e-6
        assert found.b[0] == pytest.approx(other.intercept_[0], abs=10 * tol + 1e-6)
        assert found.proves == "optimality"


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_quadratic_programs(slack, bias):
    C = rng.uniform(0.5, 2.0, size=50)
    problem = (squared_soft_margin if slack == "l2" else soft_margin)(S, C)
    problem = problem if bias else problem.without_bias()
    K = Gaussian(gamma=0.5)(X)
    value, beta = by_clarabel(problem, K)
    found = mercer.certify("precomputed", K, Y, S * beta, C=C, slack=slack, bias=bias)
    assert found.dual == pytest.approx(value, rel=1e-7)
    assert found.gap <= 1e-6 * value
    assert found.primal >= value * (1 - 1e-9)


def test_any_feasible_alpha_gives_bounds():
    best = mercer.SVC(C=1.0, gamma=0.5, tol=1e-10).fit(X, Y).certificate_
    for seed in range(5):
        wish = np.random.default_rng(seed).random(50)
        beta = soft_margin(S, np.ones(50)).nearest_feasible(S * wish)
        found = mercer.certify(Gaussian(gamma=0.5), X, Y, S * beta)
        assert found.dual <= best.primal
        assert found.primal >= best.dual
        assert found.gap >= found.primal - found.dual - 1e-9


def test_what_is_no_alpha():
    good = alpha_of(sklearn.svm.SVC(C=1.0, gamma=0.5).fit(X, Y))
    kernel = Gaussian(gamma=0.5)
    for alpha, options, message in [
        (good, {"C": 0.5}, r"outside of its box by 0\.5: it must be between 0 and 0\.5"),
        (-good, {}, "outside of its box"),
        (np.abs(S - 1) / 4, {}, "is not 0, which a machine with bias needs"),
        (good[:-1], {}, "for each of the 50 samples"),
        (good, {"C": np.inf}, "above 0 and finite"),
        (good, {"slack": "l3"}, "must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            mercer.certify(kernel, X, Y, alpha, **options)
    with pytest.raises(ValueError, match="two classes, but y has 3"):
        mercer.certify(kernel, X, np.arange(50) % 3, good)
    with pytest.raises(ValueError, match="X has 10 samples, but y has 50"):
        mercer.certify(kernel, X[:10], Y, good)


def test_strings():
    words, labels = ["ab", "abab", "ba", "bbb"], [0, 0, 1, 1]
    model = mercer.SVC(kernel=Spectrum(1), C=1.0, tol=1e-8).fit(words, labels)
    alpha = np.zeros(4)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert mercer.certify(Spectrum(1), words, labels, alpha).gap < 1e-6


def test_matrices_for_a_solver_of_quadratic_programs():
    problem = soft_margin(S[:12], np.ones(12))
    P, q, A, totals, lower, upper = problem.matrices(Gaussian(gamma=0.5)(X[:12]))
    found = minimize(
        lambda b: 0.5 * b @ P @ b + q @ b,
        np.zeros(12),
        jac=lambda b: P @ b + q,
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": lambda b: A @ b - totals, "jac": lambda b: A},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    own = mercer.SVC(C=1.0, gamma=0.5, tol=1e-10).fit(X[:12], Y[:12]).certificate_.dual
    assert -found.fun == pytest.approx(own, rel=1e-7)
    with pytest.raises(ValueError, match="K must be square"):
        problem.matrices(np.eye(11))
    twins = epsilon_insensitive(X[:3, 0], np.ones(3), 0.1)
    assert twins.matrices(np.eye(3)).P.shape == (6, 6)
