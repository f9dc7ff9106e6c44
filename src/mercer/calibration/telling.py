"""How far a calibration is: a line for each fold that is done."""

from __future__ import annotations

import time

from mercer.fitting.pipeline.lines import Lines, Sign, listener_for


class FoldLines:
    """Told of every fold; prints only if it is asked to."""

    def __init__(self, verbose: bool, n_folds: int) -> None:
        self._listener, self._n, self._done = listener_for(verbose), n_folds, 0
        self._begun = time.monotonic()

    def done(self, n_folds: int = 1) -> None:
        """So many more folds are done."""
        self._done += n_folds
        if self._listener is not None:
            words = f"{self._done} of {self._n} folds of the calibration"
            self._listener(Sign(words, time.monotonic() - self._begun, self._done / self._n))
            if self._done >= self._n and isinstance(self._listener, Lines):
                self._listener.close()
