"""All of K on a device, in float32, and solves on it: those of all folds of a search, each on a stream of its own."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from mercer.places.gram import Variables
from mercer.places.host.blocks import BLOCK, BlockSize, take_rounds
from mercer.places.host.stored_gram import HostRounded
from mercer.places.torch import fused
from mercer.places.torch.device_rounds import DeviceRounds, OfStored
from mercer.places.torch.numbers import floats, places, to_device, to_host, torch
from mercer.places.torch.rounds import add_rows
from mercer.samples.arrays import Floats, Values

# With fewer rows the core takes less time than starting the device's kernels.
_FEWEST_ROWS = 3000


class TorchRounded:
    """`Rounded` on a torch device; where rounds there are not possible, or do not end it, the core has a copy."""

    def __init__(self, K: Any) -> None:
        self.K, self._copying = K, threading.Lock()

    @property
    def values(self) -> Values:
        return self._here.values

    @property
    def _here(self) -> HostRounded:
        with self._copying:  # several threads may want it, and it is large
            return self._copy

    @cached_property
    def _copy(self) -> HostRounded:
        return HostRounded(np.asarray(to_host(self.K)))

    @property
    def largest(self) -> float:
        return float(torch.stack(torch.aminmax(self.K)).abs().max()) if len(self.K) else 0.0

    def product(self, coefficients: Floats) -> Floats:
        if not fused.available(self.K):
            return self._here.product(coefficients)
        used = np.flatnonzero(coefficients)
        out = torch.zeros(len(self.K), dtype=torch.float64, device=self.K.device)
        add_rows(out, self.K, places(used, self.K), to_device(coefficients[used], self.K))
        return floats(out)

    def steps(self, box: Variables, beta: Floats, u: Floats, tol: float, most: int, seconds: float) -> tuple[int, str]:
        taken, end, before, begun = 0, time.monotonic() + seconds, beta.copy(), u.copy()
        one_sum = len(beta) == len(u) and not box.group.any()
        if one_sum and len(u) >= _FEWEST_ROWS and fused.available(self.K):
            with self._stream():
                there = DeviceRounds(OfStored(self.K), box[:4], None, self.K, keeps_crowded=True)
                there.start(beta, u)
                taken, violation = take_rounds(there, BlockSize(BLOCK, len(u)), tol, most, end)
                u[:] = begun + self.product(beta - before)  # one sum: what is known of its errors says so
            if not np.isfinite(u).all():
                taken, beta[:], u[:] = 0, before, begun
            elif violation <= tol or taken >= most:
                return taken, "converged" if violation <= tol else "max_steps"
        more, reason = self._here.steps(box, beta, u, tol, most - taken, max(0.0, end - time.monotonic()))
        if taken and more:
            u[:] = begun + self.product(beta - before)
        return taken + more, reason

    def _stream(self) -> AbstractContextManager[Any]:
        """A stream after what was begun: several threads solve side by side, each by kernels that fill little."""
        if self.K.device.type != "cuda":
            return nullcontext()
        stream = torch.cuda.Stream(self.K.device)
        stream.wait_stream(torch.cuda.current_stream(self.K.device))
        there: AbstractContextManager[Any] = torch.cuda.stream(stream)
        return there
