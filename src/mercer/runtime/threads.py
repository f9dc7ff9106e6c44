"""Number of threads of a call: the user's n_jobs, or as many as BLAS would use."""

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from numbers import Integral

import joblib
import threadpoolctl

from mercer import _core

__all__ = ["effective_n_threads"]


def effective_n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for one call.

    None means as many as BLAS would use: all processors that this process may use (affinity and cgroup quota), at most
    MERCER_NUM_THREADS or else OMP_NUM_THREADS, and at most the limit of a surrounding
    ``threadpoolctl.threadpool_limits``. Negative numbers count back from the number of processors as in joblib: −1
    means all of them, −2 all except one. A positive number is limited only by the number of processors.
    """
    has_known_type = n_jobs is None or type(n_jobs) is int
    if not has_known_type and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise ValueError(
            f"n_jobs={n_jobs!r} is not a whole number; use None, a positive number, or -1 for all processors."
        )
    cpus = _processors()
    if n_jobs is None:
        return max(1, min(cpus, _core.thread_limit() or cpus, _environment_limit() or cpus))
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; use None, a positive number, or -1 for all processors.")
    n = int(n_jobs)
    return min(n, cpus) if n > 0 else max(1, cpus + 1 + n)


def _processors() -> int:
    """Return joblib's number of processors, cached until affinity or limit change, since joblib reads files."""
    affinity = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return _cached_count(joblib.cpu_count, affinity, os.environ.get("LOKY_MAX_CPU_COUNT"))


@lru_cache(maxsize=8)
def _cached_count(count: Callable[[], int], affinity: frozenset[int] | None, limit: str | None) -> int:
    """Return count(), computed once for each affinity and limit."""
    return count()


def _environment_limit() -> int | None:
    """Return the limit set by MERCER_NUM_THREADS or OMP_NUM_THREADS; None without a limit."""
    limit = os.environ.get("MERCER_NUM_THREADS")
    if limit:
        if not limit.strip().isdecimal() or int(limit) < 1:
            raise ValueError(f"MERCER_NUM_THREADS={limit!r} is not a positive whole number; correct it or unset it.")
        return int(limit)
    # OpenMP allows a list, one entry per nesting level. Its runtimes ignore values that they cannot read; so do we.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else None


class _CoreController(threadpoolctl.LibController):  # type: ignore[misc]  # threadpoolctl is untyped
    """Presents mercer's thread pool to threadpoolctl as a BLAS library, so that limits for BLAS apply to mercer too."""

    user_api = "blas"
    internal_api = "mercer"
    filename_prefixes = ("_core",)
    check_symbols = ("mercer_get_num_threads",)  # distinguishes this _core from those of other libraries

    def get_num_threads(self) -> int | None:
        get = getattr(self.dynlib, "mercer_get_num_threads", None)
        return None if get is None else int(get())

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.mercer_set_num_threads(ctypes.c_int(num_threads))

    def get_version(self) -> None:
        return None


threadpoolctl.register(_CoreController)
