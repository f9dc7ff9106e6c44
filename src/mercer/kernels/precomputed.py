"""A kernel whose matrix is given by the user: the samples are rows of K."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats
from mercer.kernels.kernel import Domain, Kernel


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

    def __call__(self, X: Any, Z: Any = None) -> Floats:
        """A float64 copy of the matrix."""
        if Z is not None:
            raise TypeError("a precomputed kernel compares no samples: give the matrix of kernel values alone")
        return self._values(self._samples(X), None)

    def _samples(self, X: Any) -> Any:
        if sp.issparse(X):
            raise TypeError("a sparse precomputed kernel matrix is not supported; give a dense array")
        K = np.asarray(X)
        if K.ndim != 2:
            raise ValueError(f"a precomputed kernel is a matrix, but the shape is {K.shape}")
        return K

    def _values(self, X: Any, Z: Any) -> Floats:
        return np.array(X, dtype=np.float64, order="C")

    def diag(self, X: Any) -> Floats:
        K = self._samples(X)
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"only a square kernel matrix has a diagonal of k(x, x), but its shape is {K.shape}")
        return np.array(K.diagonal(), dtype=np.float64)
