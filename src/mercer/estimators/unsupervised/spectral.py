"""Spectral clustering: k-means in the leading eigenvectors of a random walk between samples.

With affinities A_ij = k(x_i, x_j), weights w and degrees d_i = Σ_j w_j A_ij − A_ii, a random walk goes from x_i to the
copies of x_j with probability w_jA_ij/d_i, and never stays at its sample. Its eigenvectors e, with eigenvalues μ, are
those of D^(−½)(√w A √w − diag A)D^(−½) divided by √(w d): the normalised Laplacian (Ng, Jordan and Weiss 2001; Shi and
Malik 2000). Groups of samples that the walk seldom leaves have nearly constant e. For a new sample

    e(x) = 1/μ Σ_j w_j k(x, x_j) e_j / Σ_j w_j k(x, x_j)        Nyström's extension

Sparse affinities are a given sparse matrix, or those of a nearest-neighbour graph.
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
from mercer.estimators.unsupervised.points import EmbeddedPoints, KernelMatrixPoints, Points, points_of
from mercer.kernels import Kernel
from mercer.kernels.names import as_kernel, kernel_accepts
from mercer.places.eigenpairs import leading_sparse
from mercer.places.expansion import Expansion
from mercer.runtime.available import available_if
from mercer.runtime.parameters import integer, one_of
from mercer.runtime.shared_docs import shared_docs
from mercer.samples import checks
from mercer.samples.arrays import Floats, Indices, freeze, is_sparse, row_blocks
from mercer.samples.engine import like_input
from mercer.solvers.solution import ProgressReporter


@dataclass(frozen=True, eq=False)
class AffinityGraph:
    """Samples with sparse affinities K; `columns` are their indices among the `n_columns` samples of the caller."""

    K: sp.csr_array
    columns: Indices
    n_columns: int

    @classmethod
    def of(cls, A: Any, members: Indices) -> AffinityGraph:
        """Return the graph of the samples `members`, from a square matrix A of affinities, which must be symmetric."""
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"affinities are a square matrix between all training samples, but X has shape {A.shape}")
        asymmetry = float(abs(A - A.T).max())
        if asymmetry > 1e-8 * float(abs(A).max()):
            raise ValueError(
                f"the affinity matrix is not symmetric: A and A.T differ by up to {asymmetry:.3g}; give (A + A.T) / 2"
            )
        return cls(sp.csr_array(A[members][:, members], dtype=np.float64), members, A.shape[0])

    @property
    def squares(self) -> Floats:
        return np.asarray(self.K.diagonal())

    @property
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest affinity."""
        return float(self.K.min()), float(self.K.max())

    @property
    def n(self) -> int:
        return int(self.K.shape[0])

    def products(self, C: Floats, subset: Indices | None = None) -> Floats:
        return np.asarray(self.K @ C if subset is None else self.K[:, subset] @ C)

    def eigenpairs(self, scale: Floats, k: int, centre: None, subtracted: Floats) -> tuple[Floats, Floats]:
        """Return the k largest eigenvalues of S(K − diag(subtracted))S with S = diag(scale), and their eigenvectors."""
        S = sp.diags_array(scale)
        return leading_sparse(sp.csr_array(S @ (self.K - sp.diags_array(subtracted)) @ S), k)

    def function(self, C: Floats, b: Floats) -> Expansion:
        """Return the function with coefficients C and constants b of a row of affinities with all training samples."""
        return Expansion(as_kernel("precomputed"), None, np.ascontiguousarray(C), b, self.columns, self.n_columns)


def neighbour_affinities(X: Any, n_neighbors: int, weight: Floats, n_jobs: int | None) -> sp.csr_array:
    """Return the affinities of the nearest-neighbour graph: ½ for each of two samples that has the other as neighbour.

    A sample is its own neighbour. A neighbour of weight w counts as w neighbours, and with a share of w if that would
    exceed `n_neighbors`.
    """
    members = np.flatnonzero(weight)
    mass = weight[members]
    if n_neighbors > mass.sum():
        total = (
            f"n_samples={len(members)}" if (mass == 1).all() else f"samples of {mass.sum():g} units of weight in all"
        )
        raise ValueError(f"n_neighbors={n_neighbors} is too large for {total}; lower n_neighbors")
    search = NearestNeighbors(n_jobs=n_jobs).fit(X[members])
    rows, columns, shares = [], [], []
    pending, count = np.arange(len(weight)), n_neighbors
    while len(pending):  # with weights below 1, more than n_neighbors samples are needed
        count = min(count, len(members))
        nearest = search.kneighbors(X[pending], count, return_distance=False)
        masses = mass[nearest]
        nearer_mass = np.cumsum(masses, axis=1) - masses
        if count < len(members):
            has_all_neighbours = (nearer_mass + masses)[:, -1] >= n_neighbors
        else:
            has_all_neighbours = np.ones(len(pending), dtype=np.bool_)
        share = np.clip(n_neighbors - nearer_mass, 0.0, masses) / masses
        entries = np.nonzero(has_all_neighbours[:, None] & (share > 0))
        rows.append(pending[entries[0]])
        columns.append(members[nearest[entries]])
        shares.append(share[entries])
        pending, count = pending[~has_all_neighbours], 2 * count
    directed_graph = sp.csr_array(
        (np.concatenate(shares), (np.concatenate(rows), np.concatenate(columns))), 2 * weight.shape
    )
    return sp.csr_array(0.5 * (directed_graph + directed_graph.T))


