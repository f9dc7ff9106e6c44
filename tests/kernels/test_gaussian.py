"""The Gaussian's parameters, its extremes, and data that make distances cancel."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels import Gaussian, Laplacian, Matern, Polynomial, Sigmoid
from mercer.samples.distances import l1_distances, squared_distances

rng = np.random.default_rng(2)
X = rng.normal(size=(30, 4))
Z = rng.normal(size=(20, 4))


def directly(A, B):
    return ((A[:, None] - B[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("gamma", [np.nan, np.inf, -1, -0.5, "foo", None, [1.0], np.array([1.0]), True, 1j])
@pytest.mark.parametrize("kind", [Gaussian, Laplacian, Polynomial, Sigmoid])
def test_gamma_that_is_none(kind, gamma):
    with pytest.raises(
        ValueError, match=r"gamma=.* must be a finite number of at least 0, or one of 'scale', 'auto', 'median'"
    ):
        kind(gamma=gamma)
    kernel = kind(gamma=1.0).set_params(gamma=gamma)
    with pytest.raises(ValueError, match="gamma="):
        kernel.bind(X)
    with pytest.raises(ValueError, match="gamma="):
        kernel(X)


@pytest.mark.parametrize(
    "given", [{"gamma": 1.0, "sigma": 2.0}, {"sigma": 1.0, "M": np.eye(2)}, {"gamma": "auto", "M": np.eye(2)}]
)
def test_only_one_width(given):
    with pytest.raises(ValueError, match=f"{' and '.join(given)} are given"):
        Gaussian(**given)
    with pytest.raises(ValueError, match="give one"):
        Gaussian().set_params(**given)(X)


@pytest.mark.parametrize("sigma", [0, -1.0, np.nan, np.inf, "1", True])
def test_sigma_that_is_none(sigma):
    with pytest.raises((TypeError, ValueError), match=r"sigma=.* must be a (finite number above 0|number, not)"):
        Gaussian(sigma=sigma)


@pytest.mark.parametrize(
    ("M", "message"),
    [
        (np.ones((2, 3)), "square"),
        ([1.0, 2.0], "square"),
        ([[np.nan, 0.0], [0.0, 1.0]], "finite"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive definite, but its smallest eigenvalue is -1"),
    ],
)
def test_matrix_that_is_none(M, message):
    with pytest.raises(ValueError, match=message):
        Gaussian(M=M)


def test_matrix_of_the_wrong_size():
    with pytest.raises(ValueError, match=r"M has shape \(2, 2\), but the samples have 4 features"):
        Gaussian(M=np.eye(2))(X)


def test_matrix_through_its_factor():
    A = rng.normal(size=(4, 4))
    M = A @ A.T + 0.1 * np.eye(4)
    difference = X[:, None] - Z[None]
    expected = np.exp(-np.einsum("ijk,kl,ijl->ij", difference, M, difference))
    offset = np.array([1e6, -1e6, 0.0, 1e5])
    for x in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(Gaussian(M=M)(x, Z), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(Gaussian(M=M)(X + offset, Z + offset), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(Gaussian(M=0.3 * np.eye(4))(X, Z), Gaussian(gamma=0.3)(X, Z), rtol=1e-12)
    assert Gaussian(M=M).bind(X).M is M


def test_gamma_zero_is_a_constant_and_says_so():
    for kernel in (Gaussian(gamma=0), Laplacian(gamma=0), Polynomial(gamma=0, coef0=2.0)):
        with pytest.warns(UserWarning, match="gamma=0 makes .* a constant"):
            bound = kernel.bind(X)
        assert bound is kernel
        assert np.ptp(bound(X)) == 0
        assert bound.strictly_positive_definite == "no"
        assert bound.universal == "no"


@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=1e308), Gaussian(sigma=1e-200), Laplacian(gamma=1e308), Matern(length_scale=1e-300)]
)
def test_extremely_narrow_kernels_are_the_identity(kernel):
    twice = np.vstack([X, X[:3]])
    expected = np.eye(33)
    for i in range(3):
        expected[30 + i, i] = expected[i, 30 + i] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (twice, sp.csr_matrix(twice), 1e8 + twice):
            np.testing.assert_array_equal(kernel(x), expected)
            np.testing.assert_array_equal(kernel(x, x), expected)


def test_extremely_wide_kernels_are_constant():
    for kernel in (Gaussian(gamma=5e-324), Gaussian(sigma=1e200), Gaussian(sigma=1e300)):
        np.testing.assert_array_equal(kernel(X), 1.0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("offset", [0.0, 1e8, -3e8])
def test_distances_survive_offsets(form, offset):
    A, B = offset + 1e-3 * X, offset + 1e-3 * Z
    np.testing.assert_allclose(squared_distances(form(A), form(B)), directly(A, B), rtol=1e-6)
    np.testing.assert_allclose(squared_distances(form(A), B), directly(A, B), rtol=1e-6)
    np.testing.assert_allclose(squared_distances(A, form(B)), directly(A, B), rtol=1e-6)
    np.testing.assert_allclose(squared_distances(form(A), form(A)), directly(A, A), rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_distances_in_far_clusters_and_with_an_outlier(form):
    A = np.vstack([X[:10], 1e7 + X[10:20], [[1e12, 0.0, 0.0, 0.0]], X[:2]])
    expected = directly(A, A)
    np.testing.assert_allclose(squared_distances(form(A), form(A)), expected, rtol=1e-6)
    np.testing.assert_allclose(squared_distances(form(A), A), expected, rtol=1e-6)
    mixed = A * (rng.random(A.shape) > 0.5)
    np.testing.assert_allclose(squared_distances(form(mixed), form(mixed)), directly(mixed, mixed), rtol=1e-6)


def test_only_full_columns_of_a_csr_matrix_are_centred():
    A = np.hstack([1e8 + 1e-3 * X[:, :2], X[:, 2:] * (rng.random((30, 2)) > 0.7)])
    np.testing.assert_allclose(squared_distances(sp.csr_matrix(A), sp.csr_matrix(A)), directly(A, A), rtol=1e-6)


def test_equal_rows_have_distance_zero():
    A = np.vstack([X, X]) + 1e5
    distances = squared_distances(A, A.copy())
    assert (distances >= 0).all()
    np.testing.assert_array_equal(distances[np.arange(60), np.arange(60) % 30], 0.0)


def test_a_prediction_does_not_depend_on_its_batch():
    kernel = Gaussian(gamma=1e6)
    A, B = 1e8 + 1e-3 * X, 1e8 + 1e-3 * Z
    far = np.vstack([A, np.zeros((5, 4)), 1e9 * np.ones((5, 4))])
    np.testing.assert_allclose(kernel(far, B)[:30], kernel(A, B), rtol=1e-12)
    np.testing.assert_allclose(np.vstack([kernel(row[None], B) for row in A]), kernel(A, B), rtol=1e-12)


def test_overflowing_distances_are_infinite_not_nan():
    A = np.array([[1e200, 0.0], [-1e200, 1.0], [1e200, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(Gaussian(gamma=1.0)(A), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_l1_distances_dense_and_sparse():
    S = X * (rng.random(X.shape) > 0.6)
    expected = np.abs(S[:, None] - Z[None]).sum(axis=2)
    for x in (S, sp.csr_matrix(S)):
        for z in (Z, sp.csr_array(Z)):
            np.testing.assert_allclose(l1_distances(x, z), expected, rtol=1e-14)
    np.testing.assert_array_equal(l1_distances(sp.csr_matrix((2, 10**7)), sp.csr_matrix((3, 10**7))), np.zeros((2, 3)))


def test_wide_sparse_data_are_never_made_dense():
    places = rng.integers(0, 40, 400), rng.integers(0, 10**7, 400)
    wide = sp.csr_array((rng.normal(size=400), places), shape=(40, 10**7))
    small = wide[:, np.unique(wide.indices)].toarray()
    for kernel in (Gaussian(gamma=0.5), Laplacian(gamma=0.5), Polynomial(degree=2, gamma=1.0), Matern()):
        np.testing.assert_allclose(kernel(wide), kernel(small), rtol=1e-10)
    assert Gaussian().bind(wide).gamma == pytest.approx(1 / (1e7 * _variance(wide)), rel=1e-10)


def _variance(S):
    mean = S.data.sum() / S.shape[0] / S.shape[1]
    return (((S.data - mean) ** 2).sum() + (S.shape[0] * S.shape[1] - S.nnz) * mean**2) / S.shape[0] / S.shape[1]


@pytest.mark.parametrize("degree", [-1, 2.0, 1.5, "3", None, True, np.nan])
def test_degree_that_is_none(degree):
    with pytest.raises(ValueError, match=r"degree=.*integer of at least 0"):
        Polynomial(degree=degree)


@pytest.mark.parametrize("coef0", [np.nan, np.inf, "1", None, 1j])
def test_coef0_that_is_none(coef0):
    for kind in (Polynomial, Sigmoid):
        with pytest.raises((TypeError, ValueError), match=r"coef0=.* must be a (finite number|number, not)"):
            kind(coef0=coef0)


def test_an_unbound_kernel_says_what_to_do():
    for kernel in (Gaussian(), Laplacian("median"), Polynomial(gamma="auto"), 2 * Sigmoid() + 1):
        with pytest.raises(ValueError, match=r"depends on the training data: use kernel\.bind\(X\)"):
            kernel(X)
        assert not kernel.bound
    with pytest.raises(ValueError, match="bind"):
        Gaussian().recipe()
