"""The equations of the free variables, kept solvable while variables come and go.

    M = [0 μ1'; μ1 K_FF + diag d_F]      (without bias K_FF + diag d_F alone; μ, the size of K, keeps M well scaled)

Its inverse is changed by one row and column in O(|F|²), and every solve is refined against M itself, so that rounding
does not build up. Where refinement shows that the inverse has drifted, it is computed afresh.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats

# The first solve's residual, as a share of the right side, above which the inverse is computed afresh: one refinement
# then leaves less than its square, about the rounding of float64.
_DRIFTED_SHARE = 1e-7


class FreeSystem:
    """M, its inverse, and how often that was computed afresh."""

    def __init__(self, border: float) -> None:
        """`border` is μ, or 0 for a machine without bias."""
        self.border = border
        self.first = 1 if border else 0  # the place of the first variable
        self.size = self.first
        self.refactorisations = 0
        self._trusted = 0
        self._room = 32
        self._matrix = np.zeros((self._room, self._room))
        self._inverse = np.zeros((self._room, self._room))

    @property
    def n_free(self) -> int:
        return self.size - self.first

    @property
    def matrix(self) -> Floats:
        return self._matrix[: self.size, : self.size]

    def fill(self, matrix: Floats) -> None:
        """Let in these variables at once, instead of those that are there."""
        self.size = self.first + len(matrix)
        self._room = 32 + 2 * self.size
        self._matrix, self._inverse = np.zeros((2, self._room, self._room))
        self._matrix[: self.first, self.first : self.size] = self.border
        self._matrix[self.first : self.size, : self.first] = self.border
        self._matrix[self.first : self.size, self.first : self.size] = matrix
        self.refactor()

    def copy(self) -> FreeSystem:
        other = FreeSystem(self.border)
        other.size, other._room = self.size, self._room
        other._matrix, other._inverse = self._matrix.copy(), self._inverse.copy()
        return other

    def solve(self, right: Floats, enough: Floats | float | None = None) -> Floats:
        """M⁻¹ times one column or several, to rounding or to residuals that are `enough` for each column.

        Where they were small enough without refinement, the next few are not looked at.
        """
        if self.n_free == 0:
            return np.zeros_like(right)
        matrix, inverse = self.matrix, self._inverse[: self.size, : self.size]
        x = by_columns(inverse, right)
        if enough is not None and self._trusted > 0:
            self._trusted -= 1
            return x
        size = float(np.abs(right).max(initial=0.0))
        least = 1e-14 * size  # rounding
        enough = least if enough is None else np.maximum(enough, 0.1 * least)
        residual = right - by_columns(matrix, x)
        if not float(np.abs(residual).max()) <= _DRIFTED_SHARE * size:
            self.refactor()
            inverse = self._inverse[: self.size, : self.size]
            x = by_columns(inverse, right)
            residual = right - by_columns(matrix, x)
        worst = np.abs(residual).max(axis=0)
        self._trusted = 3 if bool((worst <= enough).all()) else 0
        for _ in range(3):
            if bool((worst <= enough).all()):
                break
            x = x + by_columns(inverse, residual)
            residual = right - by_columns(matrix, x)
            before, worst = worst, np.abs(residual).max(axis=0)
            if not bool((worst < 0.5 * before).any()):
                break
        return x

    def distances(self) -> Floats:
        """The squared distance of each free variable's image from the affine hull of the others (without bias: from
        their span); infinite where there are none."""
        with np.errstate(divide="ignore"):
            found = 1 / np.diagonal(self._inverse)[self.first : self.size]
        return np.full(1, np.inf) if self.first and self.n_free == 1 else found

    def moved_by(self) -> Floats:
        """How far all variables together move, to keep their equations, if one of them is moved by 1 against its own:
        for each."""
        inverse, own = self._inverse[: self.size, self.first : self.size], self._inverse.diagonal()
        with np.errstate(divide="ignore"):
            return np.asarray(np.linalg.norm(inverse[self.first :], axis=0) / np.abs(own[self.first : self.size]))

    def column(self, values: Floats) -> Floats:
        """A new variable's kernel values with the free ones as a column of M."""
        return np.concatenate([[self.border], values]) if self.first else values

    def add(self, column: Floats, diagonal: float, z: Floats | None = None) -> None:
        """Let in the variable with this `column`; z is M⁻¹ times it, where that is known."""
        self._grow()
        m = self.size
        self._matrix[m, :m] = self._matrix[:m, m] = column
        self._matrix[m, m] = diagonal
        inverse = self._inverse
        if self.n_free == 0:
            if self.first:
                inverse[:2, :2] = [[-diagonal / self.border / self.border, 1 / self.border], [1 / self.border, 0.0]]
            else:
                inverse[0, 0] = 1 / diagonal
            self.size += 1
            return
        z = self.solve(column) if z is None else z
        left = diagonal - float(column @ z)
        if left < 1e-6 * diagonal:
            self._trusted = 0  # the next solve is checked
        _add_outer(inverse, z / left, z)
        inverse[m, :m] = inverse[:m, m] = -z / left
        inverse[m, m] = 1 / left
        self.size += 1

    def remove(self, k: int) -> None:
        """Let go the k-th free variable; the last one takes its place."""
        k, last = k + self.first, self.size - 1
        inverse, m = self._inverse, self.size
        if self.n_free > 1:
            a = inverse[:m, k].copy()
            _add_outer(inverse, a / -a[k], a)
        for array in (self._matrix, inverse):
            array[k, :m] = array[last, :m]
            array[:m, k] = array[:m, last]
            array[k, k] = array[last, last]
        self.size -= 1

    def refactor(self) -> None:
        """Compute the inverse afresh."""
        self.refactorisations += 1
        inverse = np.linalg.inv(self.matrix)
        self._inverse[: self.size, : self.size] = 0.5 * (inverse + inverse.T)

    def _grow(self) -> None:
        if self.size < self._room:
            return
        self._room *= 2
        for name in ("_matrix", "_inverse"):
            larger = np.zeros((self._room, self._room))
            larger[: self.size, : self.size] = getattr(self, name)[: self.size, : self.size]
            setattr(self, name, larger)


def by_columns(matrix: Floats, x: Floats) -> Floats:
    """matrix @ x for few columns: the product with one after the other, which reads the matrix twice for two of them.

    BLAS multiplies matrices by packing them first, which takes two to three times as long (OpenBLAS, 300 to 900 rows).
    """
    if x.ndim == 1:
        return np.asarray(matrix @ x)
    out = np.empty((len(matrix), x.shape[1]))
    for k in range(x.shape[1]):
        out[:, k] = matrix @ np.ascontiguousarray(x[:, k])
    return out


def _add_outer(matrix: Floats, left: Floats, right: Floats) -> None:
    """matrix += left right' in its first rows and columns, 64 rows at a time: what is added stays in the cache."""
    m = len(left)
    for top in range(0, m, 64):
        matrix[top : min(m, top + 64), :m] += np.multiply.outer(left[top : top + 64], right)
