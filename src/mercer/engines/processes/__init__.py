"""Processes of this machine, each on its chunk of rows: for data larger than memory, and for kernels in Python."""

from __future__ import annotations

from mercer.engine import register
from mercer.engines.processes.engine import ProcessEngine

ENGINE = ProcessEngine()
register(ENGINE)

__all__ = ["ENGINE", "ProcessEngine"]
