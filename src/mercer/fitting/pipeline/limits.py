"""What a fit may take: tolerances, steps, seconds, memory, threads and chance, read from an estimator's parameters."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from sklearn.utils import check_random_state

from mercer.arrays import physical_memory
from mercer.parameters import iterations, positive
from mercer.solution import Stop
from mercer.threads import effective_n_threads


@dataclass(frozen=True, eq=False)
class Limits:
    """When to stop, how many bytes to use beside the data, on how many threads, and where chance comes from."""

    stop: Stop
    budget: int
    n_threads: int
    random: Any  # a numpy RandomState

    @classmethod
    def of(cls, estimator: Any, max_steps: int) -> Limits:
        """Those of an estimator; what it has no parameter for is not limited. `max_iter=-1` stands for `max_steps`."""
        given = vars(estimator)  # get_params would inspect the signature, a tenth of a small fit
        tol, gap_tol = given.get("tol", math.inf), given.get("gap_tol")
        if tol is None and gap_tol is None:
            raise ValueError("tol and gap_tol are both None, so that nothing would end the fit; give one of them")
        n_threads = effective_n_threads(given.get("n_jobs"))
        stop = Stop(
            tol=math.inf if tol is None or "tol" not in given else positive("tol", tol),
            gap_tol=math.inf if gap_tol is None else positive("gap_tol", gap_tol, "None asks for no gap"),
            max_iter=iterations("max_iter", given.get("max_iter", -1), max_steps),
            deadline=deadline_of(given.get("max_time")),
            n_threads=n_threads,
        )
        return cls(
            stop,
            bytes_of(given.get("cache_size", 1000)),
            n_threads,
            random_of(given.get("random_state")),
        )

    def seed(self) -> int:
        """A number for a generator that is not numpy's; another one every time."""
        return int(self.random.randint(0, 2**63 - 1, dtype="int64"))


def deadline_of(max_time: Any) -> float:
    """The end of a fit that begins now, on time.monotonic's clock."""
    seconds = math.inf if max_time is None else positive("max_time", max_time, "None means no limit")
    return time.monotonic() + seconds


def bytes_of(cache_size: Any) -> int:
    """`cache_size` in bytes, but at most half of this computer's memory."""
    megabytes = positive("cache_size", cache_size, "it is the memory for a fit in MB")
    return int(min(megabytes * 1e6, physical_memory() / 2))


def random_of(random_state: Any) -> Any:
    """The RandomState that the parameter stands for."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(f"random_state={random_state!r} must be None, an integer or a RandomState") from error