_MAX_STEPS = 300
# Values below this fraction of the largest count as rounding.
_ROUNDING_SHARE = 1e-14


@dataclass(frozen=True)
class _Centres(AttributeSpec):
    """Spec of the cluster means in the coordinates of the eigenvectors: all outputs of the model except the degree."""

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        Array(None, len(model._expansion_.b) - 1).check(name, value, model)
        expect(len(value) > 0, f"{name} must be of one cluster at least")


@dataclass(frozen=True)
class _Labels(AttributeSpec):
    """Spec of cluster labels; −1 for a sample of weight 0 that has no affinity."""

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        are_integers = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"
        are_labels = are_integers and bool(((value >= -1) & (value < len(model._centres_))).all())
        expect(are_labels, f"{name} must be numbers of clusters")


def _has_kernel_affinities(model: SpectralClustering) -> bool:
    """Return True if new samples have affinities, by a kernel; raise AttributeError otherwise."""
    if model.affinity is not None:
        raise AttributeError(f"affinity={model.affinity!r} is defined for the training samples only; use a kernel")
    return True


@shared_docs
@dataclass(eq=False, repr=False)
class SpectralClustering(Clustering):
    """Spectral clustering with the values of a nonnegative kernel as affinities.

    The samples are embedded by the leading eigenvectors of the normalised Laplacian, as in scikit-learn, and clustered
    by k-means. The affinity of a sample with itself is ignored. A precomputed affinity matrix may be sparse. With
    `n_landmarks` the samples are projected onto the span of the landmarks in feature space, and self-affinities are
    included, which matters little for many samples.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters and of eigenvectors.
    affinity : "nearest_neighbors" or None, default=None
        Affinities: None means the values of `kernel`; "nearest_neighbors" means ½ for each of two samples that has the
        other among its `n_neighbors` nearest, as in scikit-learn, in which case there is no `predict`.
    n_neighbors : int, default=10
        Number of nearest neighbours, including the sample itself, for affinity="nearest_neighbors". A sample of weight
        w counts as w neighbours.
    %(kernel)s
    n_init : int, default=10
        Number of runs of k-means with different initialisations; the best one is kept.
    %(samples of a space)s

    Attributes
    ----------
    %(cluster of each)s
    eigenvalues_ : array of shape (n_clusters,)
        Eigenvalues of the random walk in descending order: 1 minus those of the normalised Laplacian. The first is 1.
    %(kernel with its numbers)s

    See Also
    --------
    KernelKMeans : k-means in feature space.

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
        integer("n_neighbors", self.n_neighbors, 1, "the number of nearest neighbours")

    def _learn_from(self, X: Any, y: Any, sample_weight: Any, report: ProgressReporter) -> None:
        """Cluster samples with sparse affinities by their graph, and all other samples as points with a kernel."""
        if self.affinity is None and not (kernel_accepts(self.kernel) == "gram" and is_sparse(X)):
            super()._learn_from(X, y, sample_weight, report)
            return
        self._check_parameters()
        if self.n_landmarks is not None:
            raise ValueError("n_landmarks is not available with a sparse affinity matrix; set it to None")
        limits, X = Limits.of(self, _MAX_STEPS), checks.vectors(self, X, reset=True)
        weight = checks.weights(sample_weight, X.shape[0])
        checks.refuse_no_weight(weight)
        if self.affinity is not None:
            X = neighbour_affinities(X, self.n_neighbors, weight, self.n_jobs)
        members = np.flatnonzero(weight)
        self._refuse_few(len(members))
        self.kernel_ = as_kernel("precomputed")
        labels = np.empty(X.shape[0], dtype=np.intp)
        graph, rng = AffinityGraph.of(X, members), np.random.default_rng(limits.seed())
        labels[members] = self._cluster_points(graph, weight[members], self.n_clusters, self.kernel_, rng, report)
        rows_without_weight = np.flatnonzero(weight == 0)
        for block in row_blocks(len(rows_without_weight), 8 * X.shape[0]):
            labels[rows_without_weight[block]] = self._nearest(X[rows_without_weight[block]].toarray())
        self.labels_ = freeze(labels)

    def _learn(self, fit: Fit, report: ProgressReporter) -> None:
        """Cluster the samples as points with a kernel, and set the labels of the rows."""
        k = self._n_used_clusters(fit)
        # Three matrices: K, its scaled copy, and the work space of LAPACK or the Krylov basis.
        points, weight = points_of(fit, self.n_landmarks, 3, report, affinities=True), fit.merged.weight
        rng = np.random.default_rng(fit.limits.seed())
        labels = self._cluster_points(points, weight, k, self.kernel_, rng, report)
        self.labels_ = self._labels_of_rows(fit, labels)

    def _cluster_points(
        self,
        points: Points | AffinityGraph,
        weight: Floats,
        k: int,
        kernel: Kernel,
        rng: np.random.Generator,
        report: ProgressReporter,
    ) -> Indices:
        """Return the cluster of each point, and set the eigenvalues, the function of the embedding and the means."""
        report(lambda: f"{k} eigenvectors of {points.n:,} samples")
        self.eigenvalues_, embedding, self._expansion_ = _embedding(points, weight, k, kernel)
        clusters = cluster(EmbeddedPoints(embedding), weight, k, self.n_init, _MAX_STEPS, rng, report)
        self._centres_ = freeze(clusters.shares(weight, k).T @ embedding)
        return clusters.labels

    def _nearest(self, X: Any) -> Indices:
        """Return the cluster whose mean is nearest in the embedding; −1 for samples without affinity."""
        values = self._values(X)
        has_affinity = values[:, -1] > 0  # the last output is the degree Σ_j w_j k(x, x_j)
        with np.errstate(divide="ignore", invalid="ignore"):
            embedding = np.where(has_affinity[:, None], values[:, :-1] / values[:, -1:], 0.0)
        squares = np.einsum("cj,cj->c", self._centres_, self._centres_)
        nearest = np.argmax(embedding @ self._centres_.T - 0.5 * squares, axis=1)
        return np.where(has_affinity, nearest, -1)

    @available_if(_has_kernel_affinities)
    @like_input
    def predict(self, X: Any) -> Indices:
        """Predict the cluster of samples by Nyström's extension of the eigenvectors.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples as a dense
            array.

        Returns
        -------
        array of shape (n_samples,)
            Cluster of each sample; −1 for a sample without any affinity.
        """
        return self._nearest(self._read_new_samples(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.affinity is not None:
            tags.input_tags.pairwise = False
        tags.input_tags.positive_only = tags.input_tags.pairwise  # affinities are never negative
        tags.input_tags.sparse = tags.input_tags.sparse or tags.input_tags.pairwise
        return tags


def _embedding(
    points: Points | AffinityGraph, weight: Floats, k: int, kernel: Kernel
) -> tuple[Floats, Floats, Expansion]:
    """Return the leading eigenvalues, the embedding of the samples by their eigenvectors, and its extension."""
    extremes = points.extremes if isinstance(points, KernelMatrixPoints | AffinityGraph) else None  # None: landmarks
    if extremes is not None and extremes[0] < -_ROUNDING_SHARE * max(map(abs, extremes)):
        raise ValueError(
            f"Negative values in data: affinities must not be negative, but {kernel!r} has the value "
            f"{extremes[0]:.3g}; use a Gaussian, a Laplacian or another nonnegative kernel"
        )
    diagonal = points.squares
    degrees = points.products(weight[:, None])[:, 0] - (0.0 if extremes is None else diagonal)
    if extremes is None and not (degrees > 0).all():
        raise ValueError(
            f"{int(np.sum(degrees <= 0))} samples have no affinity to others after projection onto the landmarks; "
            "raise n_landmarks, or lower gamma"
        )
    # A sample without affinities is an isolated node; its degree is set to 1 to avoid a division by 0.
    degrees = np.where(degrees > _ROUNDING_SHARE * diagonal, degrees, 1.0)
    values, u = points.eigenpairs(np.sqrt(weight / degrees), k, None, diagonal / weight)
    embedding = u / np.sqrt(weight * degrees)[:, None]
    # Eigenvectors of smaller eigenvalues cannot be extended, since 1/μ would only magnify rounding.
    inverse_values = np.divide(1.0, values, out=np.zeros_like(values), where=np.abs(values) > 1e-8)
    coefficients = weight[:, None] * np.column_stack([embedding * inverse_values, np.ones(points.n)])
    return freeze(values), embedding, points.function(coefficients, np.zeros(len(values) + 1))
