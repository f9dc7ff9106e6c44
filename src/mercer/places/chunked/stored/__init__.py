"""The engine for rows in files, larger than memory: processed chunk by chunk in this process, by the core's threads."""

from __future__ import annotations

from mercer.places.chunked.stored.engine import StoredEngine
from mercer.samples.engine import register

ENGINE = StoredEngine()
register(ENGINE)

__all__ = ["ENGINE", "StoredEngine"]
