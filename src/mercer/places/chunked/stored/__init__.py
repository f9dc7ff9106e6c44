"""Rows in files, for data larger than memory: computed in this process, chunk by chunk, by the threads of the core."""

from __future__ import annotations

from mercer.places.chunked.stored.engine import StoredEngine
from mercer.samples.engine import register

ENGINE = StoredEngine()
register(ENGINE)

__all__ = ["ENGINE", "StoredEngine"]
