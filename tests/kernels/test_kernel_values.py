"""Kernel values against the naive formulas and against scikit-learn's."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer.kernels import (
    Chi2,
    Cosine,
    FromFeatureMap,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    Tanimoto,
)
from reference import kernels as naive

rng = np.random.default_rng(1)
X = rng.normal(size=(13, 4)) * (rng.random((13, 4)) > 0.4)
X[5] = 0.0
X[7] = X[2]
Z = rng.normal(size=(9, 4)) * (rng.random((9, 4)) > 0.4)
Z[3] = X[1]
Z[4] = 0.0
M = np.diag([1.0, 2.0, 0.5, 0.1]) + 0.05

CASES = [
    (Linear(), naive.linear, {}),
    (Polynomial(degree=3, gamma=0.4, coef0=1.5), naive.polynomial, {"degree": 3, "gamma": 0.4, "coef0": 1.5}),
    (Polynomial(degree=6, gamma=0.4, coef0=-0.5), naive.polynomial, {"degree": 6, "gamma": 0.4, "coef0": -0.5}),
    (Polynomial(degree=0, gamma=1.0), naive.polynomial, {"degree": 0, "gamma": 1.0, "coef0": 0.0}),
    (Polynomial(degree=40, gamma=0.1, coef0=1.0), naive.polynomial, {"degree": 40, "gamma": 0.1, "coef0": 1.0}),
    (Sigmoid(gamma=0.3, coef0=0.1), naive.sigmoid, {"gamma": 0.3, "coef0": 0.1}),
    (Cosine(), naive.cosine, {}),
    (Gaussian(gamma=0.8), naive.gaussian, {"gamma": 0.8}),
    (Gaussian(sigma=0.5), naive.gaussian, {"gamma": 2.0}),
    (Gaussian(M=M), naive.gaussian_with_matrix, {"M": M}),
    (Laplacian(gamma=0.6), naive.laplacian, {"gamma": 0.6}),
    (RationalQuadratic(alpha=0.7, length_scale=1.3), naive.rational_quadratic, {"alpha": 0.7, "length_scale": 1.3}),
    (Tanimoto(), naive.tanimoto, {}),
    *(
        (Matern(nu=nu, length_scale=1.7), naive.matern, {"nu": nu, "length_scale": 1.7})
        for nu in (0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.7, 20.0, math.inf)
    ),
]


def forms(A):
    return [A, np.asfortranarray(A), sp.csr_matrix(A), sp.csr_array(A)]


@pytest.mark.parametrize(
    ("kernel", "formula", "parameters"), CASES, ids=lambda case: getattr(case, "__name__", None) or str(case)
)
def test_against_the_formula(kernel, formula, parameters):
    expected = naive.matrix(formula, X, Z, **parameters)
    for x in forms(X):
        for z in forms(Z):
            np.testing.assert_allclose(kernel(x, z), expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())
    square = naive.matrix(formula, X, X, **parameters)
    np.testing.assert_allclose(kernel(X), square, rtol=1e-10, atol=1e-12 * np.abs(square).max())
    np.testing.assert_allclose(kernel.diag(X), square.diagonal(), rtol=1e-12)
    x32, z32 = X.astype(np.float32), Z.astype(np.float32)
    rounded = naive.matrix(formula, x32, z32, **parameters)
    np.testing.assert_allclose(kernel(x32, z32), rounded, rtol=1e-10, atol=1e-12 * np.abs(rounded).max())


@pytest.mark.parametrize("gamma", [0.0, 0.3, 2])
def test_chi2_against_the_formula(gamma):
    A, B = np.abs(X), np.abs(Z)
    expected = naive.matrix(naive.chi2, A, B, gamma=gamma)
    for x in forms(A):
        for z in forms(B):
            np.testing.assert_allclose(Chi2(gamma)(x, z), expected, rtol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_spectrum_against_the_formula(length):
    words = ["", "A", "ab", "abab", "banana", "ananas", "ααβα", "abcabcabc", "abab"]
    expected = naive.matrix(naive.spectrum, words, words, length=length)
    np.testing.assert_array_equal(Spectrum(length)(words), expected)
    np.testing.assert_array_equal(Spectrum(length)(words, words[4:]), expected[:, 4:])
    np.testing.assert_array_equal(Spectrum(length).diag(np.array(words)), expected.diagonal())
    scaled = naive.matrix(naive.normalised_spectrum, words, words, length=length)
    np.testing.assert_allclose(Spectrum(length, normalise=True)(words), scaled, rtol=1e-14)


def test_spectrum_takes_strings_only():
    with pytest.raises(TypeError, match="single string"):
        Spectrum()("ACGT")
    with pytest.raises(TypeError, match="sample 1 is int"):
        Spectrum()(["ACGT", 3])


@pytest.mark.parametrize("value", [0, 2.0, True, "3", None])
def test_spectrum_length(value):
    with pytest.raises(ValueError, match=r"length=.*integer of at least 1"):
        Spectrum(length=value)


PAIRS = [
    (Linear(), lambda x, z: pairwise.linear_kernel(x, z)),
    (Polynomial(4, 0.3, 2.0), lambda x, z: pairwise.polynomial_kernel(x, z, degree=4, gamma=0.3, coef0=2.0)),
    (Sigmoid(0.3, -1.0), lambda x, z: pairwise.sigmoid_kernel(x, z, gamma=0.3, coef0=-1.0)),
    (Cosine(), lambda x, z: pairwise.cosine_similarity(x, z)),
    (Gaussian(0.7), lambda x, z: pairwise.rbf_kernel(x, z, gamma=0.7)),
    (Gaussian(sigma=1.3), lambda x, z: gp.RBF(1.3)(x, z)),
    (Laplacian(0.7), lambda x, z: pairwise.laplacian_kernel(x, z, gamma=0.7)),
    (Matern(1.5, 0.7), lambda x, z: gp.Matern(0.7, nu=1.5)(x, z)),
    (Matern(2.5, 0.7), lambda x, z: gp.Matern(0.7, nu=2.5)(x, z)),
    (Matern(0.9, 0.7), lambda x, z: gp.Matern(0.7, nu=0.9)(x, z)),
    (RationalQuadratic(0.4, 0.7), lambda x, z: gp.RationalQuadratic(0.7, 0.4)(x, z)),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda case: repr(case) if isinstance(case, type) else None)
def test_against_scikit_learn(ours, theirs):
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-9, atol=1e-12)


def test_chi2_against_scikit_learn():
    np.testing.assert_allclose(
        Chi2(0.6)(np.abs(X), np.abs(Z)), pairwise.chi2_kernel(np.abs(X), np.abs(Z), gamma=0.6), rtol=1e-14
    )


def test_chi2_refuses_negative_entries():
    for given in (X, sp.csr_matrix(X)):
        with pytest.raises(ValueError, match=r"≥ 0, but X contains -"):
            Chi2()(given)
        with pytest.raises(ValueError, match="histograms"):
            Chi2().bind(given)
        with pytest.raises(ValueError, match="histograms"):
            (Linear() + Chi2())(given)


def test_matern_where_the_bessel_function_overflows():
    apart = np.array([0.0, 1e-200, 1e-9, 1e-3, 0.3, 2.0, 40.0]).reshape(-1, 1)
    gaussian = Matern(np.inf)(apart[:1], apart)
    for nu in (3.3, 80.0, 1500.5):
        values = Matern(nu)(apart[:1], apart)
        assert np.isfinite(values).all()
        assert (np.diff(values[0]) <= 0).all()
        # 1 − k ≈ r²/2 · ν/(ν − 1) near 0
        np.testing.assert_allclose(1 - values[0, 3], 0.5e-6 * nu / (nu - 1), rtol=1e-4)
        np.testing.assert_allclose(values, gaussian, atol=0.3 / nu)


def test_matern_is_steep_near_zero_for_small_nu():
    values = Matern(0.1)(np.zeros((1, 1)), np.array([[0.0], [1e-300], [1e-30], [1e-5]]))[0]
    assert values[0] == 1.0
    assert values[1] > values[2] > values[3]
    assert values[3] < 0.95


@pytest.mark.parametrize("kernel", [Matern(), Matern(0.5), Matern(2.5), Matern(0.7), Matern(30.0), RationalQuadratic()])
def test_far_apart_is_zero_and_not_nan(kernel):
    values = kernel(np.array([[0.0], [1e200], [-1e200]]))
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values, np.eye(3), atol=1e-100)


def test_cosine_neither_overflows_nor_underflows():
    small = np.array([[3e-310, 4e-310], [0.0, 0.0], [3e200, 4e200]])
    np.testing.assert_allclose(Cosine()(small), [[1, 0, 1], [0, 0, 0], [1, 0, 1]], rtol=1e-9)
    np.testing.assert_allclose(Cosine()(sp.csr_array(small)), [[1, 0, 1], [0, 0, 0], [1, 0, 1]], rtol=1e-9)


def test_precomputed_is_the_matrix():
    K = np.asfortranarray(Gaussian(gamma=1.0)(X).astype(np.float32))
    values = Precomputed()(K)
    np.testing.assert_array_equal(values, K)
    assert values.dtype == np.float64
    assert values.flags.c_contiguous
    np.testing.assert_array_equal(Precomputed().diag(K), K.diagonal())
    assert Precomputed()(K[:3]).shape == (3, 13)
    assert Precomputed().accepts == "gram"
    assert not Precomputed().mergeable
    with pytest.raises(TypeError, match="alone"):
        Precomputed()(K, K)
    with pytest.raises(TypeError, match="sparse"):
        Precomputed()(sp.csr_matrix(K))
    with pytest.raises(ValueError, match="square"):
        Precomputed().diag(K[:3])
    with pytest.raises(ValueError, match="matrix"):
        Precomputed()(K[0])


def test_feature_maps_dense_and_sparse():
    def monomials(A):
        return np.hstack([A, A**2])

    expected = monomials(X) @ monomials(Z).T
    np.testing.assert_allclose(FromFeatureMap(monomials)(X, Z), expected, rtol=1e-12, atol=1e-14)
    made_sparse = FromFeatureMap(lambda A: sp.coo_array(monomials(A)))
    np.testing.assert_allclose(made_sparse(X, Z), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(made_sparse.diag(X), (monomials(X) ** 2).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(gamma=1.0), Laplacian(gamma=1.0), Cosine(), Tanimoto()])
def test_wrong_shapes(kernel):
    with pytest.raises(ValueError, match="4 features cannot be compared with samples with 3 features"):
        kernel(X, Z[:, :3])
    with pytest.raises(ValueError, match=r"two-dimensional.*reshape"):
        kernel(X[0])
    with pytest.raises(ValueError, match="real numbers"):
        kernel(["a", "b"])
    with pytest.raises(ValueError, match="real numbers"):
        kernel(X + 1j)


def test_integers_are_taken():
    whole = np.arange(6).reshape(3, 2)
    np.testing.assert_array_equal(Linear()(whole), whole @ whole.T)
    np.testing.assert_array_equal(Linear()(sp.csr_matrix(whole)), whole @ whole.T)


def test_duplicate_csr_entries_are_summed_without_touching_them():
    given = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_array_equal(Linear()(given), [[9.0, 0.0], [0.0, 9.0]])
    assert given.nnz == 3
    np.testing.assert_allclose(Gaussian(gamma=0.1)(given), np.exp(-0.1 * np.array([[0.0, 18.0], [18.0, 0.0]])))


@pytest.mark.parametrize("size", [1.0, 1e10, 1e13])
def test_large_common_entries_of_sparse_rows_do_not_hide_small_other_ones(size):
    """Sums over features of CSR rows are exact to rounding where one column is large in all rows."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((30, 400)) < 0.02, rng.random((30, 400)), 0.0)
    X[:, 0] = size + np.sqrt(size) * rng.random(30)
    wide = X.astype(np.longdouble)
    sums, differences = wide[:, None] + wide, np.abs(wide[:, None] - wide)
    chi2 = np.where(sums > 0, differences**2 / np.where(sums > 0, sums, 1), 0).sum(axis=2)
    np.testing.assert_allclose(Chi2(gamma=1.0)(sp.csr_array(X)), np.exp(-chi2).astype(float), rtol=1e-9)
    laplacian = np.exp(-differences.sum(axis=2) / (1 + np.sqrt(size)))
    found = Laplacian(gamma=1 / (1 + np.sqrt(size)))(sp.csr_array(X))
    np.testing.assert_allclose(found, laplacian.astype(float), rtol=1e-9)
