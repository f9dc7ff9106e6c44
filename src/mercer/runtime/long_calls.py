"""Single long calls of LAPACK: Ctrl-C cannot stop them but can leave them behind, and a deadline forbids them."""

from __future__ import annotations

import contextvars
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.samples.arrays import Floats

# Seconds after which a waiting thread looks around: where a signal does not wake it, Ctrl-C takes that long.
WAKE_SECONDS = 0.05
# The first part of a matrix that is decomposed to foretell the time of the whole has at most this many rows.
_FIRST_ROWS = 256
# A part that takes this share of the time left foretells the whole well: it is a quarter as long as what would fit.
_TELLING_SHARE = 0.02


def abandonable(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What `call` returns or raises; Ctrl-C is heard at once, and the call then ends unheard in a thread of its own.

    Until it has ended it keeps its memory and its processors busy. Only the main thread hears Ctrl-C, so that other
    threads make the call themselves.
    """
    if threading.current_thread() is not threading.main_thread():
        return call(*args, **options)
    found: list[Any] = []
    failed: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            found.append(call(*args, **options))
        except BaseException as error:  # whatever it is, it belongs to the caller
            failed.append(error)
        finally:
            ended.set()

    context = contextvars.copy_context()  # such as NumPy's error state
    threading.Thread(target=context.run, args=(run,), daemon=True, name="mercer-long-call").start()
    while not ended.wait(WAKE_SECONDS):
        pass
    if failed:
        raise failed[0]
    return found[0]


def expect_in_time(deadline: float, A: Floats, decompose: Callable[[Floats], object]) -> None:
    """Refuse a decomposition of A that would end after the deadline, since LAPACK cannot be interrupted.

    Its time grows with the cube of A's size, and is measured on copies of leading parts of A.
    """
    share = min(1.0, _FIRST_ROWS / max(*A.shape, 1))
    while deadline < math.inf and share < 0.5:
        part = A[: math.ceil(share * A.shape[0]), : math.ceil(share * A.shape[1])].copy()
        begun = time.monotonic()
        decompose(part)
        taken = time.monotonic() - begun
        whole = taken / share**3
        if whole <= deadline - begun:
            return
        if taken > _TELLING_SHARE * (deadline - begun):
            raise TimeoutError(
                f"max_time would have passed before there was a solution: decomposing a matrix of {A.shape[0]:,} × "
                f"{A.shape[1]:,} takes about {whole:.1g} s here, and cannot be ended early. Raise max_time, or use "
                "another solver, NystromRLS or fewer samples"
            )
        share *= 2
