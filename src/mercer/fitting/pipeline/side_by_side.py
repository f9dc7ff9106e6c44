"""Calls in several threads that end together: if one fails, or Ctrl-C is pressed, the others are told to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from mercer import _core

# Seconds after which the waiting thread looks around. Where a signal does not wake it, Ctrl-C takes that long.
_WAKE_SECONDS = 0.05

T = TypeVar("T")
R = TypeVar("R")


def map_side_by_side(call: Callable[[T], R], items: Iterable[T], n_threads: int) -> list[R]:
    """What the calls return, `n_threads` of them at a time."""
    flag = _core.StopFlag()
    threads = ThreadPoolExecutor(n_threads, initializer=flag.watch)
    try:
        calls = [threads.submit(call, item) for item in items]
        left = set(calls)
        while left:
            done, left = wait(left, _WAKE_SECONDS, FIRST_EXCEPTION)
            for one in done:
                one.result()  # raises what the call raised
            _core.check_stop()  # this thread may itself work for a fit that has ended
        return [one.result() for one in calls]
    finally:
        flag.raise_()
        threads.shutdown(cancel_futures=True)
