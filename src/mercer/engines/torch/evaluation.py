"""Prediction on a device: K(X, vectors) @ coefficients, a tile at a time.

Float32 samples are predicted from float32 kernel values where these are good enough, as on this machine.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.arrays import Flags, Floats, Indices
from mercer.engines.torch.formula import Formula
from mercer.engines.torch.memory import in_strips
from mercer.engines.torch.numbers import floats, places, to_device, torch
from mercer.engines.torch.samples import TorchSamples
from mercer.gram.evaluation import InFloat32
from mercer.kernels import Kernel
from mercer.kernels.matrices import dense

# Vectors whose values are computed at a time.
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
        filled = 8 * X.shape[1] if X.sparse and not (self._vectors is None or self._vectors.sparse) else 0

        def work(some: slice) -> None:
            ends = np.linspace(some.start, some.stop, 1 + len(X.devices)).astype(int).tolist()
            shares = [slice(*pair) for pair in pairwise(ends)]
            begun = [self._begun(rows[one].to(device)) for one, device in zip(shares, X.devices, strict=True)]
            found = [self._finished(*one) for one in begun]  # all devices work by now
            out[some] += np.concatenate(found)

        row_bytes = 8 * min(len(self._coefficients), _SUMMED_VECTORS) + filled
        in_strips(len(rows), max(1, row_bytes // len(X.devices)), work)

    def _begun(self, part: Any) -> tuple[Any, Any, bool]:
        """Some samples, f of them, which the device may still be computing, and whether that was in float32."""
        if self._formula is None:
            assert self._columns is not None
            return part, part[:, places(self._columns, part)].double() @ to_device(self._coefficients, part), False
        single = part.dtype == torch.float32 and self._formula.rounding is not None and not self._formula.cancels
        return part, self._sums(part, torch.float32 if single else torch.float64), single

    def _finished(self, part: Any, sums: Any, single: bool) -> Floats:
        values = np.array(floats(sums))
        if single:
            fine = self._too_coarse(part, values)
            if fine.any():
                values[fine] = floats(self._sums(part[places(np.flatnonzero(fine), part)], torch.float64))
        return values

    def _too_coarse(self, part: Any, values: Floats) -> Flags:
        """The samples for which float32 kernel values are too coarse."""
        assert self._formula is not None
        assert self._formula.rounding is not None
        sizes, sources = (floats(side.parts[0][1]) for side in (self._rows(part, torch.float32), self._own(part)))
        fine, limit = self._choice.too_coarse(sizes, sources, self._formula.rounding)
        return np.asarray(fine | ~(np.abs(values).max(axis=1, initial=0.0) <= limit))

    @cached_property
    def _choice(self) -> InFloat32:
        return InFloat32(self._vectors, self._coefficients)

    def _rows(self, part: Any, dtype: Any) -> Any:
        assert self._formula is not None
        return self._formula.rows(part, dtype)

    def _own(self, like: Any, dtype: Any = torch.float32) -> Any:
        """The vectors, prepared once for each device and precision."""
        assert self._vectors is not None
        key = (dtype, like.device)
        if key not in self._prepared:
            C = to_device(self._coefficients, like)
            self._prepared[key] = self._rows(self._vectors.rows.to(like.device), dtype), C
        return self._prepared[key][0]

    def _sums(self, part: Any, dtype: Any) -> Any:
        assert self._formula is not None
        vectors, rows = self._own(part, dtype), self._rows(part, dtype)
        C = self._prepared[dtype, part.device][1]
        total = torch.zeros((len(part), C.shape[1]), dtype=torch.float64, device=part.device)
        for left in range(0, vectors.n, _SUMMED_VECTORS):
            some = slice(left, left + _SUMMED_VECTORS)
            total += self._formula.block(rows, vectors[some]).double() @ C[some]
        return total
