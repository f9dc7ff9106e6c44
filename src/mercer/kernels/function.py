"""User-defined kernels: a function of two blocks of samples, a feature map, or the matrix K itself.

A user's function gets read-only views, and its result is checked before it is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mercer.kernels.composite import count_feature_terms, in_row_blocks, map_samples
from mercer.kernels.dot import Linear
from mercer.kernels.kernel import DIAGONAL_ROWS, FUNCTION_DOMAINS, BlockFunction, Domain, Kernel, SampleFunction
from mercer.runtime import parameters
from mercer.samples.arrays import Floats, Samples, mirror, n_samples
from mercer.samples.matrices import as_matrix, call, call_for_numbers, dense, dot, function_name, squared_lengths


@dataclass(eq=False, repr=False)
class FromFunction(Kernel):
    """Kernel given by a function, a callable (X, Z) -> matrix of shape (len(X), len(Z)).

    Parameters
    ----------
    function : callable
        Symmetric function, which is called with read-only blocks of samples of any size and order.
    accepts : {"vectors", "sequences"}, default="vectors"
        Kind of samples.

    Examples
    --------
    >>> from mercer.kernels import FromFunction
    >>> def common(A, B):
    ...     return [[len(set(a) & set(b)) for b in B] for a in A]
    >>> FromFunction(common, accepts="sequences")(["snow", "wind"], ["now"])
    array([[3.],
           [2.]])
    """

    function: BlockFunction
    accepts: Domain = "vectors"

    mergeable = False
    given = True
    _no_gradient = "the derivative of the function is not known"

    def _check(self) -> None:
        parameters.function("function", self.function)
        parameters.one_of("accepts", self.accepts, FUNCTION_DOMAINS)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"FromFunction({function_name(self.function)})"

    def _symmetric(self, X: Samples) -> Floats:
        K = self._values(X, X)
        self._check_symmetry(K)
        mirror(K)
        np.fill_diagonal(K, self.diag(X))
        return K

    def _values(self, X: Samples, Z: Samples) -> Floats:
        self._check()
        values = np.asarray(dense(call(self.function, X, Z)))
        name, shape = function_name(self.function), (n_samples(X), n_samples(Z))
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
        """Compute k(x_i, x_i) from small blocks, whose symmetry is checked."""
        return in_row_blocks(self._diagonal, self._samples(X), DIAGONAL_ROWS)

    def _diagonal(self, X: Samples) -> Floats:
        """Compute k(x_i, x_i) from one block, and check its symmetry."""
        block = self._values(X, X)
        self._check_symmetry(block)
        return block.diagonal()

    def _check_symmetry(self, K: Floats) -> None:
        """Raise ValueError if a block of values is not symmetric up to rounding."""
        asymmetry = float(np.abs(K - K.T).max(initial=0.0))
        if asymmetry > 1e-8 * np.abs(K).max(initial=0.0):  # more than a rounding error
            raise ValueError(
                f"the kernel function {function_name(self.function)} is not symmetric, as a kernel must be: k(x, z) "
                f"and k(z, x) differ by up to {asymmetry:.3g}; use (k(x, z) + k(z, x)) / 2"
            )


@dataclass(frozen=True, repr=False)
class _Column:
    """Feature map with one feature, a function of the samples."""

    function: SampleFunction

    def __call__(self, X: Samples) -> Floats:
        return call_for_numbers(self.function, X)[:, None]

    def __repr__(self) -> str:
        return function_name(self.function)


def rank_one(function: SampleFunction, *, accepts: Domain = "vectors") -> FromFeatureMap:
    """Return the kernel f(x)f(z) of a function f, which has one feature: its matrices have rank 1.

    Parameters
    ----------
    function : callable
        Function f, which maps n samples to n finite numbers, each of which depends on its sample only.
    accepts : {"vectors", "sequences"}, default="vectors"
        Kind of samples.

    Returns
    -------
    FromFeatureMap
        The kernel.

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
    """Kernel ⟨φ(x), φ(z)⟩ of a feature map φ.

    Parameters
    ----------
    feature_map : callable
        Function φ, which maps n samples to the n rows of an array or a sparse matrix; each row depends on its sample
        only.
    accepts : {"vectors", "sequences"}, default="vectors"
        Kind of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import FromFeatureMap
    >>> FromFeatureMap(np.sqrt)([[4.0, 9.0]], [[1.0, 1.0]])
    array([[5.]])
    """

    feature_map: SampleFunction
    accepts: Domain = "vectors"

    positive_definite = "yes"
    _no_gradient = "the derivative of the feature map is not known"

    def _check(self) -> None:
        parameters.function("feature_map", self.feature_map)
        parameters.one_of("accepts", self.accepts, FUNCTION_DOMAINS)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"FromFeatureMap({function_name(self.feature_map)})"

    def _values(self, X: Samples, Z: Samples) -> Floats:
        features = self._features(X)
        return dot(features, features if Z is X else self._features(Z))

    def _diag(self, X: Samples) -> Floats:
        return in_row_blocks(lambda rows: squared_lengths(self._features(rows)), self._samples(X))

    @property
    def compares(self) -> Domain:
        return "vectors"

    def n_terms(self, X: Samples) -> int:
        return count_feature_terms(self._features, X, Linear())

    def _features(self, X: Samples) -> Samples:
        self._check()
        return map_samples(self.feature_map, X, as_matrix)


class Precomputed(Kernel):
    """Precomputed kernel: X is the matrix K, square for training, between new and training samples for prediction.

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
        """Return a float64 copy of the matrix."""
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
