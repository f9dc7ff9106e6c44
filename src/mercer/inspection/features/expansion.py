"""Mercer's expansion k(u, v) = Σ λ_jφ_j(u)φ_j(v), and Nyström features.

The λ_j and φ_j are eigenvalues and eigenfunctions of f ↦ ∫ k(·, x) f(x) dp(x). With points x_i and weights w_i in the
place of p they are those of the matrix √w_i k(x_i, x_j) √w_j, and

    φ_j(x) = 1/λ_j Σ_i w_i k(x, x_i) φ_j(x_i)        Nyström's extension

gives the functions at any x. On the points themselves the whole sum is k exactly; elsewhere it is an approximation,
whose error `MercerExpansion.error` measures.

Nyström features are the coordinates of φ(x), projected onto the span of the landmarks' φ(z):

    K_ZZ = UΛU'    features Λ^(−½) U' (k(z_1, x), …, k(z_m, x))

Their inner products are k exactly where one of the samples is a landmark, and k(x, x) never falls below ‖features‖².
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.fitting.pipeline.state import Array, AttributeSpec, IndexArray, check_vectors, fitted
from mercer.inspection.features.feature_map import FeatureMap
from mercer.inspection.rkhs import Function
from mercer.kernels import Kernel
from mercer.kernels.kernel import OfSamples
from mercer.kernels.mercer_check import rounding_of_given
from mercer.kernels.names import KernelLike, as_kernel
from mercer.places.landmarks import draw, leverage_scores
from mercer.runtime.long_calls import abandonable
from mercer.runtime.parameters import Seed, integer, one_of, positive
from mercer.samples.arrays import Floats, Samples, freeze, host, n_samples, take
from mercer.samples.chunks import Chunk
from mercer.samples.matrices import as_matrix


def _eigenpairs_of(K: Floats, kernel: Kernel, where: str) -> tuple[Floats, Floats]:
    """Eigenvalues in descending order and their vectors, of a kernel's matrix on `where`; none may be negative."""
    values, vectors = abandonable(np.linalg.eigh, K)
    if values[0] < -1e-8 * max(float(values[-1]), 0.0):
        raise ValueError(
            f"{kernel!r} is not positive definite: its matrix on {where} has the eigenvalue {values[0]:.3g}, so that "
            "it is no inner product of features, and Mercer's theorem does not hold"
        )
    return values[::-1], vectors[:, ::-1]


def _n_above_rounding(values: Floats) -> int:
    """How many of descending eigenvalues are more than rounding; the directions of the others would be noise."""
    return int(np.sum(values > 1e-13 * values[0]))


@dataclass(frozen=True, eq=False)
class MercerExpansion:
    """The first terms of an expansion.

    Attributes
    ----------
    kernel : Kernel
        With its numbers.
    points : samples
        What stands for the law of the samples.
    weights : array
        Of the points.
    eigenvalues : array
        In descending order.
    rest : float
        The sum of the eigenvalues that were left out: the mean error on the diagonal.
    """

    kernel: Kernel
    points: Samples = field(repr=False)
    weights: Floats = field(repr=False)
    eigenvalues: Floats = field(repr=False)
    rest: float
    _coefficients: Floats = field(repr=False)

    def functions(self, X: Samples) -> Floats:
        """φ_j at every sample, a column each; their mean squares over the points are 1."""
        return np.asarray(self.kernel(X, self.points) @ self._coefficients)

    def features(self, X: Samples) -> Floats:
        """√λ_j φ_j: features whose inner products are the expansion."""
        return np.asarray(self.functions(X) * np.sqrt(self.eigenvalues))

    def values(self, X: Samples, Z: Samples = None) -> Floats:
        """Σ λ_jφ_j(x)φ_j(z)."""
        left = self.features(X)
        return np.asarray(left @ (left if Z is None else self.features(Z)).T)

    def error(self, X: Samples, Z: Samples = None) -> float:
        """The largest difference from k on samples."""
        exact = self.kernel(X) if Z is None else self.kernel(X, Z)
        return float(np.abs(self.values(X, Z) - exact).max(initial=0.0))


