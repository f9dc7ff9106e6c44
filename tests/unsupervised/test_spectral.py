"""Spectral clustering: scikit-learn's labels on its examples, and a random walk that can be followed by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering as PeerClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from mercer import SpectralClustering
from mercer.kernels import Gaussian, Laplacian, Linear, Spectrum

DATA = {
    "moons": (*make_moons(200, noise=0.05, random_state=0), 30.0),
    "circles": (*make_circles(200, factor=0.5, noise=0.03, random_state=0), 50.0),
    "blobs": (*make_blobs(150, centers=3, random_state=8), 0.5),
    "varied": (*make_blobs(150, cluster_std=[1.0, 2.5, 0.5], random_state=170), 0.3),
}


@pytest.mark.parametrize("name", DATA)
def test_scikit_learns_labels(name):
    X, _, gamma = DATA[name]
    k = 2 if name in ("moons", "circles") else 3
    mine = SpectralClustering(k, gamma=gamma, random_state=0).fit(X)
    peer = PeerClustering(k, gamma=gamma, random_state=0).fit(X)
    assert adjusted_rand_score(mine.labels_, peer.labels_) == 1
    if name in ("moons", "circles"):
        assert adjusted_rand_score(mine.labels_, DATA[name][1]) == 1


@pytest.mark.parametrize("form", ["csr", "float32", "precomputed", "landmarks", "laplacian"])
def test_forms_of_samples(form):
    X, y, gamma = DATA["moons"]
    options = {"kernel": Gaussian(gamma=gamma)}
    if form == "csr":
        X = sp.csr_array(X)
    elif form == "float32":
        X = X.astype(np.float32)
    elif form == "precomputed":
        X, options = Gaussian(gamma=gamma)(X), {"kernel": "precomputed"}
    elif form == "landmarks":
        options |= {"n_landmarks": 120}
    elif form == "laplacian":
        options = {"kernel": Laplacian(gamma=10.0)}
    model = SpectralClustering(2, random_state=0, **options).fit(X)
    assert adjusted_rand_score(model.labels_, y) == 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_the_walk_by_hand():
    """Eigenvalues of the transition matrix, and of it weighted as if samples were repeated."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    times = np.array([1, 2, 3] * 4)
    for weight, rows in ((np.ones(12), X), (times, np.repeat(X, times, axis=0))):
        A = Gaussian(gamma=0.7)(rows)
        np.fill_diagonal(A, 0.0)
        walk = A / A.sum(axis=1, keepdims=True)
        expected = np.sort(np.linalg.eigvals(walk).real)[::-1][:4]
        model = SpectralClustering(4, gamma=0.7, random_state=0).fit(X, sample_weight=weight)
        np.testing.assert_allclose(model.eigenvalues_, expected, atol=1e-10)
        repeated = SpectralClustering(4, gamma=0.7, random_state=0).fit(rows)
        np.testing.assert_array_equal(np.repeat(model.labels_, weight.astype(int)), repeated.labels_)


def test_new_samples():
    X, y, gamma = DATA["circles"]
    model = SpectralClustering(2, gamma=gamma, random_state=0).fit(X)
    angle = np.linspace(0, 6, 40)
    inner = 0.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    assert (model.predict(inner) == model.labels_[y == 1][0]).all()
    assert (model.predict(2 * inner) == model.labels_[y == 0][0]).all()
    assert model.predict([[1e3, 1e3]]).tolist() == [-1]  # like no sample at all


def test_separate_graphs_are_all_found():
    """Affinities of exactly zero between five groups: the eigenvalue 1 five times."""
    centres = 1e3 * np.arange(5)
    X = np.concatenate([c + np.random.default_rng(0).normal(size=30) for c in centres])[:, None]
    model = SpectralClustering(5, gamma=1.0, random_state=0).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, 1, atol=1e-12)
    assert adjusted_rand_score(model.labels_, np.repeat(np.arange(5), 30)) == 1


def test_strings():
    words = ["abab", "baba", "aabb", "xyxy", "yxyx", "xxyy"]
    model = SpectralClustering(2, kernel=Spectrum(2), random_state=0).fit(words)
    assert adjusted_rand_score(model.labels_, [0, 0, 0, 1, 1, 1]) == 1


def test_what_is_refused():
    X = DATA["moons"][0]
    with pytest.raises(ValueError, match=r"affinities must not be negative, but Linear\(\) has the value -"):
        SpectralClustering(2, kernel=Linear()).fit(X)
    with pytest.raises(MemoryError, match="n_landmarks=1000"):
        SpectralClustering(2, cache_size=0.1).fit(X)
    with pytest.raises(ValueError, match="as far as the landmarks can tell; raise n_landmarks"):
        SpectralClustering(2, gamma=1e4, n_landmarks=3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="n_clusters=5 are too many"):
        SpectralClustering(5).fit(X[:4])
