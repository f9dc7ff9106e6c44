"""Work on many rows, a tile at a time, with smaller tiles if a device runs out of memory, and errors with the numbers.

torch frees the memory of a failed attempt only when its exception is gone, so that the next attempt is made outside of
`except`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mercer import _core
from mercer.places.torch.numbers import TILE_BYTES, torch

_OUT_OF_MEMORY = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
_LEAST_TILE = 1 << 20
# Parts of the messages of torch's CPU device, cuBLAS and cuSOLVER when an allocation fails.
_WORDS = ("can't allocate memory", "not enough memory", "_ALLOC_FAILED")


def tile_bytes(budget: int) -> int:
    """Bytes of a tile of kernel values within a budget: a quarter of it, between a minimum and TILE_BYTES."""
    return max(_LEAST_TILE, min(TILE_BYTES, budget // 4))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a device ran out of memory."""
    return isinstance(error, _OUT_OF_MEMORY | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _WORDS)
    )


def in_strips(
    n: int, row_bytes: int, work: Callable[[slice], None], tile: int = TILE_BYTES, device: Any = None
) -> None:
    """Call `work` on all rows, a strip at a time, and again with smaller strips if it runs out of memory.

    A device computes while the host submits more work. If a `device` is given, it is never more than two strips behind,
    because a call that waits for it cannot be interrupted.
    """
    step, start, events = max(1, tile // max(1, row_bytes)), 0, []
    while start < n:
        _core.check_stop()
        block = slice(start, min(n, start + step))
        if not _try_work(work, block, step):
            step = max(1, min(step, n - start) // 4)
            release()
            continue
        start = block.stop
        if device is not None and device.type == "cuda":
            events.append(torch.cuda.Event())
            events[-1].record(torch.cuda.current_stream(device))
            if len(events) > 2:
                events.pop(0).synchronize()


def _try_work(work: Callable[[slice], None], block: slice, step: int) -> bool:
    """Call `work` and return True; return False if it ran out of memory and a smaller strip is possible."""
    try:
        work(block)
    except Exception as error:
        if not is_out_of_memory(error) or step == 1:
            raise
        return False
    return True


def release() -> None:
    """Return memory that torch caches to the device."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def explain_shortage(purpose: str, n_bytes: int, device: Any, remedy: str) -> Iterator[None]:
    """Turn an out-of-memory error inside the context into a MemoryError that states the sizes and a remedy."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        free_text = ""
        if device.type == "cuda":
            bytes_left, total_bytes = torch.cuda.mem_get_info(device)
            free_text = f", where {bytes_left / 1e9:.1f} of {total_bytes / 1e9:.1f} GB are free"
        raise MemoryError(f"{purpose} needs {n_bytes / 1e9:.2g} GB on {device}{free_text}; {remedy}") from error


@contextmanager
def explain_matrix_shortage(n: int, dtype: Any, device: Any) -> Iterator[None]:
    """Explain a shortage as `explain_shortage` does, for K of n samples and a factor or a copy of the same size."""
    remedy = "use fewer samples, or NystromRLS, whose memory does not grow with their square"
    with explain_shortage(f"K of {n:,} samples and its factor", 2 * dtype.itemsize * n * n, device, remedy):
        yield
