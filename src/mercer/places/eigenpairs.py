"""The largest eigenvalues of a symmetric matrix and their eigenvectors, with reproducible signs.

A few pairs of a large matrix come from block Krylov spaces with restarts: X, SX, S²X, … of a block X of random vectors,
in which the Rayleigh–Ritz method finds the best approximations. The block has more vectors than are wanted, so that all
copies of a multiple eigenvalue are found, which a Krylov space of a single vector does not guarantee. LAPACK computes
all other cases, and those that do not converge.
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

# LAPACK is used up to this number of rows, and for more than this fraction of all pairs. At 1,500 rows LAPACK takes
# 0.28 s for any few pairs, and Krylov spaces 0.05 to 0.1 s (two moons, normal data; 2 and 10 pairs).
_LAPACK_ROWS, _LAPACK_SHARE = 700, 1 / 12
# Vectors beyond those wanted: the first eigenvalue outside the block determines the speed of convergence.
_EXTRA_VECTORS = 6
# Powers of S in one space, and maximum number of restarts. Four powers with twelve more vectors took twice the time.
_POWERS, _RESTARTS = 10, 25
# Largest accepted ‖Su − λu‖, relative to the largest eigenvalue; products of this size have errors of about 1e-14.
_RESIDUAL_SHARE = 1e-12
# Shift σ of the inverse iteration (σI − S)⁻¹ for a matrix with eigenvalues up to 1.
_SHIFT = 1.0 + 1e-5
# Entries this close to the largest, relatively, count as equal to it: rounding alone would decide which is larger.
_TIE_SHARE = 1e-6


def leading(S: Floats, k: int | None) -> tuple[Floats, Floats]:
    """Return the k largest eigenvalues, or all for None, in descending order, and an eigenvector (column) for each."""
    n = len(S)
    k = n if k is None else min(k, n)
    pairs = None
    if n > _LAPACK_ROWS and k <= _LAPACK_SHARE * n:
        pairs = _krylov(S, k)
    if pairs is None:
        values, vectors = linalg.eigh(S, subset_by_index=[n - k, n - 1])
        pairs = values[::-1], vectors[:, ::-1]
    return np.ascontiguousarray(pairs[0]), fix_signs(pairs[1])


def leading_sparse(S: sp.csr_array, k: int) -> tuple[Floats, Floats]:
    """Return the k largest eigenvalues of a sparse matrix, all at most 1, descending, and an eigenvector for each."""
    n = S.shape[0]
    if n <= _LAPACK_ROWS or k > _LAPACK_SHARE * n:
        return leading(S.toarray(), k)
    # Eigenvalues near 1 are close together, but far apart as 1/(σ − λ).
    inverse = splu(sp.csc_array(_SHIFT * sp.eye_array(n) - S)).solve
    pairs = _krylov(S, k, lambda X: np.asarray(inverse(X)))
    if pairs is None:
        return leading(S.toarray(), k)
    return np.ascontiguousarray(_SHIFT - 1.0 / pairs[0]), fix_signs(pairs[1])


def n_positive(values: Floats, size: int, scale: float = 0.0) -> int:
    """Count the eigenvalues above the rounding error of their matrix, which has `size` rows; `values` are descending.

    The error is relative to the first eigenvalue, or to `scale` if that is larger: the size of the numbers from which
    the matrix was computed.
    """
    return int(np.sum(values > size * np.finfo(np.float64).eps * max(float(values[0]), scale)))


def _krylov(S: Any, k: int, product: Callable[[Floats], Floats] | None = None) -> tuple[Floats, Floats] | None:
    """Return k leading eigenpairs of S, or of the operator X ↦ product(X); None if they do not converge."""
    n, block_size = S.shape[0], k + _EXTRA_VECTORS
    times = partial(_product, S) if product is None else product
    X = _orthonormal(np.random.default_rng(0).normal(size=(n, block_size)))
    for _ in range(_RESTARTS):
        basis, images = [X], [times(X)]
        for _ in range(_POWERS):
            new_block = images[-1]
            span = np.concatenate(basis, axis=1)
            for _ in range(2):  # a second pass: most digits may cancel, and all do if S has a low rank
                new_block = _orthonormal(new_block - span @ (span.T @ new_block))
            basis.append(new_block)
            images.append(times(basis[-1]))
        Q, SQ = np.concatenate(basis, axis=1), np.concatenate(images, axis=1)
        projected_S = Q.T @ SQ
        values, vectors = linalg.eigh(
            0.5 * (projected_S + projected_S.T), subset_by_index=[len(projected_S) - block_size, len(projected_S) - 1]
        )
        values, vectors = values[::-1], vectors[:, ::-1]
        X = Q @ vectors
        residual = np.linalg.norm(SQ @ vectors[:, :k] - X[:, :k] * values[:k], axis=0)
        if residual.max() <= _RESIDUAL_SHARE * max(float(np.abs(values).max()), np.finfo(float).tiny):
            return values[:k], X[:, :k]
        X = _orthonormal(X)
    return None


def _orthonormal(X: Floats) -> Floats:
    """Return an orthonormal basis of the column space of X."""
    return np.asarray(linalg.qr(X, mode="economic")[0], dtype=np.float64)


def _product(S: Any, X: Floats) -> Floats:
    """Return SX, computed a block of rows at a time."""
    out = np.empty(X.shape)
    for block in row_blocks(S.shape[0], 8 * S.shape[0]):
        out[block] = S[block] @ X
    return out


def fix_signs(vectors: Floats) -> Floats:
    """Return the columns with the signs that make each one's largest entry positive."""
    return np.ascontiguousarray(vectors * signs(vectors))


def signs(vectors: Floats) -> Floats:
    """Return the sign of each column's largest entry, of the first one if several are as large."""
    size = np.abs(vectors)
    largest = np.argmax(size >= (1 - _TIE_SHARE) * size.max(axis=0, initial=0.0), axis=0)
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
