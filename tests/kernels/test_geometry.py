"""Distances and angles in feature space, one orthant, and the h that violates Mercer's condition."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inspection.features import mercer_integral, mercer_violation
from mercer.kernels import (
    ANOVA,
    Bessel,
    Categorical,
    Chi2,
    Cosine,
    FromFunction,
    Gaussian,
    Gower,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    Spline,
    Tanimoto,
)

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))


def test_distances_and_angles_of_explicit_features():
    def features(samples):  # of (⟨x, z⟩ + 1)²
        pairs = [np.sqrt(2 - (a == b)) * samples[:, a] * samples[:, b] for a in range(3) for b in range(a + 1)]
        return np.column_stack([np.ones(len(samples)), np.sqrt(2) * samples, *pairs])

    kernel, f, g = Polynomial(2, 1.0, 1.0), features(X), features(Z)
    apart = np.linalg.norm(f[:, None] - g, axis=2)
    np.testing.assert_allclose(kernel.distance(X, Z), apart, rtol=1e-10)
    np.testing.assert_allclose(kernel.distance(sp.csr_array(X), Z), apart, rtol=1e-10)
    cosines = f @ g.T / np.outer(np.linalg.norm(f, axis=1), np.linalg.norm(g, axis=1))
    np.testing.assert_allclose(kernel.angle(X, Z), np.arccos(cosines), rtol=1e-10)
    np.testing.assert_array_equal(kernel.distance(X).diagonal(), 0)
    np.testing.assert_allclose(Linear().distance(X, Z), np.linalg.norm(X[:, None] - Z, axis=2), rtol=1e-10)


def test_of_strings_and_matrices():
    assert Spectrum(1).distance(["aab"], ["b"])[0, 0] == 2.0
    assert Spectrum(1).angle(["a"], ["b", "ab"]).tolist() == [[np.pi / 2, pytest.approx(np.pi / 4)]]
    K = Gaussian(gamma=1.0)(X)
    np.testing.assert_allclose(Precomputed().distance(K), Gaussian(gamma=1.0).distance(X), atol=1e-7)


def test_what_has_no_distance_or_angle():
    with pytest.raises(ValueError, match=r"not positive definite.*= -.* for row 0 of X and row 1 of Z"):
        FromFunction(lambda A, B: (A @ B.T) ** 2 + 3 * (A != B.T)).distance([[1.0]], [[1.0], [1.5]])
    with pytest.raises(ValueError, match=r"k\(x, x\) = 0 for some sample, so that φ\(x\) has no direction"):
        Linear().angle([[0.0], [1.0]])


VALUES = {
    "yes": [
        Gaussian(gamma=1.0), Laplacian(gamma=1.0), Matern(), RationalQuadratic(), Chi2(), ANOVA(), Gower([0]),
        Linear().exp(), Gaussian() + Laplacian(), Gaussian() * Matern(), Gaussian() ** 3, 2 * Gaussian(),
        Gaussian() + 1, Gaussian().normalised(), Gaussian().on([0]), Gaussian().of(abs),
        Polynomial(degree=0, coef0=1.0),
    ],
    "no": [
        Linear(), Polynomial(), Sigmoid(), Cosine(), Tanimoto(), Spectrum(), Intersection(), Categorical(), Spline(),
        Bessel(), 2 * Linear(), Linear().on([0]),
    ],
    "depends": [Gaussian().scaled_by(len), Linear().of(abs)],
    "unknown": [Precomputed(), FromFunction(abs), Linear() ** 2, Gaussian() + Linear(), Linear() + 1],
}  # fmt: skip


@pytest.mark.parametrize(("answer", "kernel"), [(a, k) for a, some in VALUES.items() for k in some], ids=repr)
def test_positive_values(answer, kernel):
    assert kernel.positive_values == answer
    if answer == "yes" and not hasattr(kernel, "feature_map"):
        assert (kernel.bind(abs(X))(abs(X), abs(Z)) > 0).all()
    # Each "no" has a pair with k ≤ 0.
    if answer == "no" and kernel.accepts == "vectors":
        signs = abs if isinstance(kernel, Intersection) else np.asarray
        wide = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [-3.0, 1.0], [4.0, 4.0], [7.0, -5.0]])
        assert (kernel.bind(signs(wide))(signs(wide)) <= 0).any()


def test_the_h_that_violates_mercers_condition():
    x, w = np.polynomial.legendre.leggauss(24)
    points = x[:, None]
    for kernel in (Sigmoid(gamma=1.0, coef0=-1.0), Polynomial(3, 1.0, -1.0)):
        h = mercer_violation(points, kernel=kernel, weights=w)
        assert w @ h(points) ** 2 == pytest.approx(1.0)
        smallest = mercer_integral(points, h, kernel=kernel, weights=w)
        assert smallest < 0
        for other in (np.ravel, lambda u: np.ones(len(u)) / 2**0.5):  # of length at most 1
            assert smallest <= mercer_integral(points, other, kernel=kernel, weights=w)
        finer, v = np.polynomial.legendre.leggauss(60)
        assert mercer_integral(finer[:, None], h, kernel=kernel, weights=v) == pytest.approx(smallest, rel=1e-3)
    assert mercer_violation(points, kernel=Gaussian(gamma=1.0), weights=w) is None
    with pytest.raises(ValueError, match="weight > 0 is needed for each of the 24 points"):
        mercer_violation(points, kernel="sigmoid", weights=w[:3])
