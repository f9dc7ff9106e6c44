"""Prediction on a device: K(X, vectors) @ coefficients, a tile at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices
from mercer.engines.torch.formula import Formula
from mercer.engines.torch.numbers import TILE_BYTES, matmul, places, to_device, to_host, torch
from mercer.engines.torch.samples import TorchSamples
from mercer.kernels import Kernel
from mercer.kernels.matrices import dense

# Vectors whose products are summed in the precision of the samples before they are added up in float64.
_SUMMED_VECTORS = 2048


class TorchEvaluation:
    """An `Evaluation` of samples on a torch device; vectors and coefficients are sent there once."""

    def __init__(
        self, kernel: Kernel, vectors: TorchSamples | None, coefficients: Any, columns: Indices | None
    ) -> None:
        self._kernel, self._vectors, self._columns = kernel, vectors, columns
        self._coefficients = np.asarray(dense(coefficients), dtype=np.float64)
        self._formula = None if vectors is None else Formula.of(kernel, vectors.rows)
        self._prepared: dict[Any, Any] = {}

    def add(self, out: Floats, X: Any, n_threads: int) -> None:
        rows = X.rows
        if len(self._coefficients) == 0:
            return
        C = to_device(self._coefficients, rows, rows.dtype)
        step = max(1, TILE_BYTES // (rows.element_size() * min(len(C), _SUMMED_VECTORS)))
        for start in range(0, len(rows), step):
            _core.check_stop()
            part = rows[start : start + step]
            total = torch.zeros((len(part), C.shape[1]), dtype=torch.float64, device=rows.device)
            if self._formula is None:
                assert self._columns is not None
                total += part[:, places(self._columns, rows)].double() @ C.double()
            else:
                self._add(total, part, C)
            out[start : start + step] += to_host(total)

    def _add(self, total: Any, part: Any, C: Any) -> None:
        assert self._formula is not None
        assert self._vectors is not None
        key = (part.dtype, part.device)
        if key not in self._prepared:
            self._prepared[key] = self._formula.rows(self._vectors.rows.to(part.device), part.dtype)
        vectors, own = self._prepared[key], self._formula.rows(part, part.dtype)
        for left in range(0, vectors.n, _SUMMED_VECTORS):
            some = slice(left, left + _SUMMED_VECTORS)
            total += matmul(self._formula.block(own, vectors[some]), C[some])
