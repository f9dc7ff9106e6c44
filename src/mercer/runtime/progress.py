"""How far a long piece of work is: at most a line a second, to whoever wants to know.

`Reporter` is what the work talks to. It prints lines where `verbose` asks for them, and tells the display of `waiting`
where a command shows one: a bar where `rich` is installed, else one line with a clock. Both are on standard error, and
are wiped at the end. In a pipe there is none.
"""

from __future__ import annotations

import math
import re
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TextIO

from mercer.runtime.errors import MissingExtraError
from mercer.runtime.optional import require

# A command that is done before this shows nothing; then its line is rewritten once a second.
_FIRST_SECONDS, _SECONDS = 0.3, 1.0


@dataclass(frozen=True)
class Sign:
    """A sign of life: how far the work is in words, since when, and the share that is done, if it can be told."""

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
        step = 1 if left < 10 else 5
        return f"about {max(1, step * round(left / step))} s left"

    @property
    def line(self) -> str:
        return f"{self.seconds:7.1f} s  {self.words}{'  ' * bool(self.time_left)}{self.time_left}"


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
        # A pace that was seen for less than a second says little.
        if spent < 1.0 or before <= error:
            return None
        return spent / (spent + error * (now - then) / (before - error))


class Reporter:
    """Tells how far one piece of work is: to the display that is shown, else as lines where `verbose`, else nobody."""

    def __init__(self, verbose: bool) -> None:
        self._shown = _shown.get() or (Lines() if verbose else None)
        self._begun = self._next = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether somebody listens, and was told nothing for a second."""
        return self._shown is not None and time.monotonic() >= self._next

    def tell(self, words: str, share: float | None = None) -> None:
        """Say something now; `share` of the work is done, from which follows the time left."""
        if self._shown is not None:
            now = time.monotonic()
            self._next = now + 1.0
            self._shown.tell(Sign(words, now - self._begun, share))

    def part(self, words: str, share: float) -> None:
        """A share of one step of the work is done, which is said once a second."""
        if self.is_due:
            self.tell(f"{words}: {share:.0%}")

    def close(self, words: str) -> None:
        """The work is over, and this is what it reached."""
        self.tell(words)
        if isinstance(self._shown, Lines):
            self._shown.end()


class Lines:
    """One line a sign, or in a notebook one line that is rewritten."""

    def __init__(self, prefix: str = "[mercer]", stream: TextIO | None = None) -> None:
        self._prefix, self._stream = prefix, stream
        self._in_place, self._width = stream is None and in_notebook(), 0

    def tell(self, sign: Sign) -> None:
        self.print(sign.line)

    def print(self, words: str) -> None:
        line = f"{self._prefix} {words}"
        if self._in_place:
            print(f"\r{line.ljust(self._width)}", end="", flush=True)
        else:
            print(line, file=self._stream, flush=True)
        self._width = len(line)

    def end(self) -> None:
        """What is printed next begins a line."""
        if self._in_place and self._width:
            print(flush=True)


def in_notebook() -> bool:
    """Whether output goes to a notebook: IPython runs, and its kernel shows it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def waiting(text: str, quiet: bool = False, steps: int | None = None, verbose: bool = False) -> Iterator[Counted]:
    """Show ``text``, and how far the work in the block is, while it runs.

    With ``steps`` it counts the items of an iterable that the block passes through what it is given.
    """
    display = None if quiet else _display(text, steps, verbose)
    if display is None:
        yield iter
        return

    def counted(items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            yield item
            display.advance()

    token = _shown.set(display)
    try:
        display.begin()
        yield counted
    finally:
        _shown.reset(token)
        display.end()


def wipe_line() -> None:
    """Make room for a line that stays, such as a warning."""
    if _Line.now is not None:
        _Line.now.wipe()


def _display(text: str, steps: int | None, verbose: bool) -> Display | None:
    if verbose:
        return _StayingLines(text, steps)
    if not sys.stderr.isatty():
        return None
    try:
        return _Bar(text, steps)
    except MissingExtraError:
        return _Line(text, steps)


class _StayingLines(Lines):
    """Lines about a command, which `--verbose` asks for."""

    def __init__(self, text: str, steps: int | None) -> None:
        super().__init__("mercer:", sys.stderr)
        self._text, self._steps, self._done = text, steps, 0

    def begin(self) -> None:
        self.print(self._text)

    def advance(self) -> None:
        self._done += 1
        self.print(f"{self._done} of {self._steps} done")


class _Line:
    """One line, which a thread of its own rewrites every second: a call of the core may take longer than that."""

    now: _Line | None = None

    def __init__(self, text: str, steps: int | None) -> None:
        self._text, self._steps, self._done = text, steps, 0
        self._begun = self._told = time.monotonic()
        self._sign: Sign | None = None
        self._width = 0
        self._over, self._lock = threading.Event(), threading.Lock()
        self._clock = threading.Thread(target=self._keep_time, daemon=True)

    def begin(self) -> None:
        _Line.now = self
        self._clock.start()

    def tell(self, sign: Sign) -> None:
        self._sign, self._told = sign, time.monotonic()

    def advance(self) -> None:
        self._done += 1

    def end(self) -> None:
        _Line.now = None
        self._over.set()
        self._clock.join()
        self.wipe()

    def wipe(self) -> None:
        with self._lock:
            if self._width:
                sys.stderr.write(f"\r{' ' * self._width}\r")
                sys.stderr.flush()
            self._width = 0

    def _keep_time(self) -> None:
        pause = _FIRST_SECONDS
        while not self._over.wait(pause):
            self._draw()
            pause = _SECONDS

    def _draw(self) -> None:
        sign, now = self._sign, time.monotonic()
        clock = f"{now - self._begun:.0f} s"
        if self._steps is not None:
            fields = [self._text, f"{self._done} of {self._steps} done", clock]
        elif sign is None:
            fields = [self._text, clock]
        else:
            # What was foretold longer ago has been overtaken, by the certificate's pass for example.
            recent = now - self._told < 3.0
            fields = [clock, *([sign.time_left] if recent and sign.time_left else [])]
        fields += _short(sign.words) if sign is not None else []
        line = _fitting(fields, shutil.get_terminal_size().columns - 1)
        encoding = sys.stderr.encoding or "ascii"
        line = line.encode(encoding, "replace").decode(encoding)
        with self._lock:
            sys.stderr.write(f"\r{line.ljust(self._width)}")
            sys.stderr.flush()
            self._width = len(line)


class _Bar:
    """The bar of `rich`."""

    def __init__(self, text: str, steps: int | None) -> None:
        rich = require("rich.progress", "a progress bar")
        columns = [rich.SpinnerColumn(), rich.TextColumn("{task.description}", markup=False)]
        columns += [rich.BarColumn(bar_width=20), rich.TimeElapsedColumn()]
        if steps is not None:
            columns.insert(3, rich.MofNCompleteColumn())
        console = require("rich.console", "a progress bar").Console(stderr=True)
        self._text, self._steps = text, steps
        self._bar = rich.Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task(text, total=steps)
        self.begin, self.end = self._bar.start, self._bar.stop

    def tell(self, sign: Sign) -> None:
        words = "  ".join([*_short(sign.words), *([sign.time_left] if sign.time_left else [])])
        if self._steps is not None:
            self._bar.update(self._task, description=f"{self._text}  {words}")
        elif sign.share is None:
            self._bar.update(self._task, description=words)
        else:
            self._bar.update(self._task, description=words, total=1.0, completed=sign.share)

    def advance(self) -> None:
        self._bar.advance(self._task)


Counted = Callable[[Iterable[Any]], Iterator[Any]]
Display = _StayingLines | _Line | _Bar
# The display of the command that runs, if there is one.
_shown: ContextVar[Display | None] = ContextVar("shown", default=None)


def _short(words: str) -> list[str]:
    """The fields of a line, with numbers of two digits."""
    rounded = re.sub(r"\d\.\d+e[-+]\d+", lambda number: f"{float(number[0]):.2g}", words)
    return [re.sub(r"\s+", " ", field) for field in re.split(r"\s{2,}(?=[\d,]+ |[a-z])", rounded.strip())]


def _fitting(fields: list[str], width: int) -> str:
    """As many fields as the width has room for; none is cut, but the first."""
    line = fields[0][:width]
    for field in fields[1:]:
        if len(line) + 2 + len(field) > width:
            break
        line = f"{line}  {field}"
    return line
