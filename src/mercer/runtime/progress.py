"""Progress reports of long computations, at most one a second.

A computation reports to a `Reporter`. Within `waiting`, which the commands use, the report goes to a display on
standard error: a progress bar if `rich` is installed, otherwise one line with a clock. The display is erased at the
end, and is not shown if standard error is not a terminal. Elsewhere reports are printed as lines if `verbose` is set.
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

# Seconds before the line of a command first appears, and between two updates of it.
_FIRST_SECONDS, _SECONDS = 0.3, 1.0


@dataclass(frozen=True)
class StatusLine:
    """One progress report: a description, the seconds since the start, and the share of the work done, if known."""

    words: str
    seconds: float
    share: float | None = None

    @property
    def time_left(self) -> str:
        """Estimated time left, such as "about 3 min left", rounded coarsely; empty if nothing is done or known."""
        if not self.share:
            return ""
        seconds_left = self.seconds * (1 / self.share - 1)
        for unit, size in (("h", 3600.0), ("min", 60.0)):
            if seconds_left >= 1.5 * size:
                return f"about {seconds_left / size:.{0 if seconds_left >= 10 * size else 1}f} {unit} left"
        step = 1 if seconds_left < 10 else 5
        return f"about {max(1, step * round(seconds_left / step))} s left"

    @property
    def line(self) -> str:
        """Text of the report: seconds, description and time left."""
        return f"{self.seconds:7.1f} s  {self.words}{'  ' * bool(self.time_left)}{self.time_left}"


class ProgressEstimate:
    """Estimate of the share of a solve that is done.

    The error is assumed to keep falling exponentially, at the rate of the last half of the elapsed time.
    """

    def __init__(self, start_time: float) -> None:
        self._start_time = start_time
        self._log_errors: deque[tuple[float, float]] = deque()  # times, and logarithms of the relative error

    def share(self, now: float, error_ratio: float) -> float | None:
        """Return the share of the work done, None if unknown; `error_ratio` is error / tolerance, NaN if unknown."""
        if not 1 < error_ratio < math.inf:
            return None
        elapsed, error = now - self._start_time, math.log(error_ratio)
        self._log_errors.append((now, error))
        while len(self._log_errors) > 2 and self._log_errors[1][0] <= self._start_time + 0.5 * elapsed:
            self._log_errors.popleft()
        first_time, first_error = self._log_errors[0]
        # A rate that was observed for less than a second is not reliable.
        if elapsed < 1.0 or first_error <= error:
            return None
        return elapsed / (elapsed + error * (now - first_time) / (first_error - error))


class Reporter:
    """Reports the progress of one computation to the current display, or as printed lines if `verbose` is set."""

    def __init__(self, verbose: bool) -> None:
        self._display = _current_display.get() or (Lines() if verbose else None)
        self._start_time = self._next_time = time.monotonic()

    @property
    def shows(self) -> bool:
        """True if reports are shown."""
        return self._display is not None

    @property
    def is_due(self) -> bool:
        """True if reports are shown, and the last one is at least a second old."""
        return self._display is not None and time.monotonic() >= self._next_time

    def report(self, words: str, share: float | None = None) -> None:
        """Show a report now; `share` is the share of the work done, from which the time left is estimated."""
        if self._display is not None:
            now = time.monotonic()
            self._next_time = now + 1.0
            self._display.show(StatusLine(words, now - self._start_time, share))

    def report_share(self, words: str, share: float) -> None:
        """Show the share of one step of the work that is done, once a second at most."""
        if self.is_due:
            self.report(f"{words}: {share:.0%}")

    def close(self, words: str) -> None:
        """Show the last report of the computation."""
        self.report(words)
        if isinstance(self._display, Lines):
            self._display.end()


class Lines:
    """Display that prints one line for each report, or in a notebook one line that is rewritten."""

    def __init__(self, prefix: str = "[mercer]", stream: TextIO | None = None) -> None:
        self._prefix, self._stream = prefix, stream
        self._in_place, self._width = stream is None and in_notebook(), 0

    def show(self, status: StatusLine) -> None:
        self.print(status.line)

    def print(self, words: str) -> None:
        """Print a line, or rewrite the last one in a notebook."""
        line = f"{self._prefix} {words}"
        if self._in_place:
            print(f"\r{line.ljust(self._width)}", end="", flush=True)
        else:
            print(line, file=self._stream, flush=True)
        self._width = len(line)

    def end(self) -> None:
        """Finish a line that was rewritten, so that the next output begins a new line."""
        if self._in_place and self._width:
            print(flush=True)


def in_notebook() -> bool:
    """Return whether output goes to a notebook: IPython runs with a kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def waiting(text: str, quiet: bool = False, steps: int | None = None, verbose: bool = False) -> Iterator[Counted]:
    """Show ``text`` and the progress of the block while it runs.

    The block is given a function that passes on an iterable; with ``steps``, the display counts its items.
    """
    display = None if quiet else _display(text, steps, verbose)
    if display is None:
        yield iter
        return

    def counted(items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            yield item
            display.advance()

    token = _current_display.set(display)
    try:
        display.begin()
        yield counted
    finally:
        _current_display.reset(token)
        display.end()


def wipe_line() -> None:
    """Erase the status line before a permanent line, such as a warning, is printed."""
    if _ClockLine.current is not None:
        _ClockLine.current.wipe()


def _display(text: str, steps: int | None, verbose: bool) -> Display | None:
    """Return the display for a command; None if standard error is not a terminal."""
    if verbose:
        return _VerboseLines(text, steps)
    if not sys.stderr.isatty():
        return None
    try:
        return _Bar(text, steps)
    except MissingExtraError:
        return _ClockLine(text, steps)


class _VerboseLines(Lines):
    """Permanent lines of a command with `--verbose`."""

    def __init__(self, text: str, steps: int | None) -> None:
        super().__init__("mercer:", sys.stderr)
        self._text, self._steps, self._n_done = text, steps, 0

    def begin(self) -> None:
        self.print(self._text)

    def advance(self) -> None:
        """Count one more item as done."""
        self._n_done += 1
        self.print(f"{self._n_done} of {self._steps} done")


class _ClockLine:
    """One status line, rewritten every second by a separate thread, since a call of the core may take longer."""

    current: _ClockLine | None = None

    def __init__(self, text: str, steps: int | None) -> None:
        self._text, self._steps, self._n_done = text, steps, 0
        self._start_time = self._update_time = time.monotonic()
        self._status: StatusLine | None = None
        self._width = 0
        self._end_event, self._lock = threading.Event(), threading.Lock()
        self._clock = threading.Thread(target=self._keep_time, daemon=True)

    def begin(self) -> None:
        """Show the line, and start the thread that redraws it."""
        _ClockLine.current = self
        self._clock.start()

    def show(self, status: StatusLine) -> None:
        """Store a report, which the line shows when it is redrawn."""
        self._status, self._update_time = status, time.monotonic()

    def advance(self) -> None:
        """Count one more item as done."""
        self._n_done += 1

    def end(self) -> None:
        """Stop the thread, and erase the line."""
        _ClockLine.current = None
        self._end_event.set()
        self._clock.join()
        self.wipe()

    def wipe(self) -> None:
        """Erase the line."""
        with self._lock:
            if self._width:
                sys.stderr.write(f"\r{' ' * self._width}\r")
                sys.stderr.flush()
            self._width = 0

    def _keep_time(self) -> None:
        """Redraw the line every second until the command ends."""
        pause = _FIRST_SECONDS
        while not self._end_event.wait(pause):
            self._draw()
            pause = _SECONDS

    def _draw(self) -> None:
        """Write the line with the current time and the last report."""
        status, now = self._status, time.monotonic()
        clock = f"{now - self._start_time:.0f} s"
        if self._steps is not None:
            fields = [self._text, f"{self._n_done} of {self._steps} done", clock]
        elif status is None:
            fields = [self._text, clock]
        else:
            # An older estimate of the time left is out of date, for example while the certificate is computed.
            is_recent = now - self._update_time < 3.0
            fields = [clock, *([status.time_left] if is_recent and status.time_left else [])]
        fields += _short_fields(status.words) if status is not None else []
        line = _fit_fields(fields, shutil.get_terminal_size().columns - 1)
        encoding = sys.stderr.encoding or "ascii"
        line = line.encode(encoding, "replace").decode(encoding)
        with self._lock:
            sys.stderr.write(f"\r{line.ljust(self._width)}")
            sys.stderr.flush()
            self._width = len(line)


class _Bar:
    """Progress bar of the package `rich`."""

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

    def show(self, status: StatusLine) -> None:
        """Show a report beside the bar."""
        words = "  ".join([*_short_fields(status.words), *([status.time_left] if status.time_left else [])])
        if self._steps is not None:
            self._bar.update(self._task, description=f"{self._text}  {words}")
        elif status.share is None:
            self._bar.update(self._task, description=words)
        else:
            self._bar.update(self._task, description=words, total=1.0, completed=status.share)

    def advance(self) -> None:
        """Count one more item as done."""
        self._bar.advance(self._task)


Counted = Callable[[Iterable[Any]], Iterator[Any]]
Display = _VerboseLines | _ClockLine | _Bar
# Display of the command that is running, if there is one.
_current_display: ContextVar[Display | None] = ContextVar("current_display", default=None)


def _short_fields(words: str) -> list[str]:
    """Split a report into its fields, with numbers rounded to two digits."""
    rounded = re.sub(r"\d\.\d+e[-+]\d+", lambda number: f"{float(number[0]):.2g}", words)
    return [re.sub(r"\s+", " ", field) for field in re.split(r"\s{2,}(?=[\d,]+ |[a-z])", rounded.strip())]


def _fit_fields(fields: list[str], width: int) -> str:
    """Join as many fields as the width holds; only the first field is ever cut."""
    line = fields[0][:width]
    for field in fields[1:]:
        if len(line) + 2 + len(field) > width:
            break
        line = f"{line}  {field}"
    return line
