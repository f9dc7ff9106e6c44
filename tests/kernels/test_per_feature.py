"""ANOVA, spline, intersection and Bessel kernels equal their formulas, and are what they say of themselves."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special

from mercer import SVC, check_kernel
from mercer.kernels import ANOVA, Bessel, Gaussian, Intersection, Spline
from reference import kernels as naive

rng = np.random.default_rng(1)
X, Z = rng.normal(size=(9, 4)), rng.normal(size=(6, 4)) * (rng.random((6, 4)) > 0.3)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_anova(order):
    kernel, expected = ANOVA(order, 0.7), naive.matrix(naive.anova, X, Z, order=order, gamma=0.7)
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-14)
    np.testing.assert_allclose(kernel(X, sp.csr_array(Z)), expected, rtol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), special.comb(4, order), rtol=1e-15)


def test_anova_of_all_features_is_a_gaussian_and_of_one_kernlabs():
    np.testing.assert_allclose(ANOVA(4, 0.7)(X, Z), Gaussian(0.7)(X, Z), rtol=1e-13)
    kernlab = np.exp(-0.7 * (X[:, None] - Z) ** 2).sum(axis=2) ** 3  # anovadot(sigma = 0.7, degree = 3)
    np.testing.assert_allclose((ANOVA(1, 0.7) ** 3)(X, Z), kernlab, rtol=1e-14)
    with pytest.raises(ValueError, match="needs at least 5 features, but the samples have 4"):
        ANOVA(5)(X)


def test_spline():
    np.testing.assert_allclose(Spline()(X, Z), naive.matrix(naive.spline, X, Z), rtol=1e-12)
    np.testing.assert_allclose(Spline().diag(X), naive.matrix(naive.spline, X, X).diagonal(), rtol=1e-13)
    a, b = abs(X)[:, None], abs(Z)[None]
    m = np.minimum(a, b)
    kernlab = np.prod(1 + a * b * (1 + m) - (a + b) / 2 * m**2 + m**3 / 3, axis=2)  # splinedot()
    np.testing.assert_allclose(Spline()(abs(X), abs(Z)), kernlab, rtol=1e-12)


def test_spline_has_a_gradient_for_all_signs():
    step = 1e-5
    for f in range(4):
        move = step * np.eye(4)[f]
        expected = (Spline()(X + move, Z) - Spline()(X - move, Z)) / (2 * step)
        np.testing.assert_allclose(Spline().gradient(X, Z)[:, :, f], expected, rtol=1e-7, atol=1e-7)


def test_intersection():
    a, b = abs(X), abs(Z)
    np.testing.assert_allclose(Intersection()(a, b), naive.matrix(naive.intersection, a, b), rtol=1e-14)
    wide = sp.csr_array((np.ones(2), ([0, 1], [5, 900_000])), shape=(2, 1_000_000))
    np.testing.assert_array_equal(Intersection()(wide), np.eye(2))
    with pytest.raises(ValueError, match=r"intersection kernel compares histograms.*contains -1"):
        SVC(kernel="intersection").fit([[1.0], [-1.0]], [0, 1])


@pytest.mark.parametrize("order", [0, 0.5, 1, 2.3, 7, 50])
def test_bessel(order):
    kernel = Bessel(order, sigma=2.0)
    t = 2.0 * np.sqrt(naive.matrix(naive.squared_distance, X, 30 * Z))
    series = np.array([[bessel(order, value) for value in row] for row in t])
    np.testing.assert_allclose(kernel(X, 30 * Z), series, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(kernel(X[:1]), [[1.0]])
    assert kernel([[0.0]], [[1e300]])[0, 0] == 0


def bessel(order, t):
    """Γ(ν + 1)(2/t)^ν J_ν(t) by Poisson's integral ∫₀¹ cos(ts)(1 − s²)^(ν − ½) ds, over its value at t = 0."""
    if order == 0.5:  # whose integrand is not smooth
        return np.sinc(t / np.pi)
    angle = (np.arange(4000) + 0.5) * np.pi / 8000  # s = sin: a midpoint rule for a smooth, periodic function
    weight = np.cos(angle) ** (2 * order)
    return np.sum(np.cos(t * np.sin(angle)) * weight) / np.sum(weight)


def test_a_bessel_kernel_is_for_few_features():
    kernel = Bessel(order=0.5).bind(np.zeros((2, 3)))
    assert kernel.positive_definite == "yes"
    grid = np.stack(np.meshgrid(*[np.linspace(0, 6, 6)] * 3), axis=-1).reshape(-1, 3)
    assert check_kernel(grid, kernel=kernel).witness is None
    low = Bessel(order=0.0).bind(grid)
    assert low.positive_definite == "no"
    assert check_kernel(grid, kernel=low).witness is not None
    with pytest.raises(ValueError, match="is for 3 features, but the samples have 2"):
        kernel(np.zeros((2, 2)))
    model = SVC(kernel=Bessel(order=1.0)).fit(grid[:60], grid[:60, 0] > 2)
    assert model.kernel_.n_features == 3
    assert model.certificate_.proves == "optimality"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bessel(order=-0.5), "order=-0.5 must be a number from 0 to 50"),
        (lambda: Bessel(sigma=0.0), "sigma=0.0 must be a finite number above 0"),
        (lambda: Bessel(n_features=0), "n_features=0 must be an integer of at least 1"),
        (lambda: ANOVA(order=0), "order=0 must be an integer of at least 1"),
        (lambda: ANOVA(gamma=0.0), "gamma=0.0 must be a finite number above 0"),
    ],
)
def test_what_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()
