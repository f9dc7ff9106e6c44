"""Kernels of the inner product t = ⟨x, z⟩: t, (γt + c)^degree, tanh(γt + c), and the cosine of the angle."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.kernels.bandwidth import check_gamma, gamma_of, with_bound_gamma
from mercer.kernels.kernel import Answer, Kernel
from mercer.kernels.matrices import as_matrix, dot, squared_lengths, unit_rows
from mercer.kernels.recipe import Recipe


class Linear(Kernel):
    """⟨x, z⟩."""

    positive_definite: Answer = "yes"
    strictly_positive_definite: Answer = "no"
    universal: Answer = "no"
    unit_diagonal: Answer = "no"
    differentiable: Answer = "yes"
    lipschitz: float | None = 1.0

    def _values(self, X: Any, Z: Any) -> Floats:
        return dot(X, Z)

    def diag(self, X: Any) -> Floats:
        return squared_lengths(as_matrix(X))

    def recipe(self) -> Recipe:
        return Recipe("dot", "identity")


class Polynomial(Kernel):
    """(γ⟨x, z⟩ + coef0)^degree.

    Parameters
    ----------
    degree : int ≥ 0
    gamma : float ≥ 0, "scale", "auto" or "median"
    coef0 : float
        Where it is negative the kernel is not positive definite.
    """

    strictly_positive_definite: Answer = "no"
    universal: Answer = "no"
    differentiable: Answer = "yes"

    def __init__(self, degree: int = 3, gamma: float | str = "scale", coef0: float = 0.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self._check()

    def _check(self) -> None:
        if not isinstance(self.degree, Integral) or isinstance(self.degree, bool) or self.degree < 0:
            raise ValueError(
                f"degree={self.degree!r} must be an integer ≥ 0: other powers of ⟨x, z⟩ are not kernels"
            )
        check_gamma(self.gamma)
        check_coef0(self.coef0)

    def bind(self, X: Any, sample_weight: Any = None) -> Kernel:
        self._check()
        return with_bound_gamma(self, X, sample_weight)

    def _values(self, X: Any, Z: Any) -> Floats:
        return self._of(dot(X, Z))

    def diag(self, X: Any) -> Floats:
        return self._of(squared_lengths(as_matrix(X)))

    def _of(self, t: Floats) -> Floats:
        self._check()
        with np.errstate(over="ignore", invalid="ignore"):
            t *= gamma_of(self)
            t += self.coef0
            return integer_power(t, int(self.degree))

    def recipe(self) -> Recipe:
        self._check()
        return Recipe("dot", "polynomial", (gamma_of(self), float(self.coef0), float(self.degree)))

    @property
    def _constant(self) -> bool:
        return self.degree == 0 or (not isinstance(self.gamma, str) and self.gamma == 0)

    @property
    def positive_definite(self) -> Answer:
        # With coef0 < 0 the expansion in powers of ⟨x, z⟩ has a negative coefficient, unless it is a positive constant.
        return "yes" if self.coef0 >= 0 or (self._constant and self.degree % 2 == 0) else "no"

    @property
    def unit_diagonal(self) -> Answer:
        return "yes" if self._constant and float(self.coef0) ** int(self.degree) == 1.0 else "no"

    @property
    def lipschitz(self) -> float | None:
        if self.positive_definite == "no":
            return None
        if self._constant:
            return 0.0
        return math.sqrt(self.gamma) if self.degree == 1 and not isinstance(self.gamma, str) else None


class Sigmoid(Kernel):
    """tanh(γ⟨x, z⟩ + coef0): not positive definite, so the optimum of a machine on it is only a stationary point.

    Parameters
    ----------
    gamma : float ≥ 0, "scale", "auto" or "median"
    coef0 : float
    """

    positive_definite: Answer = "no"
    strictly_positive_definite: Answer = "no"
    universal: Answer = "no"
    unit_diagonal: Answer = "no"
    differentiable: Answer = "yes"

    def __init__(self, gamma: float | str = "scale", coef0: float = 0.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0
        self._check()

    def _check(self) -> None:
        check_gamma(self.gamma)
        check_coef0(self.coef0)

    def bind(self, X: Any, sample_weight: Any = None) -> Kernel:
        self._check()
        return with_bound_gamma(self, X, sample_weight)

    def _values(self, X: Any, Z: Any) -> Floats:
        return self._of(dot(X, Z))

    def diag(self, X: Any) -> Floats:
        return self._of(squared_lengths(as_matrix(X)))

    def _of(self, t: Floats) -> Floats:
        self._check()
        with np.errstate(over="ignore", invalid="ignore"):
            t *= gamma_of(self)
            t += self.coef0
            return np.tanh(t, out=t)

    def recipe(self) -> Recipe:
        self._check()
        return Recipe("dot", "sigmoid", (gamma_of(self), float(self.coef0)))


class Cosine(Kernel):
    """⟨x, z⟩ / (‖x‖ ‖z‖), and 0 where x or z is 0."""

    positive_definite: Answer = "yes"
    strictly_positive_definite: Answer = "no"
    universal: Answer = "no"
    unit_diagonal: Answer = "depends"  # on there being no zero row
    differentiable: Answer = "no"  # at 0

    def _values(self, X: Any, Z: Any) -> Floats:
        unit = unit_rows(X)
        return dot(unit, unit if Z is X else unit_rows(Z))

    def diag(self, X: Any) -> Floats:
        X = as_matrix(X)
        return (np.asarray(abs(X).sum(axis=1)).ravel() > 0).astype(np.float64)

    def recipe(self) -> Recipe:
        return Recipe("dot", "identity", normalise=True)


def check_coef0(coef0: Any) -> None:
    """A finite number."""
    if not isinstance(coef0, Real) or not math.isfinite(coef0):
        raise ValueError(f"coef0={coef0!r} must be a finite number")


def integer_power(t: Floats, n: int) -> Floats:
    """t^n by repeated squaring, several times faster than a general power; overwrites t."""
    if n == 0:
        return np.ones_like(t)
    result: Floats | None = None
    while True:
        if n & 1:
            result = (
                t.copy()
                if result is None and n > 1
                else t
                if result is None
                else np.multiply(result, t, out=result)
            )
        n >>= 1
        if not n:
            assert result is not None
            return result
        t *= t
