"""Matrix products in more than twice the precision, by BLAS: both factors are cut into slices of so few bits that the
product of any two slices is exact in float64, in whatever order BLAS adds (Ozaki, Ogita, Oishi and Rump 2012).

With slices of b bits, 2b + ⌈log₂ inner⌉ ≤ 53, slice number a of a row is at most 2^(e − ba + b), 2ᵉ being at least the
largest number of the row. With S slices, pairs whose numbers add up to more than S + 1 are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mercer.arrays import Floats
from mercer.compression.twofold import Twofold, add, normal


@dataclass(frozen=True, eq=False)
class Sliced:
    """Rows as sums of at most `count` slices, and a power of two that no number of a row exceeds."""

    slices: list[Floats]
    scale: Floats
    bits: int
    count: int

    @classmethod
    def of(cls, high: Floats, low: Floats | None, inner: int, count: int) -> Sliced:
        """Slices of the rows of high + low for products of rows of this length."""
        bits = (53 - max(1, math.ceil(math.log2(max(2, inner))))) // 2
        with np.errstate(divide="ignore"):
            exponent = np.ceil(np.log2(np.abs(high).max(axis=1, initial=0.0))) + 1
        exponent = np.where(np.isfinite(exponent), exponent, 0.0)
        rest, more = high, np.zeros_like(high) if low is None else low
        slices: list[Floats] = []
        for a in range(1, count + 1):
            # Adding and taking away this number leaves multiples of 2^(e − ba).
            rounder = np.ldexp(1.5, (exponent - bits * a + 52).astype(np.int32))[:, None]
            part = (rest + rounder) - rounder
            slices.append(part)
            rest, more = normal(rest - part, more) if low is not None else (rest - part, more)
            if not rest.any():
                break
        return cls(slices, np.ldexp(1.0, exponent.astype(np.int32)), bits, count)

    def rows(self, which: slice) -> Sliced:
        return replace(self, slices=[part[which] for part in self.slices], scale=self.scale[which])

    def columns(self, which: slice) -> Sliced:
        return replace(self, slices=[part[:, which] for part in self.slices])

    def product_error(self, inner: int) -> float:
        """What is left out, and rounded, of a product of rows of this length, as a share of the two rows' scales."""
        left_out = (self.count + 2) * inner * 2.0 ** (-self.bits * self.count)
        return left_out + 3 * self.count * inner * 2.0**-104


def _pairs(left: Sliced, right: Sliced) -> Iterator[tuple[Floats, Floats]]:
    """Slices to be multiplied, the smallest products first."""
    places = [(a, b) for a in range(len(left.slices)) for b in range(len(right.slices)) if a + b < left.count]
    for a, b in sorted(places, key=sum, reverse=True):
        yield left.slices[a], right.slices[b]


def product(left: Sliced, right: Sliced) -> Twofold:
    """⟨row of left, row of right⟩ for all pairs of rows."""
    total: Twofold | None = None
    for one, other in _pairs(left, right):
        exact = one @ other.T
        total = (exact, np.zeros_like(exact)) if total is None else add(total, (exact, np.zeros_like(exact)))
    assert total is not None
    return total


def squares(rows: Sliced) -> Twofold:
    """⟨row, row⟩ of every row."""
    total: Twofold | None = None
    for one, other in _pairs(rows, rows):
        exact = np.einsum("ij,ij->i", one, other)
        total = (exact, np.zeros_like(exact)) if total is None else add(total, (exact, np.zeros_like(exact)))
    assert total is not None
    return total
