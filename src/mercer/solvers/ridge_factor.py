"""Cholesky factor of a matrix that rounding may have made indefinite, with a small ridge if necessary.

LLᵀ = A + ridge·diag(unit)      for the first of a growing sequence of ridges for which L exists
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mercer import _core
from mercer.samples.arrays import Floats, Precision, Values


@dataclass(frozen=True, eq=False)
class RidgeFactor:
    """Cholesky factor: L in the lower triangle (the upper one is not used), and the ridge that was added."""

    L: Values
    ridge: float
    n_threads: int

    def solve(self, B: Floats) -> Floats:
        """Return (LLᵀ)⁻¹B for a matrix B, which is not changed."""
        out = np.array(B, dtype=self.L.dtype, order="C")
        _core.cholesky_solve(self.L, out, self.n_threads)
        return np.asarray(out, dtype=np.float64)


def ridge_factor(
    A: Values,
    ridges: Iterable[float],
    n_threads: int,
    unit: float | Floats = 1.0,
    diagonal: Floats | None = None,
    dtype: Precision = np.float64,
) -> RidgeFactor | None:
    """Factor A with the first ridge that makes it positive definite; None if no ridge does.

    A is not changed, and may be float32. `diagonal` replaces the diagonal of A, to which ridge·`unit` is added. `dtype`
    is the precision of the factor.
    """
    diagonal = np.asarray(np.diagonal(A), dtype=np.float64) if diagonal is None else diagonal
    for ridge in ridges:
        L = np.array(A, dtype=dtype, order="C")
        np.fill_diagonal(L, diagonal + ridge * unit)
        if _core.cholesky(L, n_threads) < 0:
            return RidgeFactor(L, ridge, n_threads)
    return None


def growing(first: float, factor: float, limit: float) -> Iterator[float]:
    """Yield first, first·factor, first·factor², … up to `limit`."""
    ridge = first
    while ridge <= limit:
        yield ridge
        ridge *= factor


def rounding_shares(factor: float, limit: float) -> Iterator[float]:
    """Yield ridges as shares of the diagonal: 0, then growing ones from the size of rounding up to `limit`."""
    yield 0.0
    yield from growing(1e-14, factor, limit)
