"""Rounds of the decomposition that a device takes by itself: choosing, blocks, pair steps and sums.

A round of the loop on this machine waits for the device several times, and a device is idle while the core takes pair
steps. Here rounds follow each other there without a wait, in a few kernels each (rounds.py), and this machine looks
once in a while how far they are. What they do is the loop's (solvers/dual/decomposition.py): half of a block is kept,
free variables first. The rest are violators of both sides, the worst of each of some parts of all variables: both ends
are among them, and nothing has to be sorted. It needs one equality, and Triton.
"""

from __future__ import annotations

import math
import time
from typing import Any, Protocol

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices
from mercer.engines.torch import fused
from mercer.engines.torch.formula import Rows
from mercer.engines.torch.numbers import floats, places, to_device, torch
from mercer.engines.torch.rounds import Chooser, add_rows

# Variables of a block, and of one that free variables crowd: more than the share of it. Of so many variables in all the
# loop's own rounds, with still larger blocks, would take longer (mixture of a million: 25 ms instead of 8).
_BLOCK, _LARGEST, _CROWDED_SHARE, _MANY = 1024, 2048, 0.6, 150_000
# A block is solved to this share of the violation; to the second one where it is crowded.
_INNER_SHARE, _CROWDED_INNER_SHARE = 0.3, 0.1
# Rounds between two looks, after a few of them.
_ROUNDS = 8
# They go on while they gain this share of what they have gained.
_LEAST_GAIN = 1e-9


class Source(Protocol):
    """Where rounds have K from."""

    lasting: bool  # whether a loop on this machine would have it no faster

    def block(self, rows: Any) -> Any:
        """K between these rows, in float32."""
        ...

    def add(self, u: Any, rows: Any, change: Any, moved: Any) -> None:
        """u += K[:, rows] @ change, of the rows that were asked for last; only those that have `moved` changed."""
        ...


class OfSamples:
    """K that is computed anew from prepared samples."""

    lasting = False

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

    lasting = True

    def __init__(self, K: Any) -> None:
        self._K = K

    def block(self, rows: Any) -> Any:
        return self._K[rows[:, None], rows]

    def add(self, u: Any, rows: Any, change: Any, moved: Any) -> None:
        add_rows(u, self._K, rows, change, moved)


class Ahead:
    """A problem on a device; one more variable, which never moves, fills gaps of blocks."""

    def __init__(
        self, source: Source, fixed: tuple[Floats, ...], row: Indices | None, like: Any, last: Ahead | None = None
    ) -> None:
        """`fixed` are p, both bounds and d; `row` is None where each variable has a row of its own, in their order.

        The `last` one had other variables of the same problem.
        """
        n = len(fixed[0])
        self._source = source
        self._many: bool = n >= _MANY if last is None else last._many
        there = None if row is None else places(np.append(row, 0), like)
        p, lower, upper, d = (to_device(np.append(values, 0.0), like) for values in fixed)
        self._chooser = Chooser(p, lower, upper, d, there)
        self._largest = min(_LARGEST, max(16, 1 << (n - 1).bit_length()))  # all of them, if they are few
        size = _BLOCK if last is None else last._chooser.size
        self._share: float = _INNER_SHARE if last is None else last._share
        self._chooser.resize(min(size, self._largest))
        self._taken = self._gained = 0.0
        self.over = False  # whether the loop had better go on

    def run(
        self, beta: Floats, u: Floats, tol: float, most: int, most_rounds: float = math.inf, deadline: float = math.inf
    ) -> tuple[int, float]:
        """Take steps until a violation, a number of steps or of rounds, or a deadline on time.monotonic's clock.

        Return the steps taken and the violation before the last of them. β and u are overwritten. Without a deadline
        no clock is read: the same start ends in the same bits, however fast the device is.
        """
        chooser = self._chooser
        b, v = to_device(np.append(beta, 0.0), chooser.told).clone(), to_device(u, chooser.told).clone()
        begun, rounds, all_rounds = self._taken, 1, 0
        while True:
            for _ in range(rounds):
                rows = chooser.choose(b, v)
                change = chooser.step(self._source.block(rows), b, v, self._share, 0.5 * tol)
                self._source.add(v, rows, change, chooser.moved)
            _core.check_stop()
            all_rounds += rounds
            rounds = min(2 * rounds, _ROUNDS)
            top, bottom, steps, gained, crowd = floats(chooser.told).tolist()
            violation, moved, gain = top + bottom, steps > self._taken, gained - self._gained
            self._taken, self._gained = steps, gained
            gains = moved and violation < math.inf and gain > _LEAST_GAIN * gained
            self.over = not (violation <= tol or gains)
            if crowd > _CROWDED_SHARE * chooser.size:
                full = chooser.size >= self._largest
                self.over |= full and not self._many and not self._source.lasting
                self._share = _CROWDED_INNER_SHARE
                if not full:
                    chooser.resize(2 * chooser.size)
            if self.over or violation <= tol or steps - begun >= most or all_rounds >= most_rounds:
                break
            if deadline < math.inf and time.monotonic() >= deadline:
                break
        beta[:], u[:] = floats(b)[:-1], floats(v)
        return int(steps - begun), violation
