"""The state of a solve whose kernel values are a device's.

The values and their sums are computed there. With Triton, one equality and many variables the device takes whole rounds
by itself, with β and u (device_rounds.py). Else β, u = Kβ and the choice of working sets are the host's, and pair steps
the core's: a number per row crosses the bus in a round, in less time than a device takes to start the dozens of torch's
kernels that choose there (16 to 30 µs each; NVIDIA H200: 0.5 ms a round instead of 2.5 ms).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.places.host.blocks import Rounds
from mercer.places.host.field import HostField
from mercer.places.torch import fused
from mercer.places.torch.device_rounds import DeviceRounds, OfSamples
from mercer.places.torch.numbers import dtype_of, places, to_device, to_host, torch
from mercer.samples.arrays import Floats, Indices, Precision, Values

if TYPE_CHECKING:
    from mercer.places.gram import Field
    from mercer.places.torch.gram import TorchGram
    from mercer.problems.dual_problem import DualProblem

# Rows times features below which a pass over all rows takes less time than to find out which could be dropped.
_FEWEST_NUMBERS = 3_000_000
# Variables from which on the device takes rounds by itself; and from which on it goes on with its largest blocks where
# free variables crowd them, since larger ones of the host take longer (mixture of a million: 25 ms instead of 8).
_FEWEST_VARIABLES, _MANY_VARIABLES = 30_000, 150_000
# Rounds that the device takes before the loop drops variables and looks at its limits: so many that all together choose
# among this many variables, within these ends (NVIDIA H200: about 0.2 s). They are counted, not timed, so that the same
# fit has the same bits on a busy host too.
_VARIABLES_ALONE, _FEWEST_ROUNDS, _MOST_ROUNDS = 25_000_000, 15, 200


class TorchField(HostField):
    """A `Field` on a torch device, which holds the samples of the active rows."""

    gram: TorchGram

    def __init__(self, gram: TorchGram, problem: DualProblem, beta: Floats, u: Floats, dtype: Precision) -> None:
        super().__init__(gram, problem, beta, u, gram.n_threads)
        self._precision, self._dtype = dtype, dtype_of(dtype)
        self._samples = gram.prepared_rows(None, self._dtype)
        self._place_of = self.rows.copy()  # where the samples have an active row
        self._pinned: dict[str, Any] = {}
        self._there: DeviceRounds | None = None
        self._away = 0  # rounds since β and u were brought to the device; 0 where they are here
        single = fused.available(gram.like) and self._dtype == torch.float32
        if single and len(problem.totals) == 1 and problem.n_variables >= _FEWEST_VARIABLES:
            self._there = self._on_active()

    def _on_active(self) -> DeviceRounds:
        """Rounds on the active variables."""
        problem, active = self.problem, self.active if self.shrunk else slice(None)
        p, lower, upper, d = (values[active] for values in (problem.p, problem.lower, problem.upper, problem.d))
        row = self._place_of[problem.row[active]] if problem.twins else None
        source, many = OfSamples(self.gram, self._samples), problem.n_variables >= _MANY_VARIABLES
        return DeviceRounds(source, (p, lower, upper, d), row, self.gram.like, keeps_crowded=many)

    def rounds(self, count: int, size: int, share: float, least: float, most: int) -> Rounds | None:
        if self._there is None or self._there.over:
            return None
        if not self._away:
            self._own = (self.beta[self.active], self.u[self.rows]) if self.shrunk else (self.beta, self.u)
            self._there.start(*self._own)
        found = self._there.rounds(count, size, share, least, most)
        if found is None:
            return None
        self._away += count
        alone = min(max(_VARIABLES_ALONE // max(1, len(self.active)), _FEWEST_ROUNDS), _MOST_ROUNDS)
        return found._replace(enough=self._away >= alone)

    def settle(self) -> None:
        if self._there is None or not self._away:
            return
        self._there.settle()
        if self.shrunk:
            self.beta[self.active], self.u[self.rows] = self._own
        self._away, self._ends = 0, None

    def move(self, J: Indices, beta: Floats) -> None:
        delta = beta - self.beta[J]
        changed = np.flatnonzero(delta)
        if len(changed) == 0:
            return
        self.beta[J], self._ends = beta, None
        sources = self._at(self.problem.row[J[changed]])
        sums = self.gram.device_sums(self._samples, sources, to_device(delta[changed], self.gram.like), self._dtype)
        here = self._here(sums, "sums")
        if self.shrunk:
            self.u[self.rows] += here
        else:
            self.u += here

    def inside(self, J: Indices) -> Field:
        rows, part = self._inner_problem(J)
        return self.gram.view(rows).field(part, self.beta[J], np.zeros(len(rows)), self._precision)

    def shrink(self) -> bool:
        if len(self.rows) * self.gram.features < _FEWEST_NUMBERS:
            return False
        dropped = super().shrink()
        if dropped:
            self._samples = self._samples[places(self._place_of[self.rows], self.gram.like)]
            self._place_of[self.rows] = np.arange(len(self.rows))
            self._follow()
        return dropped

    def unshrink(self) -> None:
        super().unshrink()
        self._samples = self.gram.prepared_rows(None, self._dtype)
        self._place_of[:] = self.rows
        self._follow()

    def _follow(self) -> None:
        """Rounds go on with the variables that are active now."""
        if self._there is not None and not self._there.over:
            self._there = self._on_active()

    def _at(self, rows: Indices) -> Any:
        """The samples of some active rows."""
        return self._samples[places(self._place_of[rows], self.gram.like)]

    def _square_of(self, rows: Indices) -> Values:
        own = self._at(rows)
        return np.asarray(self._here(self.gram.device_block(own, own, self._dtype), "block"))

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        moved = np.flatnonzero(change)
        if len(moved) and len(rows):
            like = self.gram.like
            own = self.gram.prepared_rows(places(rows, like), self._dtype)
            sources = self.gram.prepared_rows(places(self.problem.row[moved], like), self._dtype)
            sums = self.gram.device_sums(own, sources, to_device(change[moved], like), self._dtype)
            self.u[rows] += self._here(sums, "sums")

    def _here(self, values: Any, name: str) -> Any:
        """Values of the device in this machine's memory, which the next ones of this name overwrite."""
        if values.device.type == "cpu":
            return to_host(values)
        held = self._pinned.get(name)
        if held is None or held.numel() < values.numel():
            held = self._pinned[name] = torch.empty(values.numel(), dtype=values.dtype, device="cpu", pin_memory=True)
        held = held[: values.numel()].view(values.shape)
        held.copy_(values)
        return held.numpy()
