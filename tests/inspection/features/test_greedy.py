"""Incomplete Cholesky factors and kernel feature analysis against plain loops."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inspection.features import incomplete_cholesky, kernel_feature_analysis
from mercer.kernels import Gaussian, Polynomial, Sigmoid
from reference import greedy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.4), Polynomial(degree=2, gamma=1.0, coef0=1.0)])
@pytest.mark.parametrize("most", [7, None])
def test_the_factor_is_that_of_the_whole_matrix(kernel, most):
    K, tol = kernel(X), 1e-6 * kernel(X).max()
    found = incomplete_cholesky(X, kernel=kernel, tol=tol, max_rank=most)
    Z, pivots = greedy.inchol(K, tol, len(X) if most is None else most)
    np.testing.assert_array_equal(found.pivots, pivots)
    np.testing.assert_allclose(found.Z, Z, atol=1e-7 * np.abs(Z).max())
    np.testing.assert_allclose(found.residual, np.maximum(0, (K - Z @ Z.T).diagonal()), atol=1e-9 * K.max())
    if most is None:
        assert np.abs(K - found.Z @ found.Z.T).max() <= 2 * tol
    np.testing.assert_allclose(
        incomplete_cholesky(sp.csr_array(X), kernel=kernel, tol=tol, max_rank=most).Z, found.Z, atol=1e-9
    )


def test_a_singular_matrix_ends_at_its_rank():
    found = incomplete_cholesky(X, kernel="linear", tol=0.0)
    assert found.Z.shape == (40, 3)
    np.testing.assert_allclose(found.Z @ found.Z.T, X @ X.T, atol=1e-12)


@pytest.mark.parametrize("normalise", [True, False])
def test_features_are_those_of_plain_loops(normalise):
    kernel = Gaussian(gamma=0.4)
    functions = kernel_feature_analysis(X, 5, kernel=kernel, normalise=normalise)
    found, taken = greedy.kfa(kernel(X), 5, normalise)
    for f, coefficients in zip(functions, found, strict=True):
        expected = kernel(X) @ coefficients
        np.testing.assert_allclose(f(X), expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_array_equal(functions[-1].vectors, X[taken])
    Gram = np.array([[f.inner(g) / (f.norm * g.norm) for f in functions] for g in functions])
    np.testing.assert_allclose(Gram, np.eye(5), atol=1e-9)


def test_candidates_are_drawn_and_dependent_ones_end_it():
    drawn = kernel_feature_analysis(X, 4, candidates=6, random_state=0)
    again = kernel_feature_analysis(X, 4, candidates=6, random_state=0)
    assert [f(X[:1])[0] for f in drawn] == [f(X[:1])[0] for f in again]
    assert len(kernel_feature_analysis(X, 10, kernel="linear")) == 3
    with pytest.raises(ValueError, match="n_features"):
        kernel_feature_analysis(X, 0)


def test_an_indefinite_kernel_has_no_incomplete_factor():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        incomplete_cholesky(X, kernel=Sigmoid(gamma=1.0, coef0=-1.0), tol=1e-6)
