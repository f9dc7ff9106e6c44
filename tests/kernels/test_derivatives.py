"""Derivatives of kernels by their samples and parameters: against differences, through the algebra, or refused."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from contracts.derivative_contract import check_derivatives
from mercer import kernels
from mercer.kernels import (
    ANOVA,
    Bessel,
    Categorical,
    Chi2,
    Cosine,
    FromFeatureMap,
    FromFunction,
    Gaussian,
    Gower,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Mismatch,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    Spline,
    Subsequences,
    Substrings,
    Tanimoto,
)
from mercer.kernels.names import COMPOSED_KERNELS
from mercer.runtime.errors import NotDifferentiableError

M = np.array([[2.0, 0.3], [0.3, 1.0]])
# Differentiable at all samples.
SMOOTH = [
    Linear(),
    Polynomial(degree=3, gamma=0.5, coef0=1.0),
    Polynomial(degree=0, gamma=0.5, coef0=1.0),
    Polynomial(degree=1, gamma=0.5, coef0=0.0),
    Sigmoid(gamma=0.5, coef0=-0.2),
    Gaussian(gamma=0.7),
    Gaussian(sigma=1.5),
    Gaussian(M=M),
    Matern(nu=np.inf, length_scale=2.0),
    Matern(nu=2.5, length_scale=1.5),
    Matern(nu=60.0, length_scale=1.5),
    RationalQuadratic(alpha=0.3, length_scale=2.0),
    2.0 * Gaussian(sigma=1.0) + Linear() ** 2,
    Gaussian(gamma=0.3) * Gaussian(M=M),
    3.0 * Linear() * Polynomial(degree=2, gamma=0.3, coef0=1.0) + 0.5,
    (Linear() + 1.5) ** 3,
    (0.1 * Linear()).exp(),
    (Gaussian(gamma=0.4) + 0.2 * Linear()).exp() * Gaussian(sigma=1.0),
    Polynomial(degree=2, gamma=1.0, coef0=1.0).normalised(),
    (Linear() * Gaussian(gamma=0.3) + 1.0).normalised() ** 2,
    (3.0 * Gaussian(gamma=0.3) + Linear() + 0.5).normalised(),
    ANOVA(order=1, gamma=0.7),
    ANOVA(order=2, gamma=0.7),
    Bessel(order=0.5, sigma=1.5),
    Bessel(order=2.0, sigma=5.0),
    Gaussian(gamma=0.7).on([1]) * Polynomial(degree=2, gamma=0.5, coef0=1.0).on([1, 0]),
]
# Differentiable unless two samples, or a feature of both, are equal or zero.
ALMOST = [
    Matern(nu=1.5, length_scale=0.8),
    Matern(nu=0.5, length_scale=2.0),
    Matern(nu=0.3),
    Matern(nu=0.8, length_scale=2.0),
    Matern(nu=1.0),
    Laplacian(gamma=0.4),
    Cosine(),
    Chi2(gamma=0.2),
    Tanimoto(),
    Spline(),
    0.5 * Laplacian(gamma=0.1) ** 2 + Cosine() * Chi2(gamma=0.3),
    (2.0 * Laplacian(gamma=0.3)).normalised(),
    (Cosine() + Matern(nu=0.5)).exp(),
]


def doubled(X):
    return 2.0 * np.asarray(X)


def ones(X):
    return 3.0 * np.ones(len(X))


def inner(X, Z):
    return X @ Z.T


REFUSED = [
    (FromFunction(inner), "the derivative of the function is not known"),
    (FromFeatureMap(doubled), "the derivative of the feature map is not known"),
    (Gaussian(gamma=1.0).of(doubled), "the derivative of the function inside is not known"),
    (Gaussian(gamma=1.0).scaled_by(ones), "the derivative of the function inside is not known"),
    (Gaussian(gamma=1.0) + 0.5 * FromFunction(inner), "the derivative of the function is not known"),
    (Intersection(), "it has a kink where two samples have an entry in common"),
    (Gower(), "it has a kink where two samples share a number"),
    (Categorical().on([1]), "a category cannot be changed by a small step"),
]
WORDS = [Spectrum(2), Spectrum(2).normalised() + Spectrum(1), Mismatch(2, 1, "abcd")]
DECAYS = [Substrings(), Subsequences()]

quarters = st.integers(-12, 12).map(lambda i: i / 4)


def blocks(elements, rows=3):
    return hnp.arrays(np.float64, st.tuples(st.integers(1, rows), st.just(2)), elements=elements)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
@settings(max_examples=6)
@given(X=blocks(quarters), Z=blocks(quarters))
def test_smooth_kernels(kernel, X, Z):
    check_derivatives(kernel, X, Z)


@pytest.mark.parametrize("kernel", ALMOST, ids=repr)
@settings(max_examples=6)
@given(X=blocks(st.integers(2, 12).map(lambda i: i / 4)), Z=blocks(st.integers(2, 12).map(lambda i: i / 4 + 0.1)))
def test_kernels_away_from_their_kinks(kernel, X, Z):
    check_derivatives(kernel, X, Z)


def test_every_kernel_has_derivatives_or_refuses():
    def within(kernel):
        yield type(kernel)
        for value in kernel.get_params(deep=False).values():
            if isinstance(value, Kernel):
                yield from within(value)

    listed = SMOOTH + ALMOST + WORDS + DECAYS + [kernel for kernel, _ in REFUSED] + [Precomputed()]
    covered = {kind for kernel in listed for kind in within(kernel)}
    exported = {getattr(kernels, name) for name in kernels.__all__} | set(COMPOSED_KERNELS.values())
    missing = {kind for kind in exported if inspect.isclass(kind) and issubclass(kind, Kernel)} - {Kernel} - covered
    assert not missing, f"{missing} need an instance in SMOOTH, ALMOST or REFUSED of this file"


@pytest.mark.parametrize(("kernel", "reason"), REFUSED, ids=repr)
def test_no_derivative_of_a_users_function(kernel, reason):
    with pytest.raises(NotDifferentiableError, match=reason):
        kernel.gradient([[1.0, 2.0]])


@pytest.mark.parametrize("kernel", WORDS, ids=repr)
def test_no_derivative_of_strings(kernel):
    with pytest.raises(NotDifferentiableError, match="a string cannot be changed by a small step"):
        kernel.gradient(["abc", "abd"])
    assert kernel.parameter_gradient(["abc"]) == {}


@pytest.mark.parametrize("kernel", DECAYS, ids=repr)
def test_no_derivative_by_a_decay(kernel):
    with pytest.raises(NotDifferentiableError, match="no known derivative by decay"):
        kernel.parameter_gradient(["[2,[[0,1,1.0]]]"])


def test_gower_by_its_parameter():
    X, Z = np.array([[0.1, 1.0], [0.7, 2.0]]), np.array([[0.4, 1.0]])
    slope = Gower([1], gamma=0.8).parameter_gradient(X, Z)["gamma"]
    expected = [[-0.15 * np.exp(-0.12)], [-0.65 * np.exp(-0.52)]]
    np.testing.assert_allclose(slope, expected, rtol=1e-14)


def test_no_derivative_of_a_matrix():
    with pytest.raises(NotDifferentiableError, match="only the matrix is known"):
        Precomputed().gradient(np.eye(2))


def test_no_derivative_of_a_class_without_one():
    class Flat(Kernel):
        def __init__(self, level=1.0):
            self.level = level

        def _values(self, X, Z):
            return np.full((len(X), len(Z)), self.level)

    with pytest.raises(NotDifferentiableError, match="its class defines none"):
        Flat().gradient([[1.0]])
    with pytest.raises(NotDifferentiableError, match="by level, because its class defines none"):
        Flat().parameter_gradient([[1.0]])


@pytest.mark.parametrize(
    ("kernel", "X", "Z", "where"),
    [
        (
            Laplacian(gamma=1.0),
            [[9.0, 9.0], [1.0, 5.0]],
            [[3.0, 0.0], [0.0, 5.0]],
            "row 1 of X and row 1 of Z both have 5",
        ),
        (Matern(nu=0.5), [[9.0], [2.0]], [[1.0], [2.0]], "row 1 of X and row 1 of Z"),
        (Cosine(), [[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0]], "row 1 of X is 0"),
        (Chi2(), [[1.0, 2.0], [1.0, 0.0]], [[1.0, 0.0]], "row 1 of X and row 0 of Z have one in column 1"),
        (Tanimoto(), [[1.0], [0.0]], [[1.0], [0.0]], "row 1 of X and row 1 of Z"),
    ],
)
def test_points_without_a_derivative_are_named(kernel, X, Z, where):
    for form in (np.asarray, sp.csr_array):
        with pytest.raises(NotDifferentiableError, match=where):
            kernel.gradient(form(X), form(Z))
        with pytest.raises(NotDifferentiableError, match=where):
            (2 * kernel + 1).gradient(form(X), form(Z))
    # A pair of weight 0 does not matter.
    weights = np.ones((len(X), len(Z)))
    weights[-1] = 0.0
    assert kernel.gradient(X, Z, weights=weights)[-1].tolist() == [0.0] * len(X[0])


def test_parameters_inside_a_users_function():
    X, Z = np.array([[0.3], [1.0]]), np.array([[0.5], [2.0], [1.5]])
    slope = Gaussian(gamma=1.0).of(doubled).parameter_gradient(X, Z)["kernel__gamma"]
    np.testing.assert_allclose(slope, Gaussian(gamma=1.0).parameter_gradient(2 * X, 2 * Z)["gamma"])
    slope = Gaussian(gamma=1.0).scaled_by(ones).parameter_gradient(X, Z)["kernel__gamma"]
    np.testing.assert_allclose(slope, 9 * Gaussian(gamma=1.0).parameter_gradient(X, Z)["gamma"])


def test_samples_far_away():
    """Differences do not cancel: the derivative at an offset of 2³⁰ is that without it."""
    X, Z = np.array([[0.5, 1.0], [2.0, -1.0]]), np.array([[0.25, 0.5], [1.0, 0.0], [-3.0, 1.0]])
    for kernel in (Gaussian(gamma=0.3), Matern(nu=1.5), RationalQuadratic()):
        np.testing.assert_allclose(kernel.gradient(X + 2.0**30, Z + 2.0**30), kernel.gradient(X, Z), rtol=1e-9)
    far = Gaussian(gamma=1.0).parameter_gradient([[0.0]], [[1e200]])
    assert far["gamma"].item() == 0.0


def test_without_samples():
    assert Gaussian(gamma=1.0).gradient(np.empty((0, 2)), [[1.0, 2.0]]).shape == (0, 1, 2)
    assert Gaussian(gamma=1.0).gradient([[1.0, 2.0]], np.empty((0, 2)), weights=[]).tolist() == [[0.0, 0.0]]
    with pytest.raises(ValueError, match="need samples, but there are 0 and 1"):
        Gaussian(gamma=1.0).parameter_gradient(np.empty((0, 2)), [[1.0, 2.0]])


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"weights must be .* shape \(2,\).*\(1, 2\).*not of shape \(3,\)"):
        Linear().gradient([[1.0]], [[1.0], [2.0]], weights=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="weights must be finite"):
        Linear().parameter_gradient([[1.0]], [[1.0]], weights=[np.nan])
    with pytest.raises(ValueError, match="features cannot be compared"):
        Linear().gradient([[1.0]], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="depends on the training data"):
        Gaussian().gradient([[1.0]])
    with pytest.raises(ValueError, match="overflow float64"):
        (Linear() ** 3).gradient([[1e200]])
