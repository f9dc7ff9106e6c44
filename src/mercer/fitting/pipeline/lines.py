"""Where a fit's lines go: printed one below the other, rewritten in place in a notebook, or to whoever listens."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# A pace that was seen for less time than this says little.
_FIRST_SECONDS = 1.0


@dataclass(frozen=True)
class Sign:
    """A sign of life: how far the solver is in words, since when, and the share that is done, if it can be told."""

    words: str
    seconds: float
    share: float | None = None

    @property
    def time_left(self) -> str:
        """In words, rounded like the guess that it is; empty where nothing is known."""
        if self.share is None:
            return ""
        left = self.seconds * (1 / self.share - 1)
        for unit, size in (("h", 3600.0), ("min", 60.0)):
            if left >= 1.5 * size:
                return f"about {left / size:.{0 if left >= 10 * size else 1}f} {unit} left"
        return f"about {_two_digits(left)} s left"


def _two_digits(seconds: float) -> int:
    step = 1 if seconds < 10 else 5
    return max(1, step * round(seconds / step))


class Pace:
    """How much of a solve is done: its error falls exponentially, it is assumed, as in the last half of its time."""

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._seen: deque[tuple[float, float]] = deque()

    def share(self, now: float, missed: float) -> float | None:
        """`missed` is how many times too large the error is now; NaN where nobody knows."""
        if not 1 < missed < math.inf:
            return None
        spent, error = now - self._begun, math.log(missed)
        self._seen.append((now, error))
        while len(self._seen) > 2 and self._seen[1][0] <= self._begun + 0.5 * spent:
            self._seen.popleft()
        then, before = self._seen[0]
        if spent < _FIRST_SECONDS or before <= error:
            return None
        return spent / (spent + error * (now - then) / (before - error))


Listener = Callable[[Sign], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def told_to(listener: Listener) -> Iterator[None]:
    """Fits that begin in this block tell `listener` how far they are, whatever their `verbose` says."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Lines:
    """One line a sign, or in a notebook one line that is rewritten."""

    def __init__(self) -> None:
        self._in_place = in_notebook()
        self._width = 0

    def __call__(self, sign: Sign) -> None:
        line = f"[mercer] {sign.seconds:7.1f} s  {sign.words}{'  ' * bool(sign.share)}{sign.time_left}"
        if self._in_place:
            print(f"\r{line.ljust(self._width)}", end="", flush=True)
        else:
            print(line, flush=True)
        self._width = len(line)

    def close(self) -> None:
        """The fit is over: what is printed next begins a line."""
        if self._in_place and self._width:
            print(flush=True)


def in_notebook() -> bool:
    """Whether output goes to a notebook: IPython runs, and its kernel shows it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def listener_for(verbose: bool) -> Listener | None:
    """Whom a fit that begins now tells how far it is; None where it is nobody."""
    return _listener.get() or (Lines() if verbose else None)
