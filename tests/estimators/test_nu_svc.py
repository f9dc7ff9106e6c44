"""ν-SVC: what its tolerance means, and what "auto" does where the usual ν is of no use.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Agreement with scikit-learn, and weights: tests/estimators/test_machines_agree.py.
What ν bounds, for random problems: tests/claims/test_machine_properties.py. Numbers near the ends of float64:
tests/bad_inputs/test_extremes.py. Leave-one-out: tests/model_selection/paths/test_leave_one_out.py.
"""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from mercer import SVC, NuSVC


def violation_of_f(model, X, y, weight, f=None):
    """The violation in f's scale, from public numbers only."""
    s = np.where(y == model.classes_[1], 1.0, -1.0)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    f = model.decision_function(X) if f is None else f
    C, r = model.equivalent_C_ * weight, s - f
    grow = beta < np.where(s > 0, C, 0.0) - 1e-12 * C
    shrink = beta > np.where(s > 0, 0.0, -C) + 1e-12 * C
    sides = [r[grow & side].max(initial=-np.inf) - r[shrink & side].min(initial=np.inf) for side in (s > 0, s < 0)]
    return max(0.0, *sides)


@pytest.mark.parametrize("weight", [None, 1e4, 1e-4, "mixed"])
def test_tol_is_in_the_scale_of_f(weight):
    """Whatever the weights, and where rows repeat; two classes have one b each before the division by ρ."""
    rng = np.random.default_rng(1)
    X = rng.integers(5, size=(200, 2)).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=200) > 4).astype(int)
    w = rng.uniform(1e-3, 1e4, 200) if weight == "mixed" else np.full(200, 1.0 if weight is None else weight)
    model = NuSVC(nu=0.5).fit(X, y, sample_weight=w)
    assert model.converged_
    assert model.certificate_.violation <= 1e-3
    assert violation_of_f(model, X, y, w) <= 1e-3 * (1 + 1e-6)


def test_its_C_makes_the_same_machine():
    """As a number for two classes, so that SVC takes it; one for each pair of several."""
    X, y = load_iris(return_X_y=True)
    two = y > 0
    model = NuSVC(nu=0.3, tol=1e-9).fit(X[two], y[two])
    other = SVC(C=model.equivalent_C_, tol=1e-9).fit(X[two], y[two])
    np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), atol=1e-6)
    assert isinstance(model.nu_, float)
    several = NuSVC(nu=0.3).fit(X, y)
    assert several.equivalent_C_.shape == several.nu_.shape == (3,)


@pytest.mark.parametrize(("load", "nu"), [(load_wine, 0.1), (load_breast_cancer, 0.03)])
def test_small_margins_do_not_spoil_f(load, nu):
    """1/ρ is 10⁴ and 4·10⁷ here, and so are the coefficients: what is left of tol is asked in extended precision."""
    X, y = load(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    model = NuSVC(nu=nu).fit(X, y)
    V, Z = (A.astype(np.longdouble) for A in (model.support_vectors_, X))
    squares = sum((Z[:, j, None] - V[:, j]) ** 2 for j in range(Z.shape[1]))
    f = np.exp(-np.longdouble(model.kernel_.gamma) * squares) @ model.dual_coef_[0] + model.intercept_[0]
    assert model.converged_
    assert violation_of_f(model, X, y, 1.0, f) <= model.certificate_.violation <= 1e-3
    rounding = 1e-14 * np.abs(model.dual_coef_).sum()
    np.testing.assert_allclose(model.decision_function(X), f.astype(float), rtol=0, atol=rounding)


def test_scaled_samples_give_the_same_machine():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=80) > 0).astype(int)
    # The mass of a class, νW/2, is no sum of weights, so that each class has a free vector and ρ is unique.
    f, *others = (
        NuSVC(nu=0.61, kernel="linear", tol=1e-6).fit(X * s, y).decision_function(X * s) for s in (1, 0.03, 1e-3, 1e3)
    )
    for g in others:
        np.testing.assert_allclose(g, f, rtol=0, atol=1e-6)


def test_its_certificate_is_that_of_its_coefficients():
    """½‖w‖² + CΣw_iξ_i − CνW with C = 1/ρ, at the coefficients that the model shows."""
    X, y = load_wine(return_X_y=True)
    X, y = X[y < 2, :3], y[y < 2]
    model = NuSVC(nu=0.4, tol=1e-7, gamma=0.1).fit(X, y)
    C, s = model.equivalent_C_, np.where(y == 1, 1.0, -1.0)
    beta, V = model.dual_coef_[0], model.support_vectors_
    square = beta @ np.exp(-0.1 * ((V[:, None] - V) ** 2).sum(-1)) @ beta
    primal = 0.5 * square + C * np.maximum(0, 1 - s * model.decision_function(X)).sum() - C * 0.4 * len(y)
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-5)
    assert model.certificate_.dual == pytest.approx(-0.5 * square, rel=1e-5)


def overlapping(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=90)
    return rng.normal(size=(90, 2)) + rng.normal(size=(3, 2))[y], y


@pytest.mark.parametrize("seed", range(8))
def test_auto_never_refuses_overlapping_classes(seed):
    X, y = overlapping(seed)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = NuSVC(kernel="linear").fit(X, y)
    told = [str(one.message) for one in seen]
    assert model.converged_
    assert any("nu='auto' took" in text for text in told) == bool(
        np.any((np.asarray(model.nu_) != 0.5) & (np.asarray(model.equivalent_C_) > 0))
    )
    assert any("f is constant" in text for text in told) == bool(np.any(np.asarray(model.equivalent_C_) == 0))
    assert model.score(X, y) >= SVC(kernel="linear").fit(X, y).score(X, y) - 0.1


def test_auto_takes_the_smallest_useful_nu():
    """At a ν one hundredth below it the hulls meet, which a ν that was given says with an error."""
    X, y = overlapping(0)
    keep = y != 0
    X, y = X[keep], y[keep]
    with pytest.warns(UserWarning, match="too small"):
        nu = NuSVC(kernel="linear").fit(X, y).nu_
    assert nu > 0.5
    with pytest.raises(ValueError, match="too small"):
        NuSVC(nu=nu - 0.01, kernel="linear").fit(X, y)


def test_classes_that_nothing_tells_apart_get_a_constant_f():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3 > 0
    X[1] = 1e12  # of the heavier class: to the kernel all others are the same
    for samples in (X, 1e-310 * X[2:], np.ones((58, 1))):
        y = y[-len(samples) :]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model = NuSVC().fit(samples, y)
        assert any("f is constant" in str(one.message) for one in seen)
        assert model.predict(samples).all()  # the class with more weight


@pytest.mark.parametrize("solver", ["decomposition", "chunking", "qp"])
def test_every_solver_that_the_docstring_offers(solver):
    X, y = load_wine(return_X_y=True)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), y
    expected = NuSVC(nu=0.3, tol=1e-6).fit(X, y)
    found = NuSVC(nu=0.3, tol=1e-4, solver=solver, cache_size=0.05 if solver == "chunking" else 100).fit(X, y)
    assert found.converged_
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("nu", [0.1, 0.23, 0.51])
def test_nu_bounds_margin_errors_and_support_vectors(two, nu):
    """On breast cancer: at most ν of the samples have y f(x) < 1, and at least ν are support vectors."""
    X, y = two
    model = NuSVC(nu, gamma=0.02, tol=1e-8).fit(X, y)
    margin = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    assert (margin < 1 - 1e-6).sum() <= nu * len(y) <= model.n_support_.sum()
