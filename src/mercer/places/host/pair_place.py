"""Where many small problems, each on two blocks of rows, are solved in one call of the core: a machine's class pairs.

The core computes the kernel values within a block once for all pairs, and between blocks only the rows that steps need
(src/core/solve/pairs.hpp). Products for certificates rest on float64 values that are computed only for them. Sparse
samples give all float64 values between two blocks at once, which serve for both (src/core/solve/sparse_pairs.cpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mercer import _core
from mercer.samples.arrays import Floats, Indices

if TYPE_CHECKING:
    from mercer.places.host.kernel_matrix import KernelMatrix


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks one after another, the two blocks of each pair, and where the variables of each pair begin."""

    members: Indices
    starts: Indices
    pairs: Indices
    offsets: Indices

    @classmethod
    def of(cls, blocks: Sequence[Indices], pairs: Indices) -> Layout:
        """From blocks and, in each row of `pairs`, the places of a pair's two."""
        starts = np.cumsum([0, *map(len, blocks)])
        return cls(np.concatenate(blocks), starts, pairs.ravel(), _offsets(starts, pairs))

    def of_pairs(self, which: Indices) -> Layout:
        """The layout of some of the pairs."""
        if len(which) == self.n:
            return self
        pairs = self.pairs.reshape(-1, 2)[which]
        return Layout(self.members, self.starts, pairs.ravel(), _offsets(self.starts, pairs))

    def variables(self, which: Indices) -> slice | Indices:
        """Where the variables of these pairs are among those of all."""
        if len(which) == self.n:
            return slice(None)
        lengths = np.diff(self.offsets)[which]
        before = self.offsets[which] - np.cumsum(lengths) + lengths
        places: Indices = np.arange(lengths.sum()) + np.repeat(before, lengths)
        return places

    @cached_property
    def rows(self) -> Indices:
        """The sample of each variable."""
        sizes, starts = np.diff(self.starts)[self.pairs], self.starts[self.pairs]
        rows: Indices = self.members[np.arange(sizes.sum()) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)]
        return rows

    @property
    def n(self) -> int:
        return len(self.offsets) - 1

    @property
    def arrays(self) -> tuple[Indices, Indices, Indices, Indices]:
        return self.members, self.starts, self.pairs, self.offsets

    @property
    def largest(self) -> int:
        return int(np.diff(self.offsets).max())

    def values_kept(self, n_threads: int) -> float:
        """How many values the core keeps: K within each block, and rows of K for the pair of each thread."""
        edge = 64.0  # rows that padding to whole tiles may add
        return float(((np.diff(self.starts) + edge) ** 2).sum()) + n_threads * (self.largest + edge) ** 2


def _offsets(starts: Indices, pairs: Indices) -> Indices:
    return np.concatenate([[0], np.cumsum(np.diff(starts)[pairs].sum(axis=1))])


class Box(NamedTuple):
    """Bounds and ridge of all variables."""

    lower: Floats
    upper: Floats
    d: Floats


@dataclass(frozen=True, eq=False)
class PairPlace:
    """A Gram's samples for the steps of all pairs and for their certificates; made by `Gram.pairs`."""

    gram: KernelMatrix
    steps: _core.Samples
    exact: _core.Samples  # the same object if they are sparse: then it takes the steps as well
    unit: Floats  # how far each row of a product can be from the true one for ‖β‖₁ = 1
    n_threads: int

    @property
    def single(self) -> bool:
        return bool(self.gram.precisions[0] == np.float32)

    def solve(
        self, part: Layout, h: Floats, beta: Floats, box: Box, paired: bool, tol: float, most: int, seconds: float
    ) -> tuple[Sequence[int], Sequence[str], Floats]:
        """Move β, whose gradient is h, by pair steps; how many each pair took, why they ended, and u = Kβ afterwards.

        At most `most` steps each, to half of a tolerance; `paired` says that each pair has the equality Σβ = 0.
        """
        given = (*part.arrays, self.gram.diagonal, h, beta, *box)
        limits = (paired, tol, most, seconds, self.n_threads)
        if self.exact.dense:
            taken, reasons, values = self.steps.solve_pairs(*given, *limits)
            u = self.products(part, beta)
        else:
            u = np.zeros(len(beta))
            taken, reasons, values = self.exact.solve_sparse_pairs(*given, u, self.single, *limits)
        self.gram.evaluations += values
        return taken, reasons, u

    def errors(self, part: Layout, beta: Floats) -> Floats:
        """How far each u = Kβ can be from the true one."""
        l1 = np.add.reduceat(np.abs(beta), part.offsets[:-1])
        return np.asarray(self.unit[part.rows] * np.repeat(l1, np.diff(part.offsets)))

    def products(self, part: Layout, beta: Floats) -> Floats:
        """u = Kβ of each pair, from float64 values."""
        u = np.zeros(len(beta))
        if self.exact.dense:
            self.exact.add_pairs(*part.arrays, beta, u, self.n_threads)
        else:  # no steps from where it is
            none = np.zeros(len(beta))
            given = (*part.arrays, self.gram.diagonal, none, beta.copy(), beta, beta, none)
            self.exact.solve_sparse_pairs(*given, u, False, False, 1.0, 0, np.inf, self.n_threads)
        self.gram.evaluations += int(np.add.reduceat(beta != 0, part.offsets[:-1]) @ np.diff(part.offsets))
        return u

    def solve_folds(
        self, layout: Layout, p: Floats, beta: Floats, bounds: Box, paired: bool, tol: float, most: int, seconds: float
    ) -> Floats | None:
        """β of problems that differ in their bounds, a row for each; None if one is open.

        They start from what their bounds, a row for each problem, leave of β.
        """
        solutions = np.empty_like(bounds.lower)
        reasons, computed = (self.steps if self.exact.dense else self.exact).solve_folds(
            *layout.arrays,
            self.gram.diagonal,
            p,
            beta,
            bounds.lower.ravel(),
            bounds.upper.ravel(),
            bounds.d,
            solutions.ravel(),
            single=self.single,
            paired=paired,
            tol=tol,
            max_steps=most,
            max_seconds=seconds,
            n_threads=self.n_threads,
        )
        self.gram.evaluations += computed
        return solutions if all(reason == "converged" for reason in reasons) else None
