"""k-means in feature space, where only inner products are known: Lloyd's iteration with k-means++ initialisation.

    minimise  J = Σ_c Σ_{i in c} w_i ‖φ(x_i) − μ_c‖²  over partitions of the points,  μ_c = Σ_{i in c} w_i φ(x_i)/W_c

    1. Assign every point to its nearest mean, and update the means. Neither increases J. A cluster that loses all its
       points takes the point with the largest cost, which decreases J as well.
    2. If no point has a nearer mean, move single points from cluster a to b if J decreases with both means updated:

           w W_b/(W_b + w) ‖φ(x) − μ_b‖² < w W_a/(W_a − w) ‖φ(x) − μ_a‖²        Hartigan

       Lloyd's iteration alone misses such moves.

At the end no move of a single point decreases J. The state consists of the sums Σ_{j in c} w_j ⟨φ(x_j), φ(x_i)⟩ for all
c and i; an iteration adds the columns of the points that moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.reporting import warn_user
from mercer.estimators.fitting.pipeline.state import Array, Count, Flag, IndexArray, Number, fitted
from mercer.estimators.unsupervised.learner import UnsupervisedMachine
from mercer.estimators.unsupervised.points import EmbeddedPoints, Points, points_of
from mercer.kernels.names import kernel_accepts
from mercer.runtime.available import available_if
from mercer.runtime.parameters import integer
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, freeze, is_sparse, take
from mercer.samples.engine import like_input
from mercer.solvers.solution import ProgressReporter

# A move of one point must decrease J by this fraction of Σ w‖φ(x)‖², which exceeds the effect of rounding.
_MOVE_SHARE = 1e-12
# If more than this fraction of the points have moved, the sums are recomputed from all rows of K.
_MOVED_SHARE = 0.5
# Limit on single points that move in one iteration; each move takes all earlier ones into account.
_MAX_MOVES = 1000


@dataclass(frozen=True, eq=False)
class Clusters:
    """Partition of the points, and J after every iteration."""

    labels: Indices
    path: list[float]
    converged: bool

    def shares(self, weight: Floats, k: int) -> Floats:
        """Return the n × k matrix of w_i/W_c for the points i of cluster c, the coefficients of μ_c."""
        out = np.zeros((len(weight), k))
        masses = np.bincount(self.labels, weights=weight, minlength=k)
        out[np.arange(len(weight)), self.labels] = weight / masses[self.labels]
        return out


def cluster(
    points: Points,
    weight: Floats,
    k: int,
    n_init: int,
    max_iter: int,
    rng: np.random.Generator,
    report: ProgressReporter,
) -> Clusters:
    """Partition the points into k clusters, and return the best of `n_init` runs."""
    reporters = (partial(_report_run, report, f"start {number + 1} of {n_init}") for number in range(n_init))
    runs = (
        _run(points, weight, _initial_labels(points, weight, k, rng), k, max_iter, report_run)
        for report_run in reporters
    )
    return min(runs, key=lambda run: run.path[-1])


def _report_run(report: ProgressReporter, name: str, path: list[float]) -> None:
    """Report the number of iterations of a run, and J after the last one."""
    report(lambda: f"{name}  iteration {len(path):>3}" + (f"  J {path[-1]:.6g}" if path else ""))


def _run(
    points: Points, weight: Floats, labels: Indices, k: int, max_iter: int, report_run: Callable[[list[float]], None]
) -> Clusters:
    """Improve a partition until J no longer decreases, in at most `max_iter` iterations."""
    partition = _Partition(points, weight, _fill_empty_clusters(labels, np.zeros(len(labels)), k), k)
    path: list[float] = []
    for _ in range(max_iter + 1):
        report_run(path)
        inertia = partition.inertia()
        if path and not inertia < path[-1]:
            return Clusters(labels, path, converged=True)
        path.append(inertia)
        labels = partition.labels.copy()
        if not partition.improve():
            return Clusters(labels, path, converged=True)
    return Clusters(labels, path, converged=False)


class _Partition:
    """Mutable partition of the points, with the sums of inner products over each cluster."""

    def __init__(self, points: Points, weight: Floats, labels: Indices, k: int) -> None:
        self.labels = labels.copy()
        self._points, self._weight, self._k = points, weight, k
        self._squares, self._all_points = points.squares, np.arange(points.n)
        self._smallest_gain = _MOVE_SHARE * float(weight @ np.abs(self._squares))
        self._recompute_sums()

    def _recompute_sums(self) -> None:
        """Compute the sums over each cluster from scratch."""
        membership = np.zeros((self._points.n, self._k))
        membership[self._all_points, self.labels] = self._weight
        self._sums = np.ascontiguousarray(self._points.products(membership).T)  # k × n
        self._masses = membership.sum(axis=0)
        self._counts = np.bincount(self.labels, minlength=self._k)
        self._has_moves = False  # whether moves were added to the sums, with their rounding errors
        self._update_distances()

    def _update_distances(self) -> None:
        """Compute ‖Σ w_j φ(x_j)‖² of each cluster, and all squared distances from the means, k × n."""
        products = self._weight * self._sums[self.labels, self._all_points]
        self._squared_lengths = np.bincount(self.labels, weights=products, minlength=self._k)
        self._distances = self._sums * (-2 / self._masses)[:, None]
        self._distances += self._squares
        self._distances += (self._squared_lengths / self._masses**2)[:, None]
        self._cost = self._distances[self.labels, self._all_points]

    def inertia(self) -> float:
        """Return J."""
        return max(float(self._weight @ self._cost), 0.0)

    def improve(self) -> bool:
        """Make one iteration; return False if no point moves, which is then confirmed with recomputed sums."""
        if self._reassign() or self._move_singly():
            return True
        if not self._has_moves:
            return False
        self._recompute_sums()
        return self._reassign() or self._move_singly()

    def _reassign(self) -> bool:
        """Assign every point to its nearest mean; return False if nothing changes."""
        with_nearer_mean = np.flatnonzero(self._distances.min(axis=0) < self._cost)
        if len(with_nearer_mean) == 0:
            return False
        labels = self.labels.copy()
        labels[with_nearer_mean] = np.argmin(self._distances[:, with_nearer_mean], axis=0)
        labels = _fill_empty_clusters(labels, self._weight * self._distances[labels, self._all_points], self._k)
        moved_points = np.flatnonzero(labels != self.labels)
        old_labels, self.labels = self.labels[moved_points], labels
        if len(moved_points) > _MOVED_SHARE * len(labels):
            self._recompute_sums()
            return True
        change = np.zeros((len(moved_points), self._k))
        change[np.arange(len(moved_points)), old_labels] = -self._weight[moved_points]
        change[np.arange(len(moved_points)), labels[moved_points]] = self._weight[moved_points]
        self._add(moved_points, change)
        return True

    def _move_singly(self) -> bool:
        """Move single points, one after another, if that decreases J; return False if nothing changes."""
        weight, masses = self._weight, self._masses
        join_cost = self._distances * (weight * masses[:, None] / (masses[:, None] + weight))
        join_cost[self.labels, self._all_points] = math.inf
        mass = masses[self.labels]
        with np.errstate(divide="ignore", invalid="ignore"):
            to_leave = weight * mass / (mass - weight) * self._cost
        gain = np.where(self._counts[self.labels] > 1, to_leave, -math.inf) - join_cost.min(axis=0, initial=math.inf)
        candidates = np.flatnonzero(gain > self._smallest_gain)
        candidates = candidates[np.argsort(-gain[candidates], kind="stable")]
        candidates = candidates[:_MAX_MOVES]
        moved_points, change = np.empty(len(candidates), dtype=np.intp), np.zeros((len(candidates), self._k))
        count = 0
        for i in candidates:
            new_cluster = self._move(int(i), moved_points[:count], change[:count])
            if new_cluster is not None:
                moved_points[count] = i
                change[count, self.labels[i]], change[count, new_cluster] = -weight[i], weight[i]
                self.labels[i] = new_cluster
                count += 1
        if count:
            self._add(moved_points[:count], change[:count])
        return count > 0

    def _move(self, i: int, moved_points: Indices, change: Floats) -> int | None:
        """Return the cluster to which point i moves, or None if no move decreases J enough.

        `moved_points` have moved already, with the `change` of their weights in each cluster. Counts, masses and
        squared lengths are updated.
        """
        old_cluster, w, square, masses = self.labels[i], self._weight[i], self._squares[i], self._masses
        if self._counts[old_cluster] == 1:
            return None
        sums = self._sums[:, i] + self._points.column(i, moved_points) @ change
        distances = square - 2 * sums / masses + self._squared_lengths / masses**2
        join_cost = masses / (masses + w) * distances
        join_cost[old_cluster] = math.inf
        new_cluster = int(np.argmin(join_cost))
        if (
            not w * (masses[old_cluster] / (masses[old_cluster] - w) * distances[old_cluster] - join_cost[new_cluster])
            > self._smallest_gain
        ):
            return None
        self._squared_lengths[old_cluster] += w * (w * square - 2 * sums[old_cluster])
        self._squared_lengths[new_cluster] += w * (w * square + 2 * sums[new_cluster])
        masses[old_cluster] -= w
        masses[new_cluster] += w
        self._counts[old_cluster] -= 1
        self._counts[new_cluster] += 1
        return new_cluster

    def _add(self, moved_points: Indices, change: Floats) -> None:
        """Add the changes of these points to the sums; `change` has a row for each point."""
        self._sums += self._points.products(change, moved_points).T
        self._masses = np.bincount(self.labels, weights=self._weight, minlength=self._k)
        self._counts = np.bincount(self.labels, minlength=self._k)
        self._has_moves = True
        self._update_distances()


def _fill_empty_clusters(labels: Indices, cost: Floats, k: int) -> Indices:
    """Return labels without empty clusters: each takes the point of largest cost from a cluster of several points."""
    counts = np.bincount(labels, minlength=k)
    if counts.all():
        return labels
    labels, cost = labels.copy(), cost.copy()
    for empty in np.flatnonzero(counts == 0):
        costliest = int(np.argmax(np.where(counts[labels] > 1, cost, -math.inf)))
        counts[labels[costliest]] -= 1
        labels[costliest], counts[empty] = empty, 1
    return labels


def _initial_labels(points: Points, weight: Floats, k: int, rng: np.random.Generator) -> Indices:
    """Return the nearest of k seeds for each point, by k-means++ (Arthur and Vassilvitskii, 2007).

    Each seed is the best of several draws in proportion to the squared distance from the earlier seeds; the number of
    draws is that of the paper and of scikit-learn.
    """
    squares, draws = points.squares, 2 + int(math.log(k))
    first = int(rng.choice(points.n, p=weight / weight.sum()))
    nearest, labels = _distances(points, squares, first), np.zeros(points.n, dtype=np.intp)
    for seed in range(1, k):
        chances = weight * nearest
        total = float(chances.sum())
        chances = chances / total if total > 0 else weight / weight.sum()
        candidates = [_distances(points, squares, int(i)) for i in rng.choice(points.n, size=draws, p=chances)]
        best = min(candidates, key=lambda distances: float(weight @ np.minimum(nearest, distances)))
        labels[best < nearest] = seed
        nearest = np.minimum(nearest, best)
    return labels


def _distances(points: Points, squares: Floats, i: int) -> Floats:
    """Return the squared distance of every point from point i."""
    return np.asarray(np.maximum(squares - 2 * points.column(i) + squares[i], 0.0))


@dataclass(eq=False, repr=False)
class Clustering(ClusterMixin, UnsupervisedMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Base class of clustering by k-means, in feature space or in an embedding by eigenvectors."""

    n_clusters: int = 8
    _: KW_ONLY
    n_init: int = 10

    def _check_parameters(self) -> None:
        super()._check_parameters()
        integer("n_clusters", self.n_clusters, 1, "the number of clusters")
        integer("n_init", self.n_init, 1, "the number of starts")

    def _nearest(self, X: Any) -> Indices:
        """Return the cluster of each sample; X has been read and checked."""
        raise NotImplementedError

    def _refuse_few(self, n: int) -> None:
        """Raise ValueError if there are fewer samples than clusters."""
        if n < self.n_clusters:
            raise ValueError(
                f"n_clusters={self.n_clusters} is too large for n_samples={n} of positive weight; lower n_clusters"
            )

    def _n_used_clusters(self, fit: Fit) -> int:
        """Return `n_clusters` or, with a warning, the number of distinct samples if that is smaller."""
        k, n_distinct = self.n_clusters, len(fit.merged.weight)
        self._refuse_few(len(fit.merged.rows))
        if n_distinct < k:
            warn_user(
                f"n_clusters={k} is too large for {n_distinct} distinct samples; {n_distinct} clusters are used",
                ConvergenceWarning,
            )
        return min(n_distinct, k)

    def _labels_of_rows(self, fit: Fit, labels: Indices) -> Indices:
        """Return the labels of the caller's rows, from those of merged samples; rows of weight 0 are predicted."""
        out = np.empty(fit.n, dtype=np.intp)
        out[fit.merged.rows] = labels[fit.merged.member]
        rows_without_weight = np.setdiff1d(np.arange(fit.n), fit.merged.rows)
        if len(rows_without_weight):
            out[rows_without_weight] = self._nearest(take(fit.X, rows_without_weight))
        return np.asarray(freeze(out))


