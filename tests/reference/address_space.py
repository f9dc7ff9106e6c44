"""A limit on what a test may allocate."""

import os
import sys
from contextlib import contextmanager

if os.name == "posix":
    import resource


@contextmanager
def address_space(extra):
    """While inside, this process may grow by at most so many bytes (where the system lets us say so)."""
    if sys.platform != "linux":
        yield
        return
    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + extra
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
