"""Rounds of the decomposition on a device: selection, blocks, pair steps and sums, in a few kernels each (rounds.py).

A round of the loop on the host waits for the device several times, and the device is idle while the core takes pair
steps. Here rounds follow each other without waiting, as many as the loop requests, and the host reads five numbers to
see the progress. Half of a block is kept, free variables first. The rest are violators on both sides, the worst of each
of several groups of variables: the two variables that define the violation are among them, and nothing has to be
sorted. Rounds require exactly one equality constraint, and Triton.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from mercer import _core
from mercer.places.host.blocks import RoundsResult
from mercer.places.torch import fused
from mercer.places.torch.formula import PreparedRows
from mercer.places.torch.numbers import floats, index_tensor, to_device, torch
from mercer.places.torch.rounds import BlockSelector, add_rows
from mercer.samples.arrays import Floats, Indices

# Numbers of variables of the largest block, whose steps one program takes, and of the smallest.
_LARGEST_BLOCK, _SMALLEST_BLOCK = 2048, 16
# Rounds continue while their gain is at least this fraction of the total gain so far.
_LEAST_GAIN = 1e-9


class BlockSource(Protocol):
    """Source of blocks of K, and of products with K, for rounds on a device."""

    def block(self, rows: Any) -> Any:
        """Return K between these rows, in float32."""
        ...

    def add(self, u: Any, rows: Any, change: Any, moved: Any) -> None:
        """Add K[:, rows] @ change to u for the rows of the last block; only the rows in `moved` have a change."""
        ...


class ComputedBlocks:
    """Blocks of K that are computed from prepared samples each time."""

    def __init__(self, gram: Any, samples: Any) -> None:
        self._gram, self._samples = gram, samples

    def block(self, rows: Any) -> Any:
        """Return K between these rows, in float32."""
        self._block_samples = self._samples[rows]
        return self._gram.device_block(self._block_samples, self._block_samples, torch.float32)

    def add(self, u: Any, rows: Any, change: Any, moved: Any) -> None:
        """Add K[:, rows] @ change to u for the rows of the last block; only the rows in `moved` have a change."""
        gram, samples = self._gram, self._samples
        if gram.fuses and isinstance(samples, PreparedRows):
            gram.evaluations += len(u) * len(rows)  # an upper bound: only the device knows how many rows moved
            (x, x_norms), (z, z_norms) = samples.parts[0], self._block_samples.parts[0]
            u.add_(fused.sums(x, x_norms, z, z_norms, change.float(), moved), alpha=gram.scale)
        else:
            u += gram.device_sums(samples, self._block_samples, change, torch.float32)


class StoredBlocks:
    """Blocks of a K that is stored on the device."""

    def __init__(self, K: Any) -> None:
        self._K = K

    def block(self, rows: Any) -> Any:
        return self._K[rows[:, None], rows]

    def add(self, u: Any, rows: Any, change: Any, moved: Any) -> None:
        add_rows(u, self._K, rows, change, moved)


class DeviceRounds:
    """A problem on a device, solved by rounds; one more variable, which never moves, fills gaps in blocks."""

    def __init__(
        self, source: BlockSource, fixed: tuple[Floats, ...], row: Indices | None, like: Any, *, stay_on_device: bool
    ) -> None:
        """Copy a problem to the device.

        `fixed` are p, both bounds and d; `row` is None if variable i belongs to row i. With `stay_on_device`, rounds
        continue with their largest block if the loop requests a larger one.
        """
        n = len(fixed[0])
        self._source, self._stay_on_device = source, stay_on_device
        device_row = None if row is None else index_tensor(np.append(row, 0), like)
        p, lower, upper, d = (to_device(np.append(values, 0.0), like) for values in fixed)
        self._selector = BlockSelector(p, lower, upper, d, device_row)
        self._largest = min(_LARGEST_BLOCK, max(_SMALLEST_BLOCK, _power_of_two(n)))  # all variables if they are few
        self._steps = self._total_gain = 0.0
        self._host_arrays: tuple[Floats, Floats] | None = None  # β and u that `copy_to_host` overwrites
        self.finished = False  # True if the loop on the host should continue alone

    def start(self, beta: Floats, u: Floats) -> None:
        """Copy β and u to the device; `copy_to_host` overwrites these arrays."""
        like, self._host_arrays = self._selector.status, (beta, u)
        self._beta, self._u = to_device(np.append(beta, 0.0), like).clone(), to_device(u, like).clone()

    def run_rounds(self, count: int, size: int, share: float, least: float, max_steps: int) -> RoundsResult | None:
        """Run rounds from the β of `start`; return None if they gain nothing, or if a larger block is requested."""
        self.finished |= size > _LARGEST_BLOCK and not self._stay_on_device
        if self.finished:
            return None
        selector, beta, u = self._selector, self._beta, self._u
        size = min(_power_of_two(size), self._largest)
        if size != selector.size:
            selector.resize(size)
        for _ in range(count):
            rows = selector.choose(beta, u)
            change = selector.step(self._source.block(rows), beta, u, share, least, max_steps)
            self._source.add(u, rows, change, selector.moved)
        _core.check_stop()
        top, bottom, steps, total_gain, free = floats(selector.status).tolist()
        violation, n_steps, gain = top + bottom, steps - self._steps, total_gain - self._total_gain
        self._steps, self._total_gain = steps, total_gain
        has_gained = n_steps > 0 and violation < math.inf and gain > _LEAST_GAIN * total_gain
        self.finished = not has_gained and violation > 2 * least
        return RoundsResult(int(n_steps), violation, int(free), should_shrink=False)

    def count_survivors(self, margin_share: float) -> int:
        """Count the variables that are free or could still be chosen, as `HostField.shrink` does."""
        return self._selector.count_survivors(self._beta, self._u, margin_share)

    def copy_to_host(self) -> None:
        """Copy β and u to the arrays given to `start`, unless that has been done."""
        if self._host_arrays is not None:
            beta, u = self._host_arrays
            beta[:], u[:] = floats(self._beta)[:-1], floats(self._u)
            self._host_arrays = None


def _power_of_two(n: int) -> int:
    """Smallest power of two that is at least n."""
    return 1 << (n - 1).bit_length()
