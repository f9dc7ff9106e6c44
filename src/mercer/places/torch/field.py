"""The state of a solve whose kernel values a device computes.

Kernel values and their sums are computed on the device. With Triton, one equality constraint and many variables, the
device runs whole rounds with its own β and u (device_rounds.py). Otherwise the host keeps β and u = Kβ, selects working
sets, and takes pair steps in the core: one number per row crosses the bus in a round, which takes less time than
starting the dozens of torch kernels that selection on the device would need (16 to 30 µs each; NVIDIA H200: 0.5 ms a
round instead of 2.5 ms).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.places.host.blocks import RoundsResult
from mercer.places.host.field import SHRINK_MARGIN_SHARE, SHRINK_SHARE, HostField
from mercer.places.torch import fused
from mercer.places.torch.device_rounds import ComputedBlocks, DeviceRounds
from mercer.places.torch.numbers import dtype_of, index_tensor, to_device, to_host, torch
from mercer.samples.arrays import Floats, Indices, Precision, Values

if TYPE_CHECKING:
    from mercer.places.gram import Field
    from mercer.places.torch.gram import TorchGram
    from mercer.problems.dual_problem import DualProblem

# Rows times features below which nothing is dropped: a pass over all rows takes less time than deciding what to drop.
_FEWEST_NUMBERS = 3_000_000
# Number of variables from which on the device runs rounds; and from which on it continues with its largest blocks even
# if most of their variables are free, since larger blocks on the host take longer (mixture of a million: 25 ms instead
# of 8).
_FEWEST_VARIABLES, _MANY_VARIABLES = 8_000, 150_000
# Number of rounds before the device counts the variables that could be dropped: the first number divided by the active
# variables, between the other two (NVIDIA H200: about 0.2 s). Rounds are counted, not timed, so that the same fit has
# the same bits on a busy host too.
_VARIABLES_ALONE, _FEWEST_ROUNDS, _MOST_ROUNDS = 25_000_000, 15, 200
# Number of such counts, all but the last in vain, before the host continues, which reports the progress of the solve.
# With a million variables it takes as long to copy β and u as a few rounds take.
_MOST_COUNTS = 8


class TorchField(HostField):
    """A `Field` whose kernel values a torch device computes; the device holds the samples of the active rows."""

    gram: TorchGram

    def __init__(self, gram: TorchGram, problem: DualProblem, beta: Floats, u: Floats, dtype: Precision) -> None:
        super().__init__(gram, problem, beta, u, gram.n_threads)
        self._precision, self._dtype = dtype, dtype_of(dtype)
        self._samples = gram.prepared_rows(None, self._dtype)
        self._position = self.rows.copy()  # position of each active row among the samples on the device
        self._pinned: dict[str, Any] = {}
        self._device: DeviceRounds | None = None
        self._rounds_away = 0  # rounds since β and u were copied to the device; 0 if they are on the host
        self._counts = 0  # how often the device has counted the variables that could be dropped since then
        is_fused = fused.available(gram.like) and self._dtype == torch.float32
        if is_fused and len(problem.totals) == 1 and problem.n_variables >= _FEWEST_VARIABLES:
            self._device = self._device_rounds()

    def _device_rounds(self) -> DeviceRounds:
        """Copy the problem of the active variables to the device, which solves it in rounds."""
        problem, active = self.problem, self.active if self.shrunk else slice(None)
        p, lower, upper, d = (values[active] for values in (problem.p, problem.lower, problem.upper, problem.d))
        row = self._position[problem.row[active]] if problem.twins else None
        source, has_many_variables = ComputedBlocks(self.gram, self._samples), problem.n_variables >= _MANY_VARIABLES
        return DeviceRounds(source, (p, lower, upper, d), row, self.gram.like, stay_on_device=has_many_variables)

    def run_rounds(self, count: int, size: int, share: float, least: float, max_steps: int) -> RoundsResult | None:
        """Run `count` rounds on the device; return None if this solve runs no rounds, or no more."""
        if self._device is None or self._device.finished:
            return None
        if not self._rounds_away:
            self._active_state = (self.beta[self.active], self.u[self.rows]) if self.shrunk else (self.beta, self.u)
            self._device.start(*self._active_state)
        result = self._device.run_rounds(count, size, share, least, max_steps)
        if result is None:
            return None
        self._rounds_away += count
        rounds = min(max(_VARIABLES_ALONE // max(1, len(self.active)), _FEWEST_ROUNDS), _MOST_ROUNDS)
        if self._rounds_away < (1 + self._counts) * rounds:
            return result
        self._counts += 1
        return result._replace(should_shrink=self._counts >= _MOST_COUNTS or self._would_shrink())

    def _would_shrink(self) -> bool:
        """Return whether `shrink` would drop variables at the device's β and u."""
        if len(self.rows) * self.gram.features < _FEWEST_NUMBERS:
            return False
        assert self._device is not None
        n_survivors = self._device.count_survivors(SHRINK_MARGIN_SHARE)
        return n_survivors <= (1 - SHRINK_SHARE) * len(self.active)

    def copy_to_host(self) -> None:
        """Copy β and u back to the host if they are on the device."""
        if self._device is None or not self._rounds_away:
            return
        self._device.copy_to_host()
        if self.shrunk:
            self.beta[self.active], self.u[self.rows] = self._active_state
        self._rounds_away, self._counts, self._ends = 0, 0, None

    def move(self, J: Indices, beta: Floats) -> None:
        """Set β on J, and bring u of the active rows up to date."""
        delta = beta - self.beta[J]
        changed_positions = np.flatnonzero(delta)
        if len(changed_positions) == 0:
            return
        self.beta[J], self._ends = beta, None
        sources = self._active_samples(self.problem.row[J[changed_positions]])
        sums = self.gram.device_sums(
            self._samples, sources, to_device(delta[changed_positions], self.gram.like), self._dtype
        )
        host_sums = self._to_pinned(sums, "sums")
        if self.shrunk:
            self.u[self.rows] += host_sums
        else:
            self.u += host_sums

    def inner_field(self, J: Indices) -> Field:
        """Return the state of the problem on J, with all other variables held fixed."""
        rows, part = self._inner_problem(J)
        return self.gram.view(rows).field(part, self.beta[J], np.zeros(len(rows)), self._precision)

    def shrink(self) -> bool:
        """Drop variables at a bound that no pair would choose, and their samples; return whether it did."""
        if len(self.rows) * self.gram.features < _FEWEST_NUMBERS:
            return False
        has_dropped = super().shrink()
        if has_dropped:
            self._samples = self._samples[index_tensor(self._position[self.rows], self.gram.like)]
            self._position[self.rows] = np.arange(len(self.rows))
            self._renew_rounds()
        return has_dropped

    def unshrink(self) -> None:
        """Make all variables and samples active again, and bring u of all rows up to date."""
        super().unshrink()
        self._samples = self.gram.prepared_rows(None, self._dtype)
        self._position[:] = self.rows
        self._renew_rounds()

    def _renew_rounds(self) -> None:
        """Restart the device rounds with the variables that are active now."""
        if self._device is not None and not self._device.finished:
            self._device = self._device_rounds()

    def _active_samples(self, rows: Indices) -> Any:
        """Return the samples of the given active rows."""
        return self._samples[index_tensor(self._position[rows], self.gram.like)]

    def _square_of(self, rows: Indices) -> Values:
        """Return K[rows, rows] for active rows, as an array of the host."""
        samples = self._active_samples(rows)
        return np.asarray(self._to_pinned(self.gram.device_block(samples, samples, self._dtype), "block"))

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        """Add K[rows] times a change of β to u[rows]."""
        moved_rows = np.flatnonzero(change)
        if len(moved_rows) and len(rows):
            tensor = self.gram.like
            targets = self.gram.prepared_rows(index_tensor(rows, tensor), self._dtype)
            sources = self.gram.prepared_rows(index_tensor(self.problem.row[moved_rows], tensor), self._dtype)
            sums = self.gram.device_sums(targets, sources, to_device(change[moved_rows], tensor), self._dtype)
            self.u[rows] += self._to_pinned(sums, "sums")

    def _to_pinned(self, values: Any, name: str) -> Any:
        """Copy device values to a pinned host buffer, which the next call with this name overwrites."""
        if values.device.type == "cpu":
            return to_host(values)
        buffer = self._pinned.get(name)
        if buffer is None or buffer.numel() < values.numel():
            buffer = self._pinned[name] = torch.empty(values.numel(), dtype=values.dtype, device="cpu", pin_memory=True)
        buffer = buffer[: values.numel()].view(values.shape)
        buffer.copy_(values)
        return buffer.numpy()
