"""Errors of solvers that have no solution to show when `max_time` has passed, or will have passed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from mercer import _core
from mercer.arrays import Floats
from mercer.solution import Stop

# The first part of a matrix that is decomposed to foretell the time of the whole has at most this many rows.
_FIRST_ROWS = 256
# A part that takes this share of the time left foretells the whole well: it is a quarter as long as what would fit.
_TELLING_SHARE = 0.02

# Work without a partial result may overrun the deadline by this many seconds.
GRACE_SECONDS = 0.5
NO_FACTOR = (
    "factorisations, LSQR and sums over the samples have none before they end. Raise max_time, or use solver='cg', "
    "NystromRLS or fewer samples"
)


def in_time(stop: Stop, why: str = NO_FACTOR, grace: float = 0.0) -> AbstractContextManager[None]:
    """Ends what takes longer than `stop` allows, with an error that says so; a call of LAPACK is not ended."""
    return _ended(stop, why, grace) if stop.deadline < math.inf else nullcontext()


@contextmanager
def _ended(stop: Stop, why: str, grace: float) -> Iterator[None]:
    try:
        with _core.TimeLimit(stop.seconds + grace):
            yield
    except _core.OutOfTime as error:
        raise TimeoutError(f"max_time passed before there was a solution: {why}") from error


def expect_in_time(stop: Stop, A: Floats, decompose: Callable[[Floats], object]) -> None:
    """Refuse a decomposition of A that would end after the deadline, since LAPACK cannot be interrupted.

    Its time grows with the cube of A's size, and is measured on copies of leading parts of A.
    """
    share = min(1.0, _FIRST_ROWS / max(*A.shape, 1))
    while stop.deadline < math.inf and share < 0.5:
        part = A[: math.ceil(share * A.shape[0]), : math.ceil(share * A.shape[1])].copy()
        left, begun = stop.seconds, time.monotonic()
        decompose(part)
        taken = time.monotonic() - begun
        whole = taken / share**3
        if whole <= left:
            return
        if taken > _TELLING_SHARE * left:
            raise TimeoutError(
                f"max_time would have passed before there was a solution: decomposing a matrix of {A.shape[0]:,} × "
                f"{A.shape[1]:,} takes about {whole:.1g} s here, and cannot be ended early. Raise max_time, or use "
                "another solver, NystromRLS or fewer samples"
            )
        share *= 2
