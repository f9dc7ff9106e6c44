"""Long LAPACK calls, which cannot be interrupted: let Ctrl-C abandon them, and refuse them if a deadline would pass."""

from __future__ import annotations

import contextvars
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.samples.arrays import Floats

# Polling interval of a waiting thread: where a signal does not wake the thread, Ctrl-C takes effect after this time.
WAKE_SECONDS = 0.05
# Rows of the first leading part of a matrix that is decomposed to estimate the time for the whole matrix.
_FIRST_ROWS = 256
# Share of the remaining time from which on the time of a leading part is a reliable estimate: such a part has about a
# quarter of the rows for which there would be time.
_RELIABLE_SHARE = 0.02


def call_interruptibly(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Make a call in another thread, so that Ctrl-C takes effect at once; return or raise what the call does.

    After Ctrl-C the call runs to its end in its thread, uses memory and processors until then, and its result is
    dropped. Python delivers Ctrl-C to the main thread only, so that any other thread makes the call directly.
    """
    if threading.current_thread() is not threading.main_thread():
        return call(*args, **options)
    results: list[Any] = []
    errors: list[BaseException] = []
    has_ended = threading.Event()

    def run() -> None:
        try:
            results.append(call(*args, **options))
        except BaseException as error:  # raised again in the calling thread
            errors.append(error)
        finally:
            has_ended.set()

    context = contextvars.copy_context()  # NumPy's error state, for example
    threading.Thread(target=context.run, args=(run,), daemon=True, name="mercer-long-call").start()
    while not has_ended.wait(WAKE_SECONDS):
        pass
    if errors:
        raise errors[0]
    return results[0]


def check_decomposition_time(deadline: float, A: Floats, decompose: Callable[[Floats], object]) -> None:
    """Raise a TimeoutError if a decomposition of A would end after the deadline, since LAPACK cannot be interrupted.

    The time is extrapolated, with the cube of the size, from decompositions of copies of leading parts of A.
    """
    share = min(1.0, _FIRST_ROWS / max(*A.shape, 1))
    while deadline < math.inf and share < 0.5:
        part = A[: math.ceil(share * A.shape[0]), : math.ceil(share * A.shape[1])].copy()
        start = time.monotonic()
        decompose(part)
        seconds = time.monotonic() - start
        estimate = seconds / share**3
        if estimate <= deadline - start:
            return
        if seconds > _RELIABLE_SHARE * (deadline - start):
            raise TimeoutError(
                f"max_time would pass before there is a solution: decomposing a matrix of {A.shape[0]:,} × "
                f"{A.shape[1]:,} takes about {estimate:.1g} s on this host, and cannot be interrupted. Raise max_time, "
                "or use another solver, NystromRLS or fewer samples"
            )
        share *= 2
