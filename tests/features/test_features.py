"""Explicit features: exact where they are exact, with the error they state elsewhere."""

import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from mercer import SVC, LinearSVC
from mercer.features import GaussianSeries, Monomials, RandomFourier, mercer_expansion, mercer_integral
from mercer.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Sigmoid, Spectrum

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(25, 2)), rng.normal(size=(10, 2))


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("gamma", [0.2, 1.0])
def test_the_closed_form_for_a_gaussian_under_a_normal_law(sigma, gamma):
    """λ_j = √(2a/A) B^j with a = 1/4σ², c = √(a² + 2aγ), A = a + γ + c, B = γ/A (Rasmussen and Williams, 4.3.1)."""
    x, w = np.polynomial.hermite.hermgauss(150)
    found = mercer_expansion(Gaussian(gamma=gamma), math.sqrt(2) * sigma * x[:, None], 8, w / math.sqrt(math.pi))
    a = 1 / (4 * sigma**2)
    c = math.sqrt(a**2 + 2 * a * gamma)
    A = a + gamma + c
    expected = math.sqrt(2 * a / A) * (gamma / A) ** np.arange(8)
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-6)
    # The eigenfunctions are Hermite functions: the first is a multiple of exp(−(c − a)x²).
    points = np.linspace(-1, 1, 5)[:, None]
    first = found.functions(points)[:, 0]
    np.testing.assert_allclose(first / first[2], np.exp(-(c - a) * points[:, 0] ** 2), rtol=1e-7)
    assert found.rest == pytest.approx(1 - expected.sum(), abs=1e-8)


@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.5), Matern(nu=1.5), Polynomial(2, 1.0, 1.0), Laplacian(gamma=0.3)], ids=repr
)
def test_expansions_on_samples(kernel):
    whole = mercer_expansion(kernel, X, 25)
    assert whole.error(X) < 1e-9 * np.abs(kernel(X)).max()
    functions = whole.functions(X)
    np.testing.assert_allclose(functions.T @ functions / 25, np.eye(len(whole.eigenvalues)), atol=1e-5)
    errors = [mercer_expansion(kernel, X, terms).error(X) for terms in (1, 3, 25)]
    assert errors[0] > errors[1] > errors[2]
    some = mercer_expansion(kernel, X, 3)
    assert np.mean(kernel.diag(X) - some.values(X).diagonal()) == pytest.approx(some.rest, rel=1e-9)
    assert some.values(X, Z).shape == (25, 10)
    assert some.error(X, Z) == pytest.approx(np.abs(some.values(X, Z) - kernel(X, Z)).max())


def test_expansions_of_strings_and_what_has_none():
    words = ["ab", "ba", "aab", "bb"]
    assert mercer_expansion(Spectrum(1), words, 4).error(words) < 1e-12
    assert len(mercer_expansion(Linear(), X, 10).eigenvalues) == 2
    with pytest.raises(ValueError, match="Mercer's theorem does not hold"):
        mercer_expansion(Sigmoid(gamma=1.0, coef0=-1.0), X, 3)
    with pytest.raises(ValueError, match="a finite weight ≥ 0 for each of the 25"):
        mercer_expansion(Linear(), X, 3, np.ones(3))


def test_mercers_condition_as_an_integral():
    x, w = np.polynomial.legendre.leggauss(30)
    points = x[:, None]
    for f in (np.ravel, lambda x: np.cos(5 * x[:, 0]), lambda x: np.sign(x[:, 0])):
        assert mercer_integral(Gaussian(gamma=2.0), f, points, w) > 0
    # ∫∫ xz·x·z dx dz over [−1, 1]² = (2/3)²
    assert mercer_integral(Linear(), np.ravel, points, w) == pytest.approx(4 / 9)
    assert mercer_integral(Sigmoid(gamma=1.0, coef0=-1.0), lambda x: np.ones(len(x)), points, w) < 0


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        3 * Linear() ** 2,
        Polynomial(3, 0.5, 1.0),
        (Linear() + 2.0) ** 2,
        2 * Polynomial(2, 1.0, 0.5) + 1.5,
        Polynomial(0, 1.0, 1.0),
    ],
    ids=repr,
)
def test_monomials_are_exact(kernel, ordered):
    found = Monomials(kernel, ordered=ordered).fit(X)
    assert found.error(X) <= 1e-12 * np.abs(kernel(X)).max()


def test_the_number_of_monomials():
    for d, n in ((2, 2), (3, 2), (3, 4), (5, 3)):
        data = rng.normal(size=(4, n))
        count = Monomials(Polynomial(d, 1.0, 0.0)).fit_transform(data).shape[1]
        assert count == math.comb(d + n - 1, d)
        assert Monomials(Polynomial(d, 1.0, 0.0), ordered=True).fit_transform(data).shape[1] == n**d
    with pytest.raises(ValueError, match="too many to list"):
        Monomials(Polynomial(20, 1.0, 0.0)).fit(rng.normal(size=(3, 20)))
    with pytest.raises(ValueError, match="is no polynomial"):
        Monomials(Gaussian(gamma=1.0)).fit(X)
    with pytest.raises(ValueError, match="negative"):
        Monomials(Polynomial(2, 1.0, -1.0)).fit(X)


def test_the_series_of_a_gaussian():
    one = np.array([[-1.5], [0.0], [0.3], [2.0]])
    errors = [GaussianSeries(2.0 * Gaussian(gamma=0.7), n_terms=n).fit(one).error(one) for n in (1, 5, 20, 60)]
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 1e-13
    with pytest.raises(ValueError, match="for one feature, and X has 2"):
        GaussianSeries(Gaussian(gamma=1.0)).fit(X)


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.3), 2.0 * Gaussian(M=np.array([[1.0, 0.3], [0.3, 0.5]]))], ids=repr
)
def test_random_fourier_features(kernel, orthogonal):
    few, many = (
        np.mean([RandomFourier(kernel, n, orthogonal, seed).fit(X).error(X) for seed in range(5)]) for n in (50, 5000)
    )
    assert many < 0.25 * few  # about 1/10
    assert many < 0.1
    features = RandomFourier(kernel, 400, orthogonal).fit_transform(X)
    np.testing.assert_allclose(np.sum(features**2, axis=1), kernel.diag(X), rtol=1e-12)


def test_orthogonal_features_are_better():
    data = rng.normal(size=(40, 6))
    errors = [
        np.mean([RandomFourier(Gaussian(gamma=0.1), 120, way, seed).fit(data).error(data) for seed in range(20)])
        for way in (True, False)
    ]
    assert errors[0] < errors[1]


def test_a_linear_machine_on_features_is_the_kernel_machine():
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    kernel = Polynomial(2, 1.0, 1.0)
    linear = make_pipeline(Monomials(kernel), LinearSVC(loss="hinge", tol=1e-9)).fit(X, y)
    machine = SVC(kernel=kernel, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(linear.decision_function(Z), machine.decision_function(Z), rtol=1e-5, atol=1e-6)
