"""k-means in feature space, where only inner products are known: Lloyd's iteration from starts by k-means++.

    minimise  J = Σ_c Σ_{i in c} w_i ‖φ(x_i) − μ_c‖²  over divisions of the points,  μ_c = Σ_{i in c} w_i φ(x_i)/W_c

An iteration gives every point to its nearest mean, which does not raise J, and then moves the means, which does not
either. A cluster that lost all its points takes the one that costs most where it is, which lowers J too. Where no point
has a nearer mean, an iteration moves single points from cluster a to b, each if that lowers J with both means moved:

    w W_b/(W_b + w) ‖φ(x) − μ_b‖² < w W_a/(W_a − w) ‖φ(x) − μ_a‖²        Hartigan

which Lloyd's iteration alone does not see. In the end no point can change its cluster to lower J. All that is kept
are the sums Σ_{j in c} w_j ⟨φ(x_j), φ(x_i)⟩; an iteration adds to them the columns of the points that moved.
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
from mercer.estimators.unsupervised.learner import Learner
from mercer.estimators.unsupervised.points import Mapped, Points, points_of
from mercer.kernels.names import kernel_accepts
from mercer.runtime.available import available_if
from mercer.runtime.parameters import integer
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, freeze, is_sparse, take
from mercer.samples.engine import like_input
from mercer.solvers.solution import Report

# A move of one point must lower J by this share of Σ w‖φ(x)‖², which is more than rounding could.
_MOVE_SHARE = 1e-12
# If more points than this share have moved, the sums are made anew, from rows of K that need not be copied first.
_MOVED_SHARE = 0.5
# Single points that move in one iteration; each looks at all that moved before it.
_MOVES_AT_ONCE = 1000


@dataclass(frozen=True, eq=False)
class Clusters:
    """A division: each point's cluster, and J after every iteration."""

    labels: Indices
    path: list[float]
    converged: bool

    def shares(self, weight: Floats, k: int) -> Floats:
        """n × k: w_i/W_c for the points of c, of which μ_c is the combination."""
        out = np.zeros((len(weight), k))
        masses = np.bincount(self.labels, weights=weight, minlength=k)
        out[np.arange(len(weight)), self.labels] = weight / masses[self.labels]
        return out


def cluster(
    points: Points, weight: Floats, k: int, n_init: int, max_iter: int, rng: np.random.Generator, report: Report
) -> Clusters:
    """The best of `n_init` runs."""
    told = (partial(_tell, report, f"start {number + 1} of {n_init}") for number in range(n_init))
    runs = (_run(points, weight, _seeded(points, weight, k, rng), k, max_iter, tell) for tell in told)
    return min(runs, key=lambda run: run.path[-1])


def _tell(report: Report, name: str, path: list[float]) -> None:
    report(lambda: f"{name}  iteration {len(path):>3}" + (f"  J {path[-1]:.6g}" if path else ""))


def _run(
    points: Points, weight: Floats, labels: Indices, k: int, max_iter: int, tell: Callable[[list[float]], None]
) -> Clusters:
    division = _Division(points, weight, _without_empty(labels, np.zeros(len(labels)), k), k)
    path: list[float] = []
    for _ in range(max_iter + 1):
        tell(path)
        inertia = division.inertia()
        if path and not inertia < path[-1]:
            return Clusters(labels, path, converged=True)
        path.append(inertia)
        labels = division.labels.copy()
        if not division.improve():
            return Clusters(labels, path, converged=True)
    return Clusters(labels, path, converged=False)


