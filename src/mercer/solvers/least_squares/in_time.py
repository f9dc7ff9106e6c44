"""The error of a solver that has no solution to show before it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mercer import _core
from mercer.solution import Stop


@contextmanager
def in_time(stop: Stop) -> Iterator[None]:
    """Ends what takes longer than `stop` allows, with an error that says so; a call of LAPACK is not ended."""
    try:
        with _core.TimeLimit(stop.seconds):
            yield
    except _core.OutOfTime as error:
        raise TimeoutError(
            "max_time passed before there was a solution: factorisations, LSQR and sums over the samples have none "
            "before they end. Raise max_time, or use solver='cg', NystromRLS or fewer samples"
        ) from error
