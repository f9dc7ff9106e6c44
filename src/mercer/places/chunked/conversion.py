"""Conversion of chunks to float32 or float64 rows: arrays, sparse matrices, and frames of pandas, polars or Arrow.

Nothing is rounded, truncated or guessed: values that float64 cannot represent are refused.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from mercer.places.chunked.worker_device import device_chunk
from mercer.runtime.optional import require
from mercer.samples.arrays import is_sparse

_LARGEST_INTEGER: Final = 2**53  # float64 represents every integer up to this one


def as_float64(block: Any) -> Any:
    """Return a chunk as float64 rows."""
    rows = as_rows(block)
    return rows.astype(np.float64) if hasattr(rows, "astype") else rows.double()  # a tensor has no astype


def as_rows(block: Any, source: str = "X") -> Any:
    """Return a chunk as float32 or float64 rows, or a CSR matrix; raise ValueError if float64 cannot hold its values.

    A chunk that already has this form, or is on a device, is returned itself.
    """
    if device_chunk(block) is not None:
        return block
    library = type(block).__module__.partition(".")[0]
    if library in ("polars", "pyarrow"):
        return _polars_rows(block, source)
    if hasattr(block, "dtypes") and hasattr(block, "columns"):
        return _pandas_rows(block, source)
    if is_sparse(block):
        if block.ndim != 2:
            raise ValueError(f"{source} must be a matrix with a row per sample, but it has {block.ndim} dimensions")
        _check_numbers(block.data, source)
        if isinstance(block, sp.csr_array) and _is_native_float(block.dtype) and block.has_canonical_format:
            return block
        rows = sp.csr_array(block)
        if not rows.has_canonical_format:
            rows = rows.copy()  # the arrays may be shared with the block
            rows.sum_duplicates()
        return rows.astype(_native(rows.dtype), copy=False)
    if isinstance(block, np.ma.MaskedArray):
        raise ValueError(f"{source} holds masked arrays; fill or drop the masked values first")
    block = np.asarray(block)
    if block.ndim != 2:
        raise ValueError(f"{source} must be a matrix with a row per sample, but it has {block.ndim} dimensions")
    _check_numbers(block, source)
    return np.ascontiguousarray(block, dtype=_native(block.dtype))


def _is_native_float(dtype: Any) -> bool:
    """Return whether the dtype is float32 or float64 in the host's byte order."""
    return dtype.char in "fd" and bool(dtype.isnative)


def _native(dtype: Any) -> Any:
    """Return float32 for float32 of any byte order, and float64 otherwise."""
    return np.float32 if dtype.char == "f" else np.float64


def _check_numbers(values: Any, source: str) -> None:
    """Raise ValueError if the dtype is not numeric, or an integer is too large for float64."""
    dtype = values.dtype
    if dtype.kind not in "fiub" or dtype.char in "eg":
        raise ValueError(f"{source} holds {dtype}; give float32, float64 or integers: X.astype(float)")
    if dtype.kind in "iu" and values.size:
        _check_integers(int(values.min()), int(values.max()), source)


def _check_integers(low: int, high: int, source: str) -> None:
    """Raise ValueError if float64 would round one of the integers from `low` to `high`."""
    if max(abs(low), abs(high)) > _LARGEST_INTEGER:
        raise ValueError(
            f"{source} holds integers beyond 2**53, which float64 rounds; scale them yourself, then convert them"
        )


def _pandas_rows(block: Any, source: str) -> Any:
    """Return the rows of a pandas frame; missing values become NaN."""
    for k, (name, dtype) in enumerate(zip(block.columns, block.dtypes, strict=True)):
        kind = getattr(dtype, "kind", "O")
        if kind not in "fiub" or (kind == "f" and dtype.itemsize not in (4, 8)):
            raise ValueError(
                f"column {name!r} of {source} holds {dtype}, not numbers of a supported type; encode it, for "
                "instance by get_dummies, convert it to float64, or leave it out"
            )
        column: Any = block.iloc[:, k].dropna() if kind in "iu" else ()
        if len(column):
            _check_integers(int(column.min()), int(column.max()), f"column {name!r} of {source}")
    is_float32 = all(dtype == np.float32 for dtype in block.dtypes)
    return np.ascontiguousarray(block.to_numpy(np.float32 if is_float32 else np.float64, na_value=math.nan))


def _polars_rows(block: Any, source: str) -> Any:
    """Return the rows of a polars or Arrow frame; missing values become NaN."""
    polars = require("polars", "reading frames of polars or Arrow")
    frame = block if isinstance(block, polars.DataFrame) else polars.from_arrow(block)
    columns = []
    for name, dtype in frame.schema.items():
        column = frame[name]
        if not (dtype.is_float() or dtype.is_integer() or dtype == polars.Boolean) or str(dtype) == "Float16":
            raise ValueError(
                f"column {name!r} of {source} holds {dtype}, not numbers of a supported type; encode it, cast it "
                "to Float64, or leave it out"
            )
        if dtype.is_integer() and column.drop_nulls().len():
            _check_integers(int(column.min()), int(column.max()), f"column {name!r} of {source}")
        columns.append(column.cast(polars.Float64).to_numpy())
    is_float32 = all(dtype == polars.Float32 for dtype in frame.schema.values())
    rows = np.column_stack(columns) if columns else np.empty((frame.height, 0))
    return np.ascontiguousarray(rows, dtype=np.float32 if is_float32 else np.float64)
