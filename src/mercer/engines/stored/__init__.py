"""Rows in files, for data larger than memory: computed in this process, chunk by chunk, by the threads of the core."""

from __future__ import annotations

from mercer.engine import register
from mercer.engines.stored.engine import StoredEngine

ENGINE = StoredEngine()
register(ENGINE)

__all__ = ["ENGINE", "StoredEngine"]