class _Division:
    """A division of the points as it changes, with the sums of inner products over each cluster."""

    def __init__(self, points: Points, weight: Floats, labels: Indices, k: int) -> None:
        self.labels = labels.copy()
        self._points, self._weight, self._k = points, weight, k
        self._squares, self._everything = points.squares, np.arange(points.n)
        self._least = _MOVE_SHARE * float(weight @ np.abs(self._squares))
        self._sum_up()

    def _sum_up(self) -> None:
        inside = np.zeros((self._points.n, self._k))
        inside[self._everything, self.labels] = self._weight
        self._sums = np.ascontiguousarray(self._points.products(inside).T)  # k × n
        self._masses = inside.sum(axis=0)
        self._counts = np.bincount(self.labels, minlength=self._k)
        self._patched = False
        self._measure()

    def _measure(self) -> None:
        """‖Σ w_j φ(x_j)‖² of each cluster, and all squared distances from the means, k × n."""
        own = self._weight * self._sums[self.labels, self._everything]
        self._lengths = np.bincount(self.labels, weights=own, minlength=self._k)
        self._distances = self._sums * (-2 / self._masses)[:, None]
        self._distances += self._squares
        self._distances += (self._lengths / self._masses**2)[:, None]
        self._own = self._distances[self.labels, self._everything]

    def inertia(self) -> float:
        """J."""
        return max(float(self._weight @ self._own), 0.0)

    def improve(self) -> bool:
        """One iteration; False where no point would move, as sums that were made anew confirm."""
        if self._reassign() or self._move_singly():
            return True
        if not self._patched:
            return False
        self._sum_up()
        return self._reassign() or self._move_singly()

    def _reassign(self) -> bool:
        """Every point to its nearest mean."""
        nearer = np.flatnonzero(self._distances.min(axis=0) < self._own)
        if len(nearer) == 0:
            return False
        labels = self.labels.copy()
        labels[nearer] = np.argmin(self._distances[:, nearer], axis=0)
        labels = _without_empty(labels, self._weight * self._distances[labels, self._everything], self._k)
        moved = np.flatnonzero(labels != self.labels)
        before, self.labels = self.labels[moved], labels
        if len(moved) > _MOVED_SHARE * len(labels):
            self._sum_up()
            return True
        change = np.zeros((len(moved), self._k))
        change[np.arange(len(moved)), before] = -self._weight[moved]
        change[np.arange(len(moved)), labels[moved]] = self._weight[moved]
        self._add(moved, change)
        return True

    def _move_singly(self) -> bool:
        """Each point that now promises to lower J by a change of its cluster alone, if it still does in its turn."""
        weight, masses = self._weight, self._masses
        joining = self._distances * (weight * masses[:, None] / (masses[:, None] + weight))
        joining[self.labels, self._everything] = math.inf
        own = masses[self.labels]
        with np.errstate(divide="ignore", invalid="ignore"):
            leaving = weight * own / (own - weight) * self._own
        gain = np.where(self._counts[self.labels] > 1, leaving, -math.inf) - joining.min(axis=0, initial=math.inf)
        chosen = np.flatnonzero(gain > self._least)
        chosen = chosen[np.argsort(-gain[chosen], kind="stable")]
        chosen = chosen[:_MOVES_AT_ONCE]
        moved, change = np.empty(len(chosen), dtype=np.intp), np.zeros((len(chosen), self._k))
        count = 0
        for i in chosen:
            new = self._move(int(i), moved[:count], change[:count])
            if new is not None:
                moved[count] = i
                change[count, self.labels[i]], change[count, new] = -weight[i], weight[i]
                self.labels[i] = new
                count += 1
        if count:
            self._add(moved[:count], change[:count])
        return count > 0

    def _move(self, i: int, moved: Indices, change: Floats) -> int | None:
        """The cluster that point i should move to after others have `moved`; counts, masses and lengths go along."""
        old, w, own, masses = self.labels[i], self._weight[i], self._squares[i], self._masses
        if self._counts[old] == 1:
            return None
        sums = self._sums[:, i] + self._points.column(i, moved) @ change
        distances = own - 2 * sums / masses + self._lengths / masses**2
        joining = masses / (masses + w) * distances
        joining[old] = math.inf
        new = int(np.argmin(joining))
        if not w * (masses[old] / (masses[old] - w) * distances[old] - joining[new]) > self._least:
            return None
        self._lengths[old] += w * (w * own - 2 * sums[old])
        self._lengths[new] += w * (w * own + 2 * sums[new])
        masses[old] -= w
        masses[new] += w
        self._counts[old] -= 1
        self._counts[new] += 1
        return new

    def _add(self, moved: Indices, change: Floats) -> None:
        """What these points have changed, a row for each."""
        self._sums += self._points.products(change, moved).T
        self._masses = np.bincount(self.labels, weights=self._weight, minlength=self._k)
        self._counts = np.bincount(self.labels, minlength=self._k)
        self._patched = True
        self._measure()


