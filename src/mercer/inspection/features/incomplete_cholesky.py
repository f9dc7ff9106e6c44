"""Incomplete Cholesky factor of a kernel matrix: K ≈ ZZᵀ from a few of its columns, the largest pivots first.

After r steps K − ZZᵀ is positive semi-definite, and its diagonal is what is left: its largest entry bounds all others,
and its sum is the trace norm of the error (S. Fine and K. Scheinberg, 2001).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.kernels.names import bound_kernel
from mercer.runtime.parameters import not_negative
from mercer.samples.arrays import Data, Floats, Indices, n_samples, take

# What rounding cannot take from the diagonal below 0, as a share of its largest entry.
_NOT_ROUNDING = 1e-8


class IncompleteCholesky(NamedTuple):
    """A factor of a kernel matrix.

    Attributes
    ----------
    Z : array of shape (n_samples, rank)
        The factor.
    pivots : array of int
        The samples that its columns came from.
    residual : array of shape (n_samples,)
        What is left of the diagonal. If K is positive semi-definite, no entry of K − ZZᵀ exceeds the largest.
    """

    Z: Floats
    pivots: Indices
    residual: Floats


def incomplete_cholesky(
    X: Data, *, kernel: Any = "rbf", tol: float = 1e-3, max_rank: int | None = None
) -> IncompleteCholesky:
    """Z with K ≈ ZZᵀ: column after column, until no k(x, x) is missed by more than `tol`.

    Parameters
    ----------
    X : array, CSR matrix or sequence of samples
        The rows of K.
    kernel : Kernel or str, default="rbf"
        Parameters that depend on data are read off X.
    tol : float, default=1e-3
        What may be left of the diagonal.
    max_rank : int, optional
        The most columns.

    Returns
    -------
    IncompleteCholesky
        ``Z`` of shape (n_samples, rank), the factor; ``pivots``, the samples that its columns came from; ``residual``,
        what is left of the diagonal: if K is positive semi-definite, no entry of K − ZZᵀ exceeds the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import incomplete_cholesky
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> found = incomplete_cholesky(X, kernel=Gaussian(gamma=1.0), tol=1e-6)
    >>> found.Z.shape[1] < 10, bool(np.abs(Gaussian(gamma=1.0)(X) - found.Z @ found.Z.T).max() <= 1e-6)
    (True, True)
    """
    not_negative("tol", tol, "it is what may be left of k(x, x)")
    k = bound_kernel(kernel, X)
    n = n_samples(X)
    most = n if max_rank is None else min(n, int(max_rank))
    residual = np.array(k.diag(X), dtype=np.float64)
    Z, pivots = np.zeros((n, 0)), list[int]()
    largest = float(np.abs(residual).max(initial=0.0))
    floor = n * float(np.finfo(float).eps) * largest  # below it pivots are rounding
    while True:
        if residual.min(initial=0.0) < -_NOT_ROUNDING * largest:
            raise ValueError(
                f"{k!r} is not positive semi-definite on these samples: {residual.min():.3g} is left of a k(x, x), so "
                "that no factor has K − ZZᵀ under control; use a positive definite kernel"
            )
        residual = np.maximum(0.0, residual)
        if len(pivots) == most:
            break
        j = int(np.argmax(residual))
        if not residual[j] > max(tol, floor):
            break
        if len(pivots) == Z.shape[1]:  # room for twice as many
            Z = np.concatenate([Z, np.zeros((n, max(16, min(len(pivots), most - len(pivots)))))], axis=1)
        r = len(pivots)
        column = k(X, take(X, np.array([j])))[:, 0] - Z[:, :r] @ Z[j, :r]
        Z[:, r] = column / np.sqrt(residual[j])
        Z[pivots, r], Z[j, r] = 0.0, np.sqrt(residual[j])
        residual = residual - Z[:, r] ** 2
        pivots.append(j)
        residual[pivots] = 0.0
    return IncompleteCholesky(Z[:, : len(pivots)].copy(), np.array(pivots, dtype=np.intp), residual)
