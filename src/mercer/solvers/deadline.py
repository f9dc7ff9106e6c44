"""How `max_time` holds for the whole fit, in solvers that cannot be ended at any point.

`ProofTime` keeps back the time that the certificate will take: it computes K times the coefficients that are not zero.
`in_time` raises the error of solvers that have no solution to show before they end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mercer import _core
from mercer.places.gram import Gram
from mercer.samples.arrays import Floats
from mercer.solvers.solution import Stop

# A sample of kernel values is enlarged until it takes this share of the time that is left, within these seconds. What a
# call costs besides its values would count for every one of them in a smaller sample (chi2 on sparse rows: 5 ms
# foretell fifty times the true time).
_SAMPLE_SHARE = 0.01
_SAMPLE_SECONDS = (0.005, 0.1)
# The certificate's pass may be repeated in part in a higher precision, and other programs come and go.
_CAUTION = 1.3

# Work without a partial result may overrun the deadline by this many seconds.
GRACE_SECONDS = 0.5
NO_FACTOR = (
    "factorisations, LSQR and sums over the samples have none before they end. Raise max_time, or use solver='cg', "
    "NystromRLS or fewer samples"
)


@contextmanager
def in_time(stop: Stop, why: str = NO_FACTOR, grace: float = 0.0) -> Iterator[None]:
    """Ends what takes longer than `stop` allows, with an error that says so; a call of LAPACK is not ended."""
    if stop.deadline == math.inf:
        yield
        return
    try:
        with _core.TimeLimit(stop.seconds + grace):
            yield
    except _core.OutOfTime as error:
        raise TimeoutError(f"max_time passed before there was a solution: {why}") from error


class ProofTime:
    """Seconds of a certificate's pass for each coefficient that is not zero; nothing is timed without a deadline.

    They are timed on a few rows when a solve begins, and from then on by the certificates themselves.
    """

    def __init__(self, gram: Gram, stop: Stop) -> None:
        self._counts = stop.deadline < math.inf
        self._each = _CAUTION * _seconds_per_column(gram, stop.seconds) if self._counts else 0.0

    def __call__(self, beta: Floats) -> float:
        """Seconds for the certificate of these coefficients."""
        return self._each * np.count_nonzero(beta)

    def took(self, seconds: float, beta: Floats) -> None:
        """A certificate is done, and tells what the next one will take."""
        if self._counts and beta.any():
            self._each = _CAUTION * seconds / np.count_nonzero(beta)


def _seconds_per_column(gram: Gram, left: float) -> float:
    """The time of one column of K in float64, measured in little of the time that is left."""
    n, size, least = gram.n, 32, math.inf
    enough = float(np.clip(_SAMPLE_SHARE * left, *_SAMPLE_SECONDS))
    while True:
        m = min(size, n)
        coefficients, rows = np.zeros(n), np.arange(m)
        coefficients[:m] = 1.0
        begun = time.monotonic()
        gram.product(coefficients, rows)
        taken = time.monotonic() - begun
        if size > 32:  # the first call prepares the samples as well
            least = min(least, taken * n / m**2)
        if size > 32 and (taken >= enough or m == n):
            return least
        size *= 2
