"""Tolerances follow the scale of what is measured: scaled copies of a problem give the same model, scaled."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer import SVDD, SVR, NuSVR, OneClassSVM, QuantileSVR
from mercer.estimators.fitting.families.dual_machine import target_unit

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3)) + np.array([5, 0, 0])
Y = X[:, 0] + 0.3 * np.sin(3 * X[:, 1])


def enclosing_ball(Z):
    """The radius of the smallest ball around Z by its definition: a smooth problem in the centre and R²."""
    start = np.append(Z.mean(axis=0), ((Z - Z.mean(axis=0)) ** 2).sum(axis=1).max())
    inside = {"type": "ineq", "fun": lambda v: v[-1] - ((Z - v[:-1]) ** 2).sum(axis=1)}
    found = minimize(lambda v: v[-1], start, constraints=[inside], method="SLSQP", options={"ftol": 1e-14})
    return float(np.sqrt(found.x[-1]))


@pytest.mark.parametrize("scale", [1e3, 1.0, 0.01, 1e-3, 1e-6])
def test_the_ball_is_the_same_in_every_unit(scale):
    model = SVDD(nu=1e-3, kernel="linear").fit(X * scale)
    assert model.converged_
    assert model.certificate_.violation <= 1e-3
    assert model.radius_ / scale == pytest.approx(enclosing_ball(X), rel=1e-3)


@pytest.mark.parametrize("machine", [SVDD, OneClassSVM])
@pytest.mark.parametrize("scale", [0.01, 1e-3, 1e-6])
def test_novelty_detectors_in_small_units(machine, scale):
    large, small = (machine(nu=0.1, kernel="linear", tol=1e-6).fit(X * s) for s in (1.0, scale))
    assert large.converged_
    assert small.converged_
    assert abs((small.predict(X * scale) < 0).mean() - 0.1) <= 0.03
    f = large.decision_function(X)
    np.testing.assert_allclose(small.decision_function(X * scale) / scale**2, f, atol=1e-4 * np.abs(f).max())


def test_samples_that_the_kernel_hardly_tells_apart():
    """Far from the origin, or under a flat Gaussian, K is nearly constant: its size says nothing of what f can be."""
    model = OneClassSVM(nu=0.2, gamma=1e-5).fit(X)
    assert abs((model.predict(X) < 0).mean() - 0.2) <= 0.05
    far = SVDD(nu=1e-3, kernel="linear").fit(1e-2 * X + 3.0)
    assert far.radius_ == pytest.approx(1e-2 * enclosing_ball(X), rel=1e-2)


@pytest.mark.parametrize("size", [1e-4, 1e-8])
@pytest.mark.parametrize(
    "machine",
    [
        lambda t: SVR(epsilon=0.1 * t, C=10 * t),
        lambda t: SVR(epsilon=0.1 * t, kernel="linear", C=10 * t),
        lambda t: SVR(loss="squared_epsilon_insensitive", epsilon=0.1 * t, C=10),
        lambda t: SVR(loss="huber", delta=t),
        lambda t: NuSVR(C=t),
        lambda t: QuantileSVR([0.2, 0.7], C=t),
    ],
)
def test_regression_of_small_targets_is_the_same_model_scaled(machine, size):
    large, small = (machine(t).fit(X, Y * t) for t in (1.0, size))
    assert large.converged_
    assert small.converged_
    np.testing.assert_allclose(small.predict(X) / size, large.predict(X), atol=5e-3)


def test_a_small_linear_target_is_learnt():
    assert SVR(epsilon=0, kernel="linear", C=1e3).fit(X, X[:, 0] * 1e-4).score(X, X[:, 0] * 1e-4) > 0.99


@pytest.mark.parametrize("machine", [SVDD, OneClassSVM])
@pytest.mark.parametrize("weight", [1e4, 1e-4])
def test_converged_means_a_violation_of_at_most_tol(machine, weight):
    """With weights, and where rows repeat: the violation is recomputed here, from differences."""
    rng = np.random.default_rng(1)
    Z = rng.integers(5, size=(200, 2)).astype(float)  # at most 25 distinct rows
    w = weight * rng.integers(1, 4, size=200)
    model = machine(nu=0.3, gamma=0.5).fit(Z, sample_weight=w)
    assert model.converged_
    beta = np.zeros(200)
    beta[model.support_] = model.dual_coef_[0]
    u = np.exp(-0.5 * ((Z[:, None] - Z) ** 2).sum(-1)) @ beta
    bound = w if machine is OneClassSVM else w / (0.3 * w.sum())
    h = -u  # k(x, x) is 1 everywhere, which moves the gradient of SVDD by a constant
    violation = h[beta < bound * (1 - 1e-12)].max() - h[beta > 1e-12 * bound].min()
    heaviest = np.bincount(np.unique(Z, axis=0, return_inverse=True)[1].ravel(), weights=w).max()
    assert violation <= 1e-3 * min(1.0, heaviest if machine is OneClassSVM else 1.0) * (1 + 1e-6)
    assert model.certificate_.violation <= 1e-3


@pytest.mark.parametrize(
    ("y", "unit"),
    [
        ([-1.0, 1.0], 1.0),
        ([-1e5, 1e5], 1.0),
        ([-1e-4, 1e-4], 1e-4),
        ([0.0, 0.0], 1.0),
        ([7e-3, 7e-3], 7e-12),  # constant: what float64 resolves of it
        ([1e-200, -1e-200], 1.0),
    ],
)
def test_the_unit_of_targets(y, unit):
    assert target_unit(np.array(y), np.ones(2)) == pytest.approx(unit, rel=1e-12)
