"""A Dask cluster: rows stay with the workers that have them, which run mercer's own core."""

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
    """What sends rows of this machine to the cluster of this scheduler."""
    with connected(address):
        yield ENGINE.samples


__all__ = ["ENGINE", "DaskEngine", "on_cluster"]
