"""Kernels written by users: every way a function can be wrong is an error that says which."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels import FromFeatureMap, FromFunction, Gaussian
from mercer.kernels.names import as_kernel

rng = np.random.default_rng(6)
X, Z = rng.normal(size=(70, 3)), rng.normal(size=(5, 3))


def inner(A, B):
    return A @ B.T


def test_a_right_function():
    kernel = FromFunction(inner)
    np.testing.assert_allclose(kernel(X, Z), X @ Z.T)
    np.testing.assert_allclose(kernel(X), X @ X.T)
    np.testing.assert_allclose(kernel.diag(X), (X**2).sum(axis=1))
    np.testing.assert_allclose(kernel(sp.csr_matrix(X), sp.csr_array(Z)), X @ Z.T)
    np.testing.assert_allclose(kernel(X, sp.csr_matrix(Z)), X @ Z.T)
    assert repr(kernel) == "FromFunction(inner)"


def test_results_of_many_kinds():
    for convert in (np.ndarray.tolist, np.asfortranarray, sp.csr_matrix, sp.coo_array):
        values = FromFunction(lambda A, B, convert=convert: convert(A @ B.T))(X, Z)
        np.testing.assert_allclose(values, X @ Z.T)
        assert values.flags.c_contiguous
    np.testing.assert_array_equal(FromFunction(lambda A, B: np.eye(len(A), len(B), dtype=bool))(X), np.eye(70))
    np.testing.assert_array_equal(FromFunction(lambda A, B: np.ones((len(A), len(B)), dtype=int))(X, Z), 1.0)


def test_the_result_is_fresh():
    stored = np.ones((70, 5))
    values = FromFunction(lambda A, B: stored)(X, Z)
    values[:] = 7.0
    assert (stored == 1.0).all()


@pytest.mark.parametrize("shape", [(), (70,), (5, 70), (70, 5, 1), (69, 5)])
def test_wrong_shape(shape):
    with pytest.raises(ValueError, match=r"returned shape .* for 70 and 5 samples; it must return \(70, 5\)"):
        FromFunction(lambda A, B: np.ones(shape))(X, Z)


def test_the_hint_for_functions_of_two_samples_works():
    def f(x, z):
        return float(x @ z)

    with pytest.raises((ValueError, TypeError)):
        FromFunction(f)(X, Z)
    np.testing.assert_allclose(FromFunction(lambda X, Z: [[f(x, z) for z in Z] for x in X])(X, Z), X @ Z.T)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_values(value):
    def broken(A, B):
        K = A @ B.T
        K[-1, -1] = value
        return K

    for use in (lambda k: k(X, Z), lambda k: k(X), lambda k: k.diag(X), lambda k: (2 * k + Gaussian(1.0))(X, Z)):
        with pytest.raises(ValueError, match=rf"broken returned {value}; all its values must be finite"):
            use(FromFunction(broken))


@pytest.mark.parametrize("bad", [np.full((70, 5), "a"), np.ones((70, 5)) + 1j, np.full((70, 5), None)])
def test_values_that_are_not_real_numbers(bad):
    with pytest.raises(ValueError, match="must return real numbers, not"):
        FromFunction(lambda A, B: bad)(X, Z)


def test_exceptions_propagate():
    class Custom(Exception):
        pass

    def raising(A, B):
        raise Custom("mine")

    for use in (lambda k: k(X, Z), lambda k: k(X), lambda k: k.diag(X), lambda k: (k + 1)(X)):
        with pytest.raises(Custom, match="mine"):
            use(FromFunction(raising))


@pytest.mark.parametrize("form", [np.array, sp.csr_matrix, sp.csr_array])
def test_a_function_that_writes_to_its_input(form):
    def spoiling(A, B):
        (A.data if sp.issparse(A) else A)[:] = 0.0
        return np.ones((A.shape[0], B.shape[0]))

    data = form(X)
    for use in (lambda k: k(data, data), lambda k: k(data), lambda k: k.diag(data)):
        with pytest.raises(ValueError, match="read-only"):
            use(FromFunction(spoiling))
    assert (data != form(X)).sum() == 0
    (data.data if sp.issparse(data) else data)[:] = 1.0  # the caller's own array stays writable


def test_asymmetry():
    def asymmetric(A, B):
        return A @ np.diag([1.0, 2.0, 3.0]) @ np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]) @ B.T

    kernel = FromFunction(asymmetric)
    for use in (lambda: kernel(X), lambda: kernel.diag(X), lambda: (kernel + 1).diag(X)):
        with pytest.raises(
            ValueError, match=r"asymmetric is not symmetric, .* differ by up to .*\(k\(x, z\) \+ k\(z, x\)\) / 2"
        ):
            use()


def test_rounding_is_not_asymmetry():
    kernel = FromFunction(lambda A, B: (A @ B.T) * (1 + 1e-12 * A[:, :1]))
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), kernel.diag(X))
    single = FromFunction(lambda A, B: (A.astype(np.float32) @ B.astype(np.float32).T).astype(np.float64))
    assert single(X).shape == (70, 70)


def test_not_a_function():
    for bad in (None, 3, "inner"):
        with pytest.raises(TypeError, match="must be a function of the samples"):
            FromFunction(bad)
        with pytest.raises(TypeError, match="must be a function of the samples"):
            FromFeatureMap(bad)
    with pytest.raises(ValueError, match="accepts='rows'"):
        FromFunction(inner, accepts="rows")


def test_functions_of_strings():
    kernel = FromFunction(lambda A, B: [[min(len(a), len(b)) for b in B] for a in A], accepts="sequences")
    words = ["a", "bbb", "cc"]
    np.testing.assert_array_equal(kernel(words), [[1, 1, 1], [1, 3, 2], [1, 2, 2]])
    np.testing.assert_array_equal(kernel.diag(words), [1, 3, 2])
    np.testing.assert_array_equal(kernel(np.array(words), words[1:]), [[1, 1], [3, 2], [2, 2]])


def test_feature_maps():
    for bad, message in ((lambda A: A[:2], "returned 2 rows for 70"), (lambda A: A[:, 0], "two-dimensional")):
        with pytest.raises(ValueError, match=message):
            FromFeatureMap(bad)(X)
    kernel = FromFeatureMap(lambda words: [[w.count("a"), len(w)] for w in words], accepts="sequences")
    np.testing.assert_array_equal(kernel(["aa", "b"]), [[8, 2], [2, 1]])


def test_kernels_of_scikit_learns_gaussian_processes_are_taken():
    from sklearn.gaussian_process.kernels import RBF

    np.testing.assert_allclose(as_kernel(RBF(2.0))(X, Z), Gaussian(sigma=2.0)(X, Z), rtol=1e-12)
