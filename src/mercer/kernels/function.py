"""Kernels the user writes: a function of two blocks of samples, or a feature map.

Neither can be trusted: the function gets views that it cannot write to, and its result is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats
from mercer.kernels.kernel import Answer, Domain, Kernel
from mercer.kernels.matrices import as_matrix, dot, n_samples, read_only, squared_lengths
from mercer.kernels.transformed import check_callable, check_domain, features_of, name_of

# Beyond this share of max |K| a difference from the mirrored entry is no rounding error.
_ASYMMETRY = 1e-8
_DIAGONAL_ROWS = 32


class FromFunction(Kernel):
    """k given by a function (X, Z) -> matrix of shape (len(X), len(Z)).

    Parameters
    ----------
    function : callable
        Called with read-only blocks of samples, in any number and order. Must be symmetric.
    accepts : "vectors" or "sequences"
        What a sample is.
    """

    accepts: Domain = "vectors"
    mergeable: bool = False

    def __init__(self, function: Callable[[Any, Any], Any], accepts: Domain = "vectors") -> None:
        self.function = function
        self.accepts = accepts
        self._check()

    def _check(self) -> None:
        check_callable("function", self.function)
        check_domain(self.accepts)

    def _samples(self, X: Any) -> Any:
        return as_matrix(X) if self.accepts == "vectors" else X

    def __call__(self, X: Any, Z: Any = None) -> Floats:
        """The matrix k(x_i, z_j), checked; without Z its asymmetry is an error, and rounding is mirrored away."""
        if Z is None:
            X = self._samples(X)
            self._check_symmetry(self._values(X, X))
        return super().__call__(X, Z)

    def _values(self, X: Any, Z: Any) -> Floats:
        self._check()
        given = self.function(read_only(X), read_only(Z))
        values = np.asarray(given.toarray() if sp.issparse(given) else given)
        expected = (n_samples(X), n_samples(Z))
        if values.shape != expected:
            raise ValueError(
                f"the kernel function {name_of(self.function)} returned shape {values.shape} for {expected[0]} × {expected[1]} "
                f"samples; it must return {expected}. For a function f of two single samples write "
                "lambda X, Z: [[f(x, z) for z in Z] for x in X]"
            )
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"the kernel function {name_of(self.function)} must return real numbers, not {values.dtype}"
            )
        if not np.isfinite(values).all():
            i, j = np.argwhere(~np.isfinite(values))[0]
            raise ValueError(
                f"the kernel function {name_of(self.function)} returned {values[i, j]} for a pair of samples; "
                "all values must be finite"
            )
        return np.array(values, dtype=np.float64, order="C")

    def diag(self, X: Any) -> Floats:
        """k(x_i, x_i), from small blocks whose symmetry is checked on the way."""
        X = self._samples(X)
        n = n_samples(X)
        out = np.empty(n)
        for start in range(0, n, _DIAGONAL_ROWS):
            rows = slice(start, min(n, start + _DIAGONAL_ROWS))
            block = self._values(X[rows], X[rows])
            self._check_symmetry(block)
            out[rows] = block.diagonal()
        return out

    def _check_symmetry(self, K: Floats) -> None:
        asymmetry = float(np.abs(K - K.T).max(initial=0.0))
        if asymmetry > _ASYMMETRY * np.abs(K).max(initial=0.0):
            raise ValueError(
                f"the kernel function {name_of(self.function)} is not symmetric: k(x, z) and k(z, x) differ by up to "
                f"{asymmetry:.3g}. A kernel must be; (k(x, z) + k(z, x)) / 2 is"
            )


class FromFeatureMap(Kernel):
    """⟨φ(x), φ(z)⟩ for a feature map φ.

    Parameters
    ----------
    feature_map : callable
        Maps n samples to n rows, a dense array or a sparse matrix, each row from its own sample alone.
    accepts : "vectors" or "sequences"
        What a sample is.
    """

    accepts: Domain = "vectors"
    positive_definite: Answer = "yes"

    def __init__(self, feature_map: Callable[[Any], Any], accepts: Domain = "vectors") -> None:
        self.feature_map = feature_map
        self.accepts = accepts
        self._check()

    def _check(self) -> None:
        check_callable("feature_map", self.feature_map)
        check_domain(self.accepts)

    def _samples(self, X: Any) -> Any:
        return as_matrix(X) if self.accepts == "vectors" else X

    def _values(self, X: Any, Z: Any) -> Floats:
        self._check()
        features = features_of(self.feature_map, X, as_matrix)
        return dot(features, features if Z is X else features_of(self.feature_map, Z, as_matrix))

    def diag(self, X: Any) -> Floats:
        self._check()
        return squared_lengths(features_of(self.feature_map, self._samples(X), as_matrix))
