"""Rounds of the decomposition on a device: choosing, blocks, pair steps and sums, in a few kernels each (rounds.py).

A round of the loop on the host waits for the device several times, and a device is idle while the core takes pair
steps. Here rounds follow each other without a wait, as many as the loop asks for, and one read of five numbers says how
far they are. Half of a block is kept, free variables first. The rest are violators of both sides, the worst of each of
some parts of all variables: both ends are among them, and nothing has to be sorted. It needs one equality, and Triton.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from mercer import _core
from mercer.places.host.blocks import Rounds
from mercer.places.torch import fused
from mercer.places.torch.formula import Rows
from mercer.places.torch.numbers import floats, places, to_device, torch
from mercer.places.torch.rounds import Chooser, add_rows
from mercer.samples.arrays import Floats, Indices

# Variables of the largest block, whose steps one program takes, and of the smallest.
_LARGEST, _SMALLEST = 2048, 16
# Rounds go on while they gain this share of what they have gained.
_LEAST_GAIN = 1e-9


class Source(Protocol):
    """Where rounds have K from."""

    def block(self, rows: Any) -> Any:
        """K between these rows, in float32."""
        ...

    def add(self, u: Any, rows: Any, change: Any, moved: Any) -> None:
        """u += K[:, rows] @ change, of the rows that were asked for last; only those that have `moved` changed."""
        ...


class OfSamples:
    """K that is computed anew from prepared samples."""

    def __init__(self, gram: Any, samples: Any) -> None:
        self._gram, self._samples = gram, samples

    def block(self, rows: Any) -> Any:
        self._own = self._samples[rows]
        return self._gram.device_block(self._own, self._own, torch.float32)

    def add(self, u: Any, rows: Any, change: Any, moved: Any) -> None:
        gram, samples = self._gram, self._samples
        if gram.fuses and isinstance(samples, Rows):
            gram.evaluations += len(u) * len(rows)  # at most: how many have moved is known there
            (x, x_norms), (z, z_norms) = samples.parts[0], self._own.parts[0]
            u.add_(fused.sums(x, x_norms, z, z_norms, change.float(), moved), alpha=gram.scale)
        else:
            u += gram.device_sums(samples, self._own, change, torch.float32)


class OfStored:
    """K that is stored on the device."""

    def __init__(self, K: Any) -> None:
        self._K = K

    def block(self, rows: Any) -> Any:
        return self._K[rows[:, None], rows]

    def add(self, u: Any, rows: Any, change: Any, moved: Any) -> None:
        add_rows(u, self._K, rows, change, moved)


class DeviceRounds:
    """A problem on a device; one more variable, which never moves, fills gaps of blocks."""

    def __init__(
        self, source: Source, fixed: tuple[Floats, ...], row: Indices | None, like: Any, *, keeps_crowded: bool
    ) -> None:
        """`fixed` are p, both bounds and d; `row` is None where each variable has a row of its own, in their order.

        `keeps_crowded` says to go on with the largest block where the loop wants a larger one.
        """
        n = len(fixed[0])
        self._source, self._keeps_crowded = source, keeps_crowded
        there = None if row is None else places(np.append(row, 0), like)
        p, lower, upper, d = (to_device(np.append(values, 0.0), like) for values in fixed)
        self._chooser = Chooser(p, lower, upper, d, there)
        self._largest = min(_LARGEST, max(_SMALLEST, _power_of_two(n)))  # all of them, if they are few
        self._steps = self._gained = 0.0
        self._home: tuple[Floats, Floats] | None = None  # the arrays that `settle` writes to
        self.over = False  # whether the loop had better go on

    def start(self, beta: Floats, u: Floats) -> None:
        """Bring β and u to the device; `settle` overwrites these arrays."""
        like, self._home = self._chooser.told, (beta, u)
        self._beta, self._u = to_device(np.append(beta, 0.0), like).clone(), to_device(u, like).clone()

    def rounds(self, count: int, size: int, share: float, least: float, most: int) -> Rounds | None:
        """Take rounds from where `start` began; None where they gain nothing, or a larger block is wanted."""
        self.over |= size > _LARGEST and not self._keeps_crowded
        if self.over:
            return None
        chooser, beta, u = self._chooser, self._beta, self._u
        size = min(_power_of_two(size), self._largest)
        if size != chooser.size:
            chooser.resize(size)
        for _ in range(count):
            rows = chooser.choose(beta, u)
            change = chooser.step(self._source.block(rows), beta, u, share, least, most)
            self._source.add(u, rows, change, chooser.moved)
        _core.check_stop()
        top, bottom, steps, gained, free = floats(chooser.told).tolist()
        violation, taken, gain = top + bottom, steps - self._steps, gained - self._gained
        self._steps, self._gained = steps, gained
        gains = taken > 0 and violation < math.inf and gain > _LEAST_GAIN * gained
        self.over = not gains and violation > 2 * least
        return Rounds(int(taken), violation, int(free), enough=False)

    def settle(self) -> None:
        if self._home is not None:
            beta, u = self._home
            beta[:], u[:] = floats(self._beta)[:-1], floats(self._u)
            self._home = None


def _power_of_two(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << (n - 1).bit_length()
