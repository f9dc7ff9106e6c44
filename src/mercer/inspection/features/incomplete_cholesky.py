"""Incomplete Cholesky factorisation K ≈ ZZᵀ of a kernel matrix from few columns, the largest pivots first.

After r steps K − ZZᵀ is positive semi-definite. The largest entry of its diagonal bounds all its entries, and the sum
of its diagonal is the trace norm of the error (S. Fine and K. Scheinberg, 2001).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.kernels.names import bound_kernel
from mercer.runtime.parameters import not_negative
from mercer.samples.arrays import Data, Floats, Indices, n_samples, take

# A negative residual beyond this share of the largest diagonal entry is not a rounding error.
_ROUNDING_SHARE = 1e-8


class IncompleteCholesky(NamedTuple):
    """Incomplete Cholesky factor of a kernel matrix.

    Attributes
    ----------
    Z : array of shape (n_samples, rank)
        Factor.
    pivots : array of int
        Indices of the samples whose columns of K were used.
    residual : array of shape (n_samples,)
        Diagonal of K − ZZᵀ. If K is positive semi-definite, its largest entry bounds all entries of K − ZZᵀ.
    """

    Z: Floats
    pivots: Indices
    residual: Floats


def incomplete_cholesky(
    X: Data, *, kernel: Any = "rbf", tol: float = 1e-3, max_rank: int | None = None
) -> IncompleteCholesky:
    """Compute Z with K ≈ ZZᵀ, column by column, until every k(x, x) is matched to within `tol`.

    Parameters
    ----------
    X : array, CSR matrix or sequence of samples
        Samples.
    kernel : Kernel or str, default="rbf"
        The kernel; parameters that depend on data are computed from X.
    tol : float, default=1e-3
        Largest entry of the diagonal of K − ZZᵀ.
    max_rank : int, optional
        Largest number of columns.

    Returns
    -------
    IncompleteCholesky
        Named tuple of ``Z``, the factor of shape (n_samples, rank); ``pivots``, the indices of the samples whose
        columns were used; and ``residual``, the diagonal of K − ZZᵀ, whose largest entry bounds all entries of
        K − ZZᵀ if K is positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import incomplete_cholesky
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> Z, pivots, residual = incomplete_cholesky(X, kernel=Gaussian(gamma=1.0), tol=1e-6)
    >>> Z.shape[1] < 10, bool(np.abs(Gaussian(gamma=1.0)(X) - Z @ Z.T).max() <= 1e-6)
    (True, True)
    """
    not_negative("tol", tol, "the largest remaining k(x, x)")
    k = bound_kernel(kernel, X)
    n = n_samples(X)
    rank_limit = n if max_rank is None else min(n, int(max_rank))
    residual = np.array(k.diag(X), dtype=np.float64)
    Z, pivots = np.zeros((n, 0)), list[int]()
    largest = float(np.abs(residual).max(initial=0.0))
    rounding = n * float(np.finfo(float).eps) * largest  # smaller pivots are rounding errors
    while True:
        if residual.min(initial=0.0) < -_ROUNDING_SHARE * largest:
            raise ValueError(
                f"{k!r} is not positive semi-definite on these samples: the diagonal of K − ZZᵀ has the entry "
                f"{residual.min():.3g}; use a positive definite kernel"
            )
        residual = np.maximum(0.0, residual)
        if len(pivots) == rank_limit:
            break
        j = int(np.argmax(residual))
        if not residual[j] > max(tol, rounding):
            break
        if len(pivots) == Z.shape[1]:  # double the number of columns
            Z = np.concatenate([Z, np.zeros((n, max(16, min(len(pivots), rank_limit - len(pivots)))))], axis=1)
        r = len(pivots)
        column = k(X, take(X, np.array([j])))[:, 0] - Z[:, :r] @ Z[j, :r]
        Z[:, r] = column / np.sqrt(residual[j])
        Z[pivots, r], Z[j, r] = 0.0, np.sqrt(residual[j])
        residual = residual - Z[:, r] ** 2
        pivots.append(j)
        residual[pivots] = 0.0
    return IncompleteCholesky(Z[:, : len(pivots)].copy(), np.array(pivots, dtype=np.intp), residual)
