"""Feature maps made from kernel objects, as scikit-learn transformers; each measures its own error.

Monomials       (γ⟨x, z⟩ + c)^d, exactly:   √(d!/(a! (d − |a|)!) γ^|a| c^(d−|a|)) x^a  for all exponents |a| ≤ d
GaussianSeries  exp(−γ(x − z)²), one feature:   e^(−γx²) √((2γ)^j/j!) x^j  for j below n_terms
RandomFourier   s·exp(−γ‖x − z‖²):   √(s/m) (cos ω'x, sin ω'x)  for m frequencies ω from N(0, 2γI)
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Self

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.arrays import Floats
from mercer.kernels import Kernel, as_kernel
from mercer.parameters import integer

# As many columns as 100 rows of 8 bytes fill a gigabyte with.
_MOST_FEATURES = 10**6


class _Map(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """What the maps share: a bound kernel, and the error of their inner products."""

    kernel: Any
    kernel_: Kernel

    def fit(self, X: Any, y: Any = None) -> Self:
        """Bind the kernel to X and draw or list what the features are made of."""
        X = validate_data(self, X, dtype=np.float64)
        self.kernel_ = as_kernel(self.kernel).bind(X)
        self._prepare(X.shape[1])
        return self

    def _prepare(self, n_features: int) -> None:
        raise NotImplementedError

    def _features(self, X: Floats) -> Floats:
        raise NotImplementedError

    def transform(self, X: Any) -> Floats:
        """The features of each sample, a row each."""
        check_is_fitted(self)
        return self._features(validate_data(self, X, dtype=np.float64, reset=False))

    def error(self, X: Any) -> float:
        """The largest difference between the features' inner products and k on samples."""
        features = self.transform(X)
        return float(np.abs(features @ features.T - self.kernel_(X)).max())


class Monomials(_Map):
    """All monomials of a polynomial kernel, with the weights that make their inner product the kernel exactly.

    Parameters
    ----------
    kernel : a polynomial kernel, such as Polynomial(degree=2), (Linear() + 1) ** 3 or Linear()
    ordered : bool, default=False
        Every ordered product x_i x_j … on its own, without weights, in the place of each monomial once with √ weights.

    Examples
    --------
    >>> from mercer.features import Monomials
    >>> from mercer.kernels import Polynomial
    >>> Monomials(Polynomial(degree=2, gamma=1.0, coef0=0.0)).fit_transform([[1.0, 3.0]]).round(4)
    array([[1.    , 4.2426, 9.    ]])
    """

    def __init__(self, kernel: Any = "linear", ordered: bool = False) -> None:
        self.kernel = kernel
        self.ordered = ordered

    def _prepare(self, n_features: int) -> None:
        recipe = self.kernel_.recipe()
        if (
            recipe is None
            or recipe.inner != "dot"
            or recipe.ending not in ("identity", "polynomial")
            or recipe.normalise
        ):
            raise ValueError(f"{self.kernel_!r} is no polynomial of ⟨x, z⟩, and has no monomials")
        gamma, coef0, degree = recipe.numbers or (1.0, 0.0, 1.0)
        if coef0 < 0:
            raise ValueError(f"coef0={coef0:g} is negative: the kernel is not positive definite, and has no features")
        # A constant is one more coordinate, √c of every sample.
        self._constants = (recipe.scale, gamma, coef0, recipe.constant)
        width, degree = n_features + (coef0 > 0), int(degree)
        count = width**degree if self.ordered else math.comb(width + degree - 1, degree)
        if count > _MOST_FEATURES:
            raise ValueError(f"{count} monomials are too many to list; use the kernel itself, or RandomFourier")
        every = itertools.product(range(width), repeat=degree)
        chosen = every if self.ordered else itertools.combinations_with_replacement(range(width), degree)
        self.factors_ = np.array(list(chosen), dtype=np.intp).reshape(count, degree)
        self._weights = np.ones(count) if self.ordered else np.sqrt([_orderings(row) for row in self.factors_])

    def _features(self, X: Floats) -> Floats:
        scale, gamma, coef0, constant = self._constants
        Z = math.sqrt(gamma) * X
        if coef0 > 0:
            Z = np.column_stack([Z, np.full(len(Z), math.sqrt(coef0))])
        out = math.sqrt(scale) * self._weights * np.prod(Z[:, self.factors_], axis=2)
        return np.column_stack([out, np.full(len(Z), math.sqrt(constant))]) if constant else np.asarray(out)


