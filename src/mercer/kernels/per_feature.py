"""Kernels computed feature by feature: ANOVA, splines, histogram intersection."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from mercer.kernels.kernel import Answer, Kernel, Slope
from mercer.kernels.terms import MAX_TERMS, Term, Terms
from mercer.runtime.parameters import integer, positive
from mercer.samples.arrays import Floats, Samples, n_samples
from mercer.samples.matrices import (
    as_float64,
    as_matrix,
    check_same_width,
    dense,
    drop_shared_empty_columns,
    row_by_row,
    rows_with_blocks,
    smallest_entry,
    strips,
)


@dataclass(eq=False, repr=False)
class ANOVA(Kernel):
    """ANOVA kernel Σ_S Π_{f ∈ S} exp(−γ(x_f − z_f)²) over all sets S of ``order`` features.

    With order 1 features do not interact, with order 2 they interact in pairs, and so on (Stitson et al. 1999).

    Parameters
    ----------
    order : int ≥ 1
        Number of features that interact, at most the number of features.
    gamma : float > 0
        Coefficient γ.

    Examples
    --------
    >>> from mercer.kernels import ANOVA
    >>> ANOVA(order=1)([[0.0, 0.0]], [[0.0, 1.0]]).round(4)  # 1 + exp(−1)
    array([[1.3679]])
    >>> ANOVA(order=2)([[0.0, 0.0]], [[0.0, 1.0]]).round(4)  # 1·exp(−1)
    array([[0.3679]])
    """

    order: int = 1
    gamma: float = 1.0

    positive_definite = differentiable = positive_values = "yes"
    # If the number of features equals the order, the kernel is a Gaussian.
    strictly_positive_definite = universal = unit_diagonal = "depends"

    def _check(self) -> None:
        integer("order", self.order, 1, "it is the number of features in a product")
        positive("gamma", self.gamma)

    def _samples(self, X: Samples) -> Samples:
        self._check()
        X = as_matrix(X)
        if X.shape[1] < self.order:
            raise ValueError(f"{self!r} needs at least {self.order} features, but the samples have {X.shape[1]}")
        return X

    def _values(self, X: Samples, Z: Samples) -> Floats:
        return row_by_row(lambda x, z: _symmetric_sum(self._factors(x, z), self.order), X, Z)

    def _factors(self, x: Floats, z: Floats) -> Floats:
        """Return exp(−γ(x_f − z_f)²) of every feature f."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(-float(self.gamma) * (x - z) ** 2))

    def _diag(self, X: Samples) -> Floats:
        X = self._samples(X)
        return np.full(n_samples(X), _symmetric_sum(np.ones((1, X.shape[1])), self.order)[0])

    def _products_with_feature(self, x: Floats, z: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield each feature f, and the sum of the products that contain its factor."""
        factors = self._factors(x, z)
        for f in range(len(x)):
            others = _symmetric_sum(np.delete(factors, f, axis=1), self.order - 1)
            yield f, factors[:, f] * others

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        out = np.zeros(X.shape)
        for i, rows, x, z in rows_with_blocks(X, Z):
            for f, products in self._products_with_feature(x, z):
                out[i, f] -= 2.0 * float(self.gamma) * (weights[i, rows] * (x[f] - z[:, f])) @ products
        return out

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""

        def slope(x: Floats, z: Floats) -> Floats:
            by_feature = [(x[f] - z[:, f]) ** 2 * products for f, products in self._products_with_feature(x, z)]
            return np.asarray(-np.sum(by_feature, axis=0))

        yield "gamma", (), row_by_row(slope, X, Z)

    def terms(self, d: int) -> Terms | None:
        if math.comb(d, self.order) > MAX_TERMS:
            return None
        rates = np.eye(d) * float(self.gamma)
        return tuple(Term(square=rates[list(chosen)].sum(axis=0)) for chosen in combinations(range(d), self.order))

    @property
    def lipschitz(self) -> float | None:
        return math.sqrt(2.0 * float(self.gamma)) if self.order == 1 else None


def _symmetric_sum(factors: Floats, order: int) -> Floats:
    """Return the elementary symmetric polynomial of degree `order` of each row's factors > 0, without cancellation."""
    sums = np.zeros((order + 1, len(factors)))
    sums[0] = 1.0
    for column in factors.T:
        sums[1:] += sums[:-1] * column  # all products are computed before one of them is added
    return np.asarray(sums[order])


class Spline(Kernel):
    """Spline kernel Π_f (1 + x_f z_f + ∫₀^m (|x_f| − t)(|z_f| − t) dt) with m = min(|x_f|, |z_f|).

    Its functions are cubic splines with infinitely many knots. The integral, m²(3M − m)/6 with M = max(|x_f|, |z_f|),
    is left out if x_f and z_f have different signs. For numbers ≥ 0 this is Vapnik's kernel.

    Examples
    --------
    >>> from mercer.kernels import Spline
    >>> Spline()([[1.0]], [[1.0], [2.0], [-1.0]]).round(4)  # 1 + 1 + 1/3, 1 + 2 + 5/6, 1 − 1
    array([[2.3333, 3.8333, 0.    ]])
    """

    # The features of one column are 1, x, and (x − t)₊ or (−x − t)₊ for all t > 0. If Σ c_i times each of them is 0,
    # the second derivative by t, Σ c_i δ(x_i), shows that c_i = 0 if x_i ≠ 0, and the first feature that all c_i = 0.
    # Products over columns preserve that, and are dense in the continuous functions, as smooth functions of one column
    # are.
    positive_definite = strictly_positive_definite = universal = differentiable = "yes"
    unit_diagonal = positive_values = "no"

    def _values(self, X: Samples, Z: Samples) -> Floats:
        check_same_width(X, Z)  # columns that are empty in both may be dropped: their factor is 1
        return row_by_row(lambda x, z: np.prod(_spline_factors(x, z), axis=1), *drop_shared_empty_columns(X, Z))

    def _diag(self, X: Samples) -> Floats:
        X, out = as_matrix(X), np.empty(n_samples(X))
        with np.errstate(over="ignore"):
            for rows in strips(X):
                x = np.abs(as_float64(dense(X[rows])))
                out[rows] = np.prod(1.0 + x * x + x * x * x / 3.0, axis=1)
        return out

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        check_same_width(X, Z)
        out = np.zeros(X.shape)
        for i, rows, x, z in rows_with_blocks(X, Z):
            factors, ones = _spline_factors(x, z), np.ones((len(z), 1))
            prefix_products = np.cumprod(np.hstack([ones, factors[:, :-1]]), axis=1)
            suffix_products = np.cumprod(np.hstack([ones, factors[:, :0:-1]]), axis=1)[:, ::-1]
            m = np.minimum(np.abs(x), np.abs(z)) * (np.sign(x) == np.sign(z))
            slopes = z + np.sign(x) * m * (np.abs(z) - 0.5 * m)
            out[i] += weights[i, rows] @ (slopes * prefix_products * suffix_products)
        return out


def _spline_factors(x: Floats, z: Floats) -> Floats:
    """Return the factors of the spline kernel, one per feature."""
    a, b = np.abs(x), np.abs(z)
    m = np.minimum(a, b) * (np.sign(x) == np.sign(z))
    return np.asarray(1.0 + x * z + m * m * (3.0 * np.maximum(a, b) - m) / 6.0)


class HistogramKernel(Kernel):
    """Base class of kernels of histograms, rows whose entries must not be negative."""

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        self._samples(X)
        return super().bind(X, sample_weight)

    def _samples(self, X: Samples) -> Samples:
        X = as_matrix(X)
        smallest = smallest_entry(X)
        if smallest < 0:
            raise ValueError(
                f"the {type(self).__name__.lower()} kernel compares histograms, whose entries are ≥ 0, but X contains "
                f"{smallest:g}; shift or bin the features, or choose another kernel"
            )
        return X


class Intersection(HistogramKernel):
    """Histogram intersection kernel Σ_f min(x_f, z_f) for entries ≥ 0 (Swain and Ballard 1991).

    Examples
    --------
    >>> from mercer.kernels import Intersection
    >>> Intersection()([[0.2, 0.8]], [[0.5, 0.5], [0.2, 0.8]])
    array([[0.7, 1. ]])
    """

    # min(a, b) = ∫ 1[t ≤ a]·1[t ≤ b] dt is an inner product.
    positive_definite: Answer = "yes"
    strictly_positive_definite = universal = differentiable = positive_values = "no"
    unit_diagonal: Answer = "depends"  # "yes" if the entries of every sample add up to 1
    _no_gradient = "it has a kink where two samples have an entry in common"

    def _values(self, X: Samples, Z: Samples) -> Floats:
        check_same_width(X, Z)
        return row_by_row(lambda x, z: np.minimum(x, z).sum(axis=1), *drop_shared_empty_columns(X, Z))

    def _diag(self, X: Samples) -> Floats:
        X, out = self._samples(X), np.empty(n_samples(X))
        for rows in strips(X):
            out[rows] = as_float64(dense(X[rows])).sum(axis=1)
        return out
