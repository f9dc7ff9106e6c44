"""Kernel k-means: J falls, is what brute force says, and equals k-means where the kernel is linear.

scikit-learn's checks: tests/estimators/unsupervised/test_contract.py. Tools: tests/tools.
Files: tests/estimators/unsupervised/test_files.py. Printed lines and Ctrl-C:
tests/estimators/unsupervised/test_signs_of_life.py.
Linear kernels: tests/estimators/unsupervised/test_linear_kernel.py. In tables: tests/tables/test_tabular.py.
Engines: tests/places/engines/test_torch_tools.py.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from mercer import KernelKMeans
from mercer.kernels import Gaussian, Linear, Polynomial, Sigmoid, Spectrum

rng = np.random.default_rng(0)
BLOBS, KIND = make_blobs(150, centers=4, n_features=3, cluster_std=1.0, random_state=1)


def objective(K, labels, weight):
    """Σ_c Σ_i w_i‖φ(x_i) − μ_c‖², as a sum over pairs of points."""
    total = 0.0
    for c in np.unique(labels):
        i = np.flatnonzero(labels == c)
        w, own = weight[i], K[np.ix_(i, i)]
        squares = own.diagonal()[:, None] + own.diagonal() - 2 * own
        total += float(w @ squares @ w) / (2 * w.sum())
    return total


@settings(max_examples=15)
@given(
    n=st.integers(6, 30),
    k=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from([Linear(), Gaussian(gamma=0.3), Polynomial(2, 1.0, 1.0)]),
    weighted=st.booleans(),
)
def test_the_objective_never_rises_and_is_what_it_says(n, k, seed, kernel, weighted):
    r = np.random.default_rng(seed)
    X = r.integers(-3, 4, size=(n, 2)) + 0.01 * r.normal(size=(n, 2))
    weight = r.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    model = KernelKMeans(k, kernel=kernel, n_init=1, random_state=seed).fit(X, sample_weight=weight)
    path = model.objective_path_
    assert (np.diff(path) < 0).all()
    assert path[-1] == model.inertia_
    assert len(np.unique(model.labels_)) == k
    K = kernel(X)
    assert model.inertia_ == pytest.approx(objective(K, model.labels_, weight), abs=1e-9 * np.abs(K).max() * n)
    # Every run with fewer iterations ends where this one passed.
    for steps in range(len(path) - 1):
        with pytest.warns(ConvergenceWarning):
            early = KernelKMeans(k, kernel=kernel, n_init=1, max_iter=steps, random_state=seed).fit(
                X, sample_weight=weight
            )
        assert objective(K, early.labels_, weight) == pytest.approx(path[steps], abs=1e-9 * np.abs(K).max() * n)


@pytest.mark.parametrize(("k", "seed"), [(2, 1), (2, 2), (2, 3), (3, 3)])
def test_brute_force_on_tiny_problems(k, seed):
    r = np.random.default_rng(seed)
    X, weight, kernel = r.normal(size=(7, 2)), r.uniform(0.5, 2, size=7), Gaussian(gamma=0.5)
    K = kernel(X)
    divisions = (np.array(labels) for labels in itertools.product(range(k), repeat=6))
    best = min(objective(K, np.r_[0, labels], weight) for labels in divisions)
    model = KernelKMeans(k, kernel=kernel, n_init=40, random_state=0).fit(X, sample_weight=weight)
    assert model.inertia_ == pytest.approx(best, rel=1e-9)


def test_a_linear_kernel_is_k_means():
    mine = KernelKMeans(4, kernel="linear", random_state=0).fit(BLOBS)
    peer = KMeans(4, n_init=10, random_state=0).fit(BLOBS)
    assert adjusted_rand_score(mine.labels_, peer.labels_) == 1
    assert mine.inertia_ == pytest.approx(peer.inertia_)
    new = rng.normal(scale=6, size=(50, 3))
    assert adjusted_rand_score(mine.predict(new), peer.predict(new)) == 1
    np.testing.assert_allclose(np.sort(mine.transform(new)), np.sort(peer.transform(new)))


@pytest.mark.parametrize("form", ["dense", "csr", "float32", "precomputed", "landmarks"])
def test_forms_of_samples(form):
    X, y = make_blobs(100, centers=3, random_state=8)
    kernel, given, options = Gaussian(gamma=0.05), X, {}
    if form == "csr":
        given = sp.csr_array(X)
    elif form == "float32":
        given = X.astype(np.float32)
    elif form == "precomputed":
        given, kernel = kernel(X), "precomputed"
    elif form == "landmarks":
        options = {"n_landmarks": 20}
    model = KernelKMeans(3, kernel=kernel, random_state=0, **options).fit(given)
    assert adjusted_rand_score(model.labels_, y) == 1
    np.testing.assert_array_equal(model.predict(given), model.labels_)
    assert model.converged_
    if form == "precomputed":
        assert not hasattr(model, "fit_transform")
        with pytest.raises(AttributeError, match="has no attribute 'transform'") as told:
            model.transform(given)
        assert "which a precomputed kernel does not contain" in str(told.value.__cause__)
    elif form != "landmarks":  # whose J is that of projections
        distances = model.transform(given)[np.arange(100), model.labels_]
        assert np.sum(distances**2) == pytest.approx(model.inertia_, rel=1e-3 if form == "float32" else 1e-9)


def test_weights_are_repetitions_and_zero_leaves_out():
    times = rng.integers(0, 3, size=150)
    weighted = KernelKMeans(4, gamma=0.1, random_state=3).fit(BLOBS, sample_weight=times)
    repeated = KernelKMeans(4, gamma=0.1, random_state=3).fit(np.repeat(BLOBS, times, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    np.testing.assert_array_equal(weighted.labels_, weighted.predict(BLOBS))
    assert weighted.inertia_ == repeated.inertia_


def test_empty_clusters_are_filled(monkeypatch):
    """From a start that leaves two of four clusters without samples."""
    from mercer.estimators.unsupervised import kernel_kmeans

    monkeypatch.setattr(kernel_kmeans, "_initial_labels", lambda points, weight, k, rng: np.arange(points.n) % 2)
    model = KernelKMeans(4, kernel="linear", n_init=1).fit(BLOBS)
    assert len(np.unique(model.labels_)) == 4
    assert (np.diff(model.objective_path_) < 0).all()


def test_a_cluster_that_loses_its_samples_on_the_way(monkeypatch):
    """Its mean lies between two others that are nearer to all of its samples."""
    from mercer.estimators.unsupervised import kernel_kmeans

    x = np.array([-10.0, -9.5, -9.0, 9.0, 9.5, 10.0])[:, None]

    def outermost_together(points, weight, k, rng):
        at = points.squares  # x² of the merged samples
        left = points.column(int(np.argmax(at))) * np.sign(points.column(0)[0]) > 0
        return np.where(at == 100, 2, np.where(left, 0, 1))

    monkeypatch.setattr(kernel_kmeans, "_initial_labels", outermost_together)
    model = KernelKMeans(3, kernel="linear", n_init=1).fit(x)
    assert len(np.unique(model.labels_)) == 3
    assert np.isfinite(model.objective_path_).all()
    assert model.inertia_ < model.objective_path_[0]


def test_strings():
    words = ["abab", "baba", "aabb", "xyxy", "yxyx", "xxyy"]
    model = KernelKMeans(2, kernel=Spectrum(2), random_state=0).fit(words)
    assert adjusted_rand_score(model.labels_, [0, 0, 0, 1, 1, 1]) == 1
    assert model.predict(["yxxy"]) == model.labels_[3]


def test_what_is_refused_and_told():
    with pytest.raises(ValueError, match="n_clusters=3 is too large for n_samples=2 of positive weight"):
        KernelKMeans(3).fit([[0.0], [1.0], [1.0]], sample_weight=[1, 1, 0])
    with pytest.warns(ConvergenceWarning, match="3 is too large for 2 distinct samples; 2 clusters are used"):
        assert len(set(KernelKMeans(3).fit([[0.0], [1.0], [1.0]]).labels_)) == 2
    with pytest.raises(MemoryError, match="n_landmarks=1000"):
        KernelKMeans(3, cache_size=0.1).fit(BLOBS)
    with pytest.raises(ValueError, match="n_clusters=0"):
        KernelKMeans(0).fit(BLOBS)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        KernelKMeans(8, max_iter=0, random_state=0).fit(BLOBS)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        model = KernelKMeans(3, kernel=Sigmoid(gamma=1.0, coef0=-1.0), random_state=0).fit(BLOBS)
    assert (np.diff(model.objective_path_) < 0).all()
