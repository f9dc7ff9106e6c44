"""The Bessel kernel, which oscillates with the distance and is positive definite only for few features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from mercer.kernels.kernel import Answer, Kernel, Slope
from mercer.runtime.parameters import integer, positive, real
from mercer.samples.arrays import Floats, Samples, row_blocks
from mercer.samples.distances import distances
from mercer.samples.matrices import as_matrix, squared_lengths, weighted_differences

# Largest order ν: beyond it Γ(ν + 1) and the other factors would leave the range of float64.
_LARGEST_ORDER = 50.0
# Below the first t, values come from the confluent hypergeometric limit function, which is smooth at 0, then from J_ν.
# From the second t on they are 0, since they would be smaller than any bound on their rounding error.
_FROM_SERIES, _TO_ZERO = 10.0, 1e15


@dataclass(eq=False, repr=False)
class Bessel(Kernel):
    """Bessel kernel Γ(ν + 1)(2/t)^ν J_ν(t) with t = sigma·‖x − z‖; 1 for t = 0.

    It is positive definite on d features if and only if ν ≥ (d − 2)/2 (Schoenberg 1938).

    Parameters
    ----------
    order : float, 0 to 50
        Order ν of the Bessel function.
    sigma : float > 0
        Frequency of the oscillation.
    n_features : int ≥ 1, optional
        Number d of features; None for that of the training data.

    Examples
    --------
    >>> from mercer.kernels import Bessel
    >>> Bessel(order=0.5, sigma=1.0)([[0.0]], [[0.0], [2.0]]).round(4)  # sin(t)/t
    array([[1.    , 0.4546]])
    >>> [Bessel(order=1, n_features=d).positive_definite for d in (4, 5)]
    ['yes', 'no']
    """

    order: float = 1.0
    sigma: float = 1.0
    n_features: int | None = None

    unit_diagonal = differentiable = "yes"
    positive_values = "no"

    def _check(self) -> None:
        if not 0 <= real("order", self.order) <= _LARGEST_ORDER:
            raise ValueError(f"order={self.order!r} must be a number from 0 to {_LARGEST_ORDER:g}")
        positive("sigma", self.sigma)
        if self.n_features is not None:
            integer("n_features", self.n_features, 1, "it is the number of columns of the samples")

    @property
    def bound(self) -> bool:
        return self.n_features is not None

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        self._check()
        return self if self.bound else Bessel(self.order, self.sigma, int(X.shape[1]))

    def _samples(self, X: Samples) -> Samples:
        X = as_matrix(X)
        if self.n_features not in (None, X.shape[1]):
            raise ValueError(f"{self!r} is for {self.n_features} features, but the samples have {X.shape[1]}")
        return X

    def _scaled(self, X: Samples, Z: Samples) -> Floats:
        """Return the scaled distances t = sigma·‖x − z‖."""
        self._check()
        t = distances(X, Z)
        with np.errstate(over="ignore"):
            t *= float(self.sigma)
        return t

    def _values(self, X: Samples, Z: Samples) -> Floats:
        return _bessel(float(self.order), self._scaled(X, Z))

    def n_terms(self, X: Samples) -> int:
        """Return a number of terms whose rounding errors bound that of a value.

        For ν ≥ ½ the error of a value is less than twice the relative error of t, and for a smaller ν less than √t
        times that, where t ≤ 2σ max‖x‖.
        """
        distance_terms = super().n_terms(X)
        if self.order >= 0.5:
            return 2 * distance_terms + 20
        largest = 2.0 * float(self.sigma) * math.sqrt(float(squared_lengths(X).max(initial=0.0)))
        return math.ceil(min(2.0 * (distance_terms + 20) * (1.0 + math.sqrt(largest)), 2.0**53))

    # k'_ν(t) = −t/(2(ν + 1)) k_{ν+1}(t), from (t^−ν J_ν)' = −t^−ν J_{ν+1} (DLMF 10.6.6).
    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        nu, sigma = float(self.order), float(self.sigma)
        slope = _bessel(nu + 1, self._scaled(X, Z)) / (-2.0 * (nu + 1))
        return weighted_differences(weights * slope, X, Z) * sigma * sigma

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        nu, t = float(self.order), self._scaled(X, Z)
        yield "sigma", (), t * t * _bessel(nu + 1, t.copy()) / (-2.0 * (nu + 1)) / float(self.sigma)

    @property
    def positive_definite(self) -> Answer:
        if self.n_features is None:
            return "depends"
        return "yes" if 2 * self.order >= self.n_features - 2 else "no"

    # For ν > (d − 2)/2 the Fourier transform is positive on a ball, on which exponentials are linearly independent and
    # which determines entire functions (Micchelli, Xu and Zhang 2006). For ν = (d − 2)/2 it is supported on a sphere.
    @property
    def strictly_positive_definite(self) -> Answer:
        if self.n_features is None:
            return "depends"
        margin = 2 * self.order - (self.n_features - 2)
        return "yes" if margin > 0 else "unknown" if margin == 0 else "no"

    @property
    def universal(self) -> Answer:
        return self.strictly_positive_definite

    @property
    def lipschitz(self) -> float | None:
        # k(r) is an average of cosines, so that 1 − k ≤ −k''(0) r²/2, and −k''(0) = σ²/(2(ν + 1)).
        if self.positive_definite != "yes":
            return None
        return float(self.sigma) / math.sqrt(2 * (self.order + 1))


def _bessel(nu: float, t: Floats) -> Floats:
    """Compute Γ(ν + 1)(2/t)^ν J_ν(t); overwrites t."""
    flat = t.reshape(-1)
    for block in row_blocks(len(flat), 512):  # a value takes a microsecond, as for Matérn kernels
        s = flat[block]
        is_small, is_large = s < _FROM_SERIES, s >= _TO_ZERO
        is_medium = ~(is_small | is_large)
        s[is_small] = special.hyp0f1(nu + 1.0, -0.25 * s[is_small] ** 2)
        s[is_medium] = np.exp(special.gammaln(nu + 1.0) + nu * np.log(2.0 / s[is_medium])) * special.jv(
            nu, s[is_medium]
        )
        s[is_large] = 0.0
    return t
