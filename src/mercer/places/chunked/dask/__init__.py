"""The engine for Dask clusters: rows stay with the workers that have them, which run mercer's core."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mercer.places.chunked.dask.cluster import connected
from mercer.places.chunked.dask.engine import DaskEngine
from mercer.samples.engine import register

ENGINE = DaskEngine()
register(ENGINE)


@contextmanager
def on_cluster(address: str) -> Iterator[Callable[[Any], Any]]:
    """Connect to the cluster of a scheduler, and yield the function that sends host rows to it."""
    with connected(address):
        yield ENGINE.samples


__all__ = ["ENGINE", "DaskEngine", "on_cluster"]
