"""Sampling of rows (line 4 of the algorithm), counts of violations, and the iterates with their mean w (line 7).

The random numbers are the same on every platform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.samples.arrays import Floats, Indices

# Streams of the counter-based generator: draws with replacement, offsets of passes, validation parts, and from _ORDERS
# on one stream for the order of each pass.
_DRAWS, _OFFSETS, _PARTS, _ORDERS = range(4)


def draw_with_replacement(seed: int, cumulative_weight: Floats, t: int, count: int) -> Indices:
    """Draw rows for the steps after t with replacement, by inverse transform over the cumulative weights."""
    return _core.draw_rows(seed, _DRAWS, t, count, cumulative_weight)


def draw_pass(seed: int, number: int, weight: Floats) -> Indices:
    """Draw a pass: every row as often as its weight says, in random order, with systematic sampling of fractions.

    Each point s + offset, s = 0, 1, …, below the total weight chooses the row whose interval of the cumulative weights
    contains it.
    """
    if len(weight) == 0:
        return np.arange(0)
    ends = np.cumsum(weight)
    if ends[-1] > 2**31:
        raise ValueError(
            f"the weights add up to {ends[-1]:g}; in a pass a weight is the number of visits, and a pass has at "
            f"most {2**31} of them. Scale the weights down, or pass smaller chunks"
        )
    # 20 bits of offset make s + offset exact, so an integer weight gives exactly that many visits.
    offset = float(_core.random_bits(seed, _OFFSETS, number, 1)[0] >> np.uint64(44)) * 2.0**-20
    points = offset + np.arange(int(np.ceil(ends[-1])))
    rows = np.searchsorted(ends, points[points < ends[-1]], side="right")
    order = np.argsort(_core.random_bits(seed, _ORDERS + number, 0, len(rows)), kind="stable")
    return np.asarray(rows[order])


def validation_part(seed: int, n: int, fraction: float) -> Indices:
    """Return the indices of a random fraction of n rows, sorted."""
    order = np.argsort(_core.random_bits(seed, _PARTS, 0, n), kind="stable")
    return np.sort(order[: max(1, round(fraction * n))])


Counts = NDArray[np.int64]


class ViolationCounts:
    """Counts of the visits of each row, and of the visits at which it violated its margin, in the later steps."""

    def __init__(self, n_machines: int, n: int) -> None:
        self.counts = np.zeros((n_machines, n), dtype=np.int64)  # violations per machine and row, updated by the steps
        self._visits = np.zeros(n, dtype=np.int64)
        self._snapshots: list[tuple[int, Counts, Counts]] = [(0, self.counts.copy(), self._visits.copy())]

    def record(self, draws: Indices, t: int) -> None:
        """Add the rows drawn up to step t to the counts of visits, and drop snapshots that are no longer needed.

        A snapshot of both counts is taken at the first call after each power of two. `shares` subtracts the last one up
        to t/2, which becomes the first of the list.
        """
        self._visits += np.bincount(draws, minlength=len(self._visits))
        if t.bit_length() > self._snapshots[-1][0].bit_length():
            self._snapshots.append((t, self.counts.copy(), self._visits.copy()))
        while len(self._snapshots) > 1 and 2 * self._snapshots[1][0] <= t:
            self._snapshots.pop(0)

    def shares(self, default: NDArray[np.bool_]) -> Floats:
        """Return the share of violations among the visits of each row; `default` for rows without a visit.

        In the mean of many steps a row contributes this share of its weight, so near the optimum it is α_i/C_i.
        """
        _, counts, visits = self._snapshots[0]
        new_visits = self._visits - visits
        return np.where(new_visits > 0, (self.counts - counts) / np.maximum(new_visits, 1), default)


@dataclass(eq=False)
class Iterates:
    """θ of several machines (rows) after t common steps, and Σ θ/t over these steps."""

    theta: Floats
    total: Floats
    marks: Floats  # `total` at the last two powers of two up to t
    norm2: Floats  # ‖θ‖² of each machine, if the steps update it
    t: int

    @classmethod
    def zero(cls, n_machines: int, size: int) -> Iterates:
        """Return the iterates before the first step."""
        shape = (n_machines, size)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((2, *shape)), np.zeros(n_machines), 0)

    def columns(self, machines: slice | Indices) -> Iterates:
        """Return a copy with these columns."""
        parts = (self.theta[:, machines], self.total[:, machines], self.marks[:, :, machines])
        theta, total, marks = (np.array(part, order="C") for part in parts)
        return Iterates(theta, total, marks, self.norm2.copy(), self.t)

    def copy(self) -> Iterates:
        return self.columns(slice(None))

    def extended(self, count: int) -> Iterates:
        """Return a copy with `count` more columns of zeros."""
        theta, total = (np.pad(part, ((0, 0), (0, count))) for part in (self.theta, self.total))
        return Iterates(theta, total, np.pad(self.marks, ((0, 0), (0, 0), (0, count))), self.norm2.copy(), self.t)

    def count_steps(self, steps: int) -> None:
        """Record that steps were taken; only the last of them may reach a power of two."""
        self.t += steps
        if self.t > 0 and self.t & (self.t - 1) == 0:
            self.marks[0] = self.marks[1]
            self.marks[1] = self.total

    def output(self, lam: float, average: str) -> Floats:
        """Return the mean of all w ("all"), those after step `suffix_start` ("suffix"), or the present w ("last")."""
        if self.t == 0:
            return np.zeros_like(self.theta)
        if average == "last":
            return np.asarray(self.theta / (lam * (self.t + 1)))
        if average == "all":
            return np.asarray(self.total / (lam * self.t))
        return np.asarray((self.total - self.marks[0]) / (lam * (self.t - suffix_start(self.t))))

    def finite_output(self, lam: float, average: str) -> Floats:
        """Return `output`; raise FloatingPointError if its squares overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            w = self.output(lam, average)
            is_finite = np.isfinite((w * w).sum()) and np.isfinite((self.theta * self.theta).sum())
        if not is_finite:
            raise FloatingPointError(
                f"the iterates overflowed after {self.t} steps with λ={lam!r}; scale the features or raise λ"
            )
        return w


def suffix_start(t: int) -> int:
    """Return the largest power of two up to t/2; the mean since then covers between half and three quarters of the
    steps.

    A power of two, rather than t/2, works for a stream of unknown length.
    """
    return 1 << (t.bit_length() - 2) if t > 1 else 0