def mercer_expansion(
    X: Samples, *, kernel: KernelLike, n_terms: int, weights: ArrayLike | None = None
) -> MercerExpansion:
    """Expand a kernel with respect to samples, or to the points and weights of a quadrature rule.

    Parameters
    ----------
    X : array, CSR matrix or list
        Samples, or the points of a quadrature rule.
    kernel : Kernel or str
        The kernel.
    n_terms : int
        Fewer are given if the others are zero to rounding.
    weights : array, optional
        Of the points, ≥ 0; 1/n by default.

    Returns
    -------
    MercerExpansion
        ``kernel`` with its numbers, ``points`` and their ``weights``; ``eigenvalues`` λ_j in descending order, and
        ``rest``, the sum of those left out: the mean error on the diagonal. Methods of samples: ``functions(X)``, φ_j
        at each; ``features(X)``, √λ_j φ_j; ``values(X, Z)``, Σ λ_jφ_j(x)φ_j(z); ``error(X, Z)``, its largest
        difference from k.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import mercer_expansion
    >>> from mercer.kernels import Gaussian
    >>> x, w = np.polynomial.hermite.hermgauss(40)  # the law N(0, 1) by quadrature
    >>> w = w / np.sqrt(np.pi)
    >>> found = mercer_expansion(np.sqrt(2) * x[:, None], kernel=Gaussian(gamma=0.5), n_terms=5, weights=w)
    >>> found.eigenvalues.round(6)  # √(2a/A)·B^j in closed form
    array([0.618034, 0.236068, 0.09017 , 0.034442, 0.013156])
    """
    integer("n_terms", n_terms, 1, "the number of terms")
    bound = as_kernel(kernel).bind(X)
    points = as_matrix(host(X)) if bound.accepts == "vectors" else host(X)
    n = n_samples(points)
    w = np.full(n, 1.0 / max(n, 1)) if weights is None else np.array(weights, dtype=np.float64)
    if n == 0 or w.shape != (n,) or not (np.isfinite(w) & (w >= 0)).all():
        raise ValueError(f"an expansion needs points, and a finite weight ≥ 0 for each of the {n}, not {w.shape}")
    root = np.sqrt(w)
    values, vectors = _eigenpairs_of(root[:, None] * bound(points) * root, bound, "these points")
    kept = min(n_terms, _n_above_rounding(values))
    coefficients = root[:, None] * vectors[:, :kept] / values[:kept]
    rest = float(values[kept:].sum())
    return MercerExpansion(bound, points, freeze(w), freeze(values[:kept].copy()), rest, freeze(coefficients))


def mercer_integral(X: Samples, f: OfSamples, *, kernel: KernelLike, weights: ArrayLike) -> float:
    """∫∫ k(u, v) f(u) f(v) du dv by quadrature: Mercer's condition asks that it is ≥ 0 for every f.

    Parameters
    ----------
    X : array
        The points of a quadrature rule.
    f : callable
        Maps the points to one number each.
    kernel : Kernel or str
        The kernel.
    weights : array
        Its weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import mercer_integral
    >>> from mercer.kernels import Gaussian, Sigmoid
    >>> x, w = np.polynomial.legendre.leggauss(20)
    >>> mercer_integral(x[:, None], np.ravel, kernel=Gaussian(gamma=1.0), weights=w) > 0
    True
    >>> mercer_integral(x[:, None], lambda x: np.ones(len(x)), kernel=Sigmoid(gamma=1.0, coef0=-1.0), weights=w) > 0
    False
    """
    bound = as_kernel(kernel).bind(X)
    c = np.asarray(weights, dtype=np.float64) * np.asarray(f(X), dtype=np.float64)
    if c.shape != (n_samples(X),):
        raise ValueError(f"f and weights must give one number for each of the {n_samples(X)} points, not {c.shape}")
    return float(c @ bound(X) @ c)


