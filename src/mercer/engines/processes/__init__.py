"""Processes of this machine, each on its chunk of rows: for data larger than memory, and for kernels in Python."""

from __future__ import annotations

import os

from mercer.engine import register
from mercer.engines.processes.engine import ProcessEngine

ENGINE = ProcessEngine()
register(ENGINE)
if hasattr(os, "register_at_fork"):  # a forked process has neither the pool's threads nor pipes of its own
    os.register_at_fork(after_in_child=ENGINE.forget)

__all__ = ["ENGINE", "ProcessEngine"]
