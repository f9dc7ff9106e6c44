"""Rows of the lecture notes whose formula no other test writes out: C = ½, densities, questions, steps against ε."""

import numpy as np
import pytest
from scipy import optimize, stats

from mercer import SVC, OneClassSVM, rkhs, steps
from mercer.kernels import Gaussian

RNG = np.random.default_rng(45)
X = RNG.normal(size=(40, 2))
S = np.where(X[:, 0] + 0.6 * RNG.normal(size=40) > 0, 1.0, -1.0)
K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))


def minimum_over_w_and_xi(Z, s):
    """Σξ + ‖w‖² at its minimum, with s_i⟨w, z_i⟩ ≥ 1 − ξ_i (Rosasco, the geometric approach), by SLSQP."""
    n, d = Z.shape
    rows = np.column_stack([s[:, None] * Z, np.eye(n)])
    solved = optimize.minimize(
        lambda v: v[:d] @ v[:d] + v[d:].sum(),
        np.append(np.zeros(d), np.ones(n)),
        jac=lambda v: np.append(2 * v[:d], np.ones(n)),
        constraints=[{"type": "ineq", "fun": lambda v: rows @ v - 1, "jac": lambda v: rows}],
        bounds=[(None, None)] * d + [(0, None)] * n,
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert solved.success
    return solved.fun


def test_the_sum_of_slacks_and_the_squared_norm_is_twice_the_problem_with_a_penalty_of_one_half():
    half = SVC(C=0.5, kernel="linear", bias=False, tol=1e-10).fit(X, S)
    assert 2 * half.certificate_.primal == pytest.approx(minimum_over_w_and_xi(X, S), rel=1e-7)


def test_densities_by_parzen_and_by_one_class():
    sigma, x = 0.3, X[:, :1]
    points = np.linspace(-2, 2, 9)[:, None]
    expected = stats.norm.pdf(points, loc=x.T, scale=sigma).mean(axis=1)
    weights = np.full(40, 1 / 40 / np.sqrt(2 * np.pi) / sigma)
    np.testing.assert_allclose(rkhs.Function(x, weights, kernel=Gaussian(sigma=sigma))(points), expected, rtol=1e-12)
    whole = OneClassSVM(nu=1.0, kernel=Gaussian(sigma=sigma)).fit(x).decision_function(points)
    np.testing.assert_allclose(np.diff(whole), np.diff(expected) * 40 * np.sqrt(2 * np.pi) * sigma, atol=1e-9)


def test_the_next_question_is_the_sample_nearest_to_the_plane():
    asked = np.r_[np.flatnonzero(S > 0)[:6], np.flatnonzero(S < 0)[:6]]
    others = np.setdiff1d(np.arange(40), asked)
    model = SVC(C=1.0, kernel=Gaussian(gamma=0.5), tol=1e-10).partial_fit(X[asked], S[asked])
    for _ in range(4):
        beta, b = soft_margin_by_smo(K[np.ix_(asked, asked)], S[asked], 1.0, 1e-9)
        distances = (K[:, asked] @ beta + b) / np.sqrt(beta @ K[np.ix_(asked, asked)] @ beta)
        np.testing.assert_allclose(model.signed_distance(X), distances, atol=1e-6)
        nearest = others[np.argmin(np.abs(distances[others]))]
        asked, others = np.append(asked, nearest), others[others != nearest]
        model.partial_fit(X[[nearest]], S[[nearest]])


def soft_margin_by_smo(K, y, C, tol):
    """β and b by algorithm 4.2 with the most violating pair, until it violates by at most tol."""
    beta = np.zeros(len(y))
    while True:
        h = y - K @ beta
        up, low = beta < np.where(y > 0, C, 0), beta > np.where(y > 0, 0, -C)
        i, j = np.argmax(np.where(up, h, -np.inf)), np.argmin(np.where(low, h, np.inf))
        if h[i] - h[j] <= tol:
            free = up & low
            return beta, h[free].mean() if free.any() else 0.5 * (h[i] + h[j])
        room_i, room_j = (C if y[i] > 0 else 0) - beta[i], beta[j] - (0 if y[j] > 0 else -C)
        step = min((h[i] - h[j]) / (K[i, i] + K[j, j] - 2 * K[i, j]), room_i, room_j)
        beta[i] = (C if y[i] > 0 else 0) if step == room_i else beta[i] + step
        beta[j] = (0 if y[j] > 0 else -C) if step == room_j else beta[j] - step


def violation(K, y, alpha, C):
    """max over I_up of y_ig_i less min over I_down (Igel, section 4.3.1)."""
    h = y - K @ (y * alpha)
    up, low = np.where(y > 0, alpha < C, alpha > 0), np.where(y > 0, alpha > 0, alpha < C)
    return h[up].max() - h[low].min()


def test_steps_against_the_tolerance_and_the_order_of_the_samples():
    """A run ends at the first α that violates by at most ε, far sooner than in proportion to 1/ε."""
    for order in (np.arange(40), np.arange(40)[::-1]):
        A, y, G = X[order], S[order], K[np.ix_(order, order)]
        longest = steps(A, y, kernel=Gaussian(gamma=0.5), C=1.0, tol=1e-4)
        violations = np.array([violation(G, y, step.alpha, 1.0) for step in longest])
        counts = [len(steps(A, y, kernel=Gaussian(gamma=0.5), C=1.0, tol=tol)) for tol in (1e-1, 1e-2, 1e-3)]
        assert counts == [1 + int(np.argmax(violations <= tol)) for tol in (1e-1, 1e-2, 1e-3)]
        assert 0 < counts[0] < counts[1] < counts[2] < 30 * counts[0]
