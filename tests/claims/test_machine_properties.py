"""What theory says of the machines, on random data: the ν-property, equivalent machines, quantiles, margins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV

from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR
from mercer.problems.classification import largest_nu
from reference.problems import gram_matrix, noisy_labels, standardised

TOL = 1e-9
seeds = st.integers(0, 10_000)
shares = st.floats(0.05, 0.95)


def data(seed, low=20, high=60):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(low, high))
    X = standardised(rng, n, 3)
    weight = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
    return rng, X, weight


def norm_squared(model, X):
    """‖w‖² from the dual coefficients."""
    K = gram_matrix("rbf", X[model.support_], gamma=model.kernel_.gamma)
    return float(model.dual_coef_[0] @ K @ model.dual_coef_[0])


@given(seed=seeds, share=shares)
def test_nu_svc_bounds_margin_errors_and_is_c_svc(seed, share):
    rng, X, weight = data(seed)
    y = noisy_labels(rng, X)
    nu = share * largest_nu(y, weight)
    model = NuSVC(nu=nu, gamma=0.5, tol=TOL).fit(X, y, sample_weight=weight)
    f = y * model.decision_function(X)
    errors, support = weight[f < 1 - 1e-5].sum(), weight[model.support_].sum()
    assert errors <= nu * weight.sum() + 1e-6
    assert support >= nu * weight.sum() - 1e-6
    C = model.equivalent_C_
    other = SVC(C=C, gamma=0.5, tol=TOL).fit(X, y, sample_weight=weight)
    # The same w; b need not be unique, so it is left out of the comparison.
    difference = (model.decision_function(X) - model.intercept_[0]) - (other.decision_function(X) - other.intercept_[0])
    np.testing.assert_allclose(difference, 0.0, atol=1e-4 * max(1.0, np.sqrt(norm_squared(model, X))))


@given(seed=seeds, nu=shares)
def test_nu_svr_bounds_the_samples_outside_and_is_epsilon_svr(seed, nu):
    rng, X, weight = data(seed)
    t = np.sin(X[:, 0]) + 0.3 * rng.normal(size=len(X))
    model = NuSVR(nu=nu, C=2.0, gamma=0.5, tol=TOL).fit(X, t, sample_weight=weight)
    epsilon = model.epsilon_
    other = SVR(epsilon=epsilon, C=2.0, gamma=0.5, tol=TOL).fit(X, t, sample_weight=weight)
    flat = (model.predict(X) - model.intercept_[0]) - (other.predict(X) - other.intercept_[0])
    np.testing.assert_allclose(flat, 0.0, atol=1e-4)
    if epsilon > 1e-6:
        outside = np.abs(t - model.predict(X)) > epsilon + 1e-6
        assert weight[outside].sum() <= nu * weight.sum() + 1e-6
        assert weight[model.support_].sum() >= nu * weight.sum() - 1e-6


@given(seed=seeds, nu=shares)
def test_one_class_bounds_novelties_and_is_svdd_for_a_gaussian(seed, nu):
    _, X, weight = data(seed)
    model = OneClassSVM(nu=nu, gamma=0.5, tol=TOL).fit(X, sample_weight=weight)
    total = weight.sum()
    assert model.offset_ > 0
    assert weight[model.decision_function(X) < -1e-6].sum() <= nu * total + 1e-6
    assert weight[model.support_].sum() >= nu * total - 1e-6
    ball = SVDD(nu=nu, gamma=0.5, tol=TOL).fit(X, sample_weight=weight)
    # The same minimiser in another scale: f of the ball is 2/(νW) times that of the plane, up to b's interval.
    shift = 2 * model.decision_function(X) / (nu * total) - ball.decision_function(X)
    assert np.ptp(shift) < 1e-5
    dense = np.zeros(len(X))
    dense[model.support_] = model.dual_coef_[0] / (nu * total)
    dense[ball.support_] -= ball.dual_coef_[0]
    K = gram_matrix("rbf", X, gamma=0.5)
    assert dense @ K @ dense < 1e-8


@given(seed=seeds, tau=shares)
def test_a_quantile_has_its_share_below(seed, tau):
    rng, X, weight = data(seed)
    t = X[:, 0] + rng.normal(size=len(X))
    f = QuantileSVR(tau, C=1.0, gamma=0.5, tol=TOL).fit(X, t, sample_weight=weight).predict(X)
    total = weight.sum()
    assert weight[t < f - 1e-6].sum() <= tau * total + 1e-6
    assert weight[t <= f + 1e-6].sum() >= tau * total - 1e-6


@given(seed=seeds)
def test_the_margin_in_its_three_forms(seed):
    """1/ρ² = ‖w‖² = Σα (hard) = Σα − Σα_i²/C_i (2-norm) = Σα − ΣC_iξ_i (1-norm)."""
    rng, X, weight = data(seed)
    y = noisy_labels(rng, X)
    C = 3.0
    one = SVC(C=C, gamma=1.0, tol=TOL).fit(X, y, sample_weight=weight)
    slack = np.maximum(0.0, 1 - y * one.decision_function(X))
    alpha = np.abs(one.dual_coef_[0])
    assert norm_squared(one, X) == pytest.approx(alpha.sum() - C * (weight * slack).sum(), rel=1e-5)
    two = SVC(C=C, gamma=1.0, slack="l2", tol=TOL).fit(X, y, sample_weight=weight)
    alpha = np.abs(two.dual_coef_[0])
    own = C * weight[two.support_]
    assert norm_squared(two, X) == pytest.approx(alpha.sum() - (alpha**2 / own).sum(), rel=1e-5)
    three = SVC(C=np.inf, gamma=4.0, tol=1e-7).fit(X, y)
    assert norm_squared(three, X) == pytest.approx(np.abs(three.dual_coef_[0]).sum(), rel=1e-5)


@given(seed=seeds)
def test_the_2_norm_machine_tends_to_the_hard_margin(seed):
    rng, X, _ = data(seed, 15, 30)
    y = noisy_labels(rng, X)
    hard = SVC(C=np.inf, gamma=4.0, tol=1e-8).fit(X, y)
    size = np.abs(hard.dual_coef_).max()
    f = hard.decision_function(X)
    near, far = (
        np.abs(SVC(C=C * size, gamma=4.0, slack="l2", tol=1e-9).fit(X, y).decision_function(X) - f).max()
        for C in (1e6, 1e2)
    )
    assert near < 1e-4
    assert near <= far


@given(seed=seeds, tau=st.floats(0.1, 0.9), shift=st.floats(-5, 5), scale=st.floats(0.1, 10))
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "huber", "expectile"])
def test_shifting_and_scaling_the_target(loss, seed, tau, shift, scale):
    """y + c moves b alone; s·y with s·ε, s·δ and the price of the scaled loss gives s·f."""
    rng, X, _ = data(seed)
    t = np.sin(X[:, 0]) + 0.3 * rng.normal(size=len(X))
    linear = loss == "epsilon_insensitive"
    options = {"loss": loss, "tau": tau, "gamma": 0.5}
    f = SVR(epsilon=0.1, delta=0.4, C=1.0, tol=TOL, **options).fit(X, t).predict(X)
    # ½‖w‖² grows by s², a linear loss by s, a quadratic one and Huber's, whose slope is δ, by s².
    price = scale if linear else 1.0
    scaled = SVR(epsilon=0.1 * scale, delta=0.4 * scale, C=price, tol=TOL * scale, **options)
    g = scaled.fit(X, scale * t + shift).predict(X)
    np.testing.assert_allclose(np.ptp(g - shift - scale * f), 0.0, atol=1e-5 * scale)


@pytest.mark.parametrize("quantiles", [0.8, (0.9, 0.1, 0.5)])
def test_quantiles_are_scored_by_their_own_loss(quantiles):
    rng = np.random.default_rng(3)
    X, t, weight = rng.normal(size=(60, 2)), rng.normal(size=60), rng.integers(1, 4, size=60).astype(float)
    t += 2 * X[:, 0]
    model = QuantileSVR(quantiles, C=5.0).fit(X, t)

    def loss(tau, f, t):
        return np.where(t > f, tau * (t - f), (1 - tau) * (f - t)).sum()

    repeated = np.repeat(t, weight.astype(int))
    expected = []
    for tau, f in zip(np.atleast_1d(quantiles), np.reshape(model.predict(X), (60, -1)).T, strict=True):
        constant = min(loss(tau, c, repeated) for c in t)  # a quantile of the sample is one of its values
        expected.append(1 - loss(tau, np.repeat(f, weight.astype(int)), repeated) / constant)
    assert model.score(X, t, sample_weight=weight) == pytest.approx(np.mean(expected))
    assert 0.3 < model.score(X, t) < 1
    assert GridSearchCV(QuantileSVR(quantiles), {"C": [1e-4, 5.0]}, cv=3).fit(X, t).best_params_ == {"C": 5.0}
