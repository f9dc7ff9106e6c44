"""Kernel PCA: scikit-learn's up to sign, what its mathematics says elsewhere, and what it refuses.

scikit-learn's checks: tests/estimators/unsupervised/test_contract.py. Tools: tests/tools.
Files: tests/estimators/unsupervised/test_files.py. Printed lines and Ctrl-C:
tests/estimators/unsupervised/test_signs_of_life.py.
Linear kernels: tests/estimators/unsupervised/test_linear_kernel.py. In tables: tests/tables/test_tabular.py.
Engines: tests/places/engines/test_torch_tools.py.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as PeerPCA

from mercer import KernelPCA
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial, Sigmoid, Spectrum
from mercer.places import eigenpairs
from mercer.runtime.errors import NonPSDKernelWarning

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
KERNELS = {"rbf": Gaussian(gamma=0.2), "poly": Polynomial(2, 0.5, 1.0), "linear": Linear()}


def same_up_to_sign(mine, other, **tolerance):
    signs = np.sign(np.sum(mine * other, axis=0))
    np.testing.assert_allclose(mine * signs, other, **tolerance)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", ["dense", "csr", "precomputed", "float32"])
def test_scikit_learns_up_to_sign(name, form):
    kernel, k = KERNELS[name], 3 if name == "linear" else 5
    options = {"rbf": {"gamma": 0.2}, "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0}, "linear": {}}[name]
    peer = PeerPCA(k, kernel=name, **options).fit(X)
    given, new = X, Z
    if form == "precomputed":
        given, new, kernel = kernel(X), kernel(Z, X), "precomputed"
    elif form == "csr":
        given, new = sp.csr_array(X), sp.csr_array(Z)
    elif form == "float32":
        given, new = X.astype(np.float32), Z.astype(np.float32)
    model = KernelPCA(k, kernel=kernel).fit(given)
    atol = 2e-4 if form == "float32" else 1e-10
    same_up_to_sign(model.transform(given), peer.transform(X), atol=atol)
    same_up_to_sign(model.transform(new), peer.transform(Z), atol=atol)
    np.testing.assert_allclose(model.eigenvalues_, peer.eigenvalues_, rtol=1e-5 if form == "float32" else 1e-9)


def test_variances_are_those_of_the_scores_and_add_up():
    model = KernelPCA(kernel=Gaussian(gamma=0.2)).fit(X)
    scores = model.transform(X)
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(scores.T @ scores / 60, np.diag(model.explained_variance_), atol=1e-7)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)
    # The components are unit vectors of the kernel's space, and orthogonal.
    functions = model.function_[:4]
    gram = [[f.inner(g) for g in functions] for f in functions]
    np.testing.assert_allclose(gram, np.eye(4), atol=1e-9)


def test_a_linear_kernel_is_principal_component_analysis_and_has_no_more_components():
    model, peer = KernelPCA(kernel="linear").fit(X), PCA().fit(X)
    assert model.n_components_ == 3
    np.testing.assert_allclose(model.explained_variance_ratio_, peer.explained_variance_ratio_)
    same_up_to_sign(model.transform(Z), peer.transform(Z), atol=1e-10)
    assert list(model.get_feature_names_out()) == ["kernelpca0", "kernelpca1", "kernelpca2"]


def test_a_weight_is_a_repetition():
    times = rng.integers(0, 4, size=60)
    weighted = KernelPCA(4, gamma=0.2).fit(X, sample_weight=times)
    repeated = KernelPCA(4, gamma=0.2).fit(np.repeat(X, times, axis=0))
    np.testing.assert_array_equal(weighted.transform(Z), repeated.transform(Z))
    np.testing.assert_array_equal(weighted.eigenvalues_, repeated.eigenvalues_)
    given = KernelPCA(4, kernel="precomputed").fit(Gaussian(gamma=0.2)(X), sample_weight=times)
    np.testing.assert_allclose(given.transform(Gaussian(gamma=0.2)(Z, X)), weighted.transform(Z), atol=1e-9)


def test_signs_do_not_depend_on_the_order_of_samples():
    order = rng.permutation(60)
    np.testing.assert_array_equal(
        KernelPCA(6, gamma=0.2).fit(X).transform(Z), KernelPCA(6, gamma=0.2).fit(X[order]).transform(Z)
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_landmarks(form):
    """All samples as landmarks are exact; few of them give the leading components nearly."""
    many = rng.normal(size=(400, 3))
    exact = KernelPCA(3, gamma=0.05).fit(form(many))
    some = KernelPCA(3, gamma=0.05, n_landmarks=60, random_state=0).fit(form(many))
    assert some._expansion_.coefficients.shape == (60, 3)
    same_up_to_sign(some.transform(form(Z)), exact.transform(Z), atol=2e-3)
    np.testing.assert_allclose(some.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=2e-3)
    whole = KernelPCA(3, gamma=0.05, n_landmarks=400).fit(form(many))
    np.testing.assert_array_equal(whole.transform(Z), exact.transform(Z))
    K = Gaussian(gamma=0.05)(many)
    given = KernelPCA(3, kernel="precomputed", n_landmarks=60, random_state=0).fit(K)
    same_up_to_sign(given.transform(Gaussian(gamma=0.05)(Z, many)), exact.transform(Z), atol=2e-3)


def test_landmarks_can_be_too_few():
    """What is left out is seen: fewer landmarks explain less variance, never more."""
    many = rng.normal(size=(300, 3))
    shares = [
        KernelPCA(5, gamma=0.5, n_landmarks=m, random_state=0).fit(many).explained_variance_[0] for m in (5, 40, 300)
    ]
    assert shares[0] < shares[1] < shares[2]


def test_strings():
    words = ["abab", "baba", "aabb", "xyxy", "yxyx", "xxyy"]
    scores = KernelPCA(1, kernel=Spectrum(2)).fit(words).transform(["abba", "xyyx"])
    assert scores[0, 0] * scores[1, 0] < 0


def test_inverse_of_a_linear_kernel_is_exact_and_of_a_gaussian_takes_noise_away():
    linear = KernelPCA(kernel="linear").fit(X)
    np.testing.assert_allclose(linear.inverse_transform(linear.transform(Z)), Z, atol=1e-9)
    angle = rng.uniform(0, 2 * np.pi, 100)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = circle + 0.1 * rng.normal(size=circle.shape)
    model = KernelPCA(4, gamma=0.5).fit(noisy)
    cleaned = model.inverse_transform(model.transform(noisy))
    off = [np.abs(np.linalg.norm(points, axis=1) - 1).mean() for points in (noisy, cleaned)]
    assert off[1] < 0.6 * off[0]
    # It is a stationary point of the distance in feature space.
    C = model.transform(noisy) @ model._expansion_.coefficients.T + model._mean_
    gradient = model.kernel_.gradient(cleaned, model._expansion_.vectors, weights=C)
    assert np.abs(gradient).max() < 1e-6
    with pytest.raises(ValueError, match="linear or a Gaussian kernel, not Laplacian"):
        KernelPCA(2, kernel=Laplacian(gamma=1.0)).fit(X).inverse_transform([[0.0, 0.0]])
    with pytest.raises(ValueError, match="3 columns, but there are 4 components"):
        model.inverse_transform([[0.0, 0.0, 0.0]])


def test_what_is_refused():
    with pytest.raises(MemoryError, match=r"3 matrices of 60 × 60.*n_landmarks=1000"):
        KernelPCA(2, cache_size=0.05).fit(X)
    KernelPCA(2, cache_size=0.05, n_landmarks=10).fit(X)
    with pytest.raises(MemoryError, match="fewer landmarks"):
        KernelPCA(2, cache_size=0.005, n_landmarks=10).fit(X)
    with pytest.raises(ValueError, match=r"no principal component.*single point"):
        KernelPCA(2, gamma=1.0).fit([[1.0, 2.0]] * 5)
    with pytest.raises(ValueError, match="n_components=0 must be an integer of at least 1"):
        KernelPCA(0).fit(X)
    with pytest.raises(ValueError, match="n_landmarks=0"):
        KernelPCA(2, n_landmarks=0).fit(X)
    with pytest.warns(NonPSDKernelWarning, match="negative square are dropped"):
        KernelPCA(2, kernel=Sigmoid(gamma=1.0, coef0=-1.0)).fit(X)
    with pytest.raises(ValueError, match="not positive semi-definite: its matrix on 20 landmarks"):
        KernelPCA(2, kernel=Sigmoid(gamma=1.0, coef0=-1.0), n_landmarks=20).fit(X)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = KernelPCA(2).fit(X)
    before = model.transform(Z)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 3), np.nan))
    np.testing.assert_array_equal(model.transform(Z), before)


# --- eigenpairs ------------------------------------------------------------------------------------------------------


def made(values):
    """A symmetric matrix with these eigenvalues."""
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(len(values), len(values))))[0]
    S = (Q * values) @ Q.T
    return 0.5 * (S + S.T)


@pytest.mark.parametrize("kind", ["decaying", "equal", "low rank", "slow"])
def test_few_of_many_eigenpairs(kind, monkeypatch):
    monkeypatch.setattr(eigenpairs, "_LAPACK_ROWS", 100)
    values = {
        "decaying": 0.9 ** np.arange(300),
        "equal": np.r_[np.ones(7), 0.5 * np.ones(293)],
        "low rank": np.r_[5.0, 4.0, 3.0, np.zeros(297)],
        "slow": np.linspace(1, 0.99, 300),
    }[kind]
    S = made(values)
    found, vectors = eigenpairs.leading(S, 6)
    np.testing.assert_allclose(found, values[:6], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(S @ vectors, vectors * found, atol=1e-10)


def test_krylov_spaces_are_used_and_give_up(monkeypatch):
    monkeypatch.setattr(eigenpairs, "_LAPACK_ROWS", 100)
    assert eigenpairs._krylov(made(0.9 ** np.arange(300)), 6) is not None
    monkeypatch.setattr(eigenpairs, "_RESTARTS", 1)
    assert eigenpairs._krylov(made(np.linspace(1, 0.99, 300)), 6) is None


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
def test_shares_of_an_indefinite_kernel_are_of_its_positive_part():
    Z = np.random.default_rng(0).normal(size=(40, 3))
    options = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}
    K = np.tanh(Z @ Z.T - 1.0)
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    values = np.linalg.eigvalsh(centred)[::-1]
    assert values[-1] < -1  # far from rounding
    expected = values[values > 0] / values[values > 0].sum()
    for k in (1, 5, None):
        found = KernelPCA(k, **options).fit(Z).explained_variance_ratio_
        np.testing.assert_allclose(found[:10], expected[: len(found)][:10], rtol=1e-8)
    assert found.sum() == pytest.approx(1.0)


def test_it_is_numpys_eigenvectors_of_the_centred_matrix():
    """Scores √μ_k v_k for HKH = Σ μ_k v_kv_k'; K is written out."""
    K = np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    H = np.eye(60) - 1 / 60
    values, vectors = np.linalg.eigh(H @ K @ H)
    values, vectors = values[:-6:-1], vectors[:, :-6:-1]
    model = KernelPCA(5, gamma=0.2).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    same_up_to_sign(model.transform(X), vectors * np.sqrt(values), atol=1e-9)
