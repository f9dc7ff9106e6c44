"""K = scale · XXᵀ through X alone: a product with K is two products with X, however many samples there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, is_sparse, row_blocks
from mercer.gram.gram import Gram
from mercer.kernels import Kernel


class LinearGram:
    """`Products` with K for a linear kernel."""

    positive_definite = "yes"
    precisions: tuple[Any, ...] = (np.float64,)

    def __init__(self, X: Any, scale: float = 1.0) -> None:
        self.X, self.scale = X, scale

    @classmethod
    def of(cls, gram: Gram) -> LinearGram | None:
        """The same matrix through its samples; None if its kernel is not linear."""
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

    def times(self, W: Floats) -> Floats:
        """X @ W in float64."""
        return np.concatenate([part @ W for _, part in float64_strips(self.X)])

    def transposed(self, C: Floats) -> Floats:
        """Xᵀ @ C in float64."""
        out = np.zeros((self.X.shape[1], C.shape[1]))
        for rows, part in float64_strips(self.X):
            out += part.T @ C[rows]
        return out


def linear_scale(kernel: Kernel) -> float | None:
    """The factor s of a kernel k = s⟨x, z⟩ on vectors; None for any other kernel."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    return recipe.scale if recipe is not None and recipe.linear else None


def float64_strips(X: Any) -> Iterator[tuple[slice, Any]]:
    """X in float64, a strip of rows at a time; a sparse float64 X is one strip, because slicing would copy it."""
    if is_sparse(X) and X.dtype == np.float64:
        yield slice(0, X.shape[0]), X
        return
    per_row = 8 * (X.shape[1] if not is_sparse(X) else 2 * max(1, X.nnz // max(1, X.shape[0])))
    for rows in row_blocks(X.shape[0], per_row):
        yield rows, X[rows].astype(np.float64, copy=False)
