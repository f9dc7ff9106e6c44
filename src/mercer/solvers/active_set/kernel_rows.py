"""Rows of K in float64: looked up where the whole matrix fits into the budget, computed when asked for where not."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mercer.arrays import Floats, Indices
from mercer.gram.gram import Gram

# The part of a fit's budget that the whole matrix may take; the rest is for the rows and the system of the free ones.
_SHARE_OF_BUDGET = 0.6


class KernelRows:
    """K of n samples, a row at a time; without `keep` all of it is computed when asked for."""

    def __init__(self, gram: Gram, *, keep: bool = True) -> None:
        self.gram, self._keep = gram, keep
        self.n = gram.n
        self.diagonal: Floats = np.asarray(gram.diagonal, dtype=np.float64)
        self._everything = np.arange(gram.n)

    @cached_property
    def whole(self) -> Floats | None:
        """All of K, if there is room."""
        if not self._keep or 8 * self.n**2 > _SHARE_OF_BUDGET * self.gram.budget:
            return None
        return np.asarray(self.gram.full(np.float64), dtype=np.float64)

    def row(self, i: int) -> Floats:
        found: Floats = self.rows(np.array([i]))[0] if self.whole is None else self.whole[i]
        return found

    def rows(self, which: Indices) -> Floats:
        return self.gram.block(which, self._everything) if self.whole is None else self.whole[which]

    def product(self, coefficients: Floats) -> Floats:
        """K times one column."""
        if self.whole is None:
            return self.gram.product(coefficients)
        used = np.flatnonzero(coefficients)
        if 2 * len(used) > self.n:
            return np.asarray(self.whole @ coefficients)
        return np.asarray(coefficients[used] @ self.whole[used])
