"""Exercises and examples of the lecture notes, as numbers: what they ask to prove holds for what mercer computes.

Igel's 4.1 and 4.2 are in tests/inspection/test_rkhs.py, his 4.4 in tests/notes/teaching/test_steps.py.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from mercer import SVC, KernelMachineClassifier, RLSRegressor, certify, datasets
from mercer.inspection.features import Monomials
from mercer.kernels import Gaussian, Linear, gamma_from_sigma
from mercer.notes.theory import (
    dichotomies,
    fewest_errors,
    log_likelihood,
    log_posterior,
    risk,
)
from mercer.problems.classification import soft_margin, squared_soft_margin
from mercer.problems.quadratic_programs import soft_margin_dual, soft_margin_primal
from mercer.runtime.errors import NotSeparableError

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y = np.where(X[:, 0] + 0.5 * rng.normal(size=20) > 0, 1.0, -1.0)
K = X @ X.T
C = 0.8


def dual_value(problem, beta):
    program = problem.matrices(K)
    return -(0.5 * beta @ program.P @ beta + program.q @ beta)


def feasible(bound):
    """Any α with Σα_iy_i = 0, far from the optimum."""
    alpha = rng.uniform(0, bound, len(Y))
    high, low = (Y > 0) @ alpha, (Y < 0) @ alpha
    return alpha * np.where(Y > 0, min(1, low / high), min(1, high / low))


@pytest.mark.parametrize("machine", ["hard", "1-norm", "2-norm"])
@pytest.mark.parametrize("bias", [True, False])
def test_igel_4_3_the_dual_is_the_lagrangian_with_the_conditions_inserted(machine, bias):
    """For any α, the least value of the Lagrangian over w, b and ξ is the dual that mercer solves."""
    problem = {
        "hard": soft_margin(Y, np.full(20, np.inf)),
        "1-norm": soft_margin(Y, np.full(20, C)),
        "2-norm": squared_soft_margin(Y, np.full(20, C)),
    }[machine]
    alpha = feasible(C) if bias else rng.uniform(0, C, 20)
    problem = problem if bias else problem.without_bias()

    def lagrangian(w, b, xi):
        margins = Y * (X @ w + b)
        if machine == "hard":
            return 0.5 * w @ w - alpha @ (margins - 1)
        if machine == "1-norm":
            return 0.5 * w @ w + C * xi.sum() - alpha @ (margins - 1 + xi) - (C - alpha) @ xi
        return 0.5 * w @ w + 0.5 * C * xi @ xi - alpha @ (margins - 1 + xi)

    w, xi = X.T @ (alpha * Y), alpha / C
    dual = dual_value(problem, alpha * Y)
    assert lagrangian(w, 0.0, xi) == pytest.approx(dual, rel=1e-12)
    for _ in range(20):  # no other w and ξ have less, and b does not matter
        step, b = rng.normal(size=3), rng.normal() if bias else 0.0
        assert lagrangian(w + step, b, xi + 0.1 * rng.normal(size=20)) >= dual - 1e-12


@pytest.mark.parametrize("price", [0.1, 0.8, 50.0])
def test_igel_4_5_any_r_between_the_two_ends_closes_the_gap(price):
    model = SVC(C=price, kernel="linear", tol=1e-11).fit(X, Y)
    alpha = np.zeros(20)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    gaps_close(K, Y, alpha, price, 1e-8)


def test_igel_4_5_where_no_vector_is_free():
    """Then r may be anything in an interval."""
    x, y = np.array([[0.0], [1.0], [4.0]]), np.array([-1.0, 1.0, 1.0])
    assert gaps_close(x @ x.T, y, np.array([0.1, 0.1, 0.0]), 0.1, 1e-15) == pytest.approx((0.6, 0.9))


def gaps_close(K, y, alpha, price, tol):
    g = 1 - y * (K @ (y * alpha))
    up = np.where(y > 0, alpha < price, alpha > 0)
    down = np.where(y > 0, alpha > 0, alpha < price)
    low, high = (y * g)[up].max(), (y * g)[down].min()
    assert low <= high + tol
    for r in (low, 0.5 * (low + high), high):
        assert (alpha[g > y * r + 10 * tol] == price).all()
        assert (alpha[g < y * r - 10 * tol] == 0).all()
        xi = np.maximum(0, g - y * r)
        np.testing.assert_allclose(price * xi - alpha * g, -y * alpha * r, atol=20 * tol * price)
        primal = 0.5 * (y * alpha) @ K @ (y * alpha) + price * xi.sum()
        dual = alpha.sum() - 0.5 * (y * alpha) @ K @ (y * alpha)
        assert primal - dual == pytest.approx(0, abs=200 * tol * price)
    return low, high


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_shalev_shwartz_all_monomials_of_degree_k_give_the_polynomial_kernel(degree):
    """ψ_J = Π x_{J_i} over all J in {0, …, n}^k, with x₀ = 1."""
    whole = np.column_stack([np.ones(20), X])
    psi = np.column_stack([np.prod(whole[:, J], axis=1) for J in itertools.product(range(4), repeat=degree)])
    assert psi.shape == (20, 4**degree)
    np.testing.assert_allclose(psi @ psi.T, ((Linear() + 1) ** degree)(X), rtol=1e-12, atol=1e-12)
    ours = Monomials((Linear() + 1) ** degree, ordered=True).fit_transform(X)
    np.testing.assert_allclose(ours @ ours.T, psi @ psi.T, rtol=1e-12, atol=1e-12)


def test_rosasco_the_primal_in_c_and_xi_has_the_value_of_the_dual():
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    gauss = Gaussian(gamma=0.3)(X)
    prices = np.where(np.arange(20) % 3, C, np.inf)  # some samples without slack
    for bias, price in itertools.product((True, False), (C, np.inf, prices)):
        program = soft_margin_primal(gauss, Y, C=price, bias=bias)
        assert np.isfinite(program.q).all()
        assert len(program.h) == 20 + np.isfinite(np.broadcast_to(price, 20)).sum()
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cones = [clarabel.NonnegativeConeT(len(program.h))]
        found = clarabel.DefaultSolver(
            sparse.csc_matrix(np.triu(program.P)), program.q, sparse.csc_matrix(program.G), program.h, cones, settings
        ).solve()
        dual = soft_margin_dual(gauss, Y > 0, C=price, bias=bias)
        beta = Y * np.array(found.z[:20])  # the multipliers of the margins
        assert found.obj_val == pytest.approx(-(0.5 * beta @ dual.P @ beta + dual.q @ beta), rel=1e-6)
        assert (beta >= dual.lower - 1e-6).all()
        assert (beta <= dual.upper + 1e-6).all()
        assert np.abs(dual.A @ beta - dual.totals).max(initial=0.0) < 1e-6
        if price is prices:
            continue
        model = SVC(C=price, kernel=Gaussian(gamma=0.3), bias=bias, tol=1e-9).fit(X, Y)
        assert found.obj_val == pytest.approx(model.certificate_.dual, rel=1e-6)
        c = np.array(found.x[:20])
        np.testing.assert_allclose(gauss @ c, model.function_(X) - model.intercept_, atol=1e-4)
    with pytest.raises(ValueError, match="K must be square"):
        soft_margin_primal(gauss, Y[:-1], C=C)


def test_igel_2_2_least_squares_is_the_most_likely_function():
    y = X[:, 0] + 0.3 * rng.normal(size=20)
    variance, scale = 0.09, 2.0
    model = RLSRegressor(kernel=Gaussian(gamma=0.3), lam=variance / scale, bias=False).fit(X, y)
    best = model.function_
    least = log_posterior(y, best(X), norm=best.norm, variance=variance, scale=scale)
    for _ in range(20):
        other = best + 0.05 * rng.normal() * type(best)(X, rng.normal(size=20), kernel=best.kernel)
        assert log_posterior(y, other(X), norm=other.norm, variance=variance, scale=scale) < least
    for factor in (0.99, 1.01):
        assert log_posterior(y, factor * best(X), norm=factor * best.norm, variance=variance, scale=scale) < least
    spread = risk(y, best(X), loss="squared")
    assert spread == pytest.approx(np.mean((y - best(X)) ** 2))
    assert all(
        log_likelihood(y, best(X), variance=spread) > log_likelihood(y, best(X), variance=c * spread)
        for c in (0.8, 1.25)
    )
    density = np.prod(np.exp(-((y - best(X)) ** 2) / (2 * spread)) / math.sqrt(2 * math.pi * spread))
    assert log_likelihood(y, best(X), variance=spread) == pytest.approx(math.log(density))


def test_igel_4_2_3_any_increasing_penalty_has_a_minimiser_in_the_span():
    """Σ loss + ϑ‖f‖ instead of ‖f‖²: it is the machine whose λ is the slope of the penalty at its own ‖f‖²."""
    theta, kernel = 1.5, Gaussian(gamma=0.3)

    def machine(lam):
        return KernelMachineClassifier(kernel=kernel, loss="logistic", lam=lam, bias=False, tol=1e-10).fit(X, Y)

    low, high = 1e-2, 1e2
    for _ in range(18):  # λ = ϑ/(2‖f_λ‖)
        lam = math.sqrt(low * high)
        low, high = (lam, high) if lam < theta / (2 * machine(lam).function_.norm) else (low, lam)
    f = machine(lam).function_
    gram = kernel(X)
    root = np.linalg.cholesky(gram + 1e-12 * np.eye(20))

    def objective(v):  # f = Σ c_j k(x_j, ·) with v = root'c, so that ‖f‖ = ‖v‖
        return np.log1p(np.exp(-Y * (root @ v))).sum() + theta * np.linalg.norm(v)

    found = optimize.minimize(objective, rng.normal(size=20), method="BFGS", options={"gtol": 1e-7})
    own = np.log1p(np.exp(-Y * f(X))).sum() + theta * f.norm
    assert own == pytest.approx(found.fun, rel=1e-8)


def test_mozharovskyi_the_fewest_errors():
    x = np.array([[0.0, 0.0], [1.0, 0.1], [0.2, 1.0], [1.1, 1.0], [3.0, 3.0], [3.1, 2.0], [2.2, 3.0]])
    y = np.array([-1, -1, -1, 1, 1, 1, -1])
    found = fewest_errors(x, y).rows
    assert len(found) == fewest_errors(x, -y).least == 1
    rest = np.delete(np.arange(7), found)
    SVC(C=np.inf, kernel="linear").fit(x[rest], y[rest])  # no NotSeparableError
    with pytest.raises(NotSeparableError):
        SVC(C=np.inf, kernel="linear").fit(x, y)
    assert fewest_errors([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [1, 1, -1, -1]).least == 1  # XOR
    assert fewest_errors([[1.0], [2.0]], [1, -1]).least == 0
    assert fewest_errors([[1.0], [2.0]], [1, -1], bias=False).least == 1
    model = SVC(C=100.0, kernel="linear").fit(x, y)
    f = model.decision_function(x)
    assert model.margins(x, y).n_errors >= 1
    powers = [len(y) * risk(y, f, loss="hinge", power=power) for power in (1e-6, 1e-3, 1.0)]
    assert powers[0] == pytest.approx(np.sum(y * f < 1), abs=1e-3)
    assert powers[2] == pytest.approx(model.margins(x, y).slacks.sum())
    with pytest.raises(ValueError, match="only 1 label"):
        fewest_errors([[1.0]], [2])


def test_li_the_dual_at_any_feasible_alpha_is_a_bound():
    best = SVC(C=C, kernel="linear", tol=1e-10).fit(X, Y).certificate_
    for _ in range(5):
        proof = certify(SVC(kernel="linear", C=C), X, Y, feasible(C))
        assert proof.dual <= best.primal
        assert proof.primal >= best.dual


def test_widths_as_each_note_writes_them():
    x, z, sigma = np.array([[0.3, 1.0]]), np.array([[1.0, -0.5]]), 0.7
    square = float(np.sum((x - z) ** 2))
    for convention, divisor in (("2σ²", 2 * sigma**2), ("σ²", sigma**2), ("2σ", 2 * sigma)):
        kernel = Gaussian(gamma=gamma_from_sigma(sigma, convention=convention))
        assert kernel(x, z)[0, 0] == pytest.approx(math.exp(-square / divisor), rel=1e-14)
        written = convention.replace("σ", "sigma").replace("²", "^2")
        assert gamma_from_sigma(sigma, convention=written) == kernel.gamma
    assert Gaussian(gamma=gamma_from_sigma(sigma))(x, z) == pytest.approx(Gaussian(sigma=sigma)(x, z), rel=1e-14)
    with pytest.raises(ValueError, match="convention"):
        gamma_from_sigma(1.0, convention="σ")


def test_numbers_by_hand():
    assert [dichotomies(d, 5) for d in range(1, 7)] == [2, 10, 22, 30, 32, 32]
    data, y = datasets.location(60, distance=2.0)
    once = SVC(C=1.0, kernel="linear", tol=1e-9).fit(data, y)
    twice = SVC(C=0.25, kernel="linear", tol=1e-9).fit(2 * data, y)  # the same plane, twice the margin
    assert 1 / twice.rkhs_norm_ == pytest.approx(2 / once.rkhs_norm_, rel=1e-6)
    np.testing.assert_allclose(twice.decision_function(2 * data), once.decision_function(data), atol=1e-6)
