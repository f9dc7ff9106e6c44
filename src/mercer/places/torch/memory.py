"""Work on many rows, a tile at a time; where a device has no room for a tile, smaller ones, then an error with numbers.

torch frees what a failed attempt held when its exception is gone, so that attempts are made outside of `except`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mercer import _core
from mercer.places.torch.numbers import TILE_BYTES, torch

_NO_ROOM = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
_LEAST_TILE = 1 << 20
# What torch's CPU device, cuBLAS and cuSOLVER say where they could not allocate.
_WORDS = ("can't allocate memory", "not enough memory", "_ALLOC_FAILED")


def tile_bytes(budget: int) -> int:
    """Bytes of a tile of kernel values within a budget: a quarter of it, of which little else is needed at a time."""
    return max(_LEAST_TILE, min(TILE_BYTES, budget // 4))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device had no room."""
    return isinstance(error, _NO_ROOM | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _WORDS)
    )


def in_strips(
    n: int, row_bytes: int, work: Callable[[slice], None], tile: int = TILE_BYTES, device: Any = None
) -> None:
    """`work` on all rows, which may be called again for rows of which it failed.

    A device computes while this machine gives it more to do. Where one is named, it is never more than two strips
    behind: a call that waits for it cannot be interrupted.
    """
    step, start, begun = max(1, tile // max(1, row_bytes)), 0, []
    while start < n:
        _core.check_stop()
        some = slice(start, min(n, start + step))
        if not _done(work, some, step):
            step = max(1, min(step, n - start) // 4)
            release()
            continue
        start = some.stop
        if device is not None and device.type == "cuda":
            begun.append(torch.cuda.Event())
            begun[-1].record(torch.cuda.current_stream(device))
            if len(begun) > 2:
                begun.pop(0).synchronize()


def _done(work: Callable[[slice], None], some: slice, step: int) -> bool:
    try:
        work(some)
    except Exception as error:
        if not is_out_of_memory(error) or step == 1:
            raise
        return False
    return True


def release() -> None:
    """Give memory that torch holds for later back to the device."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def room_for(what: str, needed: int, device: Any, remedy: str) -> Iterator[None]:
    """MemoryError with the numbers where the device has no room for what is made here."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        free = ""
        if device.type == "cuda":
            left, present = torch.cuda.mem_get_info(device)
            free = f", of whose {present / 1e9:.1f} GB {left / 1e9:.1f} GB are free"
        raise MemoryError(f"{what} needs {needed / 1e9:.2g} GB on {device}{free}; {remedy}") from error


@contextmanager
def room_for_matrix(n: int, dtype: Any, device: Any) -> Iterator[None]:
    """`room_for` all of K, and as much again for what is made of it."""
    remedy = "give fewer samples, or NystromRLS, whose memory does not grow with their square"
    with room_for(f"K of {n:,} samples and its factor", 2 * dtype.itemsize * n * n, device, remedy):
        yield
