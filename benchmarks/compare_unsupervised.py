"""The methods without targets against scikit-learn's and against plain NumPy: times, their ratio, and agreement.

    python benchmarks/compare_unsupervised.py                  about a minute
    python benchmarks/compare_unsupervised.py --size 5000      rows of the generated data

Everyone has one thread, the same data, the same kernel and the same number of starts. Times are of the processor, so
that a busy machine does not decide. Agreement is: for scores the largest difference up to sign over the largest score;
for clusters the adjusted Rand index, and J over the other's J; for the test the difference of statistics. Prints
Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
from sklearn.cluster import KMeans
from sklearn.cluster import SpectralClustering as PeerClustering
from sklearn.datasets import make_blobs, make_moons
from sklearn.decomposition import KernelPCA as PeerPCA
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from mercer import KernelKMeans, KernelPCA, SpectralClustering, mmd_test

Call = Callable[[], Any]


def components(n: int, k: int, gamma: float) -> tuple[str, Call, Call, Callable[[Any, Any], str]]:
    """Fit and scores of the training samples."""
    X = np.random.default_rng(0).normal(size=(n, 10))

    def agreement(mine: Any, peer: Any) -> str:
        peer = peer * np.sign(np.einsum("ij,ij->j", mine, peer))
        return f"scores differ by {np.abs(mine - peer).max() / np.abs(peer).max():.0e}"

    return (
        f"KernelPCA, {n:,} rows, {k} components",
        lambda: KernelPCA(k, gamma=gamma).fit_transform(X),
        lambda: PeerPCA(k, kernel="rbf", gamma=gamma, random_state=0).fit_transform(X),
        agreement,
    )


def walks(n: int, k: int) -> tuple[str, Call, Call, Callable[[Any, Any], str]]:
    """Two moons for k = 2, else blobs."""
    X = make_moons(n, noise=0.05, random_state=0)[0] if k == 2 else make_blobs(n, centers=k, random_state=0)[0]
    gamma = 30.0 if k == 2 else 0.5
    return (
        f"SpectralClustering, {n:,} rows, {k} clusters",
        lambda: SpectralClustering(k, gamma=gamma, random_state=0).fit_predict(X),
        lambda: PeerClustering(k, gamma=gamma, random_state=0).fit_predict(X),
        lambda mine, peer: f"Rand index {adjusted_rand_score(mine, peer):.3f}",
    )


def means(n: int, k: int) -> tuple[str, Call, Call, Callable[[Any, Any], str]]:
    """Normal data without clusters, where k-means takes longest; both until no sample moves."""
    X = np.random.default_rng(0).normal(size=(n, 5))
    return (
        f"k-means, linear, {n:,} rows, {k} clusters",
        lambda: KernelKMeans(k, kernel="linear", random_state=0).fit(X).inertia_,
        lambda: KMeans(k, n_init=10, tol=0.0, random_state=0).fit(X).inertia_,
        lambda mine, peer: f"J {mine / peer:.4f} of the peer's",
    )


def kernel_means(n: int, k: int, gamma: float) -> tuple[str, Call, Call, Callable[[Any, Any], str]]:
    """Against Lloyd's iteration written down in NumPy, from samples at random; ours begins with k-means++."""
    X = np.random.default_rng(0).normal(size=(n, 5))
    return (
        f"k-means, rbf, {n:,} rows, {k} clusters",
        lambda: KernelKMeans(k, gamma=gamma, random_state=0).fit(X).inertia_,
        lambda: plain_kernel_means(rbf_kernel(X, gamma=gamma), k, 10, 300),
        lambda mine, peer: f"J {mine / peer:.4f} of the peer's",
    )


def plain_kernel_means(K: Any, k: int, n_init: int, max_iter: int) -> float:
    """The best J."""
    rng, best = np.random.default_rng(0), np.inf
    for _ in range(n_init):
        seeds = rng.choice(len(K), size=k, replace=False)
        labels = np.argmax(K[:, seeds], axis=1)
        for _ in range(max_iter):
            inside = np.eye(k)[labels]
            inside /= np.maximum(inside.sum(axis=0), 1)
            products = K @ inside
            squares = np.einsum("ic,ic->c", inside, products)
            distances = np.diag(K)[:, None] - 2 * products + squares
            nearest = np.argmin(distances, axis=1)
            if (nearest == labels).all():
                break
            labels = nearest
        best = min(best, float(distances[np.arange(len(K)), labels].sum()))
    return best


def two_samples(n: int, B: int, gamma: float) -> tuple[str, Call, Call, Callable[[Any, Any], str]]:
    """n and 2n points, B permutations."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 5)), 1.1 * rng.normal(size=(2 * n, 5))

    def agreement(mine: Any, peer: Any) -> str:
        return f"statistics differ by {abs(mine.statistic - peer[0]):.0e}, p {mine.p_value:.3f} and {peer[1]:.3f}"

    return (
        f"mmd_test, {n:,} and {2 * n:,} rows, {B:,} permutations",
        lambda: mmd_test(X, Y, gamma=gamma, n_permutations=B, random_state=0),
        lambda: plain_mmd(X, Y, B, gamma),
        agreement,
    )


def plain_mmd(X: Any, Y: Any, B: int, gamma: float) -> tuple[float, float]:
    """The unbiased statistic, and p by permutation."""
    K, n, m = rbf_kernel(np.concatenate([X, Y]), gamma=gamma), len(X), len(Y)
    np.fill_diagonal(K, 0.0)
    rng, order = np.random.default_rng(0), np.arange(n + m)

    def statistic(order: Any) -> float:
        a, b = order[:n], order[n:]
        within = K[np.ix_(a, a)].sum() / (n * (n - 1)) + K[np.ix_(b, b)].sum() / (m * (m - 1))
        return float(within - 2 * K[np.ix_(a, b)].sum() / (n * m))

    observed = statistic(order)
    return observed, (1 + sum(statistic(rng.permutation(n + m)) >= observed for _ in range(B))) / (1 + B)


def measure(case: tuple[str, Call, Call, Callable[[Any, Any], str]], repeats: int) -> list[str]:
    """One line of the table: the smallest of some times, in turns."""
    name, mine, peer, agreement = case
    harness.progress(name)
    seconds: dict[str, list[float]] = {"mine": [], "peer": []}
    found: dict[str, Any] = {}
    for _ in range(repeats):
        for who, call in (("mine", mine), ("peer", peer)):
            begun = time.process_time()
            found[who] = call()
            seconds[who].append(time.process_time() - begun)
    a, b = min(seconds["mine"]), min(seconds["peer"])
    return [name, f"{a:.3f}", f"{b:.3f}", f"{b / a:.1f}", agreement(found["mine"], found["peer"])]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=3000, help="rows of the generated data")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    harness.same_threads_for_all(1)
    n = options.size
    cases = [
        components(n, 2, 0.05),
        components(n, 20, 0.05),
        components(n // 6, 2, 0.05),
        walks(n, 2),
        walks(n, 8),
        walks(n // 6, 2),
        means(n, 8),
        kernel_means(n, 8, 0.2),
        two_samples(n // 10, 1000, 0.1),
    ]
    lines = [measure(case, options.repeats) for case in cases]
    print(harness.table(["", "mercer s", "peer s", "peer ÷ mercer", "agreement"], lines))


if __name__ == "__main__":
    main()
