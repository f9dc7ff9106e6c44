"""A Dask cluster: rows stay with the workers that have them, which run mercer's own core."""

from __future__ import annotations

from mercer.engine import register
from mercer.engines.dask.engine import DaskEngine

ENGINE = DaskEngine()
register(ENGINE)

__all__ = ["ENGINE", "DaskEngine"]