def _has_distances(model: Any) -> bool:
    """Return True if new samples have a k(x, x); raise AttributeError for a precomputed kernel."""
    if kernel_accepts(model.kernel) == "gram":
        raise AttributeError(
            "distances of samples need their k(x, x), which a precomputed kernel does not contain; use predict"
        )
    return True


class _WhereDistancesAreKnown:
    """Mixin with a `transform` that is absent for a precomputed kernel.

    It is a separate class because scikit-learn wraps `transform` of a transformer class for `set_output`, and the
    wrapper would hide `available_if`.
    """

    @available_if(_has_distances)
    def transform(self, X: Any) -> Floats:
        """Compute the distance of each sample from the mean of each cluster in feature space.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. The method is absent for a precomputed kernel, since distances need k(x, x).

        Returns
        -------
        array of shape (n_samples, n_clusters)
            Distances.
        """
        inner: Any = super()
        distances: Floats = inner.transform(X)
        return distances

    @available_if(_has_distances)
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Floats:
        """Fit to X, and compute the distance of each sample from the mean of each cluster in feature space.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Training samples.
        y : ignored
            Not used; present for API consistency.
        **fit_params : dict
            Further arguments of `fit`, such as `sample_weight`.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            Distances.
        """
        inner: Any = super()
        distances: Floats = inner.fit_transform(X, y, **fit_params)
        return distances


