"""K = scale · XXᵀ through samples X on the host, and a test whether a kernel has this form.

Products with bounds follow Higham ("Accuracy and stability of numerical algorithms", 3.1): a sum of k products, in any
order, has an error of at most γ_k times the sum of their absolute values, and every product may lose LEAST more. A
centre of floats may be subtracted from dense samples: each difference has the relative error u for any centre.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.places.ball import LEAST, Ball
from mercer.places.sums import Sums, float64_strips
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import BLOCK_BYTES, Floats, Indices, gamma, is_sparse, row_blocks
from mercer.samples.matrices import dense, without_empty_columns

# Rows of one partial sum over the samples: the number of rows plus the number of partial sums bounds the rounding.
_SUM_ROWS = 2048


class HostLinearGram:
    """`LinearGram` of an array or a CSR matrix."""

    def __init__(self, X: Any, scale: float = 1.0) -> None:
        self._X, self.scale, self.sparse = X, scale, is_sparse(X)
        self.n: int = X.shape[0]
        self.d: int = X.shape[1]

    @property
    def norm_bound(self) -> float:
        """Upper bound on √k(x, x) over all samples, from the largest entry of each feature."""
        if self.sparse:
            extremes = [abs(extreme.toarray().ravel()) for extreme in (self._X.max(axis=0), self._X.min(axis=0))]
        else:
            extremes = [np.abs(part).max(axis=0) for _, part in float64_strips(self._X)]
        sizes = np.max(extremes, axis=0).astype(np.float64)
        largest = float(sizes.max(initial=0.0)) or 1.0
        length = largest * float(np.linalg.norm(sizes / largest)) + self.d * LEAST
        return float(np.sqrt(self.scale)) * length * (1 + gamma(self.d + 8)) + LEAST

    def times(self, W: Floats, centre: Floats | None = None) -> Floats:
        """Return (X − 1c')W for several columns, or one vector."""
        parts = float64_strips(self._X) if centre is None else self._parts(centre)
        return np.concatenate([part @ W for _, part in parts])

    def transposed(self, C: Floats, centre: Floats | None = None) -> Floats:
        """Return (X − 1c')ᵀC for several columns, or one vector."""
        out = np.zeros((self.d, *C.shape[1:]))
        for rows, part in float64_strips(self._X) if centre is None else self._parts(centre):
            out += part.T @ C[rows]
        return out

    def times_bound(self, W: Ball, centre: Floats | None = None) -> Ball:
        """Return (X − 1c')W with a bound on the error of each number."""
        shape = (self.n, W.value.shape[1])
        entry_errors = gamma(self.d + 2) * np.abs(W.value) + 2 * W.error + LEAST
        out = Ball(np.empty(shape), np.empty(shape))
        for rows, part in self._parts(centre):
            out.value[rows], out.error[rows] = part @ W.value, abs(part) @ entry_errors + 2 * self.d * LEAST
        return out.finite()

    def transposed_bound(self, C: Ball, size: Floats, centre: Floats | None = None) -> Ball:
        """Return (X − 1c')ᵀC with a bound on the error of each number, where `size` ≥ |C|."""
        sum_rows = max(1, min(self.n, _SUM_ROWS, BLOCK_BYTES // (8 * self.d)))
        n_sums = 2 * -(-self.n // sum_rows)
        entry_errors = gamma((self.n if self.sparse else sum_rows) + n_sums + 3) * size + 2 * C.error + LEAST
        values, errors = np.zeros((self.d, C.value.shape[1])), np.zeros((self.d, C.value.shape[1]))
        for rows, part in self._parts(centre):
            values += part.T @ C.value[rows]
            errors += abs(part).T @ entry_errors[rows]
        return Ball(values, errors + 2 * self.n * LEAST).finite()

    def transposed_squares(self, weight: Floats, centre: Floats | None = None) -> Floats:
        """Return Σ w_i (x_ij − c_j)² for each feature j."""
        out = np.zeros(self.d)
        for rows, part in self._parts(centre):
            squares = part.multiply(part) if is_sparse(part) else part * part
            out += np.asarray(squares.T @ weight[rows]).ravel()
        return out

    def sums(self, problem: LeastSquares) -> Sums:
        return Sums.of(self._X, problem)

    def dense_blocks(self, centre: Floats | None = None) -> Iterator[tuple[slice, Floats]]:
        """Yield X − 1c' as dense host arrays, a block of rows at a time, each with its slice."""
        for rows in row_blocks(self.n, 8 * self.d):
            part = dense(self._X[rows]).astype(np.float64, copy=False)
            yield rows, part if centre is None else part - centre

    def without_empty_columns(self) -> tuple[HostLinearGram, Indices | None]:
        """Return K from the non-empty features, and their indices, if that is faster; otherwise itself and None."""
        X, used = without_empty_columns(self._X)
        return HostLinearGram(X, self.scale), used

    def _parts(self, centre: Floats | None) -> Iterator[tuple[slice, Any]]:
        """Yield X − centre in float64, a few rows at a time; sparse samples, which have no centre, in larger strips."""
        for rows, strip in float64_strips(self._X):
            if is_sparse(strip):
                yield rows, strip
                continue
            for start in range(0, len(strip), _SUM_ROWS):
                part = strip[start : start + _SUM_ROWS]
                rows_of_part = slice(rows.start + start, rows.start + start + len(part))
                yield rows_of_part, part if centre is None else part - centre


def linear_scale(kernel: Kernel) -> float | None:
    """Return the factor s of a kernel k = s⟨x, z⟩ on vectors; None for any other kernel."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    return recipe.scale if recipe is not None and recipe.linear else None


def linear_terms(kernel: Kernel) -> tuple[float, float] | None:
    """Return s and c of a kernel k = s⟨x, z⟩ + c on vectors, exact up to a few roundings; None for any other kernel."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    if recipe is None or (recipe.inner, recipe.normalise, recipe.factor) != ("dot", False, None):
        return None
    if recipe.ending == "polynomial" and recipe.numbers[2] == 1:  # the form of a linear kernel plus a constant
        gamma, coef0, _ = recipe.numbers
        return recipe.scale * gamma, recipe.scale * coef0 + recipe.constant
    return (recipe.scale, recipe.constant) if recipe.ending == "identity" else None
