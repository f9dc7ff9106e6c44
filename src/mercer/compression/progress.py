"""What a compression says while it works: a line a second."""

from __future__ import annotations

import time

from mercer.fitting.pipeline.lines import Lines, Sign, listener_for


class Progress:
    """Lines about one compression, printed or told to whoever listens."""

    def __init__(self, verbose: bool) -> None:
        self._listener = listener_for(verbose)
        self._begun = time.monotonic()
        self._next_line = self._begun

    def __call__(self, words: str) -> None:
        """Something begins."""
        self._tell(words)

    def share(self, words: str, share: float) -> None:
        """So much of something is done."""
        if self._listener is not None and time.monotonic() >= self._next_line:
            self._tell(f"{words}: {share:.0%}")

    def close(self, words: str) -> None:
        """All is done."""
        self._tell(words)
        if isinstance(self._listener, Lines):
            self._listener.close()

    def _tell(self, words: str) -> None:
        if self._listener is not None:
            now = time.monotonic()
            self._next_line = now + 1.0
            self._listener(Sign(words, now - self._begun))
