"""Kernel CCA: Hotelling's for linear kernels, a generalised eigenvalue problem for others.

scikit-learn's checks: tests/estimators/unsupervised/test_contract.py. Tools: tests/tools.
Files: tests/estimators/unsupervised/test_files.py. Printed lines and Ctrl-C:
tests/estimators/unsupervised/test_signs_of_life.py.
Linear kernels: tests/estimators/unsupervised/test_linear_kernel.py.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import linalg
from sklearn.cross_decomposition import CCA

from mercer import KernelCCA
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum

rng = np.random.default_rng(0)
shared = rng.normal(size=(120, 2))
X = np.column_stack([shared[:, 0] + 0.5 * rng.normal(size=120), rng.normal(size=120), shared[:, 1]])
Y = np.column_stack([shared[:, 1] + 0.5 * rng.normal(size=120), rng.normal(size=120)])


def test_linear_kernels_are_hotellings():
    model = KernelCCA(2, kernel="linear", kappa=1e-12).fit(X, Y)
    centred = [linalg.orth(A - A.mean(axis=0)) for A in (X, Y)]
    expected = linalg.svdvals(centred[0].T @ centred[1])
    np.testing.assert_allclose(model.correlations_, expected, rtol=1e-8)
    peer = CCA(2, tol=1e-12, max_iter=5000).fit(X, Y)
    for mine, other in zip(model.transform(X, Y), peer.transform(X, Y), strict=True):
        assert np.abs([np.corrcoef(mine[:, k], other[:, k])[0, 1] for k in range(2)]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("form", ["dense", "csr", "precomputed", "float32"])
def test_a_generalised_eigenvalue_problem(form):
    """[0, K_xK_y/n; K_yK_x/n, 0] a = ρ diag(K_x²/n + κK_x, K_y²/n + κK_y) a with centred matrices."""
    kernels, n, kappa = (Gaussian(gamma=0.1), Polynomial(2, 0.5, 1.0)), 120, 0.05
    H = np.eye(n) - 1 / n
    Kx, Ky = (H @ kernel(A) @ H for kernel, A in zip(kernels, (X, Y), strict=True))
    zero, ridge = np.zeros((n, n)), 1e-10 * np.eye(n)
    left = np.block([[zero, Kx @ Ky / n], [Ky @ Kx / n, zero]])
    right = linalg.block_diag(Kx @ Kx / n + kappa * Kx + ridge, Ky @ Ky / n + kappa * Ky + ridge)
    expected = linalg.eigh(left, right, eigvals_only=True)[::-1][:3]
    views = [X, Y]
    if form == "csr":
        views = [sp.csr_array(A) for A in views]
    elif form == "float32":
        views = [A.astype(np.float32) for A in views]
    elif form == "precomputed":
        views, kernels = [kernel(A) for kernel, A in zip(kernels, views, strict=True)], ("precomputed", "precomputed")
    model = KernelCCA(3, kernel=kernels[0], kernel_y=kernels[1], kappa=kappa).fit(*views)
    np.testing.assert_allclose(model.regularized_correlations_, expected, rtol=1e-5)
    f, g = model.transform(*views)
    atol = 2e-3 if form == "float32" else 1e-7
    np.testing.assert_allclose(f.std(axis=0), 1, atol=atol)
    np.testing.assert_allclose(g.std(axis=0), 1, atol=atol)
    np.testing.assert_allclose((f * g).mean(axis=0), model.correlations_, atol=atol)
    np.testing.assert_allclose(f.mean(axis=0), 0, atol=atol)


def test_new_samples_and_weights():
    times = rng.integers(0, 3, size=120)
    weighted = KernelCCA(2, gamma=0.1).fit(X, Y, sample_weight=times)
    repeated = KernelCCA(2, gamma=0.1).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    np.testing.assert_allclose(weighted.correlations_, repeated.correlations_, rtol=1e-8)
    new = rng.normal(size=(10, 3))
    np.testing.assert_allclose(weighted.transform(new), repeated.transform(new), atol=1e-6)


def test_landmarks():
    exact = KernelCCA(2, gamma=0.05, kappa=0.1).fit(X, Y)
    some = KernelCCA(2, gamma=0.05, kappa=0.1, n_landmarks=60, random_state=0).fit(X, Y)
    np.testing.assert_allclose(some.correlations_, exact.correlations_, atol=1e-3)
    np.testing.assert_allclose(some.transform(X, Y)[1], exact.transform(X, Y)[1], atol=2e-2)


def test_strings_and_numbers():
    words = ["ab", "abab", "ababab", "xy", "xyxy", "xyxyxy"] * 3
    lengths = np.array([len(word) for word in words])
    model = KernelCCA(1, kernel=Spectrum(1), kernel_y=Linear(), kappa=1e-6).fit(words, lengths)
    assert model.correlations_[0] == pytest.approx(1, abs=1e-6)
    assert repr(model.kernel_y_) == "Linear()"


def test_what_is_refused():
    with pytest.raises(ValueError, match="requires y to be passed"):
        KernelCCA().fit(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelCCA().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="kappa=0 must be a finite number above 0; without it"):
        KernelCCA(kappa=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"y, the second view, is not valid \(called X here\): Input X contains NaN"):
        KernelCCA().fit(X, np.full(120, np.nan))
    with pytest.raises(ValueError, match="a view does not vary"), pytest.warns(UserWarning, match="constant"):
        KernelCCA().fit(X, np.ones(120))
    with pytest.raises(MemoryError, match="n_landmarks=1000"):
        KernelCCA(cache_size=0.1).fit(X, Y)
