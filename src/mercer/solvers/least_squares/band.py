"""A symmetric matrix as a band: S = QBQ' by blocks of Householder reflections, in products of matrices alone.

Each block of columns is reflected onto its first rows, H = I − VTV', and the rest becomes H'SH:

    S ← S − VW' − WV',   W = SVT − ½ V T'V'SVT

Half of what a tridiagonal form costs is products of the matrix with one vector, which wait for memory. A band is enough
for (B + λI)⁻¹ at any λ, and its width multiplies only what is of order n².
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from mercer.arrays import Floats
from mercer.solvers.least_squares.blas import add_product, subtract_twice, symmetric_product

# Diagonals below the main one. Narrower blocks make products with S slow, wider ones the solves for each λ: of 16, 24,
# 32 and 48 diagonals these took 3.1, 3.0, 3.2 and 3.5 s in all (n = 2,500, 50 λ, one AVX2 core).
WIDTH = 24
# Reflections that are applied to Q together.
_TOGETHER = 128


def reduce_to_band(S: Floats, width: int = WIDTH, watch: Callable[[float], None] = lambda done: None) -> Floats:
    """The lower diagonals of B, [column, row − column]; S, symmetric and in Fortran's order, becomes Q.

    `watch` hears from time to time what share of the work is done.
    """
    n = len(S)
    diagonals = np.zeros((n, width + 1))
    blocks: list[tuple[int, Floats, Floats]] = []  # first row, V and 1/τ
    total = 2.0 * n**3 + 1.0
    for j in range(0, max(n - width - 1, 0), width):
        first = j + width
        reflected, tau = scipy.linalg.lapack.dgeqrf(S[first:, j:first])[:2]
        V = np.asfortranarray(np.tril(reflected[:, : len(tau)], -1))
        V[np.arange(len(tau)), np.arange(len(tau))] = tau != 0  # a column that needs no reflection has none
        blocks.append((first, V, np.divide(1.0, tau, out=np.ones_like(tau), where=tau != 0)))
        S[first : first + len(tau), j:first] = np.triu(reflected[: len(tau)])
        S[first + len(tau) :, j:first] = 0.0
        _reflect(S[first:, first:], V, _triangle(V, blocks[-1][2]))
        watch((n**3 - (n - first) ** 3) / total)
    for k in range(min(width, n - 1) + 1):
        diagonals[: n - k, k] = np.diagonal(S, -k)
    _accumulate(S, blocks, width)
    return diagonals


def _triangle(V: Floats, inverse_tau: Floats) -> Floats:
    """T of the product of reflections I − τvv' = I − VTV': the inverse of the upper triangle of V'V with 1/τ."""
    M = np.triu(V.T @ V, 1)
    np.fill_diagonal(M, inverse_tau)
    return np.asfortranarray(scipy.linalg.solve_triangular(M, np.eye(len(M)), check_finite=False))


def _reflect(A: Floats, V: Floats, T: Floats) -> None:
    """A = H'AH in the lower triangle."""
    W = np.asfortranarray(symmetric_product(A, V) @ T)
    add_product(W, -0.5, V, np.asfortranarray(T.T @ (V.T @ W)))
    subtract_twice(A, V, W)


def _accumulate(Q: Floats, blocks: list[tuple[int, Floats, Floats]], width: int) -> None:
    """Q = H₁H₂⋯, from the last one on, so that each acts on the rows and columns of those after it only."""
    Q[:] = 0.0
    np.fill_diagonal(Q, 1.0)
    step = max(1, _TOGETHER // width)
    for start in reversed(range(0, len(blocks), step)):
        some = blocks[start : start + step]
        first = some[0][0]
        V = np.zeros((len(Q) - first, sum(v.shape[1] for _, v, _ in some)), order="F")
        column = 0
        for begin, v, _ in some:
            V[begin - first :, column : column + v.shape[1]] = v
            column += v.shape[1]
        T = _triangle(V, np.concatenate([inverse for _, _, inverse in some]))
        part = Q[first:, first:]
        inside = np.empty((V.shape[1], part.shape[1]), order="F")
        add_product(inside, 1.0, V.T, part, keep=False)
        add_product(part, -1.0, V, np.asfortranarray(T @ inside))