class _MeanDistances(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clustering):  # type: ignore[misc]  # scikit-learn is untyped
    """Transformer to the distances of samples from the means of clusters."""

    @like_input
    def transform(self, X: Any) -> Floats:
        """Compute the distance of each sample from the mean of each cluster in feature space."""
        X = self._read_new_samples(X)
        return np.asarray(np.sqrt(np.maximum(self._squares(X)[:, None] - 2 * self._values(X), 0.0)))

    def _squares(self, X: Any) -> Floats:
        """Return ‖φ(x)‖², relative to the stored origin."""
        if not hasattr(self, "_origin_"):
            return self.kernel_.diag(X)
        if not is_sparse(X):
            return self.kernel_.diag(X - self._origin_)
        origin = self._origin_[None, :]
        return self.kernel_.diag(X) - 2 * self.kernel_(X, origin)[:, 0] + self.kernel_.diag(origin)


@shared_docs
@dataclass(eq=False, repr=False)
class KernelKMeans(_WhereDistancesAreKnown, _MeanDistances):
    """Kernel k-means clustering.

    Minimises J = Σ w_i ‖φ(x_i) − μ_c(i)‖² over partitions of the samples into clusters c with means μ_c in feature
    space, by Lloyd's iteration with k-means++ initialisation. J never increases from one iteration to the next. The
    result is a local minimum, the best of `n_init` runs: a run ends when no sample has a nearer mean and no single
    sample can change its cluster to decrease J by 1e-12 of Σ w‖φ(x)‖² or more. A cluster that loses its last sample
    takes the sample with the largest cost. With a linear kernel this is ordinary k-means. With `n_landmarks`, J is that
    of the projected samples.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    %(kernel)s
    n_init : int, default=10
        Number of runs with different initialisations; the best one is kept.
    max_iter : int, default=-1
        Maximum number of iterations of each run; −1 means 300.
    %(samples of a space)s

    Attributes
    ----------
    %(cluster of each)s
    inertia_ : float
        Objective J: the weighted sum of squared distances from the means.
    objective_path_ : array of shape (n_iter_ + 1,)
        Objective J after each iteration of the best run; the last one is `inertia_`.
    n_iter_ : int
        Number of iterations of the best run.
    converged_ : bool
        Whether the best run ended before `max_iter`.
    %(kernel with its numbers)s

    See Also
    --------
    SpectralClustering : Clustering in the leading eigenvectors of a random walk.
    KernelPCA : Principal components in feature space.

    Examples
    --------
    >>> from mercer import KernelKMeans
    >>> from mercer.kernels import Spectrum
    >>> words = ["abab", "baba", "aabb", "xyxy", "yxyx", "xxyy"]
    >>> model = KernelKMeans(2, kernel=Spectrum(2), random_state=0).fit(words)
    >>> model.labels_ == model.labels_[0]
    array([ True,  True,  True, False, False, False])
    >>> model.predict(["abba"]) == model.labels_[0]
    array([ True])
    """

    _: KW_ONLY
    max_iter: int = -1

    _default_steps = 300

    _FITTED = fitted(
        labels_=IndexArray("outputs", required=True),
        inertia_=Number(required=True),
        objective_path_=Array(None, required=True),
        n_iter_=Count(required=True),
        converged_=Flag(required=True),
        _origin_=Array("features"),
    )

    def _learn(self, fit: Fit, report: ProgressReporter) -> None:
        """Cluster the points, and store the function whose largest output gives the nearest mean."""
        k = self._n_used_clusters(fit)
        points = points_of(fit, self.n_landmarks, 1, report)
        rng = np.random.default_rng(fit.limits.seed())
        clusters = cluster(points, fit.merged.weight, k, self.n_init, fit.limits.stop.max_iter, rng, report)
        # The nearest mean is the one with the largest ⟨μ_c, φ(x)⟩ − ½‖μ_c‖².
        shares = clusters.shares(fit.merged.weight, k)
        self._expansion_ = points.function(shares, -0.5 * np.einsum("ic,ic->c", shares, points.products(shares)))
        if isinstance(points, EmbeddedPoints) and points.origin is not None:
            self._origin_ = freeze(points.origin)
        self.labels_ = self._labels_of_rows(fit, clusters.labels)
        self.inertia_, self.objective_path_ = clusters.path[-1], freeze(np.array(clusters.path))
        self.n_iter_, self.converged_ = len(clusters.path) - 1, clusters.converged
        if not clusters.converged:
            warn_user(
                f"KernelKMeans stopped after {self.n_iter_} iterations while samples were still changing clusters; "
                "raise max_iter",
                ConvergenceWarning,
            )

    def _nearest(self, X: Any) -> Indices:
        return np.asarray(np.argmax(self._values(X), axis=1))

    @like_input
    def predict(self, X: Any) -> Indices:
        """Predict the cluster with the nearest mean for each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,)
            Cluster of each sample.
        """
        return self._nearest(self._read_new_samples(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.input_tags.pairwise:
            tags.transformer_tags = None
        return tags