def _orderings(factors: Any) -> int:
    """In how many orders the factors of a monomial can be written."""
    counts = np.unique(factors, return_counts=True)[1].tolist()
    return math.factorial(len(factors)) // math.prod(map(math.factorial, counts))


class GaussianSeries(_Map):
    """The first terms of the power series of a Gaussian kernel of one feature.

    Parameters
    ----------
    kernel : a Gaussian kernel
    n_terms : int, default=20

    Examples
    --------
    >>> from mercer.features import GaussianSeries
    >>> from mercer.kernels import Gaussian
    >>> X = [[-1.0], [0.0], [1.5]]
    >>> GaussianSeries(Gaussian(gamma=0.5), n_terms=25).fit(X).error(X) < 1e-12
    True
    """

    def __init__(self, kernel: Any = "rbf", n_terms: int = 20) -> None:
        self.kernel = kernel
        self.n_terms = n_terms

    def _prepare(self, n_features: int) -> None:
        integer("n_terms", self.n_terms, 1, "the number of terms")
        self._scale, self._gamma = _gaussian(self.kernel_)
        if n_features != 1:
            raise ValueError(f"the series is for one feature, and X has {n_features}; use RandomFourier")

    def _features(self, X: Floats) -> Floats:
        out = np.empty((len(X), self.n_terms))
        out[:, 0] = math.sqrt(self._scale) * np.exp(-self._gamma * X[:, 0] ** 2)
        for k in range(1, self.n_terms):
            out[:, k] = out[:, k - 1] * X[:, 0] * math.sqrt(2 * self._gamma / k)
        return out


class RandomFourier(_Map):
    """Random Fourier features of a Gaussian kernel (Rahimi and Recht 2007), orthogonal by default (Yu and others 2016).

    The error falls like 1/√n_components; `error(X)` says what it is.

    Parameters
    ----------
    kernel : a Gaussian kernel, also with a matrix M or a factor
    n_components : int, default=200
        Features: a cosine and a sine for half as many frequencies.
    orthogonal : bool, default=True
    random_state : int or Generator, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features import RandomFourier
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> features = RandomFourier(Gaussian(gamma=0.2), n_components=2000).fit(X)
    >>> features.transform(X).shape, features.error(X) < 0.1
    ((50, 2000), True)
    """

    def __init__(
        self, kernel: Any = "rbf", n_components: int = 200, orthogonal: bool = True, random_state: Any = 0
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    def _prepare(self, n_features: int) -> None:
        integer("n_components", self.n_components, 2, "a cosine and a sine")
        self._scale, gamma = _gaussian(self.kernel_)
        recipe = self.kernel_.recipe()
        factor = None if recipe is None else recipe.factor
        width = n_features if factor is None else factor.shape[1]
        rng = np.random.default_rng(self.random_state)
        frequencies = rng.normal(size=(self.n_components // 2, width))
        if self.orthogonal:
            frequencies = _orthogonal(rng, frequencies)
        frequencies *= math.sqrt(2 * gamma)
        self.frequencies_ = frequencies if factor is None else frequencies @ factor.T

    def _features(self, X: Floats) -> Floats:
        angles = X @ self.frequencies_.T
        size = math.sqrt(self._scale / len(self.frequencies_))
        return np.asarray(size * np.concatenate([np.cos(angles), np.sin(angles)], axis=1))


def _orthogonal(rng: np.random.Generator, frequencies: Floats) -> Floats:
    """The same lengths, in directions that are orthogonal in groups of as many as there are dimensions."""
    m, width = frequencies.shape
    lengths = np.linalg.norm(frequencies, axis=1)
    blocks = [linalg.qr(rng.normal(size=(width, width)))[0].T for _ in range(-(-m // width))]
    return np.asarray(np.concatenate(blocks)[:m] * lengths[:, None])


def _gaussian(kernel: Kernel) -> tuple[float, float]:
    """The scale and γ of a Gaussian kernel."""
    recipe = kernel.recipe()
    if recipe is None or recipe.ending != "gaussian" or recipe.constant:
        raise ValueError(f"{kernel!r} is no Gaussian kernel, nor a multiple of one")
    return recipe.scale, recipe.numbers[0]
