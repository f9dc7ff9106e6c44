"""Keep `max_time` for the whole fit, including the certificate and steps that cannot be interrupted.

`ProofTime` predicts the time of the certificate, which multiplies K by the nonzero coefficients, so that a solver can
leave time for it. `enforce_deadline` raises an error in solvers that have no solution before they end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np

from mercer import _core
from mercer.places.gram import Gram
from mercer.samples.arrays import Floats
from mercer.solvers.solution import Stop

# A sample of kernel values is enlarged until its computation takes this share of the time that is left, at least and at
# most these numbers of seconds. A smaller sample would measure mostly the overhead of a call (chi2 on sparse rows: a
# sample of 5 ms predicts fifty times the true time).
_SAMPLE_SHARE = 0.01
_SAMPLE_SECONDS = (0.005, 0.1)
# Safety factor: part of the certificate may be repeated in a higher precision, and other programs use the host too.
_SAFETY_FACTOR = 1.3

# Work without a partial result may overrun the deadline by this many seconds.
GRACE_SECONDS = 0.5
NO_FACTOR = (
    "factorisations, LSQR and sums over the samples have none before they end. Raise max_time, or use solver='cg', "
    "NystromRLS or fewer samples"
)


def enforce_deadline(stop: Stop, explanation: str = NO_FACTOR, grace: float = 0.0) -> AbstractContextManager[None]:
    """Return a context that raises TimeoutError `grace` seconds after the deadline of `stop`.

    `explanation` ends the message: it says why there is no partial solution. A call of LAPACK is not interrupted.
    """
    return nullcontext() if stop.deadline == math.inf else _time_limit(stop, explanation, grace)


@contextmanager
def _time_limit(stop: Stop, explanation: str, grace: float) -> Iterator[None]:
    """Raise TimeoutError inside the `with` block `grace` seconds after the deadline of `stop`."""
    try:
        with _core.TimeLimit(stop.seconds + grace):
            yield
    except _core.OutOfTime as error:
        raise TimeoutError(f"max_time passed before there was a solution: {explanation}") from error


class ProofTime:
    """Prediction of the seconds that a certificate takes, proportional to the number of nonzero coefficients.

    The time per coefficient is measured on a few rows when a solve begins, and afterwards on each certificate. Without
    a deadline nothing is measured and the prediction is 0.
    """

    def __init__(self, gram: Gram, stop: Stop) -> None:
        self._has_deadline = stop.deadline < math.inf
        self._seconds_each = _SAFETY_FACTOR * _seconds_per_column(gram, stop.seconds) if self._has_deadline else 0.0

    def __call__(self, beta: Floats) -> float:
        """Return the predicted seconds for the certificate of β."""
        return self._seconds_each * np.count_nonzero(beta)

    def record(self, seconds: float, beta: Floats) -> None:
        """Record how long the certificate of β took."""
        if self._has_deadline and beta.any():
            self._seconds_each = _SAFETY_FACTOR * seconds / np.count_nonzero(beta)


def _seconds_per_column(gram: Gram, seconds_left: float) -> float:
    """Return the seconds for one column of K in float64, measured in a small share of `seconds_left`."""
    n, size, least = gram.n, 32, math.inf
    sufficient_seconds = float(np.clip(_SAMPLE_SHARE * seconds_left, *_SAMPLE_SECONDS))
    while True:
        m = min(size, n)
        coefficients, rows = np.zeros(n), np.arange(m)
        coefficients[:m] = 1.0
        start_time = time.monotonic()
        gram.product(coefficients, rows)
        seconds_taken = time.monotonic() - start_time
        if size > 32:  # the first call prepares the samples as well
            least = min(least, seconds_taken * n / m**2)
        if size > 32 and (seconds_taken >= sufficient_seconds or m == n):
            return least
        size *= 2
