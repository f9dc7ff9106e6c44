"""Properties that hold for all data: symmetry, Cauchy–Schwarz, no negative eigenvalue, invariances."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mercer.kernels import (
    Chi2,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Spectrum,
    Tanimoto,
)

RADIAL = [Gaussian(0.3), Laplacian(0.3), Matern(), Matern(0.5), Matern(0.9, 2.0), RationalQuadratic()]
KERNELS = [
    *RADIAL,
    Linear(),
    Polynomial(3, 0.5, 1.0),
    Cosine(),
    Tanimoto(),
    2 * Gaussian(sigma=1) + Linear() ** 2,
    (Linear() + 1).normalised() * Laplacian(0.1),
]
numbers = st.one_of(
    st.integers(-3, 3).map(float), st.floats(-100, 100).map(lambda x: round(x, 6)), st.sampled_from([0.0, 1e-6, 1e6])
)
samples = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=numbers)
)


# Drawing samples takes longer than evaluating a kernel: all kernels take the same ones.
@given(X=samples)
def test_gram_matrices(X):
    for kernel in KERNELS:
        K, name = kernel(X), repr(kernel)
        np.testing.assert_array_equal(K, K.T, name)
        np.testing.assert_array_equal(K.diagonal(), kernel.diag(X), name)
        size = np.sqrt(np.outer(K.diagonal(), K.diagonal()))
        assert (np.abs(K) <= size * (1 + 1e-9) + 1e-300).all(), name
        assert np.linalg.eigvalsh(K)[0] >= -1e-9 * np.trace(K) - 1e-300, name
        near = {"rtol": 1e-7, "atol": 1e-9 * np.abs(K).max(), "err_msg": name}
        np.testing.assert_allclose(kernel(sp.csr_matrix(X)), K, **near)
        np.testing.assert_allclose(kernel(X, X), K, **near)


@given(X=samples)
def test_gram_matrices_of_histograms(X):
    for kernel in (Chi2(0.1), Chi2(0.1) * Gaussian(0.1)):
        K, name = kernel(np.abs(X)), repr(kernel)
        np.testing.assert_array_equal(K, K.T, name)
        assert (K <= 1).all(), name
        assert np.linalg.eigvalsh(K)[0] >= -1e-9 * len(K), name


@given(words=st.lists(st.text("abc", max_size=12), min_size=1, max_size=8), length=st.integers(1, 4))
def test_a_gram_matrix_of_strings(words, length):
    K = Spectrum(length)(words)
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * np.trace(K) - 1e-300
    np.testing.assert_array_equal(K.diagonal(), Spectrum(length).diag(words))
    scaled = Spectrum(length, normalise=True)(words)
    assert (np.abs(scaled) <= 1 + 1e-12).all()


@given(X=samples, shift=st.sampled_from([1.0, -7.0, 2.0**20, -(2.0**27)]))
def test_translation_invariance(X, shift):
    moved = (X + shift) - shift  # what is left of X at that offset
    for kernel in RADIAL:
        np.testing.assert_allclose(kernel(X + shift), kernel(moved), rtol=1e-6, atol=1e-9, err_msg=repr(kernel))


@given(X=samples, seed=st.integers(0, 100))
def test_rotation_invariance(X, seed):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(X.shape[1], X.shape[1])))
    for kernel in (Gaussian(0.3), Matern(), Linear(), Cosine(), Tanimoto()):
        K = kernel(X)
        np.testing.assert_allclose(kernel(X @ Q), K, rtol=1e-4, atol=1e-4 * np.abs(K).max(), err_msg=repr(kernel))


@given(X=samples, scale=st.sampled_from([0.25, 2.0, 1024.0]))
def test_scaling_laws(X, scale):
    np.testing.assert_allclose(Gaussian(0.5 / scale**2)(scale * X), Gaussian(0.5)(X), rtol=1e-9)
    np.testing.assert_allclose(Laplacian(0.5 / scale)(scale * X), Laplacian(0.5)(X), rtol=1e-9)
    np.testing.assert_allclose(Matern(0.5, scale)(scale * X), Matern(0.5)(X), rtol=1e-9)
    np.testing.assert_allclose(Cosine()(scale * X), Cosine()(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(Tanimoto()(scale * X), Tanimoto()(X), rtol=1e-9, atol=1e-12)


@given(X=samples)
def test_gaussian_with_a_matrix_is_a_gaussian_of_transformed_data(X):
    d = X.shape[1]
    A = np.eye(d) + 0.25 * np.tri(d)
    np.testing.assert_allclose(Gaussian(M=0.01 * A @ A.T)(X), Gaussian(0.01)(X @ A), rtol=1e-6, atol=1e-9)
