"""The Mercer check refutes with a witness, and never proves."""

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer.inspection.features import mercer_violation
from mercer.kernels import Gaussian, Linear, Polynomial, Sigmoid, Spectrum, check_kernel

rng = np.random.default_rng(7)
X = rng.normal(size=(40, 3))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "cosine", Gaussian() + Linear() ** 2])
def test_no_counterexample(kernel):
    for given in (X, X.astype(np.float32), sp.csr_matrix(X), X.tolist()):
        check = check_kernel(given, kernel=kernel)
        assert check.symmetric
        assert check.witness is None
        assert check.smallest_eigenvalue > -check.tolerance
        assert check.verdict.startswith("no counterexample here (40 samples)")
        assert "never prove" in repr(check)


@pytest.mark.parametrize("kernel", ["sigmoid", Sigmoid(1.0, -1.0), Polynomial(3, 1.0, -1.0), lambda A, B: -(A @ B.T)])
def test_refuted_with_a_witness(kernel):
    check = check_kernel(X, kernel=kernel)
    K = kernel(X, X) if callable(kernel) else Sigmoid().bind(X)(X)
    assert check.symmetric
    assert check.witness.shape == (40,)
    assert check.witness @ K @ check.witness == pytest.approx(check.smallest_eigenvalue, rel=1e-6)
    assert check.smallest_eigenvalue < -check.tolerance < 0
    assert check.verdict.startswith("refuted on these 40 samples: K has a negative eigenvalue")
    assert "witness" in repr(check)


def test_refuted_by_asymmetry():
    check = check_kernel(X, kernel=lambda A, B: A[:, :1] + 0 * B[:, 0])
    assert not check.symmetric
    assert check.asymmetry == pytest.approx(np.ptp(X[:, 0]))
    assert "K is not symmetric" in check.verdict
    assert "symmetric            no" in repr(check)


def test_precomputed_matrices():
    assert check_kernel(X @ X.T, kernel="precomputed").witness is None
    check = check_kernel(np.array([[0.0, 1.0], [1.0, 0.0]]), kernel="precomputed")
    assert check.smallest_eigenvalue == pytest.approx(-1)
    np.testing.assert_allclose(np.abs(check.witness), np.sqrt(0.5))
    with pytest.raises(ValueError, match="square"):
        check_kernel(X, kernel="precomputed")
    with pytest.raises(ValueError, match="not finite"):
        check_kernel(np.full((2, 2), np.nan), kernel="precomputed")


def test_the_rounding_of_a_float32_matrix_refutes_nothing():
    K = (X @ X.T).astype(np.float32)
    assert np.linalg.eigvalsh(K.astype(np.float64))[0] < -1e-10 * K.max()
    assert check_kernel(K, kernel="precomputed").witness is None
    assert mercer_violation(K, kernel="precomputed", weights=np.ones(len(K))) is None
    assert check_kernel(np.diag([1.0, 1.0, -1e-3]).astype(np.float32), kernel="precomputed").witness is not None


def test_a_violation_is_one_of_both_triangles():
    K = np.array([[1.0, 0.0], [1.5, 1.0]])  # c'Kc > 0 for all c, but not with the lower triangle alone
    assert mercer_violation(K, kernel="precomputed", weights=np.ones(2)) is None


def test_strings():
    words = ["ab", "ba", "abab", ""]
    assert check_kernel(words, kernel=Spectrum(2)).witness is None
    assert check_kernel(words, kernel="spectrum").witness is None
    check = check_kernel(words, kernel=lambda A, B: [[float(abs(len(a) - len(b))) for b in B] for a in A])
    assert check.witness is not None


def test_one_sample_and_none():
    assert check_kernel([[1.0, 2.0]], kernel="rbf").smallest_eigenvalue == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"no entries|at least one sample"):
        check_kernel(np.empty((0, 2)), kernel="rbf")


def test_tolerance():
    nearly = np.diag([1.0, 1.0, -1e-6])
    assert check_kernel(nearly, kernel="precomputed").witness is not None
    assert check_kernel(nearly, kernel="precomputed", tol=1e-3).witness is None
    for tol in (-1.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="tol="):
            check_kernel(X, kernel="rbf", tol=tol)


def test_public():
    assert mercer.check_kernel is check_kernel
