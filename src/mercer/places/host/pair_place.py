"""Solution of many small problems, each on two blocks of rows, in one call of the core: the class pairs of a machine.

The core computes the kernel values within a block once for all pairs, and between blocks only the rows that steps need
(src/core/solve/pairs.hpp). Products for certificates use float64 values that are computed only for them. For sparse
samples all float64 values between two blocks are computed at once, for steps and certificates alike
(src/core/solve/sparse_pairs.cpp).
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
    """Layout of pair problems: the rows of all blocks, the two blocks of each pair, and where its variables begin."""

    members: Indices  # rows of all blocks, one block after another
    starts: Indices  # where each block begins in `members`
    pairs: Indices  # the two blocks of each pair
    offsets: Indices  # where the variables of each pair begin

    @classmethod
    def of(cls, blocks: Sequence[Indices], pairs: Indices) -> Layout:
        """Build the layout from blocks of rows; each row of `pairs` holds the numbers of two blocks."""
        return cls.of_sorted(np.concatenate(blocks), np.cumsum([0, *map(len, blocks)]), pairs)

    @classmethod
    def of_sorted(cls, members: Indices, starts: Indices, pairs: Indices) -> Layout:
        """Build the layout from the rows of all blocks, one block after another, and where each block begins."""
        return cls(members, starts, pairs.ravel(), _offsets(starts, pairs))

    def of_pairs(self, numbers: Indices) -> Layout:
        """Return the layout of the given pairs."""
        if len(numbers) == self.n:
            return self
        pairs = self.pairs.reshape(-1, 2)[numbers]
        return Layout(self.members, self.starts, pairs.ravel(), _offsets(self.starts, pairs))

    def variables(self, numbers: Indices) -> slice | Indices:
        """Return the positions of these pairs' variables among all variables."""
        if len(numbers) == self.n:
            return slice(None)
        lengths = self.lengths[numbers]
        shifts = self.offsets[numbers] - lengths.cumsum() + lengths
        positions: Indices = np.arange(lengths.sum()) + shifts.repeat(lengths)
        return positions

    @cached_property
    def block_sizes(self) -> Indices:
        """Number of rows of each block."""
        return self.starts[1:] - self.starts[:-1]

    @cached_property
    def lengths(self) -> Indices:
        """Number of variables of each pair."""
        return self.offsets[1:] - self.offsets[:-1]

    @cached_property
    def rows(self) -> Indices:
        """Row of each variable."""
        sizes, starts = self.block_sizes[self.pairs], self.starts[self.pairs]
        ends = sizes.cumsum()
        rows: Indices = self.members[np.arange(ends[-1]) + (starts - ends + sizes).repeat(sizes)]
        return rows

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.offsets) - 1

    @property
    def arrays(self) -> tuple[Indices, Indices, Indices, Indices]:
        """The four arrays in the order that the core takes."""
        return self.members, self.starts, self.pairs, self.offsets

    @cached_property
    def largest(self) -> int:
        """Largest number of variables of a pair."""
        return int(np.maximum.reduce(self.lengths))

    def values_kept(self, n_threads: int) -> float:
        """Count the kernel values that the core stores: K within each block, and rows of K for each thread's pair."""
        padding = 64.0  # rows that padding to whole tiles may add
        padded_sizes = self.block_sizes + padding
        return float(padded_sizes @ padded_sizes) + n_threads * (self.largest + padding) ** 2


def _offsets(starts: Indices, pairs: Indices) -> Indices:
    """Return where the variables of each pair begin, and their total number."""
    offsets = np.zeros(len(pairs) + 1, dtype=np.intp)
    sizes = starts[1:] - starts[:-1]
    np.add.accumulate(sizes[pairs[:, 0]] + sizes[pairs[:, 1]], out=offsets[1:])
    return offsets


class Box(NamedTuple):
    """Bounds and ridge d of all variables."""

    lower: Floats
    upper: Floats
    d: Floats


@dataclass(frozen=True, eq=False)
class PairPlace:
    """Solver of pair problems on a Gram's samples, which also computes products for certificates (`Gram.pairs`)."""

    gram: KernelMatrix
    steps: _core.Samples  # samples for pair steps
    exact: _core.Samples  # samples for float64 products; the same object if sparse, which then takes the steps too
    row_errors: Floats  # error bound of each row of a product for ‖β‖₁ = 1
    n_threads: int

    @property
    def single(self) -> bool:
        """True if pair steps use float32 kernel values."""
        return bool(self.gram.precisions[0] == np.float32)

    def solve(
        self,
        layout: Layout,
        h: Floats,
        beta: Floats,
        box: Box,
        paired: bool,
        tol: float,
        max_steps: int,
        max_seconds: float,
    ) -> tuple[Sequence[int], Sequence[str], Floats]:
        """Move β, whose gradient is h, by pair steps; return the steps of each pair, why they ended, and u = Kβ.

        Each pair takes at most `max_steps` steps, to half of the tolerance; `paired` is True if each pair has the
        equality Σβ = 0.
        """
        data = (*layout.arrays, self.gram.diagonal, h, beta, *box)
        limits = (paired, tol, max_steps, max_seconds, self.n_threads)
        if self.exact.dense:
            n_steps, reasons, n_values = self.steps.solve_pairs(*data, *limits)
            u = self.products(layout, beta)
        else:
            u = np.zeros(len(beta))
            n_steps, reasons, n_values = self.exact.solve_sparse_pairs(*data, u, self.single, *limits)
        self.gram.evaluations += n_values
        return n_steps, reasons, u

    def products(self, layout: Layout, beta: Floats) -> Floats:
        """Return u = Kβ of each pair, from float64 values."""
        u = np.zeros(len(beta))
        if self.exact.dense:
            self.gram.evaluations += self.exact.add_pairs(*layout.arrays, beta, u, self.n_threads)
        else:  # the solver with a limit of 0 steps returns u alone
            zeros = np.zeros(len(beta))
            data = (*layout.arrays, self.gram.diagonal, zeros, beta.copy(), beta, beta, zeros)
            self.exact.solve_sparse_pairs(*data, u, False, False, 1.0, 0, np.inf, self.n_threads)
            self.gram.evaluations += int(np.add.reduceat(beta != 0, layout.offsets[:-1]) @ layout.lengths)
        return u

    def solve_folds(
        self,
        layout: Layout,
        p: Floats,
        beta: Floats,
        bounds: Box,
        paired: bool,
        tol: float,
        max_steps: int,
        max_seconds: float,
    ) -> Floats | None:
        """Return β of problems that differ in their bounds, a row for each; None if one of them did not converge.

        `bounds` has a row for each problem, which starts from β clipped to its bounds.
        """
        solutions = np.empty_like(bounds.lower)
        reasons, n_values = (self.steps if self.exact.dense else self.exact).solve_folds(
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
            max_steps=max_steps,
            max_seconds=max_seconds,
            n_threads=self.n_threads,
        )
        self.gram.evaluations += n_values
        return solutions if all(reason == "converged" for reason in reasons) else None
