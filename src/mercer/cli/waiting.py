"""A sign of life on a terminal while something takes long; nothing in a pipe, or without the extra ``progress``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mercer.errors import MissingExtraError
from mercer.optional import require

Counted = Callable[[Iterable[Any]], Iterator[Any]]


@contextmanager
def waiting(text: str, quiet: bool = False, steps: int | None = None) -> Iterator[Counted]:
    """Show ``text`` with a running clock on standard error while the block runs.

    With ``steps`` it is a bar, which moves on with every item of an iterable that the block passes through what it is
    given. A fit has no such bar: nobody knows how many steps it will take.
    """
    if quiet or not sys.stderr.isatty():
        yield iter
        return
    try:
        progress = require("rich.progress", "a progress bar")
        console = require("rich.console", "a progress bar").Console(stderr=True)
    except MissingExtraError:
        yield iter
        return
    columns = [progress.SpinnerColumn(), progress.TextColumn(text), progress.TimeElapsedColumn()]
    if steps is not None:
        columns[2:2] = [progress.BarColumn(), progress.MofNCompleteColumn()]
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(text, total=steps)

        def counted(items: Iterable[Any]) -> Iterator[Any]:
            for item in items:
                yield item
                bar.advance(task)

        yield counted