def mercer_violation(X: Samples, *, kernel: KernelLike, weights: ArrayLike) -> Function | None:
    """Search for the h that violates Mercer's condition most, ∫∫ k(u, v) h(u) h(v) du dv < 0, of all with ∫ h² = 1.

    Both integrals are by quadrature. Where there is such an h, the kernel is not positive definite: the points
    themselves refute it. None proves nothing, since other points may.

    Parameters
    ----------
    X : array
        The points of a quadrature rule.
    kernel : Kernel or str
        The kernel.
    weights : array
        Its weights, > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import mercer_integral, mercer_violation
    >>> from mercer.kernels import Gaussian, Sigmoid
    >>> kernel, (x, w) = Sigmoid(gamma=1.0, coef0=-1.0), np.polynomial.legendre.leggauss(20)
    >>> h = mercer_violation(x[:, None], kernel=kernel, weights=w)
    >>> finer, v = np.polynomial.legendre.leggauss(50)
    >>> round(mercer_integral(finer[:, None], h, kernel=kernel, weights=v), 4)
    -1.4573
    >>> mercer_violation(x[:, None], kernel=Gaussian(gamma=1.0), weights=w) is None
    True
    """
    bound, w = as_kernel(kernel).bind(X), np.asarray(weights, dtype=np.float64)
    if n_samples(X) == 0 or w.shape != (n_samples(X),) or not (np.isfinite(w) & (w > 0)).all():
        raise ValueError(f"a finite weight > 0 is needed for each of the {n_samples(X)} points, not {w.shape}")
    root = np.sqrt(w)
    K = bound(X)
    values, vectors = abandonable(np.linalg.eigh, root[:, None] * (0.5 * (K + K.T)) * root)
    if not values[0] < -max(1e-10, rounding_of_given(X, bound)) * np.abs(values).max():  # else it may be rounding
        return None
    # Nyström's extension of the eigenfunction; the integral is its eigenvalue.
    return Function(X, root * vectors[:, 0] / values[0], kernel=bound)


@dataclass(eq=False, repr=False)
class Nystrom(FeatureMap):
    """Features of any kernel of vectors from landmarks among the samples.

    Parameters
    ----------
    kernel : Kernel or str, default="rbf"
        Any kernel of vectors that is positive definite.
    n_components : int, default=100
        The number of landmarks, and at most of features; all samples, if there are fewer.
    landmarks : {"uniform", "leverage"}, default="uniform"
        How they are drawn: all samples alike, or those more often that others do not represent (ridge leverage scores).
    lam : float, default=1e-3
        Of "leverage": the ridge of the least squares whose scores are taken, for each sample.
    random_state : int or Generator, default=0
        What they are drawn by.

    Attributes
    ----------
    kernel_ : Kernel
        With its numbers.
    landmarks_ : array or CSR matrix
        The landmarks.
    indices_ : array of integers
        Their rows in the samples.
    eigenvalues_ : array
        Of the landmarks' kernel matrix, one for each feature, in descending order.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import Nystrom
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> few, many = (Nystrom(Gaussian(gamma=0.2), n_components=n).fit(X) for n in (20, 100))
    >>> many.error(X) < 0.1 * few.error(X)
    True
    """

    _FITTED = fitted(
        indices_=IndexArray(required=True),
        landmarks_=AttributeSpec(required=True),
        eigenvalues_=Array(None, required=True),
        _map=Array("indices_", "eigenvalues_", required=True),
    )

    kernel: KernelLike = "rbf"
    n_components: int = 100
    landmarks: str = "uniform"
    lam: float = 1e-3
    random_state: Seed = 0

    def _check_fitted(self) -> None:
        super()._check_fitted()
        check_vectors("landmarks_", self.landmarks_, len(self.indices_), self.n_features_in_)

    def _prepare(self, X: Samples) -> None:
        m = integer("n_components", self.n_components, 1, "the number of landmarks")
        one_of("landmarks", self.landmarks, ("uniform", "leverage"))
        n, rng = n_samples(X), np.random.default_rng(self.random_state)
        everything = [Chunk(X, np.zeros((n, 0)), np.ones(n))]
        found = draw(everything, m, rng)
        if self.landmarks == "leverage":
            scores = leverage_scores(self.kernel_, found.X, n * positive("lam", self.lam), float(n))
            found = draw(everything, m, rng, scores)
        values, vectors = _eigenpairs_of(self.kernel_(found.X), self.kernel_, "the landmarks")
        kept = max(1, _n_above_rounding(values))
        self.indices_, self.landmarks_ = found.index, take(X, found.index)
        self.eigenvalues_ = values[:kept].copy()
        with np.errstate(divide="ignore"):
            self._map = vectors[:, :kept] / np.sqrt(self.eigenvalues_) if values[0] > 0 else np.zeros((len(values), 1))

    def _features(self, X: Samples) -> Floats:
        return np.asarray(self.kernel_(X, self.landmarks_) @ self._map)

    def _width(self) -> int:
        return len(self.eigenvalues_)
