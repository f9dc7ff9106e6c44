"""Spectral clustering: scikit-learn's labels on its examples, and a random walk that can be followed by hand.

scikit-learn's checks: tests/estimators/unsupervised/test_contract.py. Tools: tests/tools.
Files: tests/estimators/unsupervised/test_files.py. Printed lines and Ctrl-C:
tests/estimators/unsupervised/test_signs_of_life.py.
Engines: tests/places/engines/test_torch_tools.py.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering as PeerClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

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


@pytest.mark.parametrize(("name", "n_neighbors"), [("moons", 10), ("circles", 8), ("blobs", 12)])
def test_nearest_neighbours_and_sparse_affinities_have_scikit_learns_labels(name, n_neighbors):
    X, _, _ = DATA[name]
    k = 3 if name == "blobs" else 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of graphs that are not connected
        peer = PeerClustering(k, affinity="nearest_neighbors", n_neighbors=n_neighbors, random_state=0).fit(X)
    mine = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=n_neighbors, random_state=0).fit(X)
    assert adjusted_rand_score(mine.labels_, peer.labels_) == 1
    assert not hasattr(mine, "predict")
    A = peer.affinity_matrix_
    for form in (sp.csr_array, sp.coo_matrix):
        given = SpectralClustering(k, kernel="precomputed", random_state=0).fit(form(A))
        assert adjusted_rand_score(given.labels_, peer.labels_) == 1
        np.testing.assert_allclose(given.eigenvalues_, mine.eigenvalues_, atol=1e-12)
    walk = A.toarray()
    np.fill_diagonal(walk, 0.0)
    expected = np.sort(np.linalg.eigvals(walk / walk.sum(axis=1, keepdims=True)).real)[::-1][:k]
    np.testing.assert_allclose(mine.eigenvalues_, expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")  # small values are left out
def test_a_sparse_matrix_is_divided_like_a_dense_one():
    X, _, gamma = DATA["moons"]
    A = Gaussian(gamma=gamma)(X)
    A[A < 1e-3] = 0.0
    weight = np.ones(len(A))
    weight[:7], weight[7:30] = 0.0, 2.0
    dense = SpectralClustering(3, kernel="precomputed", random_state=0).fit(A, sample_weight=weight)
    sparse = SpectralClustering(3, kernel="precomputed", random_state=0).fit(sp.csr_array(A), sample_weight=weight)
    np.testing.assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, atol=1e-12)
    assert adjusted_rand_score(sparse.labels_, dense.labels_) == 1  # the walk's parts may come in either order
    assert adjusted_rand_score(sparse.predict(A), dense.predict(A)) == 1


def test_eigenvalues_of_a_large_graph_are_lapacks():
    """Two parts without a link, so that 1 is there twice, and eigenvalues that crowd at 1."""
    X, y = make_moons(900, noise=0.03, random_state=0)
    model = SpectralClustering(4, affinity="nearest_neighbors", n_neighbors=10, random_state=0).fit(X)
    A = kneighbors_graph(X, 10, include_self=True).toarray()
    A = (A + A.T) / 2
    np.fill_diagonal(A, 0.0)
    root = np.sqrt(A.sum(axis=1))
    expected = np.linalg.eigvalsh(A / root / root[:, None])[::-1][:4]
    np.testing.assert_allclose(model.eigenvalues_, expected, atol=1e-10)
    two = SpectralClustering(2, affinity="nearest_neighbors", n_neighbors=10, random_state=0).fit(X)
    assert adjusted_rand_score(two.labels_, y) == 1


@pytest.mark.parametrize(
    ("options", "change", "told"),
    [
        ({"kernel": "precomputed"}, lambda A: A[:50], r"square matrix.*\(50, 200\)"),
        ({"kernel": "precomputed"}, lambda A: -A, "Negative values in data"),
        ({"kernel": "precomputed"}, lambda A: sp.csr_array(sp.triu(A)), r"not symmetric.*give \(A \+ A.T\) / 2"),
        ({"kernel": "precomputed", "n_landmarks": 9}, lambda A: A, "n_landmarks is not available"),
        ({"kernel": "precomputed", "n_clusters": 201}, lambda A: A, "n_clusters=201 is too large for n_samples=200"),
        ({"affinity": "rbf"}, lambda A: A, r"affinity='rbf' must be one of None, 'nearest_neighbors'"),
        ({"affinity": "nearest_neighbors", "n_neighbors": 201}, lambda A: A, "n_neighbors=201 is too large"),
        ({"affinity": "nearest_neighbors", "n_neighbors": 0}, lambda A: A, "n_neighbors=0 must be an integer"),
    ],
)
def test_graphs_that_are_none(options, change, told):
    A = sp.csr_array(Gaussian(gamma=30.0)(DATA["moons"][0]))
    with pytest.raises(ValueError, match=told):
        SpectralClustering(**options).fit(change(A))


def test_a_weight_among_neighbours_counts_copies():
    X = DATA["moons"][0]
    options = {"affinity": "nearest_neighbors", "random_state": 0}
    weighted = SpectralClustering(2, n_neighbors=30, **options).fit(X, sample_weight=np.full(len(X), 3))
    copies = SpectralClustering(2, n_neighbors=30, **options).fit(np.repeat(X, 3, axis=0))
    np.testing.assert_allclose(weighted.eigenvalues_, copies.eigenvalues_, atol=1e-10)
    assert adjusted_rand_score(np.repeat(weighted.labels_, 3), copies.labels_) == 1
    # Of the last group a part only is near, and the part is what each copy is linked with on average.
    weight = np.random.default_rng(0).choice([0.25, 1.0, 2.5, 9.0], size=len(X))
    odd = SpectralClustering(3, n_neighbors=7, **options).fit(X, sample_weight=weight)
    A = np.zeros((len(X), len(X)))
    for i, row in enumerate(np.linalg.norm(X[:, None] - X, axis=2)):
        left = 7.0
        for j in np.argsort(row):
            taken = min(left, weight[j])
            A[i, j] += 0.5 * taken / weight[j]
            A[j, i] += 0.5 * taken / weight[j]
            left -= taken
    degrees = A @ weight - A.diagonal()
    walk = (A * weight - np.diag(A.diagonal())) / degrees[:, None]
    expected = np.sort(np.linalg.eigvals(walk).real)[::-1][:3]
    np.testing.assert_allclose(odd.eigenvalues_, expected, atol=1e-10)


def test_samples_of_no_weight_are_nobodys_neighbours():
    X = DATA["moons"][0]
    options = {"affinity": "nearest_neighbors", "random_state": 0}
    weight = np.arange(len(X)) % 4 > 0
    model = SpectralClustering(2, **options).fit(X, sample_weight=weight)
    alone = SpectralClustering(2, **options).fit(X[weight])
    np.testing.assert_allclose(model.eigenvalues_, alone.eigenvalues_, atol=1e-12)
    assert (model.labels_ >= 0).all()
    with pytest.raises(ValueError, match=r"n_neighbors=10 is too large for samples of 2\.5 units of weight in all"):
        SpectralClustering(2, **options).fit(X, sample_weight=0.5 * (np.arange(len(X)) < 5))


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
    with pytest.raises(ValueError, match="after projection onto the landmarks; raise n_landmarks"):
        SpectralClustering(2, gamma=1e4, n_landmarks=3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="n_clusters=5 is too large"):
        SpectralClustering(5).fit(X[:4])
