"""Kernels of the inner product t = ⟨x, z⟩: linear, polynomial (γt + c)^degree, sigmoid tanh(γt + c), and cosine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer.kernels.bandwidth import GammaKernel
from mercer.kernels.kernel import Answer, Kernel, Slope
from mercer.kernels.recipe import Recipe, affine, integer_power
from mercer.kernels.terms import Term, Terms, polynomial_term
from mercer.runtime.errors import NotDifferentiableError
from mercer.runtime.parameters import SuggestsParameters, finite, integer
from mercer.samples.arrays import Floats, Samples
from mercer.samples.matrices import (
    as_float64,
    as_matrix,
    check_same_width,
    combined,
    dense,
    dot,
    nonzero_rows,
    squared_lengths,
    unit_rows,
)


class Linear(Kernel):
    """Linear kernel ⟨x, z⟩, the dot product.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    positive_definite = differentiable = "yes"
    strictly_positive_definite = universal = unit_diagonal = positive_values = "no"
    lipschitz: float | None = 1.0

    def _values(self, X: Samples, Z: Samples) -> Floats:
        return dot(X, Z)

    def _diag(self, X: Samples) -> Floats:
        return squared_lengths(as_matrix(X))

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        check_same_width(X, Z)
        return combined(weights, Z)

    def recipe(self) -> Recipe:
        return Recipe("dot", "identity")

    def terms(self, d: int) -> Terms:
        return (Term((0.0, 1.0)),)


class _AffineProductKernel(GammaKernel):
    """Base class of kernels that are a function of γ⟨x, z⟩ + coef0."""

    coef0: float

    def _check(self) -> None:
        super()._check()
        finite("coef0", self.coef0)

    def _ending(self, t: Floats) -> Floats:
        """Compute the kernel value from t = γ⟨x, z⟩ + coef0; may overwrite t."""
        raise NotImplementedError

    def _slope_at(self, t: Floats) -> Floats:
        """Compute the derivative of `_ending` at t; may overwrite t."""
        raise NotImplementedError

    def _values(self, X: Samples, Z: Samples) -> Floats:
        return self._ending(affine(self._gamma(), float(self.coef0), dot(X, Z)))

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        gamma = self._gamma()
        return combined(gamma * weights * self._slope_at(affine(gamma, float(self.coef0), dot(X, Z))), Z)

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        product = dot(X, Z)
        slope = self._slope_at(affine(self._gamma(), float(self.coef0), product.copy()))
        yield "gamma", (), product * slope
        yield "coef0", (), slope

    def _diag(self, X: Samples) -> Floats:
        return self._ending(affine(self._gamma(), float(self.coef0), squared_lengths(as_matrix(X))))


