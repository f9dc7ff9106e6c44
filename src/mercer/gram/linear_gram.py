"""K = scale · XXᵀ through X alone: a product with K is two products with X, however many samples there are.

Products with bounds follow Higham ("Accuracy and stability of numerical algorithms", 3.1): a sum of k products, in any
order, is off by at most γ_k times the sum of their absolute values. Dense samples may be taken about a centre of
floats, where a difference has the relative error u whatever the centre is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.arrays import BLOCK_BYTES, Floats, gamma, is_sparse, row_blocks
from mercer.gram.ball import Ball
from mercer.kernels import Kernel

# Rows of one partial sum over the samples: what bounds its rounding is their number plus that of partial sums.
_SUM_ROWS = 2048


class LinearGram:
    """Products with X and with Xᵀ, of which K = scale · XXᵀ consists."""

    def __init__(self, X: Any, scale: float = 1.0) -> None:
        self.X, self.scale = X, scale

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

    def times_bound(self, W: Ball, centre: Floats | None = None) -> Ball:
        """(X − 1c')W."""
        d, shape = self.X.shape[1], (self.X.shape[0], W.value.shape[1])
        spread = gamma(d + 2) * np.abs(W.value) + 2 * W.error
        out = Ball(np.empty(shape), np.empty(shape))
        for rows, part in self._parts(centre):
            out.value[rows], out.error[rows] = part @ W.value, abs(part) @ spread
        return out

    def transposed_bound(self, C: Ball, size: Floats, centre: Floats | None = None) -> Ball:
        """(X − 1c')ᵀC; `size` is at least |C|."""
        n, d = self.X.shape
        rows = max(1, min(n, _SUM_ROWS, BLOCK_BYTES // (8 * d)))
        parts = 2 * -(-n // rows)
        spread = gamma((n if is_sparse(self.X) else rows) + parts + 3) * size + 2 * C.error
        values, errors = np.zeros((d, C.value.shape[1])), np.zeros((d, C.value.shape[1]))
        for some, part in self._parts(centre):
            values += part.T @ C.value[some]
            errors += abs(part).T @ spread[some]
        return Ball(values, errors)

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
        if is_sparse(self.X):
            sides = [abs(side.toarray().ravel()) for side in (self.X.max(axis=0), self.X.min(axis=0))]
        else:
            sides = [np.abs(part).max(axis=0) for _, part in float64_strips(self.X)]
        largest = np.max(sides, axis=0).astype(np.float64)
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
