"""Kernels that users write: a function of two blocks of samples, or a feature map.

A user's function gets views that it cannot write to, and its result is checked before it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import parameters
from mercer.arrays import Floats, mirror, n_samples
from mercer.kernels.kernel import DIAGONAL_ROWS, DOMAINS_OF_FUNCTIONS, Answer, Domain, Kernel, OfSamples, OfTwoBlocks
from mercer.kernels.matrices import as_matrix, call, dense, dot, name_of, numbers_of, squared_lengths
from mercer.kernels.transformed import features_of, in_row_blocks

# A difference from the mirrored entry above this share of max |K| is more than a rounding error.
_ASYMMETRY_SHARE = 1e-8


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

    accepts: Domain = "vectors"
    mergeable: bool = False
    given: bool = True
    _no_gradient = "what the function does between samples is not known"

    def __init__(self, function: OfTwoBlocks, accepts: Domain = "vectors") -> None:
        self.function = function
        self.accepts = accepts
        self._check()

    def _check(self) -> None:
        parameters.function("function", self.function)
        parameters.one_of("accepts", self.accepts, DOMAINS_OF_FUNCTIONS)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"FromFunction({name_of(self.function)})"

    def _symmetric(self, X: Any) -> Floats:
        K = self._values(X, X)
        self._check_symmetry(K)
        mirror(K)
        np.fill_diagonal(K, self.diag(X))
        return K

    def _values(self, X: Any, Z: Any) -> Floats:
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

    def diag(self, X: Any) -> Floats:
        """k(x_i, x_i), from small blocks whose symmetry is checked on the way."""
        return in_row_blocks(self._diagonal, self._samples(X), DIAGONAL_ROWS)

    def _diagonal(self, X: Any) -> Floats:
        block = self._values(X, X)
        self._check_symmetry(block)
        return block.diagonal()

    def _check_symmetry(self, K: Floats) -> None:
        asymmetry = float(np.abs(K - K.T).max(initial=0.0))
        if asymmetry > _ASYMMETRY_SHARE * np.abs(K).max(initial=0.0):
            raise ValueError(
                f"the kernel function {name_of(self.function)} is not symmetric: k(x, z) and k(z, x) differ by up "
                f"to {asymmetry:.3g}, and a kernel must be; (k(x, z) + k(z, x)) / 2 is"
            )


@dataclass(frozen=True, repr=False)
class _Column:
    """A function of samples as a feature map with one feature."""

    function: OfSamples

    def __call__(self, X: Any) -> Floats:
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

    accepts: Domain = "vectors"
    positive_definite: Answer = "yes"
    _no_gradient = "the derivative of the feature map is not known"

    def __init__(self, feature_map: OfSamples, accepts: Domain = "vectors") -> None:
        self.feature_map = feature_map
        self.accepts = accepts
        self._check()

    def _check(self) -> None:
        parameters.function("feature_map", self.feature_map)
        parameters.one_of("accepts", self.accepts, DOMAINS_OF_FUNCTIONS)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"FromFeatureMap({name_of(self.feature_map)})"

    def _values(self, X: Any, Z: Any) -> Floats:
        features = self._features(X)
        return dot(features, features if Z is X else self._features(Z))

    def diag(self, X: Any) -> Floats:
        return in_row_blocks(lambda rows: squared_lengths(self._features(rows)), self._samples(X))

    def _features(self, X: Any) -> Any:
        self._check()
        return features_of(self.feature_map, X, as_matrix)