@dataclass(eq=False, repr=False)
class Polynomial(SuggestsParameters, _AffineProductKernel):
    """Polynomial kernel (γ⟨x, z⟩ + coef0)^degree, for example the quadratic and the cubic kernel.

    Parameters
    ----------
    degree : int ≥ 0
        Degree of the polynomial.
    gamma : float ≥ 0, "scale", "auto" or "median"
        Coefficient γ, or the rule for it: 1/(columns · variance of X), 1/columns, or from the median distance.
    coef0 : float
        Constant term. If it is negative, the kernel is not positive definite.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0, coef0=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0

    strictly_positive_definite = universal = "no"
    differentiable = "yes"

    def _check(self) -> None:
        integer("degree", self.degree, 0, "other powers of an inner product are not kernels")
        super()._check()

    @property
    def n_factors(self) -> int:
        return max(1, int(self.degree))

    def _ending(self, t: Floats) -> Floats:
        return integer_power(t, int(self.degree))

    def _slope_at(self, t: Floats) -> Floats:
        return self.degree * integer_power(t, int(self.degree) - 1) if self.degree else np.zeros_like(t)

    def majorant(self) -> Kernel:
        return self if self.coef0 >= 0 else Polynomial(self.degree, self.gamma, -self.coef0)

    def terms(self, d: int) -> Terms | None:
        return polynomial_term(self._gamma(), float(self.coef0), int(self.degree))

    def recipe(self) -> Recipe | None:
        if self.degree >= 2**31:  # the core counts the factors of a power in 32 bits
            return None
        return Recipe("dot", "polynomial", (self._gamma(), float(self.coef0), float(self.degree)))

    @property
    def _constant(self) -> bool:
        """True if the kernel has the same value for all samples."""
        return self.degree == 0 or self.gamma == 0

    @property
    def positive_definite(self) -> Answer:
        # With coef0 < 0 the power series in ⟨x, z⟩ has a negative coefficient, unless it is a constant ≥ 0.
        return "yes" if self.coef0 >= 0 or (self._constant and self.degree % 2 == 0) else "no"

    @property
    def unit_diagonal(self) -> Answer:
        return "yes" if self._constant and float(self.coef0) ** int(self.degree) == 1 else "no"

    @property
    def positive_values(self) -> Answer:
        return "yes" if self._constant and float(self.coef0) ** int(self.degree) > 0 else "no"

    @property
    def lipschitz(self) -> float | None:
        if self.positive_definite == "no":
            return None
        if self._constant:
            return 0.0
        return math.sqrt(self._gamma()) if self.degree == 1 and self.bound else None


@dataclass(eq=False, repr=False)
class Sigmoid(SuggestsParameters, _AffineProductKernel):
    """Sigmoid kernel tanh(γ⟨x, z⟩ + coef0), which is not positive definite: fits reach a stationary point only.

    Parameters
    ----------
    gamma : float ≥ 0, "scale", "auto" or "median"
        Coefficient γ, or the rule for it: 1/(columns · variance of X), 1/columns, or from the median distance.
    coef0 : float
        Constant term.

    Examples
    --------
    >>> from mercer.kernels import Sigmoid
    >>> Sigmoid(gamma=1.0)([[1.0]], [[0.0], [0.5]]).round(4)
    array([[0.    , 0.4621]])
    """

    gamma: float | str = "scale"
    coef0: float = 0.0

    strictly_positive_definite = universal = unit_diagonal = "no"
    differentiable = "yes"

    def _ending(self, t: Floats) -> Floats:
        return np.tanh(t, out=t)

    def _slope_at(self, t: Floats) -> Floats:
        return 1.0 / np.cosh(t) ** 2

    def majorant(self) -> Kernel:
        return Polynomial(1, self.gamma, abs(self.coef0) + 1)  # bounds the argument and its tanh

    def recipe(self) -> Recipe:
        return Recipe("dot", "sigmoid", (self._gamma(), float(self.coef0)))

    @property
    def positive_definite(self) -> Answer:
        # A power series with coefficients ≥ 0 is bounded only if it is constant.
        return "yes" if self.gamma == 0 and self.coef0 >= 0 else "no"

    @property
    def positive_values(self) -> Answer:
        return "yes" if self.gamma == 0 and self.coef0 > 0 else "no"


class Cosine(Kernel):
    """Cosine kernel ⟨x, z⟩ / (‖x‖ ‖z‖), which is 0 if x or z is 0.

    Examples
    --------
    >>> from mercer.kernels import Cosine
    >>> Cosine()([[1.0, 0.0]], [[2.0, 0.0], [1.0, 1.0], [0.0, 3.0]]).round(4)
    array([[1.    , 0.7071, 0.    ]])
    """

    positive_definite = "yes"
    strictly_positive_definite = universal = positive_values = "no"
    unit_diagonal: Answer = "depends"  # "yes" unless a row is 0
    differentiable: Answer = "no"  # at 0

    def _values(self, X: Samples, Z: Samples) -> Floats:
        unit = unit_rows(X)
        return dot(unit, unit if Z is X else unit_rows(Z))

    def _diag(self, X: Samples) -> Floats:
        return np.asarray(nonzero_rows(as_matrix(X)), dtype=np.float64)

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        has_weight = weights.any(axis=1)
        zero_rows = np.flatnonzero(~nonzero_rows(X) & has_weight)
        if len(zero_rows):
            raise NotDifferentiableError(
                f"the cosine kernel has no derivative at 0, but row {zero_rows[0]} of X is 0; drop such rows"
            )
        unit_x, unit_z = unit_rows(X), unit_rows(Z)
        projections = (weights * dot(unit_x, unit_z)).sum(axis=1)
        lengths = np.where(has_weight, np.linalg.norm(dense(as_float64(X)), axis=1), 1.0)
        return np.asarray((combined(weights, unit_z) - projections[:, None] * dense(unit_x)) / lengths[:, None])

    def recipe(self) -> Recipe:
        return Recipe("dot", "identity", normalise=True)
