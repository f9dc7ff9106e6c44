"""A sign of life on a terminal while something takes long; nothing in a pipe, or without the extra ``progress``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mercer.errors import MissingExtraError
from mercer.optional import require


@contextmanager
def waiting(text: str, quiet: bool = False) -> Iterator[None]:
    """Show ``text`` with a running clock on standard error while the block runs."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    try:
        progress = require("rich.progress", "a progress bar")
        console = require("rich.console", "a progress bar").Console(stderr=True)
    except MissingExtraError:
        yield
        return
    columns = (progress.SpinnerColumn(), progress.TextColumn(text), progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=console, transient=True) as bar:
        bar.add_task(text, total=None)
        yield
