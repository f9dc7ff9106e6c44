"""Prediction on a device: K(X, vectors) @ coefficients, by fused Triton kernels, or a tile at a time.

Float32 samples are predicted from float32 kernel values if these are accurate enough, as on the host. Sums are float64,
since large ones may cancel.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mercer.kernels import Kernel
from mercer.places.host.evaluation import Float32Check
from mercer.places.torch import fused
from mercer.places.torch.formula import Formula, PreparedRows
from mercer.places.torch.memory import in_strips
from mercer.places.torch.numbers import TILE_BYTES, HostCopy, floats, index_tensor, to_device, torch
from mercer.places.torch.samples import TorchSamples
from mercer.samples.arrays import Flags, Floats, Indices
from mercer.samples.matrices import dense

# Number of vectors whose kernel values are computed at a time.
_SUMMED_VECTORS = 2048
# Number of samples per call of a fused kernel: the next call starts before the host reads the sums of the last one.
_ROWS_AT_ONCE = 131_072
# Factor on N in error estimates for tensor cores, which truncate digits that float32 arithmetic would round.
_CUT_DIGITS = 4.0


class _PendingSums(NamedTuple):
    """Sums of a block of samples that a device is computing."""

    part: Any  # the samples
    sums: HostCopy
    sizes: Any  # N of the samples if kernel values are float32
    longest: HostCopy | None  # the largest N


class TorchEvaluation:
    """An `Evaluation` at samples on a torch device; vectors and coefficients are copied there once."""

    def __init__(
        self, kernel: Kernel, vectors: TorchSamples | None, coefficients: Any, columns: Indices | None
    ) -> None:
        self._kernel, self._vectors, self._columns = kernel, vectors, columns
        self._coefficients = np.asarray(dense(coefficients), dtype=np.float64)
        self._formula = None if vectors is None else Formula.of(kernel, vectors.rows, fuses=True)
        self._prepared: dict[Any, tuple[PreparedRows, Any]] = {}

    def add(self, out: Floats, X: Any, n_threads: int) -> None:
        """Add K(X, vectors) @ coefficients to `out`; each device computes its share of a strip of samples."""
        rows = X.rows
        if len(self._coefficients) == 0 or len(rows) == 0:
            return

        pending: list[tuple[slice, list[_PendingSums]]] = []  # the previous strip, one entry per device

        def work(block: slice) -> None:
            ends = np.linspace(block.start, block.stop, 1 + len(X.devices)).astype(int).tolist()
            shares = [slice(*pair) for pair in pairwise(ends)]
            strip = [self._start_sums(rows[share].to(device)) for share, device in zip(shares, X.devices, strict=True)]
            finish()
            pending.append((block, strip))

        def finish() -> None:
            for block, strip in pending:
                out[block] += np.concatenate([self._finish_sums(pending_sums) for pending_sums in strip])
            pending.clear()

        in_strips(len(rows), max(1, self._row_bytes(rows, X.sparse) // len(X.devices)), work)
        finish()

    def _row_bytes(self, rows: Any, sparse: bool) -> int:
        """Return the bytes of work space per sample, with room for the dense form of sparse samples."""
        d = int(rows.shape[1])
        dense_bytes = 8 * d if sparse and not (self._vectors is None or self._vectors.sparse) else 0
        if self._formula is not None and self._sums_in_one_call(self._prepared_vectors(rows, self._precision(rows))):
            return max(TILE_BYTES // _ROWS_AT_ONCE, 32 * d + dense_bytes)  # no tile of kernel values is stored
        return 8 * min(len(self._coefficients), _SUMMED_VECTORS) + dense_bytes

    def _precision(self, part: Any) -> Any:
        """Precision of the first attempt: float32 for float32 samples, unless values would lose too many digits."""
        assert self._formula is not None
        takes_float32 = part.dtype == torch.float32 and self._formula.rounding is not None and not self._formula.cancels
        return torch.float32 if takes_float32 else torch.float64

    def _start_sums(self, part: Any) -> _PendingSums:
        """Start to compute the sums of a block of samples on its device."""
        if self._formula is None:
            assert self._columns is not None
            sums = part[:, index_tensor(self._columns, part)].double() @ to_device(self._coefficients, part)
            return _PendingSums(part, HostCopy(sums), None, None)
        dtype = self._precision(part)
        rows = self._formula.rows(part, dtype)
        sums = HostCopy(self._sums(rows, self._prepared_vectors(part, dtype)))
        if dtype == torch.float64 or len(part) == 0:
            return _PendingSums(part, sums, None, None)
        sizes = rows.parts[0][1]
        return _PendingSums(part, sums, sizes, HostCopy(sizes.max()))

    def _finish_sums(self, pending: _PendingSums) -> Floats:
        """Return the sums of a block; samples for which float32 is too coarse are computed again in float64."""
        part, values = pending.part, np.asarray(pending.sums.array())
        if pending.longest is not None:
            coarse_rows = np.flatnonzero(self._too_coarse(pending, values))

            def work(block: slice) -> None:
                assert self._formula is not None
                rows = self._formula.rows(part[index_tensor(coarse_rows[block], part)], torch.float64)
                values[coarse_rows[block]] = floats(self._sums(rows, self._prepared_vectors(part, torch.float64)))

            in_strips(len(coarse_rows), 8 * (_SUMMED_VECTORS + 4 * part.shape[1]), work)
        return values

    def _too_coarse(self, pending: _PendingSums, values: Floats) -> Flags:
        """Return a mask of the samples for which float32 kernel values are too coarse."""
        assert self._formula is not None
        rounding, cut_share = self._formula.rounding, _CUT_DIGITS if self._formula.fuses else 1.0
        assert rounding is not None
        sources = cut_share * self._sources
        assert pending.longest is not None
        longest = np.array([pending.longest.array()], dtype=np.float64)
        is_too_coarse, limit = self._choice.too_coarse(cut_share * longest, sources, rounding)
        if not is_too_coarse[0] and np.abs(values).max() <= limit[0]:  # errors grow with N, so that all samples pass
            return np.zeros(len(values), dtype=bool)
        is_too_coarse, limit = self._choice.too_coarse(cut_share * floats(pending.sizes), sources, rounding)
        return np.asarray(is_too_coarse | ~(np.abs(values).max(axis=1, initial=0.0) <= limit))

    @cached_property
    def _choice(self) -> Float32Check:
        return Float32Check(self._vectors, self._coefficients)

    @cached_property
    def _sources(self) -> Floats:
        """N of each vector."""
        assert self._vectors is not None
        return floats(self._prepared_vectors(self._vectors.rows, torch.float32)[0].parts[0][1])

    def _prepared_vectors(self, part: Any, dtype: Any) -> tuple[PreparedRows, Any]:
        """Return the vectors and their coefficients, prepared once for each device and precision."""
        assert self._formula is not None
        assert self._vectors is not None
        key = (dtype, part.device)
        if key not in self._prepared:
            rows = self._formula.rows(self._vectors.rows.to(part.device), dtype)
            self._prepared[key] = rows, to_device(self._coefficients, part)
        return self._prepared[key]

    def _sums_in_one_call(self, vectors: tuple[PreparedRows, Any]) -> bool:
        """Return whether one kernel call sums over all vectors."""
        assert self._formula is not None
        (x, _), outputs = vectors[0].parts[0], vectors[1].shape[1]
        return self._formula.fuses and (fused.adds_all(x) if outputs == 1 else fused.adds_several(x, outputs))

    def _sums(self, rows: PreparedRows, prepared: tuple[PreparedRows, Any]) -> Any:
        """Return K(rows, vectors) @ coefficients, in one fused call or a block of vectors at a time."""
        formula, (vectors, C), in_one_call = self._formula, prepared, self._sums_in_one_call(prepared)
        assert formula is not None
        single_output = formula.fuses and C.shape[1] == 1
        total = torch.zeros((rows.n, C.shape[1]), dtype=torch.float64, device=C.device)
        step = vectors.n if in_one_call else _SUMMED_VECTORS
        for block in (slice(left, left + step) for left in range(0, vectors.n, step)):
            if single_output:
                total[:, 0] += formula.scale * fused.sums(*rows.parts[0], *vectors[block].parts[0], C[block, 0])
            elif in_one_call:
                total += formula.scale * fused.sums(*rows.parts[0], *vectors[block].parts[0], C[block])
            else:
                total += formula.block(rows, vectors[block]).double() @ C[block]
        return total
