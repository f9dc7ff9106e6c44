"""Kernels that users write: a function of two blocks of samples, a feature map, or the matrix K itself.

A user's function gets views that it cannot write to, and its result is checked before it is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mercer.kernels.composite import features_of, in_row_blocks, terms_of_features
from mercer.kernels.dot import Linear
from mercer.kernels.kernel import DIAGONAL_ROWS, DOMAINS_OF_FUNCTIONS, Domain, Kernel, OfSamples, OfTwoBlocks
from mercer.runtime import parameters
from mercer.samples.arrays import Floats, Samples, mirror, n_samples
from mercer.samples.matrices import as_matrix, call, dense, dot, name_of, numbers_of, squared_lengths


@dataclass(eq=False, repr=False)
class FromFunction(Kernel):
    """k given by a function, a callable (X, Z) -> matrix of shape (len(X), len(Z)).

    Parameters
    ----------
    function : callable
        Called with read-only blocks of samples, in any number and order. Must be symmetric.
    accepts : "vectors" or "sequences"
        What a sample is.

    Examples
    --------
    >>> from mercer.kernels import FromFunction
    >>> def common(A, B):
    ...     return [[len(set(a) & set(b)) for b in B] for a in A]
    >>> FromFunction(common, accepts="sequences")(["snow", "wind"], ["now"])
    array([[3.],
           [2.]])
    """

    function: OfTwoBlocks
    accepts: Domain = "vectors"

    mergeable = False
    given = True
    _no_gradient = "what the function does between samples is not known"

    def _check(self) -> None:
        parameters.function("function", self.function)
        parameters.one_of("accepts", self.accepts, DOMAINS_OF_FUNCTIONS)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"FromFunction({name_of(self.function)})"

    def _symmetric(self, X: Samples) -> Floats:
        K = self._values(X, X)
        self._check_symmetry(K)
        mirror(K)
        np.fill_diagonal(K, self.diag(X))
        return K

    def _values(self, X: Samples, Z: Samples) -> Floats:
        self._check()
        values = np.asarray(dense(call(self.function, X, Z)))
        name, shape = name_of(self.function), (n_samples(X), n_samples(Z))
        if values.shape != shape:
            raise ValueError(
                f"the kernel function {name} returned shape {values.shape} for {shape[0]} and {shape[1]} samples; it "
                f"must return {shape}. A function f of two single samples becomes one of blocks by "
                "lambda X, Z: [[f(x, z) for z in Z] for x in X]"
            )
        if values.dtype.kind not in "biuf":
            raise ValueError(f"the kernel function {name} must return real numbers, not {values.dtype}")
        if not np.isfinite(values).all():
            bad = values[~np.isfinite(values)][0]
            raise ValueError(f"the kernel function {name} returned {bad}; all its values must be finite")
        return np.array(values, dtype=np.float64, order="C")

    def _diag(self, X: Samples) -> Floats:
        """k(x_i, x_i), from small blocks whose symmetry is checked on the way."""
        return in_row_blocks(self._diagonal, self._samples(X), DIAGONAL_ROWS)

    def _diagonal(self, X: Samples) -> Floats:
        block = self._values(X, X)
        self._check_symmetry(block)
        return block.diagonal()

    def _check_symmetry(self, K: Floats) -> None:
        asymmetry = float(np.abs(K - K.T).max(initial=0.0))
        if asymmetry > 1e-8 * np.abs(K).max(initial=0.0):  # more than a rounding error
            raise ValueError(
                f"the kernel function {name_of(self.function)} is not symmetric: k(x, z) and k(z, x) differ by up "
                f"to {asymmetry:.3g}, and a kernel must be; (k(x, z) + k(z, x)) / 2 is"
            )


@dataclass(frozen=True, repr=False)
class _Column:
    """A function of samples as a feature map with one feature."""

    function: OfSamples

    def __call__(self, X: Samples) -> Floats:
        return numbers_of(self.function, X)[:, None]

    def __repr__(self) -> str:
        return name_of(self.function)


def rank_one(function: OfSamples, *, accepts: Domain = "vectors") -> FromFeatureMap:
    """The kernel f(x)f(z) of a function f: one feature, and every matrix of its values has rank 1.

    Parameters
    ----------
    function : callable
        f, which maps n samples to n finite numbers, each from its own sample alone.
    accepts : {"vectors", "sequences"}, default="vectors"
        What a sample is.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, rank_one
    >>> rank_one(lambda X: X[:, 0] - 1)([[3.0], [1.5]])
    array([[4.  , 1.  ],
           [1.  , 0.25]])
    """
    parameters.function("function", function)
    return FromFeatureMap(_Column(function), accepts)


@dataclass(eq=False, repr=False)
class FromFeatureMap(Kernel):
    """⟨φ(x), φ(z)⟩ for a feature map φ.

    Parameters
    ----------
    feature_map : callable
        Maps n samples to n rows, a dense array or a sparse matrix, each row from its own sample alone.
    accepts : "vectors" or "sequences"
        What a sample is.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import FromFeatureMap
    >>> FromFeatureMap(np.sqrt)([[4.0, 9.0]], [[1.0, 1.0]])
    array([[5.]])
    """

    feature_map: OfSamples
    accepts: Domain = "vectors"

    positive_definite = "yes"
    _no_gradient = "the derivative of the feature map is not known"

    def _check(self) -> None:
        parameters.function("feature_map", self.feature_map)
        parameters.one_of("accepts", self.accepts, DOMAINS_OF_FUNCTIONS)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"FromFeatureMap({name_of(self.feature_map)})"

    def _values(self, X: Samples, Z: Samples) -> Floats:
        features = self._features(X)
        return dot(features, features if Z is X else self._features(Z))

    def _diag(self, X: Samples) -> Floats:
        return in_row_blocks(lambda rows: squared_lengths(self._features(rows)), self._samples(X))

    @property
    def compares(self) -> Domain:
        return "vectors"

    def n_terms(self, X: Samples) -> int:
        return terms_of_features(self._features, X, Linear())

    def _features(self, X: Samples) -> Samples:
        self._check()
        return features_of(self.feature_map, X, as_matrix)


class Precomputed(Kernel):
    """The matrix K itself: square for training, between new and training samples for prediction.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> K = Gaussian(gamma=1.0)(X)
    >>> SVC(kernel="precomputed").fit(K, y).predict(K[:2]).tolist()
    [0, 0]
    """

    accepts: Domain = "gram"
    mergeable: bool = False
    _no_gradient = "only the matrix is known, not the samples"

    def __call__(self, X: Samples, Z: Samples = None) -> Floats:
        """A float64 copy of the matrix."""
        if Z is not None:
            raise TypeError("a precomputed kernel compares no samples: give the matrix of kernel values alone")
        return self._values(self._samples(X), None)

    def _samples(self, X: Samples) -> Samples:
        if sp.issparse(X):
            raise TypeError("a sparse precomputed kernel matrix is not supported; give a dense array")
        K = np.asarray(X)
        if K.ndim != 2:
            raise ValueError(f"a precomputed kernel is a matrix, but the shape is {K.shape}")
        return K

    def _values(self, X: Samples, Z: Samples) -> Floats:
        return np.array(X, dtype=np.float64, order="C")

    def _diag(self, X: Samples) -> Floats:
        K = self._samples(X)
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"only a square kernel matrix has a diagonal of k(x, x), but its shape is {K.shape}")
        return np.array(K.diagonal(), dtype=np.float64)
