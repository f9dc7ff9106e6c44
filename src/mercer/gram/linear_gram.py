"""K = scale · XXᵀ through X alone: a product with K is two products with X, however many samples there are.

Products with bounds follow Higham ("Accuracy and stability of numerical algorithms", 3.1): a sum of k products, in any
order, is off by at most γ_k times the sum of their absolute values. Dense samples may be taken about a centre of
floats, where a difference has the relative error u whatever the centre is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.arrays import BLOCK_BYTES, Floats, Indices, gamma, is_sparse, row_blocks
from mercer.gram.gram import Gram
from mercer.kernels import Kernel

# Rows of one partial sum over the samples: what bounds its rounding is their number plus that of partial sums.
_SUM_ROWS = 2048


class LinearGram:
    """`Products` with K for a linear kernel."""

    positive_definite = "yes"
    precisions: tuple[Any, ...] = (np.float64,)

    def __init__(self, X: Any, scale: float = 1.0) -> None:
        self.X, self.scale = X, scale

    @classmethod
    def of(cls, gram: Gram) -> LinearGram | None:
        """The matrix of a Gram through its samples; None if its kernel is not linear."""
        scale = linear_scale(gram.kernel)
        return None if scale is None else cls(gram.X, scale)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Any = np.float64) -> Floats:
        """K[rows] @ coefficients in float64."""
        w = self.scale * self.transposed(coefficients[:, None])
        u = self.times(w)[:, 0]
        return u if rows is None else u[rows]

    def products(self, C: Floats, dtype: Any = np.float64, *, by_column: bool = False) -> Floats:
        """K @ C in float64, one column at a time."""
        return np.column_stack([self.product(column) for column in C.T])

    def times(self, W: Floats, centre: Floats | None = None) -> Floats:
        """(X − 1c')W in float64."""
        if centre is None:
            return np.concatenate([part @ W for _, part in float64_strips(self.X)])
        return np.concatenate([part @ W for _, part in self._parts(centre)])

    def transposed(self, C: Floats, centre: Floats | None = None) -> Floats:
        """(X − 1c')ᵀC in float64."""
        out = np.zeros((self.X.shape[1], C.shape[1]))
        for rows, part in float64_strips(self.X) if centre is None else self._parts(centre):
            out += part.T @ C[rows]
        return out

    def times_bound(
        self, W: Floats, error: Floats | float = 0.0, centre: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """(X − 1c')W and what bounds its error by entry, where W itself is known up to `error`."""
        d, size = self.X.shape[1], np.abs(W)
        spread = gamma(d + 2) * size + 2 * np.broadcast_to(error, W.shape)
        values, errors = np.empty((self.n, W.shape[1])), np.empty((self.n, W.shape[1]))
        for rows, part in self._parts(centre):
            values[rows], errors[rows] = part @ W, abs(part) @ spread
        return values, errors

    def transposed_bound(
        self, C: Floats, size: Floats, error: Floats | float = 0.0, centre: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """(X − 1c')ᵀC and what bounds its error by entry; `size` is at least |C|, which is known up to `error`."""
        n, d = self.X.shape
        rows = max(1, min(n, _SUM_ROWS, BLOCK_BYTES // (8 * d)))
        parts = 2 * -(-n // rows)
        spread = gamma((n if is_sparse(self.X) else rows) + parts + 3) * size + 2 * error
        out, errors = np.zeros((d, C.shape[1])), np.zeros((d, C.shape[1]))
        for some, part in self._parts(centre):
            out += part.T @ C[some]
            errors += abs(part).T @ spread[some]
        return out, errors

    def transposed_squares(self, weight: Floats, centre: Floats | None = None) -> Floats:
        """Σ w_i (x_ij − c_j)² of each feature."""
        out = np.zeros(self.X.shape[1])
        for rows, part in self._parts(centre):
            squares = part.multiply(part) if is_sparse(part) else part * part
            out += np.asarray(squares.T @ weight[rows]).ravel()
        return out

    @property
    def reach(self) -> float:
        """A bound on √k(x, x)."""
        top, bottom = self.X.max(axis=0), self.X.min(axis=0)
        if is_sparse(self.X):
            top, bottom = top.toarray().ravel(), bottom.toarray().ravel()
        largest = np.maximum(np.abs(top), np.abs(bottom)).astype(np.float64)
        return float(np.sqrt(self.scale) * np.linalg.norm(largest))

    def _parts(self, centre: Floats | None) -> Iterator[tuple[slice, Any]]:
        for rows, strip in float64_strips(self.X):
            if is_sparse(strip):
                yield rows, strip
                continue
            for start in range(0, len(strip), _SUM_ROWS):
                part = strip[start : start + _SUM_ROWS]
                here = slice(rows.start + start, rows.start + start + len(part))
                yield here, part if centre is None else part - centre


def linear_scale(kernel: Kernel) -> float | None:
    """The factor s of a kernel k = s⟨x, z⟩ on vectors; None for any other kernel."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    return recipe.scale if recipe is not None and recipe.linear else None


def linear_terms(kernel: Kernel) -> tuple[float, float] | None:
    """s and c of a kernel k = s⟨x, z⟩ + c on vectors, each with a few roundings; None for any other kernel."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    if recipe is None or (recipe.inner, recipe.normalise, recipe.factor) != ("dot", False, None):
        return None
    if recipe.ending == "polynomial" and recipe.numbers[2] == 1:  # what a constant makes of a linear kernel
        gamma, coef0, _ = recipe.numbers
        return recipe.scale * gamma, recipe.scale * coef0 + recipe.constant
    return (recipe.scale, recipe.constant) if recipe.ending == "identity" else None


def float64_strips(X: Any) -> Iterator[tuple[slice, Any]]:
    """X in float64, a strip of rows at a time; a sparse float64 X is one strip, because slicing would copy it."""
    if is_sparse(X) and X.dtype == np.float64:
        yield slice(0, X.shape[0]), X
        return
    per_row = 8 * (X.shape[1] if not is_sparse(X) else 2 * max(1, X.nnz // max(1, X.shape[0])))
    for rows in row_blocks(X.shape[0], per_row):
        yield rows, X[rows].astype(np.float64, copy=False)
