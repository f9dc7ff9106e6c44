"""The device of a worker: chunks that are on a device stay there, and MERCER_DEVICE can name one for other chunks.

On a worker with a device, products with K and predictions are computed there, with the bounds of that device's engine.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from mercer.runtime.config import get_config
from mercer.samples.arrays import is_sparse
from mercer.samples.engine import EngineSamples, configured_engine, engine_of

# Chunks in host memory that were copied to this worker's device, by address, while they are alive.
_copies: dict[int, tuple[Any, EngineSamples]] = {}


def device_chunk(block: Any) -> EngineSamples | None:
    """Return a chunk that is on a device as samples of that device's engine; None for a chunk in host memory."""
    if isinstance(block, np.ndarray) or is_sparse(block):
        return None
    engine = engine_of(block)
    if engine is None:
        return None
    if "float32" not in str(block.dtype) and "float64" not in str(block.dtype):
        raise ValueError(f"X holds chunks of {block.dtype} on a device; give float32 or float64: X.astype(float)")
    if len(block.shape) != 2:
        raise ValueError(f"X must be a matrix with a row per sample, but it has {len(block.shape)} dimensions")
    return engine.samples(block)


def on_worker_device(rows: Any) -> Any:
    """Return the rows of a chunk as samples of the worker's device, or the rows themselves if it computes on its CPU.

    A chunk in host memory is copied to the device once, for as long as the worker stores the chunk.
    """
    samples = device_chunk(rows)
    if samples is not None:
        return samples
    device = get_config()["device"]
    engine = None if device == "dask" else configured_engine()  # the client may set "dask" for itself
    if engine is None:
        return rows
    if device == "torch-cpu":  # tensors share the memory of the rows, and would keep them alive
        return engine.samples(rows)
    known_copy, address = _copies.get(id(rows)), id(rows)
    if known_copy is None or known_copy[0]() is not rows:
        known_copy = weakref.ref(rows, lambda _: _copies.pop(address, None)), engine.samples(rows)
        _copies[address] = known_copy
    return known_copy[1]


def host_rows(rows: Any) -> Any:
    """Return the rows of a chunk in host memory, as a copy if they are on a device."""
    samples = device_chunk(rows)
    return rows if samples is None else samples.host()
