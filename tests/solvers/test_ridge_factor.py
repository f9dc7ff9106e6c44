"""Cholesky factors with the smallest ridge that is enough."""

import math

import numpy as np

from mercer.solvers.ridge_factor import growing, ridge_factor


def matrix(eigenvalues):
    """Return a symmetric matrix with these eigenvalues."""
    n = len(eigenvalues)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
    return (Q * np.asarray(eigenvalues)) @ Q.T


def test_a_definite_matrix_gets_the_first_ridge_and_stays_as_it_is():
    A = matrix([1.0, 2.0, 3.0])
    before, B = A.copy(), np.ones((3, 2))
    factor = ridge_factor(A, (0.0, 1.0), 1)
    assert factor.ridge == 0.0
    np.testing.assert_allclose(np.tril(factor.L) @ np.tril(factor.L).T, A, atol=1e-14)
    np.testing.assert_allclose(A @ factor.solve(B), B, atol=1e-13)
    np.testing.assert_array_equal(A, before)
    np.testing.assert_array_equal(B, 1.0)


def test_an_indefinite_matrix_gets_the_first_ridge_that_suffices():
    A = matrix([-0.5, 1.0, 2.0])
    factor = ridge_factor(A, growing(1e-3, 10, math.inf), 1)
    assert 0.5 <= factor.ridge <= 5.0
    np.testing.assert_allclose(np.tril(factor.L) @ np.tril(factor.L).T, A + factor.ridge * np.eye(3), atol=1e-13)


def test_none_where_no_ridge_suffices():
    assert ridge_factor(matrix([-0.5, 1.0, 2.0]), growing(1e-12, 100, 1e-3), 1) is None
    assert ridge_factor(np.full((2, 2), np.nan), (0.0, 1.0), 1) is None


def test_the_ridge_may_be_counted_in_units_and_the_diagonal_be_another():
    A = matrix([1.0, 2.0]).astype(np.float32)
    diagonal = np.diagonal(A) + np.array([10.0, 20.0])
    factor = ridge_factor(A, (0.5,), 1, unit=diagonal, diagonal=diagonal)
    wanted = np.float64(A)
    np.fill_diagonal(wanted, 1.5 * diagonal)
    np.testing.assert_allclose(np.tril(factor.L) @ np.tril(factor.L).T, wanted, rtol=1e-12)


def test_growing_ends_at_its_limit():
    assert list(growing(1.0, 10, 100.0)) == [1.0, 10.0, 100.0]
    assert list(growing(2.0, 10, 1.0)) == []
