"""How far a calibration is: a line for each fold that is done."""

from __future__ import annotations

from mercer.progress import Reporter


class FoldLines:
    """Told of every fold; prints only if it is asked to."""

    def __init__(self, verbose: bool, n_folds: int) -> None:
        self._reporter, self._n, self._done = Reporter(verbose), n_folds, 0

    def done(self, n_folds: int = 1) -> None:
        """`n_folds` more folds are done."""
        self._done += n_folds
        words = f"{self._done} of {self._n} folds of the calibration"
        if self._done < self._n:
            self._reporter.tell(words, self._done / self._n)
        else:
            self._reporter.close(words)
