"""Mercer expansion k(u, v) = Σ λ_jφ_j(u)φ_j(v), and Nyström features.

The λ_j and φ_j are eigenvalues and eigenfunctions of f ↦ ∫ k(·, x) f(x) dp(x). If points x_i with weights w_i replace
the distribution p, they follow from the eigenvalues and eigenvectors of the matrix √w_i k(x_i, x_j) √w_j, and

    φ_j(x) = 1/λ_j Σ_i w_i k(x, x_i) φ_j(x_i)        Nyström's extension

gives the functions at any x. At the points the whole sum is exactly k; elsewhere it is an approximation, whose error
`MercerExpansion.error` measures.

Nyström features are the coordinates of φ(x), projected onto the span of φ(z) for the landmarks z:

    K_ZZ = UΛU'    features Λ^(−½) U' (k(z_1, x), …, k(z_m, x))

Their inner products equal k if one of the two samples is a landmark, and ‖features‖² ≤ k(x, x).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.fitting.pipeline.state import Array, AttributeSpec, IndexArray, check_vectors, fitted
from mercer.inspection.features.feature_map import FeatureMap
from mercer.inspection.rkhs import Function
from mercer.kernels import Kernel
from mercer.kernels.kernel import SampleFunction
from mercer.kernels.mercer_check import float32_rounding
from mercer.kernels.names import KernelLike, as_kernel
from mercer.places.landmarks import draw, leverage_scores
from mercer.runtime.long_calls import call_interruptibly
from mercer.runtime.parameters import Seed, integer, one_of, positive
from mercer.samples.arrays import Floats, Samples, freeze, host, n_samples, take
from mercer.samples.chunks import Chunk
from mercer.samples.matrices import as_matrix


def _eigenpairs_of(K: Floats, kernel: Kernel, where: str) -> tuple[Floats, Floats]:
    """Return eigenvalues, in descending order, and eigenvectors of a kernel matrix; raise if an eigenvalue is negative.

    `where` names the samples of the matrix in the message.
    """
    values, vectors = call_interruptibly(np.linalg.eigh, K)
    if values[0] < -1e-8 * max(float(values[-1]), 0.0):
        raise ValueError(
            f"{kernel!r} is not positive definite: its matrix on {where} has the eigenvalue {values[0]:.3g}, so that "
            "it is not an inner product of features, and Mercer's theorem does not hold"
        )
    return values[::-1], vectors[:, ::-1]


def _n_above_rounding(values: Floats) -> int:
    """Return the number of descending eigenvalues above rounding; eigenvectors of the others would be noise."""
    return int(np.sum(values > 1e-13 * values[0]))


@dataclass(frozen=True, eq=False)
class MercerExpansion:
    """First terms of a Mercer expansion.

    Attributes
    ----------
    kernel : Kernel
        Kernel with all parameters as numbers.
    points : samples
        Points that represent the distribution of the samples.
    weights : array
        Weights of the points.
    eigenvalues : array
        Eigenvalues λ_j in descending order.
    rest : float
        Sum of the eigenvalues of the omitted terms: the mean error on the diagonal.
    """

    kernel: Kernel
    points: Samples = field(repr=False)
    weights: Floats = field(repr=False)
    eigenvalues: Floats = field(repr=False)
    rest: float
    _coefficients: Floats = field(repr=False)

    def functions(self, X: Samples) -> Floats:
        """Evaluate the eigenfunctions φ_j at samples, a column for each; their mean square over the points is 1."""
        return np.asarray(self.kernel(X, self.points) @ self._coefficients)

    def features(self, X: Samples) -> Floats:
        """Compute the features √λ_j φ_j, whose inner products are the expansion."""
        return np.asarray(self.functions(X) * np.sqrt(self.eigenvalues))

    def values(self, X: Samples, Z: Samples = None) -> Floats:
        """Evaluate the expansion Σ λ_jφ_j(x)φ_j(z)."""
        left = self.features(X)
        return np.asarray(left @ (left if Z is None else self.features(Z)).T)

    def error(self, X: Samples, Z: Samples = None) -> float:
        """Return the largest difference between the expansion and k on samples."""
        exact_values = self.kernel(X) if Z is None else self.kernel(X, Z)
        return float(np.abs(self.values(X, Z) - exact_values).max(initial=0.0))


def mercer_expansion(
    X: Samples, *, kernel: KernelLike, n_terms: int, weights: ArrayLike | None = None
) -> MercerExpansion:
    """Compute the Mercer expansion of a kernel for samples, or for the points and weights of a quadrature rule.

    Parameters
    ----------
    X : array, CSR matrix or list
        Samples, or the points of a quadrature rule.
    kernel : Kernel or str
        The kernel.
    n_terms : int
        Number of terms; fewer are returned if the others are zero to rounding.
    weights : array, optional
        Weights of the points, ≥ 0; 1/n by default.

    Returns
    -------
    MercerExpansion
        Expansion with the attributes ``kernel``, ``points``, ``weights``, ``eigenvalues`` (λ_j in descending order)
        and ``rest`` (sum of the omitted λ_j: the mean error on the diagonal), and the methods ``functions(X)`` (φ_j),
        ``features(X)`` (√λ_j φ_j), ``values(X, Z)`` (Σ λ_jφ_j(x)φ_j(z)) and ``error(X, Z)`` (largest difference
        from k).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import mercer_expansion
    >>> from mercer.kernels import Gaussian
    >>> x, w = np.polynomial.hermite.hermgauss(40)  # the law N(0, 1) by quadrature
    >>> w = w / np.sqrt(np.pi)
    >>> expansion = mercer_expansion(np.sqrt(2) * x[:, None], kernel=Gaussian(gamma=0.5), n_terms=5, weights=w)
    >>> expansion.eigenvalues.round(6)  # √(2a/A)·B^j in closed form
    array([0.618034, 0.236068, 0.09017 , 0.034442, 0.013156])
    """
    integer("n_terms", n_terms, 1, "the number of terms")
    bound = as_kernel(kernel).bind(X)
    points = as_matrix(host(X)) if bound.accepts == "vectors" else host(X)
    n = n_samples(points)
    w = np.full(n, 1.0 / max(n, 1)) if weights is None else np.array(weights, dtype=np.float64)
    if n == 0 or w.shape != (n,) or not (np.isfinite(w) & (w >= 0)).all():
        raise ValueError(f"an expansion needs points and a finite weight ≥ 0 for each of the {n} points, not {w.shape}")
    root = np.sqrt(w)
    values, vectors = _eigenpairs_of(root[:, None] * bound(points) * root, bound, "these points")
    n_kept = min(n_terms, _n_above_rounding(values))
    coefficients = root[:, None] * vectors[:, :n_kept] / values[:n_kept]
    sum_of_others = float(values[n_kept:].sum())
    return MercerExpansion(
        bound, points, freeze(w), freeze(values[:n_kept].copy()), sum_of_others, freeze(coefficients)
    )


def mercer_integral(X: Samples, f: SampleFunction, *, kernel: KernelLike, weights: ArrayLike) -> float:
    """Compute ∫∫ k(u, v) f(u) f(v) du dv by quadrature; Mercer's condition requires that it is ≥ 0 for every f.

    Parameters
    ----------
    X : array
        Points of a quadrature rule.
    f : callable
        Function that maps the points to one number for each.
    kernel : Kernel or str
        The kernel.
    weights : array
        Weights of the quadrature rule.

    Returns
    -------
    float
        The integral.

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
    """Find the h with ∫ h² = 1 that violates Mercer's condition ∫∫ k(u, v) h(u) h(v) du dv ≥ 0 most.

    Both integrals are computed by quadrature. Such an h proves that the kernel is not positive definite, since its
    matrix on the points is not. None proves nothing: other points may refute the kernel.

    Parameters
    ----------
    X : array
        Points of a quadrature rule.
    kernel : Kernel or str
        The kernel.
    weights : array
        Weights of the quadrature rule, > 0.

    Returns
    -------
    mercer.rkhs.Function or None
        The function h; None if no violation is found at these points.

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
    values, vectors = call_interruptibly(np.linalg.eigh, root[:, None] * (0.5 * (K + K.T)) * root)
    if not values[0] < -max(1e-10, float32_rounding(X, bound)) * np.abs(values).max():  # otherwise it may be rounding
        return None
    # Nyström's extension of the eigenfunction; the integral is its eigenvalue.
    return Function(X, root * vectors[:, 0] / values[0], kernel=bound)


@dataclass(eq=False, repr=False)
class Nystrom(FeatureMap):
    """Approximate the feature map of a kernel by Nyström's method, from landmarks among the samples.

    Parameters
    ----------
    kernel : Kernel or str, default="rbf"
        Positive definite kernel on vectors.
    n_components : int, default=100
        Number of landmarks, and largest number of features; all samples if there are fewer.
    landmarks : {"uniform", "leverage"}, default="uniform"
        Distribution of the landmarks: uniform over the samples, or proportional to ridge leverage scores, which prefer
        samples that others do not represent.
    lam : float, default=1e-3
        Ridge parameter per sample of the leverage scores; used by landmarks="leverage".
    random_state : int or Generator, default=0
        Seed for drawing the landmarks.

    Attributes
    ----------
    kernel_ : Kernel
        Kernel with all parameters as numbers.
    landmarks_ : array or CSR matrix
        The landmarks.
    indices_ : array of int
        Indices of the landmarks among the samples.
    eigenvalues_ : array
        Eigenvalues of the landmarks' kernel matrix, one for each feature, in descending order.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : array of str
        Names of the features of X, if it has names.

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
        """Draw the landmarks, and decompose their kernel matrix."""
        m = integer("n_components", self.n_components, 1, "the number of landmarks")
        one_of("landmarks", self.landmarks, ("uniform", "leverage"))
        n, rng = n_samples(X), np.random.default_rng(self.random_state)
        chunks = [Chunk(X, np.zeros((n, 0)), np.ones(n))]
        landmarks = draw(chunks, m, rng)
        if self.landmarks == "leverage":
            scores = leverage_scores(self.kernel_, landmarks.X, n * positive("lam", self.lam), float(n))
            landmarks = draw(chunks, m, rng, scores)
        values, vectors = _eigenpairs_of(self.kernel_(landmarks.X), self.kernel_, "the landmarks")
        n_kept = max(1, _n_above_rounding(values))
        self.indices_, self.landmarks_ = landmarks.index, take(X, landmarks.index)
        self.eigenvalues_ = values[:n_kept].copy()
        with np.errstate(divide="ignore"):
            self._map = (
                vectors[:, :n_kept] / np.sqrt(self.eigenvalues_) if values[0] > 0 else np.zeros((len(values), 1))
            )

    def _features(self, X: Samples) -> Floats:
        """Project the samples onto the span of the landmarks."""
        return np.asarray(self.kernel_(X, self.landmarks_) @ self._map)

    def _width(self) -> int:
        return len(self.eigenvalues_)
