"""Ranking: the better sample of every pair of a group should be ahead by 1.

    minimise  ½‖w‖² + Σ C_ij max(0, 1 − (f(x_i) − f(x_j)))      over pairs y_i > y_j of one group,  C_ij = C w_i w_j

    maximise  Σ α_ij − ½ β'Kβ,   0 ≤ α_ij ≤ C_ij,   β_i = Σ_j α_ij − Σ_j α_ji

There are up to n²/2 pairs, and few of them are ever stored. Sorting values and limits shows which worse samples are
above a limit of a better one, so that sums over pairs are differences of running sums. Each pair is handled in the pass
of the highest bit in which the two levels differ: every pair is in exactly one pass, and there are log₂(levels) passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mercer.samples.arrays import Floats, Indices, sums_by

# Indices of the better samples of pairs, and of the worse ones.
Pairs = tuple[Indices, Indices]


class _SortedPass(NamedTuple):
    """One pass, with better samples sorted by their limit and worse samples by r, group by group.

    The pairs with r_j > limit_i are worse[begin:end] for each better sample, and better[first:last] for each worse one.
    """

    better: Indices
    worse: Indices
    begin: Indices
    end: Indices
    first: Indices
    last: Indices


@dataclass(frozen=True, eq=False)
class RankProblem:
    """A ranking problem: samples with a level (from 0, larger is better), a group and a weight, and C."""

    level: Indices
    group: Indices
    weight: Floats
    C: float

    @cached_property
    def _passes(self) -> list[tuple[Indices, Indices, Indices]]:
        """For each bit, the samples whose level has it, the other samples, and codes that are equal for pairs."""
        passes = []
        for bit in range(int(self.level.max()).bit_length()):
            has_bit = (self.level >> bit) & 1 == 1
            _, code = np.unique(np.column_stack([self.group, self.level >> (bit + 1)]), axis=0, return_inverse=True)
            passes.append((np.flatnonzero(has_bit), np.flatnonzero(~has_bit), code.ravel()))
        return passes

    def _sorted_passes(self, r: Floats, limit: Floats) -> Iterator[_SortedPass]:
        """Yield the passes with the pairs that have r_j > limit_i."""
        n = len(r)
        rank = np.unique(np.concatenate([r, limit]), return_inverse=True)[1].ravel()
        for high, low, code in self._passes:
            key, limit_key = code * (2 * n + 1) + rank[:n], code * (2 * n + 1) + rank[n:]
            worse_rows, better_rows = low[np.argsort(key[low])], high[np.argsort(limit_key[high])]
            yield _SortedPass(
                better_rows,
                worse_rows,
                begin=np.searchsorted(key[worse_rows], limit_key[better_rows], side="right"),
                end=np.searchsorted(code[worse_rows], code[better_rows], side="right"),
                first=np.searchsorted(code[better_rows], code[worse_rows]),
                last=np.searchsorted(limit_key[better_rows], key[worse_rows]),
            )

    @property
    def n_passes(self) -> int:
        """Number of passes: each result of `sums` adds this number of differences of running sums."""
        return len(self._passes)

    def sums(self, r: Floats, limit: Floats, V: Floats) -> tuple[Floats, Floats]:
        """Return sums over pairs with r_j > limit_i: Σ_j V_j for each better sample i, Σ_i V_i for each worse one j."""
        sums_of_better, sums_of_worse = np.zeros_like(V), np.zeros_like(V)
        for sorted_pass in self._sorted_passes(r, limit):
            sums_over_worse, sums_over_better = (
                _running_sums(V[sorted_pass.worse]),
                _running_sums(V[sorted_pass.better]),
            )
            sums_of_better[sorted_pass.better] += sums_over_worse[sorted_pass.end] - sums_over_worse[sorted_pass.begin]
            sums_of_worse[sorted_pass.worse] += sums_over_better[sorted_pass.last] - sums_over_better[sorted_pass.first]
        return sums_of_better, sums_of_worse

    def count(self, r: Floats, low: float, high: float) -> int:
        """Return the number of pairs with low ≤ r_i − r_j < high."""
        n_below_high, n_below_low = (
            sum(int((sorted_pass.end - sorted_pass.begin).sum()) for sorted_pass in self._sorted_passes(r, r - t))
            for t in (high, low)
        )
        return n_below_high - n_below_low

    def pairs(self, r: Floats, low: float, high: float) -> Pairs:
        """Return the pairs with low ≤ r_i − r_j < high."""
        better_rows, worse_rows, stop = [np.empty(0, np.intp)], [np.empty(0, np.intp)], np.empty(len(r), np.intp)
        for high_pass, low_pass in zip(self._sorted_passes(r, r - high), self._sorted_passes(r, r - low), strict=True):
            stop[low_pass.better] = low_pass.begin
            counts = stop[high_pass.better] - high_pass.begin
            better_rows.append(np.repeat(high_pass.better, counts))
            offsets = np.repeat(high_pass.begin - np.cumsum(counts) + counts, counts)
            worse_rows.append(high_pass.worse[np.arange(counts.sum()) + offsets])
        return np.concatenate(better_rows), np.concatenate(worse_rows)

    def bound(self, pairs: Pairs) -> Floats:
        """Return the upper bound C_ij of each pair's α."""
        return np.asarray(self.C * self.weight[pairs[0]] * self.weight[pairs[1]])

    def row_coefficients(self, pairs: Pairs, alpha: Floats) -> Floats:
        """Return the coefficients β = A'α of f for the multipliers of the given pairs, with α = 0 for all others."""
        n = len(self.weight)
        return sums_by(pairs[0], alpha, n) - sums_by(pairs[1], alpha, n)


@dataclass(frozen=True, eq=False)
class RankDual:
    """Dual variables of all pairs: C_ij where r_i − r_j < low, `alpha` where low ≤ r_i − r_j < 1, and 0 elsewhere.

    `alpha` is in the order of `RankProblem.pairs`.
    """

    r: Floats
    low: float
    alpha: Floats


def _running_sums(V: Floats) -> Floats:
    """Return the sums of the first 0, 1, 2, … rows of V."""
    return np.concatenate([np.zeros((1, V.shape[1])), np.cumsum(V, axis=0)])
