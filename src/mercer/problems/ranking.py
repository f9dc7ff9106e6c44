"""Ranking: the better sample of every pair of a group should be ahead by 1.

    minimise  ½‖w‖² + Σ C_ij max(0, 1 − (f(x_i) − f(x_j)))      over pairs y_i > y_j of one group,  C_ij = C w_i w_j

    maximise  Σ α_ij − ½ β'Kβ,   0 ≤ α_ij ≤ C_ij,   β_i = Σ_j α_ij − Σ_j α_ji

There are up to n²/2 pairs, and few of them are ever stored. Whether the worse sample of a pair is above a limit of the
better one is told by the order of values and limits, so that sums over pairs are differences of running sums. Samples
whose levels differ first in a bit of their numbers meet in the pass of that bit: every pair is in one pass, and there
are log₂(levels) of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mercer.samples.arrays import Floats, Indices, sums_by

# The two samples of some pairs, the better one first.
Pairs = tuple[Indices, Indices]


class _Meeting(NamedTuple):
    """One pass. The better samples are in the order of their limits, the worse ones in that of r, each group by itself.

    Those with r_j > limit_i are worse[begin:end] for each of the better ones, and better[first:last] for each worse.
    """

    better: Indices
    worse: Indices
    begin: Indices
    end: Indices
    first: Indices
    last: Indices


@dataclass(frozen=True, eq=False)
class RankProblem:
    """Samples with a level (from 0, larger is better), a group and a weight."""

    level: Indices
    group: Indices
    weight: Floats
    C: float

    @cached_property
    def _passes(self) -> list[tuple[Indices, Indices, Indices]]:
        """Samples with a bit of their level set, samples without it, and which of them meet: those of equal codes."""
        passes = []
        for bit in range(int(self.level.max()).bit_length()):
            high = (self.level >> bit) & 1 == 1
            _, code = np.unique(np.column_stack([self.group, self.level >> (bit + 1)]), axis=0, return_inverse=True)
            passes.append((np.flatnonzero(high), np.flatnonzero(~high), code.ravel()))
        return passes

    def _met(self, r: Floats, limit: Floats) -> Iterator[_Meeting]:
        n = len(r)
        rank = np.unique(np.concatenate([r, limit]), return_inverse=True)[1].ravel()
        for high, low, code in self._passes:
            key, until = code * (2 * n + 1) + rank[:n], code * (2 * n + 1) + rank[n:]
            worse, better = low[np.argsort(key[low])], high[np.argsort(until[high])]
            yield _Meeting(
                better,
                worse,
                begin=np.searchsorted(key[worse], until[better], side="right"),
                end=np.searchsorted(code[worse], code[better], side="right"),
                first=np.searchsorted(code[better], code[worse]),
                last=np.searchsorted(until[better], key[worse]),
            )

    @property
    def n_passes(self) -> int:
        """How many sums of running sums each of `sums` adds."""
        return len(self._passes)

    def sums(self, r: Floats, limit: Floats, V: Floats) -> tuple[Floats, Floats]:
        """Over the pairs with r_j > limit_i: Σ_j V_j for each better sample i, and Σ_i V_i for each worse sample j."""
        won, lost = np.zeros_like(V), np.zeros_like(V)
        for met in self._met(r, limit):
            below, above = _running(V[met.worse]), _running(V[met.better])
            won[met.better] += below[met.end] - below[met.begin]
            lost[met.worse] += above[met.last] - above[met.first]
        return won, lost

    def count(self, r: Floats, low: float, high: float) -> int:
        """How many pairs have low ≤ r_i − r_j < high."""
        far, near = (sum(int((met.end - met.begin).sum()) for met in self._met(r, r - t)) for t in (high, low))
        return far - near

    def pairs(self, r: Floats, low: float, high: float) -> Pairs:
        """The pairs with low ≤ r_i − r_j < high."""
        firsts, seconds, stop = [np.empty(0, np.intp)], [np.empty(0, np.intp)], np.empty(len(r), np.intp)
        for far, near in zip(self._met(r, r - high), self._met(r, r - low), strict=True):
            stop[near.better] = near.begin
            many = stop[far.better] - far.begin
            firsts.append(np.repeat(far.better, many))
            seconds.append(far.worse[np.arange(many.sum()) + np.repeat(far.begin - np.cumsum(many) + many, many)])
        return np.concatenate(firsts), np.concatenate(seconds)

    def bound(self, pairs: Pairs) -> Floats:
        """C_ij of some pairs."""
        return np.asarray(self.C * self.weight[pairs[0]] * self.weight[pairs[1]])

    def combined(self, pairs: Pairs, alpha: Floats) -> Floats:
        """β of the α of some pairs."""
        n = len(self.weight)
        return sums_by(pairs[0], alpha, n) - sums_by(pairs[1], alpha, n)


@dataclass(frozen=True, eq=False)
class RankDual:
    """α of every pair: C_ij where r_i − r_j < low, `alpha` where low ≤ r_i − r_j < 1, in the order of
    `RankProblem.pairs`, and 0 elsewhere."""

    r: Floats
    low: float
    alpha: Floats


def _running(V: Floats) -> Floats:
    """Sums of the first 0, 1, 2, … rows."""
    return np.concatenate([np.zeros((1, V.shape[1])), np.cumsum(V, axis=0)])
