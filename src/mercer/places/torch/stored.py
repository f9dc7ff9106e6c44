"""All of K on a device, in float32, and solves on it, such as those of a search's folds, each on its own stream."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from mercer.places.gram import BoxVariables
from mercer.places.host.blocks import BLOCK, BlockSize, run_device_rounds
from mercer.places.host.stored_gram import HostFloat32Matrix
from mercer.places.torch import fused
from mercer.places.torch.device_rounds import DeviceRounds, StoredBlocks
from mercer.places.torch.numbers import floats, index_tensor, to_device, to_host, torch
from mercer.places.torch.rounds import add_rows
from mercer.samples.arrays import Floats, Values

# Number of rows below which the core takes less time than starting the device's kernels.
_FEWEST_ROWS = 3000


class TorchFloat32Matrix:
    """A `Float32Matrix` on a torch device; a host copy serves if rounds there are impossible or do not finish."""

    def __init__(self, K: Any) -> None:
        self.K, self._copy_lock = K, threading.Lock()

    @property
    def values(self) -> Values:
        return self._on_host.values

    @property
    def _on_host(self) -> HostFloat32Matrix:
        with self._copy_lock:  # only one of several threads makes the copy, which is large
            return self._copy

    @cached_property
    def _copy(self) -> HostFloat32Matrix:
        return HostFloat32Matrix(np.asarray(to_host(self.K)))

    @property
    def largest(self) -> float:
        return float(torch.stack(torch.aminmax(self.K)).abs().max()) if len(self.K) else 0.0

    def product(self, coefficients: Floats) -> Floats:
        """Return K @ coefficients, summed in float64."""
        if not fused.available(self.K):
            return self._on_host.product(coefficients)
        support = np.flatnonzero(coefficients)
        out = torch.zeros(len(self.K), dtype=torch.float64, device=self.K.device)
        add_rows(out, self.K, index_tensor(support, self.K), to_device(coefficients[support], self.K))
        return floats(out)

    def steps(
        self, box: BoxVariables, beta: Floats, u: Floats, tol: float, max_steps: int, seconds: float
    ) -> tuple[int, str]:
        """Take pair steps from β with u = Kβ, both changed in place; return their number and why they ended."""
        n_steps, deadline, beta_before, u_before = 0, time.monotonic() + seconds, beta.copy(), u.copy()
        is_one_sum = len(beta) == len(u) and not box.group.any()
        if is_one_sum and len(u) >= _FEWEST_ROWS and fused.available(self.K):
            with self._stream():
                rounds = DeviceRounds(StoredBlocks(self.K), box[:4], None, self.K, stay_on_device=True)
                rounds.start(beta, u)
                n_steps, violation = run_device_rounds(rounds, BlockSize(BLOCK, len(u)), tol, max_steps, deadline)
                u[:] = u_before + self.product(beta - beta_before)  # one sum, as the error bounds assume
            if not np.isfinite(u).all():
                n_steps, beta[:], u[:] = 0, beta_before, u_before
            elif violation <= tol or n_steps >= max_steps:
                return n_steps, "converged" if violation <= tol else "max_steps"
        n_more_steps, reason = self._on_host.steps(
            box, beta, u, tol, max_steps - n_steps, max(0.0, deadline - time.monotonic())
        )
        if n_steps and n_more_steps:
            u[:] = u_before + self.product(beta - beta_before)
        return n_steps + n_more_steps, reason

    def _stream(self) -> AbstractContextManager[Any]:
        """Return a stream that waits for earlier work: several threads solve at once, each with small kernels."""
        if self.K.device.type != "cuda":
            return nullcontext()
        stream = torch.cuda.Stream(self.K.device)
        stream.wait_stream(torch.cuda.current_stream(self.K.device))
        context: AbstractContextManager[Any] = torch.cuda.stream(stream)
        return context
