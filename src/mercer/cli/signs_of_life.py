"""What a person at a terminal sees while a command works: one line with a clock, or a bar where `rich` is installed.

The line is on standard error and is wiped at the end, so that nothing of it is left. In a pipe there is none, unless
--verbose asks for lines that stay.
"""

from __future__ import annotations

import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from mercer.errors import MissingExtraError
from mercer.optional import require

if TYPE_CHECKING:
    from mercer.fitting.pipeline.lines import Sign

Counted = Callable[[Iterable[Any]], Iterator[Any]]
# A command that is done before this shows nothing.
_FIRST_SECONDS = 0.3
_SECONDS = 1.0
# What was foretold longer ago than this has been overtaken, by the certificate's pass for example.
_RECENT_SECONDS = 3.0


@contextmanager
def waiting(text: str, quiet: bool = False, steps: int | None = None, verbose: bool = False) -> Iterator[Counted]:
    """Show ``text``, and how far the fits of the block are, while it runs.

    With ``steps`` it counts the items of an iterable that the block passes through what it is given.
    """
    shown = None if quiet else _display(text, steps, verbose)
    if shown is None:
        yield iter
        return
    from mercer.fitting.pipeline.lines import told_to

    def counted(items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            yield item
            shown.advance()

    try:
        shown.begin()
        with told_to(shown.tell):
            yield counted
    finally:
        shown.end()


def wipe_line() -> None:
    """Make room for a line that stays, such as a warning."""
    if _Line.shown is not None:
        _Line.shown.wipe()


class _Display(Protocol):
    def begin(self) -> None: ...
    def tell(self, sign: Sign) -> None: ...
    def advance(self) -> None: ...
    def end(self) -> None: ...


def _display(text: str, steps: int | None, verbose: bool) -> _Display | None:
    if verbose:
        return _Lines(text, steps)
    if not sys.stderr.isatty():
        return None
    try:
        return _Bar(text, steps)
    except MissingExtraError:
        return _Line(text, steps)


class _Lines:
    """Lines that stay."""

    def __init__(self, text: str, steps: int | None) -> None:
        self._text, self._steps, self._done = text, steps, 0

    def begin(self) -> None:
        print(f"mercer: {self._text}", file=sys.stderr, flush=True)

    def tell(self, sign: Sign) -> None:
        print(f"mercer: {sign.seconds:7.1f} s  {_filled(sign.words, sign.time_left)}", file=sys.stderr, flush=True)

    def advance(self) -> None:
        self._done += 1
        print(f"mercer: {self._done} of {self._steps} done", file=sys.stderr, flush=True)

    def end(self) -> None:
        pass


class _Line:
    """One line, which a thread of its own rewrites every second: a call of the core may take longer than that."""

    shown: _Line | None = None

    def __init__(self, text: str, steps: int | None) -> None:
        self._text, self._steps, self._done = text, steps, 0
        self._begun = self._told = time.monotonic()
        self._sign: Sign | None = None
        self._width = 0
        self._over, self._lock = threading.Event(), threading.Lock()
        self._clock = threading.Thread(target=self._keep_time, daemon=True)

    def begin(self) -> None:
        _Line.shown = self
        self._clock.start()

    def tell(self, sign: Sign) -> None:
        self._sign, self._told = sign, time.monotonic()

    def advance(self) -> None:
        self._done += 1

    def end(self) -> None:
        _Line.shown = None
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
            recent = now - self._told < _RECENT_SECONDS
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
        progress = require("rich.progress", "a progress bar")
        console = require("rich.console", "a progress bar").Console(stderr=True)
        columns = [progress.SpinnerColumn(), progress.TextColumn("{task.description}", markup=False)]
        columns += [progress.BarColumn(bar_width=20), progress.TimeElapsedColumn()]
        if steps is not None:
            columns.insert(3, progress.MofNCompleteColumn())
        self._text, self._steps = text, steps
        self._bar = progress.Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task(text, total=steps)

    def begin(self) -> None:
        self._bar.start()

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

    def end(self) -> None:
        self._bar.stop()


def _short(words: str) -> list[str]:
    """The fields of a line, with numbers of two digits."""
    rounded = re.sub(r"\d\.\d+e[-+]\d+", lambda number: f"{float(number[0]):.2g}", words)
    return [re.sub(r"\s+", " ", field) for field in re.split(r"\s{2,}(?=[\d,]+ |[a-z])", rounded.strip())]


def _filled(*fields: str) -> str:
    return "  ".join(field for field in fields if field)


def _fitting(fields: list[str], width: int) -> str:
    """As many fields as the width has room for; none is cut, but the first."""
    line = fields[0][:width]
    for field in fields[1:]:
        if len(line) + 2 + len(field) > width:
            break
        line = f"{line}  {field}"
    return line
