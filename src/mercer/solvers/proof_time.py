"""How long a certificate's pass over the kernel values will take, so that `max_time` holds for the whole fit.

The pass computes K times the coefficients that are not zero. What one of these costs is timed on a few rows when a
solve with a deadline begins, and from then on by the certificates themselves.
"""

from __future__ import annotations

import math
import time

import numpy as np

from mercer.arrays import Floats
from mercer.gram.gram import Gram
from mercer.solution import Stop

# A sample of kernel values is enlarged until it takes this share of the time that is left, or the most of these
# seconds. What a call costs besides its values would count for every one of them in a smaller sample (chi2 on sparse
# rows: 5 ms foretell fifty times the true time).
_SAMPLE_SHARE = 0.01
_SAMPLE_SECONDS = (0.005, 0.1)
# The pass may be repeated in part in a higher precision, and other programs come and go.
_CAUTION = 1.3


class ProofTime:
    """Seconds of a certificate's pass for each coefficient that is not zero; nothing is timed without a deadline."""

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
    """The time of one column of K in float64, measured in a part of the seconds that are `left`."""
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
