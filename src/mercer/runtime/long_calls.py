"""Single long calls of LAPACK, which Ctrl-C cannot stop but can leave behind."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

# Seconds after which a waiting thread looks around: where a signal does not wake it, Ctrl-C takes that long.
WAKE_SECONDS = 0.05


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
