"""The core's samples of a kernel k + c."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices


class ShiftedSamples:
    """Samples for k + c: the core computes k, and the constant is added in float64."""

    def __init__(self, samples: _core.Samples, constant: float) -> None:
        self._samples, self._constant = samples, constant

    def columns(self, which: Indices) -> _core.Columns:
        return self._samples.columns(which)

    def add(self, total: Floats, columns: _core.Columns, which: Indices, coefficients: Floats) -> None:
        self._samples.add(total, columns, which, coefficients)
        total += self._constant * float(coefficients.sum())

    def add_two(self, totals: Floats, columns: _core.Columns, which: Indices, coefficients: Floats) -> None:
        self._samples.add_two(totals, columns, which, coefficients)
        totals[0] += self._constant * float(coefficients[0].sum())

    def block(self, which: Indices, columns: _core.Columns) -> Any:
        values = self._samples.block(which, columns)
        values += self._constant
        return values

    def table(self, rows: Indices, which: Indices, room: int = 0) -> Any:
        values = self._samples.table(rows, which, room)
        values[: len(rows)] += self._constant
        return values

    def square(self, which: Indices, out: Any) -> None:
        self._samples.square(which, out)
        out[: len(which), : len(which)] += self._constant

    @property
    def expensive(self) -> bool:
        return self._samples.expensive

    @property
    def dense(self) -> bool:
        return self._samples.dense

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._samples.dtype
