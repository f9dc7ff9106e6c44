"""k-means in feature space: clusters that need not be convex, nor of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from mercer.arrays import Floats, Indices, freeze, is_sparse, take
from mercer.fitting.families.shared_docs import shared_docs
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.state import Array, Count, Flag, Number, Places, fitted
from mercer.fitting.pipeline.telling import warn_user
from mercer.kernels.names import kernel_accepts
from mercer.parameters import integer, store
from mercer.solution import Report
from mercer.unsupervised.learner import Learner
from mercer.unsupervised.lloyd import cluster
from mercer.unsupervised.points import Mapped, points_of


@shared_docs
class KernelKMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, Learner):  # type: ignore[misc]  # scikit-learn is untyped
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
    labels_ : array of shape (n_samples,)
        The cluster of each sample.
    inertia_ : float
        J.
    objective_path_ : array
        J after each iteration of the run that was kept; the last one is `inertia_`.
    n_iter_ : int
        Its iterations.
    converged_ : bool
        Whether it ended before `max_iter`.
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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

    _default_steps = 300

    FITTED = fitted(
        labels_=Places("outputs", required=True),
        inertia_=Number(required=True),
        objective_path_=Array(None, required=True),
        n_iter_=Count(required=True),
        converged_=Flag(required=True),
        _origin_=Array("features"),
    )

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        n_init: int = 10,
        max_iter: int = -1,
        n_landmarks: int | None = None,
        cache_size: float = 1000,
        verbose: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store(self, locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        integer("n_clusters", self.n_clusters, 1, "the number of clusters")
        integer("n_init", self.n_init, 1, "the number of starts")

    def _learn(self, fit: Fit, report: Report) -> None:
        k = n_distinct(fit, self.n_clusters)
        points = points_of(fit, self.n_landmarks, 1, report)
        rng = np.random.default_rng(fit.limits.seed())
        found = cluster(points, fit.merged.weight, k, self.n_init, fit.limits.stop.max_iter, rng, report)
        # The nearest mean is the one with the largest ⟨μ_c, φ(x)⟩ − ½‖μ_c‖².
        self._expansion_ = points.function(found.shares, -0.5 * found.squares)
        if isinstance(points, Mapped) and points.origin is not None:
            self._origin_ = freeze(points.origin)
        self.labels_ = labels_of_rows(fit, found.labels, self._nearest)
        self.inertia_, self.objective_path_ = found.inertia, freeze(np.array(found.path))
        self.n_iter_, self.converged_ = len(found.path) - 1, found.converged
        if not found.converged:
            warn_user(
                f"KernelKMeans stopped after {self.n_iter_} iterations before samples had stopped to change clusters; "
                "raise max_iter",
                ConvergenceWarning,
            )

    def _nearest(self, X: Any) -> Indices:
        return np.asarray(np.argmax(self._values(X), axis=1))

    def predict(self, X: Any) -> Indices:
        """The cluster whose mean is nearest to each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        return self._nearest(self._to_decide(X))

    def transform(self, X: Any) -> Floats:
        """The distance of each sample from the mean of each cluster in feature space.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`. Of a precomputed kernel there is no such method: distances of samples need their k(x, x).
        """
        X = self._to_decide(X)
        return np.asarray(np.sqrt(np.maximum(self._squares(X)[:, None] - 2 * self._values(X), 0.0)))

    def _squares(self, X: Any) -> Floats:
        """‖φ(x)‖², from the origin that the means are told from."""
        if not hasattr(self, "_origin_"):
            return self.kernel_.diag(X)
        if not is_sparse(X):
            return self.kernel_.diag(X - self._origin_)
        origin = self._origin_[None, :]
        return self.kernel_.diag(X) - 2 * self.kernel_(X, origin)[:, 0] + self.kernel_.diag(origin)

    @property
    def _n_features_out(self) -> int:
        return len(self._expansion_.b)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.input_tags.pairwise:
            tags.transformer_tags = None
        return tags


def _knows_distances(model: KernelKMeans) -> bool:
    if kernel_accepts(model.kernel) == "gram":
        raise AttributeError(
            "distances of samples need their k(x, x), which a precomputed kernel does not tell; use predict"
        )
    return True


# Not as decorators in the class: what scikit-learn makes of `transform` there, for set_output, would hide them.
for _name in ("transform", "fit_transform"):
    setattr(KernelKMeans, _name, available_if(_knows_distances)(getattr(KernelKMeans, _name)))


def n_distinct(fit: Fit, k: int) -> int:
    """k, or as many as there are different samples, with a warning; an error where there are fewer samples at all."""
    n, different = len(fit.merged.rows), len(fit.merged.weight)
    if n < k:
        raise ValueError(f"n_clusters={k} are too many for n_samples={n} of positive weight; lower n_clusters")
    if different < k:
        warn_user(
            f"n_clusters={k} are too many for {different} different samples; there are {different} clusters",
            ConvergenceWarning,
        )
    return min(different, k)


def labels_of_rows(fit: Fit, labels: Indices, nearest: Any) -> Indices:
    """Labels of merged samples as labels of the caller's rows; rows of weight zero get the nearest cluster's."""
    out = np.empty(fit.n, dtype=np.intp)
    out[fit.merged.rows] = labels[fit.merged.member]
    rest = np.setdiff1d(np.arange(fit.n), fit.merged.rows)
    if len(rest):
        out[rest] = nearest(take(fit.X, rest))
    return np.asarray(freeze(out))
