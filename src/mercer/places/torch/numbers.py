"""Numbers between this machine and a device, and functions on a device whose errors are known.

torch's exp and tanh have no guaranteed bounds on a GPU. Those here use additions, multiplications and divisions alone,
which are rounded correctly everywhere.
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
# Bytes of one tile of kernel values: large enough that starting a kernel costs nothing beside it, small beside any
# device's memory.
TILE_BYTES = 256 << 20
# Coefficients of (2^f − 1)/f for |f| ≤ ½, in rising powers: (ln 2)^(k+1)/(k+1)!. What the sum leaves out is below
# 2⁻⁵⁷ of 1.
POWERS = [math.log(2.0) ** (k + 1) / math.factorial(k + 1) for k in range(14)]


def to_device(values: Any, like: Any, dtype: Any = None) -> Any:
    """An array of this machine as a tensor where another one is."""
    values = np.require(values, requirements=["C", "W"])  # torch warns of memory that may not be written
    return torch.as_tensor(values, device=like.device, dtype=dtype)


def to_host(tensor: Any) -> Any:
    """A tensor as an array of this machine."""
    return tensor.detach().cpu().numpy()


def floats(tensor: Any) -> Floats:
    """A tensor as a float64 array of this machine."""
    return np.asarray(to_host(tensor.to(torch.float64)))


class Copy:
    """A tensor on its way to this machine, while its device goes on with what it is told next."""

    def __init__(self, tensor: Any) -> None:
        self._there, self._done = tensor, None
        if tensor.device.type == "cuda":
            self._there = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
            self._there.copy_(tensor, non_blocking=True)
            self._done = torch.cuda.Event()
            self._done.record(torch.cuda.current_stream(tensor.device))

    def array(self) -> Any:
        """It, once it is here; of this machine's tensor the memory itself."""
        if self._done is not None:
            self._done.synchronize()
        return to_host(self._there)


def places(rows: Indices, like: Any) -> Any:
    """Indices of this machine on a device."""
    return to_device(rows.astype(np.int64, copy=False), like)


def dtype_of(precision: Precision) -> Any:
    """torch's name of a precision."""
    return DTYPES[np.dtype(precision)]


def float32_products_are_exact(device: str = "cpu") -> bool:
    """Whether torch multiplies float32 matrices in float32; a user may have allowed fewer digits."""
    if torch.is_autocast_enabled(device):  # which leaves float64 alone
        return False
    try:
        return str(torch.get_float32_matmul_precision()) == "highest"
    except RuntimeError:  # allowed for one backend alone, as torch.backends.cuda.matmul.fp32_precision does
        return False


def refuse_emulation(device: Any) -> None:
    """cuBLAS may be told to make float64 products of integers, with errors that nobody bounds number by number."""
    if device.type == "cuda" and os.environ.get("CUBLAS_EMULATE_DOUBLE_PRECISION", "0") not in ("", "0"):
        raise ValueError(
            "CUBLAS_EMULATE_DOUBLE_PRECISION is set: float64 products would not be rounded as IEEE 754 says, which "
            "every proof on a GPU rests on; start without it"
        )


def matmul(A: Any, B: Any) -> Any:
    """A @ B with the digits of its type, whatever a user allowed torch to do."""
    if A.dtype == torch.float32 and not float32_products_are_exact(A.device.type):
        return (A.double() @ B.double()).to(torch.float32)
    return A @ B


def power_of_two(exponent: Any, proven: bool) -> Any:
    """2^exponent for exponents of at most 0, which are overwritten.

    If `proven`, within 4 units of 2⁻⁵³ of it, and 0 where it is below 2⁻¹⁰²¹·⁵.
    """
    if not proven:
        return torch.exp2_(exponent)
    whole = torch.round(exponent)
    rest = exponent.sub_(whole)  # exact
    value = torch.full_like(rest, POWERS[-1])
    for power in reversed(POWERS[:-1]):
        value.mul_(rest).add_(power)
    value.mul_(rest).add_(1.0)
    beyond = ~(whole >= -1021.0)  # and NaN
    scale = whole.clamp_(min=-1022.0).to(torch.int64).add_(1023).bitwise_left_shift_(52)
    return value.mul_(scale.view(torch.float64)).masked_fill_(beyond, 0.0)  # by the bits of 2^whole


def hyperbolic_tangent(t: Any, proven: bool) -> Any:
    """tanh(t); if `proven`, (1 − e)/(1 + e) with e = exp(−2|t|), within 16 units of 2⁻⁵³."""
    if not proven:
        return torch.tanh_(t)
    size = t.abs()
    e = power_of_two((-2.0 * math.log2(math.e)) * size, proven)
    # Near 0 the difference 1 − e would cancel; there the sum of the first powers is nearer.
    square = size * size
    series = size * (1.0 + square * (-1.0 / 3.0 + square * (2.0 / 15.0 + square * (-17.0 / 315.0))))
    return torch.where(size < 2.0**-7, series, (1.0 - e) / (1.0 + e)) * torch.sign(t)
