"""Spectral clustering: k-means in the leading eigenvectors of a random walk between samples.

With affinities A_ij = k(x_i, x_j), weights w and degrees d_i = Σ_j w_j A_ij − A_ii, a walk goes from x_i to the copies
of x_j with probability w_jA_ij/d_i, and never to the very sample it stands on. Its eigenvectors e, with eigenvalues μ,
are those of D^(−½)(√w A √w − diag A)D^(−½) over √(w d): the normalised Laplacian (Ng, Jordan and Weiss 2001; Shi and
Malik 2000). Samples that a walk seldom leaves one another from have nearly the same e. For a new sample

    e(x) = 1/μ Σ_j w_j k(x, x_j) e_j / Σ_j w_j k(x, x_j)        Nyström's extension

Affinities that are mostly zero are a sparse matrix: one that was given, or that of nearest neighbours.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from mercer.estimators.fitting.pipeline.fit import Fit, Limits
from mercer.estimators.fitting.pipeline.state import Array, AttributeSpec, expect, fitted
from mercer.estimators.unsupervised.kernel_kmeans import Clustering, cluster
from mercer.estimators.unsupervised.points import Mapped, Points, Stored, points_of
from mercer.kernels import Kernel
from mercer.kernels.names import as_kernel, kernel_accepts
from mercer.places.eigenpairs import leading_of_walk
from mercer.places.expansion import Expansion
from mercer.runtime.available import available_if
from mercer.runtime.parameters import integer, one_of
from mercer.runtime.shared_docs import shared_docs
from mercer.samples import checks as samples
from mercer.samples.arrays import Floats, Indices, freeze, is_sparse, row_blocks
from mercer.samples.engine import like_input
from mercer.solvers.solution import Report


@dataclass(frozen=True, eq=False)
class Graph:
    """Samples whose affinities K are sparse; `columns` are their places among the `n_columns` of the caller."""

    K: sp.csr_array
    columns: Indices
    n_columns: int

    @classmethod
    def of(cls, A: Any, kept: Indices) -> Graph:
        """From a square matrix, of which some rows and their columns are taken."""
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"affinities are a square matrix between all training samples, but X has shape {A.shape}")
        odd = float(abs(A - A.T).max())
        if odd > 1e-8 * float(abs(A).max()):
            raise ValueError(
                f"the matrix of affinities is not symmetric: entries differ from their mirror by up to {odd:.3g}; give "
                "(A + A.T) / 2"
            )
        return cls(sp.csr_array(A[kept][:, kept], dtype=np.float64), kept, A.shape[0])

    @property
    def squares(self) -> Floats:
        return np.asarray(self.K.diagonal())

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest affinity."""
        return float(self.K.min()), float(self.K.max())

    @property
    def n(self) -> int:
        return int(self.K.shape[0])

    def products(self, C: Floats, some: Indices | None = None) -> Floats:
        return np.asarray(self.K @ C if some is None else self.K[:, some] @ C)

    def eigenpairs(self, scale: Floats, k: int, centre: None, less: Floats) -> tuple[Floats, Floats]:
        """The k largest eigenvalues of S(K − diag(less))S with S = diag(scale), and their vectors."""
        S = sp.diags_array(scale)
        return leading_of_walk(sp.csr_array(S @ (self.K - sp.diags_array(less)) @ S), k)

    def function(self, C: Floats, b: Floats) -> Expansion:
        """What a row of affinities with all training samples becomes."""
        return Expansion(as_kernel("precomputed"), None, np.ascontiguousarray(C), b, self.columns, self.n_columns)


def neighbours(X: Any, n_neighbors: int, weight: Floats, n_jobs: int | None) -> sp.csr_array:
    """Half a unit of affinity from each sample to those nearest to it, itself among them, and from them to it.

    A sample of weight w stands for w copies and takes w places among the nearest, fewer where it is the last.
    """
    kept = np.flatnonzero(weight)
    mass = weight[kept]
    if n_neighbors > mass.sum():
        total = f"n_samples={len(kept)}" if (mass == 1).all() else f"samples of {mass.sum():g} units of weight in all"
        raise ValueError(f"n_neighbors={n_neighbors} are too many for {total}; lower n_neighbors")
    near = NearestNeighbors(n_jobs=n_jobs).fit(X[kept])
    rows, columns, shares = [], [], []
    waiting, count = np.arange(len(weight)), n_neighbors
    while len(waiting):
        count = min(count, len(kept))
        nearest = near.kneighbors(X[waiting], count, return_distance=False)
        places = mass[nearest]
        before = np.cumsum(places, axis=1) - places
        done = (before + places)[:, -1] >= n_neighbors if count < len(kept) else np.ones(len(waiting), dtype=np.bool_)
        share = np.clip(n_neighbors - before, 0.0, places) / places
        at = np.nonzero(done[:, None] & (share > 0))
        rows.append(waiting[at[0]])
        columns.append(kept[nearest[at]])
        shares.append(share[at])
        waiting, count = waiting[~done], 2 * count
    one_way = sp.csr_array((np.concatenate(shares), (np.concatenate(rows), np.concatenate(columns))), 2 * weight.shape)
    return sp.csr_array(0.5 * (one_way + one_way.T))


