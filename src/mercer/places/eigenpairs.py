"""The largest eigenvalues of a symmetric matrix and their vectors, with signs that do not depend on chance.

Few of many come from block Krylov spaces with restarts: X, SX, S²X, … of a block X of random vectors, in which the best
approximations are found by Rayleigh and Ritz. The block has more vectors than are wanted, so that equal eigenvalues are
all found, which a single vector's space cannot promise. LAPACK does the rest, and whatever does not converge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import splu

from mercer.samples.arrays import Floats, row_blocks

# Up to this size LAPACK takes no time worth saving, and with more than this share of all pairs it is faster. At 1,500
# rows it takes 0.28 s for any few pairs, and the spaces below 0.05 to 0.1 s (two moons, normal data; 2 and 10 pairs).
_LAPACK_ROWS, _LAPACK_SHARE = 700, 1 / 12
# Vectors beyond those wanted: convergence goes by the first eigenvalue that they leave out.
_MORE_VECTORS = 6
# Powers of S in one space, and the most restarts. Four powers with twelve more vectors took twice the time.
_POWERS, _RESTARTS = 10, 25
# ‖Su − λu‖ as a share of the largest eigenvalue; products of this size have errors of some 1e-14.
_RESIDUAL_SHARE = 1e-12
# Where a matrix of eigenvalues up to 1 is inverted about.
_BEYOND_ONE = 1.0 + 1e-5
# Entries this close to the largest count as equal to it: which is larger would be decided by rounding.
_TIE_SHARE = 1e-6


def leading(S: Floats, k: int | None) -> tuple[Floats, Floats]:
    """The k largest eigenvalues in descending order and a column for each; None: all."""
    n = len(S)
    k = n if k is None else min(k, n)
    found = None
    if n > _LAPACK_ROWS and k <= _LAPACK_SHARE * n:
        found = _krylov(S, k)
    if found is None:
        values, vectors = linalg.eigh(S, subset_by_index=[n - k, n - 1])
        found = values[::-1], vectors[:, ::-1]
    return np.ascontiguousarray(found[0]), with_signs(found[1])


def leading_of_walk(S: sp.csr_array, k: int) -> tuple[Floats, Floats]:
    """The k largest eigenvalues of a sparse matrix, all at most 1, in descending order, and a column for each."""
    n = S.shape[0]
    if n <= _LAPACK_ROWS or k > _LAPACK_SHARE * n:
        return leading(S.toarray(), k)
    # Eigenvalues near 1 crowd, and are far apart as 1/(σ − λ).
    inverse = splu(sp.csc_array(_BEYOND_ONE * sp.eye_array(n) - S)).solve
    found = _krylov(S, k, lambda X: np.asarray(inverse(X)))
    if found is None:
        return leading(S.toarray(), k)
    return np.ascontiguousarray(_BEYOND_ONE - 1.0 / found[0]), with_signs(found[1])


def n_positive(values: Floats, size: int, scale: float = 0.0) -> int:
    """How many of descending eigenvalues are above the rounding of their matrix.

    It has `size` rows. Its entries were rounded like numbers of the size `scale`, if that is more than the first value.
    """
    return int(np.sum(values > size * np.finfo(np.float64).eps * max(float(values[0]), scale)))


def _krylov(S: Any, k: int, product: Callable[[Floats], Floats] | None = None) -> tuple[Floats, Floats] | None:
    """Of S, or of what `product` multiplies with in its stead."""
    n, wide = S.shape[0], k + _MORE_VECTORS
    times = partial(_product, S) if product is None else product
    X = _orthonormal(np.random.default_rng(0).normal(size=(n, wide)))
    for _ in range(_RESTARTS):
        basis, images = [X], [times(X)]
        for _ in range(_POWERS):
            fresh = images[-1]
            whole = np.concatenate(basis, axis=1)
            for _ in range(2):  # once is not enough where most of it, or of a matrix of low rank all, is cancelled
                fresh = _orthonormal(fresh - whole @ (whole.T @ fresh))
            basis.append(fresh)
            images.append(times(basis[-1]))
        Q, SQ = np.concatenate(basis, axis=1), np.concatenate(images, axis=1)
        small = Q.T @ SQ
        values, vectors = linalg.eigh(0.5 * (small + small.T), subset_by_index=[len(small) - wide, len(small) - 1])
        values, vectors = values[::-1], vectors[:, ::-1]
        X = Q @ vectors
        residual = np.linalg.norm(SQ @ vectors[:, :k] - X[:, :k] * values[:k], axis=0)
        if residual.max() <= _RESIDUAL_SHARE * max(float(np.abs(values).max()), np.finfo(float).tiny):
            return values[:k], X[:, :k]
        X = _orthonormal(X)
    return None


def _orthonormal(X: Floats) -> Floats:
    return np.asarray(linalg.qr(X, mode="economic")[0], dtype=np.float64)


def _product(S: Any, X: Floats) -> Floats:
    out = np.empty(X.shape)
    for some in row_blocks(S.shape[0], 8 * S.shape[0]):
        out[some] = S[some] @ X
    return out


def with_signs(vectors: Floats) -> Floats:
    """Each column with the sign that makes its largest entry positive."""
    return np.ascontiguousarray(vectors * signs(vectors))


def signs(vectors: Floats) -> Floats:
    """Of each column's largest entry; of entries as large, the first."""
    size = np.abs(vectors)
    first = np.argmax(size >= (1 - _TIE_SHARE) * size.max(axis=0, initial=0.0), axis=0)
    return np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