def _without_empty(labels: Indices, cost: Floats, k: int) -> Indices:
    """Labels after each cluster without points has taken the one that costs most from a cluster of several."""
    counts = np.bincount(labels, minlength=k)
    if counts.all():
        return labels
    labels, cost = labels.copy(), cost.copy()
    for empty in np.flatnonzero(counts == 0):
        taken = int(np.argmax(np.where(counts[labels] > 1, cost, -math.inf)))
        counts[labels[taken]] -= 1
        labels[taken], counts[empty] = empty, 1
    return labels


def _seeded(points: Points, weight: Floats, k: int, rng: np.random.Generator) -> Indices:
    """The nearest of k seeds: each is drawn by its distance from those before it, the best of some draws.

    Arthur and Vassilvitskii, "k-means++", with as many draws for each seed as they and scikit-learn take.
    """
    squares, draws = points.squares, 2 + int(math.log(k))
    first = int(rng.choice(points.n, p=weight / weight.sum()))
    nearest, labels = _distances(points, squares, first), np.zeros(points.n, dtype=np.intp)
    for seed in range(1, k):
        chances = weight * nearest
        total = float(chances.sum())
        chances = chances / total if total > 0 else weight / weight.sum()
        tried = [_distances(points, squares, int(i)) for i in rng.choice(points.n, size=draws, p=chances)]
        best = min(tried, key=lambda distances: float(weight @ np.minimum(nearest, distances)))
        labels[best < nearest] = seed
        nearest = np.minimum(nearest, best)
    return labels


def _distances(points: Points, squares: Floats, i: int) -> Floats:
    return np.asarray(np.maximum(squares - 2 * points.column(i) + squares[i], 0.0))


@dataclass(eq=False, repr=False)
class Clustering(ClusterMixin, Learner):  # type: ignore[misc]  # scikit-learn is untyped
    """Samples that k-means divides into clusters, where they are or in eigenvectors."""

    n_clusters: int = 8
    _: KW_ONLY
    n_init: int = 10

    def _check_parameters(self) -> None:
        super()._check_parameters()
        integer("n_clusters", self.n_clusters, 1, "the number of clusters")
        integer("n_init", self.n_init, 1, "the number of starts")

    def _nearest(self, X: Any) -> Indices:
        """The cluster of each sample, which was read."""
        raise NotImplementedError

    def _refuse_few(self, n: int) -> None:
        if n < self.n_clusters:
            raise ValueError(
                f"n_clusters={self.n_clusters} are too many for n_samples={n} of positive weight; lower n_clusters"
            )

    def _n_distinct(self, fit: Fit) -> int:
        """As many clusters as asked for, or as there are different samples, with a warning."""
        k, different = self.n_clusters, len(fit.merged.weight)
        self._refuse_few(len(fit.merged.rows))
        if different < k:
            warn_user(
                f"n_clusters={k} are too many for {different} different samples; there are {different} clusters",
                ConvergenceWarning,
            )
        return min(different, k)

    def _labels_of_rows(self, fit: Fit, labels: Indices) -> Indices:
        """Labels of merged samples as labels of the caller's rows; rows of weight zero get the nearest cluster's."""
        out = np.empty(fit.n, dtype=np.intp)
        out[fit.merged.rows] = labels[fit.merged.member]
        rest = np.setdiff1d(np.arange(fit.n), fit.merged.rows)
        if len(rest):
            out[rest] = self._nearest(take(fit.X, rest))
        return np.asarray(freeze(out))


def _knows_distances(model: Any) -> bool:
    if kernel_accepts(model.kernel) == "gram":
        raise AttributeError(
            "distances of samples need their k(x, x), which a precomputed kernel does not tell; use predict"
        )
    return True


