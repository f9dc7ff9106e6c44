"""Samples on a torch device: dense rows of float32 or float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Flags, Floats, Indices, is_sparse, row_blocks
from mercer.engine import PlacedSamples
from mercer.engines.torch.formula import Formula
from mercer.engines.torch.numbers import TILE_BYTES, floats, places, to_device, to_host, torch

if TYPE_CHECKING:
    from mercer.engines.torch.engine import TorchEngine
    from mercer.kernels import Kernel

# Odd numbers that mix the bits of an entry (Steele, Lea and Flood's SplitMix64), as signed 64-bit integers.
_STEP, _FIRST, _SECOND = (
    int(np.array(number, dtype=np.uint64).view(np.int64))
    for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


class TorchSamples(PlacedSamples):
    """The rows of a tensor, which nobody changes."""

    engine: TorchEngine

    def __init__(self, engine: TorchEngine, rows: Any) -> None:
        self.engine, self.rows = engine, rows
        self.shape = tuple(rows.shape)
        self.dtype = np.dtype(np.float32 if rows.dtype == torch.float32 else np.float64)

    def take(self, rows: Indices) -> TorchSamples:
        return TorchSamples(self.engine, self.rows[places(rows, self.rows)])

    def joined(self, others: PlacedSamples) -> TorchSamples:
        assert isinstance(others, TorchSamples)
        both = torch.promote_types(self.rows.dtype, others.rows.dtype)
        parts = [part.rows.to(self.rows.device, both) for part in (self, others)]
        return TorchSamples(self.engine, torch.cat(parts))

    def host(self, rows: Indices | None = None) -> Any:
        return to_host(self.rows if rows is None else self.rows[places(rows, self.rows)]).copy()

    def _parts(self, factor: int = 1) -> Iterator[tuple[slice, Any]]:
        """Some rows at a time, so that `factor` float64 copies of them take no more than a tile."""
        step = max(1, TILE_BYTES // (8 * factor * max(1, self.shape[1])))
        for start in range(0, self.shape[0], step):
            some = slice(start, min(self.shape[0], start + step))
            yield some, self.rows[some]

    def first_not_finite(self) -> tuple[int, int, float, int] | None:
        if all(bool(torch.isfinite(part.sum(dtype=torch.float64))) for _, part in self._parts()):
            return None
        found, count = None, 0
        for some, part in self._parts():
            bad = torch.nonzero(~torch.isfinite(part))
            if len(bad) and found is None:
                row, column = (int(place) for place in bad[0])
                found = (some.start + row, column, float(part[row, column]))
            count += len(bad)
        return None if found is None else (*found, count)

    def hash(self) -> NDArray[np.uint64]:
        out = torch.empty(self.shape[0], dtype=torch.int64, device=self.rows.device)
        keys = _mixed(torch.arange(1, self.shape[1] + 1, device=self.rows.device) * _STEP)
        for some, part in self._parts(4):
            bits = (part.double() + 0.0).view(torch.int64)  # −0.0 is 0.0
            out[some] = _mixed(_mixed(bits ^ keys) + keys).sum(dim=1)
        return np.asarray(to_host(_mixed(out))).view(np.uint64)

    def equal(self, left: Indices, right: Indices) -> Flags:
        out = np.empty(len(left), dtype=bool)
        for some in row_blocks(len(left), 16 * self.shape[1]):
            one, other = (self.rows[places(rows[some], self.rows)] for rows in (left, right))
            out[some] = to_host((one == other).all(dim=1))
        return out

    def moments(self) -> tuple[Floats, Floats]:
        n = self.shape[0]
        mean = sum(part.sum(dim=0, dtype=torch.float64) for _, part in self._parts()) / n
        square = sum(((part - mean) ** 2).sum(dim=0) for _, part in self._parts())
        return floats(mean), np.sqrt(floats(square) / n)

    def sums_about(self, centre: float, weight: Floats) -> tuple[float, float]:
        w, first, second = to_device(weight, self.rows), 0.0, 0.0
        for some, part in self._parts(2):
            less = part.double() - centre
            first += float(w[some] @ less.sum(dim=1))
            second += float(w[some] @ (less * less).sum(dim=1))
        return first, second

    def extremes(self) -> tuple[float, float]:
        low, high = torch.aminmax(self.rows)
        return float(low), float(high)

    def squared_lengths(self) -> Floats:
        return np.concatenate([floats((part.double() ** 2).sum(dim=1)) for _, part in self._parts(2)])

    def values(self, kernel: Kernel, others: PlacedSamples | None = None) -> Floats:
        formula = Formula.of(kernel, self.rows)
        assert others is None or isinstance(others, TorchSamples)
        left = formula.rows(self.rows, torch.float64)
        right = left if others is None else formula.rows(others.rows, torch.float64)
        out = np.empty((left.n, right.n))
        for some in row_blocks(left.n, 8 * right.n):
            out[some] = to_host(formula.block(left[some], right))
        if others is None:
            out = 0.5 * (out + out.T)
            np.fill_diagonal(out, self.diagonal(kernel))
        return out

    def diagonal(self, kernel: Kernel) -> Floats:
        return floats(Formula.of(kernel, self.rows).diagonal(self.rows))

    def entries(self, rows: Indices, columns: Indices) -> Floats:
        return floats(self.rows[places(rows, self.rows), places(columns, self.rows)])

    def columns(self, which: Indices) -> TorchSamples:
        return TorchSamples(self.engine, self.rows[:, places(which, self.rows)].contiguous())

    def asymmetry(self) -> float:
        return max(float((part - self.rows[:, some].T).abs().max()) for some, part in self._parts(3))


def _mixed(bits: Any) -> Any:
    """Integers whose every bit depends on every bit of these."""
    bits = (bits ^ ((bits >> 30) & 0x3FFFFFFFF)) * _FIRST
    bits = (bits ^ ((bits >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return bits ^ ((bits >> 31) & 0x1FFFFFFFF)


def dense_rows(X: Any, device: Any) -> Any:
    """Samples of this machine or a tensor as contiguous rows of float32 or float64 on a device."""
    if isinstance(X, list):
        raise TypeError(
            f"strings cannot be compared on {device}; do it on this machine: mercer.config_context(device='cpu')"
        )
    if is_sparse(X) or (isinstance(X, torch.Tensor) and X.layout is not torch.strided):
        raise TypeError(
            f"sparse samples cannot be computed on {device} yet; give them as a dense array, or compute them on this "
            "machine: mercer.config_context(device='cpu')"
        )
    rows = X.detach() if isinstance(X, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(X))
    if rows.dtype not in (torch.float32, torch.float64):
        if rows.is_complex() or rows.dtype in (torch.float16, torch.bfloat16):
            raise TypeError(f"X has the dtype {rows.dtype}; give float32 or float64, so that nothing is guessed")
        rows = rows.to(torch.float64)
    return rows.to(device).contiguous()