_MAX_STEPS = 300
# Values below this share of the largest are rounding.
_ROUNDING_SHARE = 1e-14


@dataclass(frozen=True)
class _Centres(AttributeSpec):
    """The clusters' means in as many eigenvectors as are extended; the last output is a sample's degree."""

    def check(self, name: str, value: Any, model: Any) -> None:
        Array(None, len(model._expansion_.b) - 1).check(name, value, model)
        expect(len(value) > 0, f"{name} must be of one cluster at least")


@dataclass(frozen=True)
class _Labels(AttributeSpec):
    """Numbers of clusters, or −1 for a sample of weight 0 that has no affinity."""

    def check(self, name: str, value: Any, model: Any) -> None:
        whole = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"
        inside = whole and bool(((value >= -1) & (value < len(model._centres_))).all())
        expect(inside, f"{name} must be numbers of clusters")


def _extends(model: SpectralClustering) -> bool:
    if model.affinity is not None:
        raise AttributeError(f"affinity={model.affinity!r} knows the training samples alone; use a kernel")
    return True


@shared_docs
@dataclass(eq=False, repr=False)
class SpectralClustering(Clustering):
    """Spectral clustering with the values of any kernel that is never negative as affinities.

    A precomputed matrix of affinities may be sparse. Follows scikit-learn's: the leading eigenvectors of the normalised
    Laplacian, divided into clusters by k-means. A sample's affinity with itself does not count. With `n_landmarks`
    samples are projected onto the span of some of them in feature space, and their affinity with themselves counts,
    which matters little where they are many.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of eigenvectors.
    affinity : "nearest_neighbors" or None, default=None
        None: the values of `kernel`. "nearest_neighbors": ½ for each of two samples that has the other among its
        `n_neighbors` nearest, as in scikit-learn; there is no `predict` then.
    n_neighbors : int, default=10
        How many are near, the sample itself included; of affinity="nearest_neighbors". A sample of weight w counts as
        w of them.
    %(kernel)s
    n_init : int, default=10
        How many starts of k-means are tried; the best division is kept.
    %(samples of a space)s

    Attributes
    ----------
    %(cluster of each)s
    eigenvalues_ : array
        Of the random walk, in descending order, the first one is 1: one minus those of the normalised Laplacian.
    %(kernel with its numbers)s

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SpectralClustering
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> model = SpectralClustering(2, gamma=30.0, random_state=0).fit(X)
    >>> bool(((model.labels_ == model.labels_[0]) == (y == y[0])).all())
    True
    """

    _: KW_ONLY
    affinity: str | None = None
    n_neighbors: int = 10

    _FITTED = fitted(
        _centres_=_Centres(required=True), eigenvalues_=Array(None, required=True), labels_=_Labels(required=True)
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.affinity is not None:
            one_of("affinity", self.affinity, (None, "nearest_neighbors"))
        integer("n_neighbors", self.n_neighbors, 1, "how many samples are near to one")

    def _learn_from(self, X: Any, y: Any, sample_weight: Any, report: Report) -> None:
        if self.affinity is None and not (kernel_accepts(self.kernel) == "gram" and is_sparse(X)):
            super()._learn_from(X, y, sample_weight, report)
            return
        self._check_parameters()
        if self.n_landmarks is not None:
            raise ValueError("n_landmarks are for the values of a kernel; a sparse matrix of affinities needs none")
        limits, X = Limits.of(self, _MAX_STEPS), samples.vectors(self, X, reset=True)
        weight = samples.weights(sample_weight, X.shape[0])
        samples.refuse_no_weight(weight)
        if self.affinity is not None:
            X = neighbours(X, self.n_neighbors, weight, self.n_jobs)
        kept = np.flatnonzero(weight)
        self._refuse_few(len(kept))
        self.kernel_ = as_kernel("precomputed")
        labels = np.empty(X.shape[0], dtype=np.intp)
        graph, rng = Graph.of(X, kept), np.random.default_rng(limits.seed())
        labels[kept] = self._divide(graph, weight[kept], self.n_clusters, self.kernel_, rng, report)
        rest = np.flatnonzero(weight == 0)
        for some in row_blocks(len(rest), 8 * X.shape[0]):
            labels[rest[some]] = self._nearest(X[rest[some]].toarray())
        self.labels_ = freeze(labels)

    def _learn(self, fit: Fit, report: Report) -> None:
        k = self._n_distinct(fit)
        # K, its scaled copy, and LAPACK's or the Krylov space's: three matrices.
        points, weight = points_of(fit, self.n_landmarks, 3, report, affinities=True), fit.merged.weight
        rng = np.random.default_rng(fit.limits.seed())
        labels = self._divide(points, weight, k, self.kernel_, rng, report)
        self.labels_ = self._labels_of_rows(fit, labels)

    def _divide(
        self, points: Points | Graph, weight: Floats, k: int, kernel: Kernel, rng: np.random.Generator, report: Report
    ) -> Indices:
        report(lambda: f"{k} eigenvectors of {points.n:,} samples")
        self.eigenvalues_, embedding, self._expansion_ = _walk(points, weight, k, kernel)
        found = cluster(Mapped(embedding), weight, k, self.n_init, _MAX_STEPS, rng, report)
        self._centres_ = freeze(found.shares(weight, k).T @ embedding)
        return found.labels

    def _nearest(self, X: Any) -> Indices:
        values = self._values(X)
        affine = values[:, -1] > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            embedding = np.where(affine[:, None], values[:, :-1] / values[:, -1:], 0.0)
        squares = np.einsum("cj,cj->c", self._centres_, self._centres_)
        nearest = np.argmax(embedding @ self._centres_.T - 0.5 * squares, axis=1)
        return np.where(affine, nearest, -1)

    @available_if(_extends)
    @like_input
    def predict(self, X: Any) -> Indices:
        """The cluster of new samples, by extending the eigenvectors to them; −1 for one that has no affinity at all.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples, as a dense array.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        return self._nearest(self._to_decide(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.affinity is not None:
            tags.input_tags.pairwise = False
        tags.input_tags.positive_only = tags.input_tags.pairwise  # affinities are never negative
        tags.input_tags.sparse = tags.input_tags.sparse or tags.input_tags.pairwise
        return tags


def _walk(points: Points | Graph, weight: Floats, k: int, kernel: Kernel) -> tuple[Floats, Floats, Expansion]:
    """The leading eigenvalues, each sample's place in their eigenvectors, and what gives new samples theirs."""
    known = points.extremes if isinstance(points, Stored | Graph) else None
    if known is not None and known[0] < -_ROUNDING_SHARE * max(map(abs, known)):
        raise ValueError(
            f"Negative values in data: affinities must not be negative, but {kernel!r} has the value "
            f"{known[0]:.3g}; use a Gaussian, a Laplacian or another kernel that is never negative"
        )
    own = points.squares
    degrees = points.products(weight[:, None])[:, 0] - (0.0 if known is None else own)
    if known is None and not (degrees > 0).all():
        raise ValueError(
            f"{int(np.sum(degrees <= 0))} samples have no affinity to others as far as the landmarks can tell; raise "
            "n_landmarks, or lower gamma"
        )
    # A sample without affinities is a graph of its own, in which a walk stays at 0.
    degrees = np.where(degrees > _ROUNDING_SHARE * own, degrees, 1.0)
    values, u = points.eigenpairs(np.sqrt(weight / degrees), k, None, own / weight)
    embedding = u / np.sqrt(weight * degrees)[:, None]
    # An eigenvector of a smaller eigenvalue cannot be extended: 1/μ would only magnify rounding.
    extended = np.divide(1.0, values, out=np.zeros_like(values), where=np.abs(values) > 1e-8)
    coefficients = weight[:, None] * np.column_stack([embedding * extended, np.ones(points.n)])
    return freeze(values), embedding, points.function(coefficients, np.zeros(len(values) + 1))