class _WhereDistancesAreKnown:
    """`transform` that is absent for a precomputed kernel.

    It stands in a class of its own because scikit-learn wraps a `transform` of a transformer's class for `set_output`,
    and the wrapper would hide `available_if`.
    """

    @available_if(_knows_distances)
    def transform(self, X: Any) -> Floats:
        """The distance of each sample from the mean of each cluster in feature space.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`. Of a precomputed kernel there is no such method: distances of samples need their k(x, x).
        """
        inner: Any = super()
        distances: Floats = inner.transform(X)
        return distances

    @available_if(_knows_distances)
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Floats:
        """Fit to X, and return the distance of each sample from the mean of each cluster in feature space."""
        inner: Any = super()
        distances: Floats = inner.fit_transform(X, y, **fit_params)
        return distances


class _MeanDistances(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clustering):  # type: ignore[misc]  # scikit-learn is untyped
    """A transformer that gives the distances of samples from the means of clusters."""

    @like_input
    def transform(self, X: Any) -> Floats:
        """The distance of each sample from the mean of each cluster in feature space."""
        X = self._to_decide(X)
        return np.asarray(np.sqrt(np.maximum(self._squares(X)[:, None] - 2 * self._values(X), 0.0)))

    def _squares(self, X: Any) -> Floats:
        """‖φ(x)‖², relative to the stored origin."""
        if not hasattr(self, "_origin_"):
            return self.kernel_.diag(X)
        if not is_sparse(X):
            return self.kernel_.diag(X - self._origin_)
        origin = self._origin_[None, :]
        return self.kernel_.diag(X) - 2 * self.kernel_(X, origin)[:, 0] + self.kernel_.diag(origin)


@shared_docs
@dataclass(eq=False, repr=False)
class KernelKMeans(_WhereDistancesAreKnown, _MeanDistances):
    """k-means clustering in feature space.

    Minimises J = Σ w_i ‖φ(x_i) − μ_c(i)‖² over the ways to divide the samples into clusters c with means μ_c, by
    Lloyd's iteration from starts by k-means++. J never rises from one iteration to the next. What is found is a local
    minimum, the best of `n_init` runs: a run ends when no sample has a nearer mean and no single sample can change its
    cluster to lower J by 1e-12 of Σ w‖φ(x)‖² or more. A cluster that loses its last sample takes the one that costs
    most where it is. With a linear kernel this is k-means. With
    `n_landmarks`, J is that of the samples' projections.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    %(kernel)s
    n_init : int, default=10
        How many starts are tried; the best division is kept.
    max_iter : int, default=-1
        Limit on iterations of each run; −1 stands for 300.
    %(samples of a space)s

    Attributes
    ----------
    %(cluster of each)s
    inertia_ : float
        J.
    objective_path_ : array
        J after each iteration of the run that was kept; the last one is `inertia_`.
    n_iter_ : int
        Its iterations.
    converged_ : bool
        Whether it ended before `max_iter`.
    %(kernel with its numbers)s

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

    def _learn(self, fit: Fit, report: Report) -> None:
        k = self._n_distinct(fit)
        points = points_of(fit, self.n_landmarks, 1, report)
        rng = np.random.default_rng(fit.limits.seed())
        found = cluster(points, fit.merged.weight, k, self.n_init, fit.limits.stop.max_iter, rng, report)
        # The nearest mean is the one with the largest ⟨μ_c, φ(x)⟩ − ½‖μ_c‖².
        shares = found.shares(fit.merged.weight, k)
        self._expansion_ = points.function(shares, -0.5 * np.einsum("ic,ic->c", shares, points.products(shares)))
        if isinstance(points, Mapped) and points.origin is not None:
            self._origin_ = freeze(points.origin)
        self.labels_ = self._labels_of_rows(fit, found.labels)
        self.inertia_, self.objective_path_ = found.path[-1], freeze(np.array(found.path))
        self.n_iter_, self.converged_ = len(found.path) - 1, found.converged
        if not found.converged:
            warn_user(
                f"KernelKMeans stopped after {self.n_iter_} iterations before samples had stopped to change clusters; "
                "raise max_iter",
                ConvergenceWarning,
            )

    def _nearest(self, X: Any) -> Indices:
        return np.asarray(np.argmax(self._values(X), axis=1))

    @like_input
    def predict(self, X: Any) -> Indices:
        """The cluster whose mean is nearest to each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        return self._nearest(self._to_decide(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.input_tags.pairwise:
            tags.transformer_tags = None
        return tags
