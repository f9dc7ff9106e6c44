"""Kernel: a formula k(x, z), what is known about it, and the operators that combine kernels into new ones.

A kernel knows no data and no device. It defines `_values` (a block of K) and `diag`; the rest has defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from sklearn.base import BaseEstimator

from mercer.arrays import Floats, n_samples
from mercer.kernels.matrices import as_matrix

if TYPE_CHECKING:
    from mercer.kernels.recipe import Recipe

Answer = Literal["yes", "no", "depends", "unknown"]
Domain = Literal["vectors", "sequences", "gram"]
# What a sample may be to a user's function.
DOMAINS_OF_FUNCTIONS = ("vectors", "sequences")

# Rows and columns that `mirror` copies at a time: a block of 32 kB stays in the first-level cache.
_MIRROR_ROWS = 64


class Kernel(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A function k(x, z) on pairs of samples, evaluated block by block in float64.

    Parameters are visible to scikit-learn (`clone`, `get_params`, ``kernel__gamma`` in a grid). Kernels combine:
    ``2 * k``, ``k1 + k2``, ``k1 * k2``, ``k ** 3``, ``k + 1``, and `exp`, `normalised`, `scaled_by`, `of`.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> kernel = Gaussian(gamma=0.5) + 0.1 * Linear()
    >>> kernel([[0.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]]).round(4)
    array([[1.1   , 0.7065]])
    >>> kernel.positive_definite, kernel.universal
    ('yes', 'yes')
    >>> kernel.set_params(left__gamma=2.0)
    Gaussian(gamma=2.0) + 0.1 * Linear()
    """

    # NumPy scalars leave ``np.float64(2) * kernel`` to the kernel.
    __array_ufunc__ = None

    # --- values -----------------------------------------------------------------------------------------------

    def __call__(self, X: Any, Z: Any = None) -> Floats:
        """The matrix k(x_i, z_j).

        Parameters
        ----------
        X, Z : array, CSR matrix or sequence of samples
            Without Z the samples are compared with themselves: the result is exactly symmetric, and its
            diagonal is `diag(X)`.

        Returns
        -------
        float64 array of shape (len(X), len(Z)), C-ordered and fresh.
        """
        symmetric = Z is None
        X = self._samples(X)
        Z = X if Z is None else self._samples(Z)
        if n_samples(X) == 0 or n_samples(Z) == 0:
            return np.empty((n_samples(X), n_samples(Z)))
        return self._symmetric(X) if symmetric else self._values(X, Z)

    def _symmetric(self, X: Any) -> Floats:
        """K of samples with themselves."""
        K = self._values(X, X)
        mirror(K)
        np.fill_diagonal(K, self.diag(X))
        return K

    def diag(self, X: Any) -> Floats:
        """k(x_i, x_i) for every sample, without the matrix; a kernel with a unit diagonal need not define it."""
        if self.unit_diagonal != "yes":
            raise NotImplementedError
        return np.ones(n_samples(X))

    def _values(self, X: Any, Z: Any) -> Floats:
        """A block of K as a fresh C-ordered float64 array; X may be Z."""
        raise NotImplementedError

    def _samples(self, X: Any) -> Any:
        """Samples in the form that `_values` takes."""
        return as_matrix(X) if self.accepts == "vectors" else X

    def bind(self, X: Any, sample_weight: Any = None) -> Kernel:
        """This kernel with parameters that depend on data ("scale", "auto", "median") replaced by numbers."""
        return self

    @property
    def bound(self) -> bool:
        """Whether no parameter depends on data any more."""
        return True

    def recipe(self) -> Recipe | None:
        """The same formula as a plain value for the fused core; None if the core does not know it."""
        return None

    # --- what a kernel says about itself ----------------------------------------------------------------------

    @property
    def accepts(self) -> Domain:
        """What a sample is: the row of an array or CSR matrix, a string, or a row of K itself."""
        return "vectors"

    @property
    def given(self) -> bool:
        """Whether its values are what a user's function returns, so that rounding inside of it is not our error."""
        return False

    @property
    def mergeable(self) -> bool:
        """Whether equal samples have equal kernel values for certain, so that they may be merged."""
        return True

    @property
    def positive_definite(self) -> Answer:
        """Whether ΣΣ c_i c_j k(x_i, x_j) ≥ 0 for all samples and all c."""
        return "unknown"

    @property
    def strictly_positive_definite(self) -> Answer:
        """Whether that sum is > 0 for all distinct samples and c ≠ 0."""
        return "unknown"

    @property
    def universal(self) -> Answer:
        """Whether k is continuous and Σ c_i k(x_i, ·) comes close to every continuous function on a compact set."""
        return "unknown"

    @property
    def unit_diagonal(self) -> Answer:
        """Whether k is normalised: k(x, x) = 1 for every x."""
        return "unknown"

    @property
    def differentiable(self) -> Answer:
        """Whether k is differentiable on its whole domain."""
        return "unknown"

    @property
    def lipschitz(self) -> float | None:
        """L with ‖φ(x) − φ(z)‖ ≤ L‖x − z‖ for all x and z; None if there is no such L, or it is not known."""
        return None

    # --- combinations -----------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Shifted, Sum

        if isinstance(other, Kernel):
            return Sum(self, other)
        if isinstance(other, Real):
            return self if other == 0 else Shifted(self, _number(other))
        return NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        return self.__add__(other)

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, Real):
            return Scaled(self, _number(other))
        return NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return self.__mul__(other)

    def __pow__(self, exponent: Any) -> Kernel:
        from mercer.kernels.algebra import Power

        return Power(self, exponent)

    def __sub__(self, other: Any) -> NoReturn:
        raise TypeError(
            "a difference of kernels is no kernel in general: it may have negative eigenvalues. Add kernels "
            "instead, or give the matrix itself with kernel='precomputed'"
        )

    __rsub__ = __sub__

    def __neg__(self) -> NoReturn:
        raise TypeError("-k is no kernel: where k has positive eigenvalues, -k has negative ones")

    def exp(self) -> Kernel:
        """exp(k(x, z))."""
        from mercer.kernels.algebra import Exponential

        return Exponential(self)

    def normalised(self) -> Kernel:
        """k(x, z) / √(k(x, x) k(z, z)): the cosine of the angle between φ(x) and φ(z)."""
        from mercer.kernels.transformed import Normalised

        return Normalised(self)

    def scaled_by(self, function: Callable[[Any], Any]) -> Kernel:
        """f(x) k(x, z) f(z), where ``function`` maps n samples to n numbers."""
        from mercer.kernels.transformed import Weighted

        return Weighted(self, function)

    def of(self, feature_map: Callable[[Any], Any], accepts: Domain = "vectors") -> Kernel:
        """k(φ(x), φ(z)), where ``feature_map`` maps n samples to n of those that this kernel accepts."""
        from mercer.kernels.transformed import PulledBack

        return PulledBack(self, feature_map, accepts)


def _number(value: Any) -> float:
    """A plain Python number, so that 2 stays 2 in the kernel's text."""
    plain: float = value.item() if isinstance(value, np.generic) else value
    return plain


def mirror(K: Floats) -> None:
    """Copy the lower triangle onto the upper one, in place."""
    for start in range(0, len(K), _MIRROR_ROWS):
        end = start + _MIRROR_ROWS
        corner = K[start:end, start:end]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
        K[start:end, end:] = K[end:, start:end].T
