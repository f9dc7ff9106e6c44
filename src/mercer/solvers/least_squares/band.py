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

from mercer import _core
from mercer.arrays import Floats
from mercer.solvers.least_squares.blas import add_product, subtract_twice

# Diagonals below the main one. Narrower blocks make products with S slow, wider ones the solves for each λ: of 16, 24,
# 32 and 48 diagonals these took 3.1, 3.0, 3.2 and 3.5 s in all (n = 2,500, 50 λ, one AVX2 core).
WIDTH = 24
# Reflections that are applied together, to S and to Q.
_TOGETHER = 128


def reduce_to_band(
    S: Floats, width: int = WIDTH, watch: Callable[[float], None] = lambda done: None, n_threads: int = 1
) -> Floats:
    """The lower diagonals of B, [column, row − column]; S, symmetric and in Fortran's order, becomes Q.

    `watch` hears from time to time what share of the work is done.
    """
    n = len(S)
    diagonals = np.zeros((n, width + 1))
    blocks: list[tuple[int, Floats, Floats]] = []  # first row, V and 1/τ
    total = 2.0 * n**3 + 1.0
    late = _Late(n, width * max(1, _TOGETHER // width))
    for j in range(0, max(n - width - 1, 0), width):
        first = j + width
        late.bring(S, j, first)
        reflected, tau = scipy.linalg.lapack.dgeqrf(S[first:, j:first])[:2]
        V = np.asfortranarray(np.tril(reflected[:, : len(tau)], -1))
        V[np.arange(len(tau)), np.arange(len(tau))] = tau != 0  # a column that needs no reflection has none
        blocks.append((first, V, np.divide(1.0, tau, out=np.ones_like(tau), where=tau != 0)))
        S[first : first + len(tau), j:first] = np.triu(reflected[: len(tau)])
        S[first + len(tau) :, j:first] = 0.0
        T = _triangle(V, blocks[-1][2])
        W = np.asfortranarray(late.product(S, first, V, n_threads) @ T)
        add_product(W, -0.5, V, np.asfortranarray(T.T @ (V.T @ W)))
        late.subtract(S, first, V, W)
        watch((n**3 - (n - first) ** 3) / total)
    late.bring(S, n - late.left, n)
    for k in range(min(width, n - 1) + 1):
        diagonals[: n - k, k] = np.diagonal(S, -k)
    _accumulate(S, blocks, width)
    return diagonals


class _Late:
    """What is still to be subtracted from the lower triangle of S: VW' + WV' of several blocks.

    One block has too few columns for a product of full speed.
    """

    def __init__(self, n: int, most: int) -> None:
        self._V, self._W = np.zeros((n, most), order="F"), np.zeros((n, most), order="F")
        self._count, self.left = 0, n

    def bring(self, S: Floats, j: int, end: int) -> None:
        """The columns from j to `end`, from their diagonal on, up to date."""
        V, W = self._V[j:, : self._count], self._W[j:, : self._count]
        if self._count:
            add_product(S[j:, j:end], -1.0, V, W[: end - j].T)
            add_product(S[j:, j:end], -1.0, W, V[: end - j].T)
        self.left = len(S) - end

    def product(self, S: Floats, first: int, V: Floats, n_threads: int) -> Floats:
        """S[first:, first:] V, as it will be."""
        out = np.empty(V.shape, order="F")
        _core.symmetric_product(S[first:, first:], V, out, n_threads)
        for left, right in ((self._V, self._W), (self._W, self._V)):
            inside = np.empty((self._count, V.shape[1]), order="F")
            if self._count:
                add_product(inside, 1.0, right[first:, : self._count].T, V, keep=False)
                add_product(out, -1.0, left[first:, : self._count], inside)
        return out

    def subtract(self, S: Floats, first: int, V: Floats, W: Floats) -> None:
        """VW' + WV' from S[first:, first:], now or later."""
        end = self._count + V.shape[1]
        for kept, new in ((self._V, V), (self._W, W)):
            kept[:first, self._count : end] = 0.0
            kept[first:, self._count : end] = new
        self._count = end
        if end + V.shape[1] > self._V.shape[1]:
            subtract_twice(S[first:, first:], self._V[first:, :end], self._W[first:, :end])
            self._count = 0


def _triangle(V: Floats, inverse_tau: Floats) -> Floats:
    """T of the product of reflections I − τvv' = I − VTV': the inverse of the upper triangle of V'V with 1/τ."""
    M = np.triu(V.T @ V, 1)
    np.fill_diagonal(M, inverse_tau)
    return np.asfortranarray(scipy.linalg.solve_triangular(M, np.eye(len(M)), check_finite=False))


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
