"""Prediction on a device: K(X, vectors) @ coefficients, by kernels of our own, else a tile at a time.

Float32 samples are predicted from float32 kernel values where these are good enough, as on this machine. Sums are
float64, since large ones may cancel.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mercer.kernels import Kernel
from mercer.places.host.evaluation import InFloat32
from mercer.places.torch import fused
from mercer.places.torch.formula import Formula, Rows
from mercer.places.torch.memory import in_strips
from mercer.places.torch.numbers import TILE_BYTES, Copy, floats, places, to_device, torch
from mercer.places.torch.samples import TorchSamples
from mercer.samples.arrays import Flags, Floats, Indices
from mercer.samples.matrices import dense

# Vectors whose values are computed at a time.
_SUMMED_VECTORS = 2048
# Samples that a kernel of our own takes at once: the next ones are begun before their sums are looked at here.
_ROWS_AT_ONCE = 131_072
# Tensor cores cut off digits where float32 arithmetic rounds: with them values err as those of longer rows would.
_CUT_DIGITS = 4.0


class _Begun(NamedTuple):
    """What a device has been told to compute of some samples."""

    part: Any
    sums: Copy
    sizes: Any  # N of the samples if values are float32's, and the largest one
    longest: Copy | None


class TorchEvaluation:
    """An `Evaluation` of samples on a torch device; vectors and coefficients are sent there once."""

    def __init__(
        self, kernel: Kernel, vectors: TorchSamples | None, coefficients: Any, columns: Indices | None
    ) -> None:
        self._kernel, self._vectors, self._columns = kernel, vectors, columns
        self._coefficients = np.asarray(dense(coefficients), dtype=np.float64)
        self._formula = None if vectors is None else Formula.of(kernel, vectors.rows, fuses=True)
        self._prepared: dict[Any, tuple[Rows, Any]] = {}

    def add(self, out: Floats, X: Any, n_threads: int) -> None:
        rows = X.rows
        if len(self._coefficients) == 0 or len(rows) == 0:
            return

        begun: list[tuple[slice, list[_Begun]]] = []  # the strip before, which devices compute, or have computed

        def work(some: slice) -> None:
            ends = np.linspace(some.start, some.stop, 1 + len(X.devices)).astype(int).tolist()
            shares = [slice(*pair) for pair in pairwise(ends)]
            strip = [self._begun(rows[one].to(device)) for one, device in zip(shares, X.devices, strict=True)]
            finish()
            begun.append((some, strip))

        def finish() -> None:
            for some, strip in begun:
                out[some] += np.concatenate([self._finished(one) for one in strip])
            begun.clear()

        in_strips(len(rows), max(1, self._row_bytes(rows, X.sparse) // len(X.devices)), work)
        finish()

    def _row_bytes(self, like: Any, sparse: bool) -> int:
        d = int(like.shape[1])
        filled = 8 * d if sparse and not (self._vectors is None or self._vectors.sparse) else 0
        if self._formula is not None and self._whole(self._own(like, self._precision(like))):
            return max(TILE_BYTES // _ROWS_AT_ONCE, 32 * d + filled)  # no tile is held
        return 8 * min(len(self._coefficients), _SUMMED_VECTORS) + filled

    def _precision(self, part: Any) -> Any:
        """Float32 for such samples, which its values may turn out to be too coarse for."""
        assert self._formula is not None
        single = part.dtype == torch.float32 and self._formula.rounding is not None and not self._formula.cancels
        return torch.float32 if single else torch.float64

    def _begun(self, part: Any) -> _Begun:
        if self._formula is None:
            assert self._columns is not None
            sums = part[:, places(self._columns, part)].double() @ to_device(self._coefficients, part)
            return _Begun(part, Copy(sums), None, None)
        dtype = self._precision(part)
        rows = self._formula.rows(part, dtype)
        sums = Copy(self._sums(rows, self._own(part, dtype)))
        if dtype == torch.float64 or len(part) == 0:
            return _Begun(part, sums, None, None)
        sizes = rows.parts[0][1]
        return _Begun(part, sums, sizes, Copy(sizes.max()))

    def _finished(self, begun: _Begun) -> Floats:
        part, values = begun.part, np.asarray(begun.sums.array())
        if begun.longest is not None:
            which = np.flatnonzero(self._too_coarse(begun, values))

            def work(some: slice) -> None:
                assert self._formula is not None
                own = self._formula.rows(part[places(which[some], part)], torch.float64)
                values[which[some]] = floats(self._sums(own, self._own(part, torch.float64)))

            in_strips(len(which), 8 * (_SUMMED_VECTORS + 4 * part.shape[1]), work)
        return values

    def _too_coarse(self, begun: _Begun, values: Floats) -> Flags:
        """The samples for which float32 kernel values are too coarse."""
        assert self._formula is not None
        rounding, cut = self._formula.rounding, _CUT_DIGITS if self._formula.fuses else 1.0
        assert rounding is not None
        sources = cut * self._sources
        assert begun.longest is not None
        longest = np.array([begun.longest.array()], dtype=np.float64)
        fine, limit = self._choice.too_coarse(cut * longest, sources, rounding)
        if not fine[0] and np.abs(values).max() <= limit[0]:  # then all pass: errors grow with N
            return np.zeros(len(values), dtype=bool)
        fine, limit = self._choice.too_coarse(cut * floats(begun.sizes), sources, rounding)
        return np.asarray(fine | ~(np.abs(values).max(axis=1, initial=0.0) <= limit))

    @cached_property
    def _choice(self) -> InFloat32:
        return InFloat32(self._vectors, self._coefficients)

    @cached_property
    def _sources(self) -> Floats:
        """N of the vectors."""
        assert self._vectors is not None
        return floats(self._own(self._vectors.rows, torch.float32)[0].parts[0][1])

    def _own(self, like: Any, dtype: Any) -> tuple[Rows, Any]:
        """The vectors and their coefficients, prepared once for each device and precision."""
        assert self._formula is not None
        assert self._vectors is not None
        key = (dtype, like.device)
        if key not in self._prepared:
            rows = self._formula.rows(self._vectors.rows.to(like.device), dtype)
            self._prepared[key] = rows, to_device(self._coefficients, like)
        return self._prepared[key]

    def _whole(self, own: tuple[Rows, Any]) -> bool:
        """Whether one kernel adds up the values of all vectors."""
        assert self._formula is not None
        (x, _), outputs = own[0].parts[0], own[1].shape[1]
        return self._formula.fuses and (fused.adds_all(x) if outputs == 1 else fused.adds_several(x, outputs))

    def _sums(self, rows: Rows, own: tuple[Rows, Any]) -> Any:
        formula, (vectors, C), whole = self._formula, own, self._whole(own)
        assert formula is not None
        single_output = formula.fuses and C.shape[1] == 1
        total = torch.zeros((rows.n, C.shape[1]), dtype=torch.float64, device=C.device)
        step = vectors.n if whole else _SUMMED_VECTORS
        for some in (slice(left, left + step) for left in range(0, vectors.n, step)):
            if single_output:
                total[:, 0] += formula.scale * fused.sums(*rows.parts[0], *vectors[some].parts[0], C[some, 0])
            elif whole:
                total += formula.scale * fused.sums(*rows.parts[0], *vectors[some].parts[0], C[some])
            else:
                total += formula.block(rows, vectors[some]).double() @ C[some]
        return total
