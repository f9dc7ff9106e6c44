"""Mercer's expansion k(u, v) = Σ λ_jφ_j(u)φ_j(v) with respect to a sample or a quadrature rule.

The λ_j and φ_j are eigenvalues and eigenfunctions of f ↦ ∫ k(·, x) f(x) dp(x). With points x_i and weights w_i in the
place of p they are those of the matrix √w_i k(x_i, x_j) √w_j, and

    φ_j(x) = 1/λ_j Σ_i w_i k(x, x_i) φ_j(x_i)        Nyström's extension

gives the functions at any x. On the points themselves the whole sum is k exactly; elsewhere it is an approximation,
whose error `MercerExpansion.error` measures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.arrays import Floats, Samples, freeze, n_samples
from mercer.features.feature_map import eigenpairs_of, n_above_rounding
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.matrices import as_matrix
from mercer.parameters import integer


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
    points: Samples
    weights: Floats
    eigenvalues: Floats
    rest: float
    _coefficients: Floats = field(init=False, repr=False)

    def _made_of(self, coefficients: Floats) -> MercerExpansion:
        object.__setattr__(self, "_coefficients", coefficients)
        return self

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


def mercer_expansion(X: Samples, *, kernel: Any, n_terms: int, weights: Any = None) -> MercerExpansion:
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

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features import mercer_expansion
    >>> from mercer.kernels import Gaussian
    >>> x, w = np.polynomial.hermite.hermgauss(40)  # the law N(0, 1) by quadrature
    >>> w = w / np.sqrt(np.pi)
    >>> found = mercer_expansion(np.sqrt(2) * x[:, None], kernel=Gaussian(gamma=0.5), n_terms=5, weights=w)
    >>> found.eigenvalues.round(6)  # √(2a/A)·B^j in closed form
    array([0.618034, 0.236068, 0.09017 , 0.034442, 0.013156])
    """
    integer("n_terms", n_terms, 1, "the number of terms")
    bound = as_kernel(kernel).bind(X)
    points = as_matrix(X) if bound.accepts == "vectors" else X
    n = n_samples(points)
    w = np.full(n, 1.0 / max(n, 1)) if weights is None else np.array(weights, dtype=np.float64)
    if n == 0 or w.shape != (n,) or not (np.isfinite(w) & (w >= 0)).all():
        raise ValueError(f"an expansion needs points, and a finite weight ≥ 0 for each of the {n}, not {w.shape}")
    root = np.sqrt(w)
    values, vectors = eigenpairs_of(root[:, None] * bound(points) * root, bound, "these points")
    kept = min(n_terms, n_above_rounding(values))
    coefficients = root[:, None] * vectors[:, :kept] / values[:kept]
    made = MercerExpansion(bound, points, freeze(w), freeze(values[:kept].copy()), float(values[kept:].sum()))
    return made._made_of(freeze(coefficients))


def mercer_integral(X: Samples, f: Any, *, kernel: Any, weights: Any) -> float:
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
    >>> from mercer.features import mercer_integral
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
