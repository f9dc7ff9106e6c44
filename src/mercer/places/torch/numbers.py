"""Transfers between the host and a device, and functions on a device with known error bounds.

torch's exp and tanh have no guaranteed error bounds on a GPU. The functions of this module use additions,
multiplications and divisions alone, which are rounded correctly everywhere.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, Indices, Precision

torch: Any = require("torch", "a device that torch knows")

DTYPES = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}
# Bytes of one tile of kernel values: large enough that starting a kernel costs little beside it, and small compared
# with any device's memory.
TILE_BYTES = 256 << 20
# Coefficients of (2^f − 1)/f for |f| ≤ ½, in rising powers: (ln 2)^(k+1)/(k+1)!. The truncation error is below 2⁻⁵⁷.
POWERS = [math.log(2.0) ** (k + 1) / math.factorial(k + 1) for k in range(14)]


# Transfers between these numbers of bytes go through pinned memory, in which a GPU reads and writes without waiting for
# the host, and several times faster. torch keeps pinned memory that was freed for the next transfer.
_LEAST_PINNED_BYTES, _MOST_PINNED_BYTES = 1, 128 << 20
# Results of at least so many bytes are copied to the host in chunks, each of them while the next one is on its way.
_CHUNKED_BYTES, _CHUNK_BYTES = 1 << 18, 4 << 20


def to_device(values: Any, like: Any, dtype: Any = None) -> Any:
    """Copy a host array to the device of the tensor `like`."""
    values = np.require(values, requirements=["C", "W"])  # torch warns of read-only memory
    if like.device.type != "cuda" or not _LEAST_PINNED_BYTES <= values.nbytes <= _MOST_PINNED_BYTES:
        return torch.as_tensor(values, device=like.device, dtype=dtype)
    values = torch.from_numpy(values)
    pinned_values = torch.empty(values.shape, dtype=dtype or values.dtype, device="cpu", pin_memory=True)
    return pinned_values.copy_(values).to(like.device, non_blocking=True)


def to_host(tensor: Any) -> Any:
    """Return a tensor as a host array."""
    tensor = tensor.detach()
    if tensor.device.type != "cuda" or tensor.nbytes < _CHUNKED_BYTES:
        return tensor.cpu().numpy()
    return _copied_in_chunks(tensor.contiguous()).numpy()


def _copied_in_chunks(tensor: Any) -> Any:
    """Return a host copy of a contiguous tensor, through two pinned buffers that take turns."""
    out = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    source, target = tensor.view(-1), out.view(-1)
    step, stream = _CHUNK_BYTES // tensor.element_size(), torch.cuda.current_stream(tensor.device)
    pending = []
    buffers = [torch.empty(min(step, len(source)), dtype=out.dtype, device="cpu", pin_memory=True) for _ in range(2)]
    for k, start in enumerate(range(0, len(source), step)):
        part = source[start : start + step]
        pinned_buffer, event = buffers[k % 2][: len(part)], torch.cuda.Event()
        pinned_buffer.copy_(part, non_blocking=True)
        event.record(stream)
        pending.append((start, pinned_buffer, event))
        if k:
            _finish(target, *pending.pop(0))
    _finish(target, *pending.pop())
    return out


def _finish(target: Any, start: int, pinned_buffer: Any, event: Any) -> None:
    """Wait for a chunk and copy it to its place."""
    event.synchronize()
    target[start : start + len(pinned_buffer)] = pinned_buffer


def floats(tensor: Any) -> Floats:
    """Return a tensor as a float64 host array."""
    return np.asarray(to_host(tensor.to(torch.float64)))


class HostCopy:
    """An asynchronous copy of a tensor to the host, while its device continues to compute."""

    def __init__(self, tensor: Any) -> None:
        self._buffer, self._copy_event = tensor, None
        if tensor.device.type == "cuda":
            self._buffer = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
            self._buffer.copy_(tensor, non_blocking=True)
            self._copy_event = torch.cuda.Event()
            self._copy_event.record(torch.cuda.current_stream(tensor.device))

    def array(self) -> Any:
        """Wait for the copy and return it; the array of a CPU tensor shares its memory."""
        if self._copy_event is not None:
            self._copy_event.synchronize()
        return to_host(self._buffer)


def index_tensor(rows: Indices, like: Any) -> Any:
    """Copy host indices to the device of the tensor `like`."""
    return to_device(rows.astype(np.int64, copy=False), like)


def dtype_of(precision: Precision) -> Any:
    """Return torch's dtype for a precision."""
    return DTYPES[np.dtype(precision)]


def float32_products_are_exact(device: str = "cpu") -> bool:
    """Return whether torch multiplies float32 matrices in float32; a user may have allowed fewer digits."""
    if torch.is_autocast_enabled(device):  # autocast does not change float64 products
        return False
    try:
        return str(torch.get_float32_matmul_precision()) == "highest"
    except RuntimeError:  # set for one backend alone, for example by torch.backends.cuda.matmul.fp32_precision
        return False


def refuse_emulation(device: Any) -> None:
    """Raise if cuBLAS is set to emulate float64 products by integers, whose errors have no entrywise bound."""
    if device.type == "cuda" and os.environ.get("CUBLAS_EMULATE_DOUBLE_PRECISION", "0") not in ("", "0"):
        raise ValueError(
            "CUBLAS_EMULATE_DOUBLE_PRECISION is set: float64 products would not be rounded as IEEE 754 requires, which "
            "every proof on a GPU relies on; unset it and start again"
        )


def matmul(A: Any, B: Any) -> Any:
    """Return A @ B in the full precision of its dtype, even if a user allowed torch fewer digits."""
    if A.dtype == torch.float32 and not float32_products_are_exact(A.device.type):
        return (A.double() @ B.double()).to(torch.float32)
    return A @ B


def power_of_two(exponent: Any, proven: bool) -> Any:
    """Return 2^exponent for exponents of at most 0, which are overwritten.

    If `proven`, the relative error is at most 4 · 2⁻⁵³, and values below 2⁻¹⁰²¹·⁵ are 0.
    """
    if not proven:
        return torch.exp2_(exponent)
    whole_part = torch.round(exponent)
    fraction = exponent.sub_(whole_part)  # exact
    value = torch.full_like(fraction, POWERS[-1])
    for power in reversed(POWERS[:-1]):
        value.mul_(fraction).add_(power)
    value.mul_(fraction).add_(1.0)
    too_small = ~(whole_part >= -1021.0)  # also true for NaN
    scale = (
        whole_part.clamp_(min=-1022.0).to(torch.int64).add_(1023).bitwise_left_shift_(52)
    )  # the bits of 2^whole_part
    return value.mul_(scale.view(torch.float64)).masked_fill_(too_small, 0.0)


def hyperbolic_tangent(t: Any, proven: bool) -> Any:
    """Return tanh(t); if `proven`, (1 − e)/(1 + e) with e = exp(−2|t|), with an error of at most 16 · 2⁻⁵³."""
    if not proven:
        return torch.tanh_(t)
    size = t.abs()
    e = power_of_two((-2.0 * math.log2(math.e)) * size, proven)
    # Near 0 the difference 1 − e would cancel; the first terms of the power series are more accurate there.
    square = size * size
    series = size * (1.0 + square * (-1.0 / 3.0 + square * (2.0 / 15.0 + square * (-17.0 / 315.0))))
    return torch.where(size < 2.0**-7, series, (1.0 - e) / (1.0 + e)) * torch.sign(t)
