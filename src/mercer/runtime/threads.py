"""How many threads a call uses: the user's n_jobs, or as many as BLAS would."""

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
    """Threads for one call.

    None means as many as BLAS would use: all processors that this process may use (affinity and cgroup quota), at most
    MERCER_NUM_THREADS or else OMP_NUM_THREADS, and at most the limit of a surrounding
    ``threadpoolctl.threadpool_limits``. Negative numbers count back from the number of processors as in joblib: −1 is
    all of them, −2 all but one. A positive number is limited only by the number of processors.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
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
    """joblib's count, which reads files: counted again only after a change of what it depends on in a process."""
    allowed = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return _counted(joblib.cpu_count, allowed, os.environ.get("LOKY_MAX_CPU_COUNT"))


@lru_cache(maxsize=8)
def _counted(count: Callable[[], int], allowed: frozenset[int] | None, limit: str | None) -> int:
    return count()


def _environment_limit() -> int | None:
    own = os.environ.get("MERCER_NUM_THREADS")
    if own:
        if not own.strip().isdecimal() or int(own) < 1:
            raise ValueError(f"MERCER_NUM_THREADS={own!r} is not a positive whole number; correct it or unset it.")
        return int(own)
    # OpenMP allows a list, one entry per nesting level. Its runtimes ignore what they cannot read, and so do we.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else None


class _CoreController(threadpoolctl.LibController):  # type: ignore[misc]  # threadpoolctl is untyped
    """Shows our thread pool to threadpoolctl as one more BLAS, so that a limit for BLAS holds for us too."""

    user_api = "blas"
    internal_api = "mercer"
    filename_prefixes = ("_core",)
    check_symbols = ("mercer_get_num_threads",)  # other libraries have a _core too, but not this function

    def get_num_threads(self) -> int | None:
        get = getattr(self.dynlib, "mercer_get_num_threads", None)
        return None if get is None else int(get())

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.mercer_set_num_threads(ctypes.c_int(num_threads))

    def get_version(self) -> None:
        return None


threadpoolctl.register(_CoreController)
