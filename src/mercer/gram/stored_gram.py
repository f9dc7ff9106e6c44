"""K of all samples, stored once for many problems, with a bound on what each value is off by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats
from mercer.gram.gram import Gram
from mercer.gram.rounding import DOUBLE, SINGLE

# Rows of a square block of kernel values that is computed at a time: 2 MB.
_BLOCK_ROWS = 512
# Larger values could overflow in float32 together with their coefficients.
_LARGEST_VALUE = 1e30


@dataclass(frozen=True, eq=False)
class StoredGram:
    """K in float32 or float64, with contiguous rows, and the Gram that knows its values better."""

    values: Any
    gram: Gram
    level: Any  # the precision in which the Gram computed the values
    unit: float  # by how much rounding changed them since: |δk_ij| ≤ unit · size_i · size_j
    sizes: Floats  # the Gram's `reach`

    @classmethod
    def plain(cls, gram: Gram) -> StoredGram:
        """K as the Gram computes it fastest."""
        level = gram.precisions[0]
        return cls(gram.full(level), gram, level, 0.0, gram.reach)

    @classmethod
    def of(cls, gram: Gram) -> StoredGram:
        """K of a Gram in float64, rounded to float32."""
        everything, values = np.arange(gram.n), np.empty((gram.n, gram.n), np.float32)
        largest = 0.0
        with np.errstate(over="ignore"):
            for own, other, block in _blocks(gram):
                largest = max(largest, float(np.abs(block).max(initial=0.0)))
                values[other, own] = block
                values[own, other] = values[other, own].T
        values[everything, everything] = gram.diagonal
        if not largest < _LARGEST_VALUE:
            raise FloatingPointError(f"float32 does not hold the values of {gram.kernel!r}; scale the features")
        return cls(values, gram, np.float64, 1.01 * SINGLE, gram.reach)

    @property
    def n(self) -> int:
        return len(self.sizes)

    @cached_property
    def doubled(self) -> Any:
        """K beside itself: a column for each of the two variables of a sample."""
        return np.concatenate([self.values, self.values], axis=1)

    def errors(self, coefficients: Floats) -> Floats:
        """How far each row's product with these coefficients can be from the true one, if it is summed in float64."""
        used = np.flatnonzero(coefficients)
        mass = float(np.abs(coefficients[used]) @ self.sizes[used])
        stored = (self.unit + (len(used) + 4) * DOUBLE) * 1.01 * mass * self.sizes
        return stored + self.gram.proof.errors(coefficients, level=self.level)


def _blocks(gram: Gram) -> Iterator[tuple[slice, slice, Floats]]:
    """K in float64, block by block above the diagonal: its columns, its rows, and the values."""
    n, everything = gram.n, np.arange(gram.n)
    for left in range(0, n, _BLOCK_ROWS):
        own = slice(left, min(n, left + _BLOCK_ROWS))
        for top in range(0, left + 1, _BLOCK_ROWS):
            other = slice(top, min(n, top + _BLOCK_ROWS))
            _core.check_stop()
            yield own, other, gram.block(everything[other], everything[own])
